//! `shard.volcano.sh/v1alpha1`: NodeShards, which divide the nodes among several schedulers.

use crate::time::Time;
use crate::wire::{object, resource};

resource! {
    /// The nodes of the scheduler of the same name.
    pub struct NodeShard = NODE_SHARD {
        /// What the scheduler uses; written by the scheduler.
        pub status: NodeShardStatus,
    }
    always {
        /// What the scheduler should use; written by the sharding controller.
        pub spec: NodeShardSpec,
    }
}

object! {
    /// The nodes that a scheduler should use.
    pub struct NodeShardSpec {}
    always {
        /// Names of the nodes.
        pub nodes_desired: Vec<String>,
    }
}

object! {
    /// The nodes that a scheduler uses.
    pub struct NodeShardStatus {
        /// Nodes that it uses.
        pub nodes_in_use: Vec<String>,
        /// Nodes that it still has to give up.
        pub nodes_to_remove: Vec<String>,
        /// Nodes that it still waits for.
        pub nodes_to_add: Vec<String>,
    }
    always {
        /// When the status was written last.
        pub last_update_time: Option<Time>,
    }
}
