//! Leader election with a Lease, compatible with client-go: of several instances one works, the others stand by.
//!
//! `election` decides, this file reads and writes. Whoever loses the lease does not exit: it stands by with all
//! that it knows, and is ready at once when its turn comes. As with client-go, events on the Lease tell of each change.

mod election;
#[cfg(test)]
mod tests;

use crate::client::{CALL_TIMEOUT, CallError, Client, Resource};
use crate::fence::Fence;
use election::{Election, Record, Step};
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tracing::{debug, info, warn};
use volcano_api::names::events;
use volcano_api::time::Time;

/// As client-go has it: how much longer than the retry period a candidate may wait, and so the least renew deadline.
const JITTER: f64 = 1.2;
/// A candidate looks so many times in a retry period. The lease is free its duration after the candidate saw it renewed,
/// so whoever looks seldom takes over late.
const LOOKS: u32 = 4;
/// Attempts at giving the lease back: somebody may write between reading and writing.
const RELEASE_ATTEMPTS: usize = 3;
/// How long a process waits at its start to know whether it leads.
const FIRST_LOOK: Duration = Duration::from_secs(1);
/// How long the end of the process waits for what it tells of itself.
const LAST_WORDS: Duration = Duration::from_secs(1);
const LEASES: Resource = Resource::new("coordination.k8s.io", "v1", "leases");
const EVENTS: Resource = Resource::new("", "v1", "events");

/// Who campaigns for which lease, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long others leave the lease alone after they saw it renewed.
    pub lease_duration: Duration,
    /// How long the holder tries to renew before it gives up.
    pub renew_deadline: Duration,
    /// How long between two attempts.
    pub retry_period: Duration,
    /// Namespace of the Lease.
    pub namespace: String,
    /// Name of the Lease.
    pub name: String,
    /// Who this is: different for every process.
    pub identity: String,
}

impl Settings {
    /// Checks that the settings make sense together.
    ///
    /// # Errors
    /// What is wrong, with the flag.
    pub fn validate(&self) -> Result<(), String> {
        let durations = [
            ("--leader-elect-lease-duration", self.lease_duration),
            ("--leader-elect-renew-deadline", self.renew_deadline),
            ("--leader-elect-retry-period", self.retry_period),
        ];
        if let Some((flag, _)) = durations.iter().find(|(_, duration)| duration.is_zero()) {
            return Err(format!("{flag} must be greater than zero"));
        }
        // A Lease counts whole seconds: the others would not wait for the rest.
        if Duration::from_secs(self.lease_duration.as_secs()) <= self.renew_deadline {
            return Err(
                "--leader-elect-lease-duration, in whole seconds, must be greater than \
                 --leader-elect-renew-deadline"
                    .to_owned(),
            );
        }
        if self.renew_deadline <= self.retry_period.mul_f64(JITTER) {
            return Err(format!(
                "--leader-elect-renew-deadline must be greater than --leader-elect-retry-period times {JITTER}"
            ));
        }
        let texts = [
            ("--leader-elect-resource-name", &self.name),
            ("--leader-elect-resource-namespace", &self.namespace),
        ];
        match texts.iter().find(|(_, text)| text.is_empty()) {
            Some((flag, _)) => Err(format!("{flag} must not be empty")),
            None => Ok(()),
        }
    }
}

impl Settings {
    /// How long after a renewal a write may begin: it has to be over before others may take the lease.
    fn may_write(&self) -> Duration {
        let before_others = self.lease_duration.saturating_sub(CALL_TIMEOUT);
        let before_others = before_others.max(self.lease_duration / 2);
        before_others.min(self.renew_deadline)
    }
}

/// A new identity: `<hostname>_<uuid>`.
pub fn identity() -> String {
    format!("{}_{}", hostname(), uuid::Uuid::new_v4())
}

/// The name of this machine; in a pod, that of the pod.
pub fn hostname() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let host = host.or_else(|| std::env::var("HOSTNAME").ok());
    host.unwrap_or_default().trim().to_owned()
}

/// Whether this instance leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// Another does, or nobody.
    Standby {
        /// Who does, as far as is known.
        holder: Option<String>,
    },
    /// This one does.
    Leading {
        /// How often the lease changed hands.
        transitions: u32,
        /// How often this process began to lead: tells two times apart when nobody led between them.
        term: u64,
    },
    /// The election is over: this process stops.
    Stopped,
}

/// Where an election begins.
impl Default for Leadership {
    fn default() -> Self {
        Leadership::Standby { holder: None }
    }
}

impl Leadership {
    /// There is no election: this instance leads from the beginning.
    pub fn alone() -> Self {
        Leadership::Leading {
            transitions: 0,
            term: 1,
        }
    }

    /// Whether this instance leads.
    pub fn leads(&self) -> bool {
        matches!(self, Leadership::Leading { .. })
    }
}

/// Campaigns, renews, and campaigns again after a loss, until `shutdown` becomes true or its sender is gone. Then
/// the lease is given back, so that another takes over at once.
///
/// `fence` opens and closes with the lease. The client should be one of its own, so that renewals do not wait in line
/// behind other calls at the rate limit. Stop the writers before `shutdown`: until then the lease is kept for them.
pub async fn run(
    client: Client,
    settings: Settings,
    component: String,
    fence: Fence,
    shutdown: watch::Receiver<bool>,
    state: watch::Sender<Leadership>,
) {
    let leases = Remote { client, component };
    campaign(leases, settings, fence, shutdown, state).await;
}

/// An election under way, or a process that leads without one.
pub struct Campaign {
    /// Who leads.
    pub leadership: watch::Receiver<Leadership>,
    release: watch::Sender<bool>,
    election: Option<JoinHandle<()>>,
    /// Kept so that whoever follows who leads does not take it for over.
    _alone: Option<watch::Sender<Leadership>>,
}

impl Campaign {
    /// Campaigns as the settings say; without any, this process leads. See [`run`] for the client and the fence. Events about
    /// it come from the component.
    pub fn start(settings: Option<&Settings>, client: Client, component: &str, fence: &Fence) -> Self {
        let (leads, leadership) = watch::channel(Leadership::default());
        let (release, released) = watch::channel(false);
        let (election, alone) = match settings {
            Some(settings) => {
                let (settings, fence, component) = (settings.clone(), fence.clone(), component.to_owned());
                let election = tokio::spawn(run(client, settings, component, fence, released, leads));
                (Some(election), None)
            }
            None => {
                leads.send_replace(Leadership::alone());
                (None, Some(leads))
            }
        };
        Campaign {
            leadership,
            release,
            election,
            _alone: alone,
        }
    }

    /// The term that this process begins with, if the lease is free for it: waits for the first look at the lease, and not
    /// for ever. A process without an election has none: whoever ran before it may still have requests under way.
    pub async fn first_term(&mut self) -> Option<u64> {
        self.election.as_ref()?;
        let looked = self.leadership.wait_for(|seen| *seen != Leadership::default());
        match timeout(FIRST_LOOK, looked).await {
            Ok(Ok(seen)) => match &*seen {
                Leadership::Leading { term, .. } => Some(*term),
                _ => None,
            },
            _ => None,
        }
    }

    /// Gives the lease back and ends. What writes has to have ended before.
    pub async fn end(self) {
        self.release.send_replace(true);
        if let Some(election) = self.election {
            let _ = election.await; // It ends after the release, or was never more than a task.
        }
    }
}

/// Where leases are kept.
trait Leases {
    async fn read(&self, path: &str) -> Result<Value, CallError>;
    async fn create(&self, path: &str, lease: &Value) -> Result<Value, CallError>;
    async fn update(&self, path: &str, lease: &Value) -> Result<Value, CallError>;
    /// Tells users what happened to a lease, beside everything else.
    fn tell(&self, lease: &Value, message: String) -> JoinHandle<()>;
}

/// Leases in the API server, and who tells of them.
struct Remote {
    client: Client,
    component: String,
}

impl Leases for Remote {
    async fn read(&self, path: &str) -> Result<Value, CallError> {
        self.client.get(path).await
    }

    async fn create(&self, path: &str, lease: &Value) -> Result<Value, CallError> {
        parsed(&self.client.post(path, lease.to_string().into_bytes()).await?)
    }

    async fn update(&self, path: &str, lease: &Value) -> Result<Value, CallError> {
        parsed(&self.client.put(path, lease.to_string().into_bytes()).await?)
    }

    fn tell(&self, lease: &Value, message: String) -> JoinHandle<()> {
        let (client, event) = (self.client.clone(), event(lease, &message, &self.component));
        tokio::spawn(async move {
            let path = EVENTS.within(event["metadata"]["namespace"].as_str().unwrap_or_default());
            if let Err(error) = client.post(&path, event.to_string().into_bytes()).await {
                debug!(%error, message, "an event about the lease was not written");
            }
        })
    }
}

/// What client-go tells about a Lease.
fn event(lease: &Value, message: &str, component: &str) -> Value {
    let meta = &lease["metadata"];
    let (namespace, name) = (&meta["namespace"], meta["name"].as_str().unwrap_or_default());
    let now = now_wall();
    json!({
        "apiVersion": "v1",
        "kind": "Event",
        // As client-go makes it: a number that hardly comes twice.
        "metadata": {"namespace": namespace, "name": format!("{name}.{:x}", now.unix_micros())},
        "involvedObject": {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "namespace": namespace,
            "name": name,
            "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"],
        },
        "type": events::NORMAL,
        "reason": events::LEADER_ELECTION,
        "message": message,
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "source": {"component": component},
        "reportingComponent": component,
    })
}

fn parsed(answer: &[u8]) -> Result<Value, CallError> {
    serde_json::from_slice(answer).map_err(|error| CallError::Unreadable(error.to_string()))
}

async fn campaign<L: Leases>(
    leases: L,
    settings: Settings,
    fence: Fence,
    mut shutdown: watch::Receiver<bool>,
    state: watch::Sender<Leadership>,
) {
    let (identity, name) = (&settings.identity, &settings.name);
    let election = Election::new(identity, settings.lease_duration, settings.renew_deadline);
    info!(lease = %format_args!("{}/{name}", settings.namespace), identity, "campaigning for the lease");
    let mut candidate = Candidate {
        leases,
        settings,
        fence,
        state,
        election,
        lease: None,
        told: None,
    };
    candidate.publish();
    tokio::select! {
        () = candidate.attempt_for_ever() => {}
        () = stopped(&mut shutdown) => {}
    }
    candidate.resign().await;
}

/// Until there is a reason to stop.
async fn stopped(shutdown: &mut watch::Receiver<bool>) {
    // An error means that whoever could say so is gone.
    let _ = shutdown.wait_for(|stop| *stop).await;
}

/// What was being done when a call failed, and how it failed.
struct Failed {
    doing: &'static str,
    error: CallError,
}

impl Failed {
    fn doing(doing: &'static str) -> impl FnOnce(CallError) -> Failed {
        move |error| Failed { doing, error }
    }

    /// Failures of one kind are told once.
    fn kind(&self) -> (&'static str, u16) {
        (self.doing, self.error.code())
    }
}

struct Candidate<L> {
    leases: L,
    settings: Settings,
    fence: Fence,
    state: watch::Sender<Leadership>,
    election: Election,
    /// The object as it was read or written last: what a write must find unchanged.
    lease: Option<Value>,
    /// The kind of failure that was logged last, until a call succeeds.
    told: Option<(&'static str, u16)>,
}

impl<L: Leases> Candidate<L> {
    async fn attempt_for_ever(&mut self) {
        loop {
            self.attempt_in_time().await;
            self.publish();
            sleep(self.pause()).await;
        }
    }

    /// One attempt at getting or keeping the lease; a leader does not wait for an answer beyond its deadline.
    async fn attempt_in_time(&mut self) {
        let deadline = self.election.deadline();
        let attempt = self.attempt();
        let outcome = match deadline {
            Some(deadline) => timeout_at(deadline, attempt).await.unwrap_or_else(|_| {
                Err(Failed {
                    doing: "renewing",
                    error: CallError::NoAnswer("the renew deadline has passed".to_owned()),
                })
            }),
            None => attempt.await,
        };
        self.tell(outcome);
        if self.election.expire(Instant::now()) {
            let after_s = self.settings.renew_deadline.as_secs_f64();
            warn!(after_s, "the lease could not be renewed in time");
        }
    }

    async fn attempt(&mut self) -> Result<(), Failed> {
        if let Some(record) = self.election.renewal(now_wall()) {
            match self.update(record).await {
                // Somebody else wrote: look at what.
                Err(error) if error.is_conflict() || error.is_not_found() => {}
                outcome => return outcome.map_err(Failed::doing("renewing")),
            }
        }
        let path = LEASES.object(&self.settings.namespace, &self.settings.name);
        self.lease = match self.leases.read(&path).await {
            Ok(lease) => Some(lease),
            Err(error) if error.is_not_found() => None,
            Err(error) => return Err(Failed::doing("reading")(error)),
        };
        let found = self.lease.as_ref().map(Record::of);
        match self.election.decide(found, Instant::now(), now_wall()) {
            Step::Create(record) => self.create(record).await.map_err(Failed::doing("creating")),
            Step::Update(record) => match self.update(record).await {
                // Another candidate was faster; the next attempt sees who.
                Err(error) if error.is_conflict() => Ok(()),
                outcome => outcome.map_err(Failed::doing("taking")),
            },
            Step::Wait => Ok(()),
        }
    }

    async fn create(&mut self, record: Record) -> Result<(), CallError> {
        let mut lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"namespace": self.settings.namespace, "name": self.settings.name},
        });
        record.write(&mut lease);
        let path = LEASES.within(&self.settings.namespace);
        let sent = Instant::now();
        let answer = match self.leases.create(&path, &lease).await {
            // Another candidate was faster; the next attempt sees who.
            Err(error) if error.is_conflict() => return Ok(()),
            answer => answer?,
        };
        self.written(record, answer, sent);
        Ok(())
    }

    async fn update(&mut self, record: Record) -> Result<(), CallError> {
        let Some(mut lease) = self.lease.clone() else {
            return Ok(());
        };
        record.write(&mut lease);
        let path = LEASES.object(&self.settings.namespace, &self.settings.name);
        let sent = Instant::now();
        let answer = self.leases.update(&path, &lease).await?;
        self.written(record, answer, sent);
        Ok(())
    }

    fn written(&mut self, record: Record, answer: Value, sent: Instant) {
        self.lease = Some(answer);
        self.election.written(record, sent, Instant::now());
        self.fence.extend(sent.into_std(), self.settings.may_write());
    }

    /// How long until the next attempt. A leader keeps time, and looks again when its own has run out. A candidate looks
    /// when the lease becomes free at the latest; candidates do not come all at once.
    fn pause(&self) -> Duration {
        let (period, now) = (self.settings.retry_period, Instant::now());
        if let Some(deadline) = self.election.deadline() {
            return period.min(deadline.saturating_duration_since(now));
        }
        let look = period / LOOKS;
        let apart = look.mul_f64(fastrand::f64() / 4.0);
        match self.election.free_at().filter(|at| *at > now) {
            Some(at) => look.min(at - now) + apart,
            None => look + apart,
        }
    }

    /// Tells everybody who leads, if that has changed; without the lease nothing is written any more.
    fn publish(&mut self) {
        let now = self.election.leadership();
        if !now.leads() {
            self.fence.close();
        }
        let before = self.state.borrow().clone();
        if now == before {
            return;
        }
        match &now {
            Leadership::Leading { transitions, .. } => {
                info!(transitions, "became leader");
                drop(self.say("became leader")); // It goes on by itself.
            }
            Leadership::Standby { holder } => {
                let holder = holder.as_deref().unwrap_or("nobody");
                if before.leads() {
                    warn!(holder, "stopped leading");
                    drop(self.say("stopped leading"));
                } else {
                    info!(holder, "the leader changed");
                }
            }
            Leadership::Stopped => {}
        }
        self.state.send_replace(now);
    }

    fn tell(&mut self, outcome: Result<(), Failed>) {
        match outcome {
            Ok(()) => {
                if self.told.take().is_some() {
                    info!("the lease can be reached again");
                }
            }
            Err(failed) => {
                if self.told.replace(failed.kind()) != Some(failed.kind()) {
                    let hint = self.hint(&failed.error);
                    let Failed { doing, error } = failed;
                    warn!(doing, %error, hint, "the lease cannot be reached; trying again");
                }
            }
        }
    }

    /// What to do about a failure.
    fn hint(&self, error: &CallError) -> String {
        let namespace = &self.settings.namespace;
        if error.is_forbidden() {
            format!("grant get, create and update on leases in the namespace {namespace}")
        } else if error.is_not_found() {
            format!(
                "create the namespace {namespace}, or name another with --leader-elect-resource-namespace"
            )
        } else {
            "check that the API server is up".to_owned()
        }
    }

    /// Tells users what this candidate did.
    fn say(&self, what: &str) -> Option<JoinHandle<()>> {
        let message = format!("{} {what}", self.settings.identity);
        Some(self.leases.tell(self.lease.as_ref()?, message))
    }

    /// Gives the lease back.
    async fn resign(&mut self) {
        self.fence.close();
        let led = self.state.borrow().leads();
        let in_time = self.settings.renew_deadline;
        match timeout(in_time, self.give_back()).await {
            Ok(Ok(true)) => info!("the lease is given back"),
            Ok(Ok(false)) => {}
            Ok(Err(error)) => warn!(%error, "the lease could not be given back"),
            Err(_) => warn!("the lease could not be given back in time"),
        }
        self.state.send_replace(Leadership::Stopped);
        // After the lease: others wait for that.
        if let Some(told) = led.then(|| self.say("stopped leading")).flatten() {
            let _ = timeout(LAST_WORDS, told).await; // Nothing depends on it.
        }
    }

    /// Whether it was ours. The lease is read anew: an answer may have been on its way.
    async fn give_back(&mut self) -> Result<bool, CallError> {
        let path = LEASES.object(&self.settings.namespace, &self.settings.name);
        for attempt in 1.. {
            let mut lease = match self.leases.read(&path).await {
                Err(error) if error.is_not_found() => return Ok(false),
                lease => lease?,
            };
            let Some(record) = self.election.release(&Record::of(&lease), now_wall()) else {
                return Ok(false);
            };
            record.write(&mut lease);
            match self.leases.update(&path, &lease).await {
                Err(error) if error.is_conflict() && attempt < RELEASE_ATTEMPTS => {}
                outcome => return outcome.map(|_| true),
            }
        }
        Ok(false)
    }
}

fn now_wall() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time::from_unix_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
