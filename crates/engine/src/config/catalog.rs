//! The actions and plugins that a configuration may name, with the arguments of each.
//!
//! A plugin's own file refers to its table here, so that the file format can be read in one place.

use super::{ActionSpec, ArgKind, ArgSpec, PluginSpec};
use ArgKind::{Any, Bool, Curve, Duration, Float, Int, List, Map, Quantity, Str};

const fn arg(key: &'static str, kind: ArgKind) -> ArgSpec {
    ArgSpec::new(key, kind)
}

const fn plugin(name: &'static str, arguments: &'static [ArgSpec]) -> PluginSpec {
    PluginSpec { name, arguments }
}

const fn action(name: &'static str, arguments: &'static [ArgSpec]) -> ActionSpec {
    ActionSpec { name, arguments }
}

/// The registered actions.
pub const ACTIONS: &[ActionSpec] = &[
    action("enqueue", NONE),
    action("allocate", ALLOCATE),
    action("backfill", BACKFILL),
    action("preempt", PREEMPT),
    action("reclaim", RECLAIM),
    action("gangpreempt", GANGPREEMPT),
    action("gangreclaim", GANGRECLAIM),
    action("shuffle", NONE),
];

/// All plugins of the product.
pub const PLANNED_PLUGINS: &[PluginSpec] = &[
    plugin("binpack", BINPACK),
    plugin("capacity", CAPACITY),
    plugin("cdp", NONE),
    plugin("conformance", NONE),
    plugin("deviceshare", DEVICESHARE),
    plugin("drf", NONE),
    plugin("extender", EXTENDER),
    plugin("gang", NONE),
    plugin("network-topology-aware", NETWORK_TOPOLOGY_AWARE),
    plugin("nodegroup", NODEGROUP),
    plugin("nodeorder", NODEORDER),
    plugin("numa-aware", NUMA_AWARE),
    plugin("overcommit", OVERCOMMIT),
    plugin("pdb", NONE),
    plugin("predicates", PREDICATES),
    plugin("priority", NONE),
    plugin("proportion", NONE),
    plugin("rescheduling", RESCHEDULING),
    plugin("resource-strategy-fit", RESOURCE_STRATEGY_FIT),
    plugin("resourcequota", NONE),
    plugin("sla", SLA),
    plugin("task-topology", TASK_TOPOLOGY),
    plugin("tdm", TDM),
    plugin("usage", USAGE),
];

/// For a plugin or an action without arguments.
pub const NONE: &[ArgSpec] = &[];

const PREDICATE_ERROR_CACHE: ArgSpec = arg("predicateErrorCacheEnable", Bool);

/// Arguments of the action allocate; gangpreempt and gangreclaim follow its `predicateErrorCacheEnable`.
pub const ALLOCATE: &[ArgSpec] = &[PREDICATE_ERROR_CACHE];

/// Arguments of the action backfill.
pub const BACKFILL: &[ArgSpec] = &[PREDICATE_ERROR_CACHE];

/// Arguments of the action preempt.
pub const PREEMPT: &[ArgSpec] = &[
    PREDICATE_ERROR_CACHE,
    arg("enableTopologyAwarePreemption", Bool),
    arg("topologyAwarePreemptWorkerNum", Int),
    arg("minCandidateNodesPercentage", Int),
    arg("minCandidateNodesAbsolute", Int),
    arg("maxCandidateNodesAbsolute", Int),
];

/// Arguments of the action reclaim.
pub const RECLAIM: &[ArgSpec] = &[PREDICATE_ERROR_CACHE];

/// Arguments of the action gangpreempt.
pub const GANGPREEMPT: &[ArgSpec] = &[arg("maxDomains", Int), arg("allowWholeBundle", Bool)];

/// Arguments of the action gangreclaim.
pub const GANGRECLAIM: &[ArgSpec] = GANGPREEMPT;

/// Arguments of binpack.
pub const BINPACK: &[ArgSpec] = &[
    arg("binpack.weight", Int),
    arg("binpack.cpu", Int),
    arg("binpack.memory", Int),
    arg("binpack.resources", Str),
    arg("binpack.resources.*", Int),
];

/// Arguments of capacity.
pub const CAPACITY: &[ArgSpec] = &[
    arg("ancestorReclaimLevel", Int),
    arg("capacity.DynamicResourceAllocationEnable", Bool),
    arg("capacity.DRAConsumableCapacityEnable", Bool),
];

/// Arguments of deviceshare.
pub const DEVICESHARE: &[ArgSpec] = &[
    arg("deviceshare.GPUSharingEnable", Bool),
    arg("deviceshare.GPUNumberEnable", Bool),
    arg("deviceshare.VGPUEnable", Bool),
    arg("deviceshare.AscendMindClusterVNPUEnable", Bool),
    arg("deviceshare.AscendHAMiVNPUEnable", Bool),
    arg("deviceshare.NodeLockEnable", Bool),
    arg("deviceshare.SchedulePolicy", Str),
    arg("deviceshare.ScheduleWeight", Int),
    arg("deviceshare.KnownGeometriesCMName", Str),
    arg("deviceshare.KnownGeometriesCMNamespace", Str),
    arg("deviceshare.GPUExclusiveRules", List(&Map(&[arg("*", Str)]))),
];

/// Arguments of extender.
pub const EXTENDER: &[ArgSpec] = &[
    arg("extender.urlPrefix", Str),
    arg("extender.httpTimeout", Duration),
    arg("extender.onSessionOpenVerb", Str),
    arg("extender.onSessionCloseVerb", Str),
    arg("extender.predicateVerb", Str),
    arg("extender.prioritizeVerb", Str),
    arg("extender.preemptableVerb", Str),
    arg("extender.reclaimableVerb", Str),
    arg("extender.queueOverusedVerb", Str),
    arg("extender.jobEnqueueableVerb", Str),
    arg("extender.jobEnqueuedVerb", Str),
    arg("extender.jobReadyVerb", Str),
    arg("extender.allocateFuncVerb", Str),
    arg("extender.deallocateFuncVerb", Str),
    arg("extender.ignorable", Bool),
    arg("extender.managedResources", List(&Str)),
];

/// Arguments of network-topology-aware.
pub const NETWORK_TOPOLOGY_AWARE: &[ArgSpec] = &[
    arg("weight", Int),
    arg("hypernode.binpack.cpu", Int),
    arg("hypernode.binpack.memory", Int),
    arg("hypernode.binpack.resources", Str),
    arg("hypernode.binpack.resources.*", Int),
    arg("hypernode.binpack.normal-pod.enable", Bool),
    arg("hypernode.binpack.normal-pod.fading", Float),
    arg("hypernode.gradient.evict.max-hypernodes", Int),
];

/// Arguments of nodegroup.
pub const NODEGROUP: &[ArgSpec] = &[arg("strict", Bool), arg("enablePreferredOrder", Bool)];

/// Arguments of nodeorder.
pub const NODEORDER: &[ArgSpec] = &[
    arg("leastrequested.weight", Int),
    arg("mostrequested.weight", Int),
    arg("balancedresource.weight", Int),
    arg("nodeaffinity.weight", Int),
    arg("podaffinity.weight", Int),
    arg("tainttoleration.weight", Int),
    arg("imagelocality.weight", Int),
    arg("podtopologyspread.weight", Int),
];

/// Arguments of numa-aware.
pub const NUMA_AWARE: &[ArgSpec] = &[arg("weight", Int)];

/// Arguments of overcommit.
pub const OVERCOMMIT: &[ArgSpec] = &[arg("overcommit-factor", Float)];

/// Arguments of predicates.
pub const PREDICATES: &[ArgSpec] = &[
    arg("predicate.NodeAffinityEnable", Bool),
    arg("predicate.NodePortsEnable", Bool),
    arg("predicate.TaintTolerationEnable", Bool),
    arg("predicate.PodAffinityEnable", Bool),
    arg("predicate.NodeVolumeLimitsEnable", Bool),
    arg("predicate.VolumeZoneEnable", Bool),
    arg("predicate.PodTopologySpreadEnable", Bool),
    arg("predicate.VolumeBindingEnable", Bool),
    arg("predicate.DynamicResourceAllocationEnable", Bool),
    arg("predicate.CacheEnable", Bool),
    arg("volumebinding.weight", Int),
    arg("volumebinding.bindTimeoutSeconds", Int),
    arg("volumebinding.shape", Curve),
    arg("dynamicresources.filterTimeoutSeconds", Int),
];

const UTILIZATION: &[ArgSpec] = &[
    arg("cpu", Float),
    arg("memory", Float),
    arg("pod", Float),
    arg("pods", Float),
];

/// Arguments of rescheduling. Parameters of a strategy depend on its name, so only those of lowNodeUtilization are
/// checked by type, and others pass.
pub const RESCHEDULING: &[ArgSpec] = &[
    arg("interval", Duration),
    arg("metricsPeriod", Duration),
    arg(
        "strategies",
        List(&Map(&[arg("name", Str), arg("params", Map(STRATEGY_PARAMETERS))])),
    ),
];

const STRATEGY_PARAMETERS: &[ArgSpec] = &[
    arg("thresholds", Map(UTILIZATION)),
    arg("targetThresholds", Map(UTILIZATION)),
    arg("thresholdPriorityClassName", Str),
    arg("nodeFit", Bool),
    arg("numberOfNodes", Int),
    arg("*", Any),
];

/// Arguments of resource-strategy-fit.
pub const RESOURCE_STRATEGY_FIT: &[ArgSpec] = &[
    arg("resourceStrategyFitWeight", Int),
    arg(
        "resources",
        Map(&[arg("*", Map(&[arg("type", Str), arg("weight", Int)]))]),
    ),
    arg(
        "sra",
        Map(&[
            arg("enable", Bool),
            arg("resources", Str),
            arg("weight", Int),
            arg("resourceWeight", Map(&[arg("*", Int)])),
        ]),
    ),
    arg(
        "proportional",
        Map(&[
            arg("enable", Bool),
            arg("resources", Str),
            arg(
                "resourceProportion",
                Map(&[arg("*", Map(&[arg("cpu", Float), arg("memory", Float)]))]),
            ),
        ]),
    ),
];

/// Arguments of sla.
pub const SLA: &[ArgSpec] = &[arg("sla-waiting-time", Duration)];

/// Arguments of task-topology.
pub const TASK_TOPOLOGY: &[ArgSpec] = &[arg("task-topology.weight", Int)];

/// Arguments of tdm.
pub const TDM: &[ArgSpec] = &[
    arg("tdm.revocable-zone.*", Str),
    arg("tdm.evict.period", Duration),
];

/// Arguments of usage.
pub const USAGE: &[ArgSpec] = &[
    arg("usage.weight", Int),
    arg("cpu.weight", Int),
    arg("memory.weight", Int),
    arg("thresholds", Map(&[arg("cpu", Int), arg("mem", Int)])),
    arg("estimator.request_ratio", Float),
    arg("estimator.burst_ratio", Float),
    arg("estimator.risk_threshold", Float),
    arg("estimator.risk_factor", Float),
    arg("estimator.be_cpu", Quantity),
    arg("estimator.be_mem", Quantity),
];
