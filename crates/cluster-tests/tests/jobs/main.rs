//! The controllers as users see them: `vc-scheduler` and `vc-controller-manager` as processes on a real API server, and
//! kubelets that do no more than to say how pods are.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests stop at the first surprise, as tests do"
)]

mod commands;
mod expiry;
mod groups;
mod leaders;
mod life;
mod objects;
mod policies;
mod queues;
mod trouble;
