//! Rules for the end of a queue.

use volcano_api::names::admission::messages;
use volcano_api::names::queues;

use super::hierarchy::allocated_pods;
use crate::lookups;
use crate::review::Context;

/// Judges the deletion of a queue.
pub(super) fn check(context: &Context<'_>, name: &str) -> Result<(), String> {
    match name {
        queues::DEFAULT => return Err(messages::DEFAULT_NOT_DELETED.to_owned()),
        queues::ROOT => return Err(messages::ROOT_NOT_DELETED.to_owned()),
        _ => {}
    }
    let queue = lookups::queue(context.cluster, name)?;
    let pods = allocated_pods(&queue);
    if context.options.check_allocated_pods && pods != 0 {
        return Err(format!(
            "queue {name} cannot be deleted because it has allocated Pods: {pods}"
        ));
    }
    let children = context.cluster.children(name);
    if children.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = children
        .iter()
        .map(|child| child.metadata.name.as_str())
        .collect();
    Err(format!(
        "queue {name} can not be deleted because it has {} child queues: {}",
        names.len(),
        names.join(", ")
    ))
}
