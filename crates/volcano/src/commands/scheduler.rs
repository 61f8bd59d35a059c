//! `volcano scheduler`, also known as `vc-scheduler`: places the pods of a cluster.

use super::flags::{
    ClientArgs, ElectionArgs, GateArgs, HealthArgs, MetricsArgs, TlsArgs, VersionArgs, non_empty_path, rate,
    strangers,
};
use super::klog::KlogArgs;
use super::{print_version, run_program};
use crate::failure::Failure;
use clap::ArgAction::Set;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;
use tokio::runtime::Builder;
use volcano_api::names::{SCHEDULER, queues};
use volcano_cli::go_flags::{BOOL, boolean, duration};
use volcano_engine::model::features::{Features, Sharding, ShardingMode};
use volcano_runtime::gates;
use volcano_runtime::logging::Unused;
use volcano_runtime::scheduler;
use volcano_runtime::scheduler::options::Options;
use volcano_runtime::serve;

/// Place the pods of a cluster: gangs, queues, fair share, preemption
///
/// Takes the flags of Volcano's vc-scheduler and can be started in its place. Truth values are written after an
/// equals sign (--leader-elect=false), durations as in Go (1m30s).
#[derive(Clone, Debug, clap::Args)]
#[command(args_override_self = true)]
#[command(mut_arg("kube_api_qps", |arg| arg.default_value("2000")))]
#[command(mut_arg("kube_api_burst", |arg| arg.default_value("2000")))]
#[command(mut_arg("leader_elect_resource_name", |arg| arg.help(
    "Name of the Lease [default: the scheduler's name; volcano when it has several]"
)))]
pub struct SchedulerArgs {
    #[command(flatten)]
    version: VersionArgs,
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
    #[command(flatten)]
    client: ClientArgs,

    /// Events per second; 0 for none. What is too much is dropped, normal events before warnings
    #[arg(long, value_name = "N", default_value_t = 50.0)]
    event_qps: f64,
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

    /// Watch CSIDrivers and CSIStorageCapacities; without them free storage is not looked at
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

    #[command(flatten)]
    gates: GateArgs,
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Endpoints")]
struct EndpointArgs {
    #[command(flatten)]
    metrics: MetricsArgs,

    #[command(flatten)]
    health: HealthArgs,

    #[command(flatten)]
    tls: TlsArgs,

    /// Write what the scheduler knows to a file on SIGUSR1 and on SIGUSR2
    #[arg(long, value_name = BOOL, value_parser = boolean, action = Set, default_value = "true")]
    cache_dumper: bool,

    /// Directory of those files
    #[arg(long, value_name = "DIR", default_value = "/tmp")]
    cache_dump_dir: OsString,
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

    /// Nothing is decided before every kind has been listed, however long that takes
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    resource_sync_timeout: Option<Duration>,

    /// There are no profiles of Go: /debug/pprof/ says so
    #[arg(long, value_name = BOOL, value_parser = boolean, action = Set, default_value = "false", hide_default_value = true)]
    enable_pprof: bool,

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
                "--resource-sync-timeout",
                self.resource_sync_timeout.is_some(),
                "nothing is decided before every kind has been listed",
            ),
            (
                "--enable-pprof",
                self.enable_pprof,
                "there are no profiles of Go; /debug/pprof/ says so",
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
    if args.version.version {
        return print_version();
    }
    let options = options(args)?;
    let logging = options.logging.clone();
    // One thread for all connections, beside the one that decides: several would spend as much on waking each other
    // as on the work, and one serves more requests than an API server takes.
    run_program(
        &logging,
        Builder::new_multi_thread().worker_threads(1),
        scheduler::run(options),
    )
}

/// The flags, checked and typed.
fn options(args: &SchedulerArgs) -> Result<Options, Failure> {
    let (feature_gates, idle_gates) = args.scheduling.gates.gates(gates::OF_SCHEDULER)?;
    rate("--event-qps", args.cluster.event_qps, 0.0)?;
    let (sharding, unknown_mode) = sharding(&args.scheduling);
    let (serve, partial_tls) = endpoints(args);
    let mut unused = args.without_effect.unused();
    unused.extend(unknown_mode);
    unused.extend(partial_tls);
    unused.extend(idle_gates);
    unused.extend(args.klog.unused());
    let scheduling = &args.scheduling;
    Ok(Options {
        client: args.cluster.client.options()?,
        scheduler_names: scheduling.scheduler_name.clone(),
        scheduler_conf: non_empty_path(&scheduling.scheduler_conf),
        disable_default_conf: scheduling.disable_default_scheduler_config,
        schedule_period: scheduling.schedule_period,
        default_queue: scheduling.default_queue.clone(),
        priority_class: scheduling.priority_class,
        csi_storage: scheduling.csi_storage,
        node_selector: list(&scheduling.node_selector),
        features: Features {
            queue_admission: feature_gates.enabled(gates::QUEUE_ADMISSION_GATES),
            sharding,
            storage_scoring: feature_gates.enabled(gates::STORAGE_CAPACITY_SCORING),
            ignored_provisioners: list(&scheduling.ignored_provisioners),
        },
        feature_gates,
        serve,
        cache_dumper: args.endpoints.cache_dumper,
        cache_dump_dir: args.endpoints.cache_dump_dir.clone().into(),
        leader_election: args.election.settings(lease_name(&scheduling.scheduler_name))?,
        event_qps: args.cluster.event_qps,
        logging: args.klog.settings(),
        unused,
        ignored: strangers(&args.ignored),
    })
}

/// Schedulers of different names do different work: each has a lease of its own.
fn lease_name(schedulers: &[String]) -> &str {
    match schedulers {
        [name] => name,
        _ => SCHEDULER,
    }
}

fn sharding(args: &SchedulingArgs) -> (Option<Sharding>, Option<Unused>) {
    let (mode, known) = match args.scheduler_sharding_mode.as_str() {
        "hard" => (Some(ShardingMode::Hard), true),
        "soft" => (Some(ShardingMode::Soft), true),
        mode => (None, ["none", ""].contains(&mode)),
    };
    let name = args.scheduler_sharding_name.clone();
    let sharding = mode.map(|mode| Sharding { name, mode });
    let reason = "the modes are none, hard and soft; any other means none";
    let unused = (!known).then(|| Unused::new("--scheduler-sharding-mode", reason));
    (sharding, unused)
}

fn endpoints(args: &SchedulerArgs) -> (serve::Settings, Option<Unused>) {
    let pprof = args.without_effect.enable_pprof;
    let args = &args.endpoints;
    let (tls, partial) = args.tls.files();
    let settings = serve::Settings {
        listen_address: args.metrics.listen_address.clone(),
        healthz_address: args.health.healthz_address.clone(),
        metrics: args.metrics.enable_metrics,
        healthz: args.health.enable_healthz,
        pprof,
        tls,
    };
    (settings, partial)
}

/// A list without the empty items that an empty value makes.
fn list(items: &[String]) -> Vec<String> {
    items.iter().filter(|item| !item.is_empty()).cloned().collect()
}

#[cfg(test)]
mod tests;
