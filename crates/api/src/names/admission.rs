//! Admission: paths, names of webhooks, and the messages that have no value in them.

/// Before the path, with `-` for `/`, in the name of a webhook configuration.
pub const CONFIGURATION_PREFIX: &str = "volcano-admission-service";
/// Group and version of the reviews that are understood.
pub const REVIEW_API_VERSION: &str = "admission.k8s.io/v1";
/// Kind of a review.
pub const REVIEW_KIND: &str = "AdmissionReview";
/// Reason of the event that tells of a pod that was refused.
pub const ADMIT: &str = "Admit";

/// Paths that reviews are sent to.
pub mod paths {
    /// Defaults of Jobs.
    pub const JOBS_MUTATE: &str = "/jobs/mutate";
    /// Rules for Jobs.
    pub const JOBS_VALIDATE: &str = "/jobs/validate";
    /// Defaults of Queues.
    pub const QUEUES_MUTATE: &str = "/queues/mutate";
    /// Rules for Queues.
    pub const QUEUES_VALIDATE: &str = "/queues/validate";
    /// Defaults of PodGroups.
    pub const PODGROUPS_MUTATE: &str = "/podgroups/mutate";
    /// Rules for PodGroups.
    pub const PODGROUPS_VALIDATE: &str = "/podgroups/validate";
    /// What resource groups and gates add to pods.
    pub const PODS_MUTATE: &str = "/pods/mutate";
    /// Rules for pods.
    pub const PODS_VALIDATE: &str = "/pods/validate";
    /// Rules for JobFlows.
    pub const JOBFLOWS_VALIDATE: &str = "/jobflows/validate";
    /// Rules for CronJobs.
    pub const CRONJOBS_VALIDATE: &str = "/cronjobs/validate";
    /// Rules for HyperNodes.
    pub const HYPERNODES_VALIDATE: &str = "/hypernodes/validate";
}

/// Names of webhooks, as denials show them.
pub mod webhooks {
    /// Defaults of Jobs.
    pub const MUTATE_JOB: &str = "mutatejob.volcano.sh";
    /// Rules for Jobs, and in a configuration of its own for JobFlows.
    pub const VALIDATE_JOB: &str = "validatejob.volcano.sh";
    /// Defaults of Queues.
    pub const MUTATE_QUEUE: &str = "mutatequeue.volcano.sh";
    /// Rules for Queues.
    pub const VALIDATE_QUEUE: &str = "validatequeue.volcano.sh";
    /// Defaults of PodGroups.
    pub const MUTATE_POD_GROUP: &str = "mutatepodgroup.volcano.sh";
    /// Rules for PodGroups.
    pub const VALIDATE_POD_GROUP: &str = "validatepodgroup.volcano.sh";
    /// What resource groups and gates add to pods.
    pub const MUTATE_POD: &str = "mutatepod.volcano.sh";
    /// Rules for pods.
    pub const VALIDATE_POD: &str = "validatepod.volcano.sh";
    /// Rules for CronJobs.
    pub const VALIDATE_CRON_JOB: &str = "validatecronjob.volcano.sh";
    /// Rules for HyperNodes.
    pub const VALIDATE_HYPER_NODES: &str = "validatehypernodes.volcano.sh";
}

/// Messages of refusals. Blanks and semicolons at their ends are part of them: some are strung together.
pub mod messages {
    /// The body of the request is over the limit.
    pub const BODY_TOO_LARGE: &str = "request body too large";
    /// Jobs are mutated when they are made. The blank at the end is part of it.
    pub const EXPECT_CREATE: &str = "expect operation to be 'CREATE' ";
    /// Jobs, JobFlows and CronJobs are validated when they are made or changed.
    pub const EXPECT_CREATE_OR_UPDATE: &str = "expect operation to be 'CREATE' or 'UPDATE'";

    /// The Job has no task.
    pub const NO_TASK: &str = "No task specified in job spec";
    /// The task that the mpi plugin calls its master is not there.
    pub const NO_MPI_MASTER: &str = "The specified mpi master task was not found";
    /// A tier and its name exclude each other.
    pub const BOTH_TIERS: &str =
        "must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously";
    /// The gang is larger than the job.
    pub const MIN_AVAILABLE_OVER_REPLICAS: &str =
        " job 'minAvailable' should not be greater than total replicas in tasks;";
    /// Jobs wait in queues below the root.
    pub const JOB_IN_ROOT_QUEUE: &str = " can not submit job to root queue;";
    /// Tasks wait for each other, or for one that does not exist.
    pub const NOT_A_DAG: &str =
        " job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);";

    /// A volume of a Job is mounted nowhere.
    pub const MOUNT_PATH_REQUIRED: &str = " mountPath is required;";
    /// A volume of a Job is none.
    pub const CLAIM_REQUIRED: &str = " either VolumeClaim or VolumeClaimName must be specified;";
    /// A volume of a Job is both an existing claim and a new one.
    pub const CLAIM_CONFLICT: &str = "conflict: If you want to use an existing PVC, just specify VolumeClaimName.If you want to create a new PVC, you do not need to specify VolumeClaimName";

    /// A policy waits for an event and for an exit code.
    pub const EVENT_AND_EXIT_CODE: &str = "must not specify event and exitCode simultaneously";
    /// A policy waits for nothing.
    pub const NO_EVENT_NO_EXIT_CODE: &str = "either event and exitCode should be specified";
    /// No policy waits for this event.
    pub const INVALID_EVENT: &str = "invalid policy event";
    /// No policy does this.
    pub const INVALID_ACTION: &str = "invalid policy action";
    /// Success is no failure.
    pub const EXIT_CODE_ZERO: &str = "0 is not a valid error code";
    /// The wildcard stands alone.
    pub const ANY_EVENT_ALONE: &str = "if there's * here, no other policy should be here";

    /// An update makes the gang larger than the job.
    pub const UPDATE_MIN_AVAILABLE: &str = "job 'minAvailable' must not be greater than total replicas";
    /// An update makes the gang negative.
    pub const UPDATE_MIN_AVAILABLE_NEGATIVE: &str = "job 'minAvailable' must be >= 0";
    /// An update changes the number of tasks.
    pub const UPDATE_TASKS: &str = "job updates may not add or remove tasks";
    /// An update changes what is fixed.
    pub const UPDATE_FIELDS: &str = "job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`";

    /// Amounts are not negative.
    pub const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
    /// Amounts of some resources are whole.
    pub const INTEGER: &str = "must be an integer";
    /// A queue is written in a state that only its controller gives it.
    pub const QUEUE_STATE: &str = "queue state must be in [Open Closed]";
    /// The two annotations go together.
    pub const HIERARCHY_LENGTH: &str =
        "volcano.sh/hierarchy must have the same length with volcano.sh/hierarchy-weights";
    /// What the root queue has is what the cluster has.
    pub const ROOT_FROZEN: &str =
        "root queue's resource attributes (capability, deserved, guarantee) cannot be modified";
    /// Jobs without a queue need it.
    pub const DEFAULT_NOT_DELETED: &str = "`default` queue can not be deleted";
    /// All queues are below it.
    pub const ROOT_NOT_DELETED: &str = "`root` queue can not be deleted";

    /// Both budgets of a pod at once.
    pub const BOTH_BUDGETS: &str = "not allow configure multiple annotations <[volcano.sh/jdb-min-available volcano.sh/jdb-max-unavailable]> at same time";

    /// Flows wait for each other, or for one that does not exist.
    pub const FLOW_NOT_DAG: &str = "jobflow Flow is not DAG";

    /// A CronJob without a schedule.
    pub const SCHEDULE_REQUIRED: &str = " schedule is required, but got empty";
    /// The zone has a field of its own.
    pub const SCHEDULE_TIME_ZONE: &str =
        " schedule should not contain TZ or CRON_TZ, TZ should only be set in the timeZone field";
    /// The schedule cannot be read.
    pub const SCHEDULE_INVALID: &str = "schedule is not a valid cron expression";
    /// A zone that is there and empty.
    pub const TIME_ZONE_EMPTY: &str = " timeZone must be nil or non-empty string, got empty string";
    /// A zone that cannot be the name of one.
    pub const TIME_ZONE_UNKNOWN: &str = " unknown timeZone";
    /// Where is the cluster?
    pub const TIME_ZONE_LOCAL: &str =
        " timeZone can't be Local, and must be defined in https://www.iana.org/time-zones";
    /// A zone that is not known.
    pub const TIME_ZONE_INVALID: &str = " invalid timeZone";
    /// Jobs are named after their CronJob.
    pub const CRON_JOB_NAME_LENGTH: &str =
        "cronJob name must be no more than 52 characters to accommodate job name suffix (max 63 total)";

    /// A HyperNode of nothing.
    pub const MEMBER_REQUIRED: &str = "member must have at least one member";
}
