//! Keys of annotations. Those that are labels as well are in [`labels`](super::labels) too.

// Identity of jobs and their pods.
/// Pod: name of its task, `default` when the task has none. Also a label.
pub const TASK_SPEC: &str = "volcano.sh/task-spec";
/// Pod: its index in the task. Also a label.
pub const TASK_INDEX: &str = "volcano.sh/task-index";
/// Pod: name of its Job. Also a label.
pub const JOB_NAME: &str = "volcano.sh/job-name";
/// Pod: queue of its Job. Also a label.
pub const QUEUE_NAME: &str = "volcano.sh/queue-name";
/// Pod: the Job's `status.version` that it was made for; events of older pods are stale.
pub const JOB_VERSION: &str = "volcano.sh/job-version";
/// Pod: the Job's restarts when it was made, for the workload to read.
pub const JOB_RETRY_COUNT: &str = "volcano.sh/job-retry-count";
/// Pod: `<job>-<task>`; pods with the same value pass the same filters.
pub const TEMPLATE_UID: &str = "volcano.sh/template-uid";
/// Pod: `true` when the job controller itself is about to delete it.
pub const CONTROLLER_OUT_OF_SYNC: &str = "volcano.sh/controller-out-of-sync";
/// Pod: when the pod that it stands in for was evicted; the timeout of a PodEvicted policy runs from then.
pub const EVICTED_AT: &str = "volcano.sh/evicted-at";
/// Job and pod: `true` when the queue has other clusters to forward to. Also a label on pods.
pub const JOB_FORWARDING: &str = "volcano.sh/job-forwarding";
/// Pod and PodGroup: the cluster to forward to.
pub const FORWARD_CLUSTER: &str = "volcano.sh/forward-cluster";
/// Reserved; nobody reads it.
pub const BURST_NAME: &str = "volcano.sh/burst-name";
/// Reserved; nobody reads it.
pub const SILO_RESOURCE: &str = "volcano.sh/silo-resource";
/// Job: the moment of the schedule that it was made for, RFC 3339.
pub const CRONJOB_SCHEDULED_TIMESTAMP: &str = "volcano.sh/cronjob-scheduled-timestamp";
/// Job: `<namespace>.<template>` that it was made from. Also a label.
pub const CREATED_BY_JOB_TEMPLATE: &str = "volcano.sh/createdByJobTemplate";
/// Job: `<namespace>.<flow>` that made it. Also a label.
pub const CREATED_BY_JOB_FLOW: &str = "volcano.sh/createdByJobFlow";
/// Pod: rank for the Ascend runtime, set by the hcclrank plugin.
pub const HCCL_RANK_INDEX: &str = "hccl/rankIndex";

// Groups and queues.
/// Pod: name of its PodGroup. The one key that decides it.
pub const KUBE_GROUP_NAME: &str = "scheduling.k8s.io/group-name";
/// Pod: name of its PodGroup, for the spreading of vGPU pods only.
pub const VOLCANO_GROUP_NAME: &str = "scheduling.volcano.sh/group-name";
/// Workload (ReplicaSet, StatefulSet, …): `minMember` of the PodGroup that is made for it.
pub const GROUP_MIN_MEMBER: &str = "scheduling.volcano.sh/group-min-member";
/// Reserved; nobody reads it.
pub const GROUP_MIN_RESOURCES: &str = "scheduling.volcano.sh/group-min-resources";
/// Pod and Namespace: queue of the PodGroup that is made for it.
pub const SCHEDULING_QUEUE_NAME: &str = "scheduling.volcano.sh/queue-name";
/// Pod: `true` to hold it back until its queue has room. Also the name of the gate.
pub const QUEUE_ALLOCATION_GATE: &str = "scheduling.volcano.sh/queue-allocation-gate";
/// Queue: `true` when it was closed since its parent was.
pub const CLOSED_BY_PARENT: &str = "volcano.sh/closed-by-parent";
/// Queue: path in the hierarchy of the drf plugin, such as `root/eng/prod`.
pub const HIERARCHY: &str = "volcano.sh/hierarchy";
/// Queue: weights along that path, such as `1/2/8`.
pub const HIERARCHY_WEIGHTS: &str = "volcano.sh/hierarchy-weights";
/// Queue: limits per node group, for the nodegroup plugin.
pub const NODEGROUP_RESOURCE_LIMITS: &str = "volcano.sh/nodegroup-resource-limits";
/// Pod: resource group that the pod webhook places it in.
pub const RESOURCE_GROUP: &str = "volcano.sh/resource-group";

// Scheduling.
/// Job, pod, PodGroup: whether it may be evicted for others. Also a label.
pub const PREEMPTABLE: &str = "volcano.sh/preemptable";
/// Job, pod, PodGroup: time after its start in which it is not evicted. Also a label.
pub const COOLDOWN_TIME: &str = "volcano.sh/cooldown-time";
/// Job, pod, PodGroup: `*` when it may run on nodes that are taken back at times.
pub const REVOCABLE_ZONE: &str = "volcano.sh/revocable-zone";
/// Job, pod, PodGroup: pods, or percent of them, that evictions must leave.
pub const JDB_MIN_AVAILABLE: &str = "volcano.sh/jdb-min-available";
/// Job, pod, PodGroup: pods, or percent of them, that may be evicted at a time.
pub const JDB_MAX_UNAVAILABLE: &str = "volcano.sh/jdb-max-unavailable";
/// Pod: NUMA policy.
pub const NUMA_TOPOLOGY_POLICY: &str = "volcano.sh/numa-topology-policy";
/// Pod: the NUMA nodes that the scheduler chose, JSON.
pub const TOPOLOGY_DECISION: &str = "volcano.sh/topology-decision";
/// Job and PodGroup: longest wait before it is admitted whatever the load.
pub const SLA_WAITING_TIME: &str = "volcano.sh/sla-waiting-time";
/// The same without a prefix, read when the other is missing.
pub const SLA_WAITING_TIME_SHORT: &str = "sla-waiting-time";
/// Pod: priority within its job.
pub const TASK_PRIORITY: &str = "volcano.sh/task-priority";
/// PodGroup: the HyperNode that it was placed in.
pub const JOB_ALLOCATED_HYPERNODE: &str = "volcano.sh/job-allocated-hypernode";
/// Pod: `hard` or `soft`, for the PodGroup that is made for it.
pub const NETWORK_TOPOLOGY_MODE: &str = "volcano.sh/network-topology-mode";
/// Pod: highest tier, for the PodGroup that is made for it.
pub const NETWORK_TOPOLOGY_HIGHEST_TIER: &str = "volcano.sh/network-topology-highest-tier";
/// PodGroup: prefix of the keys of the task-topology plugin.
pub const TASK_TOPOLOGY: &str = "volcano.sh/task-topology";
/// Job and PodGroup: tasks whose pods belong on the same node.
pub const TASK_TOPOLOGY_AFFINITY: &str = "volcano.sh/task-topology-affinity";
/// Job and PodGroup: tasks whose pods belong on different nodes.
pub const TASK_TOPOLOGY_ANTI_AFFINITY: &str = "volcano.sh/task-topology-anti-affinity";
/// Job and PodGroup: order in which tasks are placed.
pub const TASK_TOPOLOGY_TASK_ORDER: &str = "volcano.sh/task-topology-task-order";
/// Pod: scoring of the resource-strategy-fit plugin.
pub const RESOURCE_STRATEGY_SCORING_TYPE: &str = "volcano.sh/resource-strategy-scoring-type";
/// Pod: weights of the resource-strategy-fit plugin, JSON.
pub const RESOURCE_STRATEGY_WEIGHT: &str = "volcano.sh/resource-strategy-weight";
/// Pod: urgency that the agent scheduler gave it.
pub const SCHEDULING_PRIORITY: &str = "volcano.sh/scheduling-priority";
/// Pod: why it gave it.
pub const SCHEDULING_PRIORITY_REASON: &str = "volcano.sh/scheduling-priority-reason";
/// Pod: when it gave it.
pub const SCHEDULING_PRIORITY_TIMESTAMP: &str = "volcano.sh/scheduling-priority-timestamp";

// Other tools.
/// Any object: a copy of itself that `kubectl apply` keeps.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

// Colocation and the node agent.
/// Pod: the ColocationConfiguration that applies.
pub const COLOCATION_CONFIG_NAME: &str = "volcano.sh/colocation-config-name";
/// Pod: its settings, JSON; `{}` takes them back.
pub const COLOCATION_CONFIG: &str = "volcano.sh/colocation-config";
/// Pod: class of service on its node.
pub const QOS_LEVEL: &str = "volcano.sh/qos-level";
/// Pod: whether it may use more CPU than its limit for a while.
pub const ENABLE_QUOTA_BURST: &str = "volcano.sh/enable-quota-burst";
/// Pod: for how long.
pub const QUOTA_BURST_TIME: &str = "volcano.sh/quota-burst-time";
/// Node: resources that are given out twice.
pub const OVERSUBSCRIPTION_TYPES: &str = "volcano.sh/oversubscription-types";
/// Node: CPU that is given out beyond what is allocatable, in thousandths.
pub const OVERSUBSCRIPTION_CPU: &str = "volcano.sh/oversubscription-cpu";
/// Node: memory that is given out beyond what is allocatable, in bytes.
pub const OVERSUBSCRIPTION_MEMORY: &str = "volcano.sh/oversubscription-memory";
/// Node: whether the agent evicts batch pods. Also the key of a taint.
pub const OFFLINE_JOB_EVICTING: &str = "volcano.sh/offline-job-evicting";
/// Node: bandwidth of its network in Mbps.
pub const NETWORK_BANDWIDTH_RATE: &str = "volcano.sh/network-bandwidth-rate";
/// Node: CPU use in percent above which the agent evicts batch pods.
pub const EVICTING_CPU_HIGH_WATERMARK: &str = "volcano.sh/evicting-cpu-high-watermark";
/// Node: CPU use in percent below which it stops.
pub const EVICTING_CPU_LOW_WATERMARK: &str = "volcano.sh/evicting-cpu-low-watermark";
/// Node: memory use in percent above which the agent evicts batch pods.
pub const EVICTING_MEMORY_HIGH_WATERMARK: &str = "volcano.sh/evicting-memory-high-watermark";
/// Node: memory use in percent below which it stops.
pub const EVICTING_MEMORY_LOW_WATERMARK: &str = "volcano.sh/evicting-memory-low-watermark";
/// The same, older spelling: node: CPU use in percent above which the agent evicts batch pods.
pub const OVERSUBSCRIPTION_EVICTING_CPU_HIGH_WATERMARK: &str =
    "volcano.sh/oversubscription-evicting-cpu-high-watermark";
/// The same, older spelling: node: CPU use in percent below which it stops.
pub const OVERSUBSCRIPTION_EVICTING_CPU_LOW_WATERMARK: &str =
    "volcano.sh/oversubscription-evicting-cpu-low-watermark";
/// The same, older spelling: node: memory use in percent above which the agent evicts batch pods.
pub const OVERSUBSCRIPTION_EVICTING_MEMORY_HIGH_WATERMARK: &str =
    "volcano.sh/oversubscription-evicting-memory-high-watermark";
/// The same, older spelling: node: memory use in percent below which it stops.
pub const OVERSUBSCRIPTION_EVICTING_MEMORY_LOW_WATERMARK: &str =
    "volcano.sh/oversubscription-evicting-memory-low-watermark";

// Volumes; Kubernetes' own.
/// PersistentVolumeClaim: the node that a volume is to be made for.
pub const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
/// PersistentVolume: `yes` when its claim was chosen for it by a program and not by its owner.
pub const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";

// Simulated nodes.
/// Pod: how long it runs on a simulated node, as in Go (`1.5s`, `2m`).
pub const SIMULATED_DURATION: &str = "volcano.sh/simulated-duration";
/// Pod: the exit code of its containers on a simulated node.
pub const SIMULATED_EXIT_CODE: &str = "volcano.sh/simulated-exit-code";
/// Pod: how long it takes to end on a simulated node once it is deleted, within its grace period; at once without.
pub const SIMULATED_TERMINATION: &str = "volcano.sh/simulated-termination";
