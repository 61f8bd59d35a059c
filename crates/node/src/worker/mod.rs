//! One pod on this node: carries out what its lifecycle decides, and reports what becomes of it.

mod containers;
mod report;

use crate::container::Isolation;
use crate::events::Recorder;
use crate::lifecycle::{Ended, Ending, PodState, State};
use crate::logs::Logs;
use crate::names::Names;
use crate::network::Switch;
use crate::objects::Needed;
use crate::probes::Verdict;
use crate::process::{End, Process};
use crate::room::{Problem, Room};
use crate::status;
use crate::unsupported;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::ResourceExt;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// A pod that starts at once is reported when it runs, and not before: most do, and each write costs all watchers.
const QUIET: SignedDuration = SignedDuration::from_millis(300);
/// Files that show objects are brought up to date this often.
const REFRESH: SignedDuration = SignedDuration::from_secs(10);
/// Waits before something that failed is tried again.
const FIRST_RETRY: SignedDuration = SignedDuration::from_millis(500);
const LONGEST_RETRY: SignedDuration = SignedDuration::from_secs(20);
/// What containers of a pod have that was removed without grace.
const GONE_GRACE: SignedDuration = SignedDuration::from_secs(1);
/// Messages of containers are not longer.
const MESSAGE_BYTES: u64 = 4096;

/// What all pods of the node have in common.
pub(crate) struct Context {
    pub client: kube::Client,
    pub directory: PathBuf,
    pub program: PathBuf,
    pub isolation: Isolation,
    pub switch: Option<Arc<Switch>>,
    pub names: Arc<Names>,
    pub logs: Arc<Logs>,
    pub recorder: Recorder,
    pub host_address: String,
    pub allocatable: BTreeMap<String, Quantity>,
    /// The host's own hosts file, for pods with its network.
    pub host_names: String,
    pub shm_bytes: u64,
}

/// What a pod's worker is told.
pub(crate) enum News {
    Pod(Arc<Pod>),
    /// The object is not there any more.
    Gone,
    /// The node stops.
    Stop {
        grace: Duration,
    },
    Ended {
        index: usize,
        run: u64,
        end: End,
    },
    Probed {
        index: usize,
        run: u64,
        verdict: Verdict,
    },
    /// A hook is done, and whether well.
    Hooked {
        index: usize,
        run: u64,
        before_stop: bool,
        passed: bool,
    },
}

struct Slot {
    run: u64,
    process: Option<Process>,
}

pub(crate) struct Worker {
    context: Arc<Context>,
    pod: Arc<Pod>,
    uid: String,
    state: PodState,
    news: mpsc::UnboundedReceiver<News>,
    own: mpsc::UnboundedSender<News>,
    room: Option<Room>,
    slots: Vec<Slot>,
    runs: u64,
    written: Option<PodStatus>,
    seen: Timestamp,
    /// Failures in a row, of setting up or of writing, and when to try again.
    failures: u32,
    retry: Option<Timestamp>,
    refresh: Option<Timestamp>,
    is_gone: bool,
    is_stopping: bool,
}

impl Worker {
    pub fn new(
        context: Arc<Context>,
        pod: Arc<Pod>,
        own: mpsc::UnboundedSender<News>,
        news: mpsc::UnboundedReceiver<News>,
    ) -> Worker {
        let now = Timestamp::now();
        let state = PodState::first(&pod, now);
        let slots = state.containers.iter().map(|_| Slot {
            run: 0,
            process: None,
        });
        let shows_objects = Needed::by_volumes(&pod) != Needed::default();
        Worker {
            uid: pod.uid().unwrap_or_default(),
            slots: slots.collect(),
            state,
            context,
            pod,
            news,
            own,
            room: None,
            runs: 0,
            written: None,
            seen: now,
            failures: 0,
            retry: None,
            refresh: shows_objects.then_some(now),
            is_gone: false,
            is_stopping: false,
        }
    }

    pub async fn run(mut self) {
        let phase = self
            .pod
            .status
            .as_ref()
            .and_then(|status| status.phase.as_deref());
        if !matches!(phase, Some("Succeeded" | "Failed")) {
            for what in unsupported::of(&self.pod) {
                self.event(true, "Unsupported", what);
            }
            self.take_pod(self.pod.clone());
            self.live().await;
            self.close().await;
        }
        if !self.is_stopping {
            self.wait_for_removal().await;
        }
    }

    /// From the first sight of the pod until nothing of it runs any more.
    async fn live(&mut self) {
        loop {
            while let Ok(news) = self.news.try_recv() {
                self.take(news);
            }
            let now = Timestamp::now();
            self.end_at_deadline(now);
            self.set_up(now).await;
            let decision = self.state.decide(now);
            if decision.is_over {
                return;
            }
            let mut acted = false;
            for index in decision.terminate {
                self.terminate(index, now);
                acted = true;
            }
            for index in decision.kill {
                self.kill(index);
                acted = true;
            }
            if self.room.is_some() {
                for index in decision.start {
                    self.start(index).await;
                    acted = true;
                }
            }
            if acted {
                continue;
            }
            self.bring_up_to_date(now).await;
            self.report(now).await;
            // What was due has just been tried: only what is still to come wakes.
            let refresh = self.refresh.filter(|_| self.room.is_some());
            let quiet = Some(later(self.seen, QUIET));
            let times = [decision.wake, self.retry, refresh, quiet];
            self.wait(times.into_iter().flatten().filter(|time| *time > now).min())
                .await;
        }
    }

    /// Waits for news, at most until a time.
    async fn wait(&mut self, until: Option<Timestamp>) {
        let news = match until {
            None => self.news.recv().await,
            Some(until) => {
                let left = until.duration_since(Timestamp::now());
                let left = Duration::try_from(left).unwrap_or_default() + Duration::from_millis(1);
                tokio::time::timeout(left, self.news.recv()).await.ok().flatten()
            }
        };
        if let Some(news) = news {
            self.take(news);
        }
    }

    fn take(&mut self, news: News) {
        match news {
            News::Pod(pod) => self.take_pod(pod),
            News::Gone => {
                self.is_gone = true;
                self.shorten(GONE_GRACE, None);
                self.end_together();
            }
            News::Stop { grace } => {
                self.is_stopping = true;
                let grace = SignedDuration::try_from(grace).unwrap_or_default();
                self.shorten(grace.min(self.own_grace()), None);
                self.end_together();
            }
            News::Ended { index, run, end } => self.take_end(index, run, end),
            News::Probed { index, run, verdict } => self.take_verdict(index, run, verdict),
            News::Hooked {
                index,
                run,
                before_stop,
                passed,
            } => {
                if self.slots.get(index).is_none_or(|slot| slot.run != run) {
                    return;
                }
                if before_stop {
                    self.signal(index);
                } else if !passed && let Some(live) = self.state.containers.get_mut(index) {
                    live.unhealthy = true;
                    let message = "PostStartHook failed".to_owned();
                    self.event(true, "FailedPostStartHook", message);
                }
            }
        }
    }

    fn take_pod(&mut self, pod: Arc<Pod>) {
        self.pod = pod;
        if self.pod.metadata.deletion_timestamp.is_some() {
            let grace = self.pod.metadata.deletion_grace_period_seconds;
            let grace = grace.map_or_else(|| self.own_grace(), SignedDuration::from_secs);
            self.shorten(grace, None);
        }
    }

    fn own_grace(&self) -> SignedDuration {
        let spec = self.pod.spec.as_ref();
        let seconds = spec.and_then(|spec| spec.termination_grace_period_seconds);
        SignedDuration::from_secs(seconds.unwrap_or(30))
    }

    /// The pod is to end; if it is ending already, no later than now said.
    fn shorten(&mut self, grace: SignedDuration, failure: Option<(String, String)>) {
        let until = later(Timestamp::now(), grace);
        match &mut self.state.ending {
            Some(ending) => {
                ending.grace = ending.grace.min(grace);
                ending.until = ending.until.min(until);
            }
            None => {
                self.state.ending = Some(Ending {
                    grace,
                    until,
                    at_once: false,
                    failure,
                });
            }
        }
        for live in &mut self.state.containers {
            if let Some(told) = &mut live.told {
                told.until = told.until.min(until);
            }
        }
    }

    /// There is no time for one after the other.
    fn end_together(&mut self) {
        if let Some(ending) = &mut self.state.ending {
            ending.at_once = true;
        }
    }

    fn end_at_deadline(&mut self, now: Timestamp) {
        if self.state.is_past_deadline(now) {
            let message = "Pod was active on the node longer than the specified deadline";
            let failure = ("DeadlineExceeded".to_owned(), message.to_owned());
            self.shorten(self.own_grace(), Some(failure));
            self.event(false, "DeadlineExceeded", message.to_owned());
        }
    }

    async fn set_up(&mut self, now: Timestamp) {
        let is_early = self.retry.is_some_and(|retry| retry > now);
        if self.room.is_some() || self.state.ending.is_some() || is_early || self.state.decide(now).is_over {
            return;
        }
        match Room::set_up(&self.context, &self.pod, &self.uid).await {
            Ok(room) => {
                self.room = Some(room);
                self.state.is_set_up = true;
                (self.failures, self.retry) = (0, None);
                self.refresh = self.refresh.map(|_| later(now, REFRESH));
            }
            Err(Problem::Refused(reason, message)) => {
                self.event(true, "FailedMount", message.clone());
                self.shorten(SignedDuration::ZERO, Some((reason.to_owned(), message)));
            }
            Err(problem) => {
                let (reason, message) = match problem {
                    Problem::Network(message) => ("FailedCreatePodSandBox", message),
                    Problem::Volumes(message) | Problem::Refused(_, message) => ("FailedMount", message),
                };
                self.event(true, reason, message.clone());
                for live in &mut self.state.containers {
                    if let State::Waiting { message: shown, .. } = &mut live.state {
                        *shown = Some(message.clone());
                    }
                }
                self.try_later(now);
            }
        }
    }

    fn try_later(&mut self, now: Timestamp) {
        self.retry = Some(later(now, retry_wait(self.failures)));
        self.failures = self.failures.saturating_add(1);
    }

    fn take_end(&mut self, index: usize, run: u64, end: End) {
        let Some(slot) = self.slots.get_mut(index).filter(|slot| slot.run == run) else {
            return;
        };
        slot.process = None;
        let name = self.state.containers[index].name.clone();
        let mut message = None;
        if let Some(room) = &self.room {
            message = read_message(&room.message_file(&name, run));
            let directory = room.run_directory(&name, run);
            // Many files may have been written; nobody waits for their removal.
            tokio::task::spawn_blocking(move || std::fs::remove_dir_all(directory));
        }
        if message.is_none() && matches!(end, End::Exited { code, .. } if code != 0) {
            message = self.last_words(index);
        }
        let (code, signal, reason) = match end {
            End::Exited { code: 0, .. } => (0, None, "Completed"),
            End::Exited { code, signal } => (code, signal, "Error"),
            End::Refused { message: problem } => {
                message = Some(problem);
                (128, None, "StartError")
            }
        };
        let live = &mut self.state.containers[index];
        live.end(Ended {
            code,
            signal,
            reason: reason.to_owned(),
            message,
            started: None,
            finished: Timestamp::now(),
            id: None,
        });
        let live = self.state.containers[index].clone();
        let is_restarted = self.state.ending.is_none() && !self.state.is_final(&live);
        if is_restarted && !live.wait().is_zero() {
            let message = status::back_off(&self.pod, &live);
            self.event(true, "BackOff", message);
        }
    }

    /// The end of the log of a container that failed without a message, if it asks for that.
    fn last_words(&self, index: usize) -> Option<String> {
        let policy = self.container(index)?.termination_message_policy?;
        let live = &self.state.containers[index];
        let wanted = policy == "FallbackToLogsOnError";
        wanted.then(|| self.context.logs.last_words(&self.uid, &live.name, live.restarts))?
    }

    fn take_verdict(&mut self, index: usize, run: u64, verdict: Verdict) {
        if self.slots.get(index).is_none_or(|slot| slot.run != run) {
            return;
        }
        let live = &mut self.state.containers[index];
        let before = (live.ready, live.unhealthy);
        match verdict {
            Verdict::Started => live.started = true,
            Verdict::Ready => live.ready = true,
            Verdict::Unready => live.ready = false,
            Verdict::Unhealthy => live.unhealthy = true,
        }
        let name = live.name.clone();
        match (verdict, before) {
            (Verdict::Unhealthy, (_, false)) => {
                self.event(
                    true,
                    "Unhealthy",
                    format!("Container {name} failed its liveness or startup probe"),
                );
            }
            (Verdict::Unready, (true, _)) => {
                self.event(
                    true,
                    "Unhealthy",
                    format!("Container {name} failed its readiness probe"),
                );
            }
            _ => {}
        }
    }

    async fn bring_up_to_date(&mut self, now: Timestamp) {
        if let (Some(room), Some(refresh)) = (&self.room, self.refresh)
            && refresh <= now
        {
            room.refresh(&self.context, &self.pod).await;
            self.refresh = Some(later(now, REFRESH));
        }
    }

    fn event(&self, is_warning: bool, reason: &'static str, message: String) {
        self.context.recorder.pod(&self.pod, is_warning, reason, message);
    }
}

fn later(time: Timestamp, wait: SignedDuration) -> Timestamp {
    time.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

fn retry_wait(failures: u32) -> SignedDuration {
    (FIRST_RETRY * (1 << failures.min(10))).min(LONGEST_RETRY)
}

/// What the container has written as its message; none if it has written nothing.
fn read_message(file: &std::path::Path) -> Option<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let file = std::fs::File::open(file).ok()?;
    file.take(MESSAGE_BYTES).read_to_end(&mut bytes).ok()?;
    (!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned())
}
