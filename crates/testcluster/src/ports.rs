//! Free ports on the loopback address.

use std::net::{Ipv4Addr, TcpListener};

use anyhow::Context as _;

/// Ports that nothing listens on, all different. They are free when this returns; whoever wants one has to be quick.
pub fn free<const N: usize>() -> anyhow::Result<[u16; N]> {
    // All are held until the last is found: a port that is let go at once may be handed out again.
    let mut held = Vec::with_capacity(N);
    let mut ports = [0; N];
    for port in &mut ports {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("looking for a free port")?;
        *port = listener.local_addr().context("looking for a free port")?.port();
        held.push(listener);
    }
    Ok(ports)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_different_and_can_be_listened_on() {
        let ports: [u16; 8] = free().unwrap();
        let listeners: Vec<_> = ports
            .iter()
            .map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).unwrap())
            .collect();
        assert_eq!(listeners.len(), 8);
    }
}
