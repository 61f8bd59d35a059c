//! Being written.
/// A Kubernetes quantity.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Quantity(String);
