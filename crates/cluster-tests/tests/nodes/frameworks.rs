//! Jobs as the frameworks of the field write them: MPI, TensorFlow, PyTorch. The programs are small and real: they find each
//! other by what the job plugins give them, and talk over the network.

use std::collections::BTreeSet;
use volcano_cluster_tests::field::{Field, cluster};
use volcano_testcluster::images::{Image, mpi};
use volcano_testcluster::objects;

/// The system, and the image of the frameworks' programs.
async fn field() -> Field {
    let field = Field::with_volcano().await;
    tokio::task::spawn_blocking(|| cluster().load_image(&Image::Debian))
        .await
        .unwrap()
        .unwrap();
    field
}

/// Takes what a node has beyond two processors, so that a gang that asks for more than two takes both nodes on any machine.
async fn leave_two_processors(field: &Field, node: &str) {
    let object = objects::get(&field.client, &objects::path("v1", "", "nodes", node)).await;
    let cpu = object.unwrap()["status"]["allocatable"]["cpu"].take();
    let cpu: u32 = cpu.as_str().unwrap().parse().unwrap();
    assert!(cpu >= 2, "{node} has {cpu} processors: the example does not fit");
    let pod = format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: holds-{node}}}
spec:
  nodeName: {node}
  terminationGracePeriodSeconds: 0
  containers: [{{name: c, image: \"busybox:1\", command: [sleep, \"600\"], resources: {{requests: {{cpu: {}}}}}}}]
",
        cpu - 2
    );
    field.apply(&pod).await;
    field.wait_pod(&format!("holds-{node}"), "Running").await;
}

/// The nodes of the workers of the MPI example, once all of them have one.
async fn nodes_of_workers(field: &Field) -> BTreeSet<String> {
    let mut nodes = BTreeSet::new();
    for at in 0..3 {
        let path = field.pod_path(&format!("lm-mpi-job-mpiworker-{at}"));
        let pod = field
            .wait(&path, "it has a node", |pod| pod["spec"]["nodeName"].is_string())
            .await;
        nodes.insert(pod["spec"]["nodeName"].as_str().unwrap().to_owned());
    }
    nodes
}

#[tokio::test]
async fn mpi_over_ssh_between_the_pods_of_a_job() {
    let field = field().await;
    for node in ["node-1", "node-2"] {
        leave_two_processors(&field, node).await;
    }
    field.apply(mpi::MANIFEST).await;
    // Each of the three asks for a processor, and no node has more than two.
    let nodes = nodes_of_workers(&field).await;
    assert!(nodes.iter().eq(["node-1", "node-2"]), "{nodes:?}");
    // SIGTERM does not reach the shell of a worker, which is the first process: the Job is Completing for 30 s, their grace.
    field.wait_end("lm-mpi-job", "Completed").await;
    let log = field.log("lm-mpi-job-mpimaster-0").await;
    for line in mpi::lines() {
        assert!(log.lines().any(|told| told == line), "{line} is not in\n{log}");
    }
    field
        .wait_pods("lm-mpi-job", &["lm-mpi-job-mpimaster-0 Succeeded"])
        .await;
    for at in 0..3 {
        field
            .wait_gone(&field.pod_path(&format!("lm-mpi-job-mpiworker-{at}")))
            .await;
    }
}

/// What runs in the parameter server: takes a number of each worker and answers with the sum of all.
const SERVER: &str = r#"
import os, socket, sys
me, workers = sys.argv[1], sys.argv[2].split(",")
listener = socket.create_server(("", 2222))
print("serving", len(workers), "workers at", me, flush=True)
peers = [listener.accept()[0] for _ in workers]
numbers = [int(peer.makefile().readline()) for peer in peers]
for peer in peers:
    peer.sendall(b"%d\n" % sum(numbers))
listener.accept()
"#;

/// What runs in a worker: sends its number, and prints the sum.
const WORKER: &str = r#"
import socket, sys, time
server, number = sys.argv[1], int(sys.argv[2])
host, port = server.rsplit(":", 1)
while True:
    try:
        peer = socket.create_connection((host, int(port)), 5)
        break
    except OSError as error:
        time.sleep(0.5)
peer.sendall(b"%d\n" % number)
print("sum", int(peer.makefile().readline()), "of worker", number, flush=True)
"#;

/// A Python program as an argument of the shell's `python3 -c`.
fn indented(program: &str, by: usize) -> String {
    let lines = program.trim().lines();
    let lines = lines.map(|line| format!("{}{line}", " ".repeat(by)));
    lines.collect::<Vec<_>>().join("\n")
}

/// A task whose pods run a script of the shell, which has a program at `/tmp/program.py`.
fn python_task(name: &str, replicas: usize, more: &str, script: &str, program: &str) -> String {
    format!(
        "  - name: {name}
    replicas: {replicas}
{more}    template:
      spec:
        restartPolicy: OnFailure
        terminationGracePeriodSeconds: 1
        containers:
        - name: main
          image: python:3
          imagePullPolicy: IfNotPresent
          command:
          - sh
          - -c
          - |
            cat > /tmp/program.py <<'END'
{}
            END
            {script}
",
        indented(program, 12)
    )
}

#[tokio::test]
async fn tensorflow_parameter_servers_find_each_other_in_files() {
    let field = field().await;
    let hosts = "PS_HOST=`cat /etc/volcano/ps.host | sed 's/$/&:2222/g' | tr \"\\n\" \",\"`; \
        WORKER_HOST=`cat /etc/volcano/worker.host | sed 's/$/&:2222/g' | tr \"\\n\" \",\"`";
    let ps = format!("{hosts}; exec python3 /tmp/program.py ${{PS_HOST%,}} ${{WORKER_HOST%,}}");
    let worker = format!("{hosts}; exec python3 /tmp/program.py ${{PS_HOST%,}} $((VK_TASK_INDEX + 1))");
    let completes = "    policies: [{event: TaskCompleted, action: CompleteJob}]\n";
    let job = format!(
        "apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: tensorflow-benchmark, labels: {{\"volcano.sh/job-type\": Tensorflow}}}}
spec:
  minAvailable: 3
  schedulerName: volcano
  plugins: {{env: [], svc: []}}
  policies: [{{event: PodEvicted, action: RestartJob}}]
  tasks:
{}{}",
        python_task("ps", 1, "", &ps, SERVER),
        python_task("worker", 2, completes, &worker, WORKER)
    );
    field.apply(&job).await;
    field.wait_end("tensorflow-benchmark", "Completed").await;
    for at in 0..2 {
        let log = field.log(&format!("tensorflow-benchmark-worker-{at}")).await;
        assert_eq!(log.trim(), format!("sum 3 of worker {}", at + 1));
    }
    field
        .wait_gone(&field.pod_path("tensorflow-benchmark-ps-0"))
        .await;
}

#[tokio::test]
async fn tensorflow_reads_the_cluster_from_its_variable() {
    let field = field().await;
    let program = r#"
import json, os, runpy, sys
config = json.loads(os.environ["TF_CONFIG"])
cluster, task = config["cluster"], config["task"]
print(task["type"], task["index"], flush=True)
if task["type"] == "ps":
    sys.argv = ["ps", cluster["ps"][task["index"]], ",".join(cluster["worker"])]
    exec(SERVER)
else:
    sys.argv = ["worker", cluster["ps"][0], str(task["index"] + 10)]
    exec(WORKER)
"#;
    let quoted = |text: &str| format!("{text:?}");
    let program = program
        .replace("SERVER", &quoted(SERVER))
        .replace("WORKER", &quoted(WORKER));
    let run = "exec python3 /tmp/program.py";
    let completes = "    policies: [{event: TaskCompleted, action: CompleteJob}]\n";
    let job = format!(
        "apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: tf}}
spec:
  minAvailable: 3
  schedulerName: volcano
  plugins: {{tensorflow: [\"--ps=ps\", \"--worker=worker\", \"--port=2222\"]}}
  tasks:
{}{}",
        python_task("ps", 1, "", run, &program),
        python_task("worker", 2, completes, run, &program)
    );
    field.apply(&job).await;
    field.wait_end("tf", "Completed").await;
    for at in 0..2 {
        let log = field.log(&format!("tf-worker-{at}")).await;
        assert_eq!(log.trim(), format!("worker {at}\nsum 21 of worker {}", at + 10));
    }
}

#[tokio::test]
async fn pytorch_ranks_meet_at_the_address_of_the_master() {
    let field = field().await;
    let program = r#"
import os, socket, time
address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
if rank == 0:
    listener = socket.create_server(("", port))
    peers = [listener.accept()[0] for _ in range(size - 1)]
    ranks = sorted(int(peer.makefile().readline()) for peer in peers)
    print("world of", size, "ranks", ranks, flush=True)
else:
    while True:
        try:
            peer = socket.create_connection((address, port), 5)
            break
        except OSError:
            time.sleep(0.5)
    peer.sendall(b"%d\n" % rank)
"#;
    let run = "exec python3 /tmp/program.py";
    let job = format!(
        "apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: pytorch-job}}
spec:
  minAvailable: 3
  schedulerName: volcano
  plugins: {{pytorch: [\"--master=master\", \"--worker=worker\", \"--port=23456\"]}}
  tasks:
{}{}",
        python_task("master", 1, "", run, program),
        python_task("worker", 2, "", run, program)
    );
    field.apply(&job).await;
    let job = field.wait_end("pytorch-job", "Completed").await;
    assert_eq!(job["status"]["succeeded"], 3, "{}", job["status"]);
    let log = field.log("pytorch-job-master-0").await;
    assert_eq!(log.trim(), "world of 3 ranks [1, 2]");
    // Defaults of admission: the plugin wants names, so there is a Service.
    let service = objects::path("v1", &field.namespace, "services", "pytorch-job");
    field.wait_gone(&service).await;
}
