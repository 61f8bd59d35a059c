//! Namespaces: a new one gets its account; one that ends takes everything in it along.

use crate::resources::Nature;
use crate::server::Server;
use crate::store::Range;
use crate::verbs::{Call, Caller, DeleteOptions, Propagation};
use serde_json::json;
use tracing::debug;

fn controller() -> Caller {
    Caller {
        user: "system:serviceaccount:kube-system:namespace-controller".to_owned(),
        groups: vec![
            "system:serviceaccounts".to_owned(),
            "system:authenticated".to_owned(),
        ],
    }
}

impl Server {
    pub(super) async fn look_at_namespace(&self, name: &str) {
        let registry = self.registry();
        let Some(namespace) = self.get(registry.of_nature(Nature::Namespace).table, name) else {
            return;
        };
        if namespace.deleting {
            self.empty_namespace(name).await;
        } else {
            self.give_account(name).await;
        }
    }

    async fn give_account(&self, namespace: &str) {
        let registry = self.registry();
        let accounts = registry.of_nature(Nature::ServiceAccount);
        if self
            .get(accounts.table, &format!("{namespace}/default"))
            .is_some()
        {
            return;
        }
        let caller = controller();
        let call = Call::own(accounts, namespace, "default", &caller);
        if let Err(fault) = self.create(&call, json!({"metadata": {"name": "default"}})).await {
            debug!(namespace, fault = fault.message, "no account for a namespace");
        }
    }

    async fn empty_namespace(&self, name: &str) {
        let registry = self.registry();
        let caller = controller();
        let options = DeleteOptions {
            propagation: Some(Propagation::Background),
            ..DeleteOptions::default()
        };
        let mut left = 0;
        for resource in registry
            .all()
            .iter()
            .filter(|resource| resource.namespaced && resource.is_storage)
        {
            let range = Range {
                namespace: name,
                ..Range::default()
            };
            let all = || {
                self.list(resource.table, range, |_| true)
                    .map(|page| page.items)
                    .unwrap_or_default()
            };
            for object in all().iter().filter(|object| !object.deleting) {
                let call = Call::own(resource, name, object.name(), &caller);
                if let Err(fault) = self.delete(&call, &options).await {
                    debug!(
                        namespace = name,
                        key = &*object.key,
                        fault = fault.message,
                        "not deleted with its namespace"
                    );
                }
            }
            left += all().len();
        }
        if left == 0 {
            let namespaces = registry.of_nature(Nature::Namespace);
            let mut call = Call::own(namespaces, "", name, &caller);
            call.subresource = "finalize";
            if let Err(fault) = self.finalize(&call, &json!({"spec": {"finalizers": []}})).await {
                debug!(
                    namespace = name,
                    fault = fault.message,
                    "an empty namespace could not be ended"
                );
            }
        }
    }
}
