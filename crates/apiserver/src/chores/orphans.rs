//! Pods of a node that is gone: nobody runs them, and nobody else would ever say that they are over.

use super::unless_gone;
use crate::fault::Fault;
use crate::resources::{Nature, Resource};
use crate::server::Server;
use crate::store::{Object, Range};
use crate::verbs::{Call, Caller, DeleteOptions};
use std::sync::Arc;
use std::time::Duration;

/// How long a node may be away before its pods go: it may only be made anew. With Kubernetes it is 40 s.
pub const QUARANTINE: Duration = Duration::from_secs(5);

/// The node that a pod is on; empty when it is on none.
pub fn node_of<'a>(pods: &Resource, pod: &'a Object) -> &'a str {
    let mut fields = pods.selectable.iter().zip(&pod.fields);
    let node = fields.find(|(field, _)| &*field.name == "spec.nodeName");
    node.map_or("", |(_, node)| node)
}

impl Server {
    /// Deletes the pods of a node, unless it is there.
    pub(super) async fn remove_orphans(&self, node: &str) -> Result<(), Fault> {
        let registry = self.registry();
        if self.get(registry.of_nature(Nature::Node).table, node).is_some() {
            return Ok(());
        }
        let caller = Caller {
            user: "system:serviceaccount:kube-system:pod-garbage-collector".to_owned(),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                "system:authenticated".to_owned(),
            ],
        };
        let resource = registry.of_nature(Nature::Pod);
        let on_node = |pod: &Object| node_of(resource, pod) == node;
        let page = self.list(resource.table, Range::default(), on_node);
        let pods: Vec<Arc<Object>> = page.map(|page| page.items).unwrap_or_default();
        let mut outcome = Ok(());
        for pod in pods {
            let options = DeleteOptions {
                grace: Some(0),
                uid: Some(pod.uid.to_string()),
                ..DeleteOptions::default()
            };
            let call = Call::own(resource, pod.namespace(), pod.name(), &caller);
            outcome = outcome.and(unless_gone(self.delete(&call, &options).await.map(drop)));
        }
        outcome
    }
}
