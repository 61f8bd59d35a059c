//! What this machine has.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::path::Path;

/// Processors, memory and disk, as a node reports them.
pub(crate) fn capacity(directory: &Path, pods: u32) -> BTreeMap<String, Quantity> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let mut capacity = BTreeMap::from([
        ("cpu".to_owned(), Quantity(processors.to_string())),
        ("pods".to_owned(), Quantity(pods.to_string())),
    ]);
    if let Some(bytes) = memory() {
        capacity.insert("memory".to_owned(), Quantity(format!("{}Ki", bytes / 1024)));
    }
    if let Ok(disk) = nix::sys::statvfs::statvfs(directory) {
        let bytes = disk.blocks() * disk.fragment_size();
        capacity.insert(
            "ephemeral-storage".to_owned(),
            Quantity(format!("{}Ki", bytes / 1024)),
        );
    }
    capacity
}

/// Bytes of memory.
pub(crate) fn memory() -> Option<u64> {
    memory_of(&std::fs::read_to_string("/proc/meminfo").ok()?)
}

fn memory_of(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// The address under which the machine is seen, or the loopback address of one that is alone.
pub(crate) fn address() -> IpAddr {
    let outward = || -> std::io::Result<IpAddr> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        // Nothing is sent: this only asks which way packets would go.
        socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?;
        Ok(socket.local_addr()?.ip())
    };
    outward().unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
}

/// The home directory of a user.
pub(crate) fn home(user: u32) -> String {
    let text = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    home_of(&text, user).unwrap_or_else(|| "/".to_owned())
}

fn home_of(users: &str, user: u32) -> Option<String> {
    users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        (fields.get(2)?.parse() == Ok(user)).then(|| fields.get(5).map(|home| (*home).to_owned()))?
    })
}

/// The release of the kernel, for the node's information.
pub(crate) fn kernel() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    text.trim().to_owned()
}

/// The name of the operating system's release.
pub(crate) fn system() -> String {
    let text = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.unwrap_or("linux").trim_matches('"').to_owned()
}

/// Architectures have Go's names in Kubernetes.
pub(crate) fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read() {
        assert_eq!(memory_of("MemTotal:       16 kB\nMemFree: 1 kB\n"), Some(16384));
        assert_eq!(memory_of("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn homes_are_found_by_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\nodd\nbob:x:1000:1000::/home/bob:/bin/sh\n";
        assert_eq!(home_of(users, 1000).as_deref(), Some("/home/bob"));
        assert_eq!(home_of(users, 7), None);
    }
}
