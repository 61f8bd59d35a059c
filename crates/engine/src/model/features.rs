//! What a scheduler is told besides its configuration file: flags and feature gates that decisions depend on.

use serde::{Deserialize, Serialize};

/// Flags and feature gates that decisions depend on. A snapshot has them, so that a replay decides alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Features {
    /// Pods that ask for it are held back by a scheduling gate until their queue has room for them.
    pub queue_admission: bool,
    /// Several schedulers divide the nodes by NodeShards.
    pub sharding: Option<Sharding>,
    /// Nodes are scored by how well volumes and free storage suit the claims of a pod.
    pub storage_scoring: bool,
    /// CSI drivers whose volumes do not count as attached, besides those of local disks.
    pub ignored_provisioners: Vec<String>,
}

/// How nodes are divided between schedulers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sharding {
    /// Name of this scheduler's NodeShard.
    pub name: String,
    /// What the nodes of others are to it.
    pub mode: ShardingMode,
}

/// What the nodes of other schedulers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ShardingMode {
    /// Out of reach.
    Hard,
    /// Taken only where no node of its own will do.
    Soft,
}

/// Drivers of local disks: attaching means nothing to them.
const LOCAL_DISKS: [&str; 2] = ["rancher.io/local-path", "hostpath.csi.k8s.io"];

impl Features {
    /// Volumes of the driver count as attached.
    pub fn counts_attachments_of(&self, driver: &str) -> bool {
        !LOCAL_DISKS.contains(&driver) && !self.ignored_provisioners.iter().any(|name| name == driver)
    }

    /// The nodes of other schedulers are out of reach.
    pub fn is_confined(&self) -> bool {
        let mode = self.sharding.as_ref().map(|sharding| sharding.mode);
        mode == Some(ShardingMode::Hard)
    }
}
