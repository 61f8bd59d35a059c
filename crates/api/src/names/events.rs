//! Types and reasons of events.

// Types.
/// Something to know.
pub const NORMAL: &str = "Normal";
/// Something to act on.
pub const WARNING: &str = "Warning";

// Reasons on pods and PodGroups.
/// Placed.
pub const SCHEDULED: &str = "Scheduled";
/// Not placed.
pub const FAILED_SCHEDULING: &str = "FailedScheduling";
/// Evicted.
pub const EVICT: &str = "Evict";
/// Cannot be placed or admitted.
pub const UNSCHEDULABLE: &str = "Unschedulable";
/// Refused by the webhook.
pub const ADMIT: &str = "Admit";

// Reasons on Jobs.
/// A Command is carried out.
pub const COMMAND_ISSUED: &str = "CommandIssued";
/// A job plugin failed.
pub const PLUGIN_ERROR: &str = "PluginError";
/// A claim could not be made.
pub const PVC_ERROR: &str = "PVCError";
/// The PodGroup could not be made.
pub const POD_GROUP_ERROR: &str = "PodGroupError";
/// An action is carried out.
pub const EXECUTE_ACTION: &str = "ExecuteAction";
/// The status could not be written.
pub const JOB_STATUS_ERROR: &str = "JobStatusError";
/// The PodGroup waits.
pub const POD_GROUP_PENDING: &str = "PodGroupPending";
/// Pods, or a CronJob's Job, could not be made.
pub const FAILED_CREATE: &str = "FailedCreate";
/// Pods, or a CronJob's Job, could not be deleted.
pub const FAILED_DELETE: &str = "FailedDelete";
/// A CronJob made a Job.
pub const SUCCESSFUL_CREATE: &str = "SuccessfulCreate";
/// A CronJob deleted a Job.
pub const SUCCESSFUL_DELETE: &str = "SuccessfulDelete";

// Reasons on JobFlows.
/// A flow made a Job.
pub const CREATED: &str = "Created";

// Reasons on Queues. Others are the name of the action that failed.
/// The queue was to be opened.
pub const OPEN_QUEUE: &str = "OpenQueue";
/// The queue was to be closed.
pub const CLOSE_QUEUE: &str = "CloseQueue";

// Reasons on CronJobs.
/// A Job is finished.
pub const SAW_COMPLETED_JOB: &str = "SawCompletedJob";
/// A Job could not be read.
pub const FAILED_GET: &str = "FailedGet";
/// The namespace is going.
pub const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";
/// A Job of that name belongs to someone else.
pub const FOREIGN_JOB: &str = "ForeignJob";
/// A Job of the CronJob was forgotten.
pub const ORPHANED_JOB: &str = "OrphanedJob";
/// A Job that is listed is gone.
pub const STALE_REFERENCE: &str = "StaleReference";
/// The last Job still runs, so none is made.
pub const FORBID_CONCURRENT: &str = "ForbidConcurrent";
/// The last Job still runs, so it is replaced.
pub const REPLACE_CONCURRENT: &str = "ReplaceConcurrent";
/// The time zone is not known.
pub const INVALID_TIME_ZONE: &str = "InvalidTimeZone";
/// The schedule names a time zone itself.
pub const UNSUPPORTED_SCHEDULE: &str = "UnsupportedSchedule";
/// The schedule cannot be read.
pub const UNPARSEABLE_SCHEDULE: &str = "UnParseableCronJobSchedule";
/// The schedule never comes.
pub const INVALID_SCHEDULE: &str = "InvalidSchedule";
/// More than a hundred Jobs were missed.
pub const TOO_MANY_MISSED_TIMES: &str = "TooManyMissedTimes";

// Reasons on Leases.
/// Somebody leads, or no longer does.
pub const LEADER_ELECTION: &str = "LeaderElection";
