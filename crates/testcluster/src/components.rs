//! What a control plane is made of: its files, and the command line of each program.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use uuid::Uuid;

use crate::binaries::Program;
use crate::certificates::{self, Authority};
use crate::nodes::Nodes;
use crate::{kubeconfig, ports};

/// The address that everything listens on; nothing is reachable from elsewhere. With real nodes the API server listens on
/// that of their network, which is on this machine too.
pub const LOOPBACK: &str = "127.0.0.1";

/// Room for large load tests; etcd's own default is 2 GiB.
const ETCD_QUOTA_BYTES: u64 = 8 << 30;
/// Service addresses, which are of use to pods only.
const SERVICE_RANGE: &str = "10.96.0.0/16";
/// Where pods find the API server: the first of them.
const SERVICE_ADDRESS: &str = "10.96.0.1";
/// Requests per second of kube-controller-manager: with its default of 20 the deletion of a large namespace takes minutes.
const CONTROLLER_QPS: &str = "1000";
/// Without ServiceAccount, as pods have no use for tokens and would have to wait for the account of their namespace.
/// Without TaintNodesByCondition, as new nodes would carry a not-ready taint that nothing removes.
const DISABLED_ADMISSION: &str = "ServiceAccount,TaintNodesByCondition";
/// Without those controllers that need a kubelet's heartbeats or a cloud: nodes without heartbeats stay ready.
const CONTROLLERS: &str = "*,-node-lifecycle-controller,-node-ipam-controller,-node-route-controller,\
     -service-lb-controller,-taint-eviction-controller,-device-taint-eviction-controller,\
     -persistentvolume-attach-detach-controller";

/// The same with real nodes: without those that need a cloud.
const CONTROLLERS_WITH_NODES: &str = "*,-node-ipam-controller,-node-route-controller,-service-lb-controller";

/// Where a control plane keeps its files, and where it listens.
#[derive(Clone, Debug)]
pub struct Layout {
    directory: PathBuf,
    address: String,
    with_nodes: bool,
    client_port: u16,
    peer_port: u16,
    api_port: u16,
    token: String,
    others: BTreeMap<String, User>,
    authority_der: Vec<u8>,
}

/// Somebody other than the administrator.
#[derive(Clone, Debug)]
struct User {
    token: String,
    group: &'static str,
}

impl Layout {
    /// Picks ports and tokens, and writes keys, certificates and kubeconfigs into the directory.
    pub fn create(directory: &Path, nodes: Option<&Nodes>) -> anyhow::Result<Layout> {
        let [client_port, peer_port, api_port] = ports::free()?;
        let authority = Authority::new()?;
        let new_token = || Uuid::new_v4().simple().to_string();
        let others = nodes.map(Nodes::users).unwrap_or_default();
        let others = others.into_iter().map(|(name, group)| {
            let token = new_token();
            (name, User { token, group })
        });
        let layout = Layout {
            directory: directory.to_owned(),
            address: nodes.map_or(LOOPBACK.to_owned(), |nodes| nodes.network().host()),
            with_nodes: nodes.is_some(),
            client_port,
            peer_port,
            api_port,
            token: new_token(),
            others: others.collect(),
            authority_der: authority.certificate_der.clone(),
        };
        layout.write(&authority).context("preparing the control plane")?;
        Ok(layout)
    }

    fn write(&self, authority: &Authority) -> anyhow::Result<()> {
        let names = [
            LOOPBACK,
            &self.address,
            SERVICE_ADDRESS,
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ];
        let server = authority.server(&names)?;
        let (private, public) = certificates::signing_key()?;
        fs::write(self.authority(), &authority.certificate).context("writing ca.crt")?;
        fs::write(self.file("apiserver.crt"), &server.certificate).context("writing apiserver.crt")?;
        fs::write(self.file("sa.pub"), public).context("writing sa.pub")?;
        kubeconfig::write_secret(&self.file("apiserver.key"), &server.key)?;
        kubeconfig::write_secret(&self.file("sa.key"), &private)?;
        let mut users = format!("{},admin,admin,\"system:masters\"\n", self.token);
        for (name, user) in &self.others {
            users += &format!("{},{name},{name},\"{}\"\n", user.token, user.group);
            self.write_kubeconfig(&self.kubeconfig_of(name), &user.token)?;
        }
        kubeconfig::write_secret(&self.file("tokens.csv"), &users)?;
        if self.with_nodes {
            let client = authority.client("kube-apiserver", "system:masters")?;
            fs::write(self.file("kubelet-client.crt"), &client.certificate)
                .context("writing kubelet-client.crt")?;
            kubeconfig::write_secret(&self.file("kubelet-client.key"), &client.key)?;
        }
        self.write_kubeconfig(&self.kubeconfig(), &self.token)
    }

    fn write_kubeconfig(&self, path: &Path, token: &str) -> anyhow::Result<()> {
        let text = kubeconfig::text(&self.url(), Some(&self.authority()), Some(token));
        kubeconfig::write_secret(path, &text)
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
        format!("https://{}:{}", self.address, self.api_port)
    }

    /// Bearer token of an administrator.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Bearer token of somebody else.
    pub fn token_of(&self, user: &str) -> anyhow::Result<&str> {
        let user = self.others.get(user).with_context(|| format!("no user {user}"))?;
        Ok(&user.token)
    }

    /// Kubeconfig of somebody else.
    pub fn kubeconfig_of(&self, user: &str) -> PathBuf {
        self.file(&format!("kubeconfig-{}", user.replace(':', "-")))
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
            // What their nodes make of them is where these arguments are made.
            Program::Scheduler | Program::Kubelet | Program::KubeProxy | Program::CoreDns => Vec::new(),
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
        let mut arguments = vec![
            format!("--etcd-servers=http://{LOOPBACK}:{}", self.client_port),
            format!("--bind-address={}", self.address),
            format!("--advertise-address={}", self.address),
            format!("--secure-port={}", self.api_port),
            format!("--tls-cert-file={}", file("apiserver.crt")),
            format!("--tls-private-key-file={}", file("apiserver.key")),
            format!("--token-auth-file={}", file("tokens.csv")),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-signing-key-file={}", file("sa.key")),
            format!("--service-account-key-file={}", file("sa.pub")),
            format!("--service-cluster-ip-range={SERVICE_RANGE}"),
        ];
        if !self.with_nodes {
            arguments.extend([
                "--authorization-mode=RBAC".to_owned(),
                format!("--disable-admission-plugins={DISABLED_ADMISSION}"),
            ]);
            return arguments;
        }
        arguments.extend([
            "--authorization-mode=Node,RBAC".to_owned(),
            "--enable-admission-plugins=NodeRestriction".to_owned(),
            "--allow-privileged".to_owned(),
            "--kubelet-preferred-address-types=InternalIP".to_owned(),
            format!("--kubelet-client-certificate={}", file("kubelet-client.crt")),
            format!("--kubelet-client-key={}", file("kubelet-client.key")),
            // This machine has no rules of kube-proxy: webhooks are called at the addresses of their pods.
            "--enable-aggregator-routing".to_owned(),
        ]);
        arguments
    }

    fn controller_manager(&self) -> Vec<String> {
        let file = |name: &str| self.file(name).display().to_string();
        let controllers = match self.with_nodes {
            true => CONTROLLERS_WITH_NODES,
            false => CONTROLLERS,
        };
        vec![
            format!("--kubeconfig={}", file("kubeconfig")),
            "--leader-elect=false".to_owned(),
            format!("--controllers={controllers}"),
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
        let layout = Layout::create(directory.path(), None).unwrap();
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
