//! `volcano scheduler`, also known as `vc-scheduler`: places the pods of a cluster.

use super::go_flags::{BOOL, boolean, duration};
use super::klog::KlogArgs;
use crate::failure::Failure;
use clap::ArgAction::Set;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use volcano_api::names::{SCHEDULER, queues};
use volcano_runtime::client;
use volcano_runtime::gates::FeatureGates;
use volcano_runtime::lease;
use volcano_runtime::logging::{self, Unused};
use volcano_runtime::scheduler;
use volcano_runtime::scheduler::options::{Options, Sharding, ShardingMode};
use volcano_runtime::serve::{self, TlsFiles};

/// Place the pods of a cluster: gangs, queues, fair share, preemption
///
/// Takes the flags of Volcano's vc-scheduler and can be started in its place. Truth values are written after an
/// equals sign (--leader-elect=false), durations as in Go (1m30s).
#[derive(Clone, Debug, clap::Args)]
#[command(version, args_override_self = true)]
pub struct SchedulerArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    scheduling: SchedulingArgs,
    #[command(flatten)]
    endpoints: EndpointArgs,
    #[command(flatten)]
    election: ElectionArgs,
    #[command(flatten)]
    klog: KlogArgs,
    #[command(flatten)]
    without_effect: WithoutEffect,

    /// What is no flag; charts end their lists with a literal `2>&1`
    #[arg(hide = true)]
    ignored: Vec<String>,
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Cluster")]
struct ClusterArgs {
    /// Address of the API server, instead of the kubeconfig's
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    master: String,

    /// The kubeconfig [default: the service account of the pod, then the user's own]
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    kubeconfig: OsString,

    /// Calls to the API server per second; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 2000.0)]
    kube_api_qps: f64,

    /// Calls to the API server at once after a quiet time
    #[arg(long, value_name = "N", default_value_t = 2000)]
    kube_api_burst: u32,

    /// Events per second; 0 for none. What is too much is dropped, normal events before warnings
    #[arg(long, value_name = "N", default_value_t = 50.0)]
    event_qps: f64,

    /// How long to wait at the start until all objects are taken in; 0 for not at all
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "60s")]
    resource_sync_timeout: Duration,
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Scheduling")]
struct SchedulingArgs {
    /// Place pods that ask for this scheduler. May be repeated
    #[arg(long, value_name = "NAME", default_value = SCHEDULER)]
    scheduler_name: Vec<String>,

    /// The configuration: actions, plugins and their arguments. Changes take effect at the next cycle
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    scheduler_conf: OsString,

    /// Do not start with the built-in configuration when the file is missing or wrong
    #[arg(long, value_name = BOOL, value_parser = boolean, action = Set, default_value = "false")]
    disable_default_scheduler_config: bool,

    /// The longest time between two cycles; changes start one earlier
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "1s")]
    schedule_period: Duration,

    /// The queue of PodGroups that name none
    #[arg(long, value_name = "NAME", default_value = queues::DEFAULT)]
    default_queue: String,

    /// Watch PriorityClasses; without them every job has priority 0
    #[arg(long, value_name = BOOL, value_parser = boolean, action = Set, default_value = "true")]
    priority_class: bool,

    /// Watch CSIDrivers and CSIStorageCapacities
    #[arg(long, value_name = BOOL, value_parser = boolean, action = Set, default_value = "true")]
    csi_storage: bool,

    /// CSI drivers whose volumes do not count as attached, next to rancher.io/local-path and hostpath.csi.k8s.io
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    ignored_provisioners: Vec<String>,

    /// Only nodes with one of these labels, as key:value
    #[arg(long, value_name = "LABELS", value_delimiter = ',')]
    node_selector: Vec<String>,

    /// How schedulers divide the nodes: none, hard (by NodeShards) or soft (a preference)
    #[arg(long, value_name = "MODE", default_value = "none")]
    scheduler_sharding_mode: String,

    /// The NodeShard of this scheduler
    #[arg(long, value_name = "NAME", default_value = SCHEDULER)]
    scheduler_sharding_name: String,

    /// Feature gates of Volcano and of Kubernetes, such as A=true,B=false
    #[arg(long, value_name = "GATES")]
    feature_gates: Vec<String>,
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Endpoints")]
struct EndpointArgs {
    /// Address of metrics
    #[arg(long, value_name = "ADDRESS", default_value = ":8080")]
    listen_address: String,

    /// Address of health
    #[arg(long, value_name = "ADDRESS", default_value = ":11251")]
    healthz_address: String,

    /// Serve /metrics
    #[arg(long, value_name = BOOL, value_parser = boolean, action = Set, default_value = "false")]
    enable_metrics: bool,

    /// Serve /healthz and /readyz
    #[arg(long, value_name = BOOL, value_parser = boolean, action = Set, default_value = "false")]
    enable_healthz: bool,

    /// Accepted; there is no profile of Go to serve
    #[arg(long, value_name = BOOL, value_parser = boolean, action = Set, default_value = "false")]
    enable_pprof: bool,

    /// CA that client certificates are checked against; health is served over HTTPS when all three files are given
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    ca_cert_file: OsString,

    /// Certificate of the health endpoint
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    tls_cert_file: OsString,

    /// Key of that certificate
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    tls_private_key_file: OsString,

    /// Write what the scheduler knows to a file on SIGUSR1, and to the log on SIGUSR2
    #[arg(long, value_name = BOOL, value_parser = boolean, action = Set, default_value = "true")]
    cache_dumper: bool,

    /// Directory of those files
    #[arg(long, value_name = "DIR", default_value = "/tmp")]
    cache_dump_dir: OsString,
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Leader election")]
struct ElectionArgs {
    /// Of several instances let one work and the others stand by
    #[arg(long, value_name = BOOL, value_parser = boolean, action = Set, default_value = "true")]
    leader_elect: bool,

    /// How long the others wait after the last sign of the leader
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "15s")]
    leader_elect_lease_duration: Duration,

    /// How long the leader tries to renew before it stops working
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "10s")]
    leader_elect_renew_deadline: Duration,

    /// How long between two attempts
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "2s")]
    leader_elect_retry_period: Duration,

    /// Kind of the lock; a Lease whatever is given
    #[arg(long, value_name = "KIND", default_value = "leases", hide = true)]
    leader_elect_resource_lock: String,

    /// Name of the Lease [default: the scheduler's name; volcano when it has several]
    #[arg(long, value_name = "NAME")]
    leader_elect_resource_name: Option<String>,

    /// Namespace of the Lease
    #[arg(long, value_name = "NAMESPACE", default_value = "volcano-system")]
    leader_elect_resource_namespace: String,

    /// Old name of --leader-elect-resource-namespace
    #[arg(long, value_name = "NAMESPACE", default_value = "", hide = true)]
    lock_object_namespace: String,
}

/// Flags of Volcano's scheduler that have nothing to set here.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Accepted without effect")]
struct WithoutEffect {
    /// All nodes are scored
    #[arg(long, value_name = "N")]
    minimum_feasible_nodes: Option<i32>,

    /// All nodes are scored
    #[arg(long, value_name = "N")]
    minimum_percentage_nodes_to_find: Option<i32>,

    /// All nodes are scored
    #[arg(long, value_name = "N")]
    percentage_nodes_to_find: Option<i32>,

    /// Nodes are taken in by one thread, in order
    #[arg(long, value_name = "N")]
    node_worker_threads: Option<u32>,

    /// Gates are removed with the other writes
    #[arg(long, value_name = "N")]
    gate_removal_worker_num: Option<i32>,

    /// There is nothing to resync: watches that miss something list again
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    resync_period: Option<Duration>,

    /// Plugins that are compiled Go code cannot be loaded
    #[arg(long, value_name = "DIR", default_value = "", hide_default_value = true)]
    plugins_dir: String,
}

impl WithoutEffect {
    fn unused(&self) -> Vec<Unused> {
        const ALL_SCORED: &str = "all nodes are scored";
        let flags = [
            (
                "--minimum-feasible-nodes",
                self.minimum_feasible_nodes.is_some(),
                ALL_SCORED,
            ),
            (
                "--minimum-percentage-nodes-to-find",
                self.minimum_percentage_nodes_to_find.is_some(),
                ALL_SCORED,
            ),
            (
                "--percentage-nodes-to-find",
                self.percentage_nodes_to_find.is_some(),
                ALL_SCORED,
            ),
            (
                "--node-worker-threads",
                self.node_worker_threads.is_some(),
                "nodes are taken in by one thread, in order",
            ),
            (
                "--gate-removal-worker-num",
                self.gate_removal_worker_num.is_some(),
                "gates are removed with the other writes",
            ),
            (
                "--resync-period",
                self.resync_period.is_some_and(|period| !period.is_zero()),
                "watches that miss something list again",
            ),
            (
                "--plugins-dir",
                !self.plugins_dir.is_empty(),
                "plugins that are compiled Go code cannot be loaded",
            ),
        ];
        let given = flags.into_iter().filter(|(_, given, _)| *given);
        given.map(|(flag, _, reason)| Unused::new(flag, reason)).collect()
    }
}

/// Runs the command.
///
/// # Errors
/// When the flags do not make sense, or the scheduler cannot start.
pub fn run(args: &SchedulerArgs) -> Result<ExitCode, Failure> {
    let options = options(args)?;
    let level = logging::start(&options.logging);
    // One thread for all connections, beside the one that decides: several would spend as much on waking each other
    // as on the work, and one serves more requests than an API server takes.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start threads: {error}")))?;
    runtime.spawn(logging::socket(level, logging::socket_directory()));
    runtime
        .block_on(scheduler::run(options))
        .map_err(|error| Failure::new(error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}

/// The flags, checked and typed.
fn options(args: &SchedulerArgs) -> Result<Options, Failure> {
    let feature_gates = FeatureGates::parse(args.scheduling.feature_gates.iter().map(String::as_str))
        .map_err(|error| Failure::new(format!("--feature-gates: {error}")))?;
    let leader_election = leader_election(args)?;
    for (flag, value, least) in [
        // client-go's way to say "no limit" is a negative rate.
        ("--kube-api-qps", args.cluster.kube_api_qps, f64::MIN),
        ("--event-qps", args.cluster.event_qps, 0.0),
    ] {
        if !value.is_finite() || value < least {
            return Err(Failure::new(format!("{flag} {value}: not a rate per second")));
        }
    }
    let (sharding, unknown_mode) = sharding(&args.scheduling);
    let (serve, partial_tls) = endpoints(&args.endpoints);
    let mut unused = args.without_effect.unused();
    unused.extend(unknown_mode);
    unused.extend(partial_tls);
    unused.extend(gates_without_effect(&feature_gates));
    unused.extend(args.klog.unused());
    let scheduling = &args.scheduling;
    Ok(Options {
        client: client::Options {
            master: non_empty(&args.cluster.master),
            kubeconfig: non_empty_path(&args.cluster.kubeconfig),
            qps: args.cluster.kube_api_qps,
            burst: args.cluster.kube_api_burst,
        },
        scheduler_names: scheduling.scheduler_name.clone(),
        scheduler_conf: non_empty_path(&scheduling.scheduler_conf),
        disable_default_conf: scheduling.disable_default_scheduler_config,
        schedule_period: scheduling.schedule_period,
        default_queue: scheduling.default_queue.clone(),
        priority_class: scheduling.priority_class,
        csi_storage: scheduling.csi_storage,
        ignored_provisioners: list(&scheduling.ignored_provisioners),
        node_selector: list(&scheduling.node_selector),
        sharding,
        feature_gates,
        resource_sync_timeout: args.cluster.resource_sync_timeout,
        serve,
        cache_dumper: args.endpoints.cache_dumper,
        cache_dump_dir: args.endpoints.cache_dump_dir.clone().into(),
        leader_election,
        event_qps: args.cluster.event_qps,
        logging: args.klog.settings(),
        unused,
        ignored: strangers(&args.ignored),
    })
}

/// The election, unless it is switched off.
fn leader_election(args: &SchedulerArgs) -> Result<Option<lease::Settings>, Failure> {
    let election = &args.election;
    if !election.leader_elect {
        return Ok(None);
    }
    if election.leader_elect_resource_lock.is_empty() {
        return Err(Failure::new("--leader-elect-resource-lock must not be empty").hint("leave it out"));
    }
    // Schedulers of different names do different work: each has a lease of its own.
    let derived = match args.scheduling.scheduler_name.as_slice() {
        [name] => name,
        _ => SCHEDULER,
    };
    let namespace = non_empty(&election.lock_object_namespace);
    let settings = lease::Settings {
        lease_duration: election.leader_elect_lease_duration,
        renew_deadline: election.leader_elect_renew_deadline,
        retry_period: election.leader_elect_retry_period,
        namespace: namespace.unwrap_or_else(|| election.leader_elect_resource_namespace.clone()),
        name: election
            .leader_elect_resource_name
            .clone()
            .unwrap_or_else(|| derived.to_owned()),
        identity: lease::identity(),
    };
    settings.validate().map_err(Failure::new)?;
    Ok(Some(settings))
}

fn sharding(args: &SchedulingArgs) -> (Sharding, Option<Unused>) {
    let (mode, known) = match args.scheduler_sharding_mode.as_str() {
        "hard" => (ShardingMode::Hard, true),
        "soft" => (ShardingMode::Soft, true),
        mode => (ShardingMode::None, ["none", ""].contains(&mode)),
    };
    let sharding = Sharding {
        mode,
        name: args.scheduler_sharding_name.clone(),
    };
    let reason = "the modes are none, hard and soft; any other means none";
    let unused = (!known).then(|| Unused::new("--scheduler-sharding-mode", reason));
    (sharding, unused)
}

fn endpoints(args: &EndpointArgs) -> (serve::Settings, Option<Unused>) {
    let files = [
        ("--ca-cert-file", &args.ca_cert_file),
        ("--tls-cert-file", &args.tls_cert_file),
        ("--tls-private-key-file", &args.tls_private_key_file),
    ];
    let given: Vec<_> = files.iter().filter(|(_, path)| !path.is_empty()).collect();
    let tls = (given.len() == files.len()).then(|| TlsFiles {
        ca: args.ca_cert_file.clone().into(),
        cert: args.tls_cert_file.clone().into(),
        key: args.tls_private_key_file.clone().into(),
    });
    let reason = "HTTPS needs all of --ca-cert-file, --tls-cert-file and --tls-private-key-file";
    let partial = given
        .first()
        .filter(|_| tls.is_none())
        .map(|(flag, _)| Unused::new(flag, reason));
    let settings = serve::Settings {
        listen_address: args.listen_address.clone(),
        healthz_address: args.healthz_address.clone(),
        metrics: args.enable_metrics,
        healthz: args.enable_healthz,
        pprof: args.enable_pprof,
        tls,
    };
    (settings, partial)
}

fn gates_without_effect(gates: &FeatureGates) -> Option<Unused> {
    let names: Vec<_> = gates.without_effect().collect();
    let reason = format!("nothing here depends on {}", names.join(", "));
    (!names.is_empty()).then(|| Unused::new("--feature-gates", reason))
}

/// Arguments that are no flags and that somebody may have meant: `--leader-elect false` is not what it seems.
fn strangers(ignored: &[String]) -> Vec<String> {
    ignored.iter().filter(|text| *text != "2>&1").cloned().collect()
}

fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

fn non_empty_path(path: &OsStr) -> Option<PathBuf> {
    (!path.is_empty()).then(|| path.into())
}

/// A list without the empty items that an empty value makes.
fn list(items: &[String]) -> Vec<String> {
    items.iter().filter(|item| !item.is_empty()).cloned().collect()
}

#[cfg(test)]
mod tests;
