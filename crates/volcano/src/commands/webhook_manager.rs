//! `volcano webhook-manager`, also known as `vc-webhook-manager`: fills in and judges what users write.

use super::flags::{
    ClientArgs, GateArgs, HealthArgs, TlsArgs, VersionArgs, non_empty, non_empty_path, strangers,
};
use super::klog::KlogArgs;
use super::{print_version, run_program};
use crate::failure::Failure;
use clap::ArgAction::Set;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;
use tokio::runtime::Builder;
use volcano_admission::webhooks::{self, DEFAULT_ENABLED};
use volcano_api::names::SCHEDULER;
use volcano_cli::go_flags::{BOOL, boolean, duration};
use volcano_runtime::gates::{OF_ADMISSION, QUEUE_ADMISSION_GATES};
use volcano_runtime::logging::Unused;
use volcano_runtime::serve::TlsFiles;
use volcano_runtime::webhooks::{Options, SecretName, run as run_manager};

/// Fill in and judge what users write: Jobs, Queues, PodGroups, pods and more
///
/// Takes the flags of Volcano's vc-webhook-manager and can be started in its place. Truth values are written after an
/// equals sign (--enable-healthz=false), durations as in Go (1m30s).
#[derive(Clone, Debug, clap::Args)]
#[command(args_override_self = true)]
pub struct WebhookManagerArgs {
    #[command(flatten)]
    version: VersionArgs,
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    rules: RuleArgs,
    #[command(flatten)]
    endpoints: EndpointArgs,
    #[command(flatten)]
    klog: KlogArgs,

    /// What is no flag; charts end their lists with a literal `2>&1`
    #[arg(hide = true)]
    ignored: Vec<String>,
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Cluster")]
struct ClusterArgs {
    #[command(flatten)]
    client: ClientArgs,

    /// Namespace of the webhook's Service
    #[arg(long, value_name = "NAMESPACE", default_value = "", hide_default_value = true)]
    webhook_namespace: String,

    /// Name of the webhook's Service
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    webhook_service_name: String,

    /// Address of the webhook, if it is not reached through a Service
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    webhook_url: String,
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Rules")]
struct RuleArgs {
    /// What is served, by path
    #[arg(long, value_name = "PATHS", default_value = DEFAULT_ENABLED, hide_default_value = true)]
    enabled_admission: String,

    /// Judge pods that ask for this scheduler; the first is that of Jobs that name none. May be repeated
    #[arg(long, value_name = "NAME", default_value = SCHEDULER)]
    scheduler_name: Vec<String>,

    /// Resource groups: which pods go to which nodes. Changes take effect at once
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    admission_conf: OsString,

    /// Keep queues that hold pods from being deleted
    #[arg(long, value_name = BOOL, value_parser = boolean, action = Set, default_value = "false")]
    enable_queue_allocated_pods_check: bool,

    /// Queues below the root, down to the lowest
    #[arg(long, value_name = "N", default_value_t = 5, allow_negative_numbers = true)]
    max_queue_depth: i64,

    /// Keep capability, deserved and guarantee of the root queue as they are
    #[arg(long, value_name = BOOL, value_parser = boolean, action = Set, default_value = "true")]
    enable_root_queue_protection: bool,

    #[command(flatten)]
    gates: GateArgs,
}

#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Endpoints")]
struct EndpointArgs {
    /// Address, all of the machine if empty
    #[arg(long, value_name = "ADDRESS", default_value = "", hide_default_value = true)]
    listen_address: String,

    /// Port
    #[arg(
        long,
        value_name = "PORT",
        default_value_t = 8443,
        allow_negative_numbers = true
    )]
    port: i64,

    #[command(flatten)]
    tls: TlsArgs,

    /// Where the certificate is kept if the files are not there: a Secret in --webhook-namespace, made if need be
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    admission_secret_name: String,

    #[command(flatten)]
    health: HealthArgs,

    /// How long requests may take that are under way at the end
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "30s")]
    graceful_shutdown_time: Duration,
}

/// Runs the command.
///
/// # Errors
/// When the flags do not make sense, or the webhook manager cannot start.
pub fn run(args: &WebhookManagerArgs) -> Result<ExitCode, Failure> {
    if args.version.version {
        return print_version();
    }
    let options = options(args)?;
    let logging = options.logging.clone();
    // Reviews run on the blocking threads; a connection has at most one under way.
    let mut threads = Builder::new_multi_thread();
    let threads = threads.worker_threads(2).max_blocking_threads(16);
    run_program(&logging, threads, run_manager(options))
}

/// The flags, checked and typed.
fn options(args: &WebhookManagerArgs) -> Result<Options, Failure> {
    let (cluster, rules, endpoints) = (&args.cluster, &args.rules, &args.endpoints);
    let (gates, unused_gates) = rules.gates.gates(OF_ADMISSION)?;
    let port = u16::try_from(endpoints.port).ok().filter(|port| *port > 0);
    let port = port.ok_or_else(|| Failure::new("the port should be in the range of 1 and 65535"))?;
    let own = [
        &cluster.webhook_url,
        &cluster.webhook_namespace,
        &cluster.webhook_service_name,
    ];
    if own.iter().all(|text| text.is_empty()) {
        let message = "failed to start webhooks as both 'url' and 'namespace/name' of webhook are empty";
        return Err(Failure::new(message));
    }
    let enabled =
        webhooks::enabled(&rules.enabled_admission).map_err(|error| Failure::new(error.to_string()))?;
    let (tls, secret) = certificate(args)?;
    Ok(Options {
        client: cluster.client.options()?,
        enabled,
        listen_address: endpoints.listen_address.clone(),
        port,
        tls,
        secret,
        rules: volcano_admission::Options {
            scheduler_names: rules.scheduler_name.clone(),
            max_queue_depth: rules.max_queue_depth,
            protect_root_queue: rules.enable_root_queue_protection,
            check_allocated_pods: rules.enable_queue_allocated_pods_check,
            queue_allocation_gates: gates.enabled(QUEUE_ADMISSION_GATES),
            resource_groups: None,
        },
        admission_conf: non_empty_path(&rules.admission_conf),
        healthz_address: endpoints
            .health
            .enable_healthz
            .then(|| endpoints.health.healthz_address.clone()),
        graceful_shutdown: endpoints.graceful_shutdown_time,
        logging: args.klog.settings(),
        unused: unused(args, unused_gates),
    })
}

/// The files of the certificate, and the Secret for when they are not there.
fn certificate(args: &WebhookManagerArgs) -> Result<(Option<TlsFiles>, Option<SecretName>), Failure> {
    let (cluster, endpoints) = (&args.cluster, &args.endpoints);
    let named = non_empty(&endpoints.admission_secret_name);
    let (tls, partial) = endpoints.tls.files();
    if let Some(partial) = partial {
        return Err(Failure::new(format!("{}: {}", partial.flag, partial.reason)));
    }
    if tls.is_none() && named.is_none() {
        let hint = "--tls-cert-file, --tls-private-key-file and --ca-cert-file; or --admission-secret-name";
        return Err(Failure::new("there is no certificate: its files are not given").hint(hint));
    }
    let secret = match named {
        None => None,
        Some(_) if cluster.webhook_namespace.is_empty() || cluster.webhook_service_name.is_empty() => {
            let message = "--admission-secret-name needs --webhook-namespace and --webhook-service-name";
            return Err(Failure::new(message).hint("a certificate is made for the Service of that name"));
        }
        Some(name) => Some(SecretName {
            namespace: cluster.webhook_namespace.clone(),
            name,
            service: cluster.webhook_service_name.clone(),
        }),
    };
    Ok((tls, secret))
}

fn unused(args: &WebhookManagerArgs, gates: Option<Unused>) -> Vec<Unused> {
    let mut unused: Vec<_> = gates.into_iter().collect();
    unused.extend(args.klog.unused());
    let strangers = strangers(&args.ignored);
    unused.extend(strangers.iter().map(|text| Unused::new(text, "it is no flag")));
    unused
}

#[cfg(test)]
mod tests;
