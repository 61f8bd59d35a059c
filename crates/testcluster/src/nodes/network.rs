//! Addresses of a cluster with real nodes, and the cable between them and this machine.
//!
//! ```text
//! this machine                 the cluster's own network namespace
//! kube-apiserver 10.N.255.1 ───cable─── 10.N.255.2
//!                                       node-1: bridge 10.N.1.1, pods 10.N.1.0/24
//!                                       node-2: bridge 10.N.2.1, pods 10.N.2.0/24
//! ```
//!
//! Bridges, addresses, forwarding and the rules of kube-proxy are in that namespace, so that they end with it and nothing
//! of them is ever seen by the machine, or by another cluster. The machine has one end of the cable and one route, which
//! the kernel takes away when the namespace ends. Nothing is reachable from elsewhere, and pods do not reach anything else.

use std::process::Command;

use anyhow::{Context as _, bail, ensure};

use super::room::Room;

/// Which N may be tried: the upper end of 10.0.0.0/8, where fewer local networks are.
const NUMBERS: std::ops::RangeInclusive<u8> = 200..=249;
/// Name of the cable's end in the namespace.
const UPLINK: &str = "uplink";

/// The network 10.N.0.0/16 of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    number: u8,
}

impl Network {
    /// Takes a range that is free and lays the cable to the namespace of a room.
    pub(super) fn lay(room: &Room) -> anyhow::Result<Network> {
        let used = ip(&["-4", "address"])? + &ip(&["-4", "route", "show", "table", "all"])?;
        let start = fastrand::usize(..NUMBERS.len());
        let numbers = NUMBERS.cycle_from(start);
        for network in numbers.map(|number| Network { number }) {
            if network.appears_in(&used) {
                continue;
            }
            // Whoever makes the link first has the range: other clusters may be starting at the same time.
            match network.link(room) {
                Err(error) if error.to_string().contains("File exists") => {}
                outcome => return outcome.map(|()| network),
            }
        }
        bail!("no network 10.N.0.0/16 is free with an N of {NUMBERS:?}")
    }

    fn appears_in(self, listing: &str) -> bool {
        let start = format!("10.{}.", self.number);
        listing
            .split(|c: char| !c.is_ascii_digit() && c != '.')
            .any(|word| word.starts_with(&start))
    }

    fn link(self, room: &Room) -> anyhow::Result<()> {
        let (name, host) = (self.cable(), format!("{}/30", self.host()));
        let id = room.id().to_string();
        ip(&[
            "link", "add", &name, "type", "veth", "peer", "name", UPLINK, "netns", &id,
        ])?;
        ip(&["address", "add", &host, "dev", &name])?;
        ip(&["link", "set", &name, "up"])?;
        let here = format!("{}/30", self.uplink());
        let host = self.host();
        for arguments in [
            vec!["address", "add", &here, "dev", UPLINK],
            vec!["link", "set", UPLINK, "up"],
            vec!["route", "add", "default", "via", &host],
        ] {
            room.run("ip", &arguments)?;
        }
        ip(&["route", "add", &self.range(), "via", &self.uplink()]).map(drop)
    }

    /// Makes the bridge of a node; before its first pod does, as other things listen on its address.
    pub(super) fn add_bridge(self, room: &Room, node: u8) -> anyhow::Result<()> {
        let (name, address) = (bridge(node), format!("{}/24", self.node(node)));
        for arguments in [
            ["link", "add", &name, "type", "bridge"].as_slice(),
            &["address", "add", &address, "dev", &name],
            &["link", "set", &name, "up"],
        ] {
            room.run("ip", arguments)?;
        }
        Ok(())
    }

    /// Name of the cable's end on this machine.
    pub fn cable(self) -> String {
        format!("volcano{}", self.number)
    }

    /// All its addresses.
    pub fn range(self) -> String {
        format!("10.{}.0.0/16", self.number)
    }

    /// Address of this machine, where the API server listens.
    pub fn host(self) -> String {
        format!("10.{}.255.1", self.number)
    }

    fn uplink(self) -> String {
        format!("10.{}.255.2", self.number)
    }

    /// Address of a node, counted from 1.
    pub fn node(self, node: u8) -> String {
        format!("10.{}.{node}.1", self.number)
    }

    /// Addresses of the pods of a node.
    pub fn pods(self, node: u8) -> String {
        format!("10.{}.{node}.0/24", self.number)
    }

    /// Where DNS listens.
    pub fn dns(self) -> String {
        self.node(1)
    }
}

/// Name of the bridge of a node.
pub fn bridge(node: u8) -> String {
    format!("node{node}")
}

/// Numbers in turn, from any of them on.
trait CycleFrom {
    fn cycle_from(self, start: usize) -> impl Iterator<Item = u8>;
}

impl CycleFrom for std::ops::RangeInclusive<u8> {
    fn cycle_from(self, start: usize) -> impl Iterator<Item = u8> {
        let all = self.len();
        self.cycle().skip(start).take(all)
    }
}

/// Runs `ip` on this machine.
fn ip(arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("ip")
        .args(arguments)
        .env("PATH", super::room::PATH)
        .output()
        .context("starting ip")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "ip {}: {}",
        arguments.join(" "),
        said.trim_end()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_used_when_an_address_or_a_route_is_in_it() {
        let listing = "inet 10.201.255.1/30 scope global\n10.21.0.0/16 via 192.168.1.1 dev eth0\n";
        let used = |number| Network { number }.appears_in(listing);
        assert!(used(201) && used(21));
        assert!(!used(20) && !used(200) && !used(168) && !used(255));
    }

    #[test]
    fn every_number_is_tried_once_from_anywhere() {
        let mut all: Vec<u8> = NUMBERS.cycle_from(17).collect();
        assert_eq!((all.len(), all[0]), (NUMBERS.len(), 217));
        all.sort_unstable();
        assert!(all.into_iter().eq(NUMBERS));
    }

    #[test]
    fn names_of_links_are_short_enough_for_the_kernel() {
        let longest = Network {
            number: *NUMBERS.end(),
        }
        .cable();
        assert!(longest.len() < 16 && bridge(u8::MAX).len() < 16);
    }
}
