//! The API of the batch system: CRD types, slim views of the core objects that scheduling reads, quantities,
//! and every label, annotation, condition, reason and event name, each in one place.

pub mod batch;
pub mod bus;
pub mod config;
pub mod core;
#[cfg(feature = "schema")]
pub mod crd;
pub mod flow;
pub mod meta;
pub mod names;
pub mod nodeinfo;
pub mod protobuf;
pub mod quantity;
pub mod scheduling;
pub mod shard;
pub mod time;
pub mod topology;
mod wire;
