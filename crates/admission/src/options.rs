//! Settings of the rules: flags of the webhook manager, and the file of resource groups.

use volcano_api::names::SCHEDULER;

use crate::pods::groups::ResourceGroups;

/// Settings of the rules.
#[derive(Clone, Debug)]
pub struct Options {
    /// `--scheduler-name`: the first is the default of Jobs; pods of all of them are validated.
    pub scheduler_names: Vec<String>,
    /// `--max-queue-depth`: queues from one below the root down to the lowest. With less than two all are right below it.
    pub max_queue_depth: i64,
    /// `--enable-root-queue-protection`: what the root queue has is not to be changed.
    pub protect_root_queue: bool,
    /// `--enable-queue-allocated-pods-check`: queues that hold pods are not to be deleted.
    pub check_allocated_pods: bool,
    /// Feature gate `SchedulingGatesQueueAdmission`: pods that ask for it are held back until their queue has room.
    pub queue_allocation_gates: bool,
    /// `--admission-conf`; without a file pods are not changed.
    pub resource_groups: Option<ResourceGroups>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            scheduler_names: vec![SCHEDULER.to_owned()],
            max_queue_depth: 5,
            protect_root_queue: true,
            check_allocated_pods: false,
            queue_allocation_gates: false,
            resource_groups: None,
        }
    }
}

impl Options {
    /// The scheduler of Jobs that name none.
    pub(crate) fn default_scheduler(&self) -> &str {
        self.scheduler_names.first().map_or(SCHEDULER, String::as_str)
    }
}
