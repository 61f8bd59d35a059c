//! A classic MPI program over pods on both nodes: ssh from the master to the workers by their names in DNS.
//!
//! Everything is written out that the `ssh` and `svc` plugins of a Job would do: this is about nodes, names and images.

use volcano_cluster_tests::field::{Field, cluster, exit_code};
use volcano_testcluster::images::Image;

const WORKERS: usize = 3;

/// Makes a key pair and prints it as the Secret of the others. Open MPI asks for hosts by the first part of their names,
/// hence the rule for ssh.
const KEYS: &str = "apiVersion: v1
kind: Pod
metadata: {name: keys}
spec:
  restartPolicy: Never
  containers:
  - name: c
    image: volcanosh/example-mpi:0.0.1
    command:
    - sh
    - -c
    - |
      ssh-keygen -q -t ed25519 -N '' -f /tmp/key
      cat <<EOF
      apiVersion: v1
      kind: Secret
      metadata: {name: keys}
      data:
        id_ed25519: $(base64 -w 0 /tmp/key)
        authorized_keys: $(base64 -w 0 /tmp/key.pub)
        config: $(printf 'StrictHostKeyChecking no\\nUserKnownHostsFile /dev/null\\nHost worker-?\\nHostName %%h.mpi\\n' | base64 -w 0)
      EOF
";

/// A headless Service that gives each of the pods a name, ready or not.
const NAMES: &str = "apiVersion: v1
kind: Service
metadata: {name: mpi}
spec: {clusterIP: None, publishNotReadyAddresses: true, selector: {app: mpi}, ports: [{port: 22}]}
---
";

fn pod(name: &str, node: &str, script: &str) -> String {
    format!(
        "apiVersion: v1
kind: Pod
metadata: {{name: {name}, labels: {{app: mpi}}}}
spec:
  nodeName: {node}
  restartPolicy: OnFailure
  terminationGracePeriodSeconds: 0
  hostname: {name}
  subdomain: mpi
  volumes:
  - name: keys
    # In a folder of their own: that of the volume itself is open to all, which sshd does not trust.
    secret:
      secretName: keys
      defaultMode: 0600
      items:
      - {{key: id_ed25519, path: .ssh/id_ed25519}}
      - {{key: authorized_keys, path: .ssh/authorized_keys}}
      - {{key: config, path: .ssh/config}}
  containers:
  - name: c
    image: volcanosh/example-mpi:0.0.1
    workingDir: /home
    volumeMounts: [{{name: keys, mountPath: /root/.ssh, subPath: .ssh}}]
    command: [sh, -c, \"{script}\"]
---
"
    )
}

#[tokio::test]
async fn ranks_on_both_nodes_say_hello_to_each_other() {
    let field = Field::new().await;
    tokio::task::spawn_blocking(|| cluster().load_image(&Image::Debian))
        .await
        .unwrap()
        .unwrap();
    field.apply(KEYS).await;
    field.wait_pod("keys", "Succeeded").await;
    let secret = field.log("keys").await;
    field.apply(&secret).await;

    let workers: Vec<String> = (0..WORKERS).map(|at| format!("worker-{at}")).collect();
    let mut manifests = NAMES.to_owned();
    for (at, name) in workers.iter().enumerate() {
        let node = format!("node-{}", at % 2 + 1);
        manifests += &pod(name, &node, "mkdir -p /var/run/sshd; exec /usr/sbin/sshd -D");
    }
    let hosts: Vec<String> = workers.iter().map(|name| format!("{name}.mpi")).collect();
    let run = format!(
        "mpiexec --allow-run-as-root --host {} -np {WORKERS} mpi_hello_world",
        hosts.join(",")
    );
    manifests += &pod("master", "node-1", &run);
    field.apply(&manifests).await;

    // It is started again until all workers are there to be asked.
    let master = field.wait_pod("master", "Succeeded").await;
    assert_eq!(exit_code(&master), Some(0));
    let log = field.log("master").await;
    for (rank, name) in workers.iter().enumerate() {
        let line = format!("Hello world from processor {name}, rank {rank} out of {WORKERS} processors");
        assert!(log.contains(&line), "{line} is not in\n{log}");
    }
    assert!(log.contains("Sum of all ranks: 3"), "{log}");
}
