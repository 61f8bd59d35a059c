//! The enable switches of a plugin entry. The spelling of their keys is uneven (`enable…`, `enabled…`) and part of
//! the file format.

/// The key is not that of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such switch")]
pub struct UnknownSwitch;

macro_rules! switches {
    ($($(#[$doc:meta])* $field:ident = $key:literal, $default:literal;)*) => {
        /// Which extension points of a plugin take part; one field for each switch of the file.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Switches {
            $($(#[$doc])* pub $field: bool,)*
        }

        impl Default for Switches {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl Switches {
            /// The keys of all switches as the file spells them, in the order of the fields.
            pub const KEYS: &'static [&'static str] = &[$($key,)*];

            /// Sets the switch that the file calls `key`.
            ///
            /// # Errors
            /// If there is no such switch.
            pub fn set(&mut self, key: &str, on: bool) -> Result<(), UnknownSwitch> {
                match key {
                    $($key => self.$field = on,)*
                    _ => return Err(UnknownSwitch),
                }
                Ok(())
            }

            /// All switches under the file's keys, in the order of the fields.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, bool)> {
                [$(($key, self.$field),)*].into_iter()
            }
        }
    };
}

switches! {
    /// JobOrder.
    job_order = "enableJobOrder", true;
    /// The hierarchical mode of drf, capacity and nodegroup. Off unless asked for.
    hierarchy = "enableHierarchy", false;
    /// JobReady.
    job_ready = "enableJobReady", true;
    /// JobPipelined.
    job_pipelined = "enableJobPipelined", true;
    /// TaskOrder.
    task_order = "enableTaskOrder", true;
    /// Preemptable; with `allocatable`, one of the two that let SimulateAddTask and SimulateRemoveTask run.
    preemptable = "enablePreemptable", true;
    /// Reclaimable.
    reclaimable = "enableReclaimable", true;
    /// Preemptive.
    preemptive = "enablePreemptive", true;
    /// QueueOrder (VictimQueueOrder cannot be switched off).
    queue_order = "enableQueueOrder", true;
    /// ClusterOrder. Off unless asked for.
    cluster_order = "enabledClusterOrder", false;
    /// PrePredicate, Predicate and SimulatePredicate.
    predicate = "enablePredicate", true;
    /// BestNode.
    best_node = "enableBestNode", true;
    /// NodeOrder, BatchNodeOrder, NodeMap and NodeReduce.
    node_order = "enableNodeOrder", true;
    /// TargetJob.
    target_job = "enableTargetJob", true;
    /// ReservedNodes.
    reserved_nodes = "enableReservedNodes", true;
    /// JobEnqueueable and JobEnqueued.
    job_enqueued = "enableJobEnqueued", true;
    /// VictimTasks.
    victim = "enabledVictim", true;
    /// JobStarving.
    job_starving = "enableJobStarving", true;
    /// Overused.
    overused = "enabledOverused", true;
    /// Allocatable and SimulateAllocatable; see also `preemptable`.
    allocatable = "enabledAllocatable", true;
    /// HyperNodeOrder.
    hyper_node_order = "enabledHyperNodeOrder", true;
    /// SubJobReady.
    sub_job_ready = "enabledSubJobReady", true;
    /// SubJobPipelined.
    sub_job_pipelined = "enabledSubJobPipelined", true;
    /// SubJobOrder.
    sub_job_order = "enabledSubJobOrder", true;
    /// HyperNodeGradient, for jobs and for sub-jobs.
    hyper_node_gradient = "enabledHyperNodeGradient", true;
}
