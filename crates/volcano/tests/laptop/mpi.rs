//! MPI over ssh between pods that are processes of this machine, with a network of their own: as on a cluster, with the
//! host's programs instead of an image.

use crate::machine::{MPI_PROGRAMS, can_run, not_run};
use crate::process::volcano;

/// The manifest of Volcano's documentation, with a line of shell for the program of its image.
const MPI: &str = r#"
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: lm-mpi-job
  labels: {"volcano.sh/job-type": "MPI"}
spec:
  minAvailable: 4
  schedulerName: volcano
  plugins: {ssh: [], svc: []}
  policies:
  - {event: PodEvicted, action: RestartJob}
  tasks:
  - replicas: 1
    name: mpimaster
    policies:
    - {event: TaskCompleted, action: CompleteJob}
    template:
      spec:
        restartPolicy: OnFailure
        containers:
        - name: mpimaster
          image: volcanosh/example-mpi:0.0.1
          workingDir: /home
          ports: [{containerPort: 22, name: mpijob-port}]
          command:
          - /bin/sh
          - -c
          - |
            MPI_HOST=`cat /etc/volcano/mpiworker.host | tr "\n" ","`;
            mkdir -p /var/run/sshd; /usr/sbin/sshd;
            mpiexec --allow-run-as-root --host ${MPI_HOST} -np 3 sh -c \
              'echo "Hello world from processor $(hostname), rank $OMPI_COMM_WORLD_RANK out of $OMPI_COMM_WORLD_SIZE processors"';
  - replicas: 3
    name: mpiworker
    template:
      spec:
        restartPolicy: OnFailure
        terminationGracePeriodSeconds: 1
        containers:
        - name: mpiworker
          image: volcanosh/example-mpi:0.0.1
          workingDir: /home
          ports: [{containerPort: 22, name: mpijob-port}]
          command: [/bin/sh, -c, "mkdir -p /var/run/sshd; exec /usr/sbin/sshd -D"]
"#;

#[test]
fn mpi_over_ssh_between_the_pods_of_a_job() {
    if !can_run(&MPI_PROGRAMS) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mpi.yaml"), MPI).unwrap();
    let done = volcano(
        &["run", "--cpu", "8", "--timeout", "30s", "mpi.yaml"],
        folder.path(),
    );
    // Every worker has a server at the same port, which takes a network for each.
    if let Some(why) = done
        .err
        .lines()
        .find(|line| line.contains("Pods share the network of the host"))
    {
        return not_run(why);
    }
    assert_eq!(done.code, Some(0), "{}", done.all());
    for rank in 0..3 {
        let line = format!(
            "Hello world from processor lm-mpi-job-mpiworker-{rank}, rank {rank} out of 3 processors"
        );
        assert!(
            done.out.lines().any(|told| told == line),
            "{line}: {}",
            done.all()
        );
    }
    assert!(
        done.out.contains("\njob lm-mpi-job Completed: "),
        "{}",
        done.all()
    );
}
