//! The filters of Kubernetes: which nodes a pod may go to, resources apart (the actions look at those).
//!
//! ```text
//! class + node description   filter_static   cordoned, node affinity, taints        cached per class and node
//! class + node usage         filter_usage    number of pods, host ports             again when the node changed
//! task  + other pods         relate          rules between pods, volumes            for each task that has such
//! ```

mod interpod;
mod spread;
pub mod volumes;

use crate::config::PluginConf;
use crate::explain::{FitReason, Reasons};
use crate::ids::{NodeId, TaskId};
use crate::model::Model;
use crate::model::class::Class;
use crate::model::delta::Delta;
use crate::model::node::{HostPort, TaintEffect};
use crate::plugin::{Plugin, Point, Related};
use interpod::InterPod;
use spread::Spread;
use volumes::binding::{Binding, ClaimKey, Plans, Source};
use volumes::{Limits, Shape, Zones};

/// The taint that a cordoned node counts as having.
const UNSCHEDULABLE_TAINT: &str = "node.kubernetes.io/unschedulable";
/// The address of a host port that takes all addresses.
const ANY_ADDRESS: &str = "0.0.0.0";

/// Which filters are on.
#[derive(Clone, Copy, Debug)]
struct Enabled {
    node_affinity: bool,
    node_ports: bool,
    taints: bool,
    pod_affinity: bool,
    volume_limits: bool,
    volume_zone: bool,
    spread: bool,
    volume_binding: bool,
}

struct Predicates {
    enabled: Enabled,
    plans: Plans,
    // Of the score of volume binding.
    weight: f64,
    shape: Shape,
}

/// Builds the plugin.
pub fn build(conf: &PluginConf) -> Box<dyn Plugin> {
    let on = |filter: &str| conf.arguments.bool(&format!("predicate.{filter}Enable"), true);
    Box::new(Predicates {
        enabled: Enabled {
            node_affinity: on("NodeAffinity"),
            node_ports: on("NodePorts"),
            taints: on("TaintToleration"),
            pod_affinity: on("PodAffinity"),
            volume_limits: on("NodeVolumeLimits"),
            volume_zone: on("VolumeZone"),
            spread: on("PodTopologySpread"),
            volume_binding: on("VolumeBinding"),
        },
        plans: Plans::default(),
        weight: if conf.switches.node_order {
            conf.arguments.int("volumebinding.weight", 1) as f64
        } else {
            0.0
        },
        shape: Shape::of(&conf.arguments),
    })
}

impl Plugin for Predicates {
    fn name(&self) -> &'static str {
        "predicates"
    }

    fn points(&self) -> &'static [Point] {
        &[Point::PrePredicate, Point::Predicate, Point::Events]
    }

    fn open(&mut self, m: &Model, _now: i64) {
        self.plans.refresh(m);
    }

    fn claim_sources(&self, m: &Model, task: TaskId) -> Vec<(ClaimKey, Source)> {
        self.plans.sources(m, task)
    }

    fn pre_predicate(&self, m: &Model, task: TaskId) -> Result<(), FitReason> {
        if !self.enabled.volume_binding || m.class_of(task).claims.is_empty() {
            return Ok(());
        }
        volumes::check(m, task).map_err(|message| FitReason::PrePredicate {
            plugin: "VolumeBinding",
            message,
        })
    }

    /// Each of these stands in the way whoever is evicted, so the first one is the whole answer.
    fn filter_static(&self, m: &Model, class: &Class, node: NodeId) -> Reasons {
        let info = &m.nodes[node];
        let reason = if info.unschedulable && !tolerates_unschedulable(m, class) {
            FitReason::Unschedulable
        } else if self.enabled.node_affinity && !class.selector.matches(&m.strings, info.name, &info.labels) {
            FitReason::NodeAffinity
        } else if self.enabled.taints && !class.tolerates_hard(&info.taints) {
            FitReason::Taint
        } else {
            return Reasons::new();
        };
        Reasons::from_elem(reason, 1)
    }

    fn filter_usage(&self, m: &Model, class: &Class, node: NodeId) -> Reasons {
        let mut reasons = Reasons::new();
        if m.nodes.max_pods(node) <= m.nodes.tally(node).pods {
            reasons.push(FitReason::PodNumber);
        }
        if self.enabled.node_ports && !class.ports.is_empty() {
            let info = &m.nodes[node];
            let any = m.strings.get(ANY_ADDRESS);
            let taken = |wanted: &HostPort| {
                info.ports.iter().any(|(used, _)| {
                    used.port == wanted.port
                        && used.protocol == wanted.protocol
                        && (used.ip == wanted.ip || Some(used.ip) == any || Some(wanted.ip) == any)
                })
            };
            if class.ports.iter().any(taken) {
                reasons.push(FitReason::HostPort);
            }
        }
        reasons
    }

    fn relate<'a>(&'a self, m: &'a Model, task: TaskId) -> Option<Box<dyn Related + 'a>> {
        let (rules, claims) = (!m.relations.is_empty(), !m.class_of(task).claims.is_empty());
        if !rules && !claims {
            return None;
        }
        let on = &self.enabled;
        let related = RelatedFilters {
            scoring: self.scoring(m),
            inter_pod: (rules && on.pod_affinity)
                .then(|| InterPod::of(m, task))
                .flatten(),
            limits: (claims && on.volume_limits)
                .then(|| Limits::of(m, task))
                .flatten(),
            zones: (claims && on.volume_zone).then(|| Zones::of(m, task)).flatten(),
            spread: (rules && on.spread).then(|| Spread::of(m, task)).flatten(),
            binding: (claims && on.volume_binding)
                .then(|| Binding::of(m, task, &self.plans))
                .flatten(),
        };
        related
            .is_needed()
            .then(|| Box::new(related) as Box<dyn Related + 'a>)
    }

    fn show(&self, m: &Model, object: &mut Delta) {
        self.plans.show(m, object);
    }

    fn on_allocate(&mut self, m: &Model, task: TaskId) {
        if self.enabled.volume_binding {
            self.plans.place(m, task);
        }
    }

    fn on_deallocate(&mut self, m: &Model, task: TaskId) {
        self.plans.unplace(m, task);
    }
}

impl Predicates {
    /// The weight and the shape of the score of volume binding, when it is on.
    fn scoring(&self, m: &Model) -> Option<(f64, &Shape)> {
        (m.features.storage_scoring && self.weight != 0.0).then_some((self.weight, &self.shape))
    }
}

/// The filters of one task that look at other pods or at volumes, and the score of its volumes.
struct RelatedFilters<'a> {
    scoring: Option<(f64, &'a Shape)>,
    inter_pod: Option<InterPod<'a>>,
    limits: Option<Limits<'a>>,
    zones: Option<Zones<'a>>,
    spread: Option<Spread>,
    binding: Option<Binding<'a>>,
}

impl RelatedFilters<'_> {
    fn is_needed(&self) -> bool {
        self.inter_pod.is_some()
            || self.limits.is_some()
            || self.zones.is_some()
            || self.spread.is_some()
            || self.binding.is_some()
    }
}

impl Related for RelatedFilters<'_> {
    /// All that evicting pods could cure, up to the first that it could not.
    fn filter(&self, m: &Model, node: NodeId) -> Reasons {
        let filters: [&dyn Fn() -> Option<FitReason>; 5] = [
            &|| self.inter_pod.as_ref()?.filter(m, node),
            &|| self.limits.as_ref()?.filter(m, node),
            &|| self.zones.as_ref()?.filter(m, node),
            &|| self.spread.as_ref()?.filter(m, node),
            &|| self.binding.as_ref()?.filter(m, node),
        ];
        let mut reasons = Reasons::new();
        for reason in filters.iter().filter_map(|filter| filter()) {
            let last = !reason.is_resolvable();
            reasons.push(reason);
            if last {
                break;
            }
        }
        reasons
    }

    fn score(&self, m: &Model, nodes: &[NodeId], scores: &mut [f64]) {
        let (Some((weight, shape)), Some(binding)) = (self.scoring, &self.binding) else {
            return;
        };
        for (&node, score) in nodes.iter().zip(scores) {
            *score += weight * binding.score(m, node, shape) as f64;
        }
    }
}

fn tolerates_unschedulable(m: &Model, class: &Class) -> bool {
    // The key may never have been seen as a string: then nobody names it.
    let key = m.strings.get(UNSCHEDULABLE_TAINT);
    let empty = m.strings.get("");
    class.tolerations.iter().any(|t| {
        t.key.is_none_or(|k| Some(k) == key)
            && t.value.is_none_or(|v| Some(v) == empty)
            && t.effect.is_none_or(|e| e == TaintEffect::NoSchedule)
    })
}

#[cfg(test)]
mod tests;
