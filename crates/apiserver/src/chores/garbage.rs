//! Garbage: what nobody owns any more goes.
//!
//! ```text
//! an owner is gone ────────────────> what it owned goes, unless another owner is there
//! an owner waits (foreground) ─────> what it owns goes first, then it
//! an owner lets go (orphan) ───────> what it owns forgets it, then it goes
//! ```

use super::unless_gone;
use crate::fault::Fault;
use crate::resources::Resource;
use crate::server::Server;
use crate::store::{Object, TableId};
use crate::verbs::{Call, Caller, DeleteOptions, FOREGROUND, ORPHAN, Propagation};
use serde_json::Value;
use std::sync::Arc;

fn collector() -> Caller {
    Caller {
        user: "system:serviceaccount:kube-system:generic-garbage-collector".to_owned(),
        groups: vec![
            "system:serviceaccounts".to_owned(),
            "system:authenticated".to_owned(),
        ],
    }
}

impl Server {
    pub(super) async fn look_at(&self, table: TableId, key: &str) -> Result<(), Fault> {
        let registry = self.registry();
        let (Some(resource), Some(object)) = (registry.of_table(table), self.get(table, key)) else {
            return Ok(());
        };
        if object.deleting {
            let value = object.value();
            let has = |name: &str| {
                value["metadata"]["finalizers"]
                    .as_array()
                    .is_some_and(|list| list.iter().any(|one| one == name))
            };
            if has(ORPHAN) {
                return self.let_go(resource, &object).await;
            } else if has(FOREGROUND) {
                return self.wait_for_owned(resource, &object).await;
            }
        } else if !object.owners.is_empty() {
            return self.judge(resource, &object).await;
        }
        Ok(())
    }

    /// Deletes an object whose owners are all gone or wait for it; forgets those that are gone when others are there.
    async fn judge(&self, resource: &Arc<Resource>, object: &Arc<Object>) -> Result<(), Fault> {
        let (mut solid, mut waiting, mut gone) = (false, false, Vec::new());
        for owner in &object.owners {
            match self.by_uid(owner) {
                None => gone.push(owner.to_string()),
                Some(owner) if owner.deleting && is_waiting(&owner.value()) => waiting = true,
                Some(_) => solid = true,
            }
        }
        unless_gone(match (solid, waiting) {
            (true, _) if gone.is_empty() => Ok(()),
            (true, _) => self.forget_owners(resource, object, &gone).await,
            (false, true) => self.collect(resource, object, Propagation::Foreground).await,
            (false, false) => self.collect(resource, object, Propagation::Background).await,
        })
    }

    fn by_uid(&self, uid: &str) -> Option<Arc<Object>> {
        let (table, key) = self.place_of(uid)?;
        self.get(table, &key)
    }

    async fn collect(
        &self,
        resource: &Arc<Resource>,
        object: &Object,
        propagation: Propagation,
    ) -> Result<(), Fault> {
        let caller = collector();
        let call = Call::own(resource, object.namespace(), object.name(), &caller);
        let options = DeleteOptions {
            propagation: Some(propagation),
            uid: Some(object.uid.to_string()),
            ..DeleteOptions::default()
        };
        self.delete(&call, &options).await.map(drop)
    }

    async fn forget_owners(
        &self,
        resource: &Arc<Resource>,
        object: &Object,
        gone: &[String],
    ) -> Result<(), Fault> {
        let caller = collector();
        let call = Call::own(resource, object.namespace(), object.name(), &caller);
        self.modify(&call, |old| {
            let mut new = old.clone();
            if let Some(owners) = new["metadata"]["ownerReferences"].as_array_mut() {
                owners.retain(|owner| !gone.iter().any(|uid| owner["uid"] == uid.as_str()));
                if owners.is_empty()
                    && let Some(metadata) = new["metadata"].as_object_mut()
                {
                    metadata.remove("ownerReferences");
                }
            }
            Ok(new)
        })
        .await
        .map(drop)
    }

    /// Makes what an object owns forget it. One that does not keeps the owner: without it, it would be garbage.
    async fn let_go(&self, resource: &Arc<Resource>, owner: &Object) -> Result<(), Fault> {
        let registry = self.registry();
        let uid = owner.uid.to_string();
        for (table, key) in self.owned_by(&uid) {
            if let (Some(resource), Some(object)) = (registry.of_table(table), self.get(table, &key)) {
                unless_gone(
                    self.forget_owners(resource, &object, std::slice::from_ref(&uid))
                        .await,
                )?;
            }
        }
        self.drop_finalizer(resource, owner, ORPHAN).await
    }

    async fn wait_for_owned(&self, resource: &Arc<Resource>, owner: &Object) -> Result<(), Fault> {
        let registry = self.registry();
        let (mut blocked, mut outcome) = (false, Ok(()));
        for (table, key) in self.owned_by(&owner.uid) {
            let (Some(resource), Some(object)) = (registry.of_table(table), self.get(table, &key)) else {
                continue;
            };
            if !object.deleting {
                outcome = outcome.and(self.judge(resource, &object).await);
            }
            let left = self.get(table, &key).map(|object| object.value());
            let blocks = |value: &Value| {
                let owners = value["metadata"]["ownerReferences"]
                    .as_array()
                    .into_iter()
                    .flatten();
                owners
                    .filter(|one| one["uid"] == *owner.uid)
                    .any(|one| one["blockOwnerDeletion"] == true)
            };
            blocked |= left.as_ref().is_some_and(blocks);
        }
        if blocked {
            return outcome;
        }
        self.drop_finalizer(resource, owner, FOREGROUND).await
    }

    async fn drop_finalizer(
        &self,
        resource: &Arc<Resource>,
        object: &Object,
        finalizer: &str,
    ) -> Result<(), Fault> {
        let caller = collector();
        let call = Call::own(resource, object.namespace(), object.name(), &caller);
        let dropped = self
            .modify(&call, |old| {
                let mut new = old.clone();
                if let Some(finalizers) = new["metadata"]["finalizers"].as_array_mut() {
                    finalizers.retain(|one| one != finalizer);
                }
                Ok(new)
            })
            .await;
        unless_gone(dropped.map(drop))
    }
}

fn is_waiting(owner: &Value) -> bool {
    owner["metadata"]["finalizers"]
        .as_array()
        .is_some_and(|list| list.iter().any(|one| one == FOREGROUND))
}
