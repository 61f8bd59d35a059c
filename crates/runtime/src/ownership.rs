//! Which objects are this instance's when several schedulers share a cluster: by node label, and by a ring of hashes.
//!
//! With `MULTI_SCHEDULER_ENABLE=true` the replicas of a StatefulSet divide pods, PodGroups and nodes by name. All of
//! them compute the same ring, so that each object belongs to exactly one without anybody asking.

use volcano_api::core::{Labels, Node, Pod};
use volcano_api::meta::ObjectMeta;

/// More replicas than that are a mistake in the environment.
const MOST_REPLICAS: u32 = 1000;
/// Points of a replica on the ring.
const POINTS: u32 = 20;

/// What belongs to this instance.
#[derive(Clone, Debug, Default)]
pub struct Ownership {
    scheduler_names: Vec<String>,
    node_labels: Vec<(String, String)>,
    ring: Option<Ring>,
}

#[derive(Clone, Debug)]
struct Ring {
    me: String,
    /// Points with the replica that each belongs to, by hash.
    points: Vec<(u32, String)>,
}

impl Ownership {
    /// Pods of these schedulers, and nodes with one of these labels (`key:value`; all nodes without any). Items
    /// without a colon or a value are left out, as users of the flag expect.
    pub fn new(scheduler_names: &[String], node_selector: &[String]) -> Self {
        let item = |item: &String| {
            let (key, value) = item.split_once(':')?;
            let (key, value) = (key.trim(), value.trim());
            (!value.is_empty()).then(|| (key.to_owned(), value.to_owned()))
        };
        Ownership {
            scheduler_names: scheduler_names.to_vec(),
            node_labels: node_selector.iter().filter_map(item).collect(),
            ring: None,
        }
    }

    /// Divides everything among the replicas that the environment names: `MULTI_SCHEDULER_ENABLE`,
    /// `SCHEDULER_POD_NAME`, `SCHEDULER_NUM`.
    #[must_use]
    pub fn with_replicas(mut self, variable: impl Fn(&str) -> Option<String>) -> Self {
        if variable("MULTI_SCHEDULER_ENABLE").as_deref() == Some("true") {
            let me = variable("SCHEDULER_POD_NAME").unwrap_or_default();
            let count = variable("SCHEDULER_NUM").and_then(|text| text.parse().ok());
            self.ring = Some(Ring::new(me, count.unwrap_or(1)));
        }
        self
    }

    /// Pods of its schedulers, and pods of others on its nodes, which use up what is there.
    pub fn accepts_pod(&self, pod: &Pod) -> bool {
        let Some(ring) = &self.ring else { return true };
        let owner = pod
            .metadata
            .owner_references
            .first()
            .map(|owner| owner.name.as_str());
        let mine = self.scheduler_names.contains(&pod.spec.scheduler_name)
            && ring.owns(owner.unwrap_or(&pod.metadata.name));
        mine || (!pod.spec.node_name.is_empty() && ring.owns(&pod.spec.node_name))
    }

    /// PodGroups, by the name of their owner.
    pub fn owns_group(&self, group: &ObjectMeta) -> bool {
        let Some(ring) = &self.ring else { return true };
        let owner = group.owner_references.first().map(|owner| owner.name.as_str());
        ring.owns(owner.unwrap_or(&group.name))
    }

    /// Nodes with one of the labels, by their own name.
    pub fn owns_node(&self, node: &Node) -> bool {
        let has = |labels: &Labels, (key, value): &(String, String)| labels.get(key) == Some(value);
        let labelled = self.node_labels.is_empty()
            || self
                .node_labels
                .iter()
                .any(|item| has(&node.metadata.labels, item));
        labelled
            && self
                .ring
                .as_ref()
                .is_none_or(|ring| ring.owns(&node.metadata.name))
    }
}

impl Ring {
    fn new(me: String, replicas: u32) -> Self {
        let base = me.rsplit_once('-').map_or(me.as_str(), |(base, _)| base);
        let mut points = Vec::new();
        for replica in 0..replicas.clamp(1, MOST_REPLICAS) {
            let name = format!("{base}-{replica}");
            points.extend((0..POINTS).map(|at| (crc32(&format!("{at}{name}")), name.clone())));
        }
        points.sort();
        Ring { me, points }
    }

    /// A key belongs to the first point beyond its hash, or to the lowest.
    fn owns(&self, key: &str) -> bool {
        let hash = crc32(key);
        let at = self.points.partition_point(|(point, _)| *point <= hash);
        let (_, owner) = &self.points[at % self.points.len()];
        *owner == self.me
    }
}

/// CRC-32 as in IEEE 802.3.
fn crc32(text: &str) -> u32 {
    let crc = text.bytes().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            let divides = crc & 1 == 1;
            (crc >> 1) ^ if divides { 0xEDB8_8320 } else { 0 }
        })
    });
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(name: &str, labels: serde_json::Value) -> Node {
        serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}})).unwrap()
    }

    fn strings(list: &[&str]) -> Vec<String> {
        list.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn nodes_are_owned_by_any_of_the_labels() {
        let cases: [(&[&str], serde_json::Value, bool); 6] = [
            (&[], json!({}), true),
            (&["zone:a"], json!({"zone": "a"}), true),
            (&["zone:a"], json!({"zone": "b"}), false),
            (&["zone:a", " disk : ssd "], json!({"disk": "ssd"}), true),
            (&["zone", "zone:"], json!({}), true),
            (&["url:a:b"], json!({"url": "a:b"}), true),
        ];
        for (selector, labels, expected) in cases {
            let ownership = Ownership::new(&[], &strings(selector));
            assert_eq!(ownership.owns_node(&node("n", labels)), expected, "{selector:?}");
        }
    }

    #[test]
    fn hashes_are_those_of_everybody_else() {
        assert_eq!(crc32("job-a"), 657_025_995);
        assert_eq!(crc32(""), 0);
        assert_eq!(crc32("123456789"), 0xCBF4_3926);
    }

    #[test]
    fn each_object_belongs_to_one_replica() {
        let replica = |me: &str| {
            let me = me.to_owned();
            Ownership::new(&strings(&["volcano"]), &[]).with_replicas(move |name| match name {
                "MULTI_SCHEDULER_ENABLE" => Some("true".to_owned()),
                "SCHEDULER_POD_NAME" => Some(me.clone()),
                "SCHEDULER_NUM" => Some("3".to_owned()),
                _ => None,
            })
        };
        let replicas = ["vs-0", "vs-1", "vs-2"].map(replica);
        for (name, expected) in [
            ("job-a", 2),
            ("job-b", 0),
            ("job-c", 0),
            ("node-1", 2),
            ("node-2", 1),
            ("node-3", 1),
            ("node-4", 2),
        ] {
            let owners: Vec<_> = (0..3)
                .filter(|&at| replicas[at].owns_node(&node(name, json!({}))))
                .collect();
            assert_eq!(owners, [expected], "{name}");
            let group = ObjectMeta {
                name: name.to_owned(),
                ..ObjectMeta::default()
            };
            let owners: Vec<_> = (0..3).filter(|&at| replicas[at].owns_group(&group)).collect();
            assert_eq!(owners, [expected], "{name}");
        }
    }

    #[test]
    fn a_pod_goes_with_its_owner_and_counts_on_its_node() {
        let me = Ownership::new(&strings(&["volcano"]), &[]).with_replicas(|name| match name {
            "MULTI_SCHEDULER_ENABLE" => Some("true".to_owned()),
            "SCHEDULER_POD_NAME" => Some("vs-2".to_owned()),
            "SCHEDULER_NUM" => Some("3".to_owned()),
            _ => None,
        });
        let pod = |owner: &str, scheduler: &str, node: &str| -> Pod {
            serde_json::from_value(json!({
                "metadata": {"name": "p", "ownerReferences": [{"name": owner}]},
                "spec": {"schedulerName": scheduler, "nodeName": node},
            }))
            .unwrap()
        };
        assert!(me.accepts_pod(&pod("job-a", "volcano", "")));
        assert!(!me.accepts_pod(&pod("job-a", "other", "")));
        assert!(!me.accepts_pod(&pod("job-b", "volcano", "")));
        assert!(
            me.accepts_pod(&pod("job-b", "other", "job-a")),
            "on a node of this replica"
        );
    }
}
