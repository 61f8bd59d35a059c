//! The Job controller: looks at one Job with everything that belongs to it.

use super::core::Look;
use super::execute::{Failed, Problem};
use super::store::{JobEntry, Store, queue_of};
use std::time::Duration;
use tokio::time::Instant;
use tracing::warn;
use volcano_api::batch::{Job, JobPhase};
use volcano_api::core::Pod;
use volcano_api::names::events;
use volcano_api::scheduling::{PodGroup, PodGroupPhase};
use volcano_api::time::{GoDuration, Time};
use volcano_reconcile::job::{self, Memory, Observed, discard, objects_of, reconcile};
use volcano_reconcile::plugins;
use volcano_reconcile::write::{Event, Plan, Target, Write};

/// Objects of plugins are not watched: what was read is looked up again after this, if the Job is looked at.
const READ_AGAIN: Duration = Duration::from_secs(300);
/// What belongs to something else may be gone in a moment: it is that of an earlier Job of the name, for the most part. A
/// Job that waits for it is looked at every five seconds, and each of these looks is to find what was just read.
const READ_OTHERS_AGAIN: Duration = Duration::from_secs(4);
/// Watches lag by less than this, most of the time.
const LAG: GoDuration = GoDuration::from_millis(200);
/// How long a Command waits for a Job that is not seen yet.
const COMMAND_PATIENCE: GoDuration = GoDuration::from_seconds(30);

/// What is to be done for a Job.
pub fn look(store: &mut Store, at: &str, is_exhausted: bool, now: Time, moment: Instant) -> Look {
    if store.is_behind(at) {
        return Look::Plan(later(now));
    }
    let Some(entry) = store.job_mut(at) else {
        return Look::Plan(Plan::default());
    };
    let mut memory = std::mem::take(&mut entry.memory);
    for problem in new_problems(entry) {
        warn!(
            job = at,
            problem, "not all arguments of a job plugin are in force"
        );
    }
    let (look, missing) = decide(store, at, is_exhausted, &mut memory, now, moment);
    store.wait_for_claims(at, missing);
    let may_be_old = !store.is_of_term;
    let Some(entry) = store.job_mut(at) else {
        return look;
    };
    if may_be_old
        && let (Look::Plan(plan), Some(job)) = (&look, entry.job())
        && let Some(ask) = entry.footing.asks(job, plan, &memory)
    {
        return Look::Ask(Target::of(job), ask);
    }
    entry.memory = memory;
    look
}

/// What is wrong with the arguments of a Job's plugins, once for each version of its spec.
fn new_problems(entry: &mut JobEntry) -> Vec<String> {
    let Some(job) = entry.job() else {
        return Vec::new();
    };
    let generation = job.metadata.generation;
    if entry.checked == Some(generation) {
        return Vec::new();
    }
    // A plugin that nobody knows is told in an event.
    let problems = plugins::Plugins::of(job).map_or_else(|_| Vec::new(), |all| all.problems().to_vec());
    entry.checked = Some(generation);
    problems
}

/// Whether a look at a Job is likely to make pods: it has fewer than it wants, and a PodGroup that is admitted.
pub fn makes_pods(store: &Store, at: &str) -> bool {
    let Some((entry, job)) = store.job(at).and_then(|entry| Some((entry, entry.job()?))) else {
        return false;
    };
    let wanted: i64 = job.spec.tasks.iter().map(|task| i64::from(task.replicas)).sum();
    let is_admitted = |group: &PodGroup| {
        let phase = &group.status.phase;
        !phase.is_unset() && *phase != PodGroupPhase::Pending
    };
    i64::try_from(entry.pods().count()).is_ok_and(|pods| pods < wanted)
        && store.group_of_job(job).is_some_and(is_admitted)
}

/// Nothing now. What is waited for may have changed nothing else here, so that nobody tells when it is there.
pub fn later(now: Time) -> Plan {
    let mut plan = Plan::default();
    plan.wake(now.saturating_add(LAG));
    plan
}

/// What is to be done, and the claims that are waited for.
fn decide(
    store: &Store,
    at: &str,
    is_exhausted: bool,
    memory: &mut Memory,
    now: Time,
    moment: Instant,
) -> (Look, Vec<String>) {
    let Some(entry) = store.job(at) else {
        return (Look::Plan(Plan::default()), Vec::new());
    };
    let Some(job) = entry.job() else {
        return (Look::Plan(strays(entry.commands(), now)), Vec::new());
    };
    let wanted = objects_of(job);
    let is_old = |(read, objects): &(Instant, plugins::Observed)| {
        let lasts = match objects.has_others(job) {
            true => READ_OTHERS_AGAIN,
            false => READ_AGAIN,
        };
        moment.duration_since(*read) > lasts
    };
    if !wanted.is_empty() && entry.objects().is_none_or(is_old) {
        return (Look::Read(wanted), Vec::new());
    }
    let (claims, missing) = store.claims_for(job);
    let strangers: Vec<Pod> = store.strangers(at, moment).map(|(name, _)| named(name)).collect();
    let pods: Vec<_> = entry.pods().chain(&strangers).collect();
    let commands: Vec<_> = entry.commands().collect();
    let nothing = plugins::Observed::default();
    let observed = Observed {
        job,
        pods: &pods,
        pod_group: store.group_of_job(job),
        queue: store.queues().queue(queue_of(job)),
        claims: &claims,
        plugin_objects: entry.objects().map_or(&nothing, |(_, objects)| objects),
        commands: &commands,
        priorities: store.priorities(),
        is_exhausted,
    };
    let mut plan = reconcile(&observed, memory, now);
    if let Some(until) = store.strangers(at, moment).map(|(_, until)| until).min() {
        let wait = until.duration_since(moment).as_millis();
        // Rounded up: a look before the time would only be repeated.
        let wait = GoDuration::from_millis(i64::try_from(wait + 1).unwrap_or(i64::MAX));
        plan.wake(now.saturating_add(wait));
    }
    (Look::Plan(plan), missing)
}

/// A pod of which no more is known than its name.
fn named(name: &str) -> Pod {
    let mut pod = Pod::default();
    name.clone_into(&mut pod.metadata.name);
    pod
}

/// Commands for a Job that is not there: it may not have been seen yet; later they are of no use to anybody.
fn strays<'a>(commands: impl Iterator<Item = &'a volcano_api::bus::Command>, now: Time) -> Plan {
    let mut plan = Plan::default();
    for command in commands {
        let given = command.metadata.creation_timestamp;
        match given.map(|given| given.saturating_add(COMMAND_PATIENCE)) {
            Some(until) if until > now => plan.wake(until),
            _ => plan.append(discard(command)),
        }
    }
    plan
}

/// The phase that a write puts a Job in.
pub fn phase_written(write: &Write) -> Option<JobPhase> {
    let Write::Patch {
        patch, status: true, ..
    } = write
    else {
        return None;
    };
    Some(JobPhase::from(patch["status"]["state"]["phase"].as_str()?))
}

/// What users are told when the objects of a Job's plugins cannot be read.
pub fn unreadable(job: &Job, problem: &Problem) -> Event {
    let message = format!("Execute plugin when job add failed, err: {}", problem.text);
    Event::warning(Target::of(job), events::PLUGIN_ERROR, message)
}

/// What users are told about writes that failed.
pub fn warnings(job: &Job, failed: &[&Failed]) -> Vec<Event> {
    let failed: Vec<_> = failed
        .iter()
        .filter_map(|failed| {
            Some(job::Failed {
                write: failed.write.as_ref()?,
                error: &failed.problem.text,
            })
        })
        .collect();
    job::warnings(job, &failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::kinds::{Change, Kind};
    use crate::watch::Feed;
    use serde_json::{Value, json};
    use volcano_api::names::kinds::SERVICE;
    use volcano_reconcile::pod_group;

    const AT: &str = "ns/j";

    fn told<T: serde::de::DeserializeOwned>(store: &mut Store, object: Value, change: fn(Box<T>) -> Change) {
        let object = serde_json::from_value(object).unwrap();
        store.take(Feed::Changes(vec![change(Box::new(object))]));
    }

    /// The Job is told with these plugins, in a version of its spec.
    fn put(store: &mut Store, plugins: &Value, generation: i64) {
        let job = json!({
            "metadata": {"namespace": "ns", "name": "j", "uid": "job", "generation": generation,
                "resourceVersion": generation.to_string()},
            "spec": {"queue": "q", "minAvailable": 1, "plugins": plugins,
                "tasks": [{"name": "t", "replicas": 1, "template": {}}]},
            "status": {"state": {"phase": "Pending"}},
        });
        told(store, job, Change::Job);
    }

    fn store(plugins: &Value) -> Store {
        let options = pod_group::Options {
            schedulers: vec!["volcano".to_owned()],
            inherit_owner_annotations: true,
        };
        let mut store = Store::new(options, [Kind::Job], crate::clock::Clock::default());
        store.is_of_term = true;
        let queue = json!({"metadata": {"name": "q", "resourceVersion": "2"}});
        told(&mut store, queue, Change::Queue);
        put(&mut store, plugins, 1);
        store
    }

    #[test]
    fn what_belongs_to_an_earlier_job_is_read_again_at_the_next_look() {
        let (read, now) = (Instant::now(), Time::EPOCH);
        let cases = [("earlier", [1, 5]), ("job", [5, 301])];
        for (owner, [before, after]) in cases {
            let owners = json!([{"kind": "Job", "name": "j", "uid": owner, "controller": true}]);
            let service = json!({"metadata": {"name": "j", "uid": "s", "ownerReferences": owners}});
            let mut objects = plugins::Observed::default();
            objects.insert(SERVICE, &service);
            let mut store = store(&json!({"svc": []}));
            store.put_objects(AT, objects, read);
            let mut at = |seconds| {
                let moment = read + Duration::from_secs(seconds);
                look(&mut store, AT, false, now, moment)
            };
            let Look::Plan(plan) = at(before) else {
                panic!("what was read is used: {owner}");
            };
            let is_waited_for = plan.again_at == Some(now.saturating_add(GoDuration::from_seconds(5)));
            assert_eq!(is_waited_for, owner == "earlier", "{plan:?}");
            assert!(matches!(at(after), Look::Read(_)), "{owner}");
        }
    }

    #[test]
    fn wrong_arguments_are_logged_once_for_each_version_of_the_spec() {
        let mut store = store(&json!({"mpi": ["--prot=1"], "env": ["x"]}));
        let problems = |store: &mut Store| new_problems(store.job_mut(AT).unwrap());
        let found = problems(&mut store);
        assert!(
            found.len() == 2 && found[0].starts_with("job plugin mpi: argument \"--prot=1\" is not known"),
            "{found:?}"
        );
        assert_eq!(problems(&mut store), [""; 0]);
        put(&mut store, &json!({"mpi": ["--port=x"]}), 2);
        assert_eq!(problems(&mut store).len(), 1);
        put(&mut store, &json!({"mpi": ["--port=2"]}), 3);
        assert_eq!(problems(&mut store), [""; 0]);
    }
}
