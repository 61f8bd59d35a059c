//! What users of Volcano were told to write: every field and value that its documentation, its examples and talks about it use.
//! The API has to take all of it, and refuse what Volcano refuses.

use super::machine::{can_run, not_run};
use super::taken::Api;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use volcano_testcluster::images::mpi;

/// The frame of a Job, with what a case is about.
fn job(name: &str, spec: &str, tasks: &str) -> String {
    format!(
        "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {{name: {name}}}\nspec:\n{}\n  tasks:\n{}\n",
        indented(spec, 2),
        indented(tasks, 2)
    )
}

fn indented(text: &str, by: usize) -> String {
    let lines = text.trim_matches('\n').lines();
    lines
        .map(|line| format!("{}{line}", " ".repeat(by)))
        .collect::<Vec<_>>()
        .join("\n")
}

/// A task of one container that asks for little.
const PLAIN: &str = "
- name: test
  replicas: 1
  template: {spec: {restartPolicy: OnFailure, containers: [{name: c, image: alpine, resources: {}}]}}
";

const PADDLE: &str = "
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: ctr-volcano}
spec:
  minAvailable: 4
  schedulerName: volcano
  policies: [{event: PodEvicted, action: RestartJob}, {event: PodFailed, action: RestartJob}]
  tasks:
  - replicas: 2
    name: pserver
    template: &pods
      metadata: {labels: {paddle-job-pserver: fluid-ctr}}
      spec:
        imagePullSecrets: [{name: default-secret}]
        volumes: [{hostPath: {path: /home/work/, type: \"\"}, name: seqdata}]
        restartPolicy: OnFailure
        containers:
        - name: pserver
          image: volcanosh/edlctr:v1
          imagePullPolicy: IfNotPresent
          command: [paddle_k8s, start_fluid]
          volumeMounts: [{mountPath: /mnt/seqdata, name: seqdata}]
          resources:
            limits: {cpu: 10, memory: 30Gi, ephemeral-storage: 10Gi}
            requests: {cpu: 1, memory: 100M, ephemeral-storage: 1Gi}
          env:
          - {name: GLOG_v, value: \"0\"}
          - {name: TOPOLOGY}
          - {name: POD_IP, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: status.podIP}}}
  - replicas: 2
    name: trainer
    policies: [{event: TaskCompleted, action: CompleteJob}]
    template: *pods
";

/// As one is shown that a Job made, without what only the server writes.
const POD_GROUP: &str = "
apiVersion: scheduling.volcano.sh/v1beta1
kind: PodGroup
metadata:
  annotations:
  creationTimestamp: \"2024-05-28T09:18:50Z\"
  generation: 5
  labels: {volcano.sh/job-type: MPI}
  name: lm-mpi-job-9c571015-37c7-4a1a-9604-eaa2248613f2
  namespace: default
  ownerReferences:
  - apiVersion: batch.volcano.sh/v1alpha1
    blockOwnerDeletion: true
    controller: true
    kind: Job
    name: lm-mpi-job
    uid: 9c571015-37c7-4a1a-9604-eaa2248613f2
spec:
  minMember: 4
  minResources: {count/pods: \"4\", cpu: 3500m, limits.cpu: 3500m, pods: \"4\", requests.cpu: 3500m}
  minTaskMember: {mpimaster: 1, mpiworker: 3}
  queue: default
status:
  conditions:
  - lastTransitionTime: \"2024-05-28T09:19:01Z\"
    message: '3/4 tasks in gang unschedulable: pod group is not ready, 1 Succeeded, 3 Releasing, 4 minAvailable'
    reason: NotEnoughResources
    status: \"True\"
    transitionID: f875efa5-0358-4363-9300-06cebc0e7466
    type: Unschedulable
  phase: Pending
  succeeded: 1
";

const QUEUES: &str = "
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata:
  name: root-eng-prod
  annotations: {volcano.sh/hierarchy: root/eng/prod, volcano.sh/hierarchy-weights: 1/2/8}
spec: {weight: 1}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: child-queue-a}
spec: {reclaimable: true, parent: root, deserved: {cpu: 64, memory: 128Gi}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: subchild-queue-a1}
spec: {reclaimable: true, parent: child-queue-a, deserved: {cpu: 32, memory: 64Gi}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: fifo}
spec: {weight: 2, capability: {cpu: \"4\", memory: 4096Mi, nvidia.com/gpu: 8}, guarantee: {resource: {cpu: 2}}, deserved: {cpu: 2}, dequeueStrategy: fifo, priority: 100}
";

#[tokio::test]
async fn what_users_were_told_is_taken() {
    let cases = [
        ("mpi", mpi::MANIFEST.to_owned()),
        ("paddle", PADDLE.to_owned()),
        ("a PodGroup as it is shown", POD_GROUP.to_owned()),
        ("queues", QUEUES.to_owned()),
        (
            "tensorflow, with the hosts in files",
            job(
                "tensorflow-benchmark",
                "minAvailable: 3\nschedulerName: volcano\nplugins: {env: [], svc: []}\npolicies: [{event: PodEvicted, action: RestartJob}]",
                "- replicas: 1\n  name: ps\n  template: {spec: {imagePullSecrets: [{name: default-secret}], restartPolicy: OnFailure, containers: [{name: tensorflow, image: 'volcanosh/example-tf:0.0.1', command: [sh, -c, 'echo ${VK_TASK_INDEX}'], workingDir: /opt, ports: [{containerPort: 2222, name: tfjob-port}], resources: {requests: {cpu: 1000m, memory: 2048Mi}, limits: {cpu: 1000m, memory: 2048Mi}}}]}}\n\
                 - replicas: 2\n  name: worker\n  policies: [{event: TaskCompleted, action: CompleteJob}]\n  template: {spec: {restartPolicy: OnFailure, containers: [{name: tensorflow, image: 'volcanosh/example-tf:0.0.1', resources: {requests: {cpu: 2000m, memory: 2048Mi}, limits: {cpu: 2000m, memory: 4096Mi}}}]}}",
            ),
        ),
        (
            "an elastic job on GPUs",
            job(
                "test-job",
                "minAvailable: 5",
                "- replicas: 10\n  template: {spec: {containers: [{name: train, image: train_script, resources: {limits: {nvidia.com/gpu: 1}}}]}}",
            ),
        ),
        (
            "plugins with arguments, and a name in the template",
            job(
                "test-job-plugin",
                "minAvailable: 3\nmaxRetry: 5\nqueue: default\nplugins: {env: [], ssh: ['--ssh-key-file-path=/home/user/.ssh'], svc: ['--publish-not-ready-addresses=false', '--disable-network-policy=false']}",
                "- replicas: 3\n  name: default-nginx\n  template: {metadata: {name: web}, spec: {restartPolicy: OnFailure, containers: [{name: nginx, image: nginx, imagePullPolicy: IfNotPresent, resources: {requests: {cpu: '1'}}}]}}",
            ),
        ),
        (
            "ray by its plugin alone",
            job(
                "ray-cluster-job",
                "minAvailable: 2\nplugins: {ray: []}\nqueue: default",
                "- {replicas: 1, name: head, template: {spec: {restartPolicy: OnFailure, containers: [{name: head, image: 'bitnami/ray:2.49.0', resources: {}}]}}}\n- {replicas: 1, name: worker, template: {spec: {restartPolicy: OnFailure, containers: [{name: worker, image: 'bitnami/ray:2.49.0', resources: {}}]}}}",
            ),
        ),
        (
            "policies with several events, and with a timeout",
            job(
                "policies",
                "policies: [{events: [PodEvicted, PodFailed], action: RestartJob}, {event: PodPending, action: AbortJob, timeout: 10m}]",
                PLAIN,
            ),
        ),
        (
            "the end of a job, its priority, its volumes",
            job(
                "ends",
                "ttlSecondsAfterFinished: 60\npriorityClassName: high-priority\nminSuccess: 1\nrunningEstimate: 1h\nvolumes: [{mountPath: /myinput, volumeClaimName: mine}, {mountPath: /myoutput, volumeClaim: {accessModes: [ReadWriteOnce], storageClassName: my-storage-class, resources: {requests: {storage: 1Gi}}}}]",
                PLAIN,
            ),
        ),
        (
            "topology",
            job(
                "topology",
                "networkTopology: {mode: hard, highestTierAllowed: 2}",
                "- {name: t, replicas: 4, minAvailable: 4, topologyPolicy: single-numa-node, partitionPolicy: {totalPartitions: 2, partitionSize: 2, networkTopology: {mode: hard, highestTierAllowed: 1}}, template: {spec: {restartPolicy: Never, containers: [{name: c, image: alpine, resources: {requests: {cpu: 2}, limits: {cpu: 2}}}]}}}",
            ),
        ),
        (
            "a master that depends on its workers",
            job(
                "depends",
                "minAvailable: 3\nplugins: {ssh: [], svc: []}",
                "- {replicas: 1, name: mpimaster, dependsOn: {name: [mpiworker]}, template: {spec: {restartPolicy: OnFailure, containers: [{name: c, image: alpine}]}}}\n- {replicas: 10, name: mpiworker, template: {spec: {restartPolicy: OnFailure, containers: [{name: c, image: alpine}]}}}",
            ),
        ),
    ];
    let mut refused = Vec::new();
    for (case, text) in cases {
        if let Err(why) = Api::new().await.take_all(&text).await {
            refused.push(format!("{case}: {why}"));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[tokio::test]
async fn what_was_told_wrongly_is_refused_with_the_field() {
    let cases = [
        (
            "resources without requests or limits, on a slide",
            job(
                "slide",
                "minAvailable: 5",
                "- replicas: 10\n  template: {spec: {containers: [{image: train_script, resources: {nvidia.com/gpu: 1}}]}}",
            ),
            "resources.nvidia.com/gpu",
        ),
        (
            "events as one word, in a guide",
            job(
                "guide",
                "policies: [{events: PodFailed, action: RestartPod}]",
                PLAIN,
            ),
            "events",
        ),
        (
            "arguments of a plugin as an object, in an example",
            job("rings", "plugins: {svc: {}}", PLAIN),
            "plugins",
        ),
    ];
    for (case, text, field) in cases {
        let refused = Api::new().await.take_all(&text).await.expect_err(case);
        assert!(refused.contains(field), "{case}: {refused}");
    }
}

/// The benchmark of TensorFlow: a server of parameters, which does not end by itself, and two workers.
const TENSORFLOW: &str = "
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: tensorflow-benchmark, labels: {volcano.sh/job-type: Tensorflow}}
spec:
  minAvailable: 3
  schedulerName: volcano
  plugins: {env: [], svc: []}
  policies: [{event: PodEvicted, action: RestartJob}]
  tasks:
  - replicas: 1
    name: ps
    template:
      spec:
        imagePullSecrets: [{name: default-secret}]
        restartPolicy: OnFailure
        containers:
        - name: tensorflow
          image: volcanosh/example-tf:0.0.1
          workingDir: /opt/tf-benchmarks/scripts/tf_cnn_benchmarks
          command:
          - sh
          - -c
          - |
            PS_HOST=`cat /etc/volcano/ps.host | sed 's/$/&:2222/g' | tr '\\n' ','`;
            WORKER_HOST=`cat /etc/volcano/worker.host | sed 's/$/&:2222/g' | tr '\\n' ','`;
            python tf_cnn_benchmarks.py --job_name=ps --task_index=${VK_TASK_INDEX} --ps_hosts=${PS_HOST} --worker_hosts=${WORKER_HOST}
          ports: [{containerPort: 2222, name: tfjob-port}]
          resources: {requests: {cpu: 1000m, memory: 2048Mi}, limits: {cpu: 1000m, memory: 2048Mi}}
  - replicas: 2
    name: worker
    policies: [{event: TaskCompleted, action: CompleteJob}]
    template:
      spec:
        imagePullSecrets: [{name: default-secret}]
        restartPolicy: OnFailure
        containers:
        - name: tensorflow
          image: volcanosh/example-tf:0.0.1
          workingDir: /opt/tf-benchmarks/scripts/tf_cnn_benchmarks
          command:
          - sh
          - -c
          - |
            PS_HOST=`cat /etc/volcano/ps.host | sed 's/$/&:2222/g' | tr '\\n' ','`;
            WORKER_HOST=`cat /etc/volcano/worker.host | sed 's/$/&:2222/g' | tr '\\n' ','`;
            python tf_cnn_benchmarks.py --job_name=worker --task_index=${VK_TASK_INDEX} --ps_hosts=${PS_HOST} --worker_hosts=${WORKER_HOST}
          ports: [{containerPort: 2222, name: tfjob-port}]
          resources: {requests: {cpu: 2000m, memory: 2048Mi}, limits: {cpu: 2000m, memory: 4096Mi}}
";

/// The program of the images: says what it was given, and where its peers are. Servers go on until they are ended.
const PROGRAM: &str = r#"#!/bin/sh
echo "$0 $* index $VC_TASK_INDEX"
case "$* $HOSTNAME" in
*--job_name=ps*|*-pserver-*) exec sleep 1000 ;;
*--job_name=worker*) until getent hosts tensorflow-benchmark-ps-0.tensorflow-benchmark; do sleep 0.1; done ;;
esac
sleep 1
"#;

/// Runs a manifest with programs in the place of those of its images: in a mount namespace of its own, so that the machine
/// gets neither them nor the paths of the host that a manifest names.
fn run_with_programs(manifest: &str, programs: &[&str], arguments: &str) -> Option<String> {
    if !can_run(&[("unshare", "util-linux")]) {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    for program in programs {
        let path = bin.join(program);
        std::fs::write(&path, PROGRAM).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    std::fs::write(folder.path().join("job.yaml"), manifest).unwrap();
    let script = format!(
        "mount -t tmpfs none /home && mount --bind bin /usr/local/bin && exec \"$0\" run --timeout 60s --cpu 64 --memory 64Gi {arguments} job.yaml"
    );
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script, env!("CARGO_BIN_EXE_volcano")])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    if text.contains("unshare failed") || text.contains("permission denied") {
        not_run(&format!("no mount namespaces: {text}"));
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{text}");
    Some(text)
}

#[test]
fn the_benchmark_of_tensorflow_runs() {
    let Some(told) = run_with_programs(TENSORFLOW, &["python"], "") else {
        return;
    };
    assert!(told.contains("job tensorflow-benchmark Completed"), "{told}");
    // What is heard of is the first task: it knows all hosts, and its number by the older name of the variable.
    let host = |pod: &str| format!("tensorflow-benchmark-{pod}.tensorflow-benchmark:2222");
    for words in [
        format!(
            "tf_cnn_benchmarks.py --job_name=ps --task_index=0 --ps_hosts={}",
            host("ps-0")
        ),
        format!("--worker_hosts={},{}", host("worker-0"), host("worker-1")),
    ] {
        assert!(told.contains(&words), "{words}\n{told}");
    }
}

#[test]
fn the_job_of_paddle_runs() {
    let Some(told) = run_with_programs(PADDLE, &["paddle_k8s"], "") else {
        return;
    };
    assert!(told.contains("job ctr-volcano Completed"), "{told}");
    assert!(told.contains("paddle_k8s start_fluid"), "{told}");
}

#[test]
fn an_elastic_job_runs_with_what_there_is() {
    // As it should have been on the slide; the command is that of the image.
    let tasks = "- replicas: 10\n  name: train\n  template: {spec: {restartPolicy: OnFailure, containers: [{name: train, image: train_script, command: [train_script], resources: {limits: {nvidia.com/gpu: 1}}}]}}";
    let manifest = job("test-job", "minAvailable: 5", tasks);
    let Some(told) = run_with_programs(&manifest, &["train_script"], "--gpu 6") else {
        return;
    };
    assert!(told.contains("job test-job Completed"), "{told}");
    let ran = told
        .lines()
        .filter(|line| line.starts_with("test-job-train-") && line.contains("Completed"));
    assert_eq!(ran.count(), 10, "{told}");
}
