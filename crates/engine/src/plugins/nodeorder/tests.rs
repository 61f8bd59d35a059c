use crate::config::{Arguments, PluginConf};
use crate::model::Model;
use crate::plugin::Plugin;
use crate::relations::testing::{chosen, cluster, empty, labelled, merged, node, plugins, pod};
use serde_json::{Value, json};

const ALL: [&str; 8] = [
    "leastrequested",
    "mostrequested",
    "balancedresource",
    "nodeaffinity",
    "podaffinity",
    "tainttoleration",
    "imagelocality",
    "podtopologyspread",
];

/// Arguments with one score on and all others off.
fn only(score: &str, weight: i64) -> Vec<(String, Value)> {
    let weight = |name: &str| if name == score { weight } else { 0 };
    ALL.iter()
        .map(|name| (format!("{name}.weight"), json!(weight(name))))
        .collect()
}

fn build(score: &str, weight: i64, m: &Model) -> Box<dyn Plugin> {
    let conf = PluginConf {
        name: "nodeorder".to_owned(),
        arguments: only(score, weight).into_iter().collect::<Arguments>(),
        ..PluginConf::default()
    };
    let mut plugin = super::build(&conf);
    plugin.open(m, 0);
    plugin
}

/// The node-local score of the only waiting pod `p` on each node.
fn scores(m: &Model, score: &str) -> Vec<f64> {
    let plugin = build(score, 1, m);
    let task = m.find_task("ns", "p").expect("the pod");
    m.nodes
        .ids()
        .map(|node| plugin.node_order(m, m.class_of(task), node))
        .collect()
}

/// The node chosen for `p` with one score on.
fn best(m: &Model, score: &str, weight: i64) -> String {
    let arguments = only(score, weight);
    let arguments: Vec<(&str, Value)> = arguments.iter().map(|(k, v)| (k.as_str(), v.clone())).collect();
    let plugins = plugins(m, &[("nodeorder", &arguments)]);
    chosen(m, &plugins, m.find_task("ns", "p").expect("the pod"))
}

fn requests(cpu: &str, memory: &str) -> Value {
    json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]}})
}

#[test]
fn least_and_most_allocated_are_averages_of_cpu_and_memory_in_whole_points() {
    let mut m = cluster(&[("a", json!({})), ("b", json!({}))]);
    pod(&mut m, "old", Some("a"), requests("1", "1Gi"));
    pod(&mut m, "p", None, requests("1", "3Gi"));
    // a: cpu 2 of 4 is 50, memory 4 of 8 is 50; b: cpu 75, memory 5 of 8 is 62.5, rounded down.
    assert_eq!(scores(&m, "leastrequested"), [50.0, 68.0]);
    assert_eq!(scores(&m, "mostrequested"), [50.0, 31.0]);
    assert_eq!(scores(&m, "balancedresource"), [78.0, 71.0]);
    assert_eq!(best(&m, "leastrequested", 1), "b");
    assert_eq!(best(&m, "mostrequested", 1), "a");
    assert_eq!(
        best(&m, "leastrequested", -1),
        "a",
        "a negative weight turns the order round"
    );
}

#[test]
fn pods_without_requests_count_a_little() {
    let mut m = cluster(&[("a", json!({})), ("b", json!({}))]);
    pod(&mut m, "old", Some("a"), json!({}));
    pod(&mut m, "p", None, json!({}));
    // 200m of 4 cores and 400Mi of 8Gi against 100m and 200Mi.
    assert_eq!(scores(&m, "leastrequested"), [95.0, 97.0]);
    assert_eq!(scores(&m, "balancedresource"), [0.0, 0.0], "nothing to balance");
}

#[test]
fn a_node_that_offers_nothing_scores_nothing() {
    let mut m = empty();
    node(
        &mut m,
        "a",
        json!({"status": {"allocatable": {"cpu": "0", "memory": "0"}}}),
    );
    node(
        &mut m,
        "b",
        json!({"status": {"allocatable": {"cpu": "1", "memory": "0"}}}),
    );
    node(
        &mut m,
        "c",
        json!({"status": {"allocatable": {"cpu": "500m", "memory": "0"}}}),
    );
    pod(&mut m, "p", None, requests("600m", "1Gi"));
    assert_eq!(scores(&m, "leastrequested"), [0.0, 40.0, 0.0]);
    assert_eq!(scores(&m, "mostrequested"), [0.0, 60.0, 100.0]);
}

#[test]
fn balanced_allocation_prefers_the_node_that_becomes_more_even() {
    let mut m = empty();
    node(
        &mut m,
        "even",
        json!({"status": {"allocatable": {"cpu": "2", "memory": "2Gi"}}}),
    );
    node(
        &mut m,
        "uneven",
        json!({"status": {"allocatable": {"cpu": "4", "memory": "2Gi"}}}),
    );
    pod(&mut m, "p", None, requests("1", "1Gi"));
    // even: 100 before and after; uneven: 1/4 against 1/2, deviation 0.125, so 87 after.
    assert_eq!(scores(&m, "balancedresource"), [75.0, 68.0]);
    assert_eq!(best(&m, "balancedresource", 1), "even");
}

#[test]
fn balanced_allocation_counts_gpus_only_for_pods_that_want_them() {
    let mut m = empty();
    let gpus = json!({"status": {"allocatable": {"cpu": "8", "memory": "8Gi", "nvidia.com/gpu": "8"}}});
    node(&mut m, "a", gpus);
    pod(&mut m, "p", None, requests("4", "4Gi"));
    assert_eq!(scores(&m, "balancedresource"), [75.0]);
    let gpu = json!({"spec": {"containers": [{"name": "c", "resources": {
        "requests": {"cpu": "4", "memory": "4Gi", "nvidia.com/gpu": "1"}}}]}});
    pod(&mut m, "p", None, gpu);
    // 0.5, 0.5, 0.125: deviation 0.1768, so 82 after 100.
    assert_eq!(scores(&m, "balancedresource"), [66.0]);
}

#[test]
fn image_locality_counts_bytes_by_how_widely_they_are_spread() {
    let image =
        |size: i64| json!({"status": {"images": [{"names": ["app:1", "app@sha256:x"], "sizeBytes": size}]}});
    let mut m = empty();
    node(&mut m, "a", image(1000 << 20));
    node(&mut m, "b", json!({}));
    node(&mut m, "c", image(40 << 20));
    node(&mut m, "d", json!({}));
    pod(
        &mut m,
        "p",
        None,
        json!({"spec": {"containers": [{"name": "c", "image": "app:1"}]}}),
    );
    // Half of the nodes have it: 500 MiB and 20 MiB count.
    let expected = 100 * (500 - 23) / (1000 - 23);
    assert_eq!(scores(&m, "imagelocality"), [f64::from(expected), 0.0, 0.0, 0.0]);
    node(&mut m, "c", json!({}));
    let expected = 100 * (250 - 23) / (1000 - 23);
    assert_eq!(
        scores(&m, "imagelocality"),
        [f64::from(expected), 0.0, 0.0, 0.0],
        "one node less has it"
    );
    pod(
        &mut m,
        "p",
        None,
        json!({"spec": {"containers": [{"name": "c", "image": "app"}]}}),
    );
    assert_eq!(
        scores(&m, "imagelocality"),
        [0.0; 4],
        "without a tag it is another image"
    );
}

#[test]
fn preferred_node_affinity_is_normalised_to_the_best_candidate() {
    let mut m = cluster(&[
        ("a", json!({})),
        ("b", json!({"disk": "ssd"})),
        ("c", json!({"disk": "hdd"})),
    ]);
    let prefer = |weight: i64, value: &str| {
        json!({"weight": weight, "preference": {"matchExpressions": [
            {"key": "disk", "operator": "In", "values": [value]}]}})
    };
    let affinity = json!({"spec": {"affinity": {"nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [prefer(5, "ssd"), prefer(20, "hdd")]}}}});
    pod(&mut m, "p", None, affinity);
    let plugin = build("nodeaffinity", 2, &m);
    let class = m.class_of(m.find_task("ns", "p").expect("the pod"));
    let norm = plugin.norm_scores()[0];
    assert!((norm.applies)(&m, class));
    assert_eq!(
        m.nodes
            .ids()
            .map(|n| (norm.raw)(&m, class, n))
            .collect::<Vec<_>>(),
        [0, 5, 20]
    );
    assert_eq!(best(&m, "nodeaffinity", 2), "c");
}

#[test]
fn soft_taints_count_against_a_node_unless_tolerated() {
    let taint = |n: usize| {
        let list: Vec<_> = (0..n)
            .map(|i| json!({"key": format!("k{i}"), "effect": "PreferNoSchedule"}))
            .collect();
        json!({"spec": {"taints": list}})
    };
    let mut m = empty();
    node(&mut m, "a", taint(2));
    node(&mut m, "b", taint(1));
    pod(&mut m, "p", None, json!({}));
    assert_eq!(m.nodes.soft_tainted(), 2);
    assert_eq!(best(&m, "tainttoleration", 3), "b");
    pod(
        &mut m,
        "p",
        None,
        json!({"spec": {"tolerations": [{"operator": "Exists"}]}}),
    );
    assert_eq!(
        best(&m, "tainttoleration", 3),
        "a",
        "all are tolerated: the first by name"
    );
    node(&mut m, "a", json!({}));
    pod(&mut m, "p", None, json!({}));
    assert_eq!(
        (m.nodes.soft_tainted(), best(&m, "tainttoleration", 3)),
        (1, "a".to_owned())
    );
    let plugin = build("tainttoleration", 3, &m);
    node(&mut m, "b", json!({}));
    let class = m.class_of(m.find_task("ns", "p").expect("the pod"));
    assert!(
        !(plugin.norm_scores()[0].applies)(&m, class),
        "no taint is left anywhere"
    );
}

fn hosts() -> Model {
    cluster(&[
        ("n1", json!({"host": "n1", "zone": "z1"})),
        ("n2", json!({"host": "n2", "zone": "z2"})),
        ("n3", json!({"host": "n3", "zone": "z3"})),
    ])
}

fn preference(kind: &str, labels: Value) -> Value {
    json!({"spec": {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100,
        "podAffinityTerm": {"labelSelector": {"matchLabels": labels}, "topologyKey": "host"}}]}}}})
}

#[test]
fn preferred_affinity_goes_to_the_node_with_the_matching_pod() {
    let mut m = hosts();
    pod(&mut m, "near", Some("n2"), labelled(json!({"service": "s1"})));
    pod(&mut m, "noise", Some("n3"), labelled(json!({"service": "s2"})));
    pod(
        &mut m,
        "p",
        None,
        preference("podAffinity", json!({"service": "s1"})),
    );
    assert_eq!(best(&m, "podaffinity", 2), "n2");
    assert_eq!(best(&m, "podaffinity", 0), "n1", "weight 0 removes the score");
    pod(
        &mut m,
        "p",
        None,
        preference("podAntiAffinity", json!({"service": "s1"})),
    );
    assert_eq!(best(&m, "podaffinity", 2), "n1");
}

#[test]
fn pods_that_are_there_have_preferences_about_the_new_one_too() {
    let mut m = hosts();
    pod(
        &mut m,
        "wants",
        Some("n3"),
        preference("podAffinity", json!({"app": "p"})),
    );
    pod(
        &mut m,
        "avoids",
        Some("n1"),
        preference("podAntiAffinity", json!({"app": "p"})),
    );
    let p = labelled(json!({"app": "p"}));
    pod(&mut m, "p", None, p);
    assert_eq!(best(&m, "podaffinity", 2), "n3");
    pod(&mut m, "p", None, labelled(json!({"app": "q"})));
    assert_eq!(best(&m, "podaffinity", 2), "n1", "nobody cares about it");
}

fn soft_spread(key: &str) -> Value {
    json!({"spec": {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": key,
        "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {"matchLabels": {"app": "foo"}}}]}})
}

#[test]
fn soft_spread_goes_to_the_emptiest_domain() {
    let foo = || labelled(json!({"app": "foo"}));
    let mut m = hosts();
    for (name, on) in [("p1", "n1"), ("p2", "n1"), ("p3", "n2")] {
        pod(&mut m, name, Some(on), foo());
    }
    pod(&mut m, "p", None, merged(foo(), &soft_spread("zone")));
    assert_eq!(best(&m, "podtopologyspread", 2), "n3");
    pod(&mut m, "other", Some("n3"), labelled(json!({"app": "bar"})));
    assert_eq!(best(&m, "podtopologyspread", 2), "n3", "other pods do not count");
    pod(&mut m, "p4", Some("n3"), foo());
    pod(&mut m, "p5", Some("n3"), foo());
    assert_eq!(best(&m, "podtopologyspread", 2), "n2");
}

#[test]
fn a_candidate_without_the_label_gets_nothing_from_soft_spread() {
    let mut m = cluster(&[("a", json!({})), ("b", json!({"zone": "z"}))]);
    pod(&mut m, "old", Some("b"), labelled(json!({"app": "foo"})));
    pod(&mut m, "p", None, soft_spread("zone"));
    assert_eq!(best(&m, "podtopologyspread", 2), "b");
}

#[test]
fn a_pod_without_rules_has_no_related_scores() {
    let mut m = hosts();
    pod(
        &mut m,
        "old",
        Some("n1"),
        preference("podAffinity", json!({"app": "p"})),
    );
    let task = pod(&mut m, "p", None, labelled(json!({"app": "other"})));
    let plugin = super::build(&PluginConf::default());
    assert!(plugin.relate(&m, task).is_none());
}
