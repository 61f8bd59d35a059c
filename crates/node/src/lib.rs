//! The node agent of the embedded plane: runs the pods that are bound to it as real processes of this machine, and reports
//! them as a kubelet does. Images are not pulled: the host's files are the image.
//!
//! ```text
//! feed (pods, Services, Endpoints) ──> agent ──> worker, one per pod ──> status, events
//!                                                  │  lifecycle: what is to be done (pure)
//!                                                  │  status: what is reported (pure)
//!                                                  └─> process ──pipes──> container (this binary, started again)
//! logs <── output        names: /etc/hosts of pods        network: a bridge, an address for each pod
//! ```
//!
//! What it does and does not do is in docs/node.md.

mod agent;
pub mod container;
mod environment;
mod events;
mod feed;
mod fields;
mod isolation;
mod lifecycle;
mod limits;
mod logs;
mod machine;
mod names;
mod network;
mod objects;
mod payload;
mod probes;
mod process;
mod register;
mod room;
mod status;
mod unsupported;
mod volumes;
mod worker;

pub use agent::{Agent, Options, StartError};
pub use container::Isolation;
