//! What is sent when, as text: orders in, requests out, answers in, outcomes out. Time is an argument.

mod binds;
mod evictions;
mod lanes;
mod simulation;
mod statuses;
mod telling;
mod volumes;

use super::*;
use crate::writes::order::{ClaimRef, ClaimState, Pause, PodBind, VolumeStep};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A queue, a clock, and what is under way.
struct Desk {
    queue: Queue,
    now: Instant,
    flying: Vec<(String, Ticket)>,
    /// The latest pauses that outcomes told of.
    paused: BTreeMap<JobKey, Pause>,
}

/// In an order: the latest pause that [`Desk::outcomes`] told of.
const KNOWN: Pause = 0;

impl Desk {
    fn new(lanes: usize) -> Self {
        Desk::with(Settings {
            lanes,
            event_qps: 0.0,
            ..Settings::default()
        })
    }

    fn with(settings: Settings) -> Self {
        Desk {
            queue: Queue::new(&settings),
            now: Instant::now(),
            flying: Vec::new(),
            paused: BTreeMap::new(),
        }
    }

    /// Orders what somebody decides who knows of all outcomes so far.
    fn order(&mut self, mut order: Order) {
        match &mut order {
            Order::Bind(gang) => gang.ends = gang.ends.or(self.paused.get(&gang.job).copied()),
            Order::Resume(job, pause) | Order::Release(job, pause) if *pause == KNOWN => {
                *pause = self.paused.get(job).copied().unwrap_or_default();
            }
            _ => {}
        }
        self.queue.order(order, self.now);
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
    }

    /// Lets the time pass that the first condition of a pod waits.
    fn settle(&mut self) {
        self.pass(ms(300));
    }

    /// What is sent now.
    fn sent(&mut self) -> Vec<String> {
        let mut sent = Vec::new();
        while let Some((ticket, work)) = self.queue.next(self.now) {
            let text = text(&work);
            sent.push(text.clone());
            self.flying.push((text, ticket));
        }
        sent
    }

    /// Answers the oldest request that starts like this.
    fn answer(&mut self, request: &str, answer: Answer) {
        let at = self.flying.iter().position(|(text, _)| text.starts_with(request));
        let at = at.unwrap_or_else(|| panic!("{request} is not under way, but {:?}", self.flying));
        let (_, ticket) = self.flying.remove(at);
        self.queue.answered(ticket, answer, self.now);
    }

    fn done(&mut self, request: &str) {
        self.answer(request, Answer::DONE);
    }

    fn all_done(&mut self) {
        for (_, ticket) in std::mem::take(&mut self.flying) {
            self.queue.answered(ticket, Answer::DONE, self.now);
        }
    }

    fn outcomes(&mut self) -> Vec<String> {
        let outcomes = self.queue.take_outcomes();
        for outcome in &outcomes {
            if let Outcome::BindFailed {
                job,
                paused: Some(pause),
                ..
            } = outcome
            {
                self.paused.insert(job.clone(), *pause);
            }
        }
        outcomes.iter().map(told).collect()
    }

    /// Lets time pass until something is sent, and tells how long that took.
    fn until_sent(&mut self) -> (Duration, Vec<String>) {
        let began = self.now;
        for _ in 0..1000 {
            let sent = self.sent();
            if !sent.is_empty() {
                return (self.now - began, sent);
            }
            let Some(due) = self.queue.due(self.now) else {
                break;
            };
            self.now = due.max(self.now);
        }
        panic!("nothing is sent");
    }
}

fn later() -> Answer {
    Answer::Later {
        why: "busy (503 ServiceUnavailable)".to_owned(),
        retry_after: None,
    }
}

fn refused() -> Answer {
    Answer::Refused {
        why: "no".to_owned(),
        forbidden: false,
    }
}

fn forbidden() -> Answer {
    Answer::Refused {
        why: "not allowed".to_owned(),
        forbidden: true,
    }
}

fn version(version: &str) -> Answer {
    Answer::Done {
        version: Some(version.to_owned()),
    }
}

fn text(work: &Work) -> String {
    match work {
        Work::Bind { pod, node } => format!("bind {} {node}", pod.name),
        Work::LookAtPod { pod, node } => format!("look at {} {node}", pod.name),
        Work::Prepare { step, node } => format!("prepare {}", claim_text(step, node)),
        Work::TakeBack { step, node } => format!("take back {}", claim_text(step, node)),
        Work::Mark { pod, reason } => format!("mark {} {reason}", pod.name),
        Work::Delete { pod } => format!("delete {}", pod.name),
        Work::Group(status) => format!("group {} {}", status.name, status.status),
        Work::Condition { value, first } => {
            let nominated = value.nominated.as_ref();
            let nominated = nominated.map_or_else(String::new, |node| format!(" -> {node}"));
            let first = if *first { "" } else { " again" };
            format!(
                "condition {} {}: {}{nominated}{first}",
                value.pod.name, value.reason, value.message
            )
        }
        Work::Queue(status) => format!("queue {} {}", status.name, status.allocated),
        Work::Shard(status) => format!("shard {} {:?}", status.name, status.in_use),
        Work::OpenGate(pod) => format!("open {}", pod.name),
        Work::Event(write) => {
            let event = &write.event;
            let verb = if write.exists { "raise" } else { "event" };
            format!(
                "{verb} {} {}: {} x{}",
                event.object.name, event.reason, event.message, write.count
            )
        }
    }
}

fn claim_text(step: &VolumeStep, node: &str) -> String {
    match &step.volume {
        Some(volume) => format!("{} with {volume}", step.claim.name),
        None => format!("{} on {node}", step.claim.name),
    }
}

fn told(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Bound(pod) => format!("bound {}", pod.name),
        Outcome::BindFailed { pod, job, paused } => {
            let paused = if paused.is_some() { " paused" } else { "" };
            format!("failed {} of {job}{paused}", pod.name)
        }
        Outcome::EvictFailed(pod) => format!("stays {}", pod.name),
        Outcome::GroupWritten {
            job,
            sequence,
            resource_version,
        } => format!(
            "written {job} {sequence} {}",
            resource_version.as_deref().unwrap_or("-")
        ),
    }
}

fn pod(name: &str) -> PodRef {
    PodRef {
        namespace: "ns".into(),
        name: name.into(),
        uid: format!("uid-{name}").into(),
    }
}

fn bind(name: &str, node: &str) -> PodBind {
    PodBind {
        pod: pod(name),
        node: node.into(),
        created: None,
        volumes: Vec::new(),
    }
}

/// A gang from `pod:node pod:node`.
fn gang(job: &str, members: &str) -> Order {
    let members = members.split_whitespace();
    let binds = members.map(|member| {
        let (name, node) = member.split_once(':').unwrap();
        bind(name, node)
    });
    Order::Bind(GangBind {
        job: job.into(),
        binds: binds.collect(),
        ends: None,
    })
}

fn group(job: &str, sequence: u64, status: Value) -> Order {
    Order::GroupStatus(GroupStatus {
        job: job.into(),
        namespace: "ns".into(),
        name: job.into(),
        uid: format!("uid-{job}").into(),
        sequence,
        settles: ms(25),
        status,
    })
}

fn condition(name: &str, reason: &'static str, message: &str) -> Order {
    Order::PodCondition(PodCondition {
        pod: pod(name),
        reason,
        message: message.into(),
        nominated: None,
    })
}

fn event(name: &str, warning: bool, message: &str) -> Order {
    Order::Event(Event {
        object: ObjectRef {
            api_version: "v1".into(),
            kind: "Pod",
            namespace: "ns".into(),
            name: name.into(),
            uid: format!("uid-{name}").into(),
        },
        warning,
        reason: "Because".into(),
        message: message.into(),
    })
}

fn evict(name: &str) -> Order {
    Order::Evict(Eviction {
        pod: pod(name),
        reason: reasons::PREEMPT,
    })
}

fn queue_status(name: &str, allocated: Value) -> Order {
    Order::QueueStatus(QueueStatus {
        name: name.into(),
        allocated,
    })
}
