//! Groups of flags that several programs take.
//!
//! Defaults that differ between programs are set by the program, with `mut_arg`.

use crate::failure::Failure;
use clap::ArgAction::Set;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;
use volcano_cli::go_flags::{BOOL, boolean, duration};
use volcano_runtime::client;
use volcano_runtime::gates::FeatureGates;
use volcano_runtime::lease;
use volcano_runtime::logging::Unused;
use volcano_runtime::serve::TlsFiles;

/// Whether only the version is asked for.
#[derive(Clone, Debug, clap::Args)]
pub struct VersionArgs {
    /// Print the version and exit
    #[arg(long, value_name = BOOL, value_parser = boolean, action = Set, default_value = "false", hide_default_value = true)]
    pub version: bool,
}

/// Which API server, as whom, and how fast.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Cluster")]
pub struct ClientArgs {
    /// Address of the API server, instead of the kubeconfig's
    #[arg(long, value_name = "URL", default_value = "", hide_default_value = true)]
    master: String,

    /// The kubeconfig [default: the service account of the pod, then the user's own]
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    kubeconfig: OsString,

    /// Calls to the API server per second; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 50.0)]
    kube_api_qps: f64,

    /// Calls to the API server at once after a quiet time
    #[arg(long, value_name = "N", default_value_t = 100, allow_negative_numbers = true)]
    kube_api_burst: i64,
}

impl ClientArgs {
    /// The settings of the connection.
    ///
    /// # Errors
    /// When the rate is none.
    pub fn options(&self) -> Result<client::Options, Failure> {
        // client-go's way to say "no limit" is a negative rate.
        rate("--kube-api-qps", self.kube_api_qps, f64::MIN)?;
        Ok(client::Options {
            master: non_empty(&self.master),
            kubeconfig: non_empty_path(&self.kubeconfig),
            qps: self.kube_api_qps,
            // Less than one call at once is none, with which nobody wants to run.
            burst: u32::try_from(self.kube_api_burst.max(1)).unwrap_or(u32::MAX),
            ..client::Options::default()
        })
    }
}

/// Leader election.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Leader election")]
pub struct ElectionArgs {
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

    /// Name of the Lease
    #[arg(long, value_name = "NAME")]
    leader_elect_resource_name: Option<String>,

    /// Namespace of the Lease
    #[arg(long, value_name = "NAMESPACE", default_value = "volcano-system")]
    leader_elect_resource_namespace: String,

    /// Old name of --leader-elect-resource-namespace
    #[arg(long, value_name = "NAMESPACE", default_value = "", hide = true)]
    lock_object_namespace: String,
}

impl ElectionArgs {
    /// The settings of the election, unless it is switched off. `name` is that of the Lease when none is given.
    ///
    /// # Errors
    /// When they contradict each other.
    pub fn settings(&self, name: &str) -> Result<Option<lease::Settings>, Failure> {
        if !self.leader_elect {
            return Ok(None);
        }
        if self.leader_elect_resource_lock.is_empty() {
            return Err(Failure::new("--leader-elect-resource-lock must not be empty").hint("leave it out"));
        }
        let namespace = non_empty(&self.lock_object_namespace);
        let given = self.leader_elect_resource_name.clone();
        let settings = lease::Settings {
            lease_duration: self.leader_elect_lease_duration,
            renew_deadline: self.leader_elect_renew_deadline,
            retry_period: self.leader_elect_retry_period,
            namespace: namespace.unwrap_or_else(|| self.leader_elect_resource_namespace.clone()),
            name: given.unwrap_or_else(|| name.to_owned()),
            identity: lease::identity(),
        };
        settings.validate().map_err(Failure::new)?;
        Ok(Some(settings))
    }
}

/// Whether health is served, and where.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Endpoints")]
pub struct HealthArgs {
    /// Address of health
    #[arg(long, value_name = "ADDRESS", default_value = ":11251")]
    pub healthz_address: String,

    /// Serve /healthz and /readyz
    #[arg(long, value_name = BOOL, value_parser = boolean, action = Set, default_value = "false")]
    pub enable_healthz: bool,
}

/// Whether metrics are served, and where.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Endpoints")]
pub struct MetricsArgs {
    /// Address of metrics
    #[arg(long, value_name = "ADDRESS", default_value = ":8080")]
    pub listen_address: String,

    /// Serve /metrics
    #[arg(long, value_name = BOOL, value_parser = boolean, action = Set, default_value = "false")]
    pub enable_metrics: bool,
}

/// Certificates of endpoints.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Endpoints")]
pub struct TlsArgs {
    /// CA that client certificates are checked against; HTTPS is served when all three files are given
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    ca_cert_file: OsString,

    /// Certificate of the server
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    tls_cert_file: OsString,

    /// Key of that certificate
    #[arg(long, value_name = "FILE", default_value = "", hide_default_value = true)]
    tls_private_key_file: OsString,
}

impl TlsArgs {
    /// The files, if all three are given; and what has no effect, if only some are.
    pub fn files(&self) -> (Option<TlsFiles>, Option<Unused>) {
        let files = [
            ("--ca-cert-file", &self.ca_cert_file),
            ("--tls-cert-file", &self.tls_cert_file),
            ("--tls-private-key-file", &self.tls_private_key_file),
        ];
        let given: Vec<_> = files.iter().filter(|(_, path)| !path.is_empty()).collect();
        let tls = (given.len() == files.len()).then(|| TlsFiles {
            ca: self.ca_cert_file.clone().into(),
            cert: self.tls_cert_file.clone().into(),
            key: self.tls_private_key_file.clone().into(),
        });
        let reason = "HTTPS needs all of --ca-cert-file, --tls-cert-file and --tls-private-key-file";
        let partial = given
            .first()
            .filter(|_| tls.is_none())
            .map(|(flag, _)| Unused::new(flag, reason));
        (tls, partial)
    }
}

/// Feature gates.
#[derive(Clone, Debug, clap::Args)]
pub struct GateArgs {
    /// Feature gates of Volcano and of Kubernetes, such as A=true,B=false
    #[arg(long, value_name = "GATES")]
    feature_gates: Vec<String>,
}

impl GateArgs {
    /// The gates, and what is to be said of those that the program does not look at.
    ///
    /// # Errors
    /// For a gate that does not exist, and for a value that is no truth value.
    pub fn gates(&self, looked_at: &[&str]) -> Result<(FeatureGates, Option<Unused>), Failure> {
        let gates = FeatureGates::parse(self.feature_gates.iter().map(String::as_str))
            .map_err(|error| Failure::new(format!("--feature-gates: {error}")))?;
        let names: Vec<_> = gates.without_effect(looked_at).collect();
        let reason = format!("nothing here depends on {}", names.join(", "));
        let unused = (!names.is_empty()).then(|| Unused::new("--feature-gates", reason));
        Ok((gates, unused))
    }
}

/// Arguments that are no flags and that somebody may have meant: `--leader-elect false` is not what it seems.
pub fn strangers(ignored: &[String]) -> Vec<String> {
    ignored.iter().filter(|text| *text != "2>&1").cloned().collect()
}

/// Checks a rate per second.
///
/// # Errors
/// When it is none, or less than the least.
pub fn rate(flag: &str, value: f64, least: f64) -> Result<(), Failure> {
    if value.is_finite() && value >= least {
        return Ok(());
    }
    Err(Failure::new(format!("{flag} {value}: not a rate per second")))
}

/// A text, unless it is empty.
pub fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// A path, unless it is empty.
pub fn non_empty_path(path: &OsStr) -> Option<PathBuf> {
    (!path.is_empty()).then(|| path.into())
}
