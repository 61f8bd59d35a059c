//! The MPI example of the field on pods that are processes of this machine, with a network of their own: as on a cluster, with
//! the host's programs instead of an image.

use crate::machine::{can_run, not_run};
use std::process::Command;
use volcano_testcluster::images::mpi;

#[test]
fn mpi_over_ssh_between_the_pods_of_a_job() {
    if !can_run(&mpi::PROGRAMS) || !can_run(&[("unshare", "util-linux"), ("gcc", "gcc")]) {
        return;
    }
    let program = match mpi::program() {
        Ok(program) => program,
        Err(error) => return not_run(&format!("{error:#}")),
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mpi.yaml"), mpi::MANIFEST).unwrap();
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::copy(program, bin.join(mpi::PROGRAM)).unwrap();
    // The program is where the image has it, and nobody but the pods sees it there.
    let script = "mount --bind bin /usr/local/bin && exec \"$0\" run --cpu 4 --timeout 60s mpi.yaml";
    let done = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_volcano")])
        .current_dir(folder.path())
        .env("TMPDIR", folder.path())
        .env_remove("KUBECONFIG")
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&done.stdout);
    let err = String::from_utf8_lossy(&done.stderr);
    // Every worker has a server at the same port, which takes a network for each.
    let cannot = ["Pods share the network of the host", "unshare failed"];
    if let Some(why) = err
        .lines()
        .find(|line| cannot.iter().any(|one| line.contains(one)))
    {
        return not_run(why);
    }
    assert_eq!(done.status.code(), Some(0), "{out}\n{err}");
    for line in mpi::lines() {
        assert!(out.lines().any(|told| told == line), "{line}: {out}\n{err}");
    }
    assert!(out.contains("\njob lm-mpi-job Completed: "), "{out}\n{err}");
}
