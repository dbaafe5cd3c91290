//! The connections between `poe` and `poe --task`: four for each task, made by the task.
//!
//! A connection begins with the proofs of both sides ([`openlapi::job::start_up`]). `poe` then
//! writes the order on the control connection, a list of byte strings; after it both write notes,
//! as `poe` and its supervisor do. All numbers are little-endian.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::str::FromStr;
use std::time::{Duration, Instant};

use openlapi::base::random::random;
use openlapi::job::secret::Secret;
use openlapi::job::start_up::arrivals;
use openlapi::job::start_up::greeting::{SUBJECT, Subject};
use openlapi::job::start_up::reach::{Reached, reach, watch_over};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size, set_tcp_user_timeout};

use super::super::error::Error;

/// What the launcher passes to each `poe --task`: a [`HubContact`].
pub(super) const VARIABLE: &str = "POE_LINK";

/// One of a task's connections.
pub(super) type Connection = TcpStream;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionKind {
    Control,
    Input,
    Output,
    Error,
}

/// The kinds in the order of their numbers.
pub(super) const KINDS: [ConnectionKind; 4] =
    [ConnectionKind::Control, ConnectionKind::Input, ConnectionKind::Output, ConnectionKind::Error];

/// What a task says that its connection is for.
pub(super) fn subject(task: usize, kind: ConnectionKind) -> Subject {
    let mut subject = [0; SUBJECT];
    subject[..4].copy_from_slice(&(task as u32).to_le_bytes());
    subject[4] = kind as u8;
    subject
}

/// The task, and the kind of its connection.
pub(super) fn claimed(of: &Subject) -> Option<(usize, ConnectionKind)> {
    let task = u32::from_le_bytes(of[..4].try_into().ok()?) as usize;
    let kind = *KINDS.get(usize::from(of[4]))?;
    (subject(task, kind) == *of).then_some((task, kind))
}

/// How long a task tries to reach `poe`.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where `poe` listens, and what admits to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HubContact {
    pub addresses: Vec<IpAddr>,
    pub port: u16,
    /// What both sides know; it does not travel on the connections.
    pub token: Secret,
    /// The variable in which the launcher passes a task its number.
    pub rank_variable: String,
}

impl fmt::Display for HubContact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses: Vec<String> = self.addresses.iter().map(IpAddr::to_string).collect();
        write!(f, "{};{};", addresses.join(","), self.port)?;
        self.token.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, ";{}", self.rank_variable)
    }
}

impl FromStr for HubContact {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut fields = text.split(';');
        let mut field = || fields.next().ok_or(());
        let addresses =
            field()?.split(',').map(|text| text.parse().map_err(drop)).collect::<Result<_, ()>>()?;
        let port = field()?.parse().map_err(drop)?;
        let token = openlapi::config::secret(field()?).ok_or(())?;
        Ok(Self { addresses, port, token, rank_variable: field()?.to_owned() })
    }
}

impl HubContact {
    /// Connects a task to `poe`: the connections of all kinds. The first one finds the address, and
    /// the others begin with it.
    ///
    /// # Errors
    /// What became of each address.
    pub(super) fn connect(&self, task: usize) -> Result<[Connection; 4], String> {
        let until = Instant::now() + PATIENCE;
        let mut places: Vec<SocketAddr> =
            self.addresses.iter().map(|address| SocketAddr::new(*address, self.port)).collect();
        let mut connections = Vec::new();
        for kind in KINDS {
            let reached = reach(&places, self.token, &subject(task, kind), until);
            let Reached { stream, place, .. } = reached.map_err(|missed| missed.to_string())?;
            prepare(&stream, kind);
            connections.push(stream);
            places.sort_by_key(|other| *other != place);
        }
        Ok(connections.try_into().expect("one of each kind"))
    }
}

/// How much standard input of a task that does not read it is on its way, on each side.
const INPUT_ON_ITS_WAY: usize = 1 << 16;

/// Notes leave at once, and the end of the other machine is noticed. The data of the tasks may wait
/// for as long as they are not read: their connections end with the control connection.
pub(super) fn prepare(stream: &TcpStream, kind: ConnectionKind) {
    let _ = stream.set_nodelay(true);
    watch_over(stream);
    if kind != ConnectionKind::Control {
        let _ = set_tcp_user_timeout(stream, 0);
    }
    if kind == ConnectionKind::Input {
        let _ = set_socket_send_buffer_size(stream, INPUT_ON_ITS_WAY);
        let _ = set_socket_recv_buffer_size(stream, INPUT_ON_ITS_WAY);
    }
}

/// Where the tasks of one job connect.
pub(super) struct Listener {
    pub socket: TcpListener,
    pub token: Secret,
}

impl Listener {
    /// Listens on a free port, with a token of its own.
    pub(super) fn open() -> Result<Self, Error> {
        let socket =
            arrivals::listen(0).map_err(|error| Error::system("cannot listen for the tasks", error))?;
        Ok(Self { socket, token: random() })
    }

    pub(super) fn link(&self, rank_variable: &str) -> HubContact {
        let port = self.socket.local_addr().map_or(0, |address| address.port());
        HubContact {
            addresses: addresses(),
            port,
            token: self.token,
            rank_variable: rank_variable.to_owned(),
        }
    }
}

/// The addresses of this machine at which others may reach it; the loopback's when it has no other.
fn addresses() -> Vec<IpAddr> {
    // An address of the link alone is not complete without the interface.
    let is_local = |address: &IpAddr| match address {
        IpAddr::V4(four) => four.is_loopback() || four.is_link_local(),
        IpAddr::V6(six) => six.is_loopback() || six.segments()[0] & 0xffc0 == 0xfe80,
    };
    let mut addresses = super::super::hosts::addresses();
    addresses.retain(|address| !is_local(address));
    addresses.sort_by_key(IpAddr::is_ipv6);
    if addresses.is_empty() {
        addresses.push(Ipv4Addr::LOCALHOST.into());
    }
    addresses
}

/// Writes a list of byte strings.
pub(super) fn write_list(to: &mut impl Write, list: &[Vec<u8>]) -> io::Result<()> {
    let mut bytes = (list.len() as u32).to_le_bytes().to_vec();
    for item in list {
        bytes.extend((item.len() as u32).to_le_bytes());
        bytes.extend(item);
    }
    to.write_all(&bytes)
}

/// Reads what [`write_list`] wrote.
pub(super) fn read_list(from: &mut impl Read) -> io::Result<Vec<Vec<u8>>> {
    let mut number = || {
        let mut bytes = [0; 4];
        from.read_exact(&mut bytes).map(|()| u32::from_le_bytes(bytes) as usize)
    };
    let count = number()?;
    let mut list = Vec::new();
    for _ in 0..count {
        let mut bytes = [0; 4];
        from.read_exact(&mut bytes)?;
        let length = u64::from(u32::from_le_bytes(bytes));
        let mut item = Vec::new();
        if from.by_ref().take(length).read_to_end(&mut item)? as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        list.push(item);
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_read_as_it_was_written() {
        let listener = Listener::open().expect("a port is free");
        let link = listener.link("PMI_RANK");
        assert_eq!(link.to_string().parse(), Ok(link));
        for wrong in ["", "10.0.0.1;77;short;PMI_RANK", "10.0.0.1;x;0123;PMI_RANK", "here;1"] {
            assert_eq!(wrong.parse::<HubContact>(), Err(()), "{wrong}");
        }
    }

    /// Data may wait for a reader; notes are always read.
    #[test]
    fn notes_in_flight_do_not_wait_for_a_machine_that_has_gone() {
        let listener = Listener::open().expect("a port is free");
        let address = (Ipv4Addr::LOCALHOST, listener.socket.local_addr().expect("it is bound").port());
        for kind in KINDS {
            let stream = TcpStream::connect(address).expect("it listens");
            prepare(&stream, kind);
            let timeout = rustix::net::sockopt::tcp_user_timeout(&stream);
            assert_eq!(timeout, Ok(if kind == ConnectionKind::Control { 30_000 } else { 0 }), "{kind:?}");
            assert_eq!(rustix::net::sockopt::socket_keepalive(&stream), Ok(true));
        }
    }
}
