//! Texts that are refused, with every line that is told.

use super::super::MAX_TEXT_BYTES;
use super::{parse, problems, with_arguments};

/// Each case: what it is about, the text, the problems.
#[track_caller]
fn check(cases: &[(&str, &str, &[&str])]) {
    for (about, text, expected) in cases {
        assert_eq!(problems(text), expected.join("\n"), "{about}\n---\n{text}");
    }
}

const NO_ACTIONS: &str =
    "actions: missing key \"actions\"; add a line such as actions: \"enqueue, allocate, backfill\"";

#[test]
fn the_text_as_a_whole() {
    check(&[
        ("nothing", "", &[NO_ACTIONS]),
        ("comments only", "# later\n", &[NO_ACTIONS]),
        ("a null document", "---\n~\n", &[NO_ACTIONS]),
        (
            "a string",
            "hello",
            &["line 1, column 1: expected a mapping with the key \"actions\", found string \"hello\""],
        ),
        (
            "a list",
            "- a\n",
            &["line 1, column 1: expected a mapping with the key \"actions\", found a list"],
        ),
        (
            "two documents",
            "actions: allocate\n---\nactions: backfill\n",
            &["line 3, column 1: a second document; the file has one only"],
        ),
        (
            "a key that is a list",
            "actions: allocate\n? [a]\n: b\n",
            &["line 2, column 3: a key must be a single word or string"],
        ),
        (
            "an unknown section beside a near one",
            "actions: allocate\ntier: []\n",
            &["line 2, column 1: tier: unknown key \"tier\"; did you mean \"tiers\"?"],
        ),
        (
            "a section in the wrong case",
            "Actions: allocate\n",
            &[
                NO_ACTIONS,
                "line 1, column 1: Actions: unknown key \"Actions\"; did you mean \"actions\"?",
            ],
        ),
        (
            "an unknown section without a near one",
            "actions: allocate\nplugins: []\n",
            &["line 2, column 1: plugins: unknown key \"plugins\""],
        ),
        (
            "a section twice",
            "actions: allocate\ntiers: []\nactions: backfill\n",
            &["line 3, column 1: actions: duplicate key \"actions\", already set in line 1"],
        ),
    ]);
}

#[test]
fn text_that_is_not_yaml_is_told_with_its_line() {
    for (text, line) in [
        ("actions: \"allocate\ntiers: []\n", 1..=3),
        ("actions: allocate\ntiers: [\n", 2..=3),
        ("actions: allocate\ntiers:\n- plugins:\n  \t- name: gang\n", 3..=4),
        ("actions: allocate\ntiers: *nowhere\n", 2..=2),
    ] {
        let errors = parse(text).expect_err("not YAML").into_inner();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert!(errors[0].message.starts_with("not valid YAML: "), "{errors:?}");
        assert!(errors[0].line.is_some_and(|at| line.contains(&at)), "{errors:?}");
    }
}

#[test]
fn text_beyond_the_limit_is_not_read() {
    let text = format!("actions: allocate\n{}", "#".repeat(MAX_TEXT_BYTES));
    assert_eq!(
        problems(&text),
        "the configuration has 1048594 bytes; at most 1048576 are read"
    );
}

#[test]
fn names_of_actions() {
    check(&[
        (
            "a mistyped action",
            "actions: \"enqueue, alocate, backfill\"",
            &["line 1, column 10: actions: failed to find Action alocate; did you mean \"allocate\"?"],
        ),
        (
            "an unknown action",
            "actions: enqueue, defragment",
            &["line 1, column 10: actions: failed to find Action defragment"],
        ),
        (
            "two unknown actions",
            "actions: x1, Preempt",
            &[
                "line 1, column 10: actions: failed to find Action x1",
                "line 1, column 10: actions: failed to find Action Preempt; did you mean \"preempt\"?",
            ],
        ),
        (
            "a comma at the end",
            "actions: enqueue,",
            &["line 1, column 10: actions: failed to find Action : a name is empty"],
        ),
        (
            "an empty string",
            "actions: \"\"",
            &["line 1, column 10: actions: failed to find Action : no action is named"],
        ),
        (
            "blanks and commas only",
            "actions: \" , \"",
            &["line 1, column 10: actions: failed to find Action : no action is named"],
        ),
        (
            "nothing",
            "actions:\n",
            &[
                "line 1, column 8: actions: expected a string of action names separated by commas, found nothing",
            ],
        ),
        (
            "a list instead of a string",
            "actions: [allocate]",
            &[
                "line 1, column 10: actions: expected a string of action names separated by commas, found a list; \
               write the names in one string, such as \"enqueue, allocate, backfill\"",
            ],
        ),
        (
            "a number",
            "actions: 3",
            &[
                "line 1, column 10: actions: expected a string of action names separated by commas, found integer 3",
            ],
        ),
    ]);
}

#[test]
fn tiers_and_plugin_entries() {
    check(&[
        (
            "tiers as a mapping",
            "actions: allocate\ntiers: {plugins: []}\n",
            &["line 2, column 8: tiers: expected a list of tiers, found a mapping"],
        ),
        (
            "a tier as a list",
            "actions: allocate\ntiers:\n- - name: gang\n",
            &["line 3, column 3: tiers[0]: expected a mapping with the key \"plugins\", found a list"],
        ),
        (
            "an unknown key in a tier",
            "actions: allocate\ntiers:\n- plugin:\n  - name: gang\n",
            &["line 3, column 3: tiers[0].plugin: unknown key \"plugin\"; did you mean \"plugins\"?"],
        ),
        (
            "plugins as a string",
            "actions: allocate\ntiers:\n- plugins: gang\n",
            &["line 3, column 12: tiers[0].plugins: expected a list of plugins, found string \"gang\""],
        ),
        (
            "a plugin as a word",
            "actions: allocate\ntiers:\n- plugins:\n  - gang\n",
            &[
                "line 4, column 5: tiers[0].plugins[0]: expected a mapping with the key \"name\", found string \"gang\"; \
               write \"- name: gang\"",
            ],
        ),
        (
            "a plugin without a name",
            "actions: allocate\ntiers:\n- plugins:\n  - enableJobOrder: maybe\n",
            &[
                "line 4, column 5: tiers[0].plugins[0]: missing key \"name\"",
                "line 4, column 21: tiers[0].plugins[0].enableJobOrder: expected a boolean, found string \"maybe\"; \
                 write true or false",
            ],
        ),
        (
            "a name that is no string",
            "actions: allocate\ntiers:\n- plugins:\n  - name: 7\n",
            &["line 4, column 11: tiers[0].plugins[0].name: expected a string, found integer 7"],
        ),
        (
            "a mistyped plugin",
            "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n  - name: predicate\n",
            &[
                "line 5, column 11: tiers[0].plugins[1].name: unknown plugin \"predicate\"; did you mean \"predicates\"?",
            ],
        ),
        (
            "a plugin nobody knows",
            "actions: allocate\ntiers:\n- plugins:\n  - name: fairshare\n    arguments: {x: 1}\n",
            &["line 4, column 11: tiers[0].plugins[0].name: unknown plugin \"fairshare\""],
        ),
        (
            "a plugin listed twice, in two tiers",
            "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n- plugins:\n  - name: gang\n",
            &["line 6, column 5: tiers[1].plugins[0]: plugin \"gang\" is listed twice, first in line 4"],
        ),
        (
            "a key of an entry twice",
            "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    enableJobOrder: true\n    enableJobOrder: false\n",
            &[
                "line 6, column 5: tiers[0].plugins[0].enableJobOrder: duplicate key \"enableJobOrder\", \
               already set in line 5",
            ],
        ),
    ]);
}

#[test]
fn switches() {
    check(&[
        (
            "the other prefix",
            "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    enabledJobOrder: false\n",
            &[
                "line 5, column 5: tiers[0].plugins[0].enabledJobOrder: unknown key \"enabledJobOrder\"; \
               did you mean \"enableJobOrder\"?",
            ],
        ),
        (
            "a quoted boolean",
            "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    enablePreemptable: \"false\"\n",
            &[
                "line 5, column 24: tiers[0].plugins[0].enablePreemptable: expected a boolean, \
               found string \"false\"; remove the quotes",
            ],
        ),
        (
            "a number",
            "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    enablePreemptable: 0\n",
            &[
                "line 5, column 24: tiers[0].plugins[0].enablePreemptable: expected a boolean, found integer 0; \
               write true or false",
            ],
        ),
        (
            "a switch among the arguments",
            "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n    arguments:\n      enableJobOrder: false\n",
            &[
                "line 6, column 7: tiers[0].plugins[0].arguments.enableJobOrder: unknown argument \"enableJobOrder\" \
               of plugin \"gang\", which takes no arguments; it is a switch: write it beside \"name\"",
            ],
        ),
        (
            "an argument beside the switches",
            "actions: allocate\ntiers:\n- plugins:\n  - name: binpack\n    binpack.weight: 5\n",
            &[
                "line 5, column 5: tiers[0].plugins[0].binpack.weight: unknown key \"binpack.weight\"; \
               it is an argument: write it under \"arguments\"",
            ],
        ),
        (
            "a mistyped arguments key",
            "actions: allocate\ntiers:\n- plugins:\n  - name: binpack\n    argument: {binpack.weight: 5}\n",
            &[
                "line 5, column 5: tiers[0].plugins[0].argument: unknown key \"argument\"; did you mean \"arguments\"?",
            ],
        ),
    ]);
}

#[test]
fn arguments_of_plugins() {
    let at = "tiers[0].plugins[0].arguments";
    for (plugin, arguments, expected) in [
        (
            "binpack",
            "{binpack.wieght: 5}",
            format!(
                "line 5, column 17: {at}.binpack.wieght: unknown argument \"binpack.wieght\" of plugin \"binpack\"; \
                 did you mean \"binpack.weight\"?"
            ),
        ),
        (
            "binpack",
            "{binpack.resource.nvidia.com/gpu: 5}",
            format!(
                "line 5, column 17: {at}.binpack.resource.nvidia.com/gpu: \
                 unknown argument \"binpack.resource.nvidia.com/gpu\" of plugin \"binpack\"; \
                 did you mean \"binpack.resources.nvidia.com/gpu\"?"
            ),
        ),
        (
            "binpack",
            "{binpack: {weight: 5}}",
            format!(
                "line 5, column 17: {at}.binpack: unknown argument \"binpack\" of plugin \"binpack\"; \
                 write flat keys with dots, such as \"binpack.weight\""
            ),
        ),
        (
            "binpack",
            "{binpack.weight: \"10\"}",
            format!(
                "line 5, column 33: {at}.binpack.weight: expected an integer, found string \"10\"; remove the quotes"
            ),
        ),
        (
            "binpack",
            "{binpack.weight: 1, binpack.weight: 2}",
            format!(
                "line 5, column 36: {at}.binpack.weight: duplicate key \"binpack.weight\", already set in line 5"
            ),
        ),
        (
            "binpack",
            "[binpack.weight]",
            format!("line 5, column 16: {at}: expected a mapping of arguments, found a list"),
        ),
        (
            "nodeorder",
            "{podAffinity.weight: 5}",
            format!(
                "line 5, column 17: {at}.podAffinity.weight: unknown argument \"podAffinity.weight\" of plugin \
                 \"nodeorder\"; did you mean \"podaffinity.weight\"?"
            ),
        ),
        (
            "usage",
            "{thresholds.cpu: 70}",
            format!(
                "line 5, column 17: {at}.thresholds.cpu: unknown argument \"thresholds.cpu\" of plugin \"usage\"; \
                 write it nested: thresholds: {{cpu: …}}"
            ),
        ),
        (
            "usage",
            "{thresholds: {cpu: 70, memory: 70}}",
            format!("line 5, column 39: {at}.thresholds.memory: unknown key \"memory\""),
        ),
        (
            "tdm",
            "{tdm.evict.period: 60}",
            format!(
                "line 5, column 35: {at}.tdm.evict.period: expected a duration such as \"1m30s\", found integer 60; \
                 add a unit, such as 60s"
            ),
        ),
        (
            "tdm",
            "{tdm.revocable-zone.night: 8}",
            format!(
                "line 5, column 43: {at}.tdm.revocable-zone.night: expected a string, found integer 8; \
                 put it in quotes"
            ),
        ),
        (
            "rescheduling",
            "{strategies: [{name: lowNodeUtilization, params: {thresholds: {cpu: high}}}]}",
            format!(
                "line 5, column 84: {at}.strategies[0].params.thresholds.cpu: expected a number, \
                 found string \"high\""
            ),
        ),
        (
            "resource-strategy-fit",
            "{sra: {enabled: true}}",
            format!("line 5, column 23: {at}.sra.enabled: unknown key \"enabled\"; did you mean \"enable\"?"),
        ),
        (
            "extender",
            "{extender.managedResources: nvidia.com/gpu}",
            format!(
                "line 5, column 44: {at}.extender.managedResources: expected a list, found string \"nvidia.com/gpu\""
            ),
        ),
        (
            "overcommit",
            "{overcommit-factor: 1.2x}",
            format!("line 5, column 36: {at}.overcommit-factor: expected a number, found string \"1.2x\""),
        ),
    ] {
        let text = with_arguments(plugin, arguments);
        assert_eq!(problems(&text), expected, "\n{text}");
    }
}

#[test]
fn plugins_that_exclude_each_other() {
    let tiers = |first: &str, second: &str| {
        format!("actions: allocate\ntiers:\n- plugins:\n  - {first}\n- plugins:\n  - {second}\n")
    };
    let hierarchy = "proportion and drf with hierarchy enabled conflicts";
    for (first, second, expected) in [
        (
            "name: proportion",
            "{name: drf, enableHierarchy: true}",
            format!("line 6, column 5: tiers[1].plugins[0]: {hierarchy}; proportion is in line 4"),
        ),
        (
            "{name: drf, enableHierarchy: on}",
            "name: proportion",
            format!("line 4, column 5: tiers[0].plugins[0]: {hierarchy}; proportion is in line 6"),
        ),
    ] {
        assert_eq!(problems(&tiers(first, second)), expected);
    }
    let same_tier =
        "actions: allocate\ntiers:\n- plugins: [{name: drf, enableHierarchy: yes}, {name: proportion}]\n";
    let expected = format!("line 3, column 13: tiers[0].plugins[0]: {hierarchy}; proportion is in line 3");
    assert_eq!(problems(same_tier), expected);
}

#[test]
fn arguments_of_actions() {
    check(&[
        (
            "an unknown action",
            "actions: allocate\nconfigurations:\n- name: prempt\n  arguments: {x: 1}\n",
            &[
                "line 3, column 9: configurations[0].name: failed to find Action prempt; did you mean \"preempt\"?",
            ],
        ),
        (
            "no name",
            "actions: allocate\nconfigurations:\n- arguments: {maxDomains: 1}\n",
            &["line 3, column 3: configurations[0]: missing key \"name\""],
        ),
        (
            "an unknown key",
            "actions: allocate\nconfigurations:\n- name: allocate\n  args: {}\n",
            &["line 4, column 3: configurations[0].args: unknown key \"args\""],
        ),
        (
            "a mistyped argument",
            "actions: allocate\nconfigurations:\n- name: gangpreempt\n  arguments: {maxDomain: 1}\n",
            &[
                "line 4, column 15: configurations[0].arguments.maxDomain: unknown argument \"maxDomain\" of action \
               \"gangpreempt\"; did you mean \"maxDomains\"?",
            ],
        ),
        (
            "an argument of another action",
            "actions: allocate\nconfigurations:\n- name: enqueue\n  arguments: {maxDomains: 1}\n",
            &[
                "line 4, column 15: configurations[0].arguments.maxDomains: unknown argument \"maxDomains\" of action \
               \"enqueue\", which takes no arguments",
            ],
        ),
        (
            "a wrong type",
            "actions: allocate\nconfigurations:\n- name: preempt\n  arguments: {topologyAwarePreemptWorkerNum: \"8\"}\n",
            &[
                "line 4, column 46: configurations[0].arguments.topologyAwarePreemptWorkerNum: expected an integer, \
               found string \"8\"; remove the quotes",
            ],
        ),
        (
            "an argument in two entries",
            "actions: allocate\nconfigurations:\n- name: preempt\n  arguments: {minCandidateNodesAbsolute: 1}\n\
             - name: preempt\n  arguments: {minCandidateNodesAbsolute: 2}\n",
            &[
                "line 5, column 3: configurations[1]: argument \"minCandidateNodesAbsolute\" of action \"preempt\" \
               is set twice",
            ],
        ),
        (
            "a mapping instead of a list",
            "actions: allocate\nconfigurations: {name: preempt}\n",
            &[
                "line 2, column 17: configurations: expected a list of actions with arguments, found a mapping",
            ],
        ),
        (
            "a word instead of an entry",
            "actions: allocate\nconfigurations: [preempt]\n",
            &[
                "line 2, column 18: configurations[0]: expected a mapping with the keys \"name\" and \"arguments\", \
               found string \"preempt\"",
            ],
        ),
    ]);
}

#[test]
fn metrics() {
    check(&[
        (
            "an unknown key",
            "actions: allocate\nmetrics: {type: prometheus, adress: x, address: x}\n",
            &[
                "line 2, column 29: metrics.adress: unknown key \"adress\" of the metrics section; \
               did you mean \"address\"?",
            ],
        ),
        (
            "an unknown nested key",
            "actions: allocate\nmetrics:\n  elasticsearch:\n    indices: x\n",
            &[
                "line 4, column 5: metrics.elasticsearch.indices: unknown key \"elasticsearch.indices\" of the metrics \
               section; did you mean \"elasticsearch.index\"?",
            ],
        ),
        (
            "an unknown group",
            "actions: allocate\nmetrics:\n  prometheus: {address: x}\n",
            &["line 3, column 3: metrics.prometheus: unknown key \"prometheus\" of the metrics section"],
        ),
        (
            "the same in both forms",
            "actions: allocate\nmetrics:\n  tls.insecureSkipVerify: true\n  tls: {insecureSkipVerify: false}\n",
            &[
                "line 4, column 9: metrics.tls.insecureSkipVerify: duplicate key \"tls.insecureSkipVerify\", \
               already set in line 3",
            ],
        ),
        (
            "a list as a value",
            "actions: allocate\nmetrics: {address: [a, b]}\n",
            &["line 2, column 20: metrics.address: expected a single value, found a list"],
        ),
        (
            "a word as a group",
            "actions: allocate\nmetrics: {tls: skip}\n",
            &["line 2, column 16: metrics.tls: expected a mapping, found string \"skip\""],
        ),
        (
            "a word as the section",
            "actions: allocate\nmetrics: prometheus\n",
            &["line 2, column 10: metrics: expected a mapping, found string \"prometheus\""],
        ),
        (
            "an unknown source",
            "actions: allocate\nmetrics: {type: promethus, address: x}\n",
            &[
                "line 2, column 17: metrics.type: unknown source \"promethus\"; one of prometheus, prometheus_adaptor, \
               elasticsearch; did you mean \"prometheus\"?",
            ],
        ),
        (
            "a source without its address",
            "actions: allocate\nmetrics: {type: prometheus}\n",
            &["line 2, column 10: metrics: missing key \"address\", which type prometheus needs"],
        ),
        (
            "an interval without a unit",
            "actions: allocate\nmetrics: {interval: 30}\n",
            &["line 2, column 21: metrics.interval: expected a duration such as \"30s\", found \"30\""],
        ),
    ]);
}

#[test]
fn all_problems_are_told_at_once_in_the_order_of_the_text() {
    check(&[(
        "six mistakes",
        r#"actions: "enqueue, alocate"
tiers:
- plugins:
  - name: gangs
  - name: binpack
    enabledPredicate: true
    arguments:
      binpack.wieght: 5
      binpack.cpu: "1"
  - name: binpack
metric: {}
"#,
        &[
            "line 1, column 10: actions: failed to find Action alocate; did you mean \"allocate\"?",
            "line 4, column 11: tiers[0].plugins[0].name: unknown plugin \"gangs\"; did you mean \"gang\"?",
            "line 6, column 5: tiers[0].plugins[1].enabledPredicate: unknown key \"enabledPredicate\"; \
             did you mean \"enablePredicate\"?",
            "line 8, column 7: tiers[0].plugins[1].arguments.binpack.wieght: unknown argument \"binpack.wieght\" \
             of plugin \"binpack\"; did you mean \"binpack.weight\"?",
            "line 9, column 20: tiers[0].plugins[1].arguments.binpack.cpu: expected an integer, \
             found string \"1\"; remove the quotes",
            "line 10, column 5: tiers[0].plugins[2]: plugin \"binpack\" is listed twice, first in line 5",
            "line 11, column 1: metric: unknown key \"metric\"; did you mean \"metrics\"?",
        ],
    )]);
}

#[test]
fn of_very_many_problems_the_first_hundred_are_told() {
    let keys: String = (0..150).map(|i| format!("key{i}: 1\n")).collect();
    let errors = parse(&format!("actions: allocate\n{keys}"))
        .expect_err("unknown keys")
        .into_inner();
    assert_eq!(errors.len(), 101);
    assert_eq!(errors[100].to_string(), "and 50 more problems");
}

#[test]
fn strange_keys_and_long_values_stay_on_one_short_line() {
    let text = format!(
        "actions: allocate\n\"a\\nb\": 1\ntiers: \"{}\"\n",
        "x".repeat(500)
    );
    assert_eq!(
        problems(&text),
        format!(
            "line 2, column 1: a\\nb: unknown key \"a\\nb\"\n\
             line 3, column 8: tiers: expected a list of tiers, found string \"{}\"…",
            "x".repeat(60)
        )
    );
}

#[test]
fn a_hostile_text_is_refused_quickly() {
    let long_key = "k".repeat(400_000);
    let keys: String = (0..15_000).map(|i| format!("  a{i}: 1\n")).collect();
    let nested = format!("actions: allocate\n? {long_key}\n:\n{keys}");
    let merged = format!(
        "actions: allocate\nx: &x\n{keys}y:\n  <<: *x\n{}",
        keys.replace('a', "b")
    );
    assert!(problems(&nested).contains("unknown key \"kkk"));
    assert!(problems(&merged).contains("y: unknown key \"y\""));
}

proptest::proptest! {
    /// Whatever the text, the reader answers, and a refusal has at least one reason.
    #[test]
    fn no_text_makes_the_reader_fail(text in "[ -~\n]{0,80}", cut in 0_usize..200) {
        let default = super::super::SchedulerConf::default_text();
        let mixed = format!("{}{text}", &default[..cut.min(default.len())]);
        for text in [&text, &mixed] {
            if let Err(errors) = parse(text) {
                proptest::prop_assert!(errors.iter().count() > 0);
            }
        }
    }
}
