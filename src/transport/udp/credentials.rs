//! What this task is to its peers: its number, its keys, and what its hellos say of it.

use super::contact::{FIRST_CONTACT, Session};
use super::reliable::Connection;
use super::seal::{ANNOUNCEMENT, Announcement, GREETING, JobKey, Opener};
use super::{SHORTEST, UdpSettings, socket};
use crate::base::clock;
use crate::base::process::Process;
use crate::base::random::random;
use crate::transport::presence::Presence;
use crate::transport::{NO_EPOCH, Task};
use crate::wire::datagram::Hello;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// What this task says of itself, and what it signs that with.
pub(super) struct Credentials {
    pub(super) me: Task,
    key: JobKey,
    /// Makes the numbers of challenges unpredictable.
    salt: [u8; 16],
    /// The longest datagram that it takes.
    pub(super) longest: u16,
    /// In which opening of LAPI it is.
    pub(super) opening: u16,
    /// After how long a peer that has not replied at first contact counts as dead.
    pub(super) patience: Option<Duration>,
    /// This process has taken the place of another one: the peers let it rejoin.
    pub(super) replaces: bool,
    /// The process that has the number.
    pub(super) process: Process,
    /// What the last number that was drawn has as its order.
    last_order: u64,
}

impl Credentials {
    pub(super) fn new(settings: &UdpSettings) -> Self {
        Self {
            me: settings.me,
            key: JobKey::new(&settings.secret, settings.security),
            salt: random(),
            longest: settings.datagram.clamp(SHORTEST, socket::LONGEST) as u16,
            opening: settings.opening as u16,
            patience: settings.patience,
            replaces: false,
            process: Process::own(),
            last_order: 0,
        }
    }

    /// How contact with a peer begins.
    pub(super) fn first_contact(&self) -> (Presence, u64) {
        match (self.replaces, self.patience) {
            (true, _) => (Presence::Rejoining, NO_EPOCH),
            (false, Some(_)) => (Presence::Meeting, FIRST_CONTACT),
            (false, None) => (Presence::Up, FIRST_CONTACT),
        }
    }

    /// A hello of this task.
    pub(super) fn hello(&self, epoch: u64) -> Hello {
        let Self { process, longest, opening, .. } = *self;
        Hello { mine: 0, yours: 0, epoch, process, longest, opening }
    }

    /// What this side says at first in another incarnation of a connection, with a new number.
    pub(super) fn first_hello(&mut self, epoch: u64) -> Hello {
        let order = (clock::since_boot().as_micros() as u64).max(self.last_order + 1);
        self.last_order = order;
        let mine = Hello::number(order, u128::from_le_bytes(random()));
        Hello { mine, ..self.hello(epoch) }
    }

    /// A hello to a peer as a datagram.
    pub(super) fn greet(&self, peer: Task, hello: &Hello) -> [u8; GREETING] {
        self.key.greet(self.me, peer, hello)
    }

    /// The hello in a datagram; `None`: no task of the job has made it.
    pub(super) fn greeting(&self, datagram: &[u8]) -> Option<Hello> {
        self.key.greeting(self.me, datagram)
    }

    /// A notice to a peer, or a receipt, as a datagram.
    pub(super) fn announce(&self, peer: Task, announcement: &Announcement) -> [u8; ANNOUNCEMENT] {
        self.key.announce(self.me, peer, announcement)
    }

    /// The notice or receipt in a datagram; `None`: no task of the job has made it.
    pub(super) fn announcement(&self, datagram: &[u8]) -> Option<Announcement> {
        self.key.announcement(self.me, datagram)
    }

    /// What opens the datagrams of a connection, as far as the other side is known.
    #[inline]
    pub(super) fn opener<'a>(&self, session: &'a mut Session, peer: Task) -> Option<&'a mut Opener> {
        session.keys(&self.key, self.me, peer).map(|(_, opener)| opener)
    }

    /// The number that a peer must send back which claims to have the number `claimed` now:
    /// nothing is kept of it.
    pub(super) fn challenge(&self, peer: Task, claimed: u128, mine: u128) -> u128 {
        let numbers = [claimed, mine].map(u128::to_le_bytes);
        u128::from_le_bytes(self.key.tag(&[&self.salt, &peer.to_le_bytes(), &numbers[0], &numbers[1]])) | 1
    }

    /// The number that an address gets, in one incarnation of the connection: nothing
    /// is kept of it.
    pub(super) fn number_of(&self, peer: Task, connection: &Connection, at: SocketAddr) -> u128 {
        let numbers = [connection.mine(), connection.theirs()].map(u128::to_le_bytes);
        let port = at.port().to_le_bytes();
        let address = match at.ip() {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        let parts = [
            &self.salt,
            &b"address_validation"[..],
            &peer.to_le_bytes(),
            &numbers[0],
            &numbers[1],
            &address.octets(),
            &port,
        ];
        u128::from_le_bytes(self.key.tag(&parts)) | 1
    }
}
