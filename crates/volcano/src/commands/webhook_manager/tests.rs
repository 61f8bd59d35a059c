use super::*;
use clap::{Args as _, FromArgMatches as _};
use volcano_cli::go_flags::{Dashes, normalise};

const OWN: &[&str] = &[
    "--webhook-namespace=volcano-system",
    "--webhook-service-name=volcano-admission-service",
];
const FILES: &[&str] = &[
    "--tls-cert-file=c",
    "--tls-private-key-file=k",
    "--ca-cert-file=a",
];

fn parse(flags: &[&str]) -> WebhookManagerArgs {
    let command =
        WebhookManagerArgs::augment_args(clap::Command::new("webhook-manager").no_binary_name(true));
    let flags = normalise(&command, Dashes::Any, flags.iter().map(OsString::from));
    let matches = command.try_get_matches_from(flags).unwrap();
    WebhookManagerArgs::from_arg_matches(&matches).unwrap()
}

fn accepted(lists: &[&[&str]]) -> Options {
    options(&parse(&lists.concat())).unwrap()
}

fn refused(lists: &[&[&str]]) -> String {
    options(&parse(&lists.concat())).unwrap_err().to_string()
}

#[test]
fn defaults_are_those_of_volcano() {
    let options = accepted(&[OWN, FILES]);
    let paths: Vec<_> = options.enabled.iter().map(|webhook| webhook.path).collect();
    assert_eq!(paths.join(","), DEFAULT_ENABLED);
    assert_eq!((options.client.qps, options.client.burst), (50.0, 100));
    assert_eq!((options.listen_address.as_str(), options.port), ("", 8443));
    assert_eq!(options.healthz_address, None);
    assert_eq!(options.graceful_shutdown, Duration::from_secs(30));
    let rules = &options.rules;
    assert_eq!(rules.scheduler_names, ["volcano"]);
    assert_eq!((rules.max_queue_depth, rules.protect_root_queue), (5, true));
    assert!(!rules.check_allocated_pods && !rules.queue_allocation_gates);
    assert_eq!((options.admission_conf, options.secret), (None, None));
    assert!(options.unused.is_empty());
}

#[test]
fn the_arguments_of_the_chart_are_taken() {
    let options = accepted(&[&[
        "--enabled-admission=/jobs/mutate, /jobs/validate",
        "--tls-cert-file=/admission.local.config/certificates/tls.crt",
        "--tls-private-key-file=/admission.local.config/certificates/tls.key",
        "--ca-cert-file=/admission.local.config/certificates/ca.crt",
        "--admission-conf=/admission.local.config/configmap/volcano-admission.conf",
        "--webhook-namespace=volcano-system",
        "--webhook-service-name=volcano-admission-service",
        "--scheduler-name=a",
        "--scheduler-name=b",
        "--feature-gates=SchedulingGatesQueueAdmission=true",
        "--enable-healthz=true",
        "--logtostderr",
        "--port=8443",
        "-v=4",
        "2>&1",
    ]]);
    assert_eq!(options.enabled.len(), 2);
    assert_eq!(
        options.tls.unwrap().ca.to_str(),
        Some("/admission.local.config/certificates/ca.crt")
    );
    assert_eq!(options.rules.scheduler_names, ["a", "b"]);
    assert!(options.rules.queue_allocation_gates);
    assert_eq!(options.healthz_address.as_deref(), Some(":11251"));
    assert_eq!(options.logging.verbosity, 4);
    assert!(options.unused.is_empty(), "{:?}", options.unused);
}

#[test]
fn nothing_has_to_be_served() {
    assert!(
        accepted(&[OWN, FILES, &["--enabled-admission="]])
            .enabled
            .is_empty()
    );
}

#[test]
fn mistakes_are_told_in_volcanos_words() {
    for port in ["0", "65536", "-1"] {
        let flag = format!("--port={port}");
        assert_eq!(
            refused(&[OWN, FILES, &[&flag]]),
            "error: the port should be in the range of 1 and 65535"
        );
    }
    assert_eq!(
        refused(&[FILES]),
        "error: failed to start webhooks as both 'url' and 'namespace/name' of webhook are empty"
    );
    assert!(accepted(&[FILES, &["--webhook-url=https://x"]]).secret.is_none());
    assert_eq!(
        refused(&[OWN, FILES, &["--enabled-admission=/jobs/mutate,/x"]]),
        "error: enabled admission /x not found on the admission registered map"
    );
    assert!(refused(&[OWN, FILES, &["--feature-gates=X=true"]]).contains("unknown feature gate X"));
}

#[test]
fn the_certificate_is_in_files_or_in_a_secret() {
    assert!(refused(&[OWN]).starts_with("error: there is no certificate: its files are not given"));
    assert!(refused(&[OWN, &FILES[..2]]).starts_with("error: --tls-cert-file: HTTPS needs all of "));
    let secret = &["--admission-secret-name=s"];
    let options = accepted(&[OWN, secret]);
    assert_eq!(options.tls, None);
    assert_eq!(
        options.secret,
        Some(SecretName {
            namespace: "volcano-system".into(),
            name: "s".into(),
            service: "volcano-admission-service".into()
        })
    );
    let both = accepted(&[OWN, FILES, secret]);
    assert!(both.tls.is_some() && both.secret.is_some());
    assert!(refused(&[&OWN[..1], secret]).contains("needs --webhook-namespace and --webhook-service-name"));
    assert!(refused(&[OWN, secret, &FILES[..1]]).contains("HTTPS needs all of "));
}

#[test]
fn numbers_may_be_negative_as_in_go() {
    for flags in [
        &["--max-queue-depth=-1", "--kube-api-burst=-5"][..],
        &["--max-queue-depth", "-1", "--kube-api-burst", "-5"],
    ] {
        let options = accepted(&[OWN, FILES, flags]);
        assert_eq!((options.rules.max_queue_depth, options.client.burst), (-1, 1));
    }
    assert_eq!(
        accepted(&[OWN, FILES, &["--kube-api-burst=5000000000"]])
            .client
            .burst,
        u32::MAX
    );
}

#[test]
fn what_has_no_effect_is_told() {
    let options = accepted(&[
        OWN,
        FILES,
        &[
            "stray",
            "--feature-gates=DynamicResourceAllocation=true,NodeSwap=true",
        ],
    ]);
    let flags: Vec<_> = options.unused.iter().map(|unused| unused.flag.as_str()).collect();
    assert_eq!(flags, ["--feature-gates", "stray"]);
}
