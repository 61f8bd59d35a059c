//! What is known of all queues, kept up to date change by change.
//!
//! A cluster has a hundred thousand PodGroups and a handful of queues, so the PodGroups of a queue are counted as they
//! come and go, and never walked over.

use std::collections::{BTreeMap, BTreeSet};

use volcano_api::bus::Command;
use volcano_api::meta::Resource as _;
use volcano_api::names::queues;
use volcano_api::scheduling::{PodGroup, PodGroupPhase, Queue, QueueState};
use volcano_api::time::Time;

use super::decide::{Parent, View, decide, delete, until};
use super::{Counts, is_closed};
use crate::write::Plan;

/// What is known of all queues. Only an index that has seen every Queue, PodGroup and Command may be asked for plans.
#[derive(Default)]
pub struct Index {
    queues: BTreeMap<String, Entry>,
    /// Queue and phase of each PodGroup, by `namespace/name`.
    groups: BTreeMap<String, (String, PodGroupPhase)>,
    /// Queue of each Command, and its place there, by `namespace/name`.
    commands: BTreeMap<String, (String, CommandKey)>,
    changed: BTreeSet<String>,
}

/// Orders are carried out as they were given: by time, then by name.
type CommandKey = (Option<Time>, String);

/// What is known under the name of a queue, whether there is such a queue or not.
#[derive(Default)]
struct Entry {
    queue: Option<Queue>,
    children: BTreeSet<String>,
    counts: Counts,
    commands: BTreeMap<CommandKey, Command>,
}

impl Index {
    /// A queue is there, or has changed.
    pub fn put_queue(&mut self, queue: Queue) {
        let name = queue.metadata.name.clone();
        let (state, parent) = (queue.status.state.clone(), parent(&queue).to_owned());
        let before = self.entry(&name).queue.replace(queue);
        let before = before.map(|before| (before.status.state.clone(), self::parent(&before).to_owned()));
        if before.as_ref().is_none_or(|(_, before)| *before != parent) {
            if let Some((_, before)) = &before {
                self.leave(before, &name);
            }
            if !parent.is_empty() {
                self.entry(&parent).children.insert(name.clone());
            }
            self.look_below(&name);
        } else if before.is_some_and(|(before, _)| before != state) {
            self.look_at_children(&name);
        }
        self.changed.insert(name);
    }

    /// A queue is gone.
    pub fn remove_queue(&mut self, name: &str) {
        let Some(queue) = self.queues.get_mut(name).and_then(|entry| entry.queue.take()) else {
            return;
        };
        self.look_below(name);
        self.leave(parent(&queue), name);
        self.tidy(name);
    }

    /// A PodGroup is there, or has changed.
    pub fn put_group(&mut self, group: &PodGroup) {
        let queue = match group.spec.queue.as_str() {
            "" => queues::DEFAULT,
            queue => queue,
        };
        let key = group.metadata.key();
        let phase = group.status.phase.clone();
        let known = self.groups.get(&key);
        if known.is_some_and(|(known_queue, known_phase)| known_queue == queue && *known_phase == phase) {
            return;
        }
        self.remove_group(&key);
        self.count(queue, &phase, 1);
        self.groups.insert(key, (queue.to_owned(), phase));
    }

    /// The PodGroup `namespace/name` is gone.
    pub fn remove_group(&mut self, key: &str) {
        if let Some((queue, phase)) = self.groups.remove(key) {
            self.count(&queue, &phase, -1);
            self.tidy(&queue);
        }
    }

    /// A Command is there. Those that are not for a queue are not looked at.
    pub fn put_command(&mut self, command: Command) {
        let Some(target) = &command.target else { return };
        if target.kind != Queue::KIND.kind || target.api_version != Queue::KIND.api_version() {
            return;
        }
        let queue = target.name.clone();
        let key = command.metadata.key();
        self.remove_command(&key);
        let place = (command.metadata.creation_timestamp, key.clone());
        self.commands.insert(key, (queue.clone(), place.clone()));
        self.entry(&queue).commands.insert(place, command);
        self.changed.insert(queue);
    }

    /// The Command `namespace/name` is gone.
    pub fn remove_command(&mut self, key: &str) {
        let Some((queue, place)) = self.commands.remove(key) else {
            return;
        };
        self.entry(&queue).commands.remove(&place);
        self.tidy(&queue);
        self.changed.insert(queue);
    }

    /// The queues that have to be looked at since something changed for them; each is named once.
    pub fn take_changed(&mut self) -> Vec<String> {
        std::mem::take(&mut self.changed).into_iter().collect()
    }

    /// The oldest order for a queue.
    pub fn order(&self, name: &str) -> Option<&Command> {
        self.queues.get(name)?.commands.values().next()
    }

    /// PodGroups by phase in a queue, if there is such a queue.
    pub fn counts_of(&self, name: &str) -> Option<Counts> {
        let entry = self.queues.get(name)?;
        entry.queue.as_ref().map(|_| entry.counts)
    }

    /// PodGroups by phase for each queue that there is: the gauges.
    pub fn counts(&self) -> impl Iterator<Item = (&str, Counts)> {
        let existing = self.queues.iter().filter(|(_, entry)| entry.queue.is_some());
        existing.map(|(name, entry)| (name.as_str(), entry.counts))
    }

    /// Names that there may be something to do for: of queues, and of orders for queues that are not there.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let known = self.queues.iter();
        let known = known.filter(|(_, entry)| entry.queue.is_some() || !entry.commands.is_empty());
        known.map(|(name, _)| name.as_str())
    }

    /// What is to be done for the queue of this name.
    pub fn plan(&self, name: &str, now: Time) -> Plan {
        let Some(entry) = self.queues.get(name) else {
            return Plan::default();
        };
        let uid = entry.queue.as_ref().map(|queue| queue.metadata.uid.as_str());
        let (commands, strays): (Vec<_>, Vec<_>) = entry
            .commands
            .values()
            .partition(|command| uid.is_some_and(|uid| is_for(command, uid)));
        let mut plan = match &entry.queue {
            Some(queue) if queue.metadata.deletion_timestamp.is_none() => {
                let view = View {
                    queue,
                    parent: self.parent_of(queue),
                    counts: entry.counts,
                    commands,
                };
                decide(&view, now)
            }
            _ => Plan::default(),
        };
        // Orders for a queue that is not there may have come before it. Later they are of no use to anybody.
        for command in strays {
            match until(command).filter(|until| *until > now) {
                Some(until) => plan.wake(until),
                None => plan.then(vec![delete(command)]),
            }
        }
        plan
    }

    /// How the parent bears on a queue. Queues above each other in a circle do not, or none could ever be opened.
    fn parent_of(&self, queue: &Queue) -> Parent {
        let name = parent(queue);
        if name == queues::ROOT || self.is_in_circle(queue) {
            return Parent::Open;
        }
        match self.queue(name).map(|parent| &parent.status.state) {
            Some(QueueState::Open) => Parent::Open,
            Some(state) if is_closed(state) => Parent::Closed,
            _ => Parent::Silent,
        }
    }

    fn is_in_circle(&self, queue: &Queue) -> bool {
        let mut above = parent(queue);
        for _ in 0..self.queues.len() {
            if above == queue.metadata.name {
                return true;
            }
            match self.queue(above) {
                Some(next) => above = parent(next),
                None => return false,
            }
        }
        false
    }

    /// The queue of this name.
    pub fn queue(&self, name: &str) -> Option<&Queue> {
        self.queues.get(name)?.queue.as_ref()
    }

    fn entry(&mut self, name: &str) -> &mut Entry {
        self.queues.entry(name.to_owned()).or_default()
    }

    fn count(&mut self, queue: &str, phase: &PodGroupPhase, by: i32) {
        self.entry(queue).counts.add(phase, by);
        self.changed.insert(queue.to_owned());
    }

    fn look_at_children(&mut self, name: &str) {
        if let Some(entry) = self.queues.get(name) {
            self.changed.extend(entry.children.iter().cloned());
        }
    }

    /// Has all queues below one looked at: who is above whom may have changed for any of them.
    fn look_below(&mut self, name: &str) {
        let mut seen = BTreeSet::from([name]);
        let mut next = vec![name];
        while let Some(name) = next.pop() {
            let children = self.queues.get(name).map(|entry| &entry.children);
            for child in children.into_iter().flatten() {
                if seen.insert(child) {
                    next.push(child);
                }
            }
        }
        self.changed.extend(seen.into_iter().map(str::to_owned));
    }

    /// A queue is no longer a child of `parent`.
    fn leave(&mut self, parent: &str, name: &str) {
        if let Some(entry) = self.queues.get_mut(parent) {
            entry.children.remove(name);
            self.tidy(parent);
        }
    }

    /// Forgets a name that nothing is known under any more.
    fn tidy(&mut self, name: &str) {
        let empty = |entry: &Entry| {
            entry.queue.is_none()
                && entry.children.is_empty()
                && entry.commands.is_empty()
                && entry.counts == Counts::default()
        };
        if self.queues.get(name).is_some_and(empty) {
            self.queues.remove(name);
        }
    }
}

#[cfg(test)]
impl Index {
    /// How many things are remembered.
    pub fn size(&self) -> usize {
        self.queues.len() + self.groups.len() + self.commands.len()
    }
}

/// The queue above; empty for `root`.
fn parent(queue: &Queue) -> &str {
    match queue.spec.parent.as_str() {
        _ if queue.metadata.name == queues::ROOT => "",
        "" => queues::ROOT,
        parent => parent,
    }
}

/// Whether an order is for this incarnation of a queue.
fn is_for(command: &Command, uid: &str) -> bool {
    let target = command.target.as_ref();
    target.is_some_and(|target| target.uid.is_empty() || target.uid == uid)
}
