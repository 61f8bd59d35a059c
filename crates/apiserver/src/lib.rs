//! An embedded API server that speaks the Kubernetes API: in process, and over HTTPS on the loopback address.
//!
//! It is what the whole system runs on where there is no cluster: laptops, CI, and our own tests. It is as small as that
//! allows; Kubernetes is where users go when they outgrow it. What differs from Kubernetes is in docs/apiserver.md.
//!
//! ```text
//! kube::Client (no socket) ─┐
//! kubectl ── HTTPS, token ──┴─> http ──> verbs ──> store (pure)
//!                                 │        ├── schema, cel, patch, apply, kinds: what objects become, and may be
//!                                 │        └── admission: webhooks, in process or over HTTPS
//!                                 ├── watch: a place in the store's history
//!                                 └── table, discovery: what kubectl asks for
//! chores: garbage, namespaces, endpoints, budgets          file: everything that was acknowledged
//! ```
//!
//! ```no_run
//! # async fn example() -> Result<(), volcano_apiserver::StartError> {
//! use volcano_apiserver::{Options, Plane};
//! let plane = Plane::start(Options::default()).await?;
//! let client: kube::Client = plane.client();
//! let address = plane.serve(std::path::Path::new("kubeconfig")).await?;
//! # Ok(())
//! # }
//! ```

mod admission;
mod apply;
mod cel;
mod chores;
mod fault;
mod http;
mod kinds;
mod limits;
mod logs;
mod patch;
mod plane;
mod resources;
mod schema;
mod secure;
mod selector;
mod server;
mod store;
mod table;
mod verbs;
mod watch;

pub use admission::WebhookHandler;
pub use logs::{LogRequest, LogSource};
pub use plane::{Options, Plane, Reader, StartError};
pub use server::Clock;
