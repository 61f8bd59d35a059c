//! `flow.volcano.sh/v1alpha1`: graphs of Jobs, and the templates that their nodes name.

use std::collections::BTreeMap;

use crate::batch::{JobPhase, JobSpec, TaskState};
use crate::time::Time;
use crate::wire::{object, resource, string_enum};

resource! {
    /// A graph of Jobs.
    pub struct JobFlow = JOB_FLOW {
        /// The graph.
        pub spec: JobFlowSpec,
        /// How far it is.
        pub status: JobFlowStatus,
    }
}

object! {
    /// A graph of Jobs.
    pub struct JobFlowSpec {
        /// The nodes.
        pub flows: Vec<Flow>,
        /// What happens to the Jobs when the flow is done.
        pub job_retain_policy: RetainPolicy,
    }
}

string_enum! {
    /// What happens to a flow's Jobs when it is done.
    pub enum RetainPolicy {
        /// They stay.
        Retain = "retain",
        /// They are deleted.
        Delete = "delete",
    }
}

object! {
    /// A node of the graph.
    pub struct Flow {
        /// What must happen before the Job is made.
        pub depends_on: Option<FlowDependsOn>,
        /// Changes of the template for this flow.
        pub patch: Option<FlowPatch>,
    }
    always {
        /// Name of the JobTemplate, in the same namespace.
        #[schema(length(min = 1))]
        pub name: String,
    }
}

object! {
    /// What must happen before a Job of a flow is made.
    pub struct FlowDependsOn {
        /// Nodes whose Jobs must be complete.
        pub targets: Vec<String>,
        /// Checks of the Jobs before.
        pub probe: Option<Probe>,
    }
}

object! {
    /// Checks of the Jobs before.
    pub struct Probe {
        /// HTTP requests that must succeed.
        pub http_get_list: Vec<HttpGet>,
        /// Connections that must succeed.
        pub tcp_socket_list: Vec<TcpSocket>,
        /// Phases that tasks must be in.
        pub task_status_list: Vec<TaskStatus>,
    }
}

object! {
    /// An HTTP request that must succeed.
    pub struct HttpGet {
        /// The task that answers.
        #[schema(length(max = 253))]
        pub task_name: String,
        /// Path of the request.
        pub path: String,
        /// Port of the request.
        #[schema(with = "isize", range(min = 0, max = 65535))]
        pub port: i64,
        /// A header of the request.
        pub http_header: Option<HttpHeader>,
    }
}

object! {
    /// A header of an HTTP request.
    pub struct HttpHeader {}
    always {
        /// Name of the header.
        pub name: String,
        /// Value of the header.
        pub value: String,
    }
}

object! {
    /// A connection that must succeed.
    pub struct TcpSocket {
        /// The task that answers.
        #[schema(length(max = 253))]
        pub task_name: String,
    }
    always {
        /// Port of the connection.
        #[schema(with = "isize", range(min = 0, max = 65535))]
        pub port: i64,
    }
}

object! {
    /// A phase that a task must be in.
    pub struct TaskStatus {
        /// The task.
        #[schema(length(max = 253))]
        pub task_name: String,
        /// The phase.
        #[schema(length(max = 63))]
        pub phase: String,
    }
}

object! {
    /// Changes of a template for one flow.
    pub struct FlowPatch {
        /// The fields that are set replace the template's.
        pub job_spec: JobSpec,
    }
}

object! {
    /// How far a flow is.
    pub struct JobFlowStatus {
        /// Jobs that wait.
        pub pending_jobs: Vec<String>,
        /// Jobs that run.
        pub running_jobs: Vec<String>,
        /// Jobs that failed.
        pub failed_jobs: Vec<String>,
        /// Jobs that are complete.
        pub completed_jobs: Vec<String>,
        /// Jobs that were terminated.
        pub terminated_jobs: Vec<String>,
        /// Jobs whose phase is not known.
        pub un_know_jobs: Vec<String>,
        /// Each Job's history.
        pub job_status_list: Vec<FlowJobStatus>,
        /// Each Job's state by name.
        pub conditions: BTreeMap<String, FlowCondition>,
        /// The flow's phase.
        pub state: FlowState,
    }
}

object! {
    /// History of a Job of a flow.
    pub struct FlowJobStatus {
        /// Name of the Job.
        pub name: String,
        /// Its phase.
        #[schema(with = "String")]
        pub state: JobPhase,
        /// Its restarts so far.
        #[schema(range(min = 0))]
        pub restart_count: i32,
        /// The times that it was in each phase.
        pub running_histories: Vec<JobRunningHistory>,
    }
    always {
        /// When it was made.
        pub start_timestamp: Option<Time>,
        /// When it was finished.
        pub end_timestamp: Option<Time>,
    }
}

object! {
    /// A time that a Job was in one phase.
    pub struct JobRunningHistory {
        /// The phase.
        #[schema(with = "String")]
        pub state: JobPhase,
    }
    always {
        /// When it entered the phase.
        pub start_timestamp: Option<Time>,
        /// When it left the phase.
        pub end_timestamp: Option<Time>,
    }
}

object! {
    /// State of a Job of a flow.
    pub struct FlowCondition {
        /// Its phase.
        #[schema(with = "String")]
        pub phase: JobPhase,
        /// How long it ran, such as `1h0m0s`.
        pub running_duration: Option<String>,
        /// Its pods by task and phase.
        pub task_status_count: BTreeMap<String, TaskState>,
    }
    always {
        /// When it was made.
        pub create_time: Option<Time>,
    }
}

object! {
    /// Phase of a flow.
    pub struct FlowState {
        /// The phase.
        pub phase: FlowPhase,
    }
}

string_enum! {
    /// Phase of a flow.
    pub enum FlowPhase {
        /// All Jobs are complete.
        Succeed = "Succeed",
        /// The flow is being deleted.
        Terminating = "Terminating",
        /// A Job failed.
        Failed = "Failed",
        /// A Job runs.
        Running = "Running",
        /// No Job was made yet.
        Pending = "Pending",
    }
}

resource! {
    /// A Job that flows make.
    pub struct JobTemplate = JOB_TEMPLATE {
        /// What the Job runs.
        pub spec: JobSpec,
        /// What was made of it.
        pub status: JobTemplateStatus,
    }
}

object! {
    /// What was made of a template.
    pub struct JobTemplateStatus {
        /// Names of the Jobs.
        pub job_depends_on_list: Vec<String>,
    }
}
