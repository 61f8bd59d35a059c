//! Admission: defaults for what users leave out, and answers to what cannot be.
//!
//! ```text
//! AdmissionReview ──> review(path, body, lookups, options) ──> Response ──> AdmissionReview
//!                        │
//!                        └─ webhooks: path -> rules of a kind
//! ```
//!
//! The rules are functions of the request, of the options, and of what [`Lookups`] tells of the cluster. They never
//! wait and never write: an event that is to be recorded is part of the response.
//!
//! A file or folder for each kind, named after its path: `jobs`, `queues`, `podgroups`, `pods`, `jobflows`, `cronjobs`,
//! `hypernodes`.

mod cron;
mod cronjobs;
mod dag;
mod field;
mod hypernodes;
mod jobflows;
mod jobs;
mod lookups;
mod options;
mod patch;
mod podgroups;
mod pods;
mod queues;
mod review;
mod syntax;
mod template;
pub mod webhooks;

pub use lookups::Lookups;
pub use options::Options;
pub use patch::{Op, Operation, Patch};
pub use pods::groups::{ResourceGroups, ResourceGroupsError};
pub use review::{Event, MAX_BODY_BYTES, Response, request_uid, review};
