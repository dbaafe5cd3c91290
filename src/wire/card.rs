//! What a task publishes about itself in a job on several hosts: numbers little-endian, each text
//! and each address with its length before it.
//!
//! A task that cannot take part publishes why: the others end LAPI_Init with that reason
//! instead of waiting.

use super::bytes::{cut, ip, octets, take, take_some};
use core::net::IpAddr;

/// The first word of a card. Its lower half is the version, also of what tasks send each other over
/// a network.
const HEAD: u32 = 0x4c43_0000 | super::VERSION as u32;

/// The longest card, in bytes.
pub const LONGEST: usize = 4080;

/// The longest text, in bytes.
const LONGEST_TEXT: usize = 255;

/// The most addresses of a host that are candidates.
pub const CANDIDATES: usize = 12;

/// An address at which a task may be reached by the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Candidate {
    /// The interface or card that has it.
    pub interface: String,
    /// The address; `None`: a card's own kind.
    pub address: Option<IpAddr>,
    /// The subnet, such as `192.0.2.0/24`, or the card's network.
    pub network: String,
}

/// What a task publishes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Card {
    /// The task's host: tasks with equal numbers can pass each other memory.
    pub host: u128,
    /// The name of its host, for messages.
    pub host_name: String,
    /// The task's process number, in the numbering of its host.
    pub pid: u32,
    /// When its process was started, in ticks since the start of its kernel; 0: unknown.
    pub started: u64,
    /// The numbering of its process: tasks of one host with equal numbers see each other's
    /// processes. 0: unknown.
    pub pid_namespace: u64,
    /// Why it cannot take part; empty when it can.
    pub failure: String,
    /// The provider of its endpoints.
    pub provider: String,
    /// The addresses of its endpoints, one for each rail.
    pub addresses: Vec<Vec<u8>>,
    /// The network of each of them.
    pub networks: Vec<String>,
    /// The task's network namespace, by machine: tasks with equal numbers have the same addresses.
    pub net: u128,
    /// Where it answers those that try its candidates, with IPv4 and with IPv6; 0: nowhere.
    pub ports: [u16; 2],
    /// The addresses at which it may be reached: at first all, in the end those of its endpoints.
    pub candidates: Vec<Candidate>,
}

impl Card {
    /// The card's bytes; `None` when they are more than [`LONGEST`].
    pub fn encode(&self) -> Option<Vec<u8>> {
        let mut out = HEAD.to_le_bytes().to_vec();
        out.extend_from_slice(&self.host.to_le_bytes());
        out.extend_from_slice(&self.pid.to_le_bytes());
        out.extend_from_slice(&self.started.to_le_bytes());
        out.extend_from_slice(&self.pid_namespace.to_le_bytes());
        for text in [&self.host_name, &self.failure, &self.provider] {
            put(&mut out, cut(text, LONGEST_TEXT).as_bytes());
        }
        out.extend_from_slice(&(self.addresses.len() as u16).to_le_bytes());
        self.addresses.iter().for_each(|address| put(&mut out, address));
        out.extend_from_slice(&(self.networks.len() as u16).to_le_bytes());
        self.networks.iter().for_each(|network| put(&mut out, network.as_bytes()));
        out.extend_from_slice(&self.net.to_le_bytes());
        self.ports.iter().for_each(|port| out.extend_from_slice(&port.to_le_bytes()));
        out.extend_from_slice(&(self.candidates.len() as u16).to_le_bytes());
        for Candidate { interface, address, network } in &self.candidates {
            put(&mut out, interface.as_bytes());
            put(&mut out, &address.map_or_else(Vec::new, octets));
            put(&mut out, network.as_bytes());
        }
        (out.len() <= LONGEST).then_some(out)
    }

    /// `None` when the bytes are not a card.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        if bytes.len() > LONGEST || u32::from_le_bytes(take(&mut rest)?) != HEAD {
            return None;
        }
        let host = u128::from_le_bytes(take(&mut rest)?);
        let pid = u32::from_le_bytes(take(&mut rest)?);
        let started = u64::from_le_bytes(take(&mut rest)?);
        let pid_namespace = u64::from_le_bytes(take(&mut rest)?);
        let mut text = || {
            let text = sized(&mut rest).filter(|text| text.len() <= LONGEST_TEXT)?;
            String::from_utf8(text.to_vec()).ok()
        };
        let (host_name, failure, provider) = (text()?, text()?, text()?);
        let count = u16::from_le_bytes(take(&mut rest)?);
        let addresses = (0..count).map(|_| sized(&mut rest).map(<[u8]>::to_vec)).collect::<Option<_>>()?;
        let count = u16::from_le_bytes(take(&mut rest)?);
        let network = |_| string(&mut rest);
        let networks = (0..count).map(network).collect::<Option<_>>()?;
        let net = u128::from_le_bytes(take(&mut rest)?);
        let ports = [u16::from_le_bytes(take(&mut rest)?), u16::from_le_bytes(take(&mut rest)?)];
        let count = u16::from_le_bytes(take(&mut rest)?);
        let mut candidate = |_| {
            let (interface, octets, network) = (string(&mut rest)?, sized(&mut rest)?, string(&mut rest)?);
            let address = if octets.is_empty() { None } else { Some(ip(octets)?) };
            Some(Candidate { interface, address, network })
        };
        let candidates = (0..count).map(&mut candidate).collect::<Option<_>>()?;
        let card = Self {
            host,
            host_name,
            pid,
            started,
            pid_namespace,
            failure,
            provider,
            addresses,
            networks,
            net,
            ports,
            candidates,
        };
        rest.is_empty().then_some(card)
    }
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn string(from: &mut &[u8]) -> Option<String> {
    String::from_utf8(sized(from)?.to_vec()).ok()
}

fn sized<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::from(u16::from_le_bytes(take(from)?));
    take_some(from, len)
}

#[cfg(test)]
#[path = "card_tests.rs"]
mod tests;
