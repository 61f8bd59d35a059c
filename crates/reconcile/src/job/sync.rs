//! How an active Job is brought in line with its spec: claims, objects of plugins, PodGroup, pods, status.

use serde_json::json;
use volcano_api::batch::{JobPhase, JobStatus};
use volcano_api::meta::ConditionStatus;
use volcano_api::names::{annotations, conditions, events};
use volcano_api::time::GoDuration;

use super::Look;
use super::evaluate::evaluate;
use super::kill::{cleanup, finish, scale_down};
use super::memory::Memory;
use super::pod::{self, Circumstances};
use super::pods::Doom;
use super::policy::Verdict;
use super::status::{Draft, count, draft};
use super::table::is_finished;
use super::volumes::{self, Claims};
use super::{depends, group};
use crate::plugins::{PluginError, Plugins, pod_name};
use crate::write::{Event, Plan, Target, Write};

/// Pods that one plan makes at the most; the next one goes on.
const MOST_PODS: usize = 5_000;
/// What waits for an object that nobody watches is looked at this often.
const LOOK_AGAIN: GoDuration = GoDuration::from_seconds(5);

/// Brings an active Job in line. What stands in the way of new pods does not stand in the way of the Job's end.
pub fn plan(look: &Look<'_>, verdict: &Verdict, memory: &mut Memory) -> Plan {
    if let Some(plan) = scale_down(look) {
        return plan;
    }
    let job = look.job;
    let mut plan = Plan::default();
    let mut next = job.status.clone();
    let mut steps = Vec::new();
    let made = objects(look, &mut next, &mut steps);
    let pods = match made.and_then(|()| pods(look, verdict).map_err(Trouble::Plugin)) {
        Ok(pods) => pods,
        Err(trouble) => {
            trouble.tell(look, memory, &mut plan);
            Pods::default()
        }
    };
    if job.status.state.phase.is_unset() {
        return begin(look, next, steps, plan);
    }
    next.running_duration = None;
    count(job, &mut next, &look.members, &pods.tasks);
    let phase = evaluate(&job.spec, &next);
    let is_failure = phase == JobPhase::Failed && next.state.phase == JobPhase::Running;
    if !(is_failure && verdict.awaits_failure()) {
        if is_finished(&phase) {
            return finish(look, phase);
        }
        next.state.phase = phase;
    }
    plan.then(cleanup(look, &job.status));
    steps.into_iter().for_each(|step| plan.then(step));
    tell_group(look, memory, &mut plan);
    let has_made = !pods.creations.is_empty();
    plan.then(pods.creations);
    plan.write_status(draft(job, next, has_made, look.now));
    if pods.is_cut_short {
        plan.wake(look.now);
    }
    plan
}

/// The first write of a Job: it is Pending. What else there is to do comes after it.
fn begin(look: &Look<'_>, mut next: JobStatus, steps: Vec<Vec<Write>>, trouble: Plan) -> Plan {
    next.state.phase = JobPhase::Pending;
    next.min_available = look.job.spec.min_available;
    let mut plan = Plan::default();
    plan.write_status(draft(look.job, next, true, look.now));
    plan.append(Plan::of(steps));
    plan.append(trouble);
    plan
}

/// Why a Job cannot go on.
enum Trouble {
    /// Its queue is missing.
    Queue,
    /// A claim is missing.
    Claim(String),
    /// A plugin cannot do its part.
    Plugin(PluginError),
}

impl Trouble {
    /// Tells users, once.
    fn tell(self, look: &Look<'_>, memory: &mut Memory, plan: &mut Plan) {
        let (reason, message) = match self {
            Trouble::Queue => {
                let queue = &look.job.spec.queue;
                let message = format!("Failed to create PodGroup, err: queue {queue} is not found");
                (events::POD_GROUP_ERROR, message)
            }
            Trouble::Claim(error) => (events::PVC_ERROR, format!("Failed to create PVC, err: {error}")),
            Trouble::Plugin(error) => (
                events::PLUGIN_ERROR,
                format!("Execute plugin when job add failed, err: {error}"),
            ),
        };
        if memory.is_news(reason, &message) {
            plan.then(vec![Write::Event(Event::warning(
                Target::of(look.job),
                reason,
                message,
            ))]);
        }
        plan.wake(look.now.saturating_add(LOOK_AGAIN));
    }
}

/// Adds what has to be written beside the pods, in steps, as far as nothing stands in the way; the status notes what the
/// Job controls then.
fn objects(look: &Look<'_>, status: &mut JobStatus, steps: &mut Vec<Vec<Write>>) -> Result<(), Trouble> {
    let job = look.job;
    let is_new = !matches!(job.status.state.phase, JobPhase::Running | JobPhase::Restarting);
    // The PodGroup would be refused. A Job that has one runs on without its queue.
    if look.group.is_none() && look.observed.queue.is_none() {
        return Err(Trouble::Queue);
    }
    if is_forwarded(look) && job.metadata.annotation(annotations::JOB_FORWARDING) != Some("true") {
        steps.push(vec![Write::Patch {
            target: Target::of(job),
            patch: json!({"metadata": {"annotations": {annotations::JOB_FORWARDING: "true"}}}),
            status: false,
            resource_version: None,
        }]);
    }
    let plugins = Plugins::of(job).map_err(Trouble::Plugin)?;
    let mut together = plugins
        .objects(job, look.observed.plugin_objects)
        .map_err(Trouble::Plugin)?;
    status.controlled_resources.extend(plugins.controlled());
    // Once there is a PodGroup the claims were there; what became of them is for the scheduler to see.
    if is_new && look.group.is_none() {
        match volumes::claims(job, &|name| look.observed.claims.contains(name)) {
            Claims::Need(writes) => steps.extend(writes),
            Claims::Missing(error) => {
                // Only the PodGroup and the pods wait for it.
                steps.push(together);
                return Err(Trouble::Claim(error));
            }
        }
    }
    volumes::note(job, status);
    // One that is to go holds the name of the next until it is gone.
    let group = look.group;
    if group.is_none_or(|group| !group::is_doomed(group, &job.status)) {
        together.extend(group::ensure(job, group, look.observed.priorities));
    }
    steps.push(together);
    Ok(())
}

fn is_forwarded(look: &Look<'_>) -> bool {
    look.observed
        .queue
        .is_some_and(|queue| !queue.spec.extend_clusters.is_empty())
}

/// Pods that are to be made.
#[derive(Default)]
struct Pods {
    creations: Vec<Write>,
    /// The task of each, by its place in the spec.
    tasks: Vec<usize>,
    /// Whether there are more.
    is_cut_short: bool,
}

/// Makes the pods that are missing, of tasks whose dependencies are ready, once the PodGroup is admitted.
fn pods(look: &Look<'_>, verdict: &Verdict) -> Result<Pods, PluginError> {
    let job = look.job;
    let mut pods = Pods::default();
    let group = look.group.filter(|group| !group::is_doomed(group, &job.status));
    if !group::is_admitted(group) {
        return Ok(pods);
    }
    let plugins = Plugins::of(job)?;
    let doom = Doom::of(&job.spec, &job.status);
    for (at, task) in job.spec.tasks.iter().enumerate() {
        if !depends::is_ready(&job.spec, task, &look.members, &doom) {
            continue;
        }
        for index in 0..task.replicas {
            let name = pod_name(job, task, index);
            if look.members.is_taken(&name) {
                continue;
            }
            if pods.creations.len() == MOST_PODS {
                pods.is_cut_short = true;
                return Ok(pods);
            }
            let circumstances = Circumstances {
                is_forwarded: is_forwarded(look),
                evicted_at: verdict.evicted_at(&name),
            };
            pods.creations
                .push(pod::create(job, task, index, &plugins, circumstances)?);
            pods.tasks.push(at);
        }
    }
    Ok(pods)
}

/// Tells users what the scheduler says about the PodGroup, when it says something new.
fn tell_group(look: &Look<'_>, memory: &mut Memory, plan: &mut Plan) {
    let conditions = look.group.map_or(&[][..], |group| &group.status.conditions);
    let holding = conditions
        .iter()
        .filter(|condition| condition.status == ConditionStatus::True);
    let Some(newest) = holding.max_by_key(|condition| condition.last_transition_time) else {
        return;
    };
    if newest.r#type == conditions::SCHEDULED {
        return;
    }
    let (job, kind) = (&look.job.metadata, newest.r#type.to_lowercase());
    let message = format!(
        "PodGroup {}:{} {kind}, reason: {}",
        job.namespace, job.name, newest.message
    );
    if memory.is_news(events::POD_GROUP_PENDING, &message) {
        let event = Event::warning(Target::of(look.job), events::POD_GROUP_PENDING, message);
        plan.then(vec![Write::Event(event)]);
    }
}

impl Plan {
    /// Adds the write of a drafted status, now or at its time.
    pub(super) fn write_status(&mut self, draft: Draft) {
        match draft {
            Draft::Same => {}
            Draft::Later(at) => self.wake(at),
            Draft::Now(write) => self.then(vec![*write]),
        }
    }
}
