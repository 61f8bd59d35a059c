//! The scheduling engine: decides where the pods of a batch cluster go. Pure: objects in, decisions out; no clock,
//! no files, no network, no random numbers.
//!
//! ```text
//! Delta -> Model::apply -> Engine::cycle(now) -> Vec<Effect>
//! ```

pub mod actions;
mod close;
pub mod config;
pub mod dispatch;
pub mod effect;
mod engine;
pub mod explain;
pub mod export;
pub mod figures;
pub mod ids;
pub mod intern;
pub mod model;
pub mod placer;
pub mod plugin;
pub mod plugins;
pub mod relations;
pub mod resource;
pub mod session;

pub use effect::{Cycle, Effect};
pub use engine::Engine;
