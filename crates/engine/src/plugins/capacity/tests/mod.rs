//! Tests of the capacity plugin: single queues, the tree, reclaim.

mod flat;
mod hierarchy;
mod quarantine;
mod reclaiming;

use super::*;
use crate::config::Arguments;
use crate::plugins::quota::fixture::{Fixture, conf};
use serde_json::{Value, json};

fn flat() -> Capacity {
    Capacity::new(&conf("capacity", false, Arguments::new()))
}

fn tree(level: i64) -> Capacity {
    let mut arguments = Arguments::new();
    arguments.insert(ANCESTOR_RECLAIM_LEVEL, level);
    Capacity::new(&conf("capacity", true, arguments))
}

/// A node with 8 cpu and 8 GPUs.
fn cluster() -> Fixture {
    Fixture::new(json!({"cpu": "8", "memory": "8Gi", "pods": "110", "nvidia.com/gpu": "8"}))
}

fn cpu(amount: &str) -> Value {
    json!({"cpu": amount})
}

fn gpu(amount: &str) -> Value {
    json!({"nvidia.com/gpu": amount})
}
