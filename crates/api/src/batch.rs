//! `batch.volcano.sh/v1alpha1`: Jobs, and CronJobs that make them on a schedule.

use std::collections::BTreeMap;

use crate::bus::{Action, Event};
use crate::meta::{ObjectMeta, ObjectReference, PersistentVolumeClaimSpec, PodTemplate};
use crate::scheduling::NetworkTopology;
use crate::time::Time;
#[cfg(feature = "schema")]
use crate::wire::SUBDOMAIN;
use crate::wire::{object, resource, string_enum};

resource! {
    /// A batch job: tasks of pods that run as a gang.
    pub struct Job = JOB {
        /// What is to run.
        pub spec: JobSpec,
        /// How far it is.
        pub status: JobStatus,
    }
}

object! {
    /// What a Job runs.
    pub struct JobSpec {
        /// Scheduler of the pods whose template names none.
        #[schema(length(max = 63))]
        pub scheduler_name: String,
        /// Pods that must be placed for any of them to start.
        #[schema(range(min = 0))]
        pub min_available: i32,
        /// Claims that are mounted in every container of every pod.
        pub volumes: Vec<VolumeSpec>,
        /// The groups of equal pods.
        #[schema(length(min = 1))]
        pub tasks: Vec<TaskSpec>,
        /// What to do when something happens to a pod or the job.
        pub policies: Vec<LifecyclePolicy>,
        /// Arguments of job plugins by plugin name.
        pub plugins: BTreeMap<String, Vec<String>>,
        /// How long the job is expected to run, such as `1h0m0s`.
        pub running_estimate: Option<String>,
        /// The queue that the job waits in.
        #[schema(length(max = 253), regex(pattern = SUBDOMAIN), extend("default" = "default"))]
        pub queue: String,
        /// Restarts before the job has failed.
        #[schema(range(min = 0), extend("default" = 3))]
        pub max_retry: i32,
        /// Seconds until a finished job is deleted; never when unset.
        #[schema(range(min = 0))]
        pub ttl_seconds_after_finished: Option<i32>,
        /// Name of the PriorityClass.
        #[schema(length(max = 253), regex(pattern = SUBDOMAIN))]
        pub priority_class_name: String,
        /// Succeeded pods that complete the job.
        #[schema(range(min = 1))]
        pub min_success: Option<i32>,
        /// How close together the pods must be.
        pub network_topology: Option<NetworkTopology>,
    }
}

object! {
    /// A claim that is mounted in every container.
    pub struct VolumeSpec {
        /// An existing claim; excludes `volumeClaim`.
        #[schema(length(max = 253))]
        pub volume_claim_name: String,
        /// A claim to create for the job.
        pub volume_claim: Option<PersistentVolumeClaimSpec>,
    }
    always {
        /// Where it is mounted.
        #[schema(length(min = 1), regex(pattern = "^[^:]+$"))]
        pub mount_path: String,
    }
}

object! {
    /// A group of equal pods.
    pub struct TaskSpec {
        /// Name of the task, part of its pods' names.
        #[schema(length(max = 63), regex(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
        pub name: String,
        /// Number of pods.
        #[schema(range(min = 0))]
        pub replicas: i32,
        /// Pods of the task that must be placed for any pod of the job to start.
        #[schema(range(min = 0))]
        pub min_available: Option<i32>,
        /// The pods: labels, annotations and spec.
        pub template: PodTemplate,
        /// What to do when something happens to a pod of the task; consulted before the job's policies.
        pub policies: Vec<LifecyclePolicy>,
        /// NUMA policy of the pods.
        pub topology_policy: NumaPolicy,
        /// Container restarts before the event TaskFailed.
        #[schema(range(min = 0))]
        pub max_retry: i32,
        /// Tasks that must be ready first.
        pub depends_on: Option<DependsOn>,
        /// Division of the pods into partitions that are placed and restarted as a whole.
        pub partition_policy: Option<PartitionPolicySpec>,
    }
}

string_enum! {
    /// NUMA policy of a task.
    pub enum NumaPolicy {
        /// No alignment.
        None = "none",
        /// Alignment where possible.
        BestEffort = "best-effort",
        /// Only with alignment.
        Restricted = "restricted",
        /// Only on a single NUMA node.
        SingleNumaNode = "single-numa-node",
    }
}

object! {
    /// Tasks that must be ready before a task starts.
    pub struct DependsOn {
        /// Names of the tasks.
        pub name: Vec<String>,
        /// Whether any or all of them must be ready.
        #[schema(with = "String")]
        pub iteration: Iteration,
    }
}

string_enum! {
    /// How several dependencies combine; everything but `any` acts as `all`.
    pub enum Iteration {
        /// One ready task is enough.
        Any = "any",
        /// All tasks must be ready.
        All = "all",
    }
}

object! {
    /// Division of a task's pods into partitions.
    pub struct PartitionPolicySpec {
        /// Partitions that must be placed for the job to start.
        #[schema(range(min = 0), extend("default" = 0))]
        pub min_partitions: i32,
        /// How close together the pods of one partition must be.
        pub network_topology: Option<NetworkTopology>,
    }
    always {
        /// Number of partitions.
        #[schema(range(min = 1))]
        pub total_partitions: i32,
        /// Pods of one partition.
        #[schema(range(min = 1))]
        pub partition_size: i32,
    }
}

object! {
    /// What to do when something happens.
    pub struct LifecyclePolicy {
        /// What to do.
        #[schema(with = "String")]
        pub action: Action,
        /// What happens.
        pub event: Event,
        /// Several things of which one happens.
        pub events: Vec<Event>,
        /// Exit code of a failed pod's first container; excludes events.
        pub exit_code: Option<i32>,
        /// Time to wait before it is done, such as `10m0s`.
        pub timeout: Option<String>,
    }
}

object! {
    /// How far a Job is.
    pub struct JobStatus {
        /// The current phase.
        pub state: JobState,
        /// The spec's `minAvailable` that is in force.
        #[schema(range(min = 0))]
        pub min_available: i32,
        /// Pods by task and phase.
        pub task_status_count: BTreeMap<String, TaskState>,
        /// Pods that wait.
        #[schema(range(min = 0))]
        pub pending: i32,
        /// Pods that run.
        #[schema(range(min = 0))]
        pub running: i32,
        /// Pods that succeeded.
        #[schema(range(min = 0))]
        pub succeeded: i32,
        /// Pods that failed.
        #[schema(range(min = 0))]
        pub failed: i32,
        /// Pods that are being deleted.
        #[schema(range(min = 0))]
        pub terminating: i32,
        /// Pods in an unknown phase.
        #[schema(range(min = 0))]
        pub unknown: i32,
        /// Counts the times that all pods were killed.
        #[schema(range(min = 0))]
        pub version: i32,
        /// Restarts so far.
        #[schema(range(min = 0))]
        pub retry_count: i32,
        /// How long the job ran, such as `1h0m0s`.
        pub running_duration: Option<String>,
        /// What the job's plugins and volumes made, by key.
        pub controlled_resources: BTreeMap<String, String>,
        /// The phases so far; a repeated phase moves to the end.
        pub conditions: Vec<JobCondition>,
    }
}

object! {
    /// The current phase of a Job.
    pub struct JobState {
        /// The phase.
        pub phase: JobPhase,
        /// Why, as a word for programs.
        pub reason: String,
        /// Why, for people.
        pub message: String,
    }
    always {
        /// When the status changed last.
        pub last_transition_time: Option<Time>,
    }
}

string_enum! {
    /// Phase of a Job.
    pub enum JobPhase {
        /// Waits for its pods to start.
        Pending = "Pending",
        /// Is being aborted.
        Aborting = "Aborting",
        /// Was aborted and can be resumed.
        Aborted = "Aborted",
        /// At least `minAvailable` pods run.
        Running = "Running",
        /// Its pods are being killed for a restart.
        Restarting = "Restarting",
        /// Its pods are being killed since it is complete.
        Completing = "Completing",
        /// Succeeded.
        Completed = "Completed",
        /// Is being terminated.
        Terminating = "Terminating",
        /// Was terminated, for good.
        Terminated = "Terminated",
        /// Failed.
        Failed = "Failed",
    }
}

object! {
    /// Pods of a task by phase.
    pub struct TaskState {
        /// Number of pods by phase.
        pub phase: BTreeMap<String, i32>,
    }
}

object! {
    /// A phase that a Job was in.
    pub struct JobCondition {
        /// When it entered the phase.
        pub last_transition_time: Option<Time>,
    }
    always {
        /// The phase.
        #[schema(with = "String")]
        pub status: JobPhase,
    }
}

resource! {
    /// Makes Jobs on a schedule.
    pub struct CronJob = CRON_JOB {
        /// When to make which Job.
        pub spec: CronJobSpec,
        /// What was made.
        pub status: CronJobStatus,
    }
}

object! {
    /// When to make which Job.
    pub struct CronJobSpec {
        /// IANA name of the schedule's time zone.
        pub time_zone: Option<String>,
        /// How many seconds late a Job may still be made.
        #[schema(range(min = 0))]
        pub starting_deadline_seconds: Option<i64>,
        /// What happens when the last Job still runs.
        #[schema(extend("default" = "Allow"))]
        pub concurrency_policy: ConcurrencyPolicy,
        /// Whether no further Jobs are made.
        #[schema(extend("default" = false))]
        pub suspend: Option<bool>,
        /// How many succeeded Jobs are kept.
        #[schema(range(min = 0), extend("default" = 3))]
        pub successful_jobs_history_limit: Option<i32>,
        /// How many failed Jobs are kept.
        #[schema(range(min = 0), extend("default" = 1))]
        pub failed_jobs_history_limit: Option<i32>,
    }
    always {
        /// The schedule, five cron fields or a descriptor such as `@daily`.
        pub schedule: String,
        /// The Job to make.
        pub job_template: JobTemplateSpec,
    }
}

string_enum! {
    /// What a CronJob does when the last Job still runs.
    pub enum ConcurrencyPolicy {
        /// Both run.
        Allow = "Allow",
        /// The new Job is not made.
        Forbid = "Forbid",
        /// The old Job is replaced.
        Replace = "Replace",
    }
}

object! {
    /// The Job that a CronJob makes.
    pub struct JobTemplateSpec {
        /// Labels, annotations and the like of the Job.
        pub metadata: ObjectMeta,
        /// What the Job runs.
        pub spec: JobSpec,
    }
}

object! {
    /// What a CronJob made.
    pub struct CronJobStatus {
        /// Jobs that are not finished.
        #[schema(extend("x-kubernetes-list-type" = "atomic"))]
        pub active: Vec<ObjectReference>,
        /// When a Job was made last.
        pub last_schedule_time: Option<Time>,
        /// When a Job succeeded last.
        pub last_successful_time: Option<Time>,
    }
}
