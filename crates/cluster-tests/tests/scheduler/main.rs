//! The scheduler as users see it: a process on a real API server, with nodes that are plain objects.

#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests stop at the first surprise, as tests do"
)]

mod eviction;
mod gangs;
mod groups;
mod leaders;
mod nodes;
mod queues;
mod reload;
mod snapshot;
mod trouble;
mod volumes;

use volcano_cluster_tests::stage::Stage;

/// A clean cluster for a test.
async fn stage() -> Stage {
    Stage::set().await.unwrap()
}

/// A configuration with these actions and the usual plugins.
fn with_actions(actions: &str) -> String {
    format!(
        "actions: \"{actions}\"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}, {{name: conformance}}]
- plugins: [{{name: overcommit}}, {{name: drf}}, {{name: predicates}}, {{name: proportion}}, {{name: nodeorder}}]
"
    )
}

/// A configuration with the plugin capacity in the place of proportion.
const CAPACITY: &str = "actions: \"enqueue, allocate, backfill\"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}]
";
