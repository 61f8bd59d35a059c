//! Networks of pods: each has a network namespace with an address of its own, and all are on one bridge.
//!
//! ```text
//! host ── vc-1a2b (10.244.0.1) ──┐
//! pod ─── eth0 (10.244.0.2) ─────┤ bridge, in a namespace of its own
//! pod ─── eth0 (10.244.0.3) ─────┘
//! ```
//!
//! The bridge is in a namespace that only this process holds. So packets between pods never meet the rules of the host's
//! firewall, and the kernel takes everything down when the process is gone, however it went. Nothing of the host's own
//! settings is changed; so packets of pods go to other pods and to the host, and no further unless the host forwards.

use nix::sched::{CloneFlags, unshare};
use rtnetlink::packet_route::link::{InfoData, InfoVeth, LinkMessage};
use rtnetlink::{Handle, LinkBridge, LinkMessageBuilder, LinkUnspec, LinkVeth, RouteMessageBuilder};
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, RawFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;

/// Pods of a node have addresses of a range of this size.
const PREFIX: u8 = 16;
/// Number of the bridge in its namespace, and of a pod's link in its own: chosen, so that nobody has to ask.
const BRIDGE: u32 = 1000;
const LINK: u32 = 1000;
const LOOPBACK: u32 = 1;

/// Why there is no network.
#[derive(Debug, Error)]
pub(crate) enum NetworkError {
    #[error("namespace: {0}")]
    Namespace(#[from] io::Error),
    #[error("{what}: {source}")]
    Link {
        what: &'static str,
        source: rtnetlink::Error,
    },
    #[error("no private range of addresses is free")]
    NoRange,
    #[error("all addresses of the range are taken")]
    NoAddress,
}

fn named(what: &'static str) -> impl FnOnce(rtnetlink::Error) -> NetworkError {
    move |source| NetworkError::Link { what, source }
}

/// The bridge that all pods of a node are on.
pub(crate) struct Switch {
    links: Handle,
    /// Keeps the namespace of the bridge.
    _namespace: File,
    host: Handle,
    host_link: u32,
    ports: AtomicU32,
    addresses: Mutex<Addresses>,
}

/// The network of a pod; dropping it gives the address back.
pub(crate) struct PodNetwork {
    namespace: File,
    pub address: Ipv4Addr,
    switch: Arc<Switch>,
}

impl PodNetwork {
    /// Where other processes find the namespace.
    pub fn path(&self) -> PathBuf {
        let (process, file) = (std::process::id(), self.namespace.as_raw_fd());
        PathBuf::from(format!("/proc/{process}/fd/{file}"))
    }
}

impl Drop for PodNetwork {
    fn drop(&mut self) {
        self.switch.lock().give_back(self.address);
    }
}

impl Switch {
    /// Makes the bridge, and connects the host to it.
    pub async fn start() -> Result<Switch, NetworkError> {
        let routes = std::fs::read_to_string("/proc/net/route")?;
        let range = free_range(&taken_ranges(&routes)).ok_or(NetworkError::NoRange)?;
        let mut addresses = Addresses::new(range);
        let gateway = addresses.take().ok_or(NetworkError::NoAddress)?;
        let (namespace, links) = new_namespace().await?;
        let (connection, host, _) = rtnetlink::new_connection()?;
        tokio::spawn(connection);
        let bridge = LinkBridge::new("pods").index(BRIDGE).up().build();
        links
            .link()
            .add(bridge)
            .execute()
            .await
            .map_err(named("bridge"))?;
        let name = format!("vc-{:06x}", fastrand::u32(..1 << 24));
        let here = File::open("/proc/thread-self/ns/net")?;
        let cable = cable(0, LinkUnspec::new_with_name(&name), &here);
        links
            .link()
            .add(cable)
            .execute()
            .await
            .map_err(named("link to the host"))?;
        let host_link = number_of(&host, &name).await?;
        host.address()
            .add(host_link, gateway.into(), PREFIX)
            .execute()
            .await
            .map_err(named("address of the host"))?;
        set_up(&host, host_link).await?;
        Ok(Switch {
            links,
            _namespace: namespace,
            host,
            host_link,
            ports: AtomicU32::new(1),
            addresses: Mutex::new(addresses),
        })
    }

    /// A network for one more pod.
    pub async fn connect(self: &Arc<Self>) -> Result<PodNetwork, NetworkError> {
        let (namespace, links) = new_namespace().await?;
        let address = self.lock().take().ok_or(NetworkError::NoAddress)?;
        // From here on the address is given back when this fails.
        let network = PodNetwork {
            namespace,
            address,
            switch: self.clone(),
        };
        let port = self.ports.fetch_add(1, Ordering::Relaxed);
        let end = LinkUnspec::new_with_name("eth0").index(LINK);
        let cable = cable(port, end, &network.namespace);
        self.links
            .link()
            .add(cable)
            .execute()
            .await
            .map_err(named("link of the pod"))?;
        set_up(&links, LOOPBACK).await?;
        set_up(&links, LINK).await?;
        links
            .address()
            .add(LINK, address.into(), PREFIX)
            .execute()
            .await
            .map_err(named("address of the pod"))?;
        let gateway = self.lock().range.first();
        let route = RouteMessageBuilder::<Ipv4Addr>::new().gateway(gateway).build();
        links
            .route()
            .add(route)
            .execute()
            .await
            .map_err(named("route of the pod"))?;
        Ok(network)
    }

    /// The host's address on the bridge.
    pub fn gateway(&self) -> Ipv4Addr {
        self.lock().range.first()
    }

    /// Takes the host's link away, without waiting for the kernel to find that nobody needs it.
    pub async fn stop(&self) {
        let _ = self.host.link().del(self.host_link).execute().await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Addresses> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A link with one end on the bridge and the other in a namespace.
fn cable(port: u32, end: LinkMessageBuilder<LinkUnspec>, namespace: &File) -> LinkMessage {
    let number: RawFd = namespace.as_raw_fd();
    // The far end is set up later: it has no other end yet when the kernel makes it.
    let end = end.setns_by_fd(number).build();
    // The kernel takes the number of the far end only if the near end has one too.
    LinkVeth::new(&format!("p{port}"), "unused")
        .index(BRIDGE + 1 + port)
        .set_info_data(InfoData::Veth(InfoVeth::Peer(end)))
        .controller(BRIDGE)
        .up()
        .build()
}

async fn set_up(links: &Handle, number: u32) -> Result<(), NetworkError> {
    let up = LinkUnspec::new_with_index(number).up().build();
    links.link().set(up).execute().await.map_err(named("link"))
}

async fn number_of(links: &Handle, name: &str) -> Result<u32, NetworkError> {
    use futures::TryStreamExt;
    let mut found = links.link().get().match_name(name.to_owned()).execute();
    let link = found.try_next().await.map_err(named("link to the host"))?;
    link.map(|link| link.header.index)
        .ok_or_else(|| io::Error::other("the link to the host is not there").into())
}

/// A new network namespace, and a connection to the kernel within. A thread of its own enters it and ends.
async fn new_namespace() -> Result<(File, Handle), NetworkError> {
    let runtime = tokio::runtime::Handle::current();
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let enter = move || -> io::Result<(File, Handle)> {
        unshare(CloneFlags::CLONE_NEWNET)?;
        let namespace = File::open("/proc/thread-self/ns/net")?;
        let _guard = runtime.enter();
        let (connection, links, _) = rtnetlink::new_connection()?;
        tokio::spawn(connection);
        Ok((namespace, links))
    };
    std::thread::Builder::new()
        .name("network-namespace".to_owned())
        .spawn(move || sender.send(enter()))?;
    let entered = receiver.await.map_err(io::Error::other)?;
    Ok(entered?)
}

/// The first two bytes of the addresses of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range([u8; 2]);

impl Range {
    fn address(self, number: u16) -> Ipv4Addr {
        let [third, fourth] = number.to_be_bytes();
        Ipv4Addr::new(self.0[0], self.0[1], third, fourth)
    }

    fn first(self) -> Ipv4Addr {
        self.address(1)
    }
}

/// Which addresses are in use. One that was given back is not given out again soon: connections to it may linger.
struct Addresses {
    range: Range,
    next: u16,
    taken: HashSet<Ipv4Addr>,
}

impl Addresses {
    fn new(range: Range) -> Self {
        Addresses {
            range,
            next: 1,
            taken: HashSet::new(),
        }
    }

    fn take(&mut self) -> Option<Ipv4Addr> {
        for _ in 0..u16::MAX {
            let number = self.next;
            // 0 names the range, the last number all of its addresses.
            self.next = if number >= u16::MAX - 1 { 1 } else { number + 1 };
            let address = self.range.address(number);
            if self.taken.insert(address) {
                return Some(address);
            }
        }
        None
    }

    fn give_back(&mut self, address: Ipv4Addr) {
        self.taken.remove(&address);
    }
}

/// A range that no route of the host leads into.
fn free_range(taken: &[(u32, u32)]) -> Option<Range> {
    let candidates = (200..=250).rev().map(|second| Range([10, second]));
    let candidates = candidates.chain((16..=31).rev().map(|second| Range([172, second])));
    candidates.into_iter().find(|range| {
        let base = u32::from(range.address(0));
        let mask = u32::MAX << (32 - PREFIX);
        !taken
            .iter()
            .any(|(to, of)| (base & of & mask) == (to & of & mask))
    })
}

/// Destinations and masks of the host's routes; the default route leads everywhere and takes nothing.
fn taken_ranges(routes: &str) -> Vec<(u32, u32)> {
    let lines = routes.lines().skip(1);
    lines
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let number = |at: usize| u32::from_str_radix(words.get(at)?, 16).ok().map(u32::from_be);
            Some((number(1)?, number(7)?))
        })
        .filter(|(_, mask)| *mask != 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n";

    #[test]
    fn a_range_is_free_when_no_route_leads_into_it() {
        // 10.250.0.0/16, 10.249.8.0/24, and a default route.
        let routes = format!(
            "{HEAD}eth0\t00000000\t010200C0\t3\t0\t0\t0\t00000000\t0\t0\t0\n\
             vc\t0000FA0A\t0\t1\t0\t0\t0\t0000FFFF\t0\t0\t0\n\
             br\t0008F90A\t0\t1\t0\t0\t0\t00FFFFFF\t0\t0\t0\n"
        );
        let taken = taken_ranges(&routes);
        assert_eq!(taken.len(), 2);
        assert_eq!(free_range(&taken), Some(Range([10, 248])));
        assert_eq!(free_range(&[]), Some(Range([10, 250])));
    }

    #[test]
    fn a_route_to_all_of_ten_leaves_the_other_private_range() {
        let taken = [(u32::from(Ipv4Addr::new(10, 0, 0, 0)), 0xff00_0000)];
        assert_eq!(free_range(&taken), Some(Range([172, 31])));
    }

    #[test]
    fn an_address_is_given_out_once_and_again_when_all_others_were() {
        let mut addresses = Addresses::new(Range([10, 9]));
        assert_eq!(addresses.take(), Some(Ipv4Addr::new(10, 9, 0, 1)));
        let second = addresses.take().unwrap();
        addresses.give_back(second);
        assert_eq!(addresses.take(), Some(Ipv4Addr::new(10, 9, 0, 3)));
        let rest: Vec<_> = std::iter::from_fn(|| addresses.take()).collect();
        assert_eq!(rest.len(), usize::from(u16::MAX) - 1 - 2);
        assert_eq!(rest.last(), Some(&second));
    }
}
