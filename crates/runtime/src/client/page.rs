//! Lists, as the API server sends them: a part at a time.

use serde::Deserialize;

/// A part of a list.
#[derive(Deserialize)]
#[serde(bound = "T: serde::de::DeserializeOwned")]
pub struct Page<T> {
    /// Where it stands in the list.
    #[serde(default)]
    pub metadata: PageMeta,
    /// The objects.
    #[serde(default = "Vec::new", deserialize_with = "volcano_api::core::null_default")]
    pub items: Vec<T>,
}

/// Where a part stands in its list.
#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
pub struct PageMeta {
    /// The version that the list shows.
    pub resource_version: String,
    /// What to ask for to get the next part; empty for the last one.
    pub r#continue: String,
}
