//! Rules for what a queue has against what its ancestors and descendants have: nobody may use more than those above
//! allow, and nobody can give out more than it has.

use std::collections::BTreeSet;
use std::sync::Arc;

use volcano_api::scheduling::Queue;

use super::amounts::{Amounts, amount, text};
use super::hierarchy::is_top;
use crate::Lookups;
use crate::lookups;

/// Judges the amounts of a queue within the tree.
pub(super) fn check(cluster: &dyn Lookups, queue: &Queue) -> Result<(), String> {
    let (name, parent) = (&queue.metadata.name, &queue.spec.parent);
    if !is_top(parent) {
        let found = lookups::queue(cluster, parent)
            .map_err(|error| format!("parent queue {parent} not found: {error}"))?;
        check_ancestors(cluster, queue)?;
        let mut family = cluster.children(parent);
        family.retain(|sibling| sibling.metadata.name != *name);
        family.push(Arc::new(queue.clone()));
        check_sums(&found, &family, &format!("parent queue {parent}"))?;
    }
    let children = cluster.children(name);
    if children.is_empty() {
        return Ok(());
    }
    check_descendants(cluster, queue)?;
    check_sums(queue, &children, &format!("queue {name}"))
}

/// The nearest ancestor that limits a resource has to allow as much.
fn check_ancestors(cluster: &dyn Lookups, queue: &Queue) -> Result<(), String> {
    let ancestors = ancestors(cluster, queue);
    for (resource, quantity) in &queue.spec.capability {
        let limit = ancestors
            .iter()
            .find_map(|ancestor| capability(ancestor, resource));
        if let (Some(value), Some(limit)) = (amount(resource, *quantity), limit)
            && value > limit
        {
            return Err(format!(
                "queue {} capability[{resource}]={} exceeds its ancestor's capability={}",
                queue.metadata.name,
                text(resource, value),
                text(resource, limit)
            ));
        }
    }
    Ok(())
}

/// The ancestors below the root, the nearest first.
fn ancestors(cluster: &dyn Lookups, queue: &Queue) -> Vec<Arc<Queue>> {
    let mut ancestors: Vec<Arc<Queue>> = Vec::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut parent = queue.spec.parent.clone();
    while !is_top(&parent) && seen.insert(parent.clone()) {
        let Some(found) = cluster.queue(&parent) else {
            break;
        };
        parent.clone_from(&found.spec.parent);
        ancestors.push(found);
    }
    ancestors
}

/// The descendants next below that limit a resource may not allow more.
fn check_descendants(cluster: &dyn Lookups, queue: &Queue) -> Result<(), String> {
    for (resource, quantity) in &queue.spec.capability {
        let largest = largest_below(cluster, &queue.metadata.name, resource);
        if let (Some(value), Some(largest)) = (amount(resource, *quantity), largest)
            && value < largest
        {
            return Err(format!(
                "queue {} capability[{resource}]={} is smaller than its descendants' max capability={}",
                queue.metadata.name,
                text(resource, value),
                text(resource, largest)
            ));
        }
    }
    Ok(())
}

/// The largest limit of a resource below a queue. Below one that has a limit nothing is looked at: it was when that
/// limit was set.
fn largest_below(cluster: &dyn Lookups, name: &str, resource: &str) -> Option<i128> {
    let mut largest = None;
    let mut seen = BTreeSet::from([name.to_owned()]);
    let mut open = cluster.children(name);
    while let Some(queue) = open.pop() {
        if !seen.insert(queue.metadata.name.clone()) {
            continue;
        }
        match capability(&queue, resource) {
            Some(value) => largest = largest.max(Some(value)),
            None => open.extend(cluster.children(&queue.metadata.name)),
        }
    }
    largest
}

/// The limit of a queue on a resource, if it sets one.
fn capability(queue: &Queue, resource: &str) -> Option<i128> {
    let quantity = queue.spec.capability.get(resource)?;
    amount(resource, *quantity).filter(|value| *value > 0)
}

/// What children are guaranteed and deserve comes out of what their parent is and does.
fn check_sums(parent: &Queue, children: &[Arc<Queue>], who: &str) -> Result<(), String> {
    let limits = [
        Amounts::of(&parent.spec.guarantee.resource),
        Amounts::of(&parent.spec.deserved),
    ];
    let mut sums = [Amounts::default(), Amounts::default()];
    for child in children {
        let given = [&child.spec.guarantee.resource, &child.spec.deserved];
        for (index, what) in ["guarantee", "deserved"].iter().enumerate() {
            let (sum, limit) = (&mut sums[index], &limits[index]);
            sum.add(given[index]);
            if sum.exceeds(limit) {
                return Err(format!(
                    "{who} validation failed: sum of children's {what} ({sum}) exceeds parent's {what} limit ({limit})"
                ));
            }
        }
    }
    Ok(())
}
