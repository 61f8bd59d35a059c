//! The webhook manager as users run it: a process with the account of its own manifests.

use crate::install::{self, NAMESPACE};
use crate::process::BINARY;
use crate::{cluster, tls};
use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use volcano_testcluster::certificates::Authority;
use volcano_testcluster::objects::{self, check};
use volcano_testcluster::ports;

/// Every path.
pub const ALL: &str = "/jobs/mutate,/jobs/validate,/podgroups/mutate,/podgroups/validate,/pods/mutate,/pods/validate,\
    /queues/mutate,/queues/validate,/jobflows/validate,/cronjobs/validate,/hypernodes/validate";
/// Name of the Service, as the API server calls it.
pub const HOST: &str = "volcano-admission-service.volcano-system.svc";
const START: Duration = Duration::from_secs(60);

/// A folder of a certificate for the address and the Service, signed by an authority of its own. Its path and that
/// authority.
///
/// # Errors
/// When it cannot be written.
pub fn certificate(folder: &Path) -> anyhow::Result<Vec<u8>> {
    let authority = Authority::new()?;
    let identity = authority.server(&["127.0.0.1", HOST])?;
    std::fs::create_dir_all(folder)?;
    std::fs::write(folder.join("ca.crt"), &authority.certificate)?;
    std::fs::write(folder.join("tls.crt"), &identity.certificate)?;
    std::fs::write(folder.join("tls.key"), &identity.key)?;
    Ok(authority.certificate.into_bytes())
}

/// Flags that name the files of a folder.
pub fn files(folder: &Path) -> Vec<String> {
    let file = |flag: &str, name: &str| format!("--{flag}={}", folder.join(name).display());
    vec![
        file("ca-cert-file", "ca.crt"),
        file("tls-cert-file", "tls.crt"),
        file("tls-private-key-file", "tls.key"),
    ]
}

/// A running webhook manager. It is killed when dropped.
pub struct Manager {
    child: Child,
    log: PathBuf,
    /// Port of the webhooks.
    pub port: u16,
    /// Port of health.
    pub health_port: u16,
}

impl Manager {
    /// Starts one at a port with more flags, and does not wait.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn launch(port: u16, flags: &[String]) -> anyhow::Result<Manager> {
        let kubeconfig = install::kubeconfig("admission").await?;
        let [health_port] = ports::free()?;
        let log = cluster()
            .data_directory()
            .join(format!("webhook-manager-{health_port}.log"));
        let child = Command::new(&*BINARY)
            .arg("webhook-manager")
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .args(["--listen-address=127.0.0.1", "--enable-healthz", "-v=4"])
            .arg(format!("--port={port}"))
            .arg(format!("--healthz-address=127.0.0.1:{health_port}"))
            .arg(format!("--webhook-namespace={NAMESPACE}"))
            .args(["--webhook-service-name=volcano-admission-service"])
            .arg(format!("--enabled-admission={ALL}"))
            .args(flags)
            .arg("2>&1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&log)?)
            .spawn()
            .context("starting the webhook manager")?;
        Ok(Manager {
            child,
            log,
            port,
            health_port,
        })
    }

    /// Waits until it is ready; its certificate is signed by this authority.
    ///
    /// # Errors
    /// When it does not get ready.
    pub async fn ready(&mut self, authority: &[u8]) -> anyhow::Result<()> {
        let health_port = self.health_port;
        let waited = objects::wait_until("the webhook manager is ready", START, || async {
            let (status, body) = health(health_port, "/readyz", authority).await?;
            Ok(check(status == 200, || body))
        })
        .await;
        if let Some(status) = self.child.try_wait()? {
            bail!("the webhook manager ended with {status}:\n{}", self.log());
        }
        waited.with_context(|| self.log())
    }

    /// What it logged so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Asks it to end.
    ///
    /// # Errors
    /// When `kill` fails.
    pub fn terminate(&self) -> anyhow::Result<()> {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-TERM", &id]).status()?;
        ensure!(status.success(), "kill -TERM failed");
        Ok(())
    }

    /// Waits until it ends.
    ///
    /// # Errors
    /// When it does not.
    pub async fn wait(&mut self) -> anyhow::Result<ExitStatus> {
        objects::wait_until("the webhook manager ends", START, || {
            let ended = self.child.try_wait();
            async move {
                Ok(match ended? {
                    Some(status) => objects::Progress::Done(status),
                    None => objects::Progress::Waiting("it runs".to_owned()),
                })
            }
        })
        .await
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.child.kill(); // It may have ended already.
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("log of the webhook manager:\n{}", self.log());
        }
    }
}

/// Asks the health endpoint. Status and body.
///
/// # Errors
/// When it does not answer.
pub async fn health(port: u16, path: &str, authority: &[u8]) -> anyhow::Result<(u16, String)> {
    let mut stream = tls::connect(port, HOST, authority).await?;
    tls::ask(&mut stream, &format!("GET {path} HTTP/1.1"), b"").await
}

/// Registers webhooks at a port of this machine: the configurations of the manifests, with an address in the place of
/// the Service.
///
/// # Errors
/// When the API server refuses them.
pub async fn register(port: u16, configurations: &[Value]) -> anyhow::Result<()> {
    let client = cluster().client()?;
    for configuration in configurations {
        let mut configuration = configuration.clone();
        for webhook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
            let path = webhook["clientConfig"]["service"]["path"]
                .as_str()
                .unwrap_or_default();
            webhook["clientConfig"] = json!({"url": format!("https://127.0.0.1:{port}{path}")});
        }
        let path = path_of(&configuration);
        objects::delete(&client, &path).await?;
        let all = path.rsplit_once('/').map_or("", |(all, _)| all);
        objects::create(&client, all, &configuration).await?;
    }
    Ok(())
}

/// Path of a webhook configuration.
pub fn path_of(configuration: &Value) -> String {
    let plural = format!(
        "{}s",
        configuration["kind"].as_str().unwrap_or_default().to_lowercase()
    );
    objects::path(
        "admissionregistration.k8s.io/v1",
        "",
        &plural,
        objects::name_of(configuration),
    )
}
