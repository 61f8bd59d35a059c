//! The command line with containers that really run: the wait for a Job, and its logs.

use std::process::{Command, Output};
use volcano_cluster_tests::field::{Field, cluster};
use volcano_cluster_tests::process::binary;

const JOB: &str = r#"
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: speaks}
spec:
  minAvailable: 3
  schedulerName: volcano
  tasks:
  - replicas: 2
    name: worker
    template:
      spec:
        restartPolicy: Never
        containers:
        - {name: main, image: "busybox:1", command: [sh, -c, "sleep 2; echo one; printf two"]}
  - replicas: 1
    name: other
    template:
      spec:
        restartPolicy: Never
        containers:
        - {name: main, image: "busybox:1", command: [sh, -c, "echo three; sleep 1; exit 0"]}
"#;

async fn vcctl(words: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command
        .arg("vcctl")
        .args(words)
        .env("KUBECONFIG", cluster().kubeconfig_path());
    tokio::task::spawn_blocking(move || command.output().unwrap())
        .await
        .unwrap()
}

fn sorted(output: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_waited_for_and_its_logs_are_read() {
    let field = Field::with_volcano().await;
    let file = std::env::temp_dir().join(format!("{}-speaks.yaml", field.namespace));
    std::fs::write(&file, JOB).unwrap();
    let path = file.display().to_string();
    let ns = field.namespace.as_str();
    let words = ["job", "run", "-n", ns, "-f", &path, "--wait", "--timeout", "2m"];
    let submitted = vcctl(&words);
    // Followed from the start, before there are pods.
    let followed = async {
        field
            .wait(&field.job_path("speaks"), "it is there", |_| true)
            .await;
        vcctl(&["job", "logs", "-n", ns, "speaks", "-f", "--task", "worker"]).await
    };
    let (submitted, followed) = tokio::join!(submitted, followed);
    std::fs::remove_file(&file).unwrap();
    let out = String::from_utf8_lossy(&submitted.stdout);
    assert_eq!(submitted.status.code(), Some(0), "{submitted:?}");
    assert!(out.contains("job speaks Completed after "), "{out}");
    let worker = [
        "[speaks-worker-0] one",
        "[speaks-worker-0] two",
        "[speaks-worker-1] one",
        "[speaks-worker-1] two",
    ];
    assert_eq!(sorted(&followed), worker, "{followed:?}");
    let all = vcctl(&["job", "logs", "-n", ns, "speaks"]).await;
    assert_eq!(
        sorted(&all),
        [&["[speaks-other-0] three"], &worker[..]].concat(),
        "{all:?}"
    );
    let one = vcctl(&["job", "logs", "-n", ns, "speaks", "-t", "other", "--tail", "1"]).await;
    assert_eq!(
        String::from_utf8_lossy(&one.stdout),
        "three\n",
        "one pod needs no name"
    );
}

/// In a pod there is no kubeconfig: the account is mounted, and the address is in the environment.
const INSIDE: &str = r#"
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reads-jobs}
rules:
- {apiGroups: [batch.volcano.sh], resources: [jobs], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reads-jobs}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reads-jobs}
subjects: [{kind: ServiceAccount, name: default}]
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: seen}
spec:
  schedulerName: volcano
  tasks:
  - name: main
    replicas: 1
    template:
      spec:
        restartPolicy: Never
        containers: [{name: main, image: "busybox:1", command: ["true"]}]
---
apiVersion: v1
kind: Pod
metadata: {name: inside}
spec:
  restartPolicy: Never
  containers:
  - name: list
    image: "docker.io/volcanosh/vc-scheduler:test"
    command: [/volcano, vcctl, job, list, -n, NS, -o, name]
  - name: delete
    image: "docker.io/volcanosh/vc-scheduler:test"
    command: [/volcano, vcctl, job, delete, -n, NS, -N, seen]
"#;

#[tokio::test(flavor = "multi_thread")]
async fn in_a_pod_it_is_the_account_of_the_pod() {
    let field = Field::with_volcano().await;
    field.apply(&INSIDE.replace("NS", &field.namespace)).await;
    // It lists, and may not delete.
    field.wait_pod("inside", "Failed").await;
    let listed = field.kubectl(&["logs", "inside", "--container", "list"]).await;
    assert_eq!(listed, "job.batch.volcano.sh/seen\n");
    let refused = field.kubectl(&["logs", "inside", "--container", "delete"]).await;
    let user = format!("User \"system:serviceaccount:{}:default\"", field.namespace);
    assert!(refused.contains(&user), "{refused}");
    assert!(
        refused.contains("Hint: ask an administrator for a role that allows it"),
        "{refused}"
    );
}
