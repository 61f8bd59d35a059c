//! The tables of JobFlows and JobTemplates.

use super::Noun;
use crate::api::Meta;
use crate::live::{Item, Key};
use crate::output::{Column, age, times};
use serde::Deserialize;
use volcano_api::core::null_default;

/// What is printed of a flow or a template.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct FlowItem {
    /// Metadata.
    pub metadata: Meta,
    /// How far it is.
    #[serde(deserialize_with = "null_default")]
    pub status: FlowStatusItem,
}

/// How far a flow is.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct FlowStatusItem {
    /// The phase.
    #[serde(deserialize_with = "null_default")]
    pub state: FlowStateItem,
}

/// The phase of a flow.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct FlowStateItem {
    /// The phase.
    pub phase: String,
}

impl Item for FlowItem {
    fn key(&self) -> Key {
        Key::from(&self.metadata)
    }
}

/// The columns.
pub fn columns(noun: &Noun) -> Vec<Column> {
    let mut columns = vec![Column::longest("Name", 4), Column::longest("Namespace", 4)];
    if noun.has_phase {
        columns.extend([Column::longest("Phase", 4).state(), Column::longest("Age", 4)]);
    }
    columns
}

/// The cells.
pub fn row(noun: &Noun, item: &FlowItem) -> Vec<String> {
    let meta = &item.metadata;
    let mut row = vec![meta.name.clone(), meta.namespace.clone()];
    if noun.has_phase {
        row.push(item.status.state.phase.clone());
        row.push(age::since(times::now(), meta.creation_timestamp));
    }
    row
}
