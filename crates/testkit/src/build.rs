//! Builders of the objects that a scheduler reads, each turned into a [`Delta`] with `into()`.
//!
//! ```
//! use volcano_engine::model::delta::Delta;
//! use volcano_testkit::build;
//!
//! let deltas: Vec<Delta> = vec![
//!     build::node("n1").resource("cpu", "8").label("zone", "a").into(),
//!     build::queue("research").weight(2).into(),
//!     build::pod_group("ns", "train").queue("research").min_member(2).into(),
//!     build::pod("ns", "train-worker-0").group("train").request("cpu", "1").into(),
//! ];
//! assert_eq!(deltas.len(), 4);
//! ```

use volcano_api::core::{
    Container, Meta, Node, NodeCondition, OwnerReference, Pod, PodPhase, PriorityClass, Taint, Toleration,
};
use volcano_api::meta::Resource as _;
use volcano_api::names::annotations;
use volcano_api::quantity::Quantity;
use volcano_api::scheduling::{PodGroup, PodGroupPhase, Queue, QueueState};
use volcano_api::time::Time;
use volcano_engine::model::delta::Delta;

/// The name under which Volcano's scheduler goes.
pub const SCHEDULER_NAME: &str = "volcano";

/// Reads an amount such as `500m` or `2Gi`.
///
/// # Panics
/// When the text is no quantity.
#[must_use]
pub fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap_or_else(|error| unreadable(text, &error))
}

#[allow(clippy::panic, reason = "a test that is written wrongly has to stop")]
fn unreadable(text: &str, error: &dyn std::error::Error) -> Quantity {
    panic!("{text:?} is no quantity: {error}")
}

fn meta(namespace: &str, name: &str) -> Meta {
    Meta {
        name: name.to_owned(),
        namespace: namespace.to_owned(),
        uid: if namespace.is_empty() {
            name.to_owned()
        } else {
            format!("{namespace}-{name}")
        },
        ..Meta::default()
    }
}

/// Builds a node.
#[derive(Clone, Debug)]
pub struct NodeBuilder(Node);

/// A node that is ready, has room for 110 pods and nothing else.
#[must_use]
pub fn node(name: &str) -> NodeBuilder {
    let mut node = Node {
        metadata: meta("", name),
        ..Node::default()
    };
    node.status.conditions = vec![NodeCondition {
        kind: "Ready".to_owned(),
        status: "True".to_owned(),
    }];
    NodeBuilder(node).resource("pods", "110")
}

impl NodeBuilder {
    /// Has this much, all of it for pods.
    #[must_use]
    pub fn resource(mut self, name: &str, amount: &str) -> Self {
        let amount = quantity(amount);
        self.0.status.capacity.insert(name.to_owned(), amount);
        self.0.status.allocatable.insert(name.to_owned(), amount);
        self
    }

    /// Carries a label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.0.metadata.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Keeps away pods that do not tolerate it.
    #[must_use]
    pub fn taint(mut self, key: &str, value: &str, effect: &str) -> Self {
        self.0.spec.taints.push(Taint {
            key: key.to_owned(),
            value: value.to_owned(),
            effect: effect.to_owned(),
        });
        self
    }

    /// The node.
    #[must_use]
    pub fn build(self) -> Node {
        self.0
    }
}

impl From<NodeBuilder> for Delta {
    fn from(builder: NodeBuilder) -> Self {
        Delta::Node(Box::new(builder.0))
    }
}

/// Builds a queue.
#[derive(Clone, Debug)]
pub struct QueueBuilder(Queue);

/// An open queue of weight 1.
#[must_use]
pub fn queue(name: &str) -> QueueBuilder {
    let mut queue = Queue::named("", name);
    queue.metadata.uid = name.to_owned();
    queue.spec.weight = 1;
    queue.status.state = QueueState::Open;
    QueueBuilder(queue)
}

impl QueueBuilder {
    /// Weight in the division of the cluster.
    #[must_use]
    pub fn weight(mut self, weight: i32) -> Self {
        self.0.spec.weight = weight;
        self
    }

    /// The queue that this one is part of.
    #[must_use]
    pub fn parent(mut self, parent: &str) -> Self {
        self.0.spec.parent = parent.to_owned();
        self
    }

    /// The most that it may ever use of a resource.
    #[must_use]
    pub fn capability(mut self, name: &str, amount: &str) -> Self {
        self.0.spec.capability.insert(name.to_owned(), quantity(amount));
        self
    }

    /// The queue.
    #[must_use]
    pub fn build(self) -> Queue {
        self.0
    }
}

impl From<QueueBuilder> for Delta {
    fn from(builder: QueueBuilder) -> Self {
        Delta::Queue(Box::new(builder.0))
    }
}

/// A priority class.
#[must_use]
pub fn priority_class(name: &str, value: i32) -> Delta {
    Delta::PriorityClass(PriorityClass {
        metadata: meta("", name),
        value,
        ..PriorityClass::default()
    })
}

/// Builds a PodGroup.
#[derive(Clone, Debug)]
pub struct PodGroupBuilder(PodGroup);

/// A PodGroup that waits to be admitted to the default queue, with one member at least.
#[must_use]
pub fn pod_group(namespace: &str, name: &str) -> PodGroupBuilder {
    let mut group = PodGroup::named(namespace, name);
    group.metadata.uid = format!("{namespace}-{name}");
    group.spec.min_member = 1;
    group.status.phase = PodGroupPhase::Pending;
    PodGroupBuilder(group)
}

impl PodGroupBuilder {
    /// The queue that it waits in.
    #[must_use]
    pub fn queue(mut self, queue: &str) -> Self {
        self.0.spec.queue = queue.to_owned();
        self
    }

    /// Pods that must be placed for any to start.
    #[must_use]
    pub fn min_member(mut self, members: i32) -> Self {
        self.0.spec.min_member = members;
        self
    }

    /// What must be free of a resource for the gang to be admitted; amounts of one resource add up.
    #[must_use]
    pub fn min_resource(mut self, name: &str, amount: Quantity) -> Self {
        let resources = self.0.spec.min_resources.get_or_insert_default();
        let sum = resources
            .get(name)
            .map_or(amount, |known| known.saturating_add(amount));
        resources.insert(name.to_owned(), sum);
        self
    }

    /// Name of its priority class.
    #[must_use]
    pub fn priority_class(mut self, name: &str) -> Self {
        self.0.spec.priority_class_name = name.to_owned();
        self
    }

    /// Where the scheduler is with it.
    #[must_use]
    pub fn phase(mut self, phase: PodGroupPhase) -> Self {
        self.0.status.phase = phase;
        self
    }

    /// When it was made.
    #[must_use]
    pub fn created(mut self, time: Time) -> Self {
        self.0.metadata.creation_timestamp = Some(time);
        self
    }

    /// The PodGroup.
    #[must_use]
    pub fn build(self) -> PodGroup {
        self.0
    }
}

impl From<PodGroupBuilder> for Delta {
    fn from(builder: PodGroupBuilder) -> Self {
        Delta::PodGroup(Box::new(builder.0))
    }
}

/// Builds a pod.
#[derive(Clone, Debug)]
pub struct PodBuilder(Pod);

/// A pod for Volcano's scheduler that waits, with one container that requests nothing.
#[must_use]
pub fn pod(namespace: &str, name: &str) -> PodBuilder {
    let mut pod = Pod {
        metadata: meta(namespace, name),
        ..Pod::default()
    };
    pod.spec.scheduler_name = SCHEDULER_NAME.to_owned();
    pod.spec.containers = vec![Container {
        name: "main".to_owned(),
        ..Container::default()
    }];
    PodBuilder(pod)
}

impl PodBuilder {
    /// Belongs to a PodGroup.
    #[must_use]
    pub fn group(self, name: &str) -> Self {
        self.annotation(annotations::KUBE_GROUP_NAME, name)
    }

    /// Carries a label.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.0.metadata.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Carries an annotation.
    #[must_use]
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.0
            .metadata
            .annotations
            .insert(key.to_owned(), value.to_owned());
        self
    }

    /// Carries a label and an annotation of the same key, as Volcano's own pods do.
    #[must_use]
    pub fn marked(self, key: &str, value: &str) -> Self {
        self.label(key, value).annotation(key, value)
    }

    /// Its container requests this much.
    #[must_use]
    pub fn request(mut self, name: &str, amount: &str) -> Self {
        self.0.spec.containers[0]
            .resources
            .requests
            .insert(name.to_owned(), quantity(amount));
        self
    }

    /// Image of its container.
    #[must_use]
    pub fn image(mut self, image: &str) -> Self {
        self.0.spec.containers[0].image = image.to_owned();
        self
    }

    /// The node must have this label.
    #[must_use]
    pub fn node_selector(mut self, key: &str, value: &str) -> Self {
        self.0.spec.node_selector.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Puts up with a taint, whatever its value.
    #[must_use]
    pub fn tolerates(mut self, key: &str, effect: &str) -> Self {
        self.0.spec.tolerations.push(Toleration {
            key: key.to_owned(),
            operator: "Exists".to_owned(),
            effect: effect.to_owned(),
            ..Toleration::default()
        });
        self
    }

    /// Its priority class, by name and value.
    #[must_use]
    pub fn priority(mut self, class: &str, value: i32) -> Self {
        self.0.spec.priority_class_name = class.to_owned();
        self.0.spec.priority = Some(value);
        self
    }

    /// Is managed by an object.
    #[must_use]
    pub fn owner(mut self, kind: &str, name: &str) -> Self {
        self.0.metadata.owner_references.push(OwnerReference {
            kind: kind.to_owned(),
            name: name.to_owned(),
            uid: name.to_owned(),
            controller: true,
            ..OwnerReference::default()
        });
        self
    }

    /// When it was made.
    #[must_use]
    pub fn created(mut self, time: Time) -> Self {
        self.0.metadata.creation_timestamp = Some(time);
        self
    }

    /// Runs on a node.
    #[must_use]
    pub fn running_on(mut self, node: &str) -> Self {
        self.0.spec.node_name = node.to_owned();
        self.0.status.phase = PodPhase::Running;
        self
    }

    /// The pod.
    #[must_use]
    pub fn build(self) -> Pod {
        self.0
    }
}

impl From<PodBuilder> for Delta {
    fn from(builder: PodBuilder) -> Self {
        Delta::Pod(Box::new(builder.0))
    }
}
