//! What goes into a port's state, and what comes out.

use crate::abi::Status;
use crate::wire::{Header, Kind};
use std::sync::atomic::{AtomicI32, Ordering};

/// What follows when a message has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Then {
    /// The address of the callback; 0: none, and the program gets an event with the message.
    pub callback: usize,
    /// The callback's context.
    pub context: usize,
}

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The node.
    pub node: u32,
    /// The port there.
    pub port: u8,
    /// 0 low, 1 high.
    pub priority: u8,
}

/// What the program sends, puts, gets or asks for.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// [`Kind::Send`], [`Kind::Put`], [`Kind::Get`] or [`Kind::Datagram`].
    pub kind: Kind,
    /// To, or from, which port.
    pub target: Target,
    /// The size of the buffer that a message needs.
    pub size: u8,
    /// The memory here.
    pub address: usize,
    /// The memory's length in bytes.
    pub length: u64,
    /// The memory there.
    pub remote: u64,
    /// What follows.
    pub then: Then,
}

/// What the program gets as an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message has arrived.
    Received {
        /// In this buffer.
        buffer: usize,
        /// The buffer's tag.
        tag: u8,
        /// The message's size.
        size: u8,
        /// 0 low, 1 high.
        priority: u8,
        /// The message's length in bytes.
        length: u32,
        /// The sender's node.
        node: u16,
        /// The sender's port.
        port: u8,
    },
    /// What the program has sent has ended.
    Ended {
        /// What follows.
        then: Then,
        /// How it has ended.
        status: Status,
        /// The memory that was sent.
        address: usize,
    },
}

/// The data of an [`Output`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    /// None.
    None,
    /// Memory that the counter at this address is raised for when it is free again.
    Memory {
        /// The memory.
        address: usize,
        /// The memory's length in bytes.
        length: u64,
        /// The counter's address.
        counter: usize,
    },
}

impl Data {
    /// The memory is free: it is not read any more.
    pub fn free(&self) {
        if let Self::Memory { counter, .. } = *self {
            // SAFETY: the counter of a message or of a port, which lives as long as the port; a
            // port is closed when all counters have changed.
            let counter = unsafe { &*std::ptr::with_exposed_provenance::<AtomicI32>(counter) };
            counter.fetch_add(1, Ordering::Release);
        }
    }
}

/// A message to a task.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// The task.
    pub task: u32,
    /// The header.
    pub header: Header,
    /// The data.
    pub data: Data,
}

/// What becomes of a message that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Thrown away.
    Bury,
    /// The data goes there, and then [`super::Port::complete`] gets the token.
    Into {
        /// The address.
        address: usize,
        /// The token.
        token: u64,
    },
}
