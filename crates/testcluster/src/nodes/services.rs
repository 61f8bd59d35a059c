//! What makes Services work: kube-proxy for their addresses, CoreDNS for their names. One of each serves all nodes.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::kubelet::DOMAIN;
use super::network::Network;
use crate::components::Layout;
use crate::objects;

/// Who kube-proxy is; the API server's own rules say what that one may do.
pub const PROXY_USER: &str = "system:kube-proxy";
/// Who CoreDNS is.
pub const DNS_USER: &str = "volcano-test:coredns";
/// Where CoreDNS says that it has seen all Services.
const READY_PORT: u16 = 8181;

/// Writes the configuration of kube-proxy into the directory; returns its arguments.
pub fn prepare_proxy(directory: &Path, layout: &Layout, network: Network) -> anyhow::Result<Vec<String>> {
    let config = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clientConnection": {"kubeconfig": layout.kubeconfig_of(PROXY_USER)},
        "hostnameOverride": super::name(1),
        "clusterCIDR": network.range(),
        "healthzBindAddress": format!("{}:10256", network.dns()),
        "metricsBindAddress": "127.0.0.1:10249",
        // Limits of the machine, which a namespace may not change.
        "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        // The answer of a pod on the same bridge would otherwise go straight to the asking pod, which asked another.
        "iptables": {"masqueradeAll": true, "minSyncPeriod": "0s"},
        "oomScoreAdj": 0,
    });
    let path = directory.join("kube-proxy.json");
    fs::write(&path, format!("{config:#}\n")).context("writing kube-proxy.json")?;
    Ok(vec![format!("--config={}", path.display())])
}

/// Writes the configuration of CoreDNS into the directory; returns its arguments.
pub fn prepare_dns(directory: &Path, layout: &Layout, network: Network) -> anyhow::Result<Vec<String>> {
    let address = network.dns();
    // No time to live: pods come and go, and tests do not wait for an old answer to be forgotten.
    let text = format!(
        "{DOMAIN} in-addr.arpa {{
    bind {address}
    errors
    ready {address}:{READY_PORT}
    kubernetes {{
        kubeconfig {kubeconfig}
        pods insecure
        ttl 0
    }}
}}
. {{
    bind {address}
    errors
    template ANY ANY . {{
        rcode NXDOMAIN
    }}
}}
",
        kubeconfig = layout.kubeconfig_of(DNS_USER).display()
    );
    let path = directory.join("Corefile");
    fs::write(&path, text).context("writing the Corefile")?;
    Ok(vec!["-conf".to_owned(), path.display().to_string()])
}

/// Lets CoreDNS see what it answers with.
pub async fn allow_dns(client: &kube::Client) -> anyhow::Result<()> {
    let name = json!({"name": DNS_USER});
    let role = json!({
        "metadata": name,
        "rules": [
            {"apiGroups": [""], "resources": ["services", "pods", "namespaces", "endpoints"], "verbs": ["list", "watch"]},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
        ],
    });
    let binding = json!({
        "metadata": name,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": DNS_USER},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": DNS_USER}],
    });
    let kinds: [(&str, &Value); 2] = [("clusterroles", &role), ("clusterrolebindings", &binding)];
    for (plural, object) in kinds {
        let path = objects::path("rbac.authorization.k8s.io/v1", "", plural, "");
        objects::create(client, &path, object).await?;
    }
    Ok(())
}

/// Whether CoreDNS has seen all Services.
pub fn dns_is_ready(network: Network) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect((network.dns(), READY_PORT))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        write!(stream, "GET /ready HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.contains(" 200 "))
}
