//! The scheduler's heart: the one owner of the engine. Changes and outcomes come in, orders go out.
//!
//! ```text
//! feed ─────┐                         ┌─> writer
//! outcomes ─┼─> apply ─> pace ─> cycle ─> orders
//! control ──┘                         └─> metrics, logs
//! ```
//!
//! It runs on a thread of its own, so that a long cycle never holds up connections, leases or health checks.

use super::cluster::Cluster;
use super::orders::orders;
use super::pace::Pace;
use super::report::Reporter;
use super::shared::Shared;
use super::statuses::Statuses;
use crate::lease::Leadership;
use crate::metrics::TaskStage;
use crate::reload::Conf;
use crate::watch::Feed;
use crate::writes::Writer;
use crate::writes::order::{ClaimRef, ClaimState, Event, JobKey, Order, Outcome, Pause};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tracing::{debug, error, info, warn};
use volcano_api::core::{Meta, PersistentVolumeClaim, Pod};
use volcano_api::names::annotations;
use volcano_api::time::Time;
use volcano_engine::Engine;
use volcano_engine::config::SchedulerConf;
use volcano_engine::dispatch::Unavailable;
use volcano_engine::effect::{Cycle, Effect, Step};
use volcano_engine::model::delta::Delta;
use volcano_engine::model::kind::Kind;
use volcano_engine::model::status::Status;
use volcano_engine::model::{Model, SchedulerNames};

/// How long what is still to be written may take when the process ends.
const DRAIN: Duration = Duration::from_secs(10);
/// Argument of the plugin predicates: seconds that claims may take.
const BIND_TIMEOUT: &str = "volumebinding.bindTimeoutSeconds";
/// Messages taken in one go, so that a flood of changes cannot keep a cycle away.
const AT_ONCE: usize = 64;
/// The same trouble is not logged again before this: an API server that is away is away for every watch.
const TELL_AGAIN: Duration = Duration::from_secs(60);

/// What others ask of the scheduler while it runs.
pub enum Control {
    /// Use another configuration.
    Reconfigure(Box<Conf>),
    /// Write down what the engine believes.
    Snapshot(oneshot::Sender<Vec<u8>>),
    /// Tell users something.
    Tell(Event),
}

/// Everything that comes in.
pub struct Inputs {
    /// From the watches.
    pub feed: mpsc::Receiver<Feed>,
    /// From the writer.
    pub outcomes: mpsc::UnboundedReceiver<Outcome>,
    /// Where the writer sends them.
    pub outcomes_to: mpsc::UnboundedSender<Outcome>,
    /// Who leads.
    pub leadership: watch::Receiver<Leadership>,
    /// Whether the process is to end.
    pub shutdown: watch::Receiver<bool>,
}

/// Why the heart stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The process is to end.
    Stopped,
    /// Another one leads now. What was decided and not written must be forgotten: start anew.
    LostLease,
    /// A cycle panicked: its state cannot be trusted. Start anew.
    Broken,
    /// The election is over although nobody ended it: this process can never know again whether it leads.
    NoElection,
}

/// The owner of the engine.
pub struct Core {
    shared: Arc<Shared>,
    cluster: Cluster,
    statuses: Statuses,
    reporter: Reporter,
    pace: Pace,
    /// Gangs of which a bind failed while others were not sent yet, with their latest pause that is known here.
    paused: BTreeMap<JobKey, Pause>,
    /// The term in which this process leads.
    term: Option<u64>,
    /// There while this process leads.
    writer: Option<Writer>,
    /// What is to be told to users as soon as this process leads.
    untold: Option<Event>,
    /// Troubles that were logged lately.
    told: BTreeMap<String, Instant>,
    /// How long claims may take to get their volumes, if the configuration says so. As it was at the start.
    bind_timeout: Option<Duration>,
}

impl Core {
    /// A heart for an unread cluster.
    pub fn new(shared: Arc<Shared>, conf: SchedulerConf) -> Self {
        let options = &shared.options;
        let bind_timeout = bind_timeout(&conf);
        let (cluster, unavailable) = Cluster::new(
            conf,
            SchedulerNames::Only(options.scheduler_names.clone()),
            &options.default_queue,
            options.features.clone(),
            super::feeds::kinds(options),
        );
        tell_unavailable(&unavailable);
        let pace = Pace::new(options.schedule_period, Instant::now());
        let reporter = Reporter::new(shared.metrics.clone());
        Core {
            shared,
            cluster,
            statuses: Statuses::default(),
            reporter,
            pace,
            paused: BTreeMap::new(),
            term: None,
            writer: None,
            untold: None,
            told: BTreeMap::new(),
            bind_timeout,
        }
    }

    /// Runs until the end. `control` outlives a single run.
    pub async fn run(mut self, mut inputs: Inputs, control: &mut mpsc::Receiver<Control>) -> End {
        self.report_missing();
        if let Some(end) = self.lead_or_follow(&mut inputs) {
            return end;
        }
        loop {
            self.shared.health.tick();
            let next = self.next_cycle();
            if next.is_some_and(|at| at <= Instant::now()) && !self.try_cycle() {
                return End::Broken;
            }
            let next = self
                .next_cycle()
                .unwrap_or_else(|| Instant::now() + Duration::from_secs(1));
            tokio::select! {
                biased;
                _ = inputs.shutdown.changed() => {
                    if let Some(writer) = &self.writer {
                        writer.drain(DRAIN).await;
                    }
                    return End::Stopped;
                }
                told = inputs.leadership.changed() => {
                    if told.is_err() {
                        return End::NoElection;
                    }
                    if let Some(end) = self.lead_or_follow(&mut inputs) {
                        return end;
                    }
                }
                Some(request) = control.recv() => self.obey(request),
                Some(outcome) = inputs.outcomes.recv() => {
                    self.take_outcome(outcome);
                    for _ in 0..AT_ONCE * AT_ONCE {
                        let Ok(outcome) = inputs.outcomes.try_recv() else { break };
                        self.take_outcome(outcome);
                    }
                    self.look_for_news();
                }
                Some(feed) = inputs.feed.recv() => {
                    self.take_feed(feed);
                    for _ in 0..AT_ONCE {
                        let Ok(feed) = inputs.feed.try_recv() else { break };
                        self.take_feed(feed);
                    }
                    self.look_for_news();
                }
                () = tokio::time::sleep_until(next) => {}
            }
        }
    }

    /// When the next cycle starts; `None` while there is nothing to decide or nobody to decide for.
    fn next_cycle(&self) -> Option<Instant> {
        let can_decide = self.writer.is_some() && self.cluster.missing().is_empty();
        can_decide.then(|| self.pace.next())
    }

    fn lead_or_follow(&mut self, inputs: &mut Inputs) -> Option<End> {
        let term = match *inputs.leadership.borrow_and_update() {
            Leadership::Leading { term, .. } => Some(term),
            _ => None,
        };
        self.shared.metrics.process().leading(term.is_some());
        match (term, self.term) {
            (Some(_), None) => {
                self.term = term;
                self.writer = Some(
                    self.shared
                        .start_writer(self.bind_timeout, inputs.outcomes_to.clone()),
                );
                if let Some(event) = self.untold.take() {
                    self.send(Order::Event(event));
                }
                self.pace.news(Instant::now());
                None
            }
            // Lost, or lost and won again: another one may have led in between.
            (_, Some(_)) if term != self.term => Some(End::LostLease),
            _ => None,
        }
    }

    fn obey(&mut self, control: Control) {
        match control {
            Control::Reconfigure(conf) => {
                tell_unavailable(&self.cluster.reconfigure(conf.conf.clone()));
                self.shared.set_conf(*conf);
                self.pace.news(Instant::now());
            }
            Control::Snapshot(answer) => {
                let conf = self.shared.conf();
                let now = self.shared.client.clock().now();
                let snapshot = self.cluster.engine().snapshot(&conf.text, now);
                match serde_json::to_vec(&snapshot) {
                    Ok(json) => drop(answer.send(json)), // The one who asked may be gone.
                    Err(error) => error!(%error, "cannot write down the state"),
                }
            }
            Control::Tell(event) if self.writer.is_some() => self.send(Order::Event(event)),
            Control::Tell(event) => self.untold = Some(event),
        }
    }

    /// Something cannot be read. What several watches say alike is logged once.
    fn trouble(&mut self, kind: Kind, line: &str) {
        self.told.retain(|_, at| at.elapsed() < TELL_AGAIN);
        if self.told.insert(line.to_owned(), Instant::now()).is_none() {
            error!(?kind, "{line}");
        }
        self.shared.health.trouble(line);
    }

    fn take_feed(&mut self, feed: Feed) {
        let was_whole = self.cluster.missing().is_empty();
        match &feed {
            Feed::Trouble(kind, line) => self.trouble(*kind, line),
            Feed::Changes(deltas) => {
                self.report_watched(deltas);
                let m = self.cluster.engine().model();
                let orders = deltas.iter().filter_map(|delta| told_to_binds(m, delta));
                orders.for_each(|order| self.send(order));
            }
            Feed::Listed(kind @ (Kind::Claim | Kind::Pod | Kind::Node), Some(listed)) => {
                let m = self.cluster.engine().model();
                let known = m.names(*kind).into_iter();
                let gone = known.filter(|name| !listed.names.contains(name));
                let gone = gone.map(|(namespace, name)| Delta::gone(*kind, &namespace, &name));
                let orders = gone.filter_map(|delta| told_to_binds(m, &delta));
                orders.for_each(|order| self.send(order));
            }
            Feed::Listed(..) => {}
        }
        let is_list = matches!(feed, Feed::Listed(..));
        let (shared, statuses) = (&self.shared, &mut self.statuses);
        self.cluster.take(feed, |delta| admit(shared, statuses, delta));
        if is_list {
            self.report_missing();
        }
        if !was_whole && self.cluster.missing().is_empty() {
            info!("every kind is listed; ready");
            self.pace.news(Instant::now());
        }
    }

    fn report_missing(&self) {
        let missing = self.cluster.missing().iter().map(|kind| format!("{kind:?}"));
        self.shared.health.missing(missing.collect());
    }

    /// Pods that come to be known, and are to be placed.
    fn report_watched(&self, deltas: &[Delta]) {
        let now = self.shared.client.clock().now();
        let ours = |pod: &Pod| {
            let names = &self.shared.options.scheduler_names;
            names.contains(&pod.spec.scheduler_name) && self.shared.ownership.accepts_pod(pod)
        };
        for created in newly_watched(self.cluster.engine().model(), deltas, ours) {
            self.shared
                .metrics
                .task_stage(TaskStage::Watched, now.since(created));
        }
    }

    fn look_for_news(&mut self) {
        if self.cluster.engine().news() {
            self.pace.news(Instant::now());
        }
    }

    fn take_outcome(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Bound(_) => {}
            Outcome::BindFailed { pod, job, paused } => {
                debug!(pod = %format_args!("{}/{}", pod.namespace, pod.name), ?paused, "a bind failed");
                self.cluster.apply(Delta::BindFailed {
                    namespace: pod.namespace.to_string(),
                    name: pod.name.to_string(),
                    uid: pod.uid.to_string(),
                });
                if let Some(pause) = paused {
                    self.paused.insert(job, pause);
                }
                self.pace.news(Instant::now());
            }
            Outcome::EvictFailed(pod) => {
                self.cluster.apply(Delta::EvictFailed {
                    namespace: pod.namespace.to_string(),
                    name: pod.name.to_string(),
                    uid: pod.uid.to_string(),
                });
                self.pace.news(Instant::now());
            }
            Outcome::GroupWritten {
                job,
                sequence,
                resource_version,
            } => self.statuses.written(&job, sequence, resource_version.as_deref()),
        }
    }

    /// Runs a cycle. False when it panicked.
    fn try_cycle(&mut self) -> bool {
        let done = catch_unwind(AssertUnwindSafe(|| self.cycle())).is_ok();
        if !done {
            error!(
                "a cycle panicked; reading the cluster anew (GET /debug/snapshot before it happens again helps to find out why)"
            );
        }
        done
    }

    fn cycle(&mut self) {
        let (began, now) = (Instant::now(), self.shared.client.clock().now());
        let mut step_began = began;
        let metrics = &self.shared.metrics;
        let Some(whole) = self.cluster.whole() else { return };
        let cycle = whole.cycle(now, &mut |step| {
            let ended = Instant::now();
            match step {
                Step::Plugin(plugin) => metrics.plugin_took(plugin, ended - step_began),
                Step::Open => metrics.open_session_took(ended - began),
                Step::Action(action) => metrics.action_took(action, ended - step_began),
                Step::Close => {}
            }
            step_began = ended;
        });
        let engine = self.cluster.engine();
        let mut orders = orders(engine, &cycle.effects, &mut self.statuses);
        let after = after_failures(&mut self.paused, engine, &mut orders);
        if let Some(writer) = &self.writer {
            orders
                .into_iter()
                .chain(after)
                .for_each(|order| writer.send(order));
        }
        let took = began.elapsed();
        metrics.cycle_took(took);
        self.reporter.report(engine, &cycle, now);
        tell(&cycle, took);
        self.pace.ended(began, Instant::now());
    }

    fn send(&self, order: Order) {
        if let Some(writer) = &self.writer {
            writer.send(order);
        }
    }
}

/// What becomes of gangs with a failed bind whose other members are not sent yet: with the failed member placed anew
/// they go on by themselves; complete without it they go on; otherwise they are given back, to be planned as a whole.
/// Each order names the pause that it ends: that of a failure which is not known here has to be decided about, too.
fn after_failures(paused: &mut BTreeMap<JobKey, Pause>, engine: &Engine, orders: &mut [Order]) -> Vec<Order> {
    if paused.is_empty() {
        return Vec::new();
    }
    let mut paused = std::mem::take(paused);
    for order in orders {
        if let Order::Bind(gang) = order {
            gang.ends = paused.remove(&gang.job);
        }
    }
    paused
        .into_iter()
        .map(|(job, pause)| {
            let (namespace, name) = job.split_once('/').unwrap_or_default();
            let job_id = engine.model().find_job(namespace, name);
            let is_ready = job_id.is_some_and(|id| engine.is_job_ready(id));
            if is_ready {
                Order::Resume(job, pause)
            } else {
                Order::Release(job, pause)
            }
        })
        .collect()
}

/// When the pods were made that come to be known with these changes and are to be placed, each once.
fn newly_watched(m: &Model, deltas: &[Delta], ours: impl Fn(&Pod) -> bool) -> Vec<Time> {
    let mut seen = BTreeSet::new();
    let mut created = Vec::new();
    for delta in deltas {
        let Delta::Pod(pod) = delta else { continue };
        let Meta { namespace, name, .. } = &pod.metadata;
        if pod.spec.node_name.is_empty()
            && ours(pod)
            && m.find_task(namespace, name).is_none()
            && seen.insert((namespace, name))
        {
            created.extend(pod.metadata.creation_timestamp);
        }
    }
    created
}

/// What a change is to this instance: objects that others own are gone as far as it is concerned.
fn admit(shared: &Shared, statuses: &mut Statuses, delta: Delta) -> Delta {
    match delta {
        Delta::Node(node) if !shared.ownership.owns_node(&node) => {
            Delta::gone(Kind::Node, "", &node.metadata.name)
        }
        Delta::Pod(pod) if !shared.ownership.accepts_pod(&pod) => {
            Delta::gone(Kind::Pod, &pod.metadata.namespace, &pod.metadata.name)
        }
        Delta::PodGroup(group) if !shared.ownership.owns_group(&group.metadata) => {
            Delta::gone(Kind::PodGroup, &group.metadata.namespace, &group.metadata.name)
        }
        Delta::PodGroup(mut group) => {
            statuses.overlay(&mut group);
            Delta::PodGroup(group)
        }
        Delta::PodGroupGone { namespace, name } => {
            statuses.gone(&namespace, &name);
            Delta::PodGroupGone { namespace, name }
        }
        other => other,
    }
}

/// What a change means for binds that are under way: their claims, and what they cannot be carried out without.
fn told_to_binds(m: &Model, delta: &Delta) -> Option<Order> {
    let binding = |namespace: &str, name: &str| {
        let task = m.task(m.find_task(namespace, name)?);
        (task.status == Status::Binding).then_some(task)
    };
    match delta {
        Delta::Pod(pod) => {
            let Meta {
                namespace,
                name,
                uid,
                deletion_timestamp,
                ..
            } = &pod.metadata;
            let known = binding(namespace, name)?;
            let gone = deletion_timestamp.is_some() || *known.uid != **uid;
            gone.then(|| Order::PodGone((&*known.uid).into()))
        }
        Delta::PodGone { namespace, name } => {
            let known = binding(namespace, name)?;
            Some(Order::PodGone((&*known.uid).into()))
        }
        Delta::NodeGone { name } => Some(Order::NodeGone(name.as_str().into())),
        _ => claim_state(m, delta).map(|(claim, state)| Order::Claim(claim, state)),
    }
}

/// What a change says of a claim that binds may wait for.
fn claim_state(m: &Model, delta: &Delta) -> Option<(ClaimRef, ClaimState)> {
    match delta {
        Delta::Claim(claim) => {
            let bound = claim.status.phase == "Bound" && !claim.spec.volume_name.is_empty();
            let selected = claim.metadata.annotations.get(annotations::SELECTED_NODE);
            let state = if bound {
                ClaimState::Bound
            } else {
                ClaimState::Waiting {
                    selected_node: selected.map(|node| node.as_str().into()),
                }
            };
            Some((claim_ref(claim), state))
        }
        Delta::ClaimGone { namespace, name } => {
            let key = (m.strings.get(namespace)?, name.as_str().into());
            Some((claim_ref(m.cluster.claims.get(&key)?), ClaimState::Gone))
        }
        _ => None,
    }
}

fn claim_ref(claim: &PersistentVolumeClaim) -> ClaimRef {
    ClaimRef {
        namespace: claim.metadata.namespace.as_str().into(),
        name: claim.metadata.name.as_str().into(),
        uid: claim.metadata.uid.as_str().into(),
    }
}

fn bind_timeout(conf: &SchedulerConf) -> Option<Duration> {
    let seconds = conf.plugin("predicates")?.arguments.int(BIND_TIMEOUT, 0);
    u64::try_from(seconds)
        .ok()
        .filter(|&seconds| seconds > 0)
        .map(Duration::from_secs)
}

/// One line for a cycle that did something.
fn tell(cycle: &Cycle, took: Duration) {
    let (mut binds, mut evictions) = (0, 0);
    for effect in &cycle.effects {
        match effect {
            Effect::Bind { binds: gang, .. } => binds += gang.len(),
            Effect::Evict { .. } => evictions += 1,
            _ => {}
        }
    }
    let took_ms = took.as_secs_f64() * 1000.0;
    if binds > 0 || evictions > 0 {
        info!(
            binds,
            evictions,
            pipelined = cycle.pipelined.len(),
            took_ms,
            "scheduled"
        );
    } else {
        debug!(effects = cycle.effects.len(), took_ms, "nothing to place");
    }
}

fn tell_unavailable(unavailable: &[Unavailable]) {
    for Unavailable(name) in unavailable {
        warn!(
            name,
            "the configuration names a plugin or action that this scheduler does not have; going on without it"
        );
    }
}

#[cfg(test)]
mod tests;
