//! `/jobs/mutate` and `/jobs/validate`.

mod create;
mod mutate;
mod policies;
mod semantic;
mod tasks;
mod update;

pub(crate) use tasks::has_both_tiers;

use volcano_api::batch::Job;
use volcano_api::names::admission::messages;

use crate::review::{Context, Operation, Request, Verdict};

/// Fills in what a new Job leaves open.
pub(crate) fn mutate(context: &Context<'_>, request: &Request) -> Verdict {
    if request.operation() != Operation::Create {
        return Err(messages::EXPECT_CREATE.into());
    }
    let job: Job = request.object()?;
    let patch = mutate::defaults(job, context.options.default_scheduler());
    Ok(patch.with_parent("spec", &request.object))
}

/// Judges a new Job, or a change to one.
pub(crate) fn validate(context: &Context<'_>, request: &Request) -> Verdict {
    match request.operation() {
        Operation::Create => create::check(context, &request.object()?),
        Operation::Update => update::check(request.old_object()?, request.object()?),
        Operation::Delete | Operation::Other => Err(messages::EXPECT_CREATE_OR_UPDATE.into()),
    }
}
