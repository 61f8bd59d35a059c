//! What a control plane is made of: its files, and the command line of each program.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use uuid::Uuid;

use crate::binaries::Program;
use crate::certificates::{self, Authority};
use crate::{kubeconfig, ports};

/// The address that everything listens on; nothing is reachable from elsewhere.
pub const LOOPBACK: &str = "127.0.0.1";

/// Room for large load tests; etcd's own default is 2 GiB.
const ETCD_QUOTA_BYTES: u64 = 8 << 30;
/// Service addresses, of which no test has any use.
const SERVICE_RANGE: &str = "10.96.0.0/16";
/// Requests per second of kube-controller-manager: with its default of 20 the deletion of a large namespace takes minutes.
const CONTROLLER_QPS: &str = "1000";
/// Without ServiceAccount, as pods have no use for tokens and would have to wait for the account of their namespace.
/// Without TaintNodesByCondition, as new nodes would carry a not-ready taint that nothing removes.
const DISABLED_ADMISSION: &str = "ServiceAccount,TaintNodesByCondition";
/// Without those controllers that need a kubelet's heartbeats or a cloud: nodes without heartbeats stay ready.
const CONTROLLERS: &str = "*,-node-lifecycle-controller,-node-ipam-controller,-node-route-controller,\
     -service-lb-controller,-taint-eviction-controller,-device-taint-eviction-controller,\
     -persistentvolume-attach-detach-controller";

/// Where a control plane keeps its files, and where it listens.
#[derive(Clone, Debug)]
pub struct Layout {
    directory: PathBuf,
    client_port: u16,
    peer_port: u16,
    api_port: u16,
    token: String,
    authority_der: Vec<u8>,
}

impl Layout {
    /// Picks ports and a token, and writes keys, certificates and the kubeconfig into the directory.
    pub fn create(directory: &Path) -> anyhow::Result<Layout> {
        let [client_port, peer_port, api_port] = ports::free()?;
        let authority = Authority::new()?;
        let layout = Layout {
            directory: directory.to_owned(),
            client_port,
            peer_port,
            api_port,
            token: Uuid::new_v4().simple().to_string(),
            authority_der: authority.certificate_der.clone(),
        };
        layout.write(&authority).context("preparing the control plane")?;
        Ok(layout)
    }

    fn write(&self, authority: &Authority) -> anyhow::Result<()> {
        let server = authority.server(&[LOOPBACK, "localhost", "kubernetes.default.svc"])?;
        let (private, public) = certificates::signing_key()?;
        fs::write(self.authority(), &authority.certificate).context("writing ca.crt")?;
        fs::write(self.file("apiserver.crt"), &server.certificate).context("writing apiserver.crt")?;
        fs::write(self.file("sa.pub"), public).context("writing sa.pub")?;
        kubeconfig::write_secret(&self.file("apiserver.key"), &server.key)?;
        kubeconfig::write_secret(&self.file("sa.key"), &private)?;
        let users = format!("{},admin,admin,\"system:masters\"\n", self.token);
        kubeconfig::write_secret(&self.file("tokens.csv"), &users)?;
        let text = kubeconfig::text(&self.url(), Some(&self.authority()), Some(&self.token));
        kubeconfig::write_secret(&self.kubeconfig(), &text)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The directory that all its files are in.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Address of the API server.
    pub fn url(&self) -> String {
        format!("https://{LOOPBACK}:{}", self.api_port)
    }

    /// Bearer token of an administrator.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Certificate that the API server's is signed with.
    pub fn authority(&self) -> PathBuf {
        self.file("ca.crt")
    }

    /// The same as DER.
    pub fn authority_der(&self) -> &[u8] {
        &self.authority_der
    }

    /// Kubeconfig of an administrator.
    pub fn kubeconfig(&self) -> PathBuf {
        self.file("kubeconfig")
    }

    /// What a program writes to its standard output and error.
    pub fn log(&self, program: Program) -> PathBuf {
        self.file(&format!("{}.log", program.name()))
    }

    /// The arguments of a program; `extra` come last, where they override.
    pub fn arguments(&self, program: Program, extra: &[String]) -> Vec<String> {
        let own = match program {
            Program::Etcd => self.etcd(),
            Program::ApiServer => self.api_server(),
            Program::ControllerManager => self.controller_manager(),
            Program::Kubectl => vec![format!("--kubeconfig={}", self.kubeconfig().display())],
        };
        own.into_iter().chain(extra.iter().cloned()).collect()
    }

    fn etcd(&self) -> Vec<String> {
        let (client, peer) = (
            format!("http://{LOOPBACK}:{}", self.client_port),
            format!("http://{LOOPBACK}:{}", self.peer_port),
        );
        vec![
            format!("--data-dir={}", self.file("etcd").display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=default={peer}"),
            format!("--quota-backend-bytes={ETCD_QUOTA_BYTES}"),
            // Data of tests need not survive a crash of the machine.
            "--unsafe-no-fsync".to_owned(),
            "--log-level=warn".to_owned(),
        ]
    }

    fn api_server(&self) -> Vec<String> {
        let file = |name: &str| self.file(name).display().to_string();
        vec![
            format!("--etcd-servers=http://{LOOPBACK}:{}", self.client_port),
            format!("--bind-address={LOOPBACK}"),
            format!("--advertise-address={LOOPBACK}"),
            format!("--secure-port={}", self.api_port),
            format!("--tls-cert-file={}", file("apiserver.crt")),
            format!("--tls-private-key-file={}", file("apiserver.key")),
            format!("--token-auth-file={}", file("tokens.csv")),
            "--authorization-mode=RBAC".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-signing-key-file={}", file("sa.key")),
            format!("--service-account-key-file={}", file("sa.pub")),
            format!("--service-cluster-ip-range={SERVICE_RANGE}"),
            format!("--disable-admission-plugins={DISABLED_ADMISSION}"),
        ]
    }

    fn controller_manager(&self) -> Vec<String> {
        let file = |name: &str| self.file(name).display().to_string();
        vec![
            format!("--kubeconfig={}", file("kubeconfig")),
            "--leader-elect=false".to_owned(),
            format!("--controllers={CONTROLLERS}"),
            format!("--service-account-private-key-file={}", file("sa.key")),
            format!("--root-ca-file={}", file("ca.crt")),
            format!("--kube-api-qps={CONTROLLER_QPS}"),
            format!("--kube-api-burst={CONTROLLER_QPS}"),
            // Nobody asks it how it is.
            "--secure-port=0".to_owned(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> (tempfile::TempDir, Layout) {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::create(directory.path()).unwrap();
        (directory, layout)
    }

    #[test]
    fn everything_listens_on_the_loopback_address_only() {
        let (_directory, layout) = layout();
        for program in Program::CONTROL_PLANE {
            for argument in layout.arguments(program, &[]) {
                assert!(!argument.contains("0.0.0.0"), "{argument}");
                if argument.contains("-urls=") || argument.contains("-address=") {
                    assert!(argument.contains(LOOPBACK), "{argument}");
                }
            }
        }
    }

    #[test]
    fn every_file_that_an_argument_names_is_there() {
        let (directory, layout) = layout();
        let mut named = 0;
        for program in Program::CONTROL_PLANE {
            for argument in layout.arguments(program, &[]) {
                let (flag, value) = argument.split_once('=').unwrap_or((&argument, ""));
                let path = Path::new(value);
                if path.starts_with(directory.path()) && flag != "--data-dir" {
                    assert!(path.is_file(), "{argument}");
                    named += 1;
                }
            }
        }
        assert_eq!(named, 8);
    }

    #[test]
    fn extra_arguments_come_last_where_they_override() {
        let (_directory, layout) = layout();
        let extra = ["--authorization-mode=AlwaysAllow".to_owned()];
        let arguments = layout.arguments(Program::ApiServer, &extra);
        assert_eq!(arguments.last(), extra.first());
        assert!(arguments.contains(&"--authorization-mode=RBAC".to_owned()));
    }
}
