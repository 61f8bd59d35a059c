use super::*;
use clap::{Args as _, FromArgMatches as _};
use std::ffi::OsString;
use std::path::PathBuf;
use volcano_cli::go_flags::{self, Dashes};
use volcano_runtime::controllers::selection;

fn try_options(arguments: &[&str]) -> Result<Options, String> {
    let command = ControllerManagerArgs::augment_args(clap::Command::new(CONTROLLER_MANAGER));
    let normal = go_flags::normalise(&command, Dashes::Any, arguments.iter().map(OsString::from));
    let with_name = std::iter::once(CONTROLLER_MANAGER.into()).chain(normal);
    let matches = command
        .try_get_matches_from(with_name)
        .map_err(|error| error.to_string())?;
    let args = ControllerManagerArgs::from_arg_matches(&matches).map_err(|error| error.to_string())?;
    options(&args).map_err(|failure| failure.to_string())
}

fn parse(arguments: &[&str]) -> Options {
    try_options(arguments).unwrap()
}

#[test]
fn defaults_are_those_of_volcano() {
    let options = parse(&[]);
    assert_eq!((options.client.qps, options.client.burst), (50.0, 100));
    assert_eq!(options.scheduler_names, ["volcano"]);
    assert!(options.inherit_owner_annotations);
    assert_eq!(options.max_requeue_num, 15);
    assert_eq!(
        options.serve,
        Settings {
            listen_address: ":8081".to_owned(),
            healthz_address: ":11251".to_owned(),
            ..Settings::default()
        }
    );
    let lease = options.leader_election.unwrap();
    assert_eq!(
        (&*lease.namespace, &*lease.name),
        ("volcano-system", "vc-controller-manager")
    );
    assert_eq!(lease.lease_duration, Duration::from_secs(15));
    assert!(
        selection::AVAILABLE
            .iter()
            .all(|name| options.controllers.has(name))
    );
    assert!(!options.controllers.has("sharding-controller"));
    assert!(options.unused.is_empty() && options.ignored.is_empty());
}

#[test]
fn the_arguments_of_the_chart_are_taken() {
    let options = parse(&[
        "--logtostderr",
        "--enable-healthz=true",
        "--enable-metrics=true",
        "--leader-elect=true",
        "--scheduler-name=mine",
        "--leader-elect-resource-namespace=batch",
        "--kube-api-qps=50",
        "--kube-api-burst=100",
        "--worker-threads=3",
        "--worker-threads-for-gc=5",
        "--worker-threads-for-podgroup=5",
        "--sharding-configmap=volcano-sharding-configmap",
        "--sharding-configmap-namespace=batch",
        "--controllers=*,-hyperNode-controller,-sharding-controller",
        "-v=4",
        "2>&1",
    ]);
    assert!(options.serve.metrics && options.serve.healthz);
    assert_eq!(options.scheduler_names, ["mine"]);
    assert_eq!(options.leader_election.unwrap().namespace, "batch");
    assert_eq!(options.logging.verbosity, 4);
    assert!(!options.controllers.has("hyperNode-controller"));
    assert!(options.unused.is_empty() && options.ignored.is_empty());
}

#[test]
fn every_other_flag_of_volcano_is_taken() {
    let options = parse(&[
        "--master=https://k:6443",
        "--kubeconfig=/k",
        "--ca-cert-file=/ca",
        "--tls-cert-file=/cert",
        "--tls-private-key-file=/key",
        "--worker_threads_for_cronjob=3",
        "--worker-threads-for-queue=5",
        "--max-requeue-num=-1",
        "--healthz-address=:1",
        "--listen-address=:2",
        "--inherit-owner-annotations=false",
        "--leader-elect-lease-duration=30s",
        "--leader-elect-renew-deadline=20s",
        "--leader-elect-retry-period=4s",
        "--leader-elect-resource-lock=leases",
        "--leader-elect-resource-name=lock",
        "--lock-object-namespace=elsewhere",
        "--feature-gates=WorkLoadSupport=false",
        "--log-flush-frequency=5s",
        "--scheduler-configs=a:volcano:0:1:false:1:2",
        "--shard-sync-period=1m",
        "--enable-node-event-trigger=false",
        "stray",
    ]);
    assert_eq!(options.client.kubeconfig, Some(PathBuf::from("/k")));
    assert!(options.serve.tls.is_some());
    assert_eq!(options.max_requeue_num, -1);
    assert!(!options.inherit_owner_annotations);
    let lease = options.leader_election.unwrap();
    assert_eq!((&*lease.namespace, &*lease.name), ("elsewhere", "lock"));
    assert!(!options.feature_gates.enabled("WorkLoadSupport"));
    assert_eq!(options.unused.len(), 4, "{:?}", options.unused);
    assert_eq!(options.ignored, ["stray"]);
}

#[test]
fn lists_that_make_no_sense_are_refused() {
    let error = try_options(&["--controllers=+gc-controller,-gc-controller"]).unwrap_err();
    assert!(
        error.contains("controllers option -gc-controller cannot have both '-' and '+' prefixes"),
        "{error}"
    );
    assert!(try_options(&["--feature-gates=Nope=true"]).is_err());
    assert!(
        try_options(&["--leader-elect=false"])
            .unwrap()
            .leader_election
            .is_none()
    );
}
