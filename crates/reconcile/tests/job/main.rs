//! The Job controller in a small world: tables of phases, policies and actions, traces, and a simulation with crashes.

// Helpers of tests may stop at the first surprise, as tests do.
#![allow(clippy::panic)]

mod footing;
mod golden;
mod lifecycle;
mod policies;
mod simulation;
mod surroundings;
mod world;
