//! Rules for lifecycle policies.

use std::collections::BTreeSet;

use volcano_api::batch::LifecyclePolicy;
use volcano_api::bus::{Action, Event};
use volcano_api::names::admission::messages;

use crate::field::{Errors, Path, go_list};

/// Events that a policy may wait for.
const EVENTS: [Event; 8] = [
    Event::Any,
    Event::PodFailed,
    Event::PodEvicted,
    Event::PodPending,
    Event::Unknown,
    Event::TaskCompleted,
    Event::TaskFailed,
    Event::JobUpdated,
];
/// What a policy may do.
const ACTIONS: [Action; 8] = [
    Action::AbortJob,
    Action::RestartJob,
    Action::RestartTask,
    Action::RestartPod,
    Action::RestartPartition,
    Action::TerminateJob,
    Action::CompleteJob,
    Action::ResumeJob,
];

/// What is wrong with a list of policies: the first policy that has a fault, and a wildcard that is not alone.
pub(super) fn fault(policies: &[LifecyclePolicy], at: &str) -> Option<String> {
    let mut seen = Seen::default();
    let first = policies.iter().find_map(|policy| seen.fault(policy, at));
    let crowded = seen.events.contains(&Event::Any) && seen.events.len() > 1;
    let faults: Vec<String> = first
        .into_iter()
        .chain(crowded.then(|| messages::ANY_EVENT_ALONE.to_owned()))
        .collect();
    if faults.is_empty() {
        return None;
    }
    let (events, actions) = (EVENTS.map(|e| e.to_string()), ACTIONS.map(|a| a.to_string()));
    Some(format!(
        "{} valid events are {}, valid actions are {};",
        occurred(&faults),
        go_list(&events),
        go_list(&actions)
    ))
}

/// What the policies so far wait for.
#[derive(Default)]
struct Seen {
    events: BTreeSet<Event>,
    exit_codes: BTreeSet<i32>,
}

impl Seen {
    fn fault(&mut self, policy: &LifecyclePolicy, at: &str) -> Option<String> {
        let events: Vec<&Event> = policy
            .events
            .iter()
            .chain(Some(&policy.event).filter(|event| !event.is_unset()))
            .collect();
        match policy.exit_code {
            Some(_) if !events.is_empty() => Some(messages::EVENT_AND_EXIT_CODE.to_owned()),
            None if events.is_empty() => Some(messages::NO_EVENT_NO_EXIT_CODE.to_owned()),
            None => self.event_fault(&events, &policy.action, at),
            Some(0) => Some(messages::EXIT_CODE_ZERO.to_owned()),
            Some(code) => (!self.exit_codes.insert(code)).then(|| format!("duplicate exitCode {code}")),
        }
    }

    fn event_fault(&mut self, events: &[&Event], action: &Action, at: &str) -> Option<String> {
        let mut own = BTreeSet::new();
        for event in events.iter().filter(|event| own.insert(**event)) {
            if !EVENTS.contains(event) {
                return Some(invalid(at, event.as_str(), messages::INVALID_EVENT));
            }
            if !ACTIONS.contains(action) {
                return Some(invalid(at, action.as_str(), messages::INVALID_ACTION));
            }
            if !self.events.insert((**event).clone()) {
                return Some(format!("duplicate event {event}  across different policy"));
            }
        }
        None
    }
}

fn invalid(at: &str, value: &str, detail: &str) -> String {
    let mut errors = Errors::default();
    errors.invalid(&Path::new(at), value, detail);
    errors.aggregate().unwrap_or_default()
}

/// Several errors in the form that users of policies know.
fn occurred(faults: &[String]) -> String {
    let lines: String = faults.iter().map(|fault| format!("\t* {fault}\n")).collect();
    let noun = if faults.len() == 1 { "error" } else { "errors" };
    format!("{} {noun} occurred:\n{lines}\n", faults.len())
}
