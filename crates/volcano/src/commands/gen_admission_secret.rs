//! `volcano gen-admission-secret`, also known as `gen-admission-secret.sh`: makes the certificate of the webhook manager.
//!
//! Charts run it as a job before they install or upgrade. The webhook manager does the same by itself when it is
//! started with `--admission-secret-name`.

use crate::failure::Failure;
use std::ffi::OsString;
use std::process::ExitCode;
use volcano_runtime::client::{self, Client};
use volcano_runtime::webhooks::{SecretName, rotate};

/// Put a new certificate for the webhook manager into a Secret, made if it is not there
#[derive(Clone, Debug, clap::Args)]
pub struct GenAdmissionSecretArgs {
    /// Service that the certificate is for
    #[arg(long, value_name = "NAME", default_value = "volcano-admission-service")]
    service: String,

    /// Namespace of the Service and the Secret
    #[arg(long, value_name = "NAME", default_value = "volcano-system")]
    namespace: String,

    /// The Secret
    #[arg(long, value_name = "NAME", default_value = "volcano-admission-secret")]
    secret: String,

    /// Address of the API server, instead of the kubeconfig's
    #[arg(long, value_name = "URL")]
    master: Option<String>,

    /// The kubeconfig [default: the service account of the pod, then the user's own]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<OsString>,
}

/// Runs the command.
///
/// # Errors
/// When the API server refuses the Secret.
pub fn run(args: &GenAdmissionSecretArgs) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start threads: {error}")))?;
    let of = SecretName {
        namespace: args.namespace.clone(),
        name: args.secret.clone(),
        service: args.service.clone(),
    };
    let settings = client::Options {
        master: args.master.clone(),
        kubeconfig: args.kubeconfig.clone().map(Into::into),
        ..client::Options::default()
    };
    runtime.block_on(async {
        let client = Client::connect(&settings)
            .await
            .map_err(|error| Failure::new(error.to_string()))?;
        rotate(&client, &of).await.map_err(|error| {
            Failure::new(error.to_string())
                .hint("it takes get, create and patch on secrets of that namespace")
        })
    })?;
    super::print(&format!("secret/{} has a new certificate\n", args.secret))?;
    Ok(ExitCode::SUCCESS)
}
