//! Rules for the place of a queue in the tree of queues.

use std::collections::BTreeSet;

use volcano_api::names::{queues, resources};
use volcano_api::scheduling::Queue;

use crate::lookups;
use crate::{Lookups, Options};

/// Judges the parent of a queue.
pub(super) fn check(cluster: &dyn Lookups, options: &Options, queue: &Queue) -> Result<(), String> {
    let (name, parent) = (&queue.metadata.name, &queue.spec.parent);
    if is_top(parent) {
        return Ok(());
    }
    if parent == name {
        return Err(format!("queue {name} cannot use itself as parent"));
    }
    check_depth(cluster, options, queue)?;
    let found = lookups::queue(cluster, parent)
        .map_err(|error| format!("failed to get parent queue of queue {name}: {error}"))?;
    let pods = allocated_pods(&found);
    if pods != 0 && cluster.children(parent).is_empty() {
        return Err(format!(
            "queue {parent} cannot be the parent queue of queue {name} because it has allocated Pods: {pods}"
        ));
    }
    Ok(())
}

/// Walks up to the root. A queue that is its own ancestor is endlessly deep.
fn check_depth(cluster: &dyn Lookups, options: &Options, queue: &Queue) -> Result<(), String> {
    let name = &queue.metadata.name;
    let mut parent = queue.spec.parent.clone();
    let mut depth = 1;
    let mut seen = BTreeSet::from([name.clone()]);
    while !is_top(&parent) {
        depth += 1;
        if depth > options.max_queue_depth || !seen.insert(parent.clone()) {
            let most = options.max_queue_depth;
            return Err(format!(
                "queue {name} exceeds the maximum allowed depth of {most}"
            ));
        }
        let found = lookups::queue(cluster, &parent)
            .map_err(|error| format!("failed to get parent queue {parent} of queue {name}: {error}"))?;
        parent = found.spec.parent.clone();
    }
    Ok(())
}

/// Whether a parent is the root, named or not.
pub(super) fn is_top(parent: &str) -> bool {
    parent.is_empty() || parent == queues::ROOT
}

/// Pods that a queue holds.
pub(super) fn allocated_pods(queue: &Queue) -> i64 {
    let pods = queue.status.allocated.get(resources::PODS);
    pods.map_or(0, |pods| pods.value())
}
