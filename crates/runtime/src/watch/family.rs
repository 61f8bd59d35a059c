//! What watches are for: several programs watch the same kinds, and each makes something else of a change.

use crate::client::{DecodeError, Encoded, Resource};
use serde::de::DeserializeOwned;
use std::fmt;
use volcano_api::protobuf::Tables;

/// Watches of one program: which kinds there are, and what a change is to it.
pub trait Family: fmt::Debug + Send + 'static {
    /// The kinds.
    type Kind: Copy + fmt::Debug + Send + Sync;
    /// A change.
    type Change: fmt::Debug + Send;

    /// The change that the deletion of an object makes.
    fn gone(kind: Self::Kind, object: &Gone<'_>) -> Self::Change;
}

/// An object that was deleted.
#[derive(Clone, Copy, Debug)]
pub struct Gone<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The version of its deletion.
    pub version: &'a str,
}

/// An object of a watched kind.
pub trait Object<F: Family>: DeserializeOwned + Send + 'static {
    /// The kind.
    const KIND: F::Kind;
    /// Where it is served.
    const RESOURCE: Resource;
    /// The system works without the kind: its CRD may be missing.
    const OPTIONAL: bool = false;
    /// How its protobuf form is read; custom resources have only JSON.
    const PROTOBUF: Option<Tables> = None;

    /// Reads it, or as much of it as the program has a use for.
    ///
    /// # Errors
    /// When it cannot be read.
    fn read(encoded: Encoded<'_>) -> Result<Self, DecodeError> {
        encoded.object()
    }

    /// Namespace and name.
    fn name(&self) -> (&str, &str);

    /// Version, for resuming the watch.
    fn version(&self) -> &str;

    /// The change that it makes.
    fn change(self) -> F::Change;
}
