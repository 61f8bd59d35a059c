//! A whole controller against a small API server, with crashes between any two writes, watches that lag and a
//! scheduler that writes to the same objects.
//!
//! What happens is a list of steps, so a failure shrinks to the few steps that matter.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use volcano_api::bus::Action;
use volcano_api::names::queues;

use super::*;
use crate::testing::merge;

const NAMES: [&str; 6] = ["root", "a", "b", "c", "d", "e"];
/// The first queue that is not `root`.
const FIRST: usize = 1;

/// Something that happens.
#[derive(Clone, Debug)]
enum Step {
    /// A user gives an order.
    Order(usize, Action),
    /// A user moves a queue.
    Move(usize, usize),
    /// A PodGroup comes or goes.
    Group(usize, usize, bool),
    /// The scheduler writes its part of a queue's status.
    Schedule(usize),
    /// A watch delivers an event: of queues, PodGroups or Commands.
    Deliver(usize),
    /// The controller looks at a queue, and stops after so many writes.
    Work(usize),
    /// The controller starts anew.
    Crash,
    /// Time passes.
    Wait,
}

fn step() -> impl Strategy<Value = Step> {
    let any_queue = || 0..NAMES.len();
    prop_oneof![
        3 => (any_queue(), any::<bool>()).prop_map(|(queue, open)| {
            Step::Order(queue, if open { Action::OpenQueue } else { Action::CloseQueue })
        }),
        1 => (FIRST..NAMES.len(), any_queue()).prop_map(|(queue, parent)| Step::Move(queue, parent)),
        2 => (any_queue(), 0..3usize, any::<bool>()).prop_map(|(queue, group, there)| Step::Group(queue, group, there)),
        1 => any_queue().prop_map(Step::Schedule),
        8 => (0..3usize).prop_map(Step::Deliver),
        8 => (0..4usize).prop_map(Step::Work),
        1 => Just(Step::Crash),
        1 => Just(Step::Wait),
    ]
}

/// What a watch tells.
enum News {
    Queue(Box<Queue>),
    Group(Box<PodGroup>),
    GroupGone(String),
    Command(Box<Command>),
    CommandGone(String),
}

#[derive(Default)]
struct World {
    version: u64,
    now: i64,
    queues: BTreeMap<String, Queue>,
    groups: BTreeMap<String, PodGroup>,
    commands: BTreeMap<String, Command>,
    watches: [VecDeque<News>; 3],
    // The controller.
    index: Index,
    to_do: BTreeSet<String>,
    later: BTreeSet<String>,
    // What users know.
    last_order: BTreeMap<String, Action>,
    refused: BTreeSet<String>,
    moved: BTreeMap<String, String>,
    scheduled: BTreeMap<String, i64>,
}

impl World {
    fn new() -> Self {
        let mut world = World::default();
        for name in NAMES {
            let mut queue = queue(name, "");
            queue.spec.parent = String::new();
            world.store(queue);
        }
        world
    }

    fn store(&mut self, mut queue: Queue) {
        self.version += 1;
        queue.metadata.resource_version = self.version.to_string();
        self.queues.insert(queue.metadata.name.clone(), queue.clone());
        self.watches[0].push_back(News::Queue(queue.into()));
    }

    fn happen(&mut self, step: &Step) {
        match step {
            Step::Order(queue, action) => {
                self.version += 1;
                let name = format!("c{:04}", self.version);
                let command = command(&name, NAMES[*queue], action.as_str(), self.now);
                self.last_order.insert(NAMES[*queue].to_owned(), action.clone());
                self.refused.remove(NAMES[*queue]);
                self.commands.insert(command.metadata.key(), command.clone());
                self.watches[2].push_back(News::Command(command.into()));
            }
            Step::Move(queue, parent) => {
                let mut queue = self.queues[NAMES[*queue]].clone();
                queue.spec.parent = NAMES[*parent].to_owned();
                self.moved
                    .insert(queue.metadata.name.clone(), queue.spec.parent.clone());
                self.store(queue);
            }
            Step::Group(queue, group, there) => {
                let name = format!("{}-{group}", NAMES[*queue]);
                if *there {
                    let phase = ["Pending", "Running", "Inqueue"][self.version as usize % 3];
                    let group = self::group(&name, NAMES[*queue], phase);
                    self.groups.insert(group.metadata.key(), group.clone());
                    self.watches[1].push_back(News::Group(group.into()));
                } else if self.groups.remove(&format!("ns/{name}")).is_some() {
                    self.watches[1].push_back(News::GroupGone(format!("ns/{name}")));
                }
            }
            Step::Schedule(queue) => {
                let cpu = self.scheduled.entry(NAMES[*queue].to_owned()).or_default();
                *cpu += 1;
                let allocated = json!({"cpu": cpu.to_string()});
                let mut queue = self.queues[NAMES[*queue]].clone();
                queue.status.allocated = serde_json::from_value(allocated).expect("amounts");
                self.store(queue);
            }
            Step::Deliver(kind) => self.deliver(*kind),
            Step::Work(writes) => self.work(*writes),
            Step::Crash => self.crash(),
            Step::Wait => self.now += 7,
        }
    }

    fn deliver(&mut self, kind: usize) {
        let Some(news) = self.watches[kind].pop_front() else {
            return;
        };
        self.learn(news);
    }

    fn learn(&mut self, news: News) {
        match news {
            News::Queue(queue) => self.index.put_queue(*queue),
            News::Group(group) => self.index.put_group(&group),
            News::GroupGone(key) => self.index.remove_group(&key),
            News::Command(command) => self.index.put_command(*command),
            News::CommandGone(key) => self.index.remove_command(&key),
        }
        self.to_do.extend(self.index.take_changed());
    }

    /// A new process: it lists everything, and knows nothing else.
    fn crash(&mut self) {
        self.index = Index::default();
        self.to_do.clear();
        self.later.clear();
        self.watches = Default::default();
        let queues: Vec<_> = self
            .queues
            .values()
            .cloned()
            .map(Box::new)
            .map(News::Queue)
            .collect();
        let groups: Vec<_> = self
            .groups
            .values()
            .cloned()
            .map(Box::new)
            .map(News::Group)
            .collect();
        let commands: Vec<_> = self
            .commands
            .values()
            .cloned()
            .map(Box::new)
            .map(News::Command)
            .collect();
        for news in queues.into_iter().chain(groups).chain(commands) {
            self.learn(news);
        }
    }

    /// Looks at one queue. When there are more writes than `limit`, the process dies.
    fn work(&mut self, limit: usize) {
        let Some(name) = self.to_do.pop_first() else {
            return;
        };
        let plan = self.index.plan(&name, Time::from_unix_seconds(self.now));
        if plan.again_at.is_some() {
            self.later.insert(name.clone());
        }
        for (done, write) in plan.steps.iter().flatten().enumerate() {
            if done == limit {
                return self.crash();
            }
            if !self.write(write) {
                // Decided on what is no longer so: it is looked at again when the news is there.
                self.to_do.insert(name);
                return;
            }
        }
    }

    /// Carries a write out. Says whether it was done.
    fn write(&mut self, write: &Write) -> bool {
        match write {
            Write::Patch {
                target,
                patch,
                status,
                resource_version,
            } => {
                let queue = &self.queues[&target.name];
                assert_eq!(target.uid, queue.metadata.uid);
                let is = &queue.metadata.resource_version;
                if resource_version.as_ref().is_some_and(|wanted| wanted != is) {
                    return false;
                }
                let state = &queue.status.state;
                let is_editable = matches!(state, QueueState::Unset | QueueState::Open | QueueState::Closed);
                assert!(*status || is_editable, "admission refuses it while it is {state}");
                let mut value = serde_json::to_value(queue).expect("writable");
                for (part, change) in patch.as_object().expect("an object") {
                    assert_eq!(*status, part == "status", "each part has its own place");
                    assert!(change.get("allocated").is_none(), "that is the scheduler's");
                    merge(&mut value[part], change);
                }
                self.store(serde_json::from_value(value).expect("readable"));
            }
            Write::Delete { target, .. } => {
                let key = format!("{}/{}", target.namespace, target.name);
                if self.commands.remove(&key).is_some() {
                    self.watches[2].push_back(News::CommandGone(key));
                }
            }
            Write::Event(event) => {
                if event.warning {
                    self.refused.insert(event.about.name.clone());
                }
            }
            Write::Create { .. } => panic!("a queue controller makes nothing"),
        }
        true
    }

    /// Lets everything come to rest.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            (0..3).for_each(|kind| {
                while !self.watches[kind].is_empty() {
                    self.deliver(kind);
                }
            });
            if self.to_do.is_empty() {
                if self.later.is_empty() {
                    return;
                }
                self.now += 1;
                self.to_do = std::mem::take(&mut self.later);
            }
            self.work(usize::MAX);
        }
        panic!("the controller does not come to rest");
    }

    fn parent(&self, queue: &Queue) -> Option<&Queue> {
        self.queues.get(&queue.spec.parent)
    }

    /// Whether a queue is above itself.
    fn in_circle(&self, queue: &Queue) -> bool {
        let mut above = self.parent(queue);
        for _ in NAMES {
            match above {
                Some(found) if found.metadata.name == queue.metadata.name => return true,
                Some(found) => above = self.parent(found),
                None => return false,
            }
        }
        false
    }

    fn check(&self) {
        for (name, queue) in &self.queues {
            assert!(
                !self.has_orders(name) || self.waits(queue),
                "orders are left: {:?}",
                self.commands.keys()
            );
            assert_eq!(
                show(&self.index.plan(name, Time::from_unix_seconds(self.now))),
                none(),
                "{name} is at rest"
            );
            self.check_numbers(name, queue);
            self.check_state(name, queue);
        }
    }

    fn has_orders(&self, name: &str) -> bool {
        let mut targets = self
            .commands
            .values()
            .filter_map(|command| command.target.as_ref());
        targets.any(|target| target.name == name)
    }

    /// Whether a queue that its parent was closing is to be the user's: it cannot be edited before it is closed.
    fn waits(&self, queue: &Queue) -> bool {
        let name = &queue.metadata.name;
        let is_marked = queue.metadata.annotation(CLOSED_BY_PARENT) == Some("true");
        queue.status.state == QueueState::Closing && is_marked && self.has_orders(name)
    }

    fn check_numbers(&self, name: &str, queue: &Queue) {
        let mut counts = Counts::default();
        for group in self.groups.values().filter(|group| group.spec.queue == name) {
            counts.add(&group.status.phase, 1);
        }
        assert_eq!(Counts::of(&queue.status), counts, "{name}");
        let cpu = queue.status.allocated.get("cpu").map_or(0, |cpu| cpu.value());
        assert_eq!(cpu, self.scheduled.get(name).copied().unwrap_or(0), "{name}");
        if queue.status.state == QueueState::Closing {
            assert!(counts.total() > 0, "{name} has nothing to wait for");
        }
    }

    fn check_state(&self, name: &str, queue: &Queue) {
        let closed = is_closed(&queue.status.state);
        assert!(
            closed || queue.status.state == QueueState::Open,
            "{name}: {}",
            queue.status.state
        );
        if name == queues::ROOT {
            return assert!(!closed, "root is open");
        }
        let moved = self.moved.get(name).map_or(queues::ROOT, String::as_str);
        assert_eq!(queue.spec.parent, moved, "{name} is where its users put it");
        let parent = self.parent(queue).expect("every queue has a parent");
        let held = is_closed(&parent.status.state) && !self.in_circle(queue);
        assert!(!held || closed, "{name} is open below {}", parent.metadata.name);
        let by_parent = queue.metadata.annotation(CLOSED_BY_PARENT) == Some("true");
        if self.waits(queue) {
            let last = self.last_order.get(name);
            return assert_eq!(last, Some(&Action::CloseQueue), "{name} waits to be closed");
        }
        assert!(
            !by_parent || closed && held,
            "{name} says that its parent closed it"
        );
        match self.last_order.get(name) {
            Some(Action::CloseQueue) => assert!(closed && !by_parent, "{name} was closed last"),
            Some(_) => assert!(
                !closed || by_parent || self.refused.contains(name),
                "{name} was opened last"
            ),
            None => assert!(!closed || by_parent, "nobody closed {name}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn a_tree_of_queues_comes_to_rest_as_its_users_ordered(steps in proptest::collection::vec(step(), 0..120)) {
        let mut world = World::new();
        for step in &steps {
            world.happen(step);
        }
        world.settle();
        world.check();
        // A new process finds nothing to do.
        world.crash();
        world.settle();
        world.check();
    }
}
