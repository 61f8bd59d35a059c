//! The kinds of arguments: which values each takes, and what the look-ups give back.

use super::super::catalog::{ACTIONS, PLANNED_PLUGINS};
use super::super::{ArgKind, ArgSpec, PluginSpec, SchedulerConf};
use super::{only_plugin, parse, with_arguments};

const KINDS: &[PluginSpec] = &[PluginSpec {
    name: "kinds",
    arguments: &[
        ArgSpec::new("int", ArgKind::Int),
        ArgSpec::new("float", ArgKind::Float),
        ArgSpec::new("bool", ArgKind::Bool),
        ArgSpec::new("str", ArgKind::Str),
        ArgSpec::new("duration", ArgKind::Duration),
        ArgSpec::new("quantity", ArgKind::Quantity),
        ArgSpec::new("list", ArgKind::List(&ArgKind::Int)),
        ArgSpec::new(
            "map",
            ArgKind::Map(&[
                ArgSpec::new("aKey", ArgKind::Int),
                ArgSpec::new("x.*", ArgKind::Str),
            ]),
        ),
        ArgSpec::new("any", ArgKind::Any),
    ],
}];

/// The value as JSON, or the problem without its place.
fn outcome(argument: &str) -> String {
    let text = with_arguments("kinds", &format!("{{{argument}}}"));
    match SchedulerConf::parse(&text, KINDS, ACTIONS) {
        Ok(conf) => conf.tiers[0].plugins[0]
            .arguments
            .iter()
            .map(|(_, value)| value.to_string())
            .collect(),
        Err(errors) => {
            let lines: Vec<String> = errors
                .iter()
                .map(|error| {
                    let path = error.path.replace("tiers[0].plugins[0].arguments.", "");
                    let hint = error
                        .hint
                        .as_ref()
                        .map(|hint| format!("; {hint}"))
                        .unwrap_or_default();
                    format!("{path}: {}{hint}", error.message)
                })
                .collect();
            lines.join("\n")
        }
    }
}

#[test]
fn each_kind_takes_its_values_only() {
    for (argument, expected) in [
        ("int: 10", "10"),
        ("int: -3", "-3"),
        ("int: 0x10", "16"),
        ("int: 1_000", "1000"),
        (
            "int: \"10\"",
            "int: expected an integer, found string \"10\"; remove the quotes",
        ),
        ("int: ten", "int: expected an integer, found string \"ten\""),
        ("int: 1.0", "int: expected an integer, found number 1.0"),
        (
            "int: 9223372036854775808",
            "int: expected an integer, found number 9223372036854775808",
        ),
        ("int: yes", "int: expected an integer, found boolean yes"),
        ("int: [1]", "int: expected an integer, found a list"),
        ("int: {a: 1}", "int: expected an integer, found a mapping"),
        ("int: !!int \"10\"", "10"),
        ("float: 1.5", "1.5"),
        ("float: 2", "2"),
        ("float: 1e3", "1000.0"),
        (
            "float: \"1.5\"",
            "float: expected a number, found string \"1.5\"; remove the quotes",
        ),
        ("float: .inf", "float: expected a number, found number .inf"),
        ("float: .nan", "float: expected a number, found number .nan"),
        ("bool: true", "true"),
        ("bool: off", "false"),
        ("bool: \"T\"", "true"),
        ("bool: \"0\"", "false"),
        (
            "bool: \"yes\"",
            "bool: expected a boolean, found string \"yes\"; remove the quotes",
        ),
        (
            "bool: 1",
            "bool: expected a boolean, found integer 1; write true or false",
        ),
        (
            "bool: enabled",
            "bool: expected a boolean, found string \"enabled\"; write true or false",
        ),
        ("str: a b", "\"a b\""),
        ("str: \"1\"", "\"1\""),
        ("str: !!str 1", "\"1\""),
        (
            "str: 1",
            "str: expected a string, found integer 1; put it in quotes",
        ),
        (
            "str: on",
            "str: expected a string, found boolean on; put it in quotes",
        ),
        ("duration: 1h30m", "\"1h30m\""),
        ("duration: -5s", "\"-5s\""),
        (
            "duration: 5",
            "duration: expected a duration such as \"1m30s\", found integer 5; add a unit, such as 5s",
        ),
        (
            "duration: 5 min",
            "duration: expected a duration such as \"1m30s\", found string \"5 min\"",
        ),
        ("quantity: 250", "250"),
        ("quantity: 250m", "\"250m\""),
        (
            "quantity: 200mib",
            "quantity: expected an integer or a quantity such as \"250m\", found string \"200mib\"",
        ),
        (
            "quantity: 0.5",
            "quantity: expected an integer or a quantity such as \"250m\", found number 0.5; put it in quotes",
        ),
        ("list: [1, 2]", "[1,2]"),
        ("list: []", "[]"),
        ("list: 1", "list: expected a list, found integer 1"),
        ("list: [1, a]", "list[1]: expected an integer, found string \"a\""),
        ("list: [~]", "list[0]: expected an integer, found nothing"),
        ("map: {aKey: 1, x.y: z}", "{\"aKey\":1,\"x.y\":\"z\"}"),
        ("map: {AKEY: 1}", "{\"aKey\":1}"),
        (
            "map: {aKey: 1, akey: 2}",
            "map.akey: duplicate key \"aKey\", letter case does not count here",
        ),
        (
            "map: {bKey: 1}",
            "map.bKey: unknown key \"bKey\"; did you mean \"aKey\"?",
        ),
        (
            "map: {aKey: x}",
            "map.aKey: expected an integer, found string \"x\"",
        ),
        ("map: [1]", "map: expected a mapping, found a list"),
        ("any: {a: [1, 2.5, x, ~, no]}", "{\"a\":[1,2.5,\"x\",null,false]}"),
        ("any: [.inf]", "any[0]: expected a number, found number .inf"),
        ("str: !custom x", "str: tag !custom does not fit here"),
        ("int: ~", ""),
    ] {
        assert_eq!(outcome(argument), expected, "{argument}");
    }
}

#[test]
fn points_of_a_curve_go_up_and_stay_in_range() {
    let path = "tiers[0].plugins[0].arguments.volumebinding.shape";
    for (shape, problems) in [
        ("[]", vec![": at least one point is needed"]),
        ("[{}]", vec![]),
        (
            "[{utilization: 0, score: 10}, {utilization: 100, score: 0}]",
            vec![],
        ),
        (
            "[{utilization: 50}, {utilization: 50}]",
            vec!["[1]: utilizations go up from point to point, 50 does not"],
        ),
        (
            "[{utilization: -1, score: 11}, {utilization: 101, score: -1}]",
            vec![
                "[0]: a utilization is between 0 and 100, this is -1",
                "[0]: a score is between 0 and 10, this is 11",
                "[1]: a utilization is between 0 and 100, this is 101",
                "[1]: a score is between 0 and 10, this is -1",
            ],
        ),
        (
            "[{utilization: half}]",
            vec!["[0].utilization: expected an integer, found string \"half\""],
        ),
        ("7", vec![": expected a list, found integer 7"]),
    ] {
        let text = with_arguments("predicates", &format!("{{volumebinding.shape: {shape}}}"));
        let found: Vec<_> = match parse(&text) {
            Ok(_) => Vec::new(),
            Err(errors) => errors.to_string().lines().map(str::to_owned).collect(),
        };
        let ends = |(line, problem): (&String, &&str)| line.ends_with(&format!("{path}{problem}"));
        assert!(
            found.len() == problems.len() && found.iter().zip(&problems).all(ends),
            "{shape}: {found:#?}"
        );
    }
}

#[test]
fn structures_of_plugins() {
    for (plugin, arguments) in [
        (
            "predicates",
            "{volumebinding.shape: [{utilization: 0, score: 10}, {Utilization: 100, Score: 0}]}",
        ),
        (
            "deviceshare",
            "{deviceshare.GPUExclusiveRules: [{app: train, tier: gold}]}",
        ),
        (
            "extender",
            "{extender.managedResources: [nvidia.com/gpu], extender.httpTimeout: 500ms, extender.ignorable: 'true'}",
        ),
        (
            "resource-strategy-fit",
            "{resources: {nvidia.com/*: {type: MostAllocated, weight: 2}}, sra: {enable: true, resourceWeight: {a/b: 2}}, \
             proportional: {enable: false, resources: a/b, resourceProportion: {a/b: {cpu: 4, memory: 8.5}}}}",
        ),
        (
            "usage",
            "{thresholds: {CPU: 70}, estimator.be_cpu: 250m, estimator.be_mem: 200, estimator.risk_factor: 2}",
        ),
        (
            "rescheduling",
            "{strategies: [{name: other, params: {anything: [1]}}, {name: lowNodeUtilization}]}",
        ),
        (
            "tdm",
            "{tdm.revocable-zone.a: '1:00-2:00', tdm.revocable-zone.b.c: x}",
        ),
        (
            "network-topology-aware",
            "{hypernode.binpack.normal-pod.fading: 1, hypernode.binpack.resources.x: -1}",
        ),
    ] {
        let plugin = only_plugin(&with_arguments(plugin, arguments));
        assert!(!plugin.arguments.is_empty());
    }
}

#[test]
fn arguments_outside_of_their_range_are_for_the_plugin_to_judge() {
    let arguments = only_plugin(&with_arguments("binpack", "{binpack.cpu: -7}")).arguments;
    assert_eq!(arguments.int("binpack.cpu", 1), -7);
}

#[test]
fn look_ups_fall_back_when_there_is_nothing() {
    let text = with_arguments(
        "tdm",
        "{tdm.revocable-zone.night: '00:00-08:00', tdm.revocable-zone.noon: '12:00-13:00', tdm.evict.period: 1.5s}",
    );
    let arguments = only_plugin(&text).arguments;
    assert_eq!(
        (
            arguments.int("x", 3),
            arguments.float("x", 0.5),
            arguments.bool("x", true)
        ),
        (3, 0.5, true)
    );
    assert_eq!(
        (arguments.str("x"), arguments.get("x"), arguments.len()),
        (None, None, 3)
    );
    assert_eq!(arguments.str("tdm.revocable-zone.night"), Some("00:00-08:00"));
    assert_eq!(arguments.duration_nanos("tdm.evict.period"), Some(1_500_000_000));
    let zones: Vec<_> = arguments
        .with_prefix("tdm.revocable-zone.")
        .map(|(zone, _)| zone)
        .collect();
    assert_eq!(zones, ["night", "noon"]);
}

#[test]
fn the_catalogue_is_whole_and_without_doubles() {
    let mut plugins: Vec<_> = PLANNED_PLUGINS.iter().map(|plugin| plugin.name).collect();
    let mut actions: Vec<_> = ACTIONS.iter().map(|action| action.name).collect();
    plugins.sort_unstable();
    plugins.dedup();
    actions.sort_unstable();
    actions.dedup();
    assert_eq!((plugins.len(), actions.len()), (24, 8));
    for plugin in PLANNED_PLUGINS {
        let mut keys: Vec<_> = plugin.arguments.iter().map(|spec| spec.key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), plugin.arguments.len(), "{}", plugin.name);
    }
}

#[test]
fn a_plugin_without_registration_is_unknown_however_well_known() {
    let text = with_arguments("gang", "");
    let errors = SchedulerConf::parse(&text, KINDS, ACTIONS).expect_err("gang is not registered");
    assert_eq!(
        errors.to_string(),
        "line 4, column 11: tiers[0].plugins[0].name: unknown plugin \"gang\""
    );
}
