//! What a random cluster has beyond nodes, queues, jobs and pods: rules between pods, volumes, namespaces, sub-groups,
//! and the marks on pods and groups that plugins read. Each mark is drawn as a small number, so that it shrinks to none.

use super::cluster::{Cluster, cluster, contended_cluster};
use super::{Conf, read};
use proptest::prelude::*;
use serde_json::{Value, json};
use volcano_api::core::Pod;
use volcano_api::names::{annotations, labels};
use volcano_engine::model::delta::Delta;

/// A cluster with more in it.
#[derive(Clone, Debug)]
pub struct Rich {
    /// The cluster.
    pub cluster: Cluster,
    /// Marks of pods, used in turn.
    pods: Vec<u8>,
    /// Marks of jobs, used in turn.
    jobs: Vec<u8>,
    /// Marks of nodes, used in turn.
    nodes: Vec<u8>,
}

/// A random cluster with more in it.
pub fn rich_cluster(wanted: fn(&Conf) -> bool) -> impl Strategy<Value = Rich> {
    let clusters = prop_oneof![cluster(wanted), contended_cluster(wanted)];
    let marks = |most: u8| prop::collection::vec(prop_oneof![1 => Just(0), 2 => 0..most], 1..24);
    (clusters, marks(20), marks(5), marks(6)).prop_map(|(cluster, pods, jobs, nodes)| Rich {
        cluster,
        pods,
        jobs,
        nodes,
    })
}

impl Rich {
    /// All objects.
    pub fn deltas(&self) -> Vec<Delta> {
        let mut list = self.cluster.deltas();
        let mark = |marks: &[u8], at: usize| marks[at % marks.len()];
        let (mut pods, mut jobs, mut nodes) = (0, 0, 0);
        for delta in &mut list {
            match delta {
                Delta::Pod(pod) => {
                    mark_pod(pod, mark(&self.pods, pods), pods);
                    pods += 1;
                }
                Delta::PodGroup(group) => {
                    mark_group(group, mark(&self.jobs, jobs));
                    jobs += 1;
                }
                Delta::Node(node) => {
                    mark_node(node, mark(&self.nodes, nodes), nodes);
                    nodes += 1;
                }
                _ => {}
            }
        }
        list.extend(storage(pods));
        list.extend(others());
        list
    }
}

/// A part of a pod on top of what it has.
fn overlay(pod: &mut Pod, part: Value) {
    let mut whole = serde_json::to_value(&*pod).expect("a pod");
    merge(&mut whole, part);
    *pod = read(whole);
}

fn merge(whole: &mut Value, part: Value) {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            for (key, value) in part {
                merge(whole.entry(key).or_insert(Value::Null), value);
            }
        }
        (whole, part) => *whole = part,
    }
}

fn mark_pod(pod: &mut Pod, mark: u8, at: usize) {
    let app = format!("a{}", at % 2);
    overlay(
        pod,
        json!({"metadata": {"labels": {"app": app, "turn": at.to_string()}}}),
    );
    let term = |key: &str| json!({"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key});
    let part = match mark {
        1 => json!({"spec": {"affinity": {"podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term("host")]}}}}),
        2 => json!({"spec": {"affinity": {"podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term("zone")]}}}}),
        3 => json!({"spec": {"affinity": {"podAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "podAffinityTerm": {
                "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
                "namespaceSelector": {"matchLabels": {"team": "a"}}, "topologyKey": "zone"}}]}}}}),
        4 => json!({"spec": {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}, "matchLabelKeys": ["app"]}]}}),
        5 => json!({"spec": {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "host",
            "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"app": app}}}]}}),
        6 => {
            json!({"spec": {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 5, "preference": {"matchExpressions": [{"key": "size", "operator": "Gt", "values": ["1"]}]}}]}}}})
        }
        7 => {
            json!({"spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n0"]}]}]}}}}})
        }
        8 => {
            json!({"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": format!("made-{at}")}}]}})
        }
        9 => {
            json!({"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": format!("local-{}", at % 3)}},
            {"name": "scratch"}]}})
        }
        10 => json!({"spec": {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "bound"}}]}}),
        11 => json!({"spec": {"volumes": [{"name": "v", "ephemeral": {}}]}}),
        12 => {
            json!({"metadata": {"annotations": {annotations::TASK_PRIORITY: "7"}, "labels": {labels::PREEMPTABLE: "false"}}})
        }
        13 => {
            json!({"metadata": {"annotations": {labels::PREEMPTABLE: "true"}, "labels": {labels::PREEMPTABLE: "false"}},
            "spec": {"preemptionPolicy": "Never"}})
        }
        14 => {
            json!({"spec": {"priorityClassName": "system-node-critical"}, "status": {"nominatedNodeName": "n1"}})
        }
        15 => {
            json!({"metadata": {"labels": {labels::TASK_SPEC: "r1"}, "creationTimestamp": "2023-11-14T22:13:20.5Z"},
            "status": {"startTime": "2023-11-14T22:13:21.25Z"}})
        }
        16 => json!({"spec": {"schedulingGates": [{"name": "scheduling.volcano.sh/queue-allocation-gate"}]}}),
        17 => json!({"spec": {"overhead": {"cpu": "1m"}, "initContainers": [{"name": "i", "image": "img",
            "restartPolicy": "Always", "resources": {"requests": {"nvidia.com/gpu": "0", "memory": "1Mi"}}}]},
            "status": {"initContainerStatuses": [{"name": "i", "resources": {"requests": {"memory": "2Mi"}}}]}}),
        18 => {
            json!({"metadata": {"annotations": {"scheduling.k8s.io/group-name": ""}, "namespace": "team-a"}})
        }
        19 => json!({"status": {"phase": "Unknown"}, "spec": {"nodeName": "n9"}}),
        _ => return,
    };
    overlay(pod, part);
}

fn mark_group(group: &mut volcano_api::scheduling::PodGroup, mark: u8) {
    let by_turn = json!({"name": "p", "subGroupSize": 1, "minSubGroups": 1, "matchLabelKeys": ["turn"],
        "labelSelector": {"matchLabels": {"app": "a1"}}});
    match mark {
        1 => group.spec.sub_group_policy = vec![read(by_turn)],
        2 => {
            let wait = (annotations::SLA_WAITING_TIME_SHORT.to_owned(), "17m".to_owned());
            group.metadata.annotations.extend([wait]);
        }
        3 => {
            let said = (labels::PREEMPTABLE.to_owned(), "true".to_owned());
            group.metadata.labels.extend([said]);
        }
        4 => group.spec.queue = "nowhere".to_owned(),
        _ => {}
    }
}

fn mark_node(node: &mut volcano_api::core::Node, mark: u8, at: usize) {
    node.metadata.labels.insert("host".to_owned(), format!("h{at}"));
    node.metadata.labels.insert("size".to_owned(), mark.to_string());
    match mark {
        1 | 2 => {
            let image = json!({"names": ["img:latest"], "sizeBytes": 900 << 20});
            node.status.images = vec![read(image)];
        }
        3 => {
            let extra = (annotations::OVERSUBSCRIPTION_CPU.to_owned(), "1500".to_owned());
            node.metadata.annotations.extend([extra]);
        }
        _ => {}
    }
}

/// Claims that wait for a node and are served by a driver, or by one of a few volumes; and one that is bound.
fn storage(pods: usize) -> Vec<Delta> {
    let claim = |name: &str, class: &str, volume: &str| {
        let phase = if volume.is_empty() { "Pending" } else { "Bound" };
        Delta::Claim(read(json!({
            "metadata": {"name": name, "namespace": "default", "uid": format!("c-{name}"),
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}},
            "spec": {"storageClassName": class, "volumeName": volume, "resources": {"requests": {"storage": "1Gi"}}},
            "status": {"phase": phase},
        })))
    };
    let volume = |name: &str, zone: &str, phase: &str| {
        let nodes = json!({"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}]});
        Delta::Volume(read(json!({
            "metadata": {"name": name},
            "spec": {"storageClassName": "local", "capacity": {"storage": "1Gi"}, "nodeAffinity": {"required": nodes}},
            "status": {"phase": phase},
        })))
    };
    let class = |name: &str, provisioner: &str| {
        Delta::StorageClass(read(json!({
            "metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer",
        })))
    };
    let mut list = vec![
        class("local", "kubernetes.io/no-provisioner"),
        class("made", "csi.example.com"),
        volume("pv-0", "z0", "Available"),
        volume("pv-1", "z1", "Available"),
        volume("pv-2", "z1", "Bound"),
        claim("bound", "local", "pv-2"),
    ];
    list.extend((0..3).map(|at| claim(&format!("local-{at}"), "local", "")));
    list.extend((0..pods).map(|at| claim(&format!("made-{at}"), "made", "")));
    list
}

/// Objects of the remaining kinds.
fn others() -> Vec<Delta> {
    vec![
        Delta::Namespace(read(
            json!({"metadata": {"name": "default", "labels": {"team": "a"}}}),
        )),
        Delta::Namespace(read(
            json!({"metadata": {"name": "team-a", "labels": {"team": "b"}}}),
        )),
        Delta::CsiNode(read(json!({"metadata": {"name": "n0"}, "spec": {"drivers": [
            {"name": "csi.example.com", "allocatable": {"count": 1}}]}}))),
        Delta::CsiDriver(read(
            json!({"metadata": {"name": "csi.example.com"}, "spec": {"storageCapacity": true}}),
        )),
        Delta::StorageCapacity(read(json!({"metadata": {"name": "z0", "namespace": "csi"},
            "storageClassName": "made", "capacity": "5Gi", "nodeTopology": {"matchLabels": {"zone": "z0"}}}))),
        Delta::ResourceQuota(read(
            json!({"metadata": {"name": "quota", "namespace": "default"},
            "spec": {"hard": {"cpu": "100"}}}),
        )),
        Delta::DisruptionBudget(read(
            json!({"metadata": {"name": "budget", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "a0"}}}, "status": {"disruptionsAllowed": 1}}),
        )),
        Delta::HyperNode(read(
            json!({"metadata": {"name": "s0", "managedFields": [{}]}, "spec": {"tier": 1, "members": [
            {"type": "Node", "selector": {"regexMatch": {"pattern": "n[01]"}}}]}}),
        )),
    ]
}
