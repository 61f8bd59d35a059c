//! `/jobs/mutate` and `/jobs/validate`.

mod create;
pub(crate) mod durations;
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
    let names_plugins = request.object["spec"]["plugins"].is_object();
    let patch = mutate::defaults(job, names_plugins, context.options.default_scheduler());
    Ok(patch.with_parent("spec", &request.object))
}

/// Judges a new Job, or a change to one.
pub(crate) fn validate(context: &Context<'_>, request: &Request) -> Verdict {
    let operation = request.operation();
    if !matches!(operation, Operation::Create | Operation::Update) {
        return Err(messages::EXPECT_CREATE_OR_UPDATE.into());
    }
    let job: Job = request.object()?;
    durations::check(request, &job, |job| durations::faults(&job.spec, "object.spec"))?;
    if operation == Operation::Update {
        update::check(request.old_object()?, job)
    } else {
        create::check(context, &job)
    }
}
