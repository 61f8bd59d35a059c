//! `volcano controller-manager`, also known as `vc-controller-manager`: carries Jobs, queues and PodGroups through their
//! lives.

use super::flags::{
    ClientArgs, ElectionArgs, GateArgs, HealthArgs, MetricsArgs, TlsArgs, VersionArgs, strangers,
};
use super::klog::KlogArgs;
use super::{print_version, run_program};
use crate::failure::Failure;
use clap::ArgAction::Set;
use std::process::ExitCode;
use std::time::Duration;
use tokio::runtime::Builder;
use volcano_api::names::{CONTROLLER_MANAGER, SCHEDULER};
use volcano_cli::go_flags::{BOOL, boolean, duration};
use volcano_runtime::controllers;
use volcano_runtime::controllers::options::Options;
use volcano_runtime::controllers::selection::{DEFAULT, Selection};
use volcano_runtime::gates::OF_CONTROLLERS;
use volcano_runtime::logging::Unused;
use volcano_runtime::serve::Settings;

/// Carry Jobs, queues and PodGroups through their lives
///
/// Takes the flags of Volcano's vc-controller-manager and can be started in its place. Truth values are written after an
/// equals sign (--leader-elect=false), durations as in Go (1m30s).
#[derive(Clone, Debug, clap::Args)]
#[command(args_override_self = true)]
#[command(mut_arg("listen_address", |arg| arg.default_value(":8081")))]
#[command(mut_arg("leader_elect_resource_name", |arg| arg.help(
    "Name of the Lease [default: vc-controller-manager]"
)))]
pub struct ControllerManagerArgs {
    #[command(flatten)]
    version: VersionArgs,
    #[command(flatten)]
    client: ClientArgs,
    #[command(flatten)]
    controlling: ControllingArgs,
    #[command(flatten)]
    metrics: MetricsArgs,
    #[command(flatten)]
    health: HealthArgs,
    #[command(flatten)]
    tls: TlsArgs,
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
#[command(next_help_heading = "Controllers")]
struct ControllingArgs {
    /// Controllers that run: * for all, NAME for one, -NAME for all but one
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_value = DEFAULT)]
    controllers: Vec<String>,

    /// Give a PodGroup to pods that ask for this scheduler and have none. May be repeated
    #[arg(long, value_name = "NAME", default_value = SCHEDULER)]
    scheduler_name: Vec<String>,

    /// Such a PodGroup takes over annotations of the pods' owners
    #[arg(long, value_name = BOOL, value_parser = boolean, action = Set, default_value = "true")]
    inherit_owner_annotations: bool,

    /// Refused writes for a Job or a queue in a row before it is given up; no limit when negative
    #[arg(long, value_name = "N", default_value_t = 15, allow_negative_numbers = true)]
    max_requeue_num: i32,

    #[command(flatten)]
    gates: GateArgs,
}

/// Flags of Volcano's controller manager that have nothing to set here.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Accepted without effect")]
struct WithoutEffect {
    /// One thread decides for all Jobs; what it writes is sent side by side
    #[arg(long, value_name = "N")]
    worker_threads: Option<u32>,

    /// The same for CronJobs
    #[arg(long, value_name = "N")]
    worker_threads_for_cronjob: Option<u32>,

    /// The same for PodGroups
    #[arg(long, value_name = "N")]
    worker_threads_for_podgroup: Option<u32>,

    /// The same for queues
    #[arg(long, value_name = "N")]
    worker_threads_for_queue: Option<u32>,

    /// The same for Jobs that have finished
    #[arg(long, value_name = "N")]
    worker_threads_for_gc: Option<u32>,

    /// Schedulers that nodes are divided between, as name:type:minUtil:maxUtil:preferWarmup:minNodes:maxNodes
    #[arg(long, value_name = "CONFIGS")]
    scheduler_configs: Vec<String>,

    /// How often nodes are divided anew
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    shard_sync_period: Option<Duration>,

    /// Divide nodes anew when they change
    #[arg(long, value_name = BOOL, value_parser = boolean, action = Set)]
    enable_node_event_trigger: Option<bool>,

    /// ConfigMap that says how nodes are divided
    #[arg(long, value_name = "NAME")]
    sharding_configmap: Option<String>,

    /// Its namespace
    #[arg(long, value_name = "NAMESPACE")]
    sharding_configmap_namespace: Option<String>,
}

impl WithoutEffect {
    /// Numbers of threads are in every chart and mean nothing to anybody; flags of a controller that is not here do.
    fn unused(&self) -> Vec<Unused> {
        const NOT_HERE: &str = "the sharding controller is not available yet";
        let flags = [
            ("--scheduler-configs", !self.scheduler_configs.is_empty()),
            ("--shard-sync-period", self.shard_sync_period.is_some()),
            (
                "--enable-node-event-trigger",
                self.enable_node_event_trigger.is_some(),
            ),
        ];
        let given = flags.into_iter().filter(|(_, given)| *given);
        given.map(|(flag, _)| Unused::new(flag, NOT_HERE)).collect()
    }
}

/// Runs the command.
///
/// # Errors
/// When the flags do not make sense, or the controllers cannot start.
pub fn run(args: &ControllerManagerArgs) -> Result<ExitCode, Failure> {
    if args.version.version {
        return print_version();
    }
    let options = options(args)?;
    let logging = options.logging.clone();
    // One thread for all connections, beside the one that decides, as in the scheduler.
    run_program(
        &logging,
        Builder::new_multi_thread().worker_threads(1),
        controllers::run(options),
    )
}

/// The flags, checked and typed.
fn options(args: &ControllerManagerArgs) -> Result<Options, Failure> {
    let controlling = &args.controlling;
    let controllers = Selection::parse(controlling.controllers.iter().map(String::as_str))
        .map_err(|error| Failure::new(error.to_string()))?;
    let (feature_gates, unused_gates) = controlling.gates.gates(OF_CONTROLLERS)?;
    let (tls, partial_tls) = args.tls.files();
    let mut unused = args.without_effect.unused();
    unused.extend(partial_tls);
    unused.extend(unused_gates);
    unused.extend(args.klog.unused());
    Ok(Options {
        client: args.client.options()?,
        scheduler_names: controlling.scheduler_name.clone(),
        inherit_owner_annotations: controlling.inherit_owner_annotations,
        max_requeue_num: controlling.max_requeue_num,
        controllers,
        feature_gates,
        serve: Settings {
            listen_address: args.metrics.listen_address.clone(),
            healthz_address: args.health.healthz_address.clone(),
            metrics: args.metrics.enable_metrics,
            healthz: args.health.enable_healthz,
            pprof: false,
            tls,
        },
        leader_election: args.election.settings(CONTROLLER_MANAGER)?,
        logging: args.klog.settings(),
        unused,
        ignored: strangers(&args.ignored),
    })
}

#[cfg(test)]
mod tests;
