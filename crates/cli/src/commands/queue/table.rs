//! The tables of queues, and the numbers of PodGroups in them.

use crate::api::{Api, Meta, Scope};
use crate::failure::Failure;
use crate::live::{Item, Key};
use crate::output::Column;
use serde::Deserialize;
use std::collections::BTreeMap;
use volcano_api::core::{ResourceList, null_default};
use volcano_api::names::kinds;

/// What is printed of a queue.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct QueueItem {
    /// Metadata.
    pub metadata: Meta,
    /// What it may use.
    pub spec: QueueSpecItem,
    /// What it uses.
    #[serde(deserialize_with = "null_default")]
    pub status: QueueStatusItem,
}

/// What a queue may use.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct QueueSpecItem {
    /// Weight.
    pub weight: i64,
    /// The queue above.
    pub parent: String,
    /// The most that it may use.
    #[serde(deserialize_with = "null_default")]
    pub capability: ResourceList,
    /// Its share.
    #[serde(deserialize_with = "null_default")]
    pub deserved: ResourceList,
}

/// What a queue uses.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct QueueStatusItem {
    /// Whether it takes jobs.
    pub state: String,
    /// PodGroups in phase Inqueue.
    pub inqueue: i64,
    /// PodGroups in phase Pending.
    pub pending: i64,
    /// PodGroups in phase Running.
    pub running: i64,
    /// PodGroups in phase Unknown.
    pub unknown: i64,
    /// What its pods use.
    #[serde(deserialize_with = "null_default")]
    pub allocated: ResourceList,
}

impl Item for QueueItem {
    fn key(&self) -> Key {
        Key::from(&self.metadata)
    }
}

/// What is counted of a PodGroup.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct GroupItem {
    /// Metadata.
    pub metadata: Meta,
    /// Its queue.
    pub spec: GroupSpecItem,
    /// Its phase.
    #[serde(deserialize_with = "null_default")]
    pub status: GroupStatusItem,
}

/// The queue of a PodGroup.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct GroupSpecItem {
    /// The queue.
    pub queue: String,
}

/// The phase of a PodGroup.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct GroupStatusItem {
    /// The phase.
    pub phase: String,
}

impl Item for GroupItem {
    fn key(&self) -> Key {
        Key::from(&self.metadata)
    }
}

/// PodGroups of a queue by phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// In phase Inqueue.
    pub inqueue: i64,
    /// In phase Pending.
    pub pending: i64,
    /// In phase Running.
    pub running: i64,
    /// In phase Unknown.
    pub unknown: i64,
    /// In phase Completed.
    pub completed: i64,
}

impl Counts {
    /// Counts one in a phase; a phase that is none of these does not count.
    pub fn add(&mut self, phase: &str, count: i64) {
        let counter = match phase {
            "Inqueue" => &mut self.inqueue,
            "Pending" => &mut self.pending,
            "Running" => &mut self.running,
            "Unknown" => &mut self.unknown,
            "Completed" => &mut self.completed,
            _ => return,
        };
        *counter += count;
    }
}

/// Counts the PodGroups of all queues, page by page.
pub async fn counts(api: &Api) -> Result<BTreeMap<String, Counts>, Failure> {
    let mut pages = api.pages::<GroupItem>(Scope::new(kinds::POD_GROUP, ""), None);
    let mut counts: BTreeMap<String, Counts> = BTreeMap::new();
    while let Some(page) = pages.next().await.map_err(|error| api.failure(&error))? {
        for group in page {
            let counts = counts.entry(group.spec.queue).or_default();
            counts.add(&group.status.phase, 1);
        }
    }
    Ok(counts)
}

/// The columns of `vcctl queue`.
pub fn columns(is_wide: bool) -> Vec<Column> {
    let mut columns = vec![
        Column::fixed("Name", 25),
        Column::fixed("Weight", 8),
        Column::fixed("State", 8).state(),
        Column::fixed("Parent", 8),
        Column::fixed("Inqueue", 8),
        Column::fixed("Pending", 8),
        Column::fixed("Running", 8),
        Column::fixed("Unknown", 8),
        Column::fixed("Completed", 8),
    ];
    if is_wide {
        // Alone it is narrower than its header.
        columns.pop();
        columns.extend([
            Column::longest("Completed", 3),
            Column::longest("Allocated", 3),
            Column::longest("Deserved", 3),
            Column::longest("Capability", 3),
        ]);
    }
    columns
}

/// The cells of `vcctl queue`.
pub fn row(queue: &QueueItem, counts: Counts, is_wide: bool) -> Vec<String> {
    let numbers = [
        counts.inqueue,
        counts.pending,
        counts.running,
        counts.unknown,
        counts.completed,
    ];
    let mut row = vec![
        queue.metadata.name.clone(),
        queue.spec.weight.to_string(),
        queue.status.state.clone(),
        queue.spec.parent.clone(),
    ];
    row.extend(numbers.map(|number| number.to_string()));
    if is_wide {
        row.extend(
            [
                &queue.status.allocated,
                &queue.spec.deserved,
                &queue.spec.capability,
            ]
            .map(amounts),
        );
    }
    row
}

/// Amounts on one line.
fn amounts(list: &ResourceList) -> String {
    if list.is_empty() {
        return "-".to_owned();
    }
    let parts: Vec<_> = list
        .iter()
        .map(|(name, amount)| format!("{name}={amount}"))
        .collect();
    parts.join(",")
}
