//! An agent that is killed takes everything with it.

use crate::stage::{Stage, holds, isolations, processes};
use std::process::{Command, Stdio};
use volcano_node::Isolation;

/// Says in a process of its own which isolation to run pods with, and what to sleep for.
const ROLE: &str = "VOLCANO_NODE_TEST_ROLE";

/// Not a test in the ordinary run: the process that is killed.
#[tokio::test(flavor = "multi_thread")]
async fn the_process_that_is_killed() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (isolation, time) = role.split_once(' ').unwrap();
    let isolation = match isolation {
        "Root" => Isolation::Root,
        "User" => Isolation::User,
        _ => Isolation::None,
    };
    let stage = Stage::with(|options| options.isolation = Some(isolation)).await;
    let script = format!(
        "trap '' TERM HUP; setsid sh -c 'trap \"\" HUP; setsid sleep {time} & sleep {time}' & while :; do sleep 0.05; done"
    );
    for name in ["a", "b"] {
        stage.script(name, &script).await;
        stage.phase(name, "Running").await;
    }
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_agent_leaves_no_process_and_no_link() {
    let links = || -> Vec<_> {
        let entries = std::fs::read_dir("/sys/class/net").unwrap().flatten();
        entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect()
    };
    for isolation in isolations() {
        let before = links();
        let time = crate::stage::odd_time();
        // Whoever is killed does not clean up.
        let place = tempfile::tempdir().unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::the_process_that_is_killed", "--nocapture"])
            .env("TMPDIR", place.path())
            .env(ROLE, format!("{isolation:?} {time}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        holds("the pods do not run", || processes(&time).len() == 4).await;
        let new = || {
            links()
                .into_iter()
                .filter(|link| !before.contains(link) && link.starts_with("vc-"))
                .count()
        };
        let had = new();
        child.kill().unwrap();
        child.wait().unwrap();
        holds("processes are left", || processes(&time).is_empty()).await;
        if isolation == Isolation::Root {
            assert!(had >= 1, "pods had no network");
        }
    }
}
