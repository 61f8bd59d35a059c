//! Names of pods and Services: there is no DNS server, each pod has an /etc/hosts that is kept up to date.

use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Pods come and go in gangs: files are written once for many changes that come together.
const GATHER: Duration = Duration::from_millis(5);
/// The end of all names in the cluster.
const DOMAIN: &str = "svc.cluster.local";
/// The kernel takes no longer one.
const LONGEST_HOSTNAME: usize = 64;

/// A pod of this node, as names are made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub namespace: String,
    pub hostname: String,
    pub subdomain: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub address: String,
    /// It has the host's network, so the names of the host count for it too.
    pub on_host: bool,
    /// Addresses with the names that the pod itself gives them.
    pub aliases: Vec<(String, Vec<String>)>,
}

impl Named {
    pub fn of(pod: &Pod, address: String, on_host: bool) -> Named {
        let spec = pod.spec.as_ref();
        let aliases = spec.iter().flat_map(|spec| spec.host_aliases.iter().flatten());
        let aliases = aliases.map(|alias| (alias.ip.clone(), alias.hostnames.clone().unwrap_or_default()));
        Named {
            namespace: pod.metadata.namespace.clone().unwrap_or_default(),
            hostname: hostname(pod),
            subdomain: spec.and_then(|spec| spec.subdomain.clone()),
            labels: pod.metadata.labels.clone().unwrap_or_default(),
            address,
            on_host,
            aliases: aliases.collect(),
        }
    }
}

/// The host name that a pod itself sees: with `setHostnameAsFQDN` the long one, if there is one.
pub(crate) fn seen_hostname(pod: &Pod) -> Result<String, String> {
    let short = hostname(pod);
    let spec = pod.spec.as_ref();
    let subdomain = spec.and_then(|spec| spec.subdomain.as_deref().filter(|name| !name.is_empty()));
    let (Some(subdomain), Some(true)) = (subdomain, spec.and_then(|spec| spec.set_hostname_as_fqdn)) else {
        return Ok(short);
    };
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let long = format!("{short}.{subdomain}.{namespace}.{DOMAIN}");
    match long.len() {
        ..=LONGEST_HOSTNAME => Ok(long),
        length => Err(format!(
            "Failed to construct FQDN from pod hostname and cluster domain, FQDN {long} is too long ({LONGEST_HOSTNAME} \
             characters is the max, {length} characters requested)"
        )),
    }
}

/// The host name of a pod: what its spec says, or its name as far as that may be one.
pub(crate) fn hostname(pod: &Pod) -> String {
    let wanted = pod.spec.as_ref().and_then(|spec| spec.hostname.clone());
    let name = wanted.filter(|name| !name.is_empty());
    let name = name.or_else(|| pod.metadata.name.clone()).unwrap_or_default();
    let end = name.len().min(63);
    name[..end].trim_end_matches(['-', '.']).to_owned()
}

/// An address, and the host name that goes with it.
type Addressed = (String, Option<String>);

#[derive(Default)]
struct Known {
    pods: BTreeMap<String, (Named, PathBuf, String)>,
    services: BTreeMap<(String, String), ServiceNames>,
    /// By namespace and name of the Service.
    endpoints: BTreeMap<(String, String), Vec<Addressed>>,
}

struct ServiceNames {
    selector: BTreeMap<String, String>,
    /// Pods are named before they are ready.
    early: bool,
}

/// All names that are known, and the files that show them.
#[derive(Default)]
pub(crate) struct Names {
    known: Mutex<Known>,
    changed: Notify,
}

impl Names {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a pod in and writes its file.
    pub fn add(&self, uid: &str, pod: Named, file: &Path, host: &str) -> io::Result<()> {
        let mut known = self.lock();
        let host = if pod.on_host {
            host.to_owned()
        } else {
            String::new()
        };
        let entry = (pod, file.to_owned(), host);
        known.pods.insert(uid.to_owned(), entry);
        let text = known.pods.get(uid).map(|(pod, _, host)| hosts(pod, host, &known));
        std::fs::write(file, text.unwrap_or_default())?;
        self.changed.notify_one();
        Ok(())
    }

    pub fn remove(&self, uid: &str) {
        if self.lock().pods.remove(uid).is_some() {
            self.changed.notify_one();
        }
    }

    pub fn set_services(&self, services: &HashMap<String, Arc<Service>>) {
        let services = services.values().filter_map(|service| {
            let spec = service.spec.as_ref()?;
            let key = (
                service.metadata.namespace.clone()?,
                service.metadata.name.clone()?,
            );
            let names = ServiceNames {
                selector: spec.selector.clone().unwrap_or_default(),
                early: spec.publish_not_ready_addresses.unwrap_or_default(),
            };
            Some((key, names))
        });
        self.lock().services = services.collect();
        self.changed.notify_one();
    }

    pub fn set_endpoints(&self, endpoints: &HashMap<String, Arc<Endpoints>>) {
        let endpoints = endpoints.values().filter_map(|one| {
            let key = (one.metadata.namespace.clone()?, one.metadata.name.clone()?);
            let subsets = one.subsets.iter().flatten();
            let addresses = subsets.flat_map(|subset| subset.addresses.iter().flatten());
            let addresses = addresses.map(|address| (address.ip.clone(), address.hostname.clone()));
            Some((key, addresses.collect()))
        });
        self.lock().endpoints = endpoints.collect();
        self.changed.notify_one();
    }

    /// Keeps the files up to date for as long as it is polled.
    pub async fn keep(&self) {
        let mut written: HashMap<PathBuf, String> = HashMap::new();
        loop {
            self.changed.notified().await;
            tokio::time::sleep(GATHER).await;
            let wanted: HashMap<PathBuf, String> = {
                let known = self.lock();
                let pods = known.pods.values();
                pods.map(|(pod, file, host)| (file.clone(), hosts(pod, host, &known)))
                    .collect()
            };
            for (file, text) in &wanted {
                if written.get(file) != Some(text)
                    && let Err(error) = overwrite(file, text)
                {
                    tracing::debug!(file = %file.display(), %error, "hosts file not written");
                }
            }
            written = wanted;
        }
    }
}

/// The file stays the same one, since containers have it mounted; one write, so that readers see old or new lines.
fn overwrite(file: &Path, text: &str) -> io::Result<()> {
    let mut file = std::fs::OpenOptions::new().write(true).open(file)?;
    file.write_all(text.as_bytes())?;
    file.set_len(u64::try_from(text.len()).unwrap_or(u64::MAX))
}

/// The text of a pod's hosts file.
fn hosts(pod: &Named, host: &str, known: &Known) -> String {
    let mut text = String::from(
        "# Kept up to date by the node.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n",
    );
    let own = match &pod.subdomain {
        Some(subdomain) => {
            let Named {
                hostname, namespace, ..
            } = pod;
            format!("{hostname}.{subdomain}.{namespace}.{DOMAIN}\t{hostname}")
        }
        None => pod.hostname.clone(),
    };
    let _ = writeln!(text, "{}\t{own}", pod.address);
    for ((namespace, name), addresses) in names(known) {
        let is_near = namespace == pod.namespace;
        for address in addresses {
            let _ = write!(
                text,
                "{address}\t{name}.{namespace}.{DOMAIN} {name}.{namespace}.svc {name}.{namespace}"
            );
            text.push_str(&if is_near {
                format!(" {name}\n")
            } else {
                "\n".to_owned()
            });
        }
    }
    text.push_str(host);
    if !pod.aliases.is_empty() {
        text.push_str("# Entries added by HostAliases.\n");
    }
    for (address, names) in &pod.aliases {
        let _ = writeln!(text, "{address}\t{}", names.join("\t"));
    }
    text
}

/// The names that Services give, with their addresses.
fn names(known: &Known) -> BTreeMap<(String, String), BTreeSet<String>> {
    let mut found: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    let mut add = |namespace: &str, service: &str, hostname: Option<&str>, address: &str| {
        let mut names = vec![service.to_owned()];
        names.extend(hostname.map(|hostname| format!("{hostname}.{service}")));
        for name in names {
            let addresses = found.entry((namespace.to_owned(), name)).or_default();
            addresses.insert(address.to_owned());
        }
    };
    for ((namespace, service), addresses) in &known.endpoints {
        for (address, hostname) in addresses {
            add(namespace, service, hostname.as_deref(), address);
        }
    }
    // Endpoints come after the address is reported; the pods of this node are known before they start.
    for (pod, _, _) in known.pods.values() {
        let Some(subdomain) = &pod.subdomain else { continue };
        let service = known.services.get(&(pod.namespace.clone(), subdomain.clone()));
        let selects = service.is_some_and(|service| {
            let mut labels = service.selector.iter();
            service.early && labels.all(|(key, value)| pod.labels.get(key) == Some(value))
        });
        if selects {
            add(&pod.namespace, subdomain, Some(&pod.hostname), &pod.address);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(namespace: &str, hostname: &str, subdomain: Option<&str>, address: &str) -> Named {
        Named {
            namespace: namespace.to_owned(),
            hostname: hostname.to_owned(),
            subdomain: subdomain.map(str::to_owned),
            labels: BTreeMap::from([("job".to_owned(), "mpi".to_owned())]),
            address: address.to_owned(),
            on_host: false,
            aliases: Vec::new(),
        }
    }

    fn known(early: bool) -> Known {
        let mut known = Known::default();
        let selector = BTreeMap::from([("job".to_owned(), "mpi".to_owned())]);
        let key = ("ns".to_owned(), "mpi".to_owned());
        known.services.insert(key, ServiceNames { selector, early });
        for (name, address) in [("mpi-worker-0", "10.0.0.2"), ("mpi-worker-1", "10.0.0.3")] {
            let one = pod("ns", name, Some("mpi"), address);
            known
                .pods
                .insert(name.to_owned(), (one, PathBuf::new(), String::new()));
        }
        known
    }

    #[test]
    fn pods_of_an_early_service_are_named_before_they_report() {
        let known = known(true);
        let text = hosts(&pod("ns", "me", None, "10.0.0.9"), "", &known);
        assert!(text.contains("10.0.0.9\tme\n"), "{text}");
        let line = "10.0.0.3\tmpi-worker-1.mpi.ns.svc.cluster.local mpi-worker-1.mpi.ns.svc mpi-worker-1.mpi.ns mpi-worker-1.mpi\n";
        assert!(text.contains(line), "{text}");
        assert_eq!(text.matches("\tmpi.ns.svc.cluster.local").count(), 2, "{text}");
    }

    #[test]
    fn short_names_are_for_the_same_namespace_only() {
        let text = hosts(&pod("other", "me", None, "10.0.0.9"), "", &known(true));
        assert!(text.contains(" mpi-worker-1.mpi.ns\n"), "{text}");
    }

    #[test]
    fn other_services_name_what_their_endpoints_say() {
        let mut known = known(false);
        let me = pod("ns", "me", Some("mpi"), "10.0.0.9");
        assert!(!hosts(&me, "", &known).contains("mpi-worker-0"));
        let key = ("ns".to_owned(), "mpi".to_owned());
        known.endpoints.insert(
            key,
            vec![("10.0.0.2".to_owned(), Some("mpi-worker-0".to_owned()))],
        );
        let text = hosts(&me, "1.2.3.4 gateway\n", &known);
        assert!(
            text.contains("10.0.0.2\tmpi-worker-0.mpi.ns.svc.cluster.local"),
            "{text}"
        );
        assert!(
            text.contains("10.0.0.9\tme.mpi.ns.svc.cluster.local\tme\n"),
            "{text}"
        );
        assert!(text.ends_with("1.2.3.4 gateway\n"));
    }

    #[test]
    fn names_that_a_pod_gives_itself_come_last() {
        let pod: Pod = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "p", "namespace": "ns"},
            "spec": {"containers": [], "hostAliases": [
                {"ip": "10.1.1.1", "hostnames": ["db", "db.example.com"]},
                {"ip": "10.1.1.2", "hostnames": ["cache"]},
            ]},
        }))
        .unwrap();
        let text = hosts(
            &Named::of(&pod, "10.0.0.9".to_owned(), false),
            "1.2.3.4 gateway\n",
            &Known::default(),
        );
        let end = "1.2.3.4 gateway\n# Entries added by HostAliases.\n10.1.1.1\tdb\tdb.example.com\n10.1.1.2\tcache\n";
        assert!(text.ends_with(end), "{text}");
    }

    #[test]
    fn a_pod_may_see_its_long_name() {
        let seen = |name: &str, subdomain: &str, long: bool| {
            let pod: Pod = serde_json::from_value(serde_json::json!({
                "metadata": {"name": name, "namespace": "ns"},
                "spec": {"containers": [], "subdomain": subdomain, "setHostnameAsFQDN": long},
            }))
            .unwrap();
            seen_hostname(&pod)
        };
        assert_eq!(seen("p", "sub", false).unwrap(), "p");
        assert_eq!(seen("p", "", true).unwrap(), "p");
        assert_eq!(seen("p", "sub", true).unwrap(), "p.sub.ns.svc.cluster.local");
        let problem = seen(&"p".repeat(60), "sub", true).unwrap_err();
        assert!(
            problem.contains("64 characters is the max, 85 characters"),
            "{problem}"
        );
    }

    #[test]
    fn a_long_name_is_cut_to_a_host_name() {
        let mut pod = Pod::default();
        pod.metadata.name = Some(format!("{}-{}", "a".repeat(62), "b".repeat(9)));
        assert_eq!(hostname(&pod), "a".repeat(62));
        pod.spec = Some(k8s_openapi::api::core::v1::PodSpec {
            hostname: Some("own".to_owned()),
            ..Default::default()
        });
        assert_eq!(hostname(&pod), "own");
    }
}
