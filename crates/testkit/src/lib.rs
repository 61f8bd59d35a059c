//! What tests and benchmarks share: builders of objects, generated clusters, an executor that always succeeds, and
//! the scenario language.

pub mod build;
pub mod executor;
pub mod generate;
pub mod scenario;
