//! `bus.volcano.sh/v1alpha1`: Commands, and the actions and events that Jobs, Queues and policies speak of.

use crate::meta::OwnerReference;
use crate::wire::{resource, string_enum};

resource! {
    /// An order to a Job or a Queue. It is deleted before it is carried out, so that it runs at most once.
    pub struct Command = COMMAND {
        /// What to do.
        #[schema(with = "String")]
        pub action: Action,
        /// The Job or Queue that the order is for.
        pub target: Option<OwnerReference>,
        /// Why, as a word for programs.
        pub reason: String,
        /// Why, for people.
        pub message: String,
    }
}

string_enum! {
    /// What can be done to a job, a part of it, or a queue.
    pub enum Action {
        /// Kills the job's pods; it can be resumed.
        AbortJob = "AbortJob",
        /// Kills all pods of the job and starts again.
        RestartJob = "RestartJob",
        /// Kills and recreates the pods of the event's task.
        RestartTask = "RestartTask",
        /// Kills and recreates the event's pod.
        RestartPod = "RestartPod",
        /// Kills and recreates the pods of the event's partition.
        RestartPartition = "RestartPartition",
        /// Kills the job's pods, for good.
        TerminateJob = "TerminateJob",
        /// Kills the pods that are not finished; the job succeeded.
        CompleteJob = "CompleteJob",
        /// Starts an aborted job again.
        ResumeJob = "ResumeJob",
        /// Brings the job's pods in line with its spec.
        SyncJob = "SyncJob",
        /// Admits the job.
        EnqueueJob = "EnqueueJob",
        /// Brings the queue's status in line.
        SyncQueue = "SyncQueue",
        /// Lets the queue take jobs.
        OpenQueue = "OpenQueue",
        /// Stops the queue from taking jobs.
        CloseQueue = "CloseQueue",
        /// Brings the flow's jobs in line with its spec.
        SyncJobFlow = "SyncJobFlow",
        /// Brings the template's status in line.
        SyncJobTemplate = "SyncJobTemplate",
    }
}

string_enum! {
    /// What can happen to a job, its pods, or a queue.
    pub enum Event {
        /// Anything; only in policies.
        Any = "*",
        /// A pod was added, or is pending again.
        PodPending = "PodPending",
        /// A pod runs.
        PodRunning = "PodRunning",
        /// A pod failed.
        PodFailed = "PodFailed",
        /// A pod was deleted by someone else than the job's controller.
        PodEvicted = "PodEvicted",
        /// Some pods of the gang run while others cannot be placed.
        Unknown = "Unknown",
        /// All pods of a task succeeded.
        TaskCompleted = "TaskCompleted",
        /// An object changed; internal.
        OutOfSync = "OutOfSync",
        /// A Command was given; internal.
        CommandIssued = "CommandIssued",
        /// The job's spec changed.
        JobUpdated = "JobUpdated",
        /// The containers of a task restarted as often as the task allows.
        TaskFailed = "TaskFailed",
    }
}
