//! How pods of a Job are killed: the decision is written first, the deletions follow from it.
//!
//! ```text
//! [status: phase, version, retryCount, cause]  ──>  [pods and PodGroup that this status dooms, events, the Command]
//! ```
//!
//! The status is written against the version of the Job that was read, so that a decision is made once. If the process
//! dies after that write, the next look at the Job finds the same pods doomed.

use serde_json::json;
use volcano_api::batch::{Job, JobPhase, JobStatus};
use volcano_api::bus::Action;
use volcano_api::names::{annotations, events, kinds};
use volcano_api::scheduling::PodGroup;

use super::Look;
use super::cause::Cause;
use super::group;
use super::pods::{Doom, Member};
use super::status::{count, draft, enter, forget_plugins, is_alive, running_duration};
use super::table::{Retry, Stage, stage};
use crate::plugins::Plugins;
use crate::write::{Event, Plan, Target, Write};

/// What somebody wants to be done to a Job.
#[derive(Clone, Debug)]
pub struct Order {
    /// The action.
    pub action: Action,
    /// What it is done to, as it is written down.
    pub cause: Cause,
    /// Why, in words. Of a Command, its UID is in them.
    pub why: String,
    /// The Job's restarts when the pod was made that is the reason, if one is.
    pub attempt: Option<i32>,
    /// What is written with it: events, and the deletion of the Command.
    pub with: Vec<Write>,
}

/// The event that tells that an action is carried out.
pub fn announcement(job: &Job, action: &Action) -> Write {
    let message = format!("Start to execute action {action} ");
    Write::Event(Event::normal(Target::of(job), events::EXECUTE_ACTION, message))
}

/// Carries out an order that kills pods.
pub fn carry_out(look: &Look<'_>, order: Order, to: JobPhase, retry: Retry) -> Plan {
    let (job, spec) = (look.job, &look.job.spec);
    let mut next = job.status.clone();
    let doom = Doom::of(spec, &next);
    if !order.cause.is_targeted() {
        next.version += 1;
    }
    if counts(look, &order, retry) {
        next.retry_count += 1;
    }
    enter(&mut next, to, order.cause.to_string(), order.why);
    next.running_duration = running_duration(job, look.now);
    count(job, &mut next, &look.members, &[]);
    let marks = marks(look, &doom, &Doom::of(spec, &next));
    let mut deletions = order.with;
    deletions.extend(cleanup(look, &next));
    if !order.cause.is_targeted() {
        // A PodGroup of an older controller does not say its version; it is not that of the next one.
        let unversioned = look.group.filter(|group| group::version(group).is_none());
        deletions.extend(unversioned.map(deletion_of_group));
    }
    let mut plan = Plan::of(vec![marks]);
    plan.write_status(draft(job, next, true, look.now));
    plan.then(deletions);
    plan
}

/// Whether a restart counts against `maxRetry`.
fn counts(look: &Look<'_>, order: &Order, retry: Retry) -> bool {
    let status = &look.job.status;
    let in_part = |member: &&Member<'_>| {
        order
            .cause
            .covers(member.task_name, member.name(), member.partition())
    };
    match retry {
        Retry::Free => false,
        Retry::Counted => true,
        // Pods of a part are told by their attempt: it has to be a new one if one of them is of the current one.
        Retry::CountedIfNew if order.cause.is_targeted() => {
            let mut part = look.members.iter().filter(in_part);
            part.any(|member| member.attempt >= status.retry_count)
                || order.attempt.is_some_and(|attempt| attempt >= status.retry_count)
        }
        Retry::CountedIfNew => order.attempt.is_some_and(|attempt| attempt >= status.retry_count),
    }
}

/// Marks on pods that are leaving since a part of the Job was restarted, when the next status will no longer say so:
/// without one, they would look as if somebody else had evicted them.
fn marks(look: &Look<'_>, doom: &Doom<'_>, next: &Doom<'_>) -> Vec<Write> {
    let is_forgotten = |member: &&Member<'_>| {
        member.is_leaving() && !member.is_marked() && doom.takes(member) && next.heeds(member)
    };
    look.members.iter().filter(is_forgotten).map(mark).collect()
}

/// Lets pods go for which the spec has no place, if there are any. While they take their time to go the spec may have a
/// place for them again: so that they were not evicted is first written on them, and in the counts, which tell of pods
/// that go while nobody looks. What is marked goes, too, whatever the spec says by now.
pub fn scale_down(look: &Look<'_>) -> Option<Plan> {
    let job = look.job;
    let is_left = |member: &&Member<'_>| {
        let is_excess = member.task.is_some() && !member.is_wanted(&job.spec);
        (is_excess || member.is_marked()) && !member.is_leaving()
    };
    let left: Vec<_> = look.members.iter().filter(is_left).collect();
    if left.is_empty() {
        return None;
    }
    // What has ended goes at once.
    let needs_mark = |member: &&&Member<'_>| !member.is_marked() && !member.phase().is_terminated();
    let marks = left.iter().filter(needs_mark).map(|member| mark(member));
    let mut plan = Plan::of(vec![marks.collect()]);
    let mut next = job.status.clone();
    count(job, &mut next, &look.members, &[]);
    plan.write_status(draft(job, next, true, look.now));
    plan.then(cleanup(look, &job.status));
    Some(plan)
}

/// Writes on a pod that the controller deletes it.
fn mark(member: &Member<'_>) -> Write {
    Write::Patch {
        target: pod_target(member),
        patch: json!({"metadata": {"annotations": {annotations::CONTROLLER_OUT_OF_SYNC: "true"}}}),
        status: false,
        resource_version: None,
    }
}

/// Deletes what a status dooms: pods, the PodGroup, and the objects of plugins once the Job ends.
pub fn cleanup(look: &Look<'_>, status: &JobStatus) -> Vec<Write> {
    let doom = Doom::of(&look.job.spec, status);
    let doomed = look
        .members
        .iter()
        .filter(|member| !member.is_leaving() && doom.takes(member));
    let mut writes: Vec<_> = doomed
        .map(|member| Write::Delete {
            target: pod_target(member),
            foreground: false,
        })
        .collect();
    let group = look.group.filter(|group| group::is_doomed(group, status));
    let staying = |group: &&PodGroup| group.metadata.deletion_timestamp.is_none();
    writes.extend(group.filter(staying).map(deletion_of_group));
    if stage(&status.state.phase) != Stage::Active
        && let Ok(plugins) = Plugins::of(look.job)
    {
        writes.extend(plugins.removals(look.job, look.observed.plugin_objects));
    }
    writes
}

fn deletion_of_group(group: &PodGroup) -> Write {
    Write::Delete {
        target: Target::of(group),
        foreground: false,
    }
}

fn pod_target(member: &Member<'_>) -> Target {
    let metadata = &member.pod.metadata;
    Target {
        uid: metadata.uid.clone(),
        ..Target::named(kinds::POD, &metadata.namespace, &metadata.name)
    }
}

/// Goes on with a Job that ends or has ended: deletes what is left, and says when nothing is.
pub fn go_on(look: &Look<'_>) -> Plan {
    let job = look.job;
    let mut next = job.status.clone();
    count(job, &mut next, &look.members, &[]);
    if let Stage::Ending(end) = stage(&next.state.phase)
        && !is_alive(&next)
    {
        next.state.phase = end;
        next.running_duration = running_duration(job, look.now);
    }
    if stage(&next.state.phase) == Stage::Over && has_removed_objects(look) {
        forget_plugins(&mut next);
    }
    let mut plan = Plan::of(vec![cleanup(look, &job.status)]);
    plan.write_status(draft(job, next, false, look.now));
    plan
}

/// Whether nothing of the plugins is left to be deleted. Until then the status says what there may be, so that whoever
/// comes after a crash knows where to look.
fn has_removed_objects(look: &Look<'_>) -> bool {
    let Ok(plugins) = Plugins::of(look.job) else {
        return true;
    };
    plugins
        .removals(look.job, look.observed.plugin_objects)
        .is_empty()
}

/// Ends a Job whose pods have decided how it ends.
pub fn finish(look: &Look<'_>, end: JobPhase) -> Plan {
    let job = look.job;
    let mut next = job.status.clone();
    next.version += 1;
    next.state.phase = end;
    if job.status.state.phase != JobPhase::Restarting {
        next.state.reason.clear();
        next.state.message.clear();
    }
    next.running_duration = running_duration(job, look.now);
    if has_removed_objects(look) {
        forget_plugins(&mut next);
    }
    count(job, &mut next, &look.members, &[]);
    let deletions = cleanup(look, &next);
    let mut plan = Plan::default();
    plan.write_status(draft(job, next, true, look.now));
    plan.then(deletions);
    plan
}
