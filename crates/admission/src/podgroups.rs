//! `/podgroups/mutate` and `/podgroups/validate`.

use volcano_api::names::admission::messages;
use volcano_api::names::{annotations, queues};
use volcano_api::scheduling::{PodGroup, QueueState};

use crate::Patch;
use crate::jobs::has_both_tiers;
use crate::lookups;
use crate::queues::expect_create;
use crate::review::{Context, Operation, Request, Verdict, verdict};

/// Moves a new PodGroup from the default queue to that of its namespace.
pub(crate) fn mutate(context: &Context<'_>, request: &Request) -> Verdict {
    expect_create(request)?;
    let group: PodGroup = request.object()?;
    let mut patch = Patch::default();
    if group.spec.queue != queues::DEFAULT {
        return Ok(patch);
    }
    let namespace = match group.metadata.namespace.as_str() {
        "" => &request.namespace,
        own => own,
    };
    let annotations = context
        .cluster
        .namespace_annotations(namespace)
        .unwrap_or_default();
    if let Some(queue) = annotations.get(annotations::SCHEDULING_QUEUE_NAME) {
        patch.add("/spec/queue", queue.as_str());
    }
    Ok(patch)
}

/// Judges a new PodGroup.
pub(crate) fn validate(context: &Context<'_>, request: &Request) -> Verdict {
    if request.operation() != Operation::Create {
        return Err(format!("unsupported operation {}", request.operation_text()).into());
    }
    let group: PodGroup = request.object()?;
    let spec = &group.spec;
    let mut faults = Vec::new();
    if !spec.queue.is_empty() {
        faults.extend(queue_fault(context, &spec.queue));
    }
    if has_both_tiers(spec.network_topology.as_ref()) {
        faults.push(format!("{}.", messages::BOTH_TIERS));
    }
    let mut policies = spec.sub_group_policy.iter();
    if let Some(policy) = policies.find(|policy| has_both_tiers(policy.network_topology.as_ref())) {
        faults.push(format!(
            "in subGroupPolicy '{}': {}.",
            policy.name,
            messages::BOTH_TIERS
        ));
    }
    verdict(&faults.join("; "))
}

fn queue_fault(context: &Context<'_>, name: &str) -> Option<String> {
    match lookups::queue(context.cluster, name) {
        Err(error) => Some(format!("unable to find queue: {error}")),
        Ok(queue) if queue.status.state == QueueState::Open => None,
        Ok(queue) => Some(format!(
            "can only submit PodGroup to queue with state `Open`, queue `{name}` status is `{}`.",
            queue.status.state
        )),
    }
}
