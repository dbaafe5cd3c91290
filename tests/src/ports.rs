//! Ports that a test has for itself.

use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::id;
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the ports that the kernel gives to connections.
const FIRST: u32 = 10_000;
const COUNT: u32 = 20_000;

/// Ports on which nothing listens, and which no other test of this machine gets while this exists.
#[derive(Debug)]
pub struct Ports {
    numbers: Vec<u16>,
    _claims: Vec<UnixListener>,
}

impl Ports {
    /// As many ports. Panics if there are not so many.
    pub fn claim(count: usize) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let claimed = (0..COUNT).filter_map(|_| {
            // Each process begins elsewhere.
            let place = id().wrapping_mul(61).wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
            let port = (FIRST + place % COUNT) as u16;
            // The name ends with the process, however it ends.
            let name = SocketAddr::from_abstract_name(format!("openlapi-tests-port-{port}")).ok()?;
            let claim = UnixListener::bind_addr(&name).ok()?;
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).ok()?;
            Some((port, claim))
        });
        let (numbers, claims): (Vec<_>, Vec<_>) = claimed.take(count).unzip();
        assert_eq!(numbers.len(), count, "there are too few free ports");
        Self { numbers, _claims: claims }
    }

    /// The ports.
    pub fn numbers(&self) -> &[u16] {
        &self.numbers
    }
}
