//! The outer process of a container: makes its namespaces, starts the first process in them, and waits for it.

use super::{ENTRY, INNER, Isolation, Outer, Report, inner, input, read_frame, report};
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{getgid, getuid, setsid};
use std::fs::{File, write};
use std::path::Path;
use std::process::{Command, ExitCode};

pub(super) fn main() -> ExitCode {
    // Ctrl-C at the terminal is for the agent, which ends its pods in order.
    let _ = setsid();
    let outer = match input().and_then(|mut input| read_frame::<Outer>(&mut input)) {
        Ok(outer) => outer,
        Err(error) => return refuse(format!("orders cannot be read: {error}")),
    };
    if outer.isolation == Isolation::None {
        return inner::main();
    }
    if let Err(problem) = enter(&outer) {
        return refuse(problem);
    }
    // The next child is the first process of the new namespace of processes.
    let child = Command::new("/proc/self/exe")
        .args([ENTRY, INNER])
        .env_clear()
        .spawn();
    match child.and_then(|mut child| child.wait()) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => refuse(format!("the first process cannot be started: {error}")),
    }
}

/// Enters the namespaces of the container.
fn enter(outer: &Outer) -> Result<(), String> {
    let (user, group) = (getuid(), getgid());
    if outer.isolation == Isolation::User {
        unshare(CloneFlags::CLONE_NEWUSER).map_err(|errno| format!("user namespace: {errno}"))?;
        // The same user within: files belong to whom they belong outside.
        let maps = [
            ("setgroups", "deny".to_owned()),
            ("uid_map", format!("{user} {user} 1")),
            ("gid_map", format!("{group} {group} 1")),
        ];
        for (name, text) in maps {
            let path = Path::new("/proc/self").join(name);
            write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    if let Some(path) = &outer.network {
        let network = File::open(path).map_err(|error| format!("network of the pod: {error}"))?;
        setns(&network, CloneFlags::CLONE_NEWNET).map_err(|errno| format!("network of the pod: {errno}"))?;
    }
    let flags = CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWPID
        | CloneFlags::CLONE_NEWUTS
        | CloneFlags::CLONE_NEWIPC;
    unshare(flags).map_err(|errno| format!("namespaces: {errno}"))
}

fn refuse(message: String) -> ExitCode {
    report(&Report::Refused { message });
    ExitCode::FAILURE
}
