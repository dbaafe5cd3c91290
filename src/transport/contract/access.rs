//! Access to the memory of peers.

#[cfg(doc)]
use super::{Report, Withdrawal};
use crate::transport::{Key, Piece, Task};
use std::io;

/// One copy between this address space and a peer's.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    /// The address here.
    pub local: *mut u8,
    /// The address there, as the peer's program knows it.
    pub remote: u64,
    /// How many bytes.
    pub len: usize,
}

/// The direction of a remote access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// From the peer's memory to here.
    Read,
    /// From here to the peer's memory.
    Write,
}

/// What [`RemoteAccess::access`] starts.
#[derive(Clone, Copy, Debug)]
pub enum Transfer<'a> {
    /// Copies.
    Copies {
        /// Their direction.
        access: Access,
        /// The key of the peer's memory in which all remote places lie, where that is reached by
        /// keys ([`Reach::Keyed`]); elsewhere it is ignored.
        key: Option<Key>,
        /// The copies.
        copies: &'a [Copy],
    },
    /// A write by the key of all memory of the peer ([`Reach::Keyed`]), which is always pending:
    /// [`Report::Written`] follows. It is not started when there is no such key, or no room now, or
    /// when it is too long, or a packet is better now.
    Write {
        /// What is written.
        copy: Copy,
        /// What the report calls it.
        cookie: u64,
        /// The data is copied, at most [`COPIED_MAX`] bytes: it may be changed at once.
        copied: bool,
    },
}

/// Names a remote access that has been started. No two that were not reported yet have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessId(pub u64);

/// The state of a remote access after [`RemoteAccess::access`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// All bytes are in place.
    Done,
    /// [`Report::Accessed`] follows.
    Pending(AccessId),
}

/// A write ([`Transfer::Write`]) that was started, and that has ended.
#[derive(Debug)]
pub struct EndedWrite {
    /// Whose memory was at the other end.
    pub peer: Task,
    /// What the caller calls it.
    pub cookie: u64,
    /// What was to be written.
    pub copy: Copy,
    /// How it went.
    pub outcome: io::Result<()>,
    /// The data, where it was copied and the write has failed.
    pub data: Option<Box<[u8]>>,
}

/// Bytes that [`Transfer::Write`] copies, at most.
pub const COPIED_MAX: usize = 128;

/// How the memory of a peer is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Not at all.
    None,
    /// All of it, by its addresses.
    Open,
    /// What the peer has registered for this task, by the key. And all of it by this key, by its
    /// addresses there, where the peer needs to register nothing for an access. `None`: the peer's
    /// memory is not reached in that way, or not yet, or not any more.
    Keyed(Option<Key>),
}

/// What a peer may do with memory that is exposed to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exposure {
    /// What the peer will do: [`Access::Read`] takes bytes from here.
    pub access: Access,
    /// The peer's accesses are not to be striped: where it has several ways to this memory, it
    /// uses one of them.
    pub one_rail: bool,
}

/// Reads and writes the memory of peers without their help.
pub trait RemoteAccess {
    /// How the peer's memory can be reached, as far as is known. Between two tasks with one
    /// transport both find the same, or one of them finds [`Reach::None`].
    fn reach(&mut self, peer: Task) -> Reach;

    /// Lets `peer` access this memory of the program, until that is withdrawn
    /// ([`Withdrawal`]) or the endpoint is closed. Makes no system call that
    /// waits for the peer. Two registrations may have equal keys: each is withdrawn on its own.
    ///
    /// # Errors
    /// The system or the network refuses it; nothing is registered. Always where the memory of this
    /// task is not reached by keys.
    ///
    /// # Safety
    /// The memory must be readable and, for [`Access::Write`], writable until the
    /// registration is withdrawn.
    unsafe fn expose(&mut self, peer: Task, memory: Piece, exposure: Exposure) -> io::Result<Key>;

    /// Starts a transfer. One that is done, now or when it is reported, has placed all bytes where
    /// they belong: the program at the other end may get a report of them.
    ///
    /// A peer that has ended, or has parted from this task ([`Withdrawal::Connection`] is done
    /// there), is not accessed, whether or not this task knows of that. Where this task's processor
    /// makes the copies ([`Reach::Open`]), those of one call that had looked before may still be
    /// made: the peer does not wait for them, because this process may have been stopped.
    ///
    /// # Errors
    /// Copies may have been made in part. A write was not started.
    ///
    /// # Safety
    /// Each local place must be readable and, for [`Access::Read`], writable for its length, until
    /// the access is done or was recalled ([`Withdrawal::Traffic`]); that of a write which copies
    /// its data must be readable now.
    unsafe fn access(&mut self, peer: Task, transfer: Transfer<'_>) -> io::Result<Started>;
}
