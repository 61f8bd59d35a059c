//! `/queues/mutate` and `/queues/validate`.

mod amounts;
mod delete;
mod hierarchy;
mod limits;
mod spec;

use volcano_api::names::{annotations, queues};
use volcano_api::scheduling::Queue;

use crate::patch::escape;
use crate::review::{Context, Operation, Request, Verdict};
use crate::{Lookups, Options, Patch};

/// Weight of a queue that gives none.
const WEIGHT: i32 = 1;
/// Weight of the root in a path of weights.
const ROOT_WEIGHT: &str = "1";

/// Fills in what a new queue leaves open.
pub(crate) fn mutate(_: &Context<'_>, request: &Request) -> Verdict {
    expect_create(request)?;
    let queue: Queue = request.object()?;
    let mut patch = Patch::default();
    let annotation = |key: &str| queue.metadata.annotation(key).unwrap_or_default();
    let (path, weights) = (
        annotation(annotations::HIERARCHY),
        annotation(annotations::HIERARCHY_WEIGHTS),
    );
    let below_root = path.split('/').next() == Some(queues::ROOT);
    if !path.is_empty() && !weights.is_empty() && !below_root {
        let changes = [
            (annotations::HIERARCHY, queues::ROOT, path),
            (annotations::HIERARCHY_WEIGHTS, ROOT_WEIGHT, weights),
        ];
        for (key, root, rest) in changes {
            patch.add(
                format!("/metadata/annotations/{}", escape(key)),
                format!("{root}/{rest}"),
            );
        }
    }
    if queue.spec.reclaimable.is_none() {
        patch.add("/spec/reclaimable", true);
    }
    if queue.spec.weight == 0 {
        patch.add("/spec/weight", WEIGHT);
    }
    Ok(patch.with_parent("spec", &request.object))
}

/// Refuses everything but the making of an object.
pub(crate) fn expect_create(request: &Request) -> Result<(), String> {
    if request.operation() == Operation::Create {
        return Ok(());
    }
    let operation = request.operation_text();
    Err(format!(
        "invalid operation `{operation}`, expect operation to be `CREATE`"
    ))
}

/// Judges a new queue, a change to one, or its end.
pub(crate) fn validate(context: &Context<'_>, request: &Request) -> Verdict {
    match request.operation() {
        Operation::Create => check(context, None, &request.object()?)?,
        Operation::Update => check(context, Some(request.old_object()?), &request.object()?)?,
        Operation::Delete => delete::check(context, &request.name)?,
        Operation::Other => {
            let operation = request.operation_text();
            return Err(format!(
                "invalid operation `{operation}`, expect operation to be `CREATE`, `UPDATE` or `DELETE`"
            )
            .into());
        }
    }
    Ok(Patch::default())
}

/// Judges a queue; `old` is what is stored of it.
fn check(context: &Context<'_>, old: Option<Queue>, queue: &Queue) -> Result<(), String> {
    let (cluster, options): (&dyn Lookups, &Options) = (context.cluster, context.options);
    spec::check(cluster, queue)?;
    let changed = Changed::between(old.as_ref(), queue);
    if changed.parent {
        hierarchy::check(cluster, options, queue)?;
    }
    if queue.metadata.name == queues::ROOT {
        return root(options, old.is_some() && changed.amounts);
    }
    if changed.parent || changed.amounts {
        limits::check(cluster, queue)?;
    }
    Ok(())
}

/// What the root queue has is what the cluster has.
fn root(options: &Options, changed: bool) -> Result<(), String> {
    if options.protect_root_queue && changed {
        return Err(volcano_api::names::admission::messages::ROOT_FROZEN.to_owned());
    }
    Ok(())
}

/// What a request changes of a queue; a new queue changes everything.
struct Changed {
    parent: bool,
    amounts: bool,
}

impl Changed {
    fn between(old: Option<&Queue>, new: &Queue) -> Self {
        let Some(old) = old else {
            return Changed {
                parent: true,
                amounts: true,
            };
        };
        let (old, new) = (&old.spec, &new.spec);
        Changed {
            parent: old.parent != new.parent,
            amounts: old.capability != new.capability
                || old.deserved != new.deserved
                || old.guarantee.resource != new.guarantee.resource,
        }
    }
}
