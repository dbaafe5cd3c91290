//! UDP as the network of a job: one socket of each task, on the network that the tasks have chosen.

use super::Joining;
use super::agreed::{Agreed, failed, groups, join};
use super::networks::{all_interfaces, listed};
use super::rails;
use crate::base::process::Process;
use crate::config::{Config, NetSecurity};
use crate::error::Result;
use crate::transport::directory::Directory;
use crate::transport::udp::address::UdpAddress;
use crate::transport::udp::interfaces::Interface;
use crate::transport::udp::seal::Security;
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
    security: NetSecurity,
}

impl Own {
    /// Opens the socket for the first of these networks: there is one.
    pub(super) fn open(place: &Joining<'_>, networks: &[(String, Candidate)]) -> Result<Self> {
        let security = place.config.net_security;
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
        Ok(Self { socket, network: network.clone(), interface, security })
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
        let Agreed { cards, exchange, secret, near, here, longest_body } = agreed;
        rails::warn(place, 1, &self.network, "UDP uses one interface");
        let datagram = longest(&cards, &self.network);
        let settings = UdpSettings {
            me: identity.task,
            tasks: identity.tasks,
            secret,
            security: security(self.security),
            datagram,
            acknowledge_every: config.ack_thresh as u16,
            longest_interval: longest_interval(config),
            // The exchange keeps openings apart, and finds tasks that do not come.
            opening: 0,
            patience: None,
        };
        let notes = vec![
            format!("network: udp, datagrams of {datagram} bytes; addresses by {}", exchange.name()),
            format!("network: {}", self.network),
        ];
        let groups = groups(&cards);
        let own = groups[identity.task as usize];
        let all: Vec<Process> = cards.iter().map(rails::process).collect();
        let processes = all.iter().zip(&groups).map(|(process, group)| (*group == own).then_some(*process));
        let processes = processes.collect();
        let addresses = rails::Addresses::new(cards, exchange).on(&self.network);
        let directory = Box::new(OnNetwork { addresses, processes });
        let mut transport = UdpTransport::new(&settings, Box::new(self.socket), directory)?;
        if replaces {
            transport.replaces_another();
        }
        transport.limit_job_body(longest_body);
        transport.watch_others(groups, all);
        if near.is_some() {
            transport.leaves_to_another(here.clone());
        }
        Ok((join(transport, config.coalesce, near, here)?, notes))
    }
}

/// What tasks must have in common. Those with different modes would not understand each other.
pub(super) fn provider(config: &Config) -> String {
    format!("udp with LAPI_NET_SECURITY={}", config.net_security.word())
}

/// The longest time after which something is sent again. MP_RETRANSMIT_INTERVAL counts polling
/// loops: its default is taken for that of MP_POLLING_INTERVAL.
fn longest_interval(config: &Config) -> Duration {
    const LOOP: Duration = Duration::from_nanos(400);
    config.polling_interval.min(LOOP * config.retransmit_interval)
}

pub(super) fn security(configured: NetSecurity) -> Security {
    match configured {
        NetSecurity::Auth => Security::Auth,
        NetSecurity::Encrypt => Security::Encrypt,
        NetSecurity::None => Security::None,
    }
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
    processes: Box<[Option<Process>]>,
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
        // The card may be that of a process that has taken the task's place.
        let process = self.processes[peer as usize];
        process.is_some_and(|first| self.addresses.process_of(peer).unwrap_or(first).is_gone())
    }

    fn process_of(&mut self, peer: Task) -> Option<Process> {
        self.addresses.process_of(peer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::test_deadline;
    use crate::base::thread::ThreadConfig;
    use crate::error::Log;
    use crate::job::exchange::memory::{InMemory, Table};
    use crate::job::secret::{Offer, Secret};
    use crate::job::{Identity, Link};
    use crate::transport::conformance::Calls;
    use std::net::UdpSocket;
    use std::time::Instant;

    fn config(variables: &[(&str, &str)]) -> Config {
        let env =
            |name: &str| variables.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned());
        Config::from_env(&env).expect("valid")
    }

    #[test]
    fn both_variables_bound_the_time_after_which_something_is_sent_again() {
        let found = |variables: &[(&str, &str)]| longest_interval(&config(variables)).as_micros();
        assert_eq!(found(&[]), 400_000);
        assert_eq!(found(&[("MP_RETRANSMIT_INTERVAL", "1000")]), 400);
        assert_eq!(found(&[("MP_RETRANSMIT_INTERVAL", "2147483647")]), 400_000);
        let both = [("MP_POLLING_INTERVAL", "20000"), ("MP_RETRANSMIT_INTERVAL", "100000")];
        assert_eq!(found(&both), 20_000);
    }

    #[test]
    fn datagrams_fit_every_interface_on_the_network() {
        let card = |networks: &[(&str, u16)]| Card {
            networks: networks.iter().map(|(name, _)| (*name).to_owned()).collect(),
            addresses: networks
                .iter()
                .map(|(_, longest)| {
                    UdpAddress { at: (Ipv4Addr::LOCALHOST, 9).into(), longest: *longest }.encode()
                })
                .collect(),
            ..Card::default()
        };
        let cards = [card(&[("a", 8972), ("b", 1472)]), card(&[("b", 1400), ("a", 8000)])];
        assert_eq!((longest(&cards, "a"), longest(&cards, "b")), (8000, 1400));
    }

    /// A job of two tasks on this machine, in one opening of LAPI, with a secret that
    /// the user has set.
    struct Opening {
        exchanges: [InMemory; 2],
        secret: Secret,
    }

    const CONFIGURED: Secret = [7; 16];

    fn identity(task: Task) -> Identity {
        Identity { task, tasks: 2, ..Identity::alone() }
    }

    impl Opening {
        fn new() -> Self {
            let table = Table::default();
            let mut exchanges = [0, 1].map(|task| InMemory(task, table.clone()));
            let offers = [0, 1].map(|task| {
                let exchange = &mut exchanges[task as usize];
                Offer::publish(exchange, &identity(task), Some(CONFIGURED), false).expect("memory takes it")
            });
            let [first, _] = offers;
            let secret = first.agree(&mut exchanges[0], &identity(0)).expect("they agree");
            Self { exchanges, secret }
        }

        /// One of the tasks, and where it receives. The other one, which is a process that lives as
        /// long, receives at `other`.
        fn task(&self, me: Task, other: SocketAddr) -> (Box<dyn Transport>, SocketAddr) {
            let (config, identity) = (config(&[]), identity(me));
            let link = Link::none();
            let place = Joining {
                config: &config,
                identity: &identity,
                instance: 0,
                thread_config: ThreadConfig::PLAIN,
                log: &Log::none(),
                link: &link,
                openings: &link.openings("notices", 2, 0),
                opening: 1,
                replaces: false,
                ignores_addresses: false,
            };
            let on = Candidate {
                interface: "lo".into(),
                address: Some(Ipv4Addr::LOCALHOST.into()),
                network: "127.0.0.0/8".into(),
            };
            let own = Own::open(&place, &[(on.network.clone(), on)]).expect("the loopback interface");
            let at = own.socket.local();
            let Process { pid, started } = Process::own();
            let card = own.publish(Card { pid, started, pid_namespace: 1, ..Card::default() });
            let address = UdpAddress { at: other, longest: 1472 }.encode();
            let mut cards = vec![Card { addresses: vec![address], ..card.clone() }, card];
            if me == 0 {
                cards.swap(0, 1);
            }
            let InMemory(_, table) = &self.exchanges[0];
            let agreed = Agreed {
                cards,
                exchange: Box::new(InMemory(me, table.clone())),
                secret: self.secret,
                near: None,
                here: Box::default(),
                longest_body: usize::MAX,
            };
            (own.join(&place, agreed).expect("a transport").0, at)
        }
    }

    /// How many datagrams a task refuses that gets these, and how many it replies to at once.
    fn refused(opening: &Opening, recorder: &UdpSocket, recorded: &[Vec<u8>]) -> (u64, usize) {
        let (mut task, at) = opening.task(0, (Ipv4Addr::LOCALHOST, 9).into());
        recorded.iter().for_each(|datagram| {
            recorder.send_to(datagram, at).expect("the loopback interface takes it");
        });
        let soon = Instant::now() + Duration::from_millis(300);
        let mut replies = 0;
        while Instant::now() < soon {
            task.serve();
            replies += usize::from(recorder.recv_from(&mut [0; 2048]).is_ok());
        }
        (task.tally().refused, replies)
    }

    /// What was recorded in an opening is refused in the next one, although the processes and
    /// LAPI_JOB_SECRET are the same.
    #[test]
    fn a_notice_of_another_opening_is_refused() {
        let recorder = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        recorder.set_nonblocking(true).expect("a socket");
        let first = Opening::new();
        let (mut task, _) = first.task(1, recorder.local_addr().expect("bound"));
        let (mut recorded, deadline) = (Vec::new(), Instant::now() + test_deadline());
        // That it watches the other one.
        while recorded.is_empty() {
            task.serve();
            let mut bytes = [0; 2048];
            if let Ok((len, _)) = recorder.recv_from(&mut bytes) {
                recorded.push(bytes[..len].to_vec());
            }
            assert!(Instant::now() < deadline, "it sends no notice");
        }
        task.close();
        while recorder.recv_from(&mut [0; 2048]).is_ok() {}
        assert_eq!(refused(&first, &recorder, &recorded), (0, 1), "in its own opening");
        assert_eq!(refused(&Opening::new(), &recorder, &recorded), (1, 0), "in the next one");
    }
}
