//! The control groups of a cluster's nodes.
//!
//! Kubelets that share a root kill each other's pods, so each has one of its own, all below one group of the cluster:
//! `volcano-HASH/node-1`. A kubelet refuses a root that is not there under every controller. They are the one thing that
//! rooms do not take with them: [`crate::process::Remover`] removes them once their processes are gone.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::modules::Fnv;

/// Where control groups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";
/// Files that a new group of version 1 has empty, and in which no process can be then.
const CPUSET: [&str; 2] = ["cpuset.cpus", "cpuset.mems"];

/// Name of the group of the cluster with this directory.
pub fn group(directory: &Path) -> String {
    let mut hash = Fnv::new();
    hash.add(directory.as_os_str().as_encoded_bytes());
    format!("volcano-{:016x}", hash.value())
}

/// Makes the group of a node under every controller, and returns its path as kubelet wants it.
pub fn create(cluster: &str, node: &str) -> anyhow::Result<String> {
    for hierarchy in hierarchies(Path::new(MOUNT))? {
        let mut parent = hierarchy.clone();
        for name in [cluster, node] {
            let folder = parent.join(name);
            enter_controllers(&parent)?;
            fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
            copy_cpuset(&parent, &folder)?;
            parent = folder;
        }
        enter_controllers(&parent)?;
    }
    Ok(format!("/{cluster}/{node}"))
}

/// The roots of all hierarchies: the one of version 2, or each of version 1.
fn hierarchies(mount: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if mount.join("cgroup.controllers").exists() {
        return Ok(vec![mount.to_owned()]);
    }
    let mut found = Vec::new();
    let entries = fs::read_dir(mount).with_context(|| format!("reading {}", mount.display()))?;
    for entry in entries {
        let path = entry.context("reading the control groups")?.path();
        // Names of two controllers are links to the folder of both.
        if path.is_dir() && !path.is_symlink() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Version 2 gives children those controllers only that their parent hands down.
fn enter_controllers(parent: &Path) -> anyhow::Result<()> {
    let Ok(controllers) = fs::read_to_string(parent.join("cgroup.controllers")) else {
        return Ok(());
    };
    for controller in controllers.split_whitespace() {
        let path = parent.join("cgroup.subtree_control");
        fs::write(&path, format!("+{controller}")).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

fn copy_cpuset(parent: &Path, folder: &Path) -> anyhow::Result<()> {
    for name in CPUSET {
        let (from, to) = (parent.join(name), folder.join(name));
        let is_empty = |path: &Path| fs::read_to_string(path).is_ok_and(|text| text.trim().is_empty());
        if is_empty(&to) && !is_empty(&from) {
            let value = fs::read_to_string(&from).with_context(|| format!("reading {}", from.display()))?;
            fs::write(&to, value.trim()).with_context(|| format!("writing {}", to.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_1_has_a_hierarchy_for_each_folder_and_version_2_has_one() {
        let mount = tempfile::tempdir().unwrap();
        for name in ["memory", "cpu,cpuacct"] {
            fs::create_dir(mount.path().join(name)).unwrap();
        }
        std::os::unix::fs::symlink("cpu,cpuacct", mount.path().join("cpu")).unwrap();
        let names = ["cpu,cpuacct", "memory"].map(|name| mount.path().join(name));
        assert_eq!(hierarchies(mount.path()).unwrap(), names);
        fs::write(mount.path().join("cgroup.controllers"), "cpu memory").unwrap();
        assert_eq!(hierarchies(mount.path()).unwrap(), [mount.path()]);
    }

    #[test]
    fn groups_of_different_clusters_have_different_names() {
        let (one, two) = (group(Path::new("/tmp/a")), group(Path::new("/tmp/b")));
        assert_ne!(one, two);
        assert_eq!(one, group(Path::new("/tmp/a")));
    }
}
