//! What the two sides tell each other on the channel once each has proved what it is.
//!
//! A frame has its length (4 bytes), a proof of 16 bytes, the number of the frame in its direction
//! (4 bytes), its kind (1 byte) and its body. Numbers are little-endian. The proof covers all that
//! follows it, the direction and both sides' fresh numbers, so that a frame counts once, on its
//! connection, in its place.

use crate::error::{Error, Result};
use openlapi::base::process::Process;
use openlapi::job::host;
use openlapi::job::start_up::greeting::{By, Proofs};
use openlapi::wire::exchange::{LONGEST_VALUES, take_frame};

/// The version of all that the two sides send each other: the frames here, and what their cores
/// send. Sides with different ones part.
pub use openlapi::wire::VERSION;
/// The longest frame, in bytes.
pub const LONGEST: usize = LONGEST_VALUES;
/// The longest reason of a side that opens no session, in bytes.
pub const LONGEST_REASON: usize = 500;

/// Which side of the channel a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that listens: task 0 of the session.
    Accepting,
    /// The one that connects: task 1 of the session.
    Connecting,
}

impl Side {
    /// The number of its task.
    pub fn task(self) -> u32 {
        match self {
            Self::Accepting => 0,
            Self::Connecting => 1,
        }
    }

    /// The other side.
    pub fn peer(self) -> Self {
        match self {
            Self::Accepting => Self::Connecting,
            Self::Connecting => Self::Accepting,
        }
    }

    fn by(self) -> By {
        match self {
            Self::Accepting => By::Called,
            Self::Connecting => By::Caller,
        }
    }
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MessageKind {
    /// The sender's [`Card`].
    Card = 1,
    /// Which networks the sender can use: one byte of [`Routes`].
    Networks = 2,
    /// What the core of the sender publishes.
    Values = 3,
    /// The sender's session is open.
    Ready = 4,
    /// The sender opens none, and the reason as text.
    Failed = 5,
    /// The sender closes the session.
    Bye = 6,
    /// Nothing: the sender wants to see it acknowledged.
    Ask = 7,
}

impl MessageKind {
    fn of(byte: u8) -> Option<Self> {
        [Self::Card, Self::Networks, Self::Values, Self::Ready, Self::Failed, Self::Bye, Self::Ask]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// A set of ways between two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Routes(pub u8);

impl Routes {
    /// Shared memory, on one host.
    pub const SHARED_MEMORY: Self = Self(1);
    /// Libfabric.
    pub const FABRIC: Self = Self(2);
    /// Encrypted datagrams over UDP.
    pub const UDP: Self = Self(4);
    /// All of them.
    pub const ALL: Self = Self(7);

    /// Whether all of `other` are among these.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Those that both have.
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl std::fmt::Display for Routes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = [(Self::SHARED_MEMORY, "shared memory"), (Self::FABRIC, "libfabric"), (Self::UDP, "UDP")];
        let names: Vec<&str> =
            all.iter().filter(|(route, _)| self.has(*route)).map(|(_, name)| *name).collect();
        f.write_str(if names.is_empty() { "none" } else { "" })?;
        f.write_str(&names.join(", "))
    }
}

/// What a side says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// Equal on both sides exactly if they share a host.
    pub host: u128,
    /// The process.
    pub process: Process,
    /// The numbering of processes that this number belongs to; 0: unknown.
    pub numbering: u64,
    /// The ways that it may use.
    pub routes: Routes,
}

/// Bytes of a card.
const CARD: usize = 2 + 16 + 4 + 8 + 8 + 1;

impl Card {
    /// The card of this process.
    pub fn own(routes: Routes) -> Self {
        let (host, process) = (host::Host::of_this_task().id, Process::own());
        Self { host, process, numbering: host::pid_namespace(), routes }
    }

    /// The card as bytes, its version first.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = VERSION.to_le_bytes().to_vec();
        bytes.extend(self.host.to_le_bytes());
        bytes.extend(self.process.pid.to_le_bytes());
        bytes.extend(self.process.started.to_le_bytes());
        bytes.extend(self.numbering.to_le_bytes());
        bytes.push(self.routes.0);
        bytes
    }

    /// The card in these bytes.
    ///
    /// # Errors
    /// [`Error::Version`], and [`Error::Forged`]: they are no card of this version.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut rest = bytes;
        let version = u16::from_le_bytes(take(&mut rest)?);
        if version != VERSION {
            return Err(Error::Version { own: VERSION, peer: version });
        }
        if bytes.len() != CARD {
            return Err(Error::Forged("a card of another length"));
        }
        Ok(Self {
            host: u128::from_le_bytes(take(&mut rest)?),
            process: Process {
                pid: u32::from_le_bytes(take(&mut rest)?),
                started: u64::from_le_bytes(take(&mut rest)?),
            },
            numbering: u64::from_le_bytes(take(&mut rest)?),
            routes: Routes(u8::from_le_bytes(take(&mut rest)?)),
        })
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk().ok_or(Error::Forged("a card that is too short"))?;
    *bytes = rest;
    Ok(*first)
}

/// The frames of one connection, from both sides.
pub struct Frames {
    proofs: Proofs,
    side: Side,
    sent: u32,
    received: u32,
    input: Vec<u8>,
}

impl Frames {
    /// The frames of one side of a connection that has greeted.
    pub fn new(proofs: Proofs, side: Side) -> Self {
        Self { proofs, side, sent: 0, received: 0, input: Vec::new() }
    }

    /// A secret of both sides, another one for each purpose, that no other connection has.
    pub fn secret(&self, purpose: &[u8]) -> [u8; 16] {
        self.proofs.secret(purpose)
    }

    /// The next frame of this side.
    pub fn seal(&mut self, kind: MessageKind, body: &[u8]) -> Vec<u8> {
        let contents = [&self.sent.to_le_bytes()[..], &[kind as u8], body].concat();
        self.sent = self.sent.wrapping_add(1);
        self.sealed(&contents)
    }

    /// A frame with these contents, its number among them.
    pub(crate) fn sealed(&self, contents: &[u8]) -> Vec<u8> {
        self.proofs.sealed(self.side.by(), contents)
    }

    /// Bytes of the other side.
    pub fn push(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// The next frame of the other side, once it is there as a whole.
    ///
    /// # Errors
    /// [`Error::Forged`]: the other side has not sent this, or not now.
    pub fn next(&mut self) -> Result<Option<(MessageKind, Vec<u8>)>> {
        let frame =
            take_frame(&mut self.input, LONGEST).map_err(|_| Error::Forged("a frame that is too long"))?;
        let Some(frame) = frame else { return Ok(None) };
        let opened = self.proofs.opened(self.side.peer().by(), &frame);
        let contents = opened.ok_or(Error::Forged("a frame without its proof"))?;
        let Some((number, [kind, body @ ..])) = contents.split_first_chunk() else {
            return Err(Error::Forged("a frame that is too short"));
        };
        if u32::from_le_bytes(*number) != self.received {
            return Err(Error::Forged("a frame out of its turn"));
        }
        self.received = self.received.wrapping_add(1);
        let kind = MessageKind::of(*kind).ok_or(Error::Forged("a frame of an unknown kind"))?;
        Ok(Some((kind, body.to_vec())))
    }
}
