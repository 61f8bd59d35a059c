//! Lifecycle policies: what happened to a Job's pods, and what is to be done about it.
//!
//! Nothing is remembered as having happened: what happened is read from what is there. A failed pod of the current
//! attempt *is* the event PodFailed until something is done about it, and what is done takes the pod out of the current
//! attempt. The time of the event is read in the same way (when the containers ended, when the pod was made), so that a
//! timeout neither starts again nor is lost when the process does.

use volcano_api::batch::{Job, JobSpec, LifecyclePolicy, TaskSpec};
use volcano_api::bus::{Action, Event};
use volcano_api::core::{ContainerStatus, Pod, PodPhase};
use volcano_api::names::{annotations, conditions};
use volcano_api::scheduling::{PodGroup, PodGroupPhase};
use volcano_api::time::{GoDuration, Time};

use super::memory::{Lost, Memory};
use super::pods::{Doom, Member, Members, task_key};

/// Container restarts of a task that names no number.
const DEFAULT_TASK_MAX_RETRY: i32 = 3;
/// A task's `maxRetry` that stands for no limit.
const NO_LIMIT: i32 = -1;

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Occurrence {
    /// What.
    pub event: Event,
    /// When.
    pub at: Time,
    /// Place in the spec of the task that it happened to.
    pub task: Option<usize>,
    /// Name of the pod that it happened to.
    pub pod: Option<String>,
    /// Index of that pod.
    index: i32,
    /// Partition of that pod.
    pub partition: Option<String>,
    /// What the first container of a failed pod returned.
    exit_code: i32,
    /// The Job's restarts when the pod was made.
    pub attempt: i32,
}

/// Something that happened and that a policy is about.
#[derive(Clone, Debug, PartialEq)]
pub struct Reaction {
    /// What happened.
    pub to: Occurrence,
    /// What is to be done.
    pub action: Action,
    /// How long after.
    pub delay: GoDuration,
    /// When that is.
    pub due: Time,
}

/// What the policies ask for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// What is to be done now.
    pub due: Option<Reaction>,
    /// What is to be done later, unless it is called off by then.
    pub later: Vec<Reaction>,
}

impl Verdict {
    /// When the next of what is to be done later is due.
    pub fn next(&self) -> Option<Time> {
        self.later.iter().map(|reaction| reaction.due).min()
    }

    /// Whether something will be done about a failed pod, so that the Job has not failed yet.
    pub fn awaits_failure(&self) -> bool {
        self.later
            .iter()
            .any(|reaction| reaction.to.event == Event::PodFailed)
    }

    /// When the pod of this name was evicted, if something will be done about it.
    pub fn evicted_at(&self, pod: &str) -> Option<Time> {
        let is_it = |reaction: &&Reaction| {
            reaction.to.event == Event::PodEvicted && reaction.to.pod.as_deref() == Some(pod)
        };
        self.later.iter().find(is_it).map(|reaction| reaction.to.at)
    }
}

impl Reaction {
    /// What happened, in words.
    pub fn why(&self, spec: &JobSpec) -> String {
        let event = &self.to.event;
        match (&self.to.pod, self.to.task) {
            (Some(pod), _) if self.to.exit_code != 0 => {
                format!("{event} of pod {pod}, exit code {}", self.to.exit_code)
            }
            (Some(pod), _) => format!("{event} of pod {pod}"),
            (None, Some(task)) => format!("{event} of task {}", task_key(&spec.tasks[task])),
            (None, None) => format!("{event} of the pod group"),
        }
    }
}

/// Judges what happened to a Job by its policies. Of several things that are due, the one that is due first counts.
pub fn judge(
    job: &Job,
    members: &Members<'_>,
    group: Option<&PodGroup>,
    memory: &mut Memory,
    now: Time,
) -> Verdict {
    let spec = &job.spec;
    let mut verdict = Verdict::default();
    if spec.policies.is_empty() && spec.tasks.iter().all(|task| task.policies.is_empty()) {
        return verdict;
    }
    let doom = Doom::of(spec, &job.status);
    let heeded: Vec<_> = members
        .iter()
        .filter(|member| doom.heeds(member))
        .copied()
        .collect();
    let mut happened: Vec<Occurrence> = heeded.iter().flat_map(|member| of_pod(member, now)).collect();
    happened.extend(memory.lost().iter().map(of_lost));
    for (at, task) in spec.tasks.iter().enumerate() {
        happened.extend(of_task(at, task, members, &doom, now));
    }
    if let Some(group) = group.filter(|group| group.status.phase == PodGroupPhase::Unknown) {
        happened.push(of_group(group, job.status.retry_count, memory, now));
    }
    for mut occurrence in happened {
        // Clocks differ: what a node says of the future is now.
        occurrence.at = occurrence.at.min(now);
        let Some((action, delay)) = resolve(spec, &occurrence) else {
            continue;
        };
        let reaction = Reaction {
            due: occurrence.at.saturating_add(delay),
            action,
            delay,
            to: occurrence,
        };
        if reaction.due > now {
            verdict.later.push(reaction);
        } else if verdict
            .due
            .as_ref()
            .is_none_or(|first| order(&reaction) < order(first))
        {
            verdict.due = Some(reaction);
        }
    }
    verdict
}

fn order(reaction: &Reaction) -> (Time, Time, Option<usize>, i32) {
    (reaction.due, reaction.to.at, reaction.to.task, reaction.to.index)
}

/// What the policies ask for: those of the task first, then those of the Job. Nothing, ever, if the policy that counts
/// has a timeout that nobody can read: whoever wrote it did not want it at once, and neither what the next policy says.
fn resolve(spec: &JobSpec, occurrence: &Occurrence) -> Option<(Action, GoDuration)> {
    let of_task = occurrence.task.map_or(&[][..], |task| &spec.tasks[task].policies);
    let policy = of_task
        .iter()
        .chain(&spec.policies)
        .find(|policy| is_about(policy, occurrence))?;
    let delay = match &policy.timeout {
        Some(text) => timeout(text)?,
        None => GoDuration::ZERO,
    };
    Some((policy.action.clone(), delay))
}

fn is_about(policy: &LifecyclePolicy, occurrence: &Occurrence) -> bool {
    let names = |event: &Event| policy.event == *event || policy.events.contains(event);
    let is_named = names(&occurrence.event) || names(&Event::Any);
    let is_wait = occurrence.event == Event::PodPending;
    let is_exit = policy
        .exit_code
        .is_some_and(|code| code != 0 && code == occurrence.exit_code);
    (is_named && (!is_wait || policy.timeout.is_some())) || is_exit
}

/// How long a policy waits, if that can be read.
fn timeout(text: &str) -> Option<GoDuration> {
    let timeout = GoDuration::parse(text).ok()?;
    Some(timeout.max(GoDuration::ZERO))
}

/// Policies whose timeout cannot be read, with that.
pub fn unreadable(spec: &JobSpec) -> impl Iterator<Item = (&LifecyclePolicy, &str)> {
    let of_tasks = spec.tasks.iter().flat_map(|task| &task.policies);
    let all = of_tasks.chain(&spec.policies);
    all.filter_map(|policy| Some((policy, policy.timeout.as_deref()?)))
        .filter(|(_, text)| timeout(text).is_none())
}

/// What a pod says about itself. A pod that somebody else has asked to go is evicted from then on; one that stands in
/// for an evicted one says so until it runs.
fn of_pod(member: &Member<'_>, now: Time) -> impl Iterator<Item = Occurrence> {
    let pod = member.pod;
    let made = pod.metadata.creation_timestamp.unwrap_or(now);
    let (own, inherited) = match (pod.metadata.deletion_timestamp, member.phase()) {
        (Some(gone), _) => (Some((Event::PodEvicted, gone)), None),
        (None, PodPhase::Failed) => (Some((Event::PodFailed, ended(pod).unwrap_or(made))), None),
        (None, PodPhase::Pending) => (Some((Event::PodPending, made)), evicted_at(pod)),
        _ => (None, None),
    };
    let inherited = inherited.map(|at| (Event::PodEvicted, at));
    own.into_iter().chain(inherited).map(|(event, at)| Occurrence {
        exit_code: if event == Event::PodFailed {
            exit_code(pod)
        } else {
            0
        },
        event,
        at,
        ..about(member)
    })
}

fn about(member: &Member<'_>) -> Occurrence {
    Occurrence {
        event: Event::Unset,
        at: Time::EPOCH,
        task: member.task,
        pod: Some(member.name().to_owned()),
        index: member.index,
        partition: member.partition().map(str::to_owned),
        exit_code: 0,
        attempt: member.attempt,
    }
}

fn of_lost(lost: &Lost) -> Occurrence {
    Occurrence {
        event: Event::PodEvicted,
        at: lost.at,
        task: Some(lost.task),
        pod: Some(lost.name.clone()),
        index: lost.index,
        partition: lost.partition.clone(),
        exit_code: 0,
        attempt: lost.attempt,
    }
}

/// What the pods of a task say together: all of them succeeded, or their containers restarted too often.
fn of_task(at: usize, task: &TaskSpec, members: &Members<'_>, doom: &Doom<'_>, now: Time) -> Vec<Occurrence> {
    let pods: Vec<_> = members
        .iter()
        .filter(|member| member.task == Some(at) && !member.is_leaving() && !doom.takes(member))
        .collect();
    [
        completed(task, &pods, doom, now),
        over_budget(task, &pods, doom, now),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The event of the pod that completed its task: the last to end of those of the current version.
fn completed(task: &TaskSpec, pods: &[&Member<'_>], doom: &Doom<'_>, now: Time) -> Option<Occurrence> {
    let succeeded: Vec<_> = pods
        .iter()
        .filter(|member| member.phase() == PodPhase::Succeeded)
        .collect();
    let enough = usize::try_from(task.replicas)
        .ok()
        .filter(|replicas| *replicas > 0)?;
    if succeeded.len() < enough {
        return None;
    }
    let end = |member: &Member<'_>| {
        ended(member.pod)
            .or(member.pod.metadata.creation_timestamp)
            .unwrap_or(now)
    };
    let last = succeeded
        .into_iter()
        .filter(|member| doom.heeds(member))
        .max_by_key(|member| end(member))?;
    Some(Occurrence {
        event: Event::TaskCompleted,
        at: end(last),
        ..about(last)
    })
}

/// The event of the pod whose containers restarted last, once those of the task restarted as often as they may.
fn over_budget(task: &TaskSpec, pods: &[&Member<'_>], doom: &Doom<'_>, now: Time) -> Option<Occurrence> {
    let budget = match task.max_retry {
        NO_LIMIT => return None,
        0 => DEFAULT_TASK_MAX_RETRY,
        set => set,
    };
    let is_live = |member: &&&Member<'_>| matches!(member.phase(), PodPhase::Running | PodPhase::Pending);
    let live: Vec<_> = pods.iter().filter(is_live).collect();
    let restarts = |member: &Member<'_>| {
        statuses(member.pod)
            .map(|status| status.restart_count)
            .sum::<i32>()
    };
    if task.replicas == 0 || live.iter().map(|member| restarts(member)).sum::<i32>() < budget {
        return None;
    }
    let restarted = live
        .into_iter()
        .filter(|member| doom.heeds(member) && restarts(member) > 0);
    let (at, last) = restarted
        .map(|member| (last_restart(member.pod).unwrap_or(now), member))
        .max_by_key(|(at, member)| (*at, std::cmp::Reverse(member.index)))?;
    Some(Occurrence {
        event: Event::TaskFailed,
        at,
        ..about(last)
    })
}

fn of_group(group: &PodGroup, attempt: i32, memory: &mut Memory, now: Time) -> Occurrence {
    let told = group
        .status
        .conditions
        .iter()
        .filter_map(|condition| condition.last_transition_time)
        .max();
    let seen = memory.unknown_since(&group.metadata.uid, now);
    Occurrence {
        event: Event::Unknown,
        at: told.map_or(seen, |told| told.min(seen)),
        task: None,
        pod: None,
        index: 0,
        partition: None,
        exit_code: 0,
        attempt,
    }
}

fn statuses(pod: &Pod) -> impl Iterator<Item = &ContainerStatus> {
    pod.status
        .init_container_statuses
        .iter()
        .chain(&pod.status.container_statuses)
}

/// When the last container of a finished pod ended.
fn ended(pod: &Pod) -> Option<Time> {
    let ends = statuses(pod).filter_map(|status| status.state.terminated.as_ref()?.finished_at);
    let unready = pod
        .status
        .conditions
        .iter()
        .find(|condition| condition.kind == conditions::READY);
    ends.max().or_else(|| unready?.last_transition_time)
}

/// When a container of the pod was started again last.
fn last_restart(pod: &Pod) -> Option<Time> {
    statuses(pod)
        .filter_map(|status| status.last_state.terminated.as_ref()?.finished_at)
        .max()
}

fn exit_code(pod: &Pod) -> i32 {
    let first = pod.status.container_statuses.first();
    first
        .and_then(|status| status.state.terminated.as_ref())
        .map_or(0, |end| end.exit_code)
}

/// When the pod was evicted that this one stands in for.
fn evicted_at(pod: &Pod) -> Option<Time> {
    Time::parse(pod.metadata.annotations.get(annotations::EVICTED_AT)?).ok()
}
