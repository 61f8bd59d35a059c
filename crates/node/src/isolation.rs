//! How far pods can be set apart from the machine and from each other: found out by trying, and told in words.

use crate::container::{Isolation, Outer, Spec};
use crate::process;
use crate::register::Apartness;
use std::path::Path;

/// Finds out how far containers can be set apart, by trying. What stands in the way of more is told.
pub(crate) async fn probe(
    program: &Path,
    directory: &Path,
    at_most: Option<Isolation>,
) -> Result<(Isolation, bool, Vec<String>), String> {
    let mut problems = Vec::new();
    let is_root = nix::unistd::geteuid().is_root();
    let all = [Isolation::Root, Isolation::User, Isolation::None];
    let from = at_most.unwrap_or(Isolation::Root);
    for isolation in all.into_iter().skip_while(|one| *one != from) {
        match isolation {
            Isolation::Root if !is_root => {
                problems.push("not started as root".to_owned());
                continue;
            }
            // The namespaces of a user give root nothing that it does not have.
            Isolation::User if is_root && at_most != Some(Isolation::User) => continue,
            _ => {}
        }
        let scratch = directory.join(format!("probe-{}", std::process::id()));
        let (outer, spec) = (
            Outer {
                isolation,
                network: None,
            },
            Spec {
                isolation,
                hostname: "probe".to_owned(),
                scratch: scratch.clone(),
                mounts: Vec::new(),
                shm_bytes: 1 << 20,
                command: Vec::new(),
                env: Vec::new(),
                directory: "/".into(),
                user: None,
                group: None,
            },
        );
        let attempt = process::attempt(program, &outer, &spec).await;
        let _ = std::fs::remove_dir_all(&scratch);
        match attempt {
            Ok(layered) => return Ok((isolation, layered, problems)),
            Err(problem) => problems.push(problem),
        }
    }
    Err(problems.join("; "))
}

/// Says how far pods are set apart.
pub(crate) fn apartness(
    isolation: Isolation,
    layered: bool,
    why: &[String],
    host_network: bool,
    network_problem: Option<String>,
) -> Apartness {
    let why = if why.is_empty() {
        String::new()
    } else {
        format!(" ({})", why.join("; "))
    };
    let network = match network_problem {
        _ if host_network => " Pods share the network of the host, as was asked for.".to_owned(),
        Some(problem) => format!(" Pods share the network of the host: {problem}."),
        None => String::new(),
    };
    let files = if layered {
        ""
    } else {
        " What they write goes to the host's files."
    };
    match isolation {
        Isolation::Root => Apartness {
            is_whole: layered && network.is_empty(),
            reason: if network.is_empty() {
                "Root"
            } else {
                "SharedNetwork"
            },
            message: format!("Pods have file systems, processes, host names of their own.{files}{network}"),
        },
        Isolation::User => Apartness {
            is_whole: false,
            reason: "NotRoot",
            message: format!(
                "Pods have mounts, processes and host names of their own; they share the network of the host{why}.{files}"
            ),
        },
        Isolation::None => Apartness {
            is_whole: false,
            reason: "NoNamespaces",
            message: format!(
                "Pods are ordinary processes of this machine{why}: they share its network, its names and its files, and \
                 pods with volume mounts fail."
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_apart_is_said() {
        let whole = apartness(Isolation::Root, true, &[], false, None);
        assert!(whole.is_whole && !whole.message.contains("share"), "{whole:?}");
        let cases = [
            (
                apartness(Isolation::Root, true, &[], true, None),
                "share the network",
            ),
            (
                apartness(Isolation::Root, true, &[], false, Some("no bridge".to_owned())),
                "no bridge",
            ),
            (
                apartness(Isolation::Root, false, &[], false, None),
                "goes to the host's files",
            ),
            (
                apartness(Isolation::User, false, &["not root".to_owned()], false, None),
                "(not root)",
            ),
            (
                apartness(Isolation::None, false, &["refused".to_owned()], false, None),
                "pods with volume mounts fail",
            ),
        ];
        for (apart, part) in cases {
            assert!(!apart.is_whole && apart.message.contains(part), "{apart:?}");
        }
    }
}
