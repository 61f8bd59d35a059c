//! The ResourceQuotas of a namespace: the API server refuses pods that would exceed one.

use super::reason::Amount;
use std::collections::BTreeMap;
use volcano_api::core::{Pod, ResourceQuota};
use volcano_api::meta::ResourceList;
use volcano_api::quantity::Quantity;
use volcano_engine::model::delta::Delta;
use volcano_reconcile::usage;

/// The quotas of one namespace, with what is used of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Quotas {
    by_name: BTreeMap<String, (ResourceList, ResourceList)>,
}

impl Quotas {
    /// The quotas of a namespace.
    pub fn of<'a>(objects: impl Iterator<Item = &'a Delta>, namespace: &str) -> Self {
        let mut quotas = Quotas::default();
        for object in objects {
            if let Delta::ResourceQuota(quota) = object
                && quota.metadata.namespace == namespace
            {
                quotas.set(quota);
            }
        }
        quotas
    }

    /// Takes in a quota as it is now.
    pub fn set(&mut self, quota: &ResourceQuota) {
        let hard = match quota.status.hard.is_empty() {
            true => &quota.spec.hard,
            false => &quota.status.hard,
        };
        let entry = (hard.clone(), quota.status.used.clone());
        self.by_name.insert(quota.metadata.name.clone(), entry);
    }

    /// Counts a pod in, if every quota has room for it.
    ///
    /// # Errors
    /// The name of the quota that has not.
    pub fn admit(&mut self, pod: &Pod) -> Result<(), String> {
        let wanted = usage::usage(pod);
        for (name, (hard, used)) in &self.by_name {
            if !short(hard, used, &wanted).is_empty() {
                return Err(name.clone());
            }
        }
        self.count(&wanted, 1);
        Ok(())
    }

    /// Counts pods out that are gone.
    pub fn release<'a>(&mut self, pods: impl Iterator<Item = &'a Pod>) {
        for pod in pods.filter(|pod| !pod.status.phase.is_terminated()) {
            self.count(&usage::usage(pod), -1);
        }
    }

    fn count(&mut self, amounts: &ResourceList, times: i64) {
        for (hard, used) in self.by_name.values_mut() {
            let counted = amounts.iter().filter(|(key, _)| hard.contains_key(*key));
            for (key, amount) in counted {
                let sum = used.entry(key.clone()).or_insert(Quantity::ZERO);
                *sum = sum.saturating_add(amount.saturating_mul(times));
            }
        }
    }

    /// What a quota lacks for more pods, of which these are one each with their number.
    pub fn lacks(&self, name: &str, pods: &[(Pod, i64)]) -> Vec<Amount> {
        let Some((hard, used)) = self.by_name.get(name) else {
            return Vec::new();
        };
        let mut wanted = ResourceList::new();
        for (pod, count) in pods {
            usage::add(&mut wanted, &usage::usage(pod), *count);
        }
        short(hard, used, &wanted)
    }
}

fn short(hard: &ResourceList, used: &ResourceList, wanted: &ResourceList) -> Vec<Amount> {
    let needed = |key: &String, amount: &Quantity| {
        let before = used.get(key).copied().unwrap_or(Quantity::ZERO);
        before.saturating_add(*amount)
    };
    let limited = wanted.iter().filter_map(|(key, amount)| {
        let limit = *hard.get(key)?;
        let needed = needed(key, amount);
        (needed > limit).then(|| Amount {
            resource: key.clone(),
            needed,
            limit,
        })
    });
    limited.collect()
}
