use super::*;
use clap::{Args as _, FromArgMatches as _};
use std::ffi::OsString;
use std::path::PathBuf;
use volcano_cli::go_flags::{self, Dashes};
use volcano_runtime::gates::FeatureGates;
use volcano_runtime::lease;

fn command() -> clap::Command {
    SchedulerArgs::augment_args(clap::Command::new("vc-scheduler").term_width(100))
}

fn try_parse(arguments: &[&str]) -> Result<SchedulerArgs, String> {
    let command = command();
    let normal = go_flags::normalise(&command, Dashes::Any, arguments.iter().map(OsString::from));
    let with_name = std::iter::once("vc-scheduler".into()).chain(normal);
    let matches = command
        .try_get_matches_from(with_name)
        .map_err(|error| error.to_string())?;
    SchedulerArgs::from_arg_matches(&matches).map_err(|error| error.to_string())
}

fn try_options(arguments: &[&str]) -> Result<Options, String> {
    options(&try_parse(arguments)?).map_err(|failure| failure.to_string())
}

fn parse(arguments: &[&str]) -> Options {
    try_options(arguments).unwrap()
}

fn lease_of(arguments: &[&str]) -> lease::Settings {
    parse(arguments).leader_election.unwrap()
}

#[test]
fn defaults_are_those_of_volcano() {
    let options = parse(&[]);
    assert_eq!((options.client.master, options.client.kubeconfig), (None, None));
    assert_eq!((options.client.qps, options.client.burst), (2000.0, 2000));
    assert_eq!(options.scheduler_names, ["volcano"]);
    assert_eq!(options.scheduler_conf, None);
    assert!(!options.disable_default_conf);
    assert_eq!(options.schedule_period, Duration::from_secs(1));
    assert_eq!(options.default_queue, "default");
    assert!(options.priority_class && options.csi_storage && options.cache_dumper);
    assert!(options.node_selector.is_empty());
    assert_eq!(options.features, Features::default());
    assert_eq!(options.feature_gates, FeatureGates::default());
    assert_eq!(
        options.serve,
        serve::Settings {
            listen_address: ":8080".to_owned(),
            healthz_address: ":11251".to_owned(),
            ..serve::Settings::default()
        }
    );
    assert_eq!(options.cache_dump_dir, PathBuf::from("/tmp"));
    assert_eq!(options.event_qps, 50.0);
    assert_eq!(options.logging.verbosity, 0);
    assert_eq!((options.unused, options.ignored), (Vec::new(), Vec::new()));
    let lease = options.leader_election.unwrap();
    assert_eq!(
        (lease.lease_duration, lease.renew_deadline, lease.retry_period),
        (
            Duration::from_secs(15),
            Duration::from_secs(10),
            Duration::from_secs(2)
        )
    );
    assert_eq!(
        (lease.namespace.as_str(), lease.name.as_str()),
        ("volcano-system", "volcano")
    );
}

/// What the Helm chart renders with everything that it can switch on.
#[test]
fn the_command_line_of_the_chart_is_taken() {
    let options = parse(&[
        "--logtostderr",
        "--scheduler-conf=/volcano.scheduler/volcano-scheduler.conf",
        "--scheduler-name=volcano",
        "--enable-healthz=true",
        "--enable-metrics=true",
        "--enable-pprof=true",
        "--leader-elect=false",
        "--leader-elect-resource-namespace=other",
        "--kube-api-qps=3000",
        "--kube-api-burst=4000",
        "--schedule-period=500ms",
        "--node-worker-threads=20",
        "--resource-sync-timeout=30s",
        "--percentage-nodes-to-find=30",
        "--plugins-dir=plugins",
        "--feature-gates=PriorityClass=false,KubeletTracing=true",
        "--ignored-provisioners=a.example,b.example",
        "--scheduler-sharding-mode=soft",
        "-v=5",
        "2>&1",
    ]);
    assert!(options.leader_election.is_none());
    assert!(options.serve.metrics && options.serve.healthz && options.serve.pprof);
    assert_eq!(
        options.scheduler_conf,
        Some(PathBuf::from("/volcano.scheduler/volcano-scheduler.conf"))
    );
    assert_eq!((options.client.qps, options.client.burst), (3000.0, 4000));
    assert_eq!(options.schedule_period, Duration::from_millis(500));
    assert_eq!(options.features.ignored_provisioners, ["a.example", "b.example"]);
    let soft = Sharding {
        name: "volcano".to_owned(),
        mode: ShardingMode::Soft,
    };
    assert_eq!(options.features.sharding, Some(soft));
    assert!(!options.feature_gates.enabled("PriorityClass"));
    assert_eq!(options.logging.verbosity, 5);
    assert!(options.ignored.is_empty());
    let flags: Vec<_> = options.unused.iter().map(|unused| unused.flag.as_str()).collect();
    assert_eq!(
        flags,
        [
            "--percentage-nodes-to-find",
            "--node-worker-threads",
            "--resource-sync-timeout",
            "--enable-pprof",
            "--plugins-dir",
            "--feature-gates"
        ]
    );
}

#[test]
fn flags_are_written_as_in_go() {
    for arguments in [
        &["-v=3"][..],
        &["-v", "3"],
        &["-v3"],
        &["--v=3"],
        &["--v", "3"],
        &["-v=1", "--v=3"],
    ] {
        assert_eq!(parse(arguments).logging.verbosity, 3, "{arguments:?}");
    }
    let elects = |arguments: &[&str]| parse(arguments).leader_election.is_some();
    for on in [
        &["--leader-elect"][..],
        &["-leader-elect"],
        &["--leader_elect=1"],
        &["--leader-elect=t"],
        &["--leader-elect=false", "--leader-elect=True"],
    ] {
        assert!(elects(on), "{on:?}");
    }
    for off in [
        &["--leader-elect=false"][..],
        &["--leader_elect=0"],
        &["-leader-elect=F"],
    ] {
        assert!(!elects(off), "{off:?}");
    }
    assert_eq!(
        parse(&["--scheduler_conf", "/c"]).scheduler_conf,
        Some("/c".into())
    );
    assert_eq!(
        parse(&["--schedule-period=1m30s"]).schedule_period,
        Duration::from_secs(90)
    );
}

#[test]
fn a_value_of_a_switch_that_stands_apart_is_told() {
    let options = parse(&["--leader-elect", "false", "2>&1"]);
    assert!(options.leader_election.is_some());
    assert_eq!(options.ignored, ["false"]);
}

#[test]
fn lists_are_split_at_commas_but_scheduler_names_are_not() {
    let options = parse(&[
        "--scheduler-name=a,b",
        "--scheduler-name=c",
        "--node-selector=x:1,y:2",
        "--node-selector",
        "z:3",
        "--ignored-provisioners=",
    ]);
    assert_eq!(options.scheduler_names, ["a,b", "c"]);
    assert_eq!(options.component(), "volcano");
    assert_eq!(options.node_selector, ["x:1", "y:2", "z:3"]);
    assert!(options.features.ignored_provisioners.is_empty());
}

#[test]
fn the_lease_is_named_after_the_only_scheduler() {
    let cases: [(&[&str], &str); 5] = [
        (&[], "volcano"),
        (&["--scheduler-name=volcano"], "volcano"),
        (&["--scheduler-name=gpu"], "gpu"),
        (&["--scheduler-name=gpu", "--scheduler-name=cpu"], "volcano"),
        (
            &["--scheduler-name=gpu", "--leader-elect-resource-name=mine"],
            "mine",
        ),
    ];
    for (arguments, name) in cases {
        assert_eq!(lease_of(arguments).name, name, "{arguments:?}");
    }
    let options = parse(&["--scheduler-name=gpu"]);
    assert_eq!(options.component(), "gpu");
    let lease = lease_of(&[
        "--lock-object-namespace=old",
        "--leader-elect-resource-namespace=new",
    ]);
    assert_eq!(lease.namespace, "old");
}

#[test]
fn every_identity_is_another() {
    let (one, other) = (lease_of(&[]).identity, lease_of(&[]).identity);
    assert_ne!(one, other);
    let (_, uuid) = one.rsplit_once('_').unwrap();
    assert_eq!(uuid.len(), 36, "{one}");
}

#[test]
fn https_needs_all_three_files() {
    let files = [
        "--ca-cert-file=ca",
        "--tls-cert-file=crt",
        "--tls-private-key-file=key",
    ];
    let options = parse(&files);
    assert_eq!(options.serve.tls.unwrap().key, PathBuf::from("key"));
    let options = parse(&files[..2]);
    assert!(options.serve.tls.is_none());
    assert_eq!(options.unused[0].flag, "--ca-cert-file");
}

#[test]
fn mistakes_are_told_with_the_flag() {
    let cases: [(&[&str], &str); 13] = [
        (&["--event-qps=-1"], "--event-qps"),
        (&["--shedule-period=1s"], "--shedule-period"),
        (&["--schedule-period=5"], "missing unit"),
        (&["--schedule-period=-1s"], "must not be negative"),
        (&["--leader-elect=maybe"], "--leader-elect"),
        (&["--kube-api-qps=NaN"], "--kube-api-qps"),
        (&["--kube-api-burst=x"], "--kube-api-burst"),
        (
            &["--feature-gates=PriorityClas=true"],
            "--feature-gates: unknown feature gate PriorityClas; did you mean PriorityClass?",
        ),
        (
            &["--leader-elect-lease-duration=5s"],
            "must be greater than --leader-elect-renew-deadline",
        ),
        (
            &["--leader-elect-retry-period=0s"],
            "--leader-elect-retry-period must be greater than zero",
        ),
        (
            &["--leader-elect-retry-period=9s"],
            "--leader-elect-renew-deadline must be greater than --leader-elect-retry-period",
        ),
        (
            &["--leader-elect-resource-name="],
            "--leader-elect-resource-name must not be empty",
        ),
        (
            &["--leader-elect-resource-lock="],
            "--leader-elect-resource-lock must not be empty",
        ),
    ];
    for (arguments, message) in cases {
        let error = try_options(arguments).expect_err("a mistake");
        assert!(error.contains(message), "{arguments:?}: {error}");
    }
}

#[test]
fn settings_of_an_election_that_is_off_do_not_matter() {
    assert!(
        parse(&["--leader-elect=false", "--leader-elect-lease-duration=0s"])
            .leader_election
            .is_none()
    );
}

#[test]
fn an_unknown_sharding_mode_means_none() {
    let options = parse(&["--scheduler-sharding-mode=Hard"]);
    assert_eq!(options.features.sharding, None);
    assert_eq!(options.unused[0].flag, "--scheduler-sharding-mode");
    let hard = parse(&["--scheduler-sharding-mode=hard", "--scheduler-sharding-name=mine"]);
    let expected = Sharding {
        name: "mine".to_owned(),
        mode: ShardingMode::Hard,
    };
    assert_eq!(hard.features.sharding, Some(expected));
}

#[test]
fn the_gate_of_queues_is_a_feature_of_decisions() {
    let options = parse(&["--feature-gates=SchedulingGatesQueueAdmission=true"]);
    assert!(options.features.queue_admission);
}

#[test]
fn every_flag_of_klog_is_taken() {
    let options = parse(&[
        "--add_dir_header",
        "--alsologtostderr",
        "--log_backtrace_at=a.go:1",
        "--log_dir=/d",
        "--log_file=/f",
        "--log_file_max_size=1800",
        "--log-flush-frequency=5s",
        "--logtostderr=false",
        "--one_output=true",
        "--skip_headers",
        "--skip_log_headers",
        "--stderrthreshold=WARNING",
        "--vmodule=a=1",
        "--legacy_stderr_threshold_behavior=false",
    ]);
    assert!(options.logging.skip_headers);
    assert_eq!(options.unused.len(), 11, "{:?}", options.unused);
}

#[test]
fn help() {
    insta::assert_snapshot!(command().render_long_help());
}
