//! The plane: a server with its chores, its clients and, if wished, an address.

use crate::admission::WebhookHandler;
use crate::chores;
use crate::fault::Fault;
use crate::http;
use crate::logs::LogSource;
use crate::resources::Nature;
use crate::secure;
use crate::server::{Clock, FileError, Server};
use crate::store::{Range, TableId};
use crate::verbs::{Call, Caller};
use bytes::Bytes;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, Weak};
use thiserror::Error;

/// Namespaces that every cluster has.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// How a plane is started.
#[derive(Clone, Default)]
pub struct Options {
    /// Where state is kept; in memory only without.
    pub data_file: Option<PathBuf>,
    /// The time, if it is not that of the machine.
    pub clock: Option<Clock>,
    /// Makes names and UIDs the same every time, for tests.
    pub seed: Option<u64>,
    /// Definitions of resources that are there from the start.
    pub crds: Vec<Value>,
}

/// Why a plane does not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The data file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// Something that has to be there from the start was refused.
    #[error("{what}: {problem}")]
    Refused {
        /// What.
        what: String,
        /// Why.
        problem: String,
    },
    /// It cannot be reached.
    #[error("serving on the loopback address: {0}")]
    Serve(String),
}

/// A running API server. Dropping it ends all watches.
pub struct Plane {
    server: Arc<Server>,
}

impl Plane {
    /// Starts a plane in the runtime that this is called in.
    ///
    /// # Errors
    /// When the data file cannot be used, or when a CRD is wrong.
    pub async fn start(options: Options) -> Result<Plane, StartError> {
        let clock = options.clock.unwrap_or_else(|| Arc::new(machine_time));
        let (server, to_do) = Server::new(clock, options.seed, options.data_file.as_deref())?;
        tokio::spawn(chores::run(server.clone(), to_do));
        let plane = Plane { server };
        let namespaces = plane.server.registry().of_nature(Nature::Namespace).clone();
        for name in NAMESPACES {
            plane
                .ensure(&namespaces, json!({"metadata": {"name": name}}))
                .await?;
        }
        let definitions = plane.server.registry().of_nature(Nature::Definition).clone();
        for crd in options.crds {
            plane.ensure_definition(&definitions, crd).await?;
        }
        Ok(plane)
    }

    /// Creates something that has to be there.
    async fn ensure(
        &self,
        resource: &Arc<crate::resources::Resource>,
        object: Value,
    ) -> Result<(), StartError> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if self.server.get(resource.table, &name).is_some() {
            return Ok(());
        }
        let caller = administrator();
        let call = Call::own(resource, "", &name, &caller);
        match self.server.create(&call, object).await {
            Ok(_) => Ok(()),
            Err(fault) if fault.reason == "AlreadyExists" => Ok(()),
            Err(fault) => Err(refused(resource, &name, fault)),
        }
    }

    /// Creates a definition. One that a data file has from another version of the program gets this one's spec.
    async fn ensure_definition(
        &self,
        resource: &Arc<crate::resources::Resource>,
        crd: Value,
    ) -> Result<(), StartError> {
        let name = crd["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let Some(known) = self.server.get(resource.table, &name) else {
            return self.ensure(resource, crd).await;
        };
        let mut wanted = known.value();
        wanted["spec"] = crd["spec"].clone();
        let caller = administrator();
        let call = Call::own(resource, "", &name, &caller);
        // Nothing is written if nothing differs.
        let updated = self.server.update(&call, wanted).await;
        updated.map(drop).map_err(|fault| refused(resource, &name, fault))
    }

    /// A client of an administrator, without a socket.
    pub fn client(&self) -> kube::Client {
        self.client_as(&administrator().user)
    }

    /// The same under another name, which webhooks see. It may do as much.
    pub fn client_as(&self, user: &str) -> kube::Client {
        let caller = Arc::new(Caller {
            user: user.to_owned(),
            groups: administrator().groups,
        });
        let server = self.server.clone();
        let service = tower::service_fn(move |request: ::http::Request<kube::client::Body>| {
            let (server, caller) = (server.clone(), caller.clone());
            async move { Ok::<_, Infallible>(http::handle(&server, &caller, request).await) }
        });
        kube::Client::new(service, "default")
    }

    /// Listens on a free port of the loopback address, over TLS and for those with the token of the kubeconfig that is
    /// written to the path (mode 0600). The address.
    ///
    /// # Errors
    /// When the kubeconfig cannot be written, or when no port is free.
    pub async fn serve(&self, kubeconfig: &Path) -> Result<SocketAddr, StartError> {
        secure::serve(&self.server, administrator(), kubeconfig)
            .await
            .map_err(StartError::Serve)
    }

    /// Answers reviews for the webhooks of a Service in this process.
    pub fn serve_webhooks(&self, namespace: &str, service: &str, handler: Arc<dyn WebhookHandler>) {
        let mut handlers = self
            .server
            .hooks
            .reach
            .in_process
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        handlers.insert((namespace.to_owned(), service.to_owned()), handler);
    }

    /// Reads what is stored, without a request. It does not keep the plane.
    pub fn reader(&self) -> Reader {
        Reader {
            server: Arc::downgrade(&self.server),
        }
    }

    /// Where logs of pods come from.
    pub fn set_logs(&self, source: Arc<dyn LogSource>) {
        *self.server.logs.write().unwrap_or_else(PoisonError::into_inner) = Some(source);
    }

    /// Ends when the data file can no longer be written, with the reason: from then on no write is acknowledged, so
    /// whoever runs a system on this plane should end it. Without a data file it never ends. It does not keep the plane.
    pub fn failed(&self) -> impl Future<Output = String> + Send + use<> {
        self.server.failed()
    }

    /// The last revision.
    pub fn revision(&self) -> u64 {
        self.server.revision()
    }
}

/// Reads what is stored now, for those who must not wait: handlers of webhooks.
#[derive(Clone)]
pub struct Reader {
    server: Weak<Server>,
}

impl Reader {
    /// The JSON of an object; the namespace is empty for cluster-scoped kinds. `None` if it, or its kind, is not there.
    pub fn get(&self, group: &str, plural: &str, namespace: &str, name: &str) -> Option<Bytes> {
        let server = self.server.upgrade()?;
        let table = table(&server, group, plural)?;
        let key = match namespace {
            "" => name.to_owned(),
            namespace => format!("{namespace}/{name}"),
        };
        server.get(table, &key).map(|object| object.bytes.clone())
    }

    /// The JSON of all objects of a kind, by namespace and name.
    pub fn all(&self, group: &str, plural: &str) -> Vec<Bytes> {
        let Some(server) = self.server.upgrade() else {
            return Vec::new();
        };
        let page = table(&server, group, plural)
            .and_then(|table| server.list(table, Range::default(), |_| true).ok());
        let items = page.map(|page| page.items).unwrap_or_default();
        items.iter().map(|object| object.bytes.clone()).collect()
    }
}

fn table(server: &Server, group: &str, plural: &str) -> Option<TableId> {
    let registry = server.registry();
    let mut all = registry.all().iter();
    all.find(|known| known.group == group && known.plural == plural)
        .map(|known| known.table)
}

impl Drop for Plane {
    fn drop(&mut self) {
        self.server.stopping.send_replace(true);
    }
}

fn refused(resource: &crate::resources::Resource, name: &str, fault: Fault) -> StartError {
    StartError::Refused {
        what: format!("{} {name}", resource.kind),
        problem: fault.message,
    }
}

fn machine_time() -> jiff::Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let nanoseconds = since.map_or(0, |since| since.as_nanos());
    jiff::Timestamp::from_nanosecond(i128::try_from(nanoseconds).unwrap_or_default()).unwrap_or_default()
}

fn administrator() -> Caller {
    Caller {
        user: "admin".to_owned(),
        groups: vec!["system:masters".to_owned(), "system:authenticated".to_owned()],
    }
}
