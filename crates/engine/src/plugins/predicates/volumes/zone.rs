//! A volume and its pod must be in the same zone and region.

use super::{State, claims_of, node_label, state};
use crate::explain::FitReason;
use crate::ids::{NodeId, TaskId};
use crate::model::Model;

/// Labels that say where a volume or a node is, each with the label that replaced it.
const LABELS: [(&str, &str); 4] = [
    ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "topology.kubernetes.io/region"),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "topology.kubernetes.io/zone",
    ),
    (
        "failure-domain.beta.kubernetes.io/region",
        "topology.kubernetes.io/region",
    ),
];
/// Between the zones of a volume that is in several.
const SEPARATOR: &str = "__";

/// Where the bound volumes of one task are: label, its replacement, and the values that it may have.
pub(in super::super) struct Zones<'a>(Vec<(&'static str, &'static str, &'a str)>);

impl<'a> Zones<'a> {
    /// `None` when its volumes are everywhere.
    pub(in super::super) fn of(m: &'a Model, task: TaskId) -> Option<Self> {
        let mut zones = Vec::new();
        for (_, _, claim) in claims_of(m, task) {
            let Some(State::Bound(Some(volume))) = claim.map(|claim| state(m, claim)) else {
                continue;
            };
            for (key, newer) in LABELS {
                zones.extend(
                    volume
                        .metadata
                        .labels
                        .get(key)
                        .map(|values| (key, newer, values.as_str())),
                );
            }
        }
        (!zones.is_empty()).then_some(Zones(zones))
    }

    pub(in super::super) fn filter(&self, m: &Model, node: NodeId) -> Option<FitReason> {
        if LABELS.iter().all(|(key, _)| node_label(m, node, key).is_none()) {
            return None; // A cluster without zones.
        }
        let inside = |&(key, newer, values): &(&str, &str, &str)| {
            let value = node_label(m, node, key).or_else(|| node_label(m, node, newer));
            value.is_some_and(|value| values.split(SEPARATOR).any(|v| v == value))
        };
        (!self.0.iter().all(inside)).then_some(FitReason::VolumeZone)
    }
}
