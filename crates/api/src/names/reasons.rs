//! Reasons of conditions and evictions.

// PodGroup conditions.
/// A pod failed.
pub const POD_FAILED: &str = "PodFailed";
/// A pod was deleted.
pub const POD_DELETED: &str = "PodDeleted";
/// There is no room for the gang.
pub const NOT_ENOUGH_RESOURCES: &str = "NotEnoughResources";
/// The gang has too few pods.
pub const NOT_ENOUGH_TASKS: &str = "NotEnoughTasks";
/// A task or a sub-group of the gang has too few pods.
pub const NOT_ENOUGH_PODS_OF_TASK: &str = "NotEnoughPodsOfTask";
/// The gang is placed.
pub const TASKS_READY: &str = "tasks in gang are ready to be scheduled";

// Pod conditions.
/// The pod has a place and waits for its gang.
pub const SCHEDULABLE: &str = "Schedulable";
/// The pod has no place.
pub const UNSCHEDULABLE: &str = "Unschedulable";
/// The pod has a place and could not be bound to it.
pub const SCHEDULER_ERROR: &str = "SchedulerError";
/// The pod is evicted.
pub const EVICT: &str = "Evict";
/// The pod is evicted for another one.
pub const PREEMPTION_BY_SCHEDULER: &str = "PreemptionByScheduler";

// Causes of evictions.
/// By the action preempt.
pub const PREEMPT: &str = "preempt";
/// By the action reclaim.
pub const RECLAIM: &str = "reclaim";
/// By the action gangpreempt.
pub const GANG_PREEMPT: &str = "gangpreempt";
/// By the action gangreclaim.
pub const GANG_RECLAIM: &str = "gangreclaim";
/// By the action shuffle.
pub const SHUFFLE: &str = "shuffle";

// Nodes in the scheduler's model.
/// Pods of the node are known, the node is not.
pub const UNINITIALIZED: &str = "UnInitialized";
