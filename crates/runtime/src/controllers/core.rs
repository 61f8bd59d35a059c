//! The heart of the controller manager: the one owner of what is known and of what is to be done.
//!
//! ```text
//! feed ────┐                                                ┌─> executor ─> messages
//! messages ┼─> store ─> changed keys ─> work queue ─> look ─┤
//! time ────┘                                                └─> events, metrics
//! ```
//!
//! It runs on a thread of its own, so that a look at a large Job never holds up connections, leases or health checks. An
//! instance that stands by keeps the store up to date and looks at nothing; when its turn comes, it looks at everything.

#[cfg(test)]
mod tests;

use super::execute::{Effect, Ended, Executor, Failed, Message, Problem, Sort};
use super::feeds::{self, Running};
use super::kinds::Controlling;
use super::queue::Numbers;
use super::run::Shared;
use super::store::{Answer, Key, Store};
use super::work::{Failure, WorkQueue};
use super::{job, kinds::Change, podgroup, queue, ttl};
use crate::lease::Leadership;
use crate::watch::Feed;
use serde_json::Value;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tracing::{debug, error, info, warn};
use volcano_api::batch::{Job, JobPhase};
use volcano_api::time::Time;
use volcano_reconcile::job::{Ask, Reading};
use volcano_reconcile::plugins;
use volcano_reconcile::write::{Plan, Target, Write};

/// Messages taken in one go, so that a flood of changes cannot keep work away.
const AT_ONCE: usize = 256;
/// Keys looked at in one go, so that answers and changes are taken in between.
const LOOKS_AT_ONCE: usize = 64;
/// How long what is under way may take when the process ends.
const DRAIN: Duration = Duration::from_secs(10);
/// While there is enough under way, answers and changes are gathered this long: to be woken by each costs more than to
/// take it in.
const GATHER: Duration = Duration::from_millis(2);
/// The longest time between two turns of the loop.
const TURN: Duration = Duration::from_secs(1);
/// A key rests this many times as long as a look at it took, so that one large Job, whose pods change one by one, cannot
/// take up all the time.
const RESTS: u32 = 4;
/// A key is not looked at again before this without news. Timers are no finer.
const SOONEST: Duration = Duration::from_millis(1);
/// Looks that take less are not worth a rest.
const QUICK: Duration = Duration::from_millis(1);

/// What a look at something says.
pub enum Look {
    /// These objects have to be read first.
    Read(Vec<Target>),
    /// This process has just begun to lead: the API server has to be asked how new what is known of a Job is.
    Ask(Target, Ask),
    /// What is to be written.
    Plan(Plan),
}

/// Everything that comes in.
pub struct Inputs {
    /// From the watches.
    pub feed: mpsc::Receiver<Feed<Controlling>>,
    /// From the executor.
    pub messages: mpsc::UnboundedReceiver<Message>,
    /// Where the executor sends them.
    pub messages_to: mpsc::UnboundedSender<Message>,
    /// Who leads.
    pub leadership: watch::Receiver<Leadership>,
    /// Whether the process is to end.
    pub shutdown: watch::Receiver<bool>,
}

/// The owner of what is known and of what is to be done.
pub struct Core {
    shared: Arc<Shared>,
    running: Running,
    store: Store,
    work: WorkQueue<Key>,
    /// Taken from the line, and looked at when pods can be made again.
    held: VecDeque<Key>,
    /// Jobs whose counts are to be told later.
    untold: WorkQueue<Key>,
    numbers: Numbers,
    /// The term in which this process leads.
    term: Option<u64>,
    /// The term that had begun before the watches did.
    first_term: Option<u64>,
    /// There while this process leads. A stopped one is that of an earlier term, whose last requests are not answered yet.
    executor: Option<Executor>,
    /// When a look at each key that is worked on began to matter: how long to rest, and when to look again.
    after: rustc_hash::FxHashMap<Key, After>,
}

/// What follows when a key is settled.
#[derive(Clone, Default)]
struct After {
    again_at: Option<Instant>,
    rest: Duration,
    /// The phase of the Job, and the one that the plan puts it in.
    enters: Option<(JobPhase, JobPhase)>,
}

impl Core {
    /// A heart for an unread cluster, and the term that begins before that is read, if one does.
    pub fn new(shared: Arc<Shared>, first_term: Option<u64>) -> Self {
        let options = &shared.options;
        let gangs = volcano_reconcile::pod_group::Options {
            schedulers: options.scheduler_names.clone(),
            inherit_owner_annotations: options.inherit_owner_annotations,
        };
        let store = Store::new(gangs, feeds::kinds(options), shared.client.clock().clone());
        Core {
            running: Running::of(options),
            shared,
            store,
            work: WorkQueue::default(),
            held: VecDeque::new(),
            untold: WorkQueue::default(),
            numbers: Numbers::default(),
            term: None,
            first_term,
            executor: None,
            after: rustc_hash::FxHashMap::default(),
        }
    }

    /// Runs until the end.
    pub async fn run(mut self, mut inputs: Inputs) {
        self.report_missing();
        self.lead_or_follow(&mut inputs);
        let mut tidied = Instant::now();
        loop {
            self.shared.health.tick();
            let now = Instant::now();
            if now.duration_since(tidied) > TURN {
                tidied = now;
                self.work.tidy(now);
                let waiting = self.work.waiting() + self.held.len();
                self.shared.metrics.process().pending_writes("keys", waiting);
            }
            let is_busy = self.work_on();
            if !is_busy && self.has_enough_under_way() {
                tokio::time::sleep(GATHER).await;
            }
            let next = if is_busy { now } else { self.next_turn(now) };
            tokio::select! {
                biased;
                _ = inputs.shutdown.changed() => return self.drain(inputs).await,
                told = inputs.leadership.changed() => {
                    if told.is_err() {
                        error!("the election broke off: this process cannot know any more whether it leads");
                        return self.drain(inputs).await;
                    }
                    self.lead_or_follow(&mut inputs);
                }
                Some(message) = inputs.messages.recv() => {
                    self.take_message(message);
                    for _ in 0..AT_ONCE {
                        let Ok(message) = inputs.messages.try_recv() else { break };
                        self.take_message(message);
                    }
                    self.look_at_changed();
                    self.take_over(&inputs.messages_to);
                }
                Some(feed) = inputs.feed.recv() => {
                    self.take_feed(feed);
                    for _ in 0..AT_ONCE {
                        let Ok(feed) = inputs.feed.try_recv() else { break };
                        self.take_feed(feed);
                    }
                    self.look_at_changed();
                }
                () = tokio::time::sleep_until(next) => {}
            }
        }
    }

    /// The time of day.
    fn wall(&self) -> Time {
        self.shared.client.clock().now()
    }

    fn can_work(&self) -> bool {
        self.is_at_work()
            && self.store.missing().is_empty()
            && self.executor.as_ref().is_some_and(Executor::has_room)
    }

    /// Whether this process leads, and nothing of an earlier term is under way.
    fn is_at_work(&self) -> bool {
        self.executor
            .as_ref()
            .is_some_and(|executor| !executor.is_stopped())
    }

    fn has_enough_under_way(&self) -> bool {
        self.executor.as_ref().is_some_and(Executor::is_busy)
    }

    fn next_turn(&self, now: Instant) -> Instant {
        let due = self.work.due().filter(|_| self.can_work());
        due.unwrap_or(now + TURN).clamp(now, now + TURN)
    }

    /// Looks at some keys whose time has come. Whether there are more.
    fn work_on(&mut self) -> bool {
        self.tell_untold();
        for _ in 0..LOOKS_AT_ONCE {
            if !self.can_work() {
                return false;
            }
            match self.next_key() {
                Some(key) => self.look_at(key),
                None => return false,
            }
        }
        true
    }

    /// The next key whose time has come. Jobs that would make pods are held while there are pods enough to be made: a
    /// plan has the body of each, and others may only need their PodGroup.
    fn next_key(&mut self) -> Option<Key> {
        let is_busy = self.has_enough_under_way();
        if !is_busy && let Some(key) = self.held.pop_front() {
            return Some(key);
        }
        let now = Instant::now();
        while let Some(key) = self.work.next(now) {
            if !is_busy || !self.makes_pods(&key) {
                return Some(key);
            }
            self.held.push_back(key);
        }
        None
    }

    fn makes_pods(&self, key: &Key) -> bool {
        matches!(key, Key::Job(at) if job::makes_pods(&self.store, at))
    }

    /// Looks again at Jobs whose counts are to be told, as many as there are lanes to spare.
    fn tell_untold(&mut self) {
        let now = Instant::now();
        for _ in 0..self.executor.as_ref().map_or(0, Executor::spare) {
            let Some(key) = self.untold.next(now) else { return };
            self.untold.settled(&key, None, Duration::ZERO, now);
            self.work.add(key, now);
        }
    }

    /// One look. A panic in it is that of one object, and must not keep the others waiting.
    fn look_at(&mut self, key: Key) {
        let (now, moment) = (self.wall(), Instant::now());
        let look = catch_unwind(AssertUnwindSafe(|| self.look(&key, now, moment)));
        let look = match look {
            Ok(look) => look,
            Err(_) => {
                error!(?key, "deciding what to do broke off; trying again later");
                let failure = Failure {
                    is_refusal: true,
                    ..Failure::default()
                };
                return self.work.failed(&key, failure, moment);
            }
        };
        match look {
            Look::Plan(plan) => self.carry_out(key, plan, moment),
            Look::Read(targets) => {
                if let Some(executor) = &mut self.executor {
                    executor.read(key, targets);
                }
            }
            Look::Ask(job, ask) => {
                debug!(?key, ?ask, "asking how new what is known is");
                if let Some(executor) = &mut self.executor {
                    executor.ask(key, job, ask);
                }
            }
        }
    }

    fn look(&mut self, key: &Key, now: Time, moment: Instant) -> Look {
        match key {
            Key::Job(at) => {
                let limit = self.shared.options.max_requeue_num;
                let refusals = i64::from(self.work.refusals(key));
                let is_exhausted = limit >= 0 && refusals > i64::from(limit);
                job::look(&mut self.store, at, is_exhausted, now, moment)
            }
            Key::Expiry(at) => ttl::look(&self.store, at, now),
            Key::Queue(name) => self.numbers.look(&self.store, name, now, moment),
            Key::Gang(at) => podgroup::look(&self.store, at),
        }
    }

    /// Has a plan carried out. `began` is when the look at the key did.
    fn carry_out(&mut self, key: Key, plan: Plan, began: Instant) {
        let now = Instant::now();
        let took = now.duration_since(began);
        let after = After {
            again_at: plan.again_at.map(|at| moment_of(at, self.wall(), now)),
            rest: if took > QUICK {
                took * RESTS
            } else {
                Duration::ZERO
            },
            enters: self.entered(&key, &plan),
        };
        if plan.steps.is_empty() {
            return self.work.settled(&key, after.again_at, after.rest, now);
        }
        debug!(?key, steps = plan.steps.len(), "carrying out");
        if let Some(executor) = &mut self.executor {
            let changes_phase = after.enters.is_some();
            self.after.insert(key.clone(), after);
            executor.start(key, plan, changes_phase);
        }
    }

    /// The phase of a Job and the one that a plan puts it in, if that is another one.
    fn entered(&self, key: &Key, plan: &Plan) -> Option<(JobPhase, JobPhase)> {
        let Key::Job(at) = key else { return None };
        let from = &self.store.job(at)?.job()?.status.state.phase;
        let to = plan.steps.iter().flatten().find_map(job::phase_written)?;
        (to != *from).then(|| (from.clone(), to))
    }

    fn take_message(&mut self, message: Message) {
        match message {
            Message::Written(key, effect) => self.written(&key, effect),
            Message::Done(key, writes, ended) => {
                if self.ended(writes) {
                    self.done(&key, &ended);
                }
            }
            Message::Read(key, read) => {
                if self.ended(0) {
                    self.read(key, read);
                }
            }
            Message::Asked(key, asked) => {
                if self.ended(0) {
                    self.asked(key, asked);
                }
            }
        }
    }

    /// Something that was under way has ended. Whether it was of this term.
    fn ended(&mut self, writes: usize) -> bool {
        if let Some(executor) = &mut self.executor {
            executor.ended(writes);
        }
        self.is_at_work()
    }

    fn written(&mut self, key: &Key, effect: Effect) {
        match (effect, key) {
            (Effect::Watched(answer), _) => {
                self.measure(key, &answer);
                self.store.answered(answer);
            }
            (Effect::PodMade(answer), _) => {
                if let Key::Job(at) = key
                    && let Some(job) = self.store.job(at).and_then(|entry| entry.job())
                {
                    self.shared.metrics.pod_made(job, self.wall());
                }
                self.store.answered(answer);
            }
            (Effect::Made(kind, object), Key::Job(at)) => self.store.put_object(at, kind, &object),
            (Effect::Removed(kind, name), Key::Job(at)) => self.store.remove_object(at, kind, &name),
            _ => {}
        }
    }

    /// Counts what an answer to an own write means.
    fn measure(&mut self, key: &Key, answer: &Answer) {
        let Answer::Object(change) = answer else { return };
        let Change::Job(job) = &**change else { return };
        let after = self.after.get_mut(key);
        let is_in = |(_, to): &mut (JobPhase, JobPhase)| *to == job.status.state.phase;
        if let Some((from, to)) = after.and_then(|after| after.enters.take_if(is_in)) {
            told_phase(job, &from, &to);
            self.shared.metrics.job_entered(job, &to);
        }
    }

    fn done(&mut self, key: &Key, ended: &Ended) {
        let now = Instant::now();
        let after = self.after.remove(key).unwrap_or_default();
        let failed = match ended {
            Ended::Failed(failed) => failed,
            Ended::Whole => return self.work.settled(key, after.again_at, after.rest, now),
            Ended::PutOff => {
                self.untold.add(key.clone(), now);
                return self.work.settled(key, after.again_at, after.rest, now);
            }
        };
        let store = &mut self.store;
        let is_news = |failed: &&Failed| match (key, &failed.write) {
            (Key::Job(at), Some(Write::Create { target, .. })) if failed.problem.sort == Sort::Taken => {
                store.put_stranger(at, &target.name, now)
            }
            _ => true,
        };
        let told: Vec<_> = failed.iter().filter(is_news).collect();
        self.tell(key, &told);
        let problems = failed.iter().map(|failed| &failed.problem);
        if let Key::Job(at) = key {
            self.store.forget_objects(at);
        }
        self.failed(key, problems, now);
        if let Key::Queue(name) = key {
            self.give_up(key, name, failed, now);
        }
    }

    fn failed<'a>(&mut self, key: &Key, problems: impl Iterator<Item = &'a Problem> + Clone, now: Instant) {
        let failure = Failure {
            is_refusal: problems.clone().any(|problem| problem.sort == Sort::Refused),
            retry_after: problems
                .clone()
                .map(|problem| problem.retry_after)
                .max()
                .unwrap_or_default(),
        };
        for problem in problems.take(1) {
            match problem.sort {
                Sort::Refused => warn!(?key, problem = problem.text, "refused; trying again later"),
                _ => debug!(?key, problem = problem.text, "failed; trying again"),
            }
        }
        self.work.failed(key, failure, now);
    }

    /// Tells users what failed. What passes by itself is told to nobody.
    fn tell(&self, key: &Key, failed: &[&Failed]) {
        let stays = |failed: &&Failed| matches!(failed.problem.sort, Sort::Refused | Sort::Taken);
        if !failed.iter().any(stays) {
            return;
        }
        let events = match key {
            Key::Job(at) => {
                let job = self.store.job(at).and_then(|entry| entry.job());
                job.map_or_else(Vec::new, |job| job::warnings(job, failed))
            }
            Key::Queue(name) => queue::warnings(&self.store, name, failed),
            _ => Vec::new(),
        };
        events.iter().for_each(|event| self.shared.recorder.tell(event));
    }

    /// A queue whose writes were refused too often is left alone until something changes for it.
    fn give_up(&mut self, key: &Key, name: &str, failed: &[Failed], now: Instant) {
        let limit = self.shared.options.max_requeue_num;
        if limit < 0 || i64::from(self.work.refusals(key)) <= i64::from(limit) {
            return;
        }
        if let Some(event) = queue::given_up(&self.store, name, failed) {
            self.shared.recorder.tell(&event);
        }
        self.work.settled(key, None, Duration::ZERO, now);
    }

    fn read(&mut self, key: Key, read: Result<Vec<(Target, Option<Value>)>, Problem>) {
        let (now, moment) = (self.wall(), Instant::now());
        let read = match read {
            Ok(read) => read,
            Err(problem) => return self.not_read(&key, &problem, moment),
        };
        match &key {
            Key::Job(at) => {
                let mut objects = plugins::Observed::default();
                for (target, object) in &read {
                    if let Some(object) = object {
                        objects.insert(target.kind, object);
                    }
                }
                self.store.put_objects(at, objects, moment);
                self.look_at(key);
            }
            Key::Expiry(_) => {
                let job = read.iter().find_map(|(_, object)| object.as_ref());
                let plan = job.map_or_else(Plan::default, |job| ttl::look_again(job, now));
                self.carry_out(key, plan, moment);
            }
            Key::Gang(at) => {
                let plan = podgroup::look_again(&self.store, at, &read);
                self.carry_out(key, plan, moment);
            }
            Key::Queue(_) => self.carry_out(key, Plan::default(), moment),
        }
    }

    fn asked(&mut self, key: Key, asked: Result<Option<Reading>, Problem>) {
        let moment = Instant::now();
        let reading = match asked {
            Ok(reading) => reading,
            Err(problem) => return self.failed(&key, [&problem].into_iter(), moment),
        };
        let Key::Job(at) = &key else { return };
        match (reading, self.store.job_mut(at)) {
            (Some(reading), Some(entry)) => entry.footing.read(reading),
            // It is gone; the watch tells.
            _ => return self.carry_out(key, job::later(self.wall()), moment),
        }
        self.look_at(key);
    }

    fn not_read(&mut self, key: &Key, problem: &Problem, now: Instant) {
        if let Key::Job(at) = key
            && let Some(job) = self.store.job(at).and_then(|entry| entry.job())
            && problem.sort == Sort::Refused
        {
            self.shared.recorder.tell(&job::unreadable(job, problem));
        }
        self.failed(key, [problem].into_iter(), now);
    }

    fn take_feed(&mut self, feed: Feed<Controlling>) {
        if let Feed::Trouble(kind, line) = &feed {
            error!(?kind, "{line}");
            self.shared.health.trouble(line);
        }
        let was_whole = self.store.missing().is_empty();
        let is_list = matches!(feed, Feed::Listed(..));
        self.store.take(feed);
        if is_list {
            self.report_missing();
        }
        if !was_whole && self.store.missing().is_empty() {
            info!("every kind is listed; ready");
        }
    }

    fn report_missing(&self) {
        let missing = self.store.missing().iter().map(|kind| format!("{kind:?}"));
        self.shared.health.missing(missing.collect());
    }

    /// Puts what changed in line, if this process leads.
    fn look_at_changed(&mut self) {
        let now = Instant::now();
        for key in self.store.take_changed() {
            if let Key::Queue(name) = &key {
                let counts = self.store.queues().counts_of(name);
                self.shared.metrics.queue(name, counts);
            }
            if self.is_at_work() && self.is_ours(&key) {
                self.work.add(key, now);
            }
        }
        for (job, queue) in self.store.take_gone_jobs() {
            self.shared.metrics.forget_job(&job, &queue);
        }
    }

    fn is_ours(&self, key: &Key) -> bool {
        match key {
            Key::Job(_) => self.running.jobs,
            Key::Expiry(_) => self.running.gc,
            Key::Queue(_) => self.running.queues,
            Key::Gang(_) => self.running.gangs,
        }
    }

    fn lead_or_follow(&mut self, inputs: &mut Inputs) {
        let term = match *inputs.leadership.borrow_and_update() {
            Leadership::Leading { term, .. } => Some(term),
            _ => None,
        };
        if term == self.term {
            return;
        }
        self.shared.metrics.process().leading(term.is_some());
        self.term = term;
        if let Some(executor) = &mut self.executor {
            executor.stop();
        }
        self.take_over(&inputs.messages_to);
    }

    /// Begins the term that this process is in, once what was sent in an earlier one is answered: a request that is still
    /// under way may change what is there after it was looked at.
    fn take_over(&mut self, messages: &mpsc::UnboundedSender<Message>) {
        let is_ending = |executor: &Executor| executor.is_stopped() && !executor.is_idle();
        if self.is_at_work() || self.executor.as_ref().is_some_and(is_ending) {
            return;
        }
        // Somebody else may have led in between: what was decided and not written is forgotten.
        self.work.clear();
        self.held.clear();
        self.untold.clear();
        self.after.clear();
        self.store.forget_memories();
        self.store.is_of_term = self.term.is_some() && self.term == self.first_term;
        self.executor = None;
        if self.term.is_none() {
            return;
        }
        self.executor = Some(self.shared.executor(messages.clone()));
        let now = Instant::now();
        for key in self.store.all() {
            if self.is_ours(&key) {
                self.work.add(key, now);
            }
        }
    }

    /// Lets what is under way come to its end.
    async fn drain(mut self, mut inputs: Inputs) {
        let until = Instant::now() + DRAIN;
        while self.executor.as_ref().is_some_and(|executor| !executor.is_idle()) {
            match tokio::time::timeout_at(until, inputs.messages.recv()).await {
                Ok(Some(message)) => self.take_message(message),
                _ => return,
            }
        }
    }
}

fn told_phase(job: &Job, before: &JobPhase, after: &JobPhase) {
    let metadata = &job.metadata;
    let state = &job.status.state;
    info!(
        namespace = metadata.namespace,
        job = metadata.name,
        from = %before,
        to = %after,
        reason = state.reason,
        "the Job is in another phase"
    );
}

/// The moment of a time of day.
fn moment_of(at: Time, wall: Time, now: Instant) -> Instant {
    let micros = at.micros_since(wall);
    let wait = Duration::from_micros(u64::try_from(micros).unwrap_or(0).min(1 << 52));
    // A look at the same moment would see the same.
    now + wait.max(SOONEST)
}
