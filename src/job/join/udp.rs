//! UDP as the network of a job: one socket of each task, on the network that the tasks have chosen.

use super::Joining;
use super::agreed::{Agreed, failed, groups};
use super::networks::{all_interfaces, listed};
use super::rails;
use crate::base::process::Process;
use crate::config::Config;
use crate::error::Result;
use crate::job::secret::Secret;
use crate::transport::directory::Directory;
use crate::transport::udp::address::UdpAddress;
use crate::transport::udp::interfaces::Interface;
use crate::transport::udp::socket::{Options, Socket};
use crate::transport::udp::{UdpSettings, UdpTransport};
use crate::transport::{Task, Transport};
use crate::wire::card::{Candidate, Card};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// The socket of this task, and where it receives.
pub(super) struct Own {
    socket: Socket,
    /// The network by name.
    network: String,
    /// This task's interface there.
    interface: Interface,
}

impl Own {
    /// Opens the socket for the first of these networks: there is one.
    pub(super) fn open(place: &Joining<'_>, networks: &[(String, Candidate)]) -> Result<Self> {
        let all = listed(place.config, all_interfaces()?)?;
        let [(network, candidate), ..] = networks else { return Err(failed("udp: no network")) };
        let is_it = |own: &Interface| Some(own.address) == candidate.address;
        let gone = || failed(format!("udp: {} has lost its address", candidate.interface));
        let interface = all.into_iter().find(is_it).ok_or_else(gone)?;
        let address: IpAddr = match interface.address {
            only if interface.is_loopback => only,
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        };
        let socket = Socket::open(SocketAddr::new(address, 0), Options::default());
        let socket = socket.map_err(|reason| failed(format!("udp: no socket on {address}: {reason}")))?;
        Ok(Self { socket, network: network.clone(), interface })
    }

    /// What the other tasks need to know.
    pub(super) fn publish(&self, card: Card) -> Card {
        let port = self.socket.local().port();
        let Interface { address, longest, .. } = self.interface;
        let address = UdpAddress { at: SocketAddr::new(address, port), longest };
        Card { addresses: vec![address.encode()], networks: vec![self.network.clone()], ..card }
    }

    /// The transport, and lines about it for MP_INFOLEVEL 2.
    pub(super) fn join(
        self,
        place: &Joining<'_>,
        agreed: Agreed,
    ) -> Result<(Box<dyn Transport>, Vec<String>)> {
        let Joining { config, identity, replaces, .. } = *place;
        let Agreed { cards, exchange, secret, near } = agreed;
        rails::warn(place, 1, &self.network, "UDP uses one interface");
        let datagram = longest(&cards, &self.network);
        let settings = settings(place, secret, datagram);
        let notes = vec![
            format!("network: udp, datagrams of {datagram} bytes; addresses by {}", exchange.name()),
            format!("network: {}", self.network),
        ];
        let groups = groups(&cards);
        let own = groups[identity.task as usize];
        let all: Vec<Process> = cards.iter().map(rails::process).collect();
        let processes = all
            .iter()
            .zip(&groups)
            .map(|(process, group)| (*group == own).then(|| Seen::new(*process, replaces)))
            .collect();
        let addresses = rails::Addresses::new(cards, exchange).on(&self.network);
        let directory = Box::new(OnNetwork { addresses, processes });
        let mut transport = UdpTransport::new(&settings, Box::new(self.socket), directory)?;
        if replaces {
            transport.replaces_another();
        }
        transport.watch_others(groups, all, near.neighbours());
        Ok((near.join(transport, config.coalesce)?, notes))
    }
}

/// What tasks must have in common. Those with different modes would not understand each other.
pub(super) fn provider(config: &Config) -> String {
    format!("udp with LAPI_NET_SECURITY={}", config.net_security.word())
}

/// What a transport needs to know where the exchange keeps openings apart, and finds tasks that do
/// not come.
pub(super) fn settings(place: &Joining<'_>, secret: Secret, datagram: usize) -> UdpSettings {
    let Joining { config, identity, .. } = *place;
    UdpSettings {
        me: identity.task,
        tasks: identity.tasks,
        secret,
        security: config.net_security,
        datagram,
        acknowledge_every: config.ack_thresh as u16,
        longest_interval: longest_interval(config),
        opening: 0,
        patience: None,
    }
}

/// The longest time after which something is sent again. MP_RETRANSMIT_INTERVAL counts polling
/// loops: its default is taken for that of MP_POLLING_INTERVAL.
fn longest_interval(config: &Config) -> Duration {
    const LOOP: Duration = Duration::from_nanos(400);
    config.polling_interval.min(LOOP * config.retransmit_interval)
}

/// The bytes of the longest datagram that every task uses, and its interface on a network takes.
fn longest(cards: &[Card], network: &str) -> usize {
    let of = |card: &Card| {
        let at = card.networks.iter().position(|name| name == network)?;
        card.addresses.get(at).and_then(|bytes| UdpAddress::decode(bytes)).map(|address| address.longest)
    };
    cards.iter().filter_map(of).min().unwrap_or_default().into()
}

/// The addresses of the other tasks' sockets.
struct OnNetwork {
    addresses: rails::OnNetwork,
    /// The processes that this task sees, by task.
    processes: Box<[Option<Seen>]>,
}

/// A task's process when this task joined.
struct Seen {
    process: Process,
    /// This task has taken the place of another process, and that task's had ended before: it is
    /// not the one that this task awaits.
    is_former: bool,
}

impl Seen {
    fn new(process: Process, replaces: bool) -> Self {
        Self { process, is_former: replaces && process.is_gone() }
    }

    /// Whether the task has died whose process is this one now, if it is known.
    fn has_died(&self, now: Option<Process>) -> bool {
        // The card may be that of a process that has taken the task's place.
        let now = now.unwrap_or(self.process);
        let is_awaited = !self.is_former || now != self.process;
        is_awaited && now.is_gone()
    }
}

impl Directory<SocketAddr> for OnNetwork {
    fn address_of(&mut self, peer: Task) -> Result<SocketAddr> {
        let bytes = self.addresses.address_of(peer)?;
        let address = UdpAddress::decode(&bytes);
        address
            .map(|address| address.at)
            .ok_or_else(|| failed(format!("task {peer} has published no address")))
    }

    fn has_died(&mut self, peer: Task) -> bool {
        if self.addresses.has_died(peer) {
            return true;
        }
        // The card of a task whose process is not seen from here says nothing.
        let Some(seen) = &self.processes[peer as usize] else { return false };
        seen.has_died(self.addresses.process_of(peer))
    }

    fn process_of(&mut self, peer: Task) -> Option<Process> {
        self.addresses.process_of(peer)
    }
}

#[cfg(test)]
#[path = "udp_tests.rs"]
mod tests;
