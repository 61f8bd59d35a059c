//! What is to be done for a pod: a pure function of what its containers are doing and of the time.
//!
//! ```text
//! waiting ──start──> running ──end──> ended ──back-off──> running …
//!                       └─ terminate ─ grace ─ kill ─┘
//! ```

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, ContainerState, ContainerStatus, Pod};

/// The first restart is immediate; then this long, then twice as long each time.
const FIRST_WAIT: SignedDuration = SignedDuration::from_secs(10);
const LONGEST_WAIT: SignedDuration = SignedDuration::from_secs(300);
/// A container that ran for so long begins anew.
const LONG_RUN: SignedDuration = SignedDuration::from_secs(600);

/// What a sidecar has between being told and being killed, when the main containers have used up the time of the pod.
const LAST_CHANCE: SignedDuration = SignedDuration::from_secs(2);

/// Reason of a container that was running when the node went away.
const LOST: &str = "ContainerStatusUnknown";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restart {
    Always,
    OnFailure,
    Never,
}

/// What a container is in its pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Has to succeed before the next one starts.
    Init,
    /// Starts among the init containers and stays until the main ones are done.
    Sidecar,
    Main,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Not started, and why; not to be tried before a time.
    Waiting {
        reason: String,
        message: Option<String>,
        until: Option<Timestamp>,
    },
    Running {
        since: Timestamp,
    },
    Ended(Ended),
}

/// How a run of a container ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub code: i32,
    pub signal: Option<i32>,
    pub reason: String,
    pub message: Option<String>,
    pub started: Option<Timestamp>,
    pub finished: Timestamp,
    pub id: Option<String>,
}

/// A container that was told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// When it is killed.
    pub until: Timestamp,
    pub killed: bool,
}

/// A container of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Live {
    pub name: String,
    pub role: Role,
    pub state: State,
    pub last: Option<Ended>,
    pub restarts: i32,
    /// Ends in a row without a long run between them.
    pub ends: u32,
    pub ready: bool,
    pub started: bool,
    pub id: Option<String>,
    pub told: Option<Told>,
    /// It has to end and may be started again (a failed probe or hook).
    pub unhealthy: bool,
}

impl Live {
    fn new(name: &str, role: Role, reason: &str) -> Live {
        Live {
            name: name.to_owned(),
            role,
            state: State::Waiting {
                reason: reason.to_owned(),
                message: None,
                until: None,
            },
            last: None,
            restarts: 0,
            ends: 0,
            ready: false,
            started: false,
            id: None,
            told: None,
            unhealthy: false,
        }
    }

    pub fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting { .. })
    }

    /// The container runs.
    pub fn run(&mut self, id: String, now: Timestamp) {
        if let State::Ended(ended) = &self.state {
            self.last = Some(ended.clone());
            self.restarts += 1;
        }
        self.state = State::Running { since: now };
        self.id = Some(id);
        (self.ready, self.started, self.told, self.unhealthy) = (false, false, None, false);
    }

    /// The container cannot be started before a time, and why.
    pub fn hold(&mut self, reason: &str, message: String, until: Timestamp) {
        let held = State::Waiting {
            reason: reason.to_owned(),
            message: Some(message),
            until: Some(until),
        };
        if let State::Ended(ended) = std::mem::replace(&mut self.state, held) {
            self.last = Some(ended);
            self.restarts += 1;
        }
    }

    /// The container has ended.
    pub fn end(&mut self, mut ended: Ended) {
        let since = match &self.state {
            State::Running { since } => Some(*since),
            State::Waiting { .. } | State::Ended(_) => None,
        };
        ended.started = ended.started.or(since);
        ended.id = ended.id.or_else(|| self.id.clone());
        let ran = since.map(|since| ended.finished.duration_since(since));
        self.ends = if ran.is_some_and(|ran| ran > LONG_RUN) {
            1
        } else {
            self.ends + 1
        };
        if let State::Ended(before) = &self.state {
            // It could not be started again: that counts as a run, as it does for those who restart it.
            self.last = Some(before.clone());
            self.restarts += 1;
        }
        self.state = State::Ended(ended);
        (self.ready, self.started, self.told, self.unhealthy) = (false, false, None, false);
    }

    /// How long to wait before the next start.
    pub fn wait(&self) -> SignedDuration {
        match self.ends {
            0 | 1 => SignedDuration::ZERO,
            ends => {
                let doublings = (ends - 2).min(10);
                (FIRST_WAIT * (1 << doublings)).min(LONGEST_WAIT)
            }
        }
    }

    /// When it may be started; `None` if that is not for now.
    fn due(&self) -> Option<Timestamp> {
        match &self.state {
            State::Waiting { until, .. } => Some(until.unwrap_or(Timestamp::MIN)),
            State::Running { .. } => None,
            State::Ended(ended) => Some(after(ended.finished, self.wait())),
        }
    }
}

fn after(time: Timestamp, wait: SignedDuration) -> Timestamp {
    time.saturating_add(wait).unwrap_or(Timestamp::MAX)
}

/// Why a pod ends before its containers do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    /// What its containers have from being told to being killed.
    pub grace: SignedDuration,
    /// When that is over.
    pub until: Timestamp,
    /// Sidecars do not wait for the others: the node stops, or the pod is not there any more.
    pub at_once: bool,
    /// Reason and message of the failed pod; none for one that is deleted.
    pub failure: Option<(String, String)>,
}

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodState {
    pub restart: Restart,
    pub containers: Vec<Live>,
    pub ending: Option<Ending>,
    /// Network and volumes are there.
    pub is_set_up: bool,
    pub started: Timestamp,
    /// When it is to end by its own deadline.
    pub deadline: Option<Timestamp>,
}

/// What is to be done now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    pub start: Vec<usize>,
    pub terminate: Vec<usize>,
    pub kill: Vec<usize>,
    /// When to decide again, if nothing happens before.
    pub wake: Option<Timestamp>,
    /// Nothing runs, and nothing will.
    pub is_over: bool,
}

impl Decision {
    fn at(&mut self, time: Timestamp) {
        self.wake = Some(self.wake.map_or(time, |wake| wake.min(time)));
    }
}

impl PodState {
    /// A pod as this node sees it first. What ran under an earlier agent is gone.
    pub fn first(pod: &Pod, now: Timestamp) -> PodState {
        let spec = pod.spec.as_ref();
        let restart = match spec.and_then(|spec| spec.restart_policy.as_deref()) {
            Some("Never") => Restart::Never,
            Some("OnFailure") => Restart::OnFailure,
            _ => Restart::Always,
        };
        let status = pod.status.as_ref();
        let known = |name: &str| {
            let lists = status.map(|status| (&status.init_container_statuses, &status.container_statuses));
            let (first, second) = lists?;
            let mut all = first.iter().flatten().chain(second.iter().flatten());
            all.find(|known| known.name == name)
        };
        let first_reason = first_reason(pod);
        let containers = with_roles(pod)
            .map(|(container, role)| {
                let mut live = Live::new(&container.name, role, first_reason);
                if let Some(known) = known(&container.name) {
                    resume(&mut live, known, now);
                }
                live
            })
            .collect();
        let started = status
            .and_then(|status| status.start_time.as_ref())
            .map_or(now, |time| time.0);
        let deadline = spec.and_then(|spec| spec.active_deadline_seconds);
        let mut state = PodState {
            restart,
            containers,
            ending: None,
            is_set_up: false,
            started,
            deadline: deadline.map(|seconds| after(started, SignedDuration::from_secs(seconds))),
        };
        state.begin_anew(first_reason);
        state
    }

    /// The volumes of a pod that goes on after a restart of the node are empty: its init containers run again.
    fn begin_anew(&mut self, first_reason: &str) {
        if self.is_decided() {
            return;
        }
        for live in &mut self.containers {
            if let (Role::Init, State::Ended(ended)) = (live.role, &live.state)
                && ended.code == 0
            {
                let restarts = live.restarts;
                let last = Some(ended.clone());
                *live = Live::new(&live.name, live.role, first_reason);
                (live.restarts, live.last) = (restarts, last);
            }
        }
    }

    pub fn is_any_running(&self) -> bool {
        self.containers.iter().any(Live::is_running)
    }

    /// Whether a container has ended and is not started again.
    pub fn is_final(&self, live: &Live) -> bool {
        let State::Ended(ended) = &live.state else {
            return false;
        };
        match (live.role, self.restart) {
            (Role::Sidecar, _) => false,
            (Role::Init, Restart::Always) => ended.code == 0,
            (Role::Main, Restart::Always) => false,
            (_, Restart::OnFailure) => ended.code == 0,
            (_, Restart::Never) => true,
        }
    }

    pub fn has_failed_init(&self) -> bool {
        self.containers.iter().any(|live| {
            let failed = matches!(&live.state, State::Ended(ended) if ended.code != 0);
            live.role == Role::Init && failed && self.restart == Restart::Never
        })
    }

    /// Whether all init containers are done and sidecars are started.
    pub fn is_initialized(&self) -> bool {
        self.containers.iter().all(|live| self.is_passed(live))
    }

    /// Whether a container does not keep the pod from being initialized (any more).
    pub fn is_passed(&self, live: &Live) -> bool {
        match (live.role, &live.state) {
            (Role::Main, _) => true,
            (Role::Init, State::Ended(ended)) => ended.code == 0,
            (Role::Init, _) => false,
            // A sidecar that is started again does not undo what the pod has become.
            (Role::Sidecar, _) => live.started || self.has_begun(),
        }
    }

    /// Whether a main container has run.
    fn has_begun(&self) -> bool {
        let mut mains = self.containers.iter().filter(|live| live.role == Role::Main);
        mains.any(|live| !live.is_waiting() || live.last.is_some())
    }

    /// Whether the outcome of the pod is known, sidecars apart.
    fn is_decided(&self) -> bool {
        let mut mains = self.containers.iter().filter(|live| live.role == Role::Main);
        self.has_failed_init() || mains.all(|live| self.is_final(live))
    }

    /// What is to be done now.
    pub fn decide(&self, now: Timestamp) -> Decision {
        let mut decision = Decision::default();
        let everything_ends = self.ending.is_some();
        let is_decided = self.is_decided();
        for (index, live) in self.containers.iter().enumerate() {
            let ends = live.unhealthy
                || match live.role {
                    Role::Sidecar => (everything_ends || is_decided) && self.is_turn(index),
                    Role::Init | Role::Main => everything_ends,
                };
            match live.told {
                None if live.is_running() && ends => decision.terminate.push(index),
                Some(told) if !told.killed && told.until <= now => decision.kill.push(index),
                Some(told) if !told.killed => decision.at(told.until),
                _ => {}
            }
        }
        if everything_ends || is_decided {
            decision.is_over = !self.is_any_running();
            return decision;
        }
        if let Some(deadline) = self.deadline {
            decision.at(deadline);
        }
        self.start_what_is_due(&mut decision, now);
        decision
    }

    /// Whether a sidecar may end: those that started after it, which may need it, have ended.
    fn is_turn(&self, index: usize) -> bool {
        let at_once = self.ending.as_ref().is_some_and(|ending| ending.at_once);
        at_once || !self.containers[index + 1..].iter().any(Live::is_running)
    }

    /// When a container is killed that is told to end now. Sidecars, whose turn comes late, share the grace of the pod.
    pub fn killed_at(&self, index: usize, own_grace: SignedDuration, now: Timestamp) -> Timestamp {
        let is_sidecar = self.containers[index].role == Role::Sidecar;
        let (until, grace) = match &self.ending {
            Some(ending) => (ending.until, ending.grace),
            None if is_sidecar && self.is_decided() => {
                let ends = self.containers.iter().filter_map(|live| match &live.state {
                    State::Ended(ended) if live.role != Role::Sidecar => Some(ended.finished),
                    _ => None,
                });
                (after(ends.max().unwrap_or(now), own_grace), own_grace)
            }
            None => return after(now, own_grace),
        };
        until.max(after(now, grace.min(LAST_CHANCE)))
    }

    fn start_what_is_due(&self, decision: &mut Decision, now: Timestamp) {
        let mut start = |index: usize, live: &Live| match live.due() {
            Some(due) if due <= now => decision.start.push(index),
            Some(due) => decision.at(due),
            None => {}
        };
        for (index, live) in self.containers.iter().enumerate() {
            match (live.role, &live.state) {
                (Role::Main, _) if self.is_final(live) => {}
                (Role::Main, _) => start(index, live),
                (Role::Init, State::Ended(ended)) if ended.code == 0 => {}
                (Role::Sidecar, State::Running { .. }) if live.started => {}
                (Role::Sidecar, State::Running { .. } | State::Ended(_)) if self.is_next_begun(index) => {
                    start(index, live);
                }
                // Those behind it wait for it.
                (Role::Init | Role::Sidecar, _) => {
                    start(index, live);
                    return;
                }
            }
        }
    }

    /// Whether the container after this one has been let start already: then it does not wait once more.
    fn is_next_begun(&self, index: usize) -> bool {
        match self.containers.get(index + 1) {
            Some(next) if next.role == Role::Main => self.has_begun(),
            Some(next) => !next.is_waiting(),
            None => true,
        }
    }

    /// Whether the deadline of the pod itself has come.
    pub fn is_past_deadline(&self, now: Timestamp) -> bool {
        self.ending.is_none() && self.deadline.is_some_and(|deadline| deadline <= now)
    }
}

/// Why containers wait at first, in the words of a kubelet.
fn first_reason(pod: &Pod) -> &'static str {
    let spec = pod.spec.as_ref();
    let mut first = spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    match first.next() {
        Some(_) => "PodInitializing",
        None => "ContainerCreating",
    }
}

/// The containers of a pod in the order in which they start.
pub(crate) fn with_roles(pod: &Pod) -> impl Iterator<Item = (&Container, Role)> {
    let spec = pod.spec.iter();
    spec.flat_map(|spec| {
        let first = spec.init_containers.iter().flatten().map(|container| {
            let stays = container.restart_policy.as_deref() == Some("Always");
            (container, if stays { Role::Sidecar } else { Role::Init })
        });
        first.chain(spec.containers.iter().map(|container| (container, Role::Main)))
    })
}

/// Takes over what was reported of a container.
fn resume(live: &mut Live, known: &ContainerStatus, now: Timestamp) {
    live.restarts = known.restart_count;
    live.id = known.container_id.clone();
    let ended = |state: &Option<ContainerState>| {
        let ended = state.as_ref()?.terminated.as_ref()?;
        Some(Ended {
            code: ended.exit_code,
            signal: ended.signal,
            reason: ended.reason.clone().unwrap_or_default(),
            message: ended.message.clone(),
            started: ended.started_at.as_ref().map(|time| time.0),
            finished: ended.finished_at.as_ref().map_or(now, |time| time.0),
            id: ended.container_id.clone(),
        })
    };
    live.last = ended(&known.last_state);
    let running = known.state.as_ref().and_then(|state| state.running.as_ref());
    if let Some(ended) = ended(&known.state) {
        live.state = State::Ended(ended);
        live.ends = 1;
    } else if let Some(running) = running {
        live.state = State::Ended(Ended {
            code: crate::process::KILLED,
            signal: None,
            reason: LOST.to_owned(),
            message: Some(
                "The container could not be located when the pod was terminated: the node was restarted"
                    .to_owned(),
            ),
            started: running.started_at.as_ref().map(|time| time.0),
            finished: now,
            id: live.id.clone(),
        });
        live.ends = 1;
    } else if let Some(last) = live.last.take() {
        // It waited for its next start.
        live.state = State::Ended(last);
        live.ends = 1;
    }
}

#[cfg(test)]
mod tests;
