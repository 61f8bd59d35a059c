//! The Job controller: what has to be written for a Job, given what is observed of it.
//!
//! ```text
//!                    ┌ Command ┐
//! what is observed ──┤         ├──► an action that kills pods ──► [status] ──► [deletions]        kill
//!  (and Memory)      └ policy  ┘
//!                          └──────► none: an active Job ──► objects, pods, status                 sync
//!                                         an ending one ──► deletions, status                     kill
//! ```
//!
//! Nothing hangs on having seen an event. The process may die between any two writes; whoever looks next goes on from
//! what is there:
//!
//! | step | its durable record |
//! |---|---|
//! | an action that kills pods | one write of the status: phase, `version`, `retryCount`, and the action in `state.reason` |
//! | which pods it kills | follows from that status and the `job-version` and `job-retry-count` of the pods |
//! | a Command | its UID in `state.message`, from the same write; the Command is deleted after that |
//! | a pod | its name |
//! | the PodGroup of a version | its annotation `job-version` |
//! | a failed pod, a task that is done | the pods themselves, until they are of an older version or attempt |
//! | a pod that is scaled away | a mark on it and the counts in the status, before it is deleted |
//! | a timeout | the time in the pod's own status |
//! | a pod that somebody deleted | [`Memory`]; after a restart, counts in the status that are higher than what is there |

use std::collections::{BTreeMap, BTreeSet};

use volcano_api::batch::{Job, JobPhase, TaskSpec};
use volcano_api::bus::{Action, Command};
use volcano_api::core::Pod;
use volcano_api::names::{controlled, events};
use volcano_api::scheduling::{PodGroup, Queue};
use volcano_api::time::Time;

mod cause;
mod depends;
mod evaluate;
mod failures;
mod footing;
mod group;
mod kill;
mod memory;
mod pod;
mod pods;
mod policy;
mod status;
mod sync;
mod table;
mod volumes;

pub use failures::{Failed, warnings};
pub use footing::{Ask, Footing, Known, Reading};
pub use group::{aligned, group_name, is_admitted, pod_group};
pub use memory::Memory;
pub use pod::{Circumstances, body as pod_body, pod_metadata};
pub use pods::task_key;
pub use volumes::{Claims, claims, mounts};

use crate::plugins;
use crate::write::{Event, Plan, Target, Write};
use cause::Cause;
use kill::{Order, announcement};
use pods::{Doom, Members};
use policy::{Reaction, Verdict};
use table::{Answer, Stage, answer, stage};

/// What is observed of a Job.
///
/// It has to show what earlier plans for the Job have written: whoever carries them out keeps what the API server
/// answered until the watches have caught up. Otherwise pods are asked for twice (and refused the second time). What
/// others have written before has to be looked for where [`Footing`] says so.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'a> {
    /// The Job.
    pub job: &'a Job,
    /// Pods of its namespace that carry its name; also of an earlier Job of that name.
    pub pods: &'a [&'a Pod],
    /// Its PodGroup, or one of the name of the Job that an old controller made.
    pub pod_group: Option<&'a PodGroup>,
    /// Its queue; the default one if it names none.
    pub queue: Option<&'a Queue>,
    /// Names of the claims in its namespace that it could mean: those of `claims_of`.
    pub claims: &'a BTreeSet<String>,
    /// What is there of the objects of its plugins.
    pub plugin_objects: &'a plugins::Observed,
    /// Commands for it.
    pub commands: &'a [&'a Command],
    /// Values of priority classes by name.
    pub priorities: &'a BTreeMap<String, i32>,
    /// Whether writes for it have failed as often as they may: it is terminated.
    pub is_exhausted: bool,
}

/// One look at a Job.
struct Look<'a> {
    observed: &'a Observed<'a>,
    job: &'a Job,
    members: Members<'a>,
    group: Option<&'a PodGroup>,
    now: Time,
}

/// Names of the claims that a Job uses: what has to be looked up for [`Observed::claims`].
pub fn claims_of(job: &Job) -> Vec<String> {
    volumes::names(job)
}

/// Whether a task may have pods yet, given the pods of its Job: whether the tasks that it depends on are ready.
pub fn may_have_pods(job: &Job, task: &TaskSpec, pods: &[&Pod]) -> bool {
    let doom = Doom::of(&job.spec, &job.status);
    depends::is_ready(&job.spec, task, &Members::read(job, pods), &doom)
}

/// The objects of plugins that have to be read for [`Observed::plugin_objects`]. None for a Job that has ended and has
/// nothing of its plugins left: its status says so.
pub fn objects_of(job: &Job) -> Vec<Target> {
    let status = &job.status;
    let mut noted = status.controlled_resources.keys();
    let has_some = noted.any(|key| key.starts_with(controlled::PLUGIN_PREFIX));
    if stage(&status.state.phase) != Stage::Active && !has_some {
        return Vec::new();
    }
    plugins::Plugins::of(job).map_or_else(|_| Vec::new(), |plugins| plugins.makes(job))
}

/// Decides what is to be written for a Job. `memory` is that of earlier looks, or a fresh one.
pub fn reconcile(observed: &Observed<'_>, memory: &mut Memory, now: Time) -> Plan {
    let job = observed.job;
    if job.metadata.deletion_timestamp.is_some() {
        return Plan::default();
    }
    let look = Look {
        observed,
        job,
        members: Members::read(job, observed.pods),
        group: observed.pod_group,
        now,
    };
    memory.observe(job, &look.members, now);
    if let Some(done) = observed
        .commands
        .iter()
        .find(|command| is_carried_out(job, command))
    {
        return Plan::of(vec![vec![deletion(done)]]);
    }
    let verdict = judge(&look, memory);
    let mut plan = match decide(&look, &verdict, memory) {
        Decision::Kill(order, to, retry) => {
            memory.new_attempt();
            return kill::carry_out(&look, order, to, retry);
        }
        Decision::GoOn(writes) => Plan::of(vec![writes]),
    };
    let rest = match stage(&job.status.state.phase) {
        Stage::Active => sync::plan(&look, &verdict, memory),
        Stage::Ending(_) | Stage::Over => kill::go_on(&look),
    };
    plan.append(rest);
    if let Some(next) = verdict
        .next()
        .filter(|_| stage(&job.status.state.phase) == Stage::Active)
    {
        plan.wake(next);
    }
    plan
}

/// What is done with a Command whose Job does not exist: it is deleted.
pub fn discard(command: &Command) -> Plan {
    Plan::of(vec![vec![deletion(command)]])
}

enum Decision {
    Kill(Order, JobPhase, table::Retry),
    /// Nothing that kills; these writes all the same.
    GoOn(Vec<Write>),
}

/// Policies matter while the Job is active and what was decided before is done.
fn judge(look: &Look<'_>, memory: &mut Memory) -> Verdict {
    let job = look.job;
    let group = look.group.filter(|group| !group::is_doomed(group, &job.status));
    match stage(&job.status.state.phase) {
        Stage::Active => policy::judge(job, &look.members, group, memory, look.now),
        Stage::Ending(_) | Stage::Over => Verdict::default(),
    }
}

/// Decides what is done now: what has failed for good is terminated; what was decided before is finished; then Commands
/// in the order they were given, then policies.
fn decide(look: &Look<'_>, verdict: &Verdict, memory: &mut Memory) -> Decision {
    let job = look.job;
    let phase = &job.status.state.phase;
    let given = look.observed.commands.iter();
    let first = given.min_by_key(|command| (command.metadata.creation_timestamp, &command.metadata.name));
    if look.observed.is_exhausted {
        let by_command = first
            .filter(|command| is_meant(job, command))
            .map(|command| &command.action);
        let by_policy = verdict.due.as_ref().map(|reaction| &reaction.action);
        let tried = by_command.or(by_policy).unwrap_or(&Action::SyncJob);
        let message = format!("Job failed on action {tried} for retry limit reached");
        let event = Event::normal(Target::of(job), events::EXECUTE_ACTION, message);
        let order = order(
            Action::TerminateJob,
            "retry limit reached".to_owned(),
            vec![Write::Event(event)],
        );
        return settle(look, order, Vec::new());
    }
    if stage(phase) == Stage::Active && !kill::cleanup(look, &job.status).is_empty() {
        return Decision::GoOn(Vec::new());
    }
    if let Some(command) = first {
        return obey(look, command);
    }
    // No restart is left: the Job fails. What its pods did last must not restart it once more, without end.
    if *phase == JobPhase::Restarting && evaluate::is_spent(&job.spec, &job.status) {
        return Decision::GoOn(Vec::new());
    }
    let mut writes = tell_later(look, verdict, memory);
    if stage(phase) == Stage::Active {
        writes.extend(tell_unreadable(job, memory));
    }
    match &verdict.due {
        None => Decision::GoOn(writes),
        Some(reaction) => {
            let order = react(look, reaction);
            if order.is_none() || matches!(answer(phase, &reaction.action), Answer::GoOn) {
                let topic = format!("{} {:?}", reaction.action, reaction.to.pod);
                let text = format!("{} {}", reaction.to.event, reaction.to.at);
                if reaction.action != Action::SyncJob && memory.is_news(&topic, &text) {
                    writes.push(announcement(job, &reaction.action));
                }
                return Decision::GoOn(writes);
            }
            settle(look, order, writes)
        }
    }
}

/// What a Command asks for. It is deleted with the write that says it was carried out, or after it.
fn obey(look: &Look<'_>, command: &Command) -> Decision {
    let job = look.job;
    if !is_meant(job, command) {
        return Decision::GoOn(vec![deletion(command)]);
    }
    let action = command.action.clone();
    let message = format!(
        "Start to execute command {action}, and clean it up to make sure executed not more than once."
    );
    let mut with = vec![
        deletion(command),
        Write::Event(Event::normal(Target::of(job), events::COMMAND_ISSUED, message)),
    ];
    if action != Action::SyncJob {
        with.push(announcement(job, &action));
    }
    let why = format!("Command {} ({})", command.metadata.name, command.metadata.uid);
    settle(look, order(action, why, with.clone()), with)
}

/// An order for the whole Job.
fn order(action: Action, why: String, with: Vec<Write>) -> Option<Order> {
    Some(Order {
        cause: Cause::of(&action, None, None, None)?,
        action,
        why,
        attempt: None,
        with,
    })
}

/// The order that a policy gives; none when it is about a part of the Job that what happened does not name.
fn react(look: &Look<'_>, reaction: &Reaction) -> Option<Order> {
    let spec = &look.job.spec;
    let task = reaction.to.task.map(|task| pods::task_key(&spec.tasks[task]));
    let (pod, partition) = (reaction.to.pod.as_deref(), reaction.to.partition.as_deref());
    Some(Order {
        cause: Cause::of(&reaction.action, task, pod, partition)?,
        action: reaction.action.clone(),
        why: reaction.why(spec),
        attempt: Some(reaction.to.attempt),
        with: vec![announcement(look.job, &reaction.action)],
    })
}

fn settle(look: &Look<'_>, order: Option<Order>, otherwise: Vec<Write>) -> Decision {
    let Some(order) = order else {
        return Decision::GoOn(otherwise);
    };
    match answer(&look.job.status.state.phase, &order.action) {
        Answer::GoOn => Decision::GoOn(otherwise),
        Answer::Kill(to, retry) => Decision::Kill(order, to, retry),
    }
}

/// Tells users what will be done later, once.
fn tell_later(look: &Look<'_>, verdict: &Verdict, memory: &mut Memory) -> Vec<Write> {
    let mut writes = Vec::new();
    for reaction in &verdict.later {
        let topic = format!("{} after {:?}", reaction.action, reaction.to.pod);
        if memory.is_news(&topic, reaction.to.event.as_str()) {
            let message = format!("Execute action {} after {}", reaction.action, reaction.delay);
            writes.push(Write::Event(Event::normal(
                Target::of(look.job),
                events::EXECUTE_ACTION,
                message,
            )));
        }
    }
    writes
}

/// Tells users about policies that wait for a time which nobody can read, once.
fn tell_unreadable(job: &Job, memory: &mut Memory) -> Vec<Write> {
    let mut writes = Vec::new();
    for (policy, timeout) in policy::unreadable(&job.spec) {
        let action = &policy.action;
        let message = format!(
            "Action {action} of a policy is never executed: its timeout {timeout:?} is no duration such as 90s or 1h30m"
        );
        if memory.is_news(&message, "") {
            writes.push(Write::Event(Event::warning(
                Target::of(job),
                events::EXECUTE_ACTION,
                message,
            )));
        }
    }
    writes
}

/// Whether a Command is for this very Job, and not for an earlier one of its name.
fn is_meant(job: &Job, command: &Command) -> bool {
    let meant = command.target.as_ref().map_or("", |target| target.uid.as_str());
    meant.is_empty() || meant == job.metadata.uid
}

/// Whether the status says that a Command was carried out.
fn is_carried_out(job: &Job, command: &Command) -> bool {
    let uid = &command.metadata.uid;
    !uid.is_empty() && job.status.state.message.contains(uid.as_str())
}

fn deletion(command: &Command) -> Write {
    Write::Delete {
        target: Target::of(command),
        foreground: false,
    }
}
