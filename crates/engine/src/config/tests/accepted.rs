//! Texts that are taken, among them the ones that come with the product and those that the documentation advises.

use super::super::{SchedulerConf, Switches};
use super::{accepted, only_plugin, outline, with_arguments};

#[track_caller]
fn check(text: &str, expected: &[&str]) {
    assert_eq!(outline(&accepted(text)), expected.join("\n"), "\n{text}");
}

#[test]
fn the_built_in_default() {
    check(
        SchedulerConf::default_text(),
        &[
            "actions: enqueue allocate backfill",
            "tier: priority | gang | conformance",
            "tier: overcommit | drf | predicates | proportion | nodeorder",
        ],
    );
}

#[test]
fn the_default_of_the_helm_chart() {
    check(
        r#"
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"#,
        &[
            "actions: enqueue allocate backfill",
            "tier: priority | gang enablePreemptable=false | conformance",
            "tier: overcommit | drf enablePreemptable=false | predicates | proportion | nodeorder | binpack",
        ],
    );
}

#[test]
fn the_helm_configuration_with_eviction() {
    check(
        r#"
actions: "enqueue, allocate, backfill, reclaim, preempt"
tiers:
  - plugins:
      - name: priority
      - name: gang
        enablePreemptable: false
      - name: conformance
      - name: sla
  - plugins:
      - name: overcommit
      - name: drf
        enablePreemptable: false
      - name: predicates
        arguments:
          predicate.DynamicResourceAllocationEnable: true
      - name: proportion
      - name: nodeorder
      - name: binpack
      - name: network-topology-aware
"#,
        &[
            "actions: enqueue allocate backfill reclaim preempt",
            "tier: priority | gang enablePreemptable=false | conformance | sla",
            "tier: overcommit | drf enablePreemptable=false | \
             predicates predicate.DynamicResourceAllocationEnable=true | proportion | nodeorder | binpack | \
             network-topology-aware",
        ],
    );
}

#[test]
fn training_with_gangs_and_gpus() {
    check(
        r#"
actions: "allocate, backfill, gangreclaim, gangpreempt"
tiers:
- plugins:
  - {name: priority}
  - {name: gang}
  - {name: conformance}
  - name: capacity
    enableHierarchy: true
    arguments: {ancestorReclaimLevel: 1}
- plugins:
  - {name: drf, enablePreemptable: false}
  - {name: predicates}
  - name: deviceshare   # shared cards
    arguments:
      deviceshare.VGPUEnable: true
      deviceshare.SchedulePolicy: binpack
      deviceshare.ScheduleWeight: 10
  - name: nodeorder
    arguments: {leastrequested.weight: 0, balancedresource.weight: 0}
  - name: binpack
    arguments:
      binpack.weight: 5
      binpack.cpu: 1
      binpack.memory: 1
      binpack.resources: nvidia.com/gpu
      binpack.resources.nvidia.com/gpu: 10
  - name: resource-strategy-fit
    arguments:
      resourceStrategyFitWeight: 0
      sra: {enable: true, resources: nvidia.com/gpu, weight: 10}
  - name: network-topology-aware
    arguments:
      weight: 10
      hypernode.binpack.resources: nvidia.com/gpu
      hypernode.binpack.resources.nvidia.com/gpu: 10
"#,
        &[
            "actions: allocate backfill gangreclaim gangpreempt",
            "tier: priority | gang | conformance | capacity enableHierarchy=true ancestorReclaimLevel=1",
            "tier: drf enablePreemptable=false | predicates | \
             deviceshare deviceshare.SchedulePolicy=\"binpack\" deviceshare.ScheduleWeight=10 \
             deviceshare.VGPUEnable=true | \
             nodeorder balancedresource.weight=0 leastrequested.weight=0 | \
             binpack binpack.cpu=1 binpack.memory=1 binpack.resources=\"nvidia.com/gpu\" \
             binpack.resources.nvidia.com/gpu=10 binpack.weight=5 | \
             resource-strategy-fit resourceStrategyFitWeight=0 \
             sra={\"enable\":true,\"resources\":\"nvidia.com/gpu\",\"weight\":10} | \
             network-topology-aware hypernode.binpack.resources=\"nvidia.com/gpu\" \
             hypernode.binpack.resources.nvidia.com/gpu=10 weight=10",
        ],
    );
}

#[test]
fn big_data_with_fair_shares() {
    check(
        r#"
actions: "enqueue, allocate, backfill, reclaim"
tiers:
- plugins: [{name: sla, arguments: {sla-waiting-time: 30m}}]
- plugins:
  - name: priority
  - {name: gang, enablePreemptable: no}
  - name: conformance
  - name: proportion
  - {name: overcommit, arguments: {overcommit-factor: 1.5}}
  - name: resourcequota
- plugins:
  - {name: drf, enablePreemptable: off}
  - {name: predicates, arguments: {predicate.CacheEnable: true}}
  - name: nodeorder
  - {name: nodegroup, arguments: {strict: false, enablePreferredOrder: true}}
"#,
        &[
            "actions: enqueue allocate backfill reclaim",
            "tier: sla sla-waiting-time=\"30m\"",
            "tier: priority | gang enablePreemptable=false | conformance | proportion | \
             overcommit overcommit-factor=1.5 | resourcequota",
            "tier: drf enablePreemptable=false | predicates predicate.CacheEnable=true | nodeorder | \
             nodegroup enablePreferredOrder=true strict=false",
        ],
    );
}

#[test]
fn hpc_without_eviction() {
    check(
        r#"
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: sla, arguments: {sla-waiting-time: 4h}}]
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins:
  - {name: overcommit, arguments: {overcommit-factor: 1.0}}
  - name: drf
  - name: predicates
  - name: proportion
  - {name: nodeorder, arguments: {leastrequested.weight: 0, mostrequested.weight: 1}}
  - name: binpack
  - {name: task-topology, arguments: {task-topology.weight: 10}}
  - {name: numa-aware, arguments: {weight: 10}}
"#,
        &[
            "actions: enqueue allocate backfill",
            "tier: sla sla-waiting-time=\"4h\"",
            "tier: priority | gang | conformance",
            "tier: overcommit overcommit-factor=1.0 | drf | predicates | proportion | \
             nodeorder leastrequested.weight=0 mostrequested.weight=1 | binpack | \
             task-topology task-topology.weight=10 | numa-aware weight=10",
        ],
    );
}

#[test]
fn online_and_offline_work_on_the_same_nodes() {
    check(
        r#"
actions: "enqueue, allocate, backfill, preempt, shuffle"
tiers:
- plugins:
  - name: tdm
    arguments: {tdm.revocable-zone.night: "00:00-08:00", tdm.evict.period: 1m}
  - name: priority
  - name: gang
  - name: conformance
  - name: cdp
- plugins:
  - name: overcommit
  - {name: drf, enablePreemptable: false}
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: usage
    arguments: {usage.weight: 5, thresholds: {cpu: 70, mem: 70}}
  - name: rescheduling
    arguments:
      interval: 5m
      metricsPeriod: 10m
      strategies:
      - name: lowNodeUtilization
        params:
          thresholds: {cpu: 30, memory: 30}
          targetThresholds: {cpu: 70, memory: 70}
metrics: {type: prometheus, address: "http://prometheus:9090", interval: 30s}
"#,
        &[
            "actions: enqueue allocate backfill preempt shuffle",
            "tier: tdm tdm.evict.period=\"1m\" tdm.revocable-zone.night=\"00:00-08:00\" | priority | gang | \
             conformance | cdp",
            "tier: overcommit | drf enablePreemptable=false | predicates | proportion | nodeorder | \
             usage thresholds={\"cpu\":70,\"mem\":70} usage.weight=5 | \
             rescheduling interval=\"5m\" metricsPeriod=\"10m\" \
             strategies=[{\"name\":\"lowNodeUtilization\",\"params\":\
             {\"targetThresholds\":{\"cpu\":70,\"memory\":70},\"thresholds\":{\"cpu\":30,\"memory\":30}}}]",
            "metrics: address=http://prometheus:9090 interval=30s type=prometheus",
        ],
    );
}

#[test]
fn small_forms() {
    let allocate = "actions: allocate";
    for (text, expected) in [
        ("actions: allocate", vec![allocate]),
        (
            "actions: allocate\ntiers:\nconfigurations: ~\nmetrics: null\n",
            vec![allocate],
        ),
        ("actions: allocate\ntiers: []\n", vec![allocate]),
        (
            "actions: allocate\ntiers:\n- plugins:\n-\n- {}\n",
            vec![allocate, "tier: ", "tier: ", "tier: "],
        ),
        (
            "actions: ' allocate ,\tbackfill '",
            vec!["actions: allocate backfill"],
        ),
        (
            "actions: allocate, backfill, allocate",
            vec!["actions: allocate backfill allocate"],
        ),
        ("--- # start\nactions: allocate\n---\n", vec![allocate]),
        (
            "{\"actions\": \"allocate\", \"tiers\": [{\"plugins\": [{\"name\": \"gang\"}]}]}",
            vec![allocate, "tier: gang"],
        ),
        (
            "actions: >-\n  allocate,\n  backfill\n",
            vec!["actions: allocate backfill"],
        ),
        (
            "\u{feff}actions: allocate\r\ntiers:\r\n- plugins:\r\n  - name: gang\r\n",
            vec![allocate, "tier: gang"],
        ),
        (
            "actions: allocate\ntiers:\n- plugins:\n  - {name: gang, arguments: }\n  - {name: drf, enableJobOrder: }\n",
            vec![allocate, "tier: gang | drf"],
        ),
        (
            "actions: allocate\ntiers:\n- plugins:\n  - {name: binpack, arguments: {binpack.weight: ~}}\n",
            vec![allocate, "tier: binpack"],
        ),
        (
            "actions: allocate\ntiers:\n- plugins:\n  - &a {name: drf, enablePreemptable: false}\n  - {<<: *a, name: gang}\n",
            vec![
                allocate,
                "tier: drf enablePreemptable=false | gang enablePreemptable=false",
            ],
        ),
        (
            "actions: allocate\ntiers:\n- plugins: [{name: drf, enableHierarchy: true}, {name: capacity}]\n",
            vec![allocate, "tier: drf enableHierarchy=true | capacity"],
        ),
    ] {
        check(text, &expected);
    }
}

#[test]
fn switches_take_every_boolean_of_yaml_1_1() {
    for (on, words) in [
        (true, "y Y yes Yes YES on On ON true True TRUE"),
        (false, "n N no No NO off Off OFF false False FALSE"),
    ] {
        for word in words.split(' ') {
            let text = format!(
                "actions: allocate\ntiers:\n- plugins: [{{name: drf, enableJobOrder: {word}, enableHierarchy: {word}}}]"
            );
            let switches = only_plugin(&text).switches;
            assert_eq!((switches.job_order, switches.hierarchy), (on, on), "{word}");
        }
    }
}

#[test]
fn every_switch_changes_its_own_field_only() {
    for key in Switches::KEYS {
        let default = Switches::default()
            .iter()
            .find(|(name, _)| name == key)
            .expect("the key is a switch")
            .1;
        let text = format!(
            "actions: allocate\ntiers:\n- plugins: [{{name: drf, {key}: {}}}]",
            !default
        );
        let changed: Vec<_> = only_plugin(&text)
            .switches
            .iter()
            .zip(Switches::default().iter())
            .filter(|(now, was)| now != was)
            .collect();
        assert_eq!(changed, [((*key, !default), (*key, default))]);
    }
}

#[test]
fn all_switches_are_on_but_two() {
    let off: Vec<_> = Switches::default()
        .iter()
        .filter(|(_, on)| !on)
        .map(|(key, _)| key)
        .collect();
    assert_eq!(
        (off, Switches::KEYS.len()),
        (vec!["enableHierarchy", "enabledClusterOrder"], 25)
    );
}

#[test]
fn arguments_of_actions() {
    let conf = accepted(
        r#"
actions: "allocate, preempt, gangpreempt"
configurations:
- name: allocate
  arguments: {predicateErrorCacheEnable: false}
- name: preempt
  arguments:
    enableTopologyAwarePreemption: true
    topologyAwarePreemptWorkerNum: 8
- name: preempt
  arguments: {minCandidateNodesPercentage: 20}
- name: gangreclaim
  arguments: {maxDomains: -1, allowWholeBundle: "false"}
- name: shuffle
"#,
    );
    assert!(
        !conf
            .action_arguments("allocate")
            .bool("predicateErrorCacheEnable", true)
    );
    let preempt = conf.action_arguments("preempt");
    assert_eq!(preempt.len(), 3);
    assert_eq!(preempt.int("topologyAwarePreemptWorkerNum", 16), 8);
    assert_eq!(preempt.int("minCandidateNodesPercentage", 10), 20);
    assert_eq!(preempt.int("maxCandidateNodesAbsolute", 100), 100);
    assert_eq!(conf.action_arguments("gangreclaim").int("maxDomains", 8), -1);
    assert!(
        !conf
            .action_arguments("gangreclaim")
            .bool("allowWholeBundle", true)
    );
    assert!(conf.action_arguments("shuffle").is_empty());
    assert!(conf.action_arguments("backfill").is_empty());
}

#[test]
fn metrics_are_flat_text_in_either_form() {
    let flat = "metrics: {type: elasticsearch, address: 'http://es:9200', tls.insecureSkipVerify: true, \
                elasticsearch.index: metricbeat-*, elasticsearch.password: 0123, interval: }";
    let nested = r#"
metrics:
  type: elasticsearch
  address: http://es:9200
  interval:
  tls: {insecureSkipVerify: true}
  elasticsearch:
    index: "metricbeat-*"
    password: 0123
"#;
    let expected = "metrics: address=http://es:9200 elasticsearch.index=metricbeat-* elasticsearch.password=0123 \
                    interval= tls.insecureSkipVerify=true type=elasticsearch";
    for text in [flat, nested] {
        check(
            &format!("actions: allocate\n{text}"),
            &["actions: allocate", expected],
        );
    }
    check(
        "actions: allocate\nmetrics: {type: prometheus_adaptor, tls: , interval: 15s}",
        &[
            "actions: allocate",
            "metrics: interval=15s type=prometheus_adaptor",
        ],
    );
    check(
        "actions: allocate\nmetrics: {type: ''}",
        &["actions: allocate", "metrics: type="],
    );
}

#[test]
fn a_plugin_is_found_in_whichever_tier() {
    let conf = accepted(SchedulerConf::default_text());
    assert_eq!(conf.plugin("drf").map(|plugin| plugin.name.as_str()), Some("drf"));
    assert_eq!(conf.plugin("binpack"), None);
}

#[test]
fn many_comments_are_fine() {
    let comments = "# a line\n".repeat(5000);
    check(
        &format!("{comments}actions: allocate\n{comments}"),
        &["actions: allocate"],
    );
}

#[test]
fn text_up_to_the_limit_is_read() {
    let text = with_arguments("binpack", "{binpack.weight: 3}");
    let padded = format!(
        "{text}#{}",
        " ".repeat(super::super::MAX_TEXT_BYTES - text.len() - 1)
    );
    assert_eq!(only_plugin(&padded).arguments.int("binpack.weight", 1), 3);
}
