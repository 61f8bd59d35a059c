//! The MPI example of the field: a Job with the names, plugins and policies that users know, the program of its image, and
//! what that says.
//!
//! Tests on real nodes and on processes of this machine run the same text and the same program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;

use super::{Workshop, debian, run};
use crate::binaries;
use crate::modules::Fnv;

/// The Job. It asks for 3.5 processors. The list of hosts ends with a comma, and the master has a server as well: both are
/// as users write it.
pub const MANIFEST: &str = r#"
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: lm-mpi-job, labels: {volcano.sh/job-type: MPI}}
spec:
  schedulerName: volcano
  minAvailable: 4
  plugins: {ssh: [], svc: []}
  policies: [{event: PodEvicted, action: RestartJob}]
  tasks:
  - name: mpimaster
    replicas: 1
    policies: [{event: TaskCompleted, action: CompleteJob}]
    template:
      spec:
        restartPolicy: OnFailure
        imagePullSecrets: [{name: default-secret}]
        containers:
        - name: mpimaster
          image: volcanosh/example-mpi:0.0.1
          workingDir: /home
          ports: [{name: mpijob-port, containerPort: 22}]
          resources: {requests: {cpu: 500m}, limits: {cpu: 500m}}
          command:
          - /bin/sh
          - -c
          - |
            mkdir -p /var/run/sshd && /usr/sbin/sshd
            mpiexec --allow-run-as-root --host $(tr '\n' , < /etc/volcano/mpiworker.host) -np 3 mpi_hello_world
  - name: mpiworker
    replicas: 3
    template:
      spec:
        restartPolicy: OnFailure
        imagePullSecrets: [{name: default-secret}]
        containers:
        - name: mpiworker
          image: volcanosh/example-mpi:0.0.1
          workingDir: /home
          ports: [{name: mpijob-port, containerPort: 22}]
          resources: {requests: {cpu: 1000m}, limits: {cpu: 1000m}}
          command: [/bin/sh, -c, "mkdir -p /var/run/sshd; /usr/sbin/sshd -D;"]
"#;

/// Programs of MPI over ssh that a machine needs which is its own image, each with its package.
pub const PROGRAMS: [(&str, &str); 3] = [
    ("mpiexec", "openmpi-bin"),
    ("ssh", "openssh-client"),
    ("sshd", "openssh-server"),
];

/// The program, under the name that the manifest has.
pub const PROGRAM: &str = "mpi_hello_world";
/// Its source.
pub(super) const SOURCE: &str = include_str!("hello.c");
/// Has the headers that it is compiled with.
const HEADERS: &str = "libopenmpi-dev";

/// What the program says in the Job of the manifest, in any order.
pub fn lines() -> Vec<String> {
    let hello = |rank| {
        format!("Hello world from processor lm-mpi-job-mpiworker-{rank}, rank {rank} out of 3 processors")
    };
    let mut lines: Vec<String> = (0..3).map(hello).collect();
    lines.push("Sum of all ranks: 3".to_owned());
    lines
}

/// The program for this machine, which has [`PROGRAMS`] and gcc; compiled if that was not done before.
///
/// # Errors
/// When it cannot be compiled; the message has what the failing program said.
pub fn program() -> anyhow::Result<PathBuf> {
    let folder = binaries::cache_directory()?.join("images");
    let mut hash = Fnv::new();
    hash.add(&debian::recipe()?);
    let path = folder.join(format!("{PROGRAM}-{:016x}", hash.value()));
    if !path.is_file() {
        let workshop = Workshop::open(&folder)?;
        let unfinished = workshop.0.join(PROGRAM);
        compile(&workshop.0, Path::new("/"), &unfinished)?;
        fs::rename(&unfinished, &path).with_context(|| format!("moving to {}", path.display()))?;
    }
    Ok(path)
}

/// Compiles the program here against the libraries below a root: in an image a compiler would double its size.
pub(super) fn compile(workshop: &Path, root: &Path, program: &Path) -> anyhow::Result<()> {
    run(Command::new("apt-get")
        .args(["-qq", "download", HEADERS])
        // Else a user of apt's own, who may not write here, would have to fetch it.
        .args(["-o", "APT::Sandbox::User=root"])
        .current_dir(workshop))?;
    let package = find(workshop, |name| name.starts_with(HEADERS))?;
    let headers = workshop.join("headers");
    run(Command::new("dpkg-deb")
        .arg("--extract")
        .arg(package)
        .arg(&headers))?;
    let triplet = run(Command::new("gcc").arg("-print-multiarch"))?;
    let libraries = Path::new("usr/lib").join(triplet.trim());
    let library = find(&root.join(&libraries), |name| name.starts_with("libmpi.so."))?;
    let source = workshop.join("hello.c");
    fs::write(&source, SOURCE).context("writing hello.c")?;
    run(Command::new("gcc")
        // What the library itself needs is below the root, where the compiler does not look.
        .args([
            "-O1",
            "-Wall",
            "-Wl,--unresolved-symbols=ignore-in-shared-libs",
            "-o",
        ])
        .arg(program)
        .arg(source)
        .arg("-I")
        .arg(headers.join(&libraries).join("openmpi/include"))
        .arg(library))
    .map(drop)
}

/// The first file of a folder, by name, with such a name.
fn find(folder: &Path, fits: impl Fn(&str) -> bool) -> anyhow::Result<PathBuf> {
    let entries = fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let fits = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        fits(&name)
    };
    let found = paths.filter(fits).min();
    found.with_context(|| format!("{} lacks a file that was expected", folder.display()))
}
