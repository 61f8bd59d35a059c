//! What the webhook manager is told on its command line, checked and typed.

use crate::serve::TlsFiles;
use crate::{client, logging};
use std::path::PathBuf;
use std::time::Duration;
use volcano_admission::webhooks::Webhook;

/// Everything that the command line decides.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which API server, as whom, and how fast.
    pub client: client::Options,
    /// What is served.
    pub enabled: Vec<&'static Webhook>,
    /// Address without the port; empty for all of the machine.
    pub listen_address: String,
    /// Port.
    pub port: u16,
    /// Certificate, key and authority.
    pub tls: Option<TlsFiles>,
    /// Where they are kept, and made when there are none, if the files are not there.
    pub secret: Option<SecretName>,
    /// Settings of the rules. Resource groups come from `admission_conf`.
    pub rules: volcano_admission::Options,
    /// The file of resource groups.
    pub admission_conf: Option<PathBuf>,
    /// Address of health, if it is served.
    pub healthz_address: Option<String>,
    /// How long requests may take that are under way at the end.
    pub graceful_shutdown: Duration,
    /// Logs.
    pub logging: logging::Settings,
    /// Flags that were given and have no effect, to be logged once.
    pub unused: Vec<logging::Unused>,
}

/// The Secret of the certificate, and the Service that it is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretName {
    /// Namespace of both.
    pub namespace: String,
    /// Name of the Secret.
    pub name: String,
    /// Name of the Service.
    pub service: String,
}

impl SecretName {
    /// The name that the API server calls.
    pub(super) fn host(&self) -> String {
        format!("{}.{}.svc", self.service, self.namespace)
    }
}
