//! The whole system in one process: where there is no cluster, on a laptop, in CI, and in our own tests.
//!
//! ```text
//! client() ──┐                              ┌── scheduler ──┐
//! serve() ───┴─> embedded API server <──────┼── controllers ├── over clients without sockets
//!                  └─ admission             ├── volumes ────┤
//!                                           └── nodes ──────┘
//! ```
//!
//! ```no_run
//! # async fn example() -> Result<(), volcano_local::StartError> {
//! use volcano_local::{Nodes, Options, SimulatedNodes, System};
//! let nodes = Nodes::Simulated(vec![SimulatedNodes { count: 3, ..SimulatedNodes::default() }]);
//! let system = System::start(Options { nodes, ..Options::default() }).await?;
//! let client: kube::Client = system.client();
//! system.serve(std::path::Path::new("kubeconfig")).await?;
//! system.stop().await;
//! # Ok(())
//! # }
//! ```

mod admission;
mod clock;
mod installed;
mod leftover;
mod options;
mod simulated;
mod system;
mod volumes;

pub use clock::virtual_clock;
pub use options::{Nodes, Options, SimulatedNodes};
pub use system::{StartError, System};
