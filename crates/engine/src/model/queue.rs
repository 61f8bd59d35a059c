//! A queue and the running sums of its jobs.

use crate::ids::{DimId, Sym};
use crate::resource::Resource;
use volcano_api::scheduling;

/// A queue. One that jobs name before its object exists is a placeholder (`exists` is false).
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// Its name, also its id in order rules.
    pub name: Sym,
    /// The Queue object is there.
    pub exists: bool,
    /// Microseconds since 1970.
    pub created: i64,
    /// Its part of the cluster against other queues.
    pub weight: i32,
    /// Larger goes first.
    pub priority: i32,
    /// The most it may use; `None` when not given.
    pub capability: Option<Resource>,
    /// What is kept for it.
    pub guarantee: Resource,
    /// What it may claim back.
    pub deserved: Resource,
    /// Others may reclaim from it.
    pub reclaimable: bool,
    /// Name of the parent; `None` means `root`.
    pub parent: Option<Sym>,
    /// Open, closed, closing.
    pub state: QueueState,
    /// Path of the hierarchical fair share (`volcano.sh/hierarchy`).
    pub hierarchy: Box<str>,
    /// Weights along that path (`volcano.sh/hierarchy-weights`).
    pub hierarchy_weights: Box<str>,
    /// `fifo`: a head job that cannot start holds back those behind it.
    pub fifo: bool,
    /// Jobs with a PodGroup.
    pub jobs: u32,
    /// Requests of tasks in the charged states.
    pub charged: Resource,
    /// Requests of pending tasks.
    pub pending: Resource,
    /// Requests of pending tasks that were let through the queue-allocation gate: set aside for them.
    pub reserved: Resource,
    /// What admitted jobs have yet to allocate of their minimum, as of the last cycle's opening.
    pub inqueue: Resource,
    /// What jobs hold beyond their minimum, as of the last cycle's opening.
    pub elastic: Resource,
    /// `status.allocated` as last written or read; `None` before the first time.
    pub allocated_written: Option<Resource>,
    /// `status.allocated` as the object last showed it: what is on its way does not show yet.
    pub allocated_seen: Option<Resource>,
}

/// Whether a queue takes work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QueueState {
    /// Takes new jobs. Also a queue whose state nobody has written yet.
    #[default]
    Open,
    /// Takes none.
    Closed,
    /// Takes none, and some still run.
    Closing,
    /// Cannot be told.
    Unknown,
}

impl From<&scheduling::QueueState> for QueueState {
    fn from(state: &scheduling::QueueState) -> Self {
        match state {
            scheduling::QueueState::Unset | scheduling::QueueState::Open => QueueState::Open,
            scheduling::QueueState::Closed => QueueState::Closed,
            scheduling::QueueState::Closing => QueueState::Closing,
            scheduling::QueueState::Unknown | scheduling::QueueState::Other(_) => QueueState::Unknown,
        }
    }
}

impl Queue {
    /// A queue that is only known by name.
    pub fn placeholder(name: Sym) -> Self {
        Queue {
            name,
            exists: false,
            created: 0,
            weight: 1,
            priority: 0,
            capability: None,
            guarantee: Resource::default(),
            deserved: Resource::default(),
            reclaimable: true,
            parent: None,
            state: QueueState::Open,
            hierarchy: "".into(),
            hierarchy_weights: "".into(),
            fifo: false,
            jobs: 0,
            charged: Resource::default(),
            pending: Resource::default(),
            reserved: Resource::default(),
            inqueue: Resource::default(),
            elastic: Resource::default(),
            allocated_written: None,
            allocated_seen: None,
        }
    }

    /// The object shows `shown` as its `status.allocated`. Neither what was written nor what was seen before: somebody
    /// else wrote it, and it has to be put right.
    pub(super) fn see_allocated(&mut self, shown: Option<Resource>) {
        if shown != self.allocated_written && shown != self.allocated_seen {
            self.allocated_written.clone_from(&shown);
        }
        self.allocated_seen = shown;
    }

    /// The same in all that decisions and statuses depend on: what its object shows as used is only for telling old
    /// objects from new ones.
    pub(super) fn is_as(&self, before: &Queue) -> bool {
        let allocated_seen = before.allocated_seen.clone();
        Queue {
            allocated_seen,
            ..self.clone()
        } == *before
    }

    /// Takes over what is to be written as `status.allocated`; returns what its status last named and no longer does.
    pub(crate) fn write_allocated(&mut self, allocated: Resource) -> Vec<DimId> {
        let known = [self.allocated_written.as_ref(), self.allocated_seen.as_ref()];
        let known = known.into_iter().flatten().flat_map(Resource::iter);
        let mut removed: Vec<DimId> = known
            .map(|(dim, _)| dim)
            .filter(|&dim| allocated.find(dim).is_none())
            .collect();
        removed.sort_unstable();
        removed.dedup();
        self.allocated_written = Some(allocated);
        removed
    }

    /// Takes new work.
    pub fn is_open(&self) -> bool {
        self.state == QueueState::Open
    }
}
