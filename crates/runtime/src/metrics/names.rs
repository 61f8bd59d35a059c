//! Names of metrics. Dashboards and alerts match on them: a name that is here stays.

/// The whole cycle, in milliseconds.
pub const CYCLE: &str = "volcano_e2e_scheduling_latency_milliseconds";
/// Opening a session, in milliseconds.
pub const OPEN_SESSION: &str = "volcano_open_session_duration_milliseconds";
/// From the creation of a job to the placement of each of its tasks, in milliseconds.
pub const JOB_LATENCY: &str = "volcano_e2e_job_scheduling_latency_milliseconds";
/// The same, the last value of each job.
pub const JOB_DURATION: &str = "volcano_e2e_job_scheduling_duration";
/// When a job was created, in Unix seconds.
pub const JOB_START: &str = "volcano_e2e_job_scheduling_start_time";
/// When a task of a job was placed last, in Unix seconds.
pub const JOB_LAST: &str = "volcano_e2e_job_scheduling_last_time";
/// Hooks of plugins, in milliseconds.
pub const PLUGIN: &str = "volcano_plugin_scheduling_latency_milliseconds";
/// One run of an action, in milliseconds.
pub const ACTION: &str = "volcano_action_scheduling_latency_milliseconds";
/// From the creation of a pod to a stage, in milliseconds.
pub const TASK: &str = "volcano_task_scheduling_latency_milliseconds";
/// What a stage took, in milliseconds.
pub const STAGE: &str = "volcano_scheduling_stage_duration_milliseconds";
/// Declared by Volcano, and never counted.
pub const ATTEMPTS: &str = "volcano_schedule_attempts_total";
/// Victims of the last preemption.
pub const VICTIMS: &str = "volcano_pod_preemption_victims";
/// Attempts at preempting.
pub const PREEMPTION_ATTEMPTS: &str = "volcano_total_preemption_attempts";
/// Committed decisions that evict.
pub const EVICTIONS: &str = "volcano_eviction_transactions_total";
/// Tasks of a job that wait.
pub const UNSCHEDULABLE_TASKS: &str = "volcano_unschedule_task_count";
/// Jobs that wait.
pub const UNSCHEDULABLE_JOBS: &str = "volcano_unschedule_job_count";
/// Share of a job.
pub const JOB_SHARE: &str = "volcano_job_share";
/// Cycles in which a job was not ready.
pub const JOB_RETRIES: &str = "volcano_job_retry_counts";
/// Declared by Volcano, and never set.
pub const NAMESPACE_SHARE: &str = "volcano_namespace_share";
/// Declared by Volcano, and never set.
pub const NAMESPACE_WEIGHT: &str = "volcano_namespace_weight";
/// Declared by Volcano, and never set.
pub const NAMESPACE_WEIGHTED_SHARE: &str = "volcano_namespace_weighted_share";
/// Followed by what it is an amount of, and by one of [`AMOUNT_SUFFIXES`].
pub const QUEUE_PREFIX: &str = "volcano_queue_";
/// `cpu`, `memory`, and everything else by its name.
pub const AMOUNT_SUFFIXES: [&str; 3] = ["milli_cpu", "memory_bytes", "scalar_resources"];
/// Share of a queue.
pub const QUEUE_SHARE: &str = "volcano_queue_share";
/// Weight of a queue.
pub const QUEUE_WEIGHT: &str = "volcano_queue_weight";
/// Whether a queue uses more than it should: 1 or 0.
pub const QUEUE_OVERUSED: &str = "volcano_queue_overused";

/// Of client-go: calls to the API server.
pub const REST_CALLS: &str = "rest_client_requests_total";

/// Ours: writes that were answered.
pub const API_WRITES: &str = "volcano_api_writes_total";
/// Ours: when a pod was bound last, in Unix seconds.
pub const LAST_BIND: &str = "volcano_last_bind_timestamp_seconds";
/// Ours: reloads of the configuration.
pub const CONFIG_RELOADS: &str = "volcano_config_reload_total";
/// Ours: whether the last one succeeded, 1 or 0.
pub const CONFIG_GOOD: &str = "volcano_config_last_reload_successful";
/// Ours: watches that had to begin again.
pub const WATCH_RESTARTS: &str = "volcano_watch_restarts_total";
/// Ours: cycles.
pub const CYCLES: &str = "volcano_cycles_total";
/// Ours: whether this instance leads, 1 or 0.
pub const LEADER: &str = "volcano_leader";
/// Ours: events that were not sent.
pub const EVENTS_DROPPED: &str = "volcano_events_dropped_total";
/// Ours: binds that were sent and not answered yet.
pub const BINDS_IN_FLIGHT: &str = "volcano_binds_in_flight";
/// Ours: writes that wait.
pub const PENDING_WRITES: &str = "volcano_pending_writes";
/// Ours: what runs.
pub const BUILD: &str = "volcano_build_info";

/// How often a Job was completed.
pub const JOBS_COMPLETED: &str = "volcano_job_completed_phase_count";
/// How often a Job failed.
pub const JOBS_FAILED: &str = "volcano_job_failed_phase_count";
/// From the creation of a Job to that of each of its pods, in milliseconds.
pub const POD_CREATION: &str = "volcano_controller_job_to_pod_creation_latency_milliseconds";
/// Followed by a phase and `_count`: PodGroups of a queue.
pub const QUEUE_POD_GROUP_PREFIX: &str = "volcano_queue_pod_group_";
