//! Namespaces: a new one gets its account; one that ends takes everything in it along.

use super::unless_gone;
use crate::fault::Fault;
use crate::resources::Nature;
use crate::server::Server;
use crate::store::Range;
use crate::verbs::{Call, Caller, DeleteOptions, Propagation};
use serde_json::json;

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
    pub(super) async fn look_at_namespace(&self, name: &str) -> Result<(), Fault> {
        let registry = self.registry();
        let Some(namespace) = self.get(registry.of_nature(Nature::Namespace).table, name) else {
            return Ok(());
        };
        if namespace.deleting {
            self.empty_namespace(name).await
        } else {
            self.give_account(name).await
        }
    }

    async fn give_account(&self, namespace: &str) -> Result<(), Fault> {
        let registry = self.registry();
        let accounts = registry.of_nature(Nature::ServiceAccount);
        if self
            .get(accounts.table, &format!("{namespace}/default"))
            .is_some()
        {
            return Ok(());
        }
        let caller = controller();
        let call = Call::own(accounts, namespace, "default", &caller);
        match self.create(&call, json!({"metadata": {"name": "default"}})).await {
            Err(fault) if fault.reason == "AlreadyExists" => Ok(()),
            created => unless_gone(created.map(drop)),
        }
    }

    async fn empty_namespace(&self, name: &str) -> Result<(), Fault> {
        let registry = self.registry();
        let caller = controller();
        let options = DeleteOptions {
            propagation: Some(Propagation::Background),
            ..DeleteOptions::default()
        };
        let (mut left, mut outcome) = (0, Ok(()));
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
                outcome = outcome.and(unless_gone(self.delete(&call, &options).await.map(drop)));
            }
            left += all().len();
        }
        if left > 0 {
            return outcome;
        }
        let namespaces = registry.of_nature(Nature::Namespace);
        let mut call = Call::own(namespaces, "", name, &caller);
        call.subresource = "finalize";
        let ended = self.finalize(&call, &json!({"spec": {"finalizers": []}})).await;
        unless_gone(ended.map(drop))
    }
}
