//! What the rules ask of the cluster.

use std::sync::Arc;

use volcano_api::core::Labels;
use volcano_api::names::kinds;
use volcano_api::scheduling::Queue;

/// The cluster as the rules see it. Answers come from memory: a request must not wait for another one.
pub trait Lookups {
    /// The queue of this name.
    fn queue(&self, name: &str) -> Option<Arc<Queue>>;

    /// All queues, by name.
    fn queues(&self) -> Vec<Arc<Queue>>;

    /// The queues whose `spec.parent` is this name, by name.
    fn children(&self, parent: &str) -> Vec<Arc<Queue>> {
        let mut queues = self.queues();
        queues.retain(|queue| queue.spec.parent == parent);
        queues
    }

    /// Annotations of a namespace; `None` when it cannot be read.
    fn namespace_annotations(&self, name: &str) -> Option<Labels>;

    /// Whether a time zone of this name is in the database.
    fn has_time_zone(&self, name: &str) -> bool;
}

/// The queue of this name, or what the API says of one that is not there.
pub(crate) fn queue(cluster: &dyn Lookups, name: &str) -> Result<Arc<Queue>, String> {
    cluster.queue(name).ok_or_else(|| {
        format!(
            "{}.{} \"{name}\" not found",
            kinds::QUEUE.singular(),
            kinds::QUEUE.group
        )
    })
}
