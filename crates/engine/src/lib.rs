//! The scheduling engine.

pub mod config;
