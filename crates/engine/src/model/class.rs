//! Task classes: everything of a pod that a filter or a score can see, other pods apart, interned.
//!
//! A thousand pods of one template are one class: a node is judged once for all of them. Labels are not part of a
//! class (controllers put an index into them); only rules between pods read labels, and those are judged per task.

use super::node::{HostPort, Taint, TaintEffect};
use crate::ids::{ClassId, Sym};
use crate::intern::Interner;
use crate::relations::PodRelations;
use crate::resource::{Dims, LARGEST, PODS, Resource};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;
use volcano_api::core::{
    self, Affinity, Container, ContainerStatus, Labels, NodeSelector, NodeSelectorTerm, Pod, PodAffinityTerm,
    PodResourceClaim, PodSpec, PodStatus, PodVolume, ResourceList, ResourceRequirements, Toleration,
    TopologySpreadConstraint,
};

/// A task class.
#[derive(Clone, Debug)]
pub struct Class {
    /// What a pod of it uses, `pods` = 1 included.
    pub request: Resource,
    /// Milli-cores, 100 for each container that names none.
    pub nonzero_cpu: i64,
    /// Bytes, 200 MiB for each container that names none.
    pub nonzero_memory: i64,
    /// Host ports.
    pub ports: Vec<HostPort>,
    /// Which nodes it may go to.
    pub selector: NodeRule,
    /// Which nodes it would rather go to, with weights.
    pub preferred: Vec<(i64, NodeTerm)>,
    /// Taints it tolerates.
    pub tolerations: Vec<ClassToleration>,
    /// Images of its containers, init containers included.
    pub images: Vec<Sym>,
    /// Number of containers, init containers included.
    pub containers: usize,
    /// Claims it mounts, with the storage class of ephemeral ones.
    pub claims: Vec<ClaimUse>,
    /// References to dynamic resources.
    pub resource_claims: usize,
    /// Rules between pods.
    pub relations: PodRelations,
    /// Tells it from the classes that had its id before.
    pub serial: u64,
    /// What it is made of, from which its pods can be written down again: the text that it is interned by, shared with
    /// the table of classes. It costs a pointer for each class, and nothing for each pod.
    source: Arc<[u8]>,
}

/// A mounted claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimUse {
    /// Claim name; for a generic ephemeral volume, the name of the volume (the claim is `<pod>-<volume>`).
    pub name: Box<str>,
    /// A generic ephemeral volume.
    pub ephemeral: bool,
}

/// A toleration, interned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassToleration {
    /// `None` tolerates every key.
    pub key: Option<Sym>,
    /// `None` for operator `Exists`.
    pub value: Option<Sym>,
    /// `None` tolerates every effect.
    pub effect: Option<TaintEffect>,
}

impl ClassToleration {
    /// Tolerates the taint.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.key.is_none_or(|key| key == taint.key)
            && self.value.is_none_or(|value| value == taint.value)
            && self.effect.is_none_or(|effect| effect == taint.effect)
    }
}

/// Node selector and required node affinity: every pair of the selector, and some term if there are terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeRule {
    /// `spec.nodeSelector`.
    pub pairs: Vec<(Sym, Sym)>,
    /// Required terms; `None` when there is no rule, an empty list matches nothing.
    pub terms: Option<Vec<NodeTerm>>,
}

/// A node selector term: every expression must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeTerm {
    /// On labels.
    pub expressions: Vec<NodeExpression>,
    /// On the name: (wanted, names).
    pub names: Vec<(bool, Vec<Sym>)>,
    /// Has nothing to match, or something that no node can match.
    pub matches_nothing: bool,
}

/// One expression of a node selector term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeExpression {
    /// Label key.
    pub key: Sym,
    /// What must hold of its value.
    pub operator: NodeOperator,
}

/// What an expression asks of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeOperator {
    /// One of these values.
    In(Vec<Sym>),
    /// Absent, or none of these values.
    NotIn(Vec<Sym>),
    /// Present.
    Exists,
    /// Absent.
    DoesNotExist,
    /// An integer above this.
    Gt(i64),
    /// An integer below this.
    Lt(i64),
}

/// The value of a label in a sorted list.
pub fn label(labels: &[(Sym, Sym)], key: Sym) -> Option<Sym> {
    labels
        .binary_search_by_key(&key, |l| l.0)
        .ok()
        .map(|at| labels[at].1)
}

impl NodeTerm {
    /// Holds on a node.
    pub fn matches(&self, strings: &Interner, name: Sym, labels: &[(Sym, Sym)]) -> bool {
        !self.matches_nothing
            && self.expressions.iter().all(|e| e.matches(strings, labels))
            && self
                .names
                .iter()
                .all(|(wanted, names)| names.contains(&name) == *wanted)
    }

    fn compile(term: &NodeSelectorTerm, strings: &mut Interner) -> Self {
        let mut compiled = NodeTerm {
            matches_nothing: term.match_expressions.is_empty() && term.match_fields.is_empty(),
            ..NodeTerm::default()
        };
        for e in &term.match_expressions {
            let values: Vec<Sym> = e.values.iter().map(|v| strings.intern(v)).collect();
            let number = || e.values.first().and_then(|v| v.parse::<i64>().ok());
            let operator = match e.operator.as_ref() {
                "In" => Some(NodeOperator::In(values)),
                "NotIn" => Some(NodeOperator::NotIn(values)),
                "Exists" => Some(NodeOperator::Exists),
                "DoesNotExist" => Some(NodeOperator::DoesNotExist),
                "Gt" => number().map(NodeOperator::Gt),
                "Lt" => number().map(NodeOperator::Lt),
                _ => None,
            };
            match operator {
                Some(operator) => {
                    compiled.expressions.push(NodeExpression {
                        key: strings.intern(&e.key),
                        operator,
                    });
                }
                None => compiled.matches_nothing = true,
            }
        }
        for f in &term.match_fields {
            let names = f.values.iter().map(|v| strings.intern(v)).collect();
            match (f.key.as_ref(), f.operator.as_ref()) {
                ("metadata.name", "In") => compiled.names.push((true, names)),
                ("metadata.name", "NotIn") => compiled.names.push((false, names)),
                _ => compiled.matches_nothing = true,
            }
        }
        compiled
    }
}

impl NodeExpression {
    fn matches(&self, strings: &Interner, labels: &[(Sym, Sym)]) -> bool {
        let value = label(labels, self.key);
        let number = || value.and_then(|v| strings.text(v).parse::<i64>().ok());
        match &self.operator {
            NodeOperator::In(values) => value.is_some_and(|v| values.contains(&v)),
            NodeOperator::NotIn(values) => value.is_none_or(|v| !values.contains(&v)),
            NodeOperator::Exists => value.is_some(),
            NodeOperator::DoesNotExist => value.is_none(),
            NodeOperator::Gt(bound) => number().is_some_and(|n| n > *bound),
            NodeOperator::Lt(bound) => number().is_some_and(|n| n < *bound),
        }
    }
}

impl NodeRule {
    /// The node may be used.
    pub fn matches(&self, strings: &Interner, name: Sym, labels: &[(Sym, Sym)]) -> bool {
        self.pairs
            .iter()
            .all(|&(key, value)| label(labels, key) == Some(value))
            && self
                .terms
                .as_ref()
                .is_none_or(|terms| terms.iter().any(|t| t.matches(strings, name, labels)))
    }

    /// Asks for nothing.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty() && self.terms.is_none()
    }

    /// Compiles the required terms of a node selector.
    pub fn from_selector(selector: &NodeSelector, strings: &mut Interner) -> Self {
        let terms = selector
            .node_selector_terms
            .iter()
            .map(|t| NodeTerm::compile(t, strings))
            .collect();
        NodeRule {
            pairs: Vec::new(),
            terms: Some(terms),
        }
    }
}

/// So many classes that no task is of are kept: the next pod of a template often comes after the last one has gone.
const KEPT_UNUSED: usize = 256;

/// All classes. Pods are interned by the text of what a class is made of.
#[derive(Clone, Debug, Default)]
pub struct Classes {
    list: Vec<Class>,
    uses: Vec<Uses>,
    by_key: FxHashMap<Arc<[u8]>, ClassId>,
    /// Classes that lost their last task, the first one in front; some of them may be in use again.
    unused: VecDeque<ClassId>,
    made: u64,
    buffer: Vec<u8>,
}

/// Who needs a class.
#[derive(Clone, Copy, Debug, Default)]
struct Uses {
    tasks: u32,
    is_listed: bool,
}

/// What a class is made of. Everything here is read by `Class::build`, and nothing else is.
#[derive(Serialize)]
struct Key<'a> {
    // Rules between pods are about pods of the same namespace unless they say otherwise.
    namespace: Option<&'a str>,
    // The claims of ephemeral volumes are named after the pod: such pods never share a verdict.
    own: Option<&'a str>,
    node_selector: &'a Labels,
    affinity: &'a Option<Affinity>,
    tolerations: &'a [Toleration],
    spread: &'a [TopologySpreadConstraint],
    match_labels: Vec<&'a str>,
    containers: &'a [Container],
    init_containers: &'a [Container],
    resources: &'a Option<ResourceRequirements>,
    overhead: &'a ResourceList,
    volumes: Vec<PodVolume>,
    resource_claims: usize,
    resized: Vec<&'a ContainerStatus>,
    resized_init: Vec<&'a ContainerStatus>,
    resize_infeasible: bool,
}

/// The part of a [`Key`] that makes a pod of the class. What is not here is of the pod itself: its namespace, name and
/// labels.
#[derive(Deserialize)]
struct Template {
    node_selector: Labels,
    affinity: Option<Affinity>,
    tolerations: Vec<Toleration>,
    spread: Vec<TopologySpreadConstraint>,
    containers: Vec<Container>,
    init_containers: Vec<Container>,
    resources: Option<ResourceRequirements>,
    overhead: ResourceList,
    volumes: Vec<PodVolume>,
    resource_claims: usize,
    resized: Vec<ContainerStatus>,
    resized_init: Vec<ContainerStatus>,
    resize_infeasible: bool,
}

impl Classes {
    /// A class.
    #[inline]
    pub fn get(&self, id: ClassId) -> &Class {
        &self.list[id.index()]
    }

    /// How many there are.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// All ids.
    pub fn ids(&self) -> impl Iterator<Item = ClassId> + use<> {
        (0..self.list.len()).map(ClassId::from_index)
    }

    /// The class of a pod, and whether it is new.
    pub fn intern(&mut self, pod: &Pod, strings: &mut Interner, dims: &mut Dims) -> (ClassId, bool) {
        let spec = &pod.spec;
        let has_own_claims = spec.volumes.iter().any(|v| v.ephemeral.is_some());
        let own = has_own_claims.then_some(pod.metadata.name.as_str());
        let infeasible = core::is_resize_infeasible(pod);
        let changed = resized(&spec.containers, &pod.status.container_statuses, infeasible);
        let sidecars = spec.init_containers.iter().filter(|c| c.is_sidecar());
        let changed_init = resized(sidecars, &pod.status.init_container_statuses, infeasible);
        let key = Key {
            namespace: has_relations(spec).then_some(pod.metadata.namespace.as_str()),
            own,
            node_selector: &spec.node_selector,
            affinity: &spec.affinity,
            tolerations: &spec.tolerations,
            spread: &spec.topology_spread_constraints,
            match_labels: matched_label_values(pod),
            containers: &spec.containers,
            init_containers: &spec.init_containers,
            resources: &spec.resources,
            overhead: &spec.overhead,
            volumes: spec.volumes.iter().filter_map(claiming).collect(),
            resource_claims: spec.resource_claims.len(),
            resize_infeasible: infeasible && !(changed.is_empty() && changed_init.is_empty()),
            resized: changed,
            resized_init: changed_init,
        };
        self.buffer.clear();
        serde_json::to_writer(&mut self.buffer, &key).expect("a class key is plain data");
        if let Some(&id) = self.by_key.get(self.buffer.as_slice()) {
            return (id, false);
        }
        let source: Arc<[u8]> = self.buffer.as_slice().into();
        self.made += 1;
        let class = Class {
            serial: self.made,
            ..Class::build(pod, source.clone(), strings, dims)
        };
        let id = match self.longest_unused() {
            Some(id) => {
                self.by_key.remove(&self.list[id.index()].source);
                self.list[id.index()] = class;
                id
            }
            None => {
                self.list.push(class);
                self.uses.push(Uses::default());
                ClassId::from_index(self.list.len() - 1)
            }
        };
        self.by_key.insert(source, id);
        (id, true)
    }

    /// A class that can go, once there are many that no task is of.
    fn longest_unused(&mut self) -> Option<ClassId> {
        while self.unused.len() > KEPT_UNUSED {
            let id = self.unused.pop_front()?;
            let uses = &mut self.uses[id.index()];
            uses.is_listed = false;
            if uses.tasks == 0 {
                return Some(id);
            }
        }
        None
    }

    /// A task is of the class now.
    pub(super) fn hold(&mut self, id: ClassId) {
        self.uses[id.index()].tasks += 1;
    }

    /// A task is no longer of the class.
    pub(super) fn release(&mut self, id: ClassId) {
        let uses = &mut self.uses[id.index()];
        uses.tasks -= 1;
        if uses.tasks == 0 && !uses.is_listed {
            uses.is_listed = true;
            self.unused.push_back(id);
        }
    }

    /// The class, to add to while it is new.
    pub(super) fn get_mut(&mut self, id: ClassId) -> &mut Class {
        &mut self.list[id.index()]
    }
}

/// `matchLabelKeys` put values of the pod's own labels into its rules: pods that differ in them differ in class.
fn matched_label_values(pod: &Pod) -> Vec<&str> {
    let spread = pod
        .spec
        .topology_spread_constraints
        .iter()
        .flat_map(|c| &c.match_label_keys);
    let terms = pod.spec.affinity.iter().flat_map(pod_terms);
    let keys = terms.flat_map(|t| t.match_label_keys.iter().chain(&t.mismatch_label_keys));
    spread
        .chain(keys)
        .map(|k| pod.metadata.labels.get(k.as_str()).map_or("", String::as_str))
        .collect()
}

/// All affinity and anti-affinity terms of a pod.
pub fn pod_terms(affinity: &Affinity) -> impl Iterator<Item = &PodAffinityTerm> {
    affinity
        .pod_affinity
        .iter()
        .chain(&affinity.pod_anti_affinity)
        .flat_map(|a| {
            a.required
                .iter()
                .chain(a.preferred.iter().map(|p| &p.pod_affinity_term))
        })
}

fn has_relations(spec: &PodSpec) -> bool {
    let terms = spec.affinity.iter().flat_map(pod_terms).next();
    terms.is_some() || !spec.topology_spread_constraints.is_empty()
}

/// What filters see of a volume: its claim, and the volume's own name only where the claim is named after it. Admission
/// gives each pod a volume with a random name: with it in the key, each pod would be a class of its own.
fn claiming(volume: &PodVolume) -> Option<PodVolume> {
    if volume.persistent_volume_claim.is_some() {
        return Some(PodVolume {
            persistent_volume_claim: volume.persistent_volume_claim.clone(),
            ..PodVolume::default()
        });
    }
    volume.ephemeral.is_some().then(|| volume.clone())
}

/// The statuses that change what containers count for. Without a resize under way a container has what it asked for, and
/// a pod that runs is of the class of those that wait.
fn resized<'a>(
    containers: impl IntoIterator<Item = &'a Container>,
    statuses: &'a [ContainerStatus],
    infeasible: bool,
) -> Vec<&'a ContainerStatus> {
    let counts = |container: &'a Container| {
        let status = statuses.iter().find(|status| status.name == container.name)?;
        let asked = &container.resources.requests;
        let beyond = |amounts: &ResourceList| {
            let mut amounts = amounts.iter();
            amounts.any(|(name, amount)| asked.get(name).is_none_or(|asked| amount > asked))
        };
        let actual = status.resources.as_ref()?;
        let counts = infeasible || beyond(&actual.requests) || beyond(&status.allocated_resources);
        counts.then_some(status)
    };
    containers.into_iter().filter_map(counts).collect()
}

impl Class {
    /// No taint keeps a pod of it away; those that only advise against a node do not count.
    pub fn tolerates_hard(&self, taints: &[Taint]) -> bool {
        let mut hard = taints
            .iter()
            .filter(|taint| taint.effect != TaintEffect::PreferNoSchedule);
        hard.all(|taint| self.tolerations.iter().any(|t| t.tolerates(taint)))
    }

    /// A pod of the class: everything that makes the class, and nothing else.
    pub(crate) fn template(&self) -> Pod {
        let template: Template = serde_json::from_slice(&self.source).expect("written from these types");
        let infeasible = if template.resize_infeasible {
            core::RESIZE_INFEASIBLE
        } else {
            ""
        };
        Pod {
            spec: PodSpec {
                node_selector: template.node_selector,
                affinity: template.affinity,
                tolerations: template.tolerations,
                topology_spread_constraints: template.spread,
                containers: template.containers,
                init_containers: template.init_containers,
                resources: template.resources,
                overhead: template.overhead,
                volumes: template.volumes,
                resource_claims: vec![PodResourceClaim::default(); template.resource_claims],
                ..PodSpec::default()
            },
            status: PodStatus {
                container_statuses: template.resized,
                init_container_statuses: template.resized_init,
                resize: infeasible.to_owned(),
                ..PodStatus::default()
            },
            ..Pod::default()
        }
    }

    fn build(pod: &Pod, source: Arc<[u8]>, strings: &mut Interner, dims: &mut Dims) -> Class {
        let spec = &pod.spec;
        let mut request = dims.vector(&core::pod_requests(pod));
        request.for_each_mut(|_, value| *value = (*value).max(0));
        request.set(PODS, 1);
        let (nonzero_cpu, nonzero_memory) = core::pod_nonzero(pod);
        let (nonzero_cpu, nonzero_memory) = (nonzero_cpu.clamp(0, LARGEST), nonzero_memory.clamp(0, LARGEST));
        let containers = || spec.init_containers.iter().chain(&spec.containers);
        let node_affinity = spec.affinity.as_ref().and_then(|a| a.node_affinity.as_ref());
        let required = node_affinity.and_then(|a| a.required.as_ref());
        let mut selector = required
            .map(|r| NodeRule::from_selector(r, strings))
            .unwrap_or_default();
        selector.pairs = spec
            .node_selector
            .iter()
            .map(|(k, v)| (strings.intern(k), strings.intern(v)))
            .collect();
        let preferred = node_affinity.map(|a| a.preferred.as_slice()).unwrap_or_default();
        let mut ports = Vec::new();
        // An init container holds its ports for a while only, unless it stays beside the main ones.
        let staying = spec.init_containers.iter().filter(|c| c.is_sidecar());
        let lasting = staying.chain(&spec.containers).flat_map(|c| &c.ports);
        for port in lasting.filter(|p| p.host_port > 0) {
            let or = |text: &str, default: &str| {
                if text.is_empty() {
                    default.to_owned()
                } else {
                    text.to_owned()
                }
            };
            ports.push(HostPort {
                ip: strings.intern(&or(&port.host_ip, "0.0.0.0")),
                protocol: strings.intern(&or(&port.protocol, "TCP")),
                port: u32::try_from(port.host_port).unwrap_or(0),
            });
        }
        ports.sort_unstable();
        ports.dedup();
        Class {
            request,
            nonzero_cpu,
            nonzero_memory,
            ports,
            selector,
            preferred: preferred
                .iter()
                .filter(|p| p.weight != 0)
                .map(|p| (i64::from(p.weight), NodeTerm::compile(&p.preference, strings)))
                .collect(),
            tolerations: spec
                .tolerations
                .iter()
                .filter_map(|t| compile_toleration(t, strings))
                .collect(),
            images: containers()
                .map(|c| strings.intern(&normalized_image(&c.image)))
                .collect(),
            containers: containers().count(),
            claims: spec.volumes.iter().filter_map(claim_use).collect(),
            resource_claims: spec.resource_claims.len(),
            relations: PodRelations::default(),
            serial: 0,
            source,
        }
    }
}

fn claim_use(volume: &PodVolume) -> Option<ClaimUse> {
    if let Some(claim) = &volume.persistent_volume_claim {
        return Some(ClaimUse {
            name: claim.claim_name.as_str().into(),
            ephemeral: false,
        });
    }
    volume.ephemeral.as_ref().map(|_| ClaimUse {
        name: volume.name.as_str().into(),
        ephemeral: true,
    })
}

fn compile_toleration(toleration: &Toleration, strings: &mut Interner) -> Option<ClassToleration> {
    let exists = match toleration.operator.as_ref() {
        "" | "Equal" => false,
        "Exists" => true,
        _ => return None,
    };
    Some(ClassToleration {
        key: (!toleration.key.is_empty()).then(|| strings.intern(&toleration.key)),
        value: (!exists).then(|| strings.intern(&toleration.value)),
        effect: match toleration.effect.as_ref() {
            "" => None,
            effect => Some(parse_effect(effect)?),
        },
    })
}

/// Reads a taint effect; one that Kubernetes does not define does nothing.
pub fn parse_effect(text: &str) -> Option<TaintEffect> {
    match text {
        "NoSchedule" => Some(TaintEffect::NoSchedule),
        "PreferNoSchedule" => Some(TaintEffect::PreferNoSchedule),
        "NoExecute" => Some(TaintEffect::NoExecute),
        _ => None,
    }
}

/// An image name with the tag that a container runtime would add.
pub fn normalized_image(image: &str) -> String {
    let last_part = image.rfind('/').map_or(image, |slash| &image[slash..]);
    if last_part.contains(':') || image.contains('@') {
        image.to_owned()
    } else {
        format!("{image}:latest")
    }
}

#[cfg(test)]
mod tests {
    use crate::plugins::fixture::Fixture;
    use serde_json::{Value, json};

    /// How many classes pods with these overlays are.
    fn classes(pods: &[Value]) -> usize {
        let mut f = Fixture::new();
        for (at, overlay) in pods.iter().enumerate() {
            f.pod(&format!("p{at}"), "g", json!({"cpu": "1"}), overlay.clone());
        }
        f.m.classes.len()
    }

    fn volumes(volumes: Value) -> Value {
        json!({"spec": {"volumes": volumes}})
    }

    #[test]
    fn pods_are_of_one_class_when_no_filter_can_tell_them_apart() {
        let claim =
            |name: &str, claim: &str| json!({"name": name, "persistentVolumeClaim": {"claimName": claim}});
        let scratch = |name: &str| json!({"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": {}}}});
        let status = |actual: &str| {
            json!({"status": {"containerStatuses": [
                {"name": "main", "resources": {"requests": {"cpu": actual}}, "allocatedResources": {"cpu": actual}},
            ]}})
        };
        let cases = [
            (
                "volumes without a claim have random names",
                volumes(json!([{"name": "kube-api-access-abcde"}])),
                volumes(json!([{"name": "kube-api-access-fghij"}])),
                1,
            ),
            (
                "one claim under two names",
                volumes(json!([claim("a", "c"), {"name": "kube-api-access-abcde"}])),
                volumes(json!([claim("b", "c")])),
                1,
            ),
            (
                "two claims",
                volumes(json!([claim("a", "c")])),
                volumes(json!([claim("a", "d")])),
                2,
            ),
            (
                "claims that are named after the pod",
                volumes(json!([scratch("a")])),
                volumes(json!([scratch("a")])),
                2,
            ),
            (
                "claims on devices",
                json!({"spec": {"resourceClaims": [{"name": "a"}]}}),
                json!({"spec": {"resourceClaims": [{"name": "b"}]}}),
                1,
            ),
            ("one runs with what it asked for", json!({}), status("1"), 1),
            ("one runs with more than it asked for", json!({}), status("2"), 2),
            (
                "the node refused a resize that changed nothing",
                json!({"status": {"resize": "Infeasible"}}),
                json!({}),
                1,
            ),
        ];
        for (name, one, other, expected) in cases {
            assert_eq!(classes(&[one, other]), expected, "{name}");
        }
    }

    #[test]
    fn a_gang_whose_pods_have_a_token_each_is_one_class() {
        let token = |at: i32| volumes(json!([{"name": format!("kube-api-access-{at}")}]));
        assert_eq!(classes(&(0..500).map(token).collect::<Vec<_>>()), 1);
    }

    #[test]
    fn a_class_is_written_down_as_a_pod_of_the_same_class() {
        let mut f = Fixture::new();
        let overlay = json!({
            "spec": {"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "c"}}, {"name": "token"}]},
            "status": {"resize": "Infeasible", "containerStatuses": [
                {"name": "main", "resources": {"requests": {"cpu": "500m"}}},
            ]},
        });
        let task = f.pod("p", "g", json!({"cpu": "1"}), overlay);
        let class = f.m.task(task).class;
        let (request, pod) = (f.m.class(class).request.clone(), f.m.class(class).template());
        assert_eq!(request.cpu, 500);
        let again = f.m.classes.intern(&pod, &mut f.m.strings, &mut f.m.dims);
        assert_eq!(again, (class, false));
    }
}
