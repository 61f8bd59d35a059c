//! A proxy in front of the API server that makes things go wrong, on purpose and repeatably.
//!
//! ```text
//! client ──http──> Schedule: pass, delay, refuse, cut, drop ──https, token──> API server
//! ```
//!
//! Plain HTTP without a token towards the client, so that it needs nothing but an address. Bodies are passed on as they
//! come, which watches need.

mod faults;
mod server;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use anyhow::{Context as _, anyhow};
use tokio::sync::oneshot;

pub use faults::{Delay, Faults, Rejections};

use crate::{Cluster, kubeconfig};
use server::Shared;

/// How often each thing happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests of any kind.
    pub requests: u64,
    /// Watches among them.
    pub watches: u64,
    /// Refused with 409.
    pub conflicts: u64,
    /// Refused with 429.
    pub too_many: u64,
    /// Refused with 500, without reaching the API server.
    pub internal: u64,
    /// Watches refused with 410.
    pub gone_status: u64,
    /// Watches that were told 410 in the stream.
    pub gone_events: u64,
    /// Watches that were cut.
    pub cuts: u64,
    /// Requests that had to wait.
    pub delays: u64,
    /// Writes that took effect without their client being told.
    pub drops: u64,
    /// Requests that died in an outage.
    pub outages: u64,
}

impl Counters {
    /// Faults of all kinds.
    pub fn faults(&self) -> u64 {
        self.conflicts
            + self.too_many
            + self.internal
            + self.gone_status
            + self.gone_events
            + self.cuts
            + self.delays
            + self.drops
            + self.outages
    }
}

/// A running proxy. Dropping it closes every connection.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    kubeconfig: PathBuf,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy in front of a cluster, without faults. It has a thread of its own, so that it serves the clients
    /// of any runtime.
    ///
    /// # Errors
    /// When there is no free port, or when the kubeconfig cannot be written.
    pub fn start(cluster: &Cluster) -> anyhow::Result<Proxy> {
        Proxy::in_front_of(cluster.client_config()?, cluster.data_directory())
    }

    fn in_front_of(server: kube::Config, directory: &Path) -> anyhow::Result<Proxy> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("listening")?;
        listener.set_nonblocking(true).context("listening")?;
        let address = listener.local_addr().context("listening")?;
        let kubeconfig = directory.join(format!("proxy-{}.kubeconfig", address.port()));
        kubeconfig::write_secret(
            &kubeconfig,
            &kubeconfig::text(&format!("http://{address}"), None, None),
        )?;
        let shared = Arc::new(Shared::default());
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = mpsc::channel();
        let serving = shared.clone();
        let thread = thread::Builder::new()
            .name("proxy".to_owned())
            .spawn(move || serve(listener, server, serving, stopped, &tell))
            .context("starting the proxy")?;
        let started = told.recv().unwrap_or_else(|_| Err(anyhow!("its thread ended")));
        started.context("starting the proxy")?;
        Ok(Proxy {
            address,
            kubeconfig,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Path of a kubeconfig with its address.
    pub fn kubeconfig_path(&self) -> &Path {
        &self.kubeconfig
    }

    /// A client that goes through it, of the runtime that this is called in. It does not repeat what fails.
    ///
    /// # Errors
    /// When it cannot be set up.
    pub fn client(&self) -> anyhow::Result<kube::Client> {
        let mut config = kube::Config::new(self.url().parse().context("address of the proxy")?);
        config.default_retry = false;
        kube::Client::try_from(config).context("setting up a client")
    }

    /// Makes these things go wrong from now on. The draw begins anew, also with the same seed.
    pub fn set_faults(&self, faults: Faults) {
        self.shared.set_faults(faults);
    }

    /// Lets everything through again.
    pub fn clear(&self) {
        self.set_faults(Faults::default());
    }

    /// How often each thing happened so far.
    pub fn counters(&self) -> Counters {
        self.shared.counters()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed when it happened.
            let _ = thread.join();
        }
    }
}

fn serve(
    listener: TcpListener,
    server: kube::Config,
    shared: Arc<Shared>,
    stopped: oneshot::Receiver<()>,
    tell: &mpsc::Sender<anyhow::Result<()>>,
) {
    let started = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting a runtime");
    let outcome = started.and_then(|runtime| {
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).context("listening")?;
            let client = kube::Client::try_from(server).context("setting up a client")?;
            // Nobody listens only if the starting thread is gone.
            let _ = tell.send(Ok(()));
            tokio::select! {
                () = server::accept(&listener, &client, &shared) => {}
                _ = stopped => {}
            }
            Ok(())
        })
    });
    if outcome.is_err() {
        let _ = tell.send(outcome);
    }
}

#[cfg(test)]
mod tests;
