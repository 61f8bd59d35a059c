//! Which Job a PodGroup belongs to. The scheduler knows PodGroups, people know Jobs: `busy-1f0c…` says little to who
//! wrote `busy`.

use crate::cluster::Cluster;
use std::collections::BTreeMap;
use volcano_api::names::kinds;
use volcano_engine::model::delta::Delta;

/// Jobs by PodGroup, both as `namespace/name`.
#[derive(Clone, Debug, Default)]
pub(super) struct Owners(BTreeMap<String, String>);

impl Owners {
    /// Those of a cluster.
    pub fn of(cluster: &Cluster) -> Self {
        let owned = cluster.objects.iter().filter_map(|object| {
            let Delta::PodGroup(group) = object else {
                return None;
            };
            let meta = &group.metadata;
            let owner = meta.controller().filter(|owner| owner.kind == kinds::JOB.kind)?;
            Some((meta.key(), format!("{}/{}", meta.namespace, owner.name)))
        });
        Owners(owned.collect())
    }

    /// The Job that controls a PodGroup; the PodGroup itself when none does.
    pub fn job_of(&self, group: &str) -> String {
        self.0.get(group).map_or_else(|| group.to_owned(), Clone::clone)
    }
}
