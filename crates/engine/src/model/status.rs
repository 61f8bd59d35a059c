//! Task states, the classes of states that rules speak of, and counters over them.
//!
//! ```text
//! Pending -> Allocated -> Binding -> Bound -> Running -> Succeeded | Failed
//!    |  ^                                |        |
//!    v  | next cycle                     +--------+-> Releasing -> (gone)
//! Pipelined
//! ```

/// The state of a task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Status {
    /// Waits for a node.
    Pending,
    /// Placed on idle resources in this cycle, not committed yet.
    Allocated,
    /// Placed on resources that others are about to release; forgotten at the end of the cycle.
    Pipelined,
    /// Handed to the executor, not seen as bound yet.
    Binding,
    /// Has a node, does not run yet.
    Bound,
    /// Runs.
    Running,
    /// Is being deleted.
    Releasing,
    /// Ended well.
    Succeeded,
    /// Ended badly.
    Failed,
    /// Its node cannot be reached.
    Unknown,
}

/// All states, in the order of their definition.
pub const ALL: [Status; 10] = [
    Status::Pending,
    Status::Allocated,
    Status::Pipelined,
    Status::Binding,
    Status::Bound,
    Status::Running,
    Status::Releasing,
    Status::Succeeded,
    Status::Failed,
    Status::Unknown,
];

impl Status {
    /// Holds resources of its node for good: Allocated, Binding, Bound, Running.
    pub fn is_allocated(self) -> bool {
        matches!(
            self,
            Status::Allocated | Status::Binding | Status::Bound | Status::Running
        )
    }

    /// Counted against its queue and its job's share: the allocated states, and Pipelined.
    pub fn is_charged(self) -> bool {
        self.is_allocated() || self == Status::Pipelined
    }

    /// Ended.
    pub fn is_completed(self) -> bool {
        matches!(self, Status::Succeeded | Status::Failed)
    }

    /// The name that messages use.
    pub fn name(self) -> &'static str {
        match self {
            Status::Pending => "Pending",
            Status::Allocated => "Allocated",
            Status::Pipelined => "Pipelined",
            Status::Binding => "Binding",
            Status::Bound => "Bound",
            Status::Running => "Running",
            Status::Releasing => "Releasing",
            Status::Succeeded => "Succeeded",
            Status::Failed => "Failed",
            Status::Unknown => "Unknown",
        }
    }
}

/// How many tasks are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    by_status: [u32; 10],
    /// Pending tasks that request nothing.
    pub best_effort_pending: u32,
    /// Releasing tasks that sit on a node.
    pub releasing_on_node: u32,
}

impl Counts {
    /// Counts a task in.
    pub fn enter(&mut self, status: Status, best_effort: bool, on_node: bool) {
        self.by_status[status as usize] += 1;
        self.best_effort_pending += u32::from(status == Status::Pending && best_effort);
        self.releasing_on_node += u32::from(status == Status::Releasing && on_node);
    }

    /// Counts a task out.
    pub fn leave(&mut self, status: Status, best_effort: bool, on_node: bool) {
        self.by_status[status as usize] -= 1;
        self.best_effort_pending -= u32::from(status == Status::Pending && best_effort);
        self.releasing_on_node -= u32::from(status == Status::Releasing && on_node);
    }

    /// Tasks in one state.
    #[inline]
    pub fn of(&self, status: Status) -> u32 {
        self.by_status[status as usize]
    }

    /// All tasks.
    pub fn total(&self) -> u32 {
        self.by_status.iter().sum()
    }

    /// Tasks in the allocated states.
    pub fn allocated(&self) -> u32 {
        self.of(Status::Allocated)
            + self.of(Status::Binding)
            + self.of(Status::Bound)
            + self.of(Status::Running)
    }

    /// Tasks that were given their node for good, in this or an earlier cycle: Binding, Bound, Running.
    pub fn placed(&self) -> u32 {
        self.of(Status::Binding) + self.of(Status::Bound) + self.of(Status::Running)
    }

    /// Tasks that count for a gang: allocated or succeeded.
    pub fn ready(&self) -> u32 {
        self.allocated() + self.of(Status::Succeeded)
    }

    /// Tasks that wait for resources being released.
    pub fn waiting(&self) -> u32 {
        self.of(Status::Pipelined)
    }

    /// How many of `minimum` neither have a place, nor need one, nor wait for one that others are leaving.
    pub fn short_of(&self, minimum: u32) -> u32 {
        minimum.saturating_sub(self.ready() + self.best_effort_pending + self.waiting())
    }

    /// Tasks that are or may become part of a gang.
    pub fn valid(&self) -> u32 {
        self.ready() + self.waiting() + self.of(Status::Pending)
    }

    /// Tasks that have been scheduled, ended ones included.
    pub fn scheduled(&self) -> u32 {
        self.of(Status::Bound)
            + self.of(Status::Running)
            + self.of(Status::Succeeded)
            + self.of(Status::Failed)
            + self.releasing_on_node
    }
}
