//! Flags and feature gates that decisions depend on: queue-allocation gates, NodeShards, ignored drivers.

use super::{cycle, engine, group, merge, node, pod, queue, read, running_on};
use serde_json::{Value, json};
use volcano_api::shard::NodeShardStatus;
use volcano_engine::export::Underway;
use volcano_engine::model::delta::Delta;
use volcano_engine::model::features::{Features, Sharding, ShardingMode};
use volcano_engine::{Cycle, Effect, Engine};

const GATE: &str = "scheduling.volcano.sh/queue-allocation-gate";

fn with_gates(plugins: &[&str]) -> Engine {
    let features = Features {
        queue_admission: true,
        ..Features::default()
    };
    engine("allocate, backfill", plugins).with_features(features)
}

/// A pod that asks to be held back until its queue has room; `gated` as long as the gate is there.
fn asking(name: &str, group: &str, cpu: &str, gated: bool) -> Delta {
    let gates: Vec<Value> = gated.then(|| json!({"name": GATE})).into_iter().collect();
    let more = json!({
        "metadata": {"annotations": {GATE: "true"}},
        "spec": {"schedulingGates": gates},
    });
    pod(name, group, cpu, more)
}

fn opened(engine: &Engine, cycle: &Cycle) -> Vec<String> {
    let m = engine.model();
    let tasks = cycle.effects.iter().filter_map(|effect| match effect {
        Effect::OpenGate { task } => Some(m.task(*task).name.to_string()),
        _ => None,
    });
    tasks.collect()
}

/// Node by pod.
fn bound(engine: &Engine, cycle: &Cycle) -> Vec<(String, String)> {
    let m = engine.model();
    let binds = cycle.effects.iter().filter_map(|effect| match effect {
        Effect::Bind { binds, .. } => Some(binds),
        _ => None,
    });
    let name = |&(task, node)| {
        (
            m.task(task).name.to_string(),
            m.text(m.nodes[node].name).to_owned(),
        )
    };
    let mut list: Vec<_> = binds.flatten().map(name).collect();
    list.sort();
    list
}

#[test]
fn a_gate_is_opened_when_the_queue_has_room_and_the_pod_is_placed_after_that() {
    let mut engine = with_gates(&["gang", "capacity"]);
    engine.apply(queue("default", json!({"spec": {"capability": {"cpu": "2"}}})));
    engine.apply(node("n1", "8", json!({})));
    for name in ["a", "b", "c"] {
        engine.apply(group(name, json!({})));
        engine.apply(asking(name, name, "1", true));
    }
    let first = cycle(&mut engine);
    assert_eq!(opened(&engine, &first), ["a", "b"], "the queue has room for two");
    assert_eq!(bound(&engine, &first), []);
    let second = cycle(&mut engine);
    assert_eq!(
        opened(&engine, &second),
        Vec::<String>::new(),
        "told once, and the room is kept"
    );
    // An ordinary pod may not take what was promised.
    engine.apply(group("d", json!({})));
    engine.apply(pod("d", "d", "1", json!({})));
    let between = cycle(&mut engine);
    assert_eq!(bound(&engine, &between), []);
    engine.apply(asking("b", "b", "1", false));
    let third = cycle(&mut engine);
    assert_eq!(bound(&engine, &third), [("b".to_owned(), "n1".to_owned())]);
    engine.apply(asking("a", "a", "1", false));
    let fourth = cycle(&mut engine);
    assert_eq!(bound(&engine, &fourth), [("a".to_owned(), "n1".to_owned())]);
    assert_eq!(opened(&engine, &fourth), Vec::<String>::new());
    // What one gives back, the next gets.
    engine.apply(Delta::PodGone {
        namespace: "ns".to_owned(),
        name: "b".to_owned(),
    });
    let fifth = cycle(&mut engine);
    let (let_in, placed) = (opened(&engine, &fifth), bound(&engine, &fifth));
    assert_eq!(let_in.len() + placed.len(), 1, "{let_in:?} {placed:?}");
}

#[test]
fn room_that_is_promised_below_a_queue_counts_for_it_too() {
    let mut engine = with_gates(&["gang"]);
    let text = json!({"actions": "allocate", "tiers": [
        {"plugins": [{"name": "gang"}, {"name": "capacity", "enableHierarchy": true}]}]});
    let conf = volcano_engine::config::SchedulerConf::parse(
        &text.to_string(),
        volcano_engine::config::catalog::PLANNED_PLUGINS,
        volcano_engine::config::catalog::ACTIONS,
    );
    engine.reconfigure(conf.expect("a good one"));
    engine.apply(queue("root", json!({})));
    engine.apply(queue("team", json!({"spec": {"capability": {"cpu": "1"}}})));
    engine.apply(node("n1", "8", json!({})));
    for name in ["one", "two"] {
        engine.apply(queue(name, json!({"spec": {"parent": "team"}})));
        engine.apply(group(name, json!({"spec": {"queue": name}})));
        engine.apply(asking(name, name, "1", true));
    }
    let first = cycle(&mut engine);
    assert_eq!(opened(&engine, &first).len(), 1, "the team has room for one");
}

#[test]
fn a_gate_stays_without_the_annotation_and_without_the_feature() {
    let gate = json!({"spec": {"schedulingGates": [{"name": GATE}]}});
    let mut plain = with_gates(&["gang", "capacity"]);
    let mut off = engine("allocate", &["gang", "capacity"]);
    for engine in [&mut plain, &mut off] {
        engine.apply(node("n1", "8", json!({})));
        engine.apply(group("g", json!({})));
    }
    plain.apply(pod("p", "g", "1", gate.clone()));
    off.apply(asking("p", "g", "1", true));
    for mut engine in [plain, off] {
        let cycle = cycle(&mut engine);
        assert_eq!(opened(&engine, &cycle), Vec::<String>::new());
        assert_eq!(bound(&engine, &cycle), []);
    }
    // With another gate beside it, somebody else holds the pod back.
    let mut engine = with_gates(&["gang", "capacity"]);
    engine.apply(node("n1", "8", json!({})));
    engine.apply(group("g", json!({})));
    let mut both = json!({"metadata": {"annotations": {GATE: "true"}}});
    merge(
        &mut both,
        json!({"spec": {"schedulingGates": [{"name": GATE}, {"name": "example.com/x"}]}}),
    );
    engine.apply(pod("p", "g", "1", both));
    let cycle = cycle(&mut engine);
    assert_eq!(opened(&engine, &cycle), Vec::<String>::new());
}

#[test]
fn a_pod_that_requests_nothing_gets_through_its_gate() {
    let mut engine = with_gates(&["gang", "capacity"]);
    engine.apply(node("n1", "8", json!({})));
    engine.apply(group("g", json!({})));
    engine.apply(asking("p", "g", "0", true));
    let first = cycle(&mut engine);
    assert_eq!(opened(&engine, &first), ["p"]);
    engine.apply(asking("p", "g", "0", false));
    let second = cycle(&mut engine);
    assert_eq!(bound(&engine, &second), [("p".to_owned(), "n1".to_owned())]);
}

#[test]
fn a_replay_knows_which_gates_are_being_opened_and_which_binds_failed() {
    let mut live = with_gates(&["gang", "capacity"]);
    live.apply(queue("default", json!({"spec": {"capability": {"cpu": "2"}}})));
    live.apply(node("n1", "8", json!({})));
    live.apply(group("g", json!({})));
    live.apply(group("h", json!({"spec": {"minMember": 1}})));
    live.apply(asking("p", "g", "1", true));
    live.apply(pod("q", "h", "1", json!({})));
    cycle(&mut live);
    live.apply(Delta::BindFailed {
        namespace: "ns".to_owned(),
        name: "q".to_owned(),
        uid: "q".to_owned(),
    });
    let snapshot = live.snapshot("", volcano_api::time::Time::EPOCH);
    let written: Value = serde_json::to_value(&snapshot).expect("plain JSON");
    let underway: Underway = read(written["underway"].clone());
    assert_eq!(underway.gates_opened, ["ns/p"]);
    assert_eq!(underway.bind_failed, ["ns/q"]);
    let mut again = with_gates(&["gang", "capacity"]).with_features(read(written["features"].clone()));
    live.objects().for_each(|object| again.apply(object));
    again.resume(&underway);
    let (decided, replayed) = (cycle(&mut live), cycle(&mut again));
    assert_eq!(bound(&live, &decided), bound(&again, &replayed));
    assert_eq!(opened(&live, &decided), opened(&again, &replayed));
    assert_eq!(opened(&again, &replayed), Vec::<String>::new());
}

fn sharded(mode: ShardingMode) -> Engine {
    let sharding = Some(Sharding {
        name: "volcano".to_owned(),
        mode,
    });
    let features = Features {
        sharding,
        ..Features::default()
    };
    engine(
        "allocate, preempt, backfill",
        &["gang", "predicates", "nodeorder"],
    )
    .with_features(features)
}

fn shard(name: &str, desired: &[&str], in_use: &[&str]) -> Delta {
    let shard = json!({
        "metadata": {"name": name},
        "spec": {"nodesDesired": desired},
        "status": {"nodesInUse": in_use},
    });
    Delta::NodeShard(Box::new(read(shard)))
}

fn statuses(cycle: &Cycle) -> Vec<&NodeShardStatus> {
    let told = cycle.effects.iter().filter_map(|effect| match effect {
        Effect::ShardStatus(status) => Some(status),
        _ => None,
    });
    told.collect()
}

#[test]
fn hard_sharding_keeps_to_its_own_nodes_and_says_so() {
    let mut engine = sharded(ShardingMode::Hard);
    engine.apply(node("n1", "1", json!({})));
    engine.apply(node("n2", "8", json!({})));
    engine.apply(group("g", json!({"spec": {"minMember": 2}})));
    engine.apply(pod("p0", "g", "1", json!({})));
    engine.apply(pod("p1", "g", "1", json!({})));
    let nothing = cycle(&mut engine);
    assert_eq!(bound(&engine, &nothing), [], "no node is its own yet");
    let told = nothing.effects.iter().find_map(|effect| match effect {
        Effect::PodCondition { message, .. } => Some(message.to_string()),
        _ => None,
    });
    assert_eq!(
        told.as_deref(),
        Some("0/2 nodes are unavailable: 2 node isn't in scheduler node shard.")
    );
    engine.apply(shard("volcano", &["n1", "n2"], &[]));
    engine.apply(shard("agent", &[], &["n2"]));
    let waiting = cycle(&mut engine);
    assert_eq!(bound(&engine, &waiting), [], "the other one still uses n2");
    let status = statuses(&waiting);
    assert_eq!(status.len(), 1);
    assert_eq!(
        (&status[0].nodes_in_use[..], &status[0].nodes_to_add[..]),
        (&["n1".to_owned()][..], &["n2".to_owned()][..])
    );
    engine.apply(shard("agent", &[], &[]));
    let whole = cycle(&mut engine);
    assert_eq!(bound(&engine, &whole).len(), 2);
    assert_eq!(statuses(&whole)[0].nodes_in_use, ["n1", "n2"]);
    assert!(statuses(&cycle(&mut engine)).is_empty(), "told once");
}

#[test]
fn soft_sharding_prefers_its_own_nodes_whatever_their_score() {
    let mut engine = sharded(ShardingMode::Soft);
    engine.apply(node("own", "2", json!({})));
    engine.apply(node("theirs", "8", json!({})));
    engine.apply(shard("volcano", &["own"], &[]));
    for at in 0..3 {
        let name = format!("p{at}");
        engine.apply(group(&name, json!({})));
        engine.apply(pod(&name, &name, "1", json!({})));
    }
    let cycle = cycle(&mut engine);
    let nodes: Vec<String> = bound(&engine, &cycle).into_iter().map(|(_, node)| node).collect();
    assert_eq!(nodes, ["own", "own", "theirs"]);
}

#[test]
fn room_now_elsewhere_goes_before_room_later_of_its_own() {
    let mut engine = sharded(ShardingMode::Soft);
    engine.apply(node("own", "1", json!({})));
    engine.apply(node("theirs", "1", json!({})));
    engine.apply(shard("volcano", &["own"], &[]));
    let mut leaving = running_on("own");
    merge(
        &mut leaving,
        json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
    );
    engine.apply(pod("old", "", "1", leaving));
    engine.apply(group("g", json!({})));
    engine.apply(pod("p", "g", "1", json!({})));
    let cycle = cycle(&mut engine);
    assert_eq!(bound(&engine, &cycle), [("p".to_owned(), "theirs".to_owned())]);
}

#[test]
fn a_scheduler_whose_shard_is_gone_keeps_its_nodes() {
    let mut engine = sharded(ShardingMode::Hard);
    engine.apply(node("n1", "1", json!({})));
    engine.apply(shard("volcano", &["n1"], &[]));
    engine.apply(Delta::NodeShardGone {
        name: "volcano".to_owned(),
    });
    engine.apply(group("g", json!({})));
    engine.apply(pod("p", "g", "1", json!({})));
    let cycle = cycle(&mut engine);
    assert_eq!(bound(&engine, &cycle), [("p".to_owned(), "n1".to_owned())]);
    assert!(statuses(&cycle).is_empty(), "there is nothing to write it to");
}
