//! The connections between `poe` and `poe --task`: four for each task, made by the task.
//!
//! A connection begins with the token of the job, the task and the kind of the connection. `poe` then writes the order on the
//! control connection, a list of byte strings; after it both write notes, as `poe` and its supervisor do. All numbers are
//! little-endian.

use std::fmt;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{setsockopt, sockopt};

use super::super::error::Error;

/// What the launcher passes to each `poe --task`: a [`Link`].
pub(super) const VARIABLE: &str = "POE_LINK";

/// One of a task's connections.
pub(super) type Connection = TcpStream;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Control,
    Input,
    Output,
    Error,
}

/// The kinds in the order of their numbers.
pub(super) const KINDS: [Kind; 4] = [Kind::Control, Kind::Input, Kind::Output, Kind::Error];

/// How long one address may take to accept a connection.
const ONE_ADDRESS: Duration = Duration::from_secs(3);
/// How long a task tries to reach `poe`.
const ALL_ADDRESSES: Duration = Duration::from_secs(30);

pub(super) const TOKEN: usize = 32;
pub(super) const HEAD: usize = 8 + TOKEN + 4 + 1;
const MAGIC: &[u8; 8] = b"POELINK1";

/// Where `poe` listens, and what admits to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub addresses: Vec<IpAddr>,
    pub port: u16,
    pub token: String,
    /// The variable in which the launcher passes a task its number.
    pub rank_variable: String,
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses: Vec<String> = self.addresses.iter().map(IpAddr::to_string).collect();
        write!(f, "{};{};{};{}", addresses.join(","), self.port, self.token, self.rank_variable)
    }
}

impl FromStr for Link {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut fields = text.split(';');
        let mut field = || fields.next().ok_or(());
        let addresses =
            field()?.split(',').map(|text| text.parse().map_err(drop)).collect::<Result<_, ()>>()?;
        let port = field()?.parse().map_err(drop)?;
        let token = field()?.to_owned();
        if token.len() != TOKEN {
            return Err(());
        }
        Ok(Self { addresses, port, token, rank_variable: field()?.to_owned() })
    }
}

impl Link {
    /// Connects a task to `poe`.
    pub(super) fn connect(&self, task: usize, kind: Kind) -> io::Result<Connection> {
        let until = Instant::now() + ALL_ADDRESSES;
        let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
        while Instant::now() < until {
            for address in &self.addresses {
                match TcpStream::connect_timeout(&SocketAddr::new(*address, self.port), ONE_ADDRESS) {
                    Ok(mut stream) => {
                        prepare(&stream);
                        stream.write_all(&head(&self.token, task, kind))?;
                        return Ok(stream);
                    }
                    Err(error) => failure = error,
                }
            }
            thread::sleep(Duration::from_millis(200));
        }
        Err(failure)
    }
}

pub(super) fn head(token: &str, task: usize, kind: Kind) -> [u8; HEAD] {
    let mut bytes = [0; HEAD];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..8 + TOKEN].copy_from_slice(token.as_bytes());
    bytes[8 + TOKEN..HEAD - 1].copy_from_slice(&(task as u32).to_le_bytes());
    bytes[HEAD - 1] = kind as u8;
    bytes
}

/// The task and the kind, if the token is right.
pub(super) fn admitted(bytes: &[u8; HEAD], token: &str) -> Option<(usize, Kind)> {
    // Compared as a whole, so that the time does not depend on where they differ.
    let same = bytes[8..8 + TOKEN].iter().zip(token.as_bytes()).fold(0, |bits, (a, b)| bits | (a ^ b)) == 0;
    let (task, kind) = (&bytes[8 + TOKEN..HEAD - 1], bytes[HEAD - 1]);
    let task = u32::from_le_bytes(task.try_into().ok()?);
    (same && bytes[..8] == *MAGIC).then_some((task as usize, *KINDS.get(usize::from(kind))?))
}

/// Notes leave at once, and the end of the other machine is noticed.
pub(super) fn prepare(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let _ = setsockopt(stream, sockopt::KeepAlive, &true);
    let _ = setsockopt(stream, sockopt::TcpKeepIdle, &10);
    let _ = setsockopt(stream, sockopt::TcpKeepInterval, &5);
    let _ = setsockopt(stream, sockopt::TcpKeepCount, &4);
}

/// Where the tasks of one job connect.
pub(super) struct Listener {
    pub socket: TcpListener,
    pub token: String,
}

impl Listener {
    /// Listens on a free port, with a token of its own.
    pub(super) fn open() -> Result<Self, Error> {
        let mut random = [0; TOKEN / 2];
        File::open("/dev/urandom")
            .and_then(|mut source| source.read_exact(&mut random))
            .map_err(|error| Error::system("cannot read /dev/urandom", error))?;
        let token = random.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        // The first one takes connections over IPv4, too.
        let socket = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0))
            .or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))
            .map_err(|error| Error::system("cannot listen for the tasks", error))?;
        Ok(Self { socket, token })
    }

    pub(super) fn link(&self, rank_variable: &str) -> Link {
        let port = self.socket.local_addr().map_or(0, |address| address.port());
        Link {
            addresses: addresses(),
            port,
            token: self.token.clone(),
            rank_variable: rank_variable.to_owned(),
        }
    }
}

/// The addresses of this machine at which others may reach it; the loopback's when it has no other.
fn addresses() -> Vec<IpAddr> {
    let found = getifaddrs().into_iter().flatten().filter_map(|interface| {
        let address = interface.address?;
        let four = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        four.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
    });
    // An address of the link alone is not complete without the interface.
    let is_local = |address: &IpAddr| match address {
        IpAddr::V4(four) => four.is_loopback() || four.is_link_local(),
        IpAddr::V6(six) => six.is_loopback() || six.segments()[0] & 0xffc0 == 0xfe80,
    };
    let mut addresses: Vec<IpAddr> = found.filter(|address| !is_local(address)).collect();
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
            assert_eq!(wrong.parse::<Link>(), Err(()), "{wrong}");
        }
    }

    #[test]
    fn only_the_token_admits() {
        let token = "0123456789abcdef0123456789abcdef";
        let bytes = head(token, 70_000, Kind::Output);
        assert_eq!(admitted(&bytes, token), Some((70_000, Kind::Output)));
        for at in [0, 8, HEAD - 6, HEAD - 1] {
            let mut wrong = bytes;
            wrong[at] ^= 0x40;
            assert_eq!(admitted(&wrong, token), None, "byte {at}");
        }
    }
}
