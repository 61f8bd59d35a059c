//! `vc-webhook-manager`: the process around the rules of admission.
//!
//! ```text
//!                     files or Secret ──> certificate ──┐
//! API server ──TLS──> server ──> review(path, body, cache, rules) ──> answer
//!                                                  ^          └──> events
//! watches of Queues and Namespaces ──> cache ──────┘
//! bundle: keeps the authority of the certificate in the webhook configurations
//! ```
//!
//! While it does not answer, nobody can submit a Job. So it takes requests only when it can judge them, a request that
//! it stumbles over costs nobody else an answer, and a new certificate does not interrupt anything.

mod authority;
mod bundle;
mod cache;
mod certificates;
mod clock;
mod events;
mod handler;
mod options;
mod run;
mod secret;
mod server;

pub use cache::has_time_zone;
pub use events::write as write_events;
pub use options::{Options, SecretName};
pub use run::{RunError, run};
pub use secret::{SecretError, rotate};
