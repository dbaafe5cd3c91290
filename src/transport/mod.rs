//! How bytes travel between tasks.
//!
//! A transport moves packets and knows nothing of what they mean: a packet is a short *head* (at most
//! [`HEAD_MAX`] bytes, always there) and a *body* (possibly empty). The protocol above decides what stands in
//! them; it never sees a transport, and the engine joins the two.
//!
//! The contract that every transport keeps, and that the tests hold each of them to:
//!
//! * [`Transport::try_send`] never blocks and never allocates on its common path. Without room it changes
//!   nothing and answers [`SendError::NoRoom`].
//! * A packet arrives whole or not at all. Order between two packets of one sender is kept only where
//!   [`Limits::ordered`] says so.
//! * The head and the body of an [`Inbound`] start at an address that is a multiple of 8 and stay valid until
//!   the packet is given back with [`Transport::release`].
//! * Nothing that was sent before two tasks parted ([`Transport::part`]) arrives after they have come together again
//!   ([`Transport::rejoin`], on both sides).
//! * Between [`Transport::arm`] (which answered `true`) and [`Transport::disarm`], an arriving packet, room
//!   after `NoRoom`, or a [`Transport::wake`] makes the event descriptor readable. No wake-up is ever lost.

#[cfg(test)]
pub(crate) mod conformance;
pub mod fault;
pub mod mem;
mod parcel;
pub mod shm;

use crate::error::Result;
use std::io;
use std::os::fd::BorrowedFd;

pub use crate::base::bytes::{Piece, pad8};
pub use crate::wire::frame::{HEAD_MAX, Outgoing, SendError, Task};

/// A packet that has arrived, in place. It belongs to the transport until it is released.
#[derive(Debug)]
pub struct Inbound {
    /// The task that sent it.
    pub src: Task,
    /// Where its head starts (8-byte aligned).
    pub head: *const u8,
    /// How long its head is.
    pub head_len: usize,
    /// Where its body starts (8-byte aligned; dangling when `body_len` is 0).
    pub body: *const u8,
    /// How long its body is.
    pub body_len: usize,
    /// The transport's own note, for `release`.
    pub token: u64,
}

/// What is known of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerState {
    /// It takes packets.
    Up,
    /// It ended LAPI in an orderly way.
    Closed,
    /// It died, or cannot be reached any more, or this task has parted from it.
    Dead,
}

/// What can be seen of a peer without a system call, for one who asks why nothing moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glance {
    /// Packets to it that it has not given back, as far as it has told.
    pub unread: u64,
    /// How many of these there can be.
    pub slots: u64,
    /// We have found no room there, and none has been made since.
    pub stuck: bool,
    /// It says that it sleeps and must be woken.
    pub asleep: bool,
    /// A packet from it has arrived here and was not taken yet.
    pub arrived: bool,
}

/// What a transport can carry.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest body of one packet, in bytes.
    pub max_body: usize,
    /// Packets of one sender arrive in the order in which they were sent.
    pub ordered: bool,
}

/// One copy between this address space and a peer's.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    /// The address here.
    pub local: *mut u8,
    /// The address there.
    pub remote: u64,
    /// How many bytes.
    pub len: usize,
}

/// Copies between address spaces without the peer's help.
pub trait Attach: Send + Sync {
    /// Copies `len` bytes at `remote` in the peer's address space to `local`.
    ///
    /// # Safety
    /// `local` must be writable for `len` bytes.
    unsafe fn read(&self, peer: Task, remote: u64, local: *mut u8, len: usize) -> io::Result<()>;

    /// Copies `len` bytes at `local` to `remote` in the peer's address space.
    ///
    /// # Safety
    /// `local` must be readable for `len` bytes.
    unsafe fn write(&self, peer: Task, remote: u64, local: *const u8, len: usize) -> io::Result<()>;

    /// Makes many copies to here.
    ///
    /// # Safety
    /// As for [`Self::read`], for each of them.
    unsafe fn read_all(&self, peer: Task, copies: &[Copy]) -> io::Result<()> {
        // SAFETY: the caller's promise.
        copies.iter().try_for_each(|copy| unsafe { self.read(peer, copy.remote, copy.local, copy.len) })
    }

    /// Makes many copies from here.
    ///
    /// # Safety
    /// As for [`Self::write`], for each of them.
    unsafe fn write_all(&self, peer: Task, copies: &[Copy]) -> io::Result<()> {
        // SAFETY: the caller's promise.
        copies.iter().try_for_each(|copy| unsafe { self.write(peer, copy.remote, copy.local, copy.len) })
    }

    /// The peer is another process from now on, which has said that its landmark is there; `None`: it is no process any
    /// more, and every copy fails.
    fn moved(&mut self, _peer: Task, _process: Option<(i32, u64)>) {}
}

/// The greeting of a task that has come back itself and knows nothing of the job yet. See [`Transport::rejoin`].
pub const STRANGER: u64 = 0;

/// One task's end of a way to move packets. See the module's documentation for the contract.
pub trait Transport: Send {
    /// A short name, for messages and statistics.
    fn name(&self) -> &'static str;

    /// What it can carry.
    fn limits(&self) -> Limits;

    /// Hands one packet to `peer`, which is never this task itself.
    ///
    /// # Safety
    /// The pieces of `packet` must be readable during the call.
    unsafe fn try_send(&mut self, peer: Task, packet: &Outgoing<'_>) -> std::result::Result<(), SendError>;

    /// The next packet that has arrived, if any. Must be released before the next call.
    fn recv(&mut self) -> Option<Inbound>;

    /// Takes no packets from `peer` from now on, or takes them again: they stay where they are, and the peer finds no room once
    /// its ring is full. What is held back does not keep [`Self::arm`] from arming. A peer with which this task comes
    /// together again is not held.
    fn hold(&mut self, peer: Task, held: bool);

    /// Gives a packet back.
    fn release(&mut self, packet: Inbound);

    /// Gets ready to sleep: `true` when the caller may now sleep on [`Self::event_fd`], `false` when something
    /// has arrived meanwhile (then nothing is armed).
    fn arm(&mut self) -> bool;

    /// Ends what [`Self::arm`] began, and empties the event descriptor.
    fn disarm(&mut self);

    /// The descriptor that becomes readable.
    fn event_fd(&self) -> BorrowedFd<'_>;

    /// Makes this task's own event descriptor readable.
    fn wake(&self) {
        (self.waker())();
    }

    /// Makes this task's own event descriptor readable, from any thread.
    fn waker(&self) -> Box<dyn Fn() + Send + Sync>;

    /// Makes `peer`'s event descriptor readable, armed or not: for a peer that may have stopped looking.
    fn poke(&self, peer: Task);

    /// Says that this task is looking for packets from now on, or that it has just looked and looks no more; a hint for
    /// its peers.
    fn set_attentive(&mut self, attentive: bool);

    /// When this task last said so, in ticks, as far as the transport keeps it.
    fn last_look(&self) -> Option<u64> {
        None
    }

    /// Whether the peer is looking for packets, by what it said last. A transport may count a look of a moment ago.
    fn attentive(&self, peer: Task) -> bool;

    /// Whether the peer takes packets, as far as can be told without a system call.
    fn open(&self, peer: Task) -> bool {
        self.peer_state(peer) == PeerState::Up
    }

    /// What is known of the peer. May make a system call: not for hot paths.
    fn peer_state(&self, peer: Task) -> PeerState;

    /// A number that changes when the peer shows life: whenever a packet from it is taken here, and sooner or later when
    /// it takes packets from here. Without a system call.
    fn pulse(&self, peer: Task) -> u64;

    /// What can be seen of the peer without a system call, where there is something to be seen.
    fn glance(&self, _peer: Task) -> Option<Glance> {
        None
    }

    /// Copies across address spaces, where the transport has that and the system allows it.
    fn attach(&self) -> Option<&dyn Attach>;

    /// Counts, for the peer's statistics, bytes that were copied out of its memory by [`Self::attach`]. Counts nothing where
    /// the peer cannot see it.
    fn note_fetched(&self, _peer: Task, _bytes: u64) {}

    /// What peers have counted here by [`Self::note_fetched`].
    fn fetched(&self) -> u64 {
        0
    }

    /// Cuts the connection with `peer`: nothing is taken from it any more, and to send to it answers
    /// [`SendError::PeerGone`]. May be called while a packet of the peer's is not released yet. Nothing happens when they
    /// have parted before.
    fn part(&mut self, peer: Task);

    /// Lets `peer`, from which this task has parted, come back: the same process when it does likewise, or another one
    /// with its place. From now on the peer counts as up, and packets to it find no room until it is there. `greeting` is
    /// told to it.
    ///
    /// # Errors
    /// `LAPI_ERR_SHM_SETUP`: the system lacks what is needed; nothing has changed.
    fn rejoin(&mut self, peer: Task, greeting: u64) -> Result<()>;

    /// A peer that has come back, with its greeting; each is named once. Makes system calls while peers are awaited: for
    /// threads that have slept.
    fn rejoined(&mut self) -> Option<(Task, u64)>;

    /// Tells the peers that this task has ended LAPI. Nothing is sent after this.
    fn close(&mut self);
}
