//! What a message is: how it is cut into packets, put together again, acknowledged and fenced.
//!
//! Everything here is sans-IO. It holds no socket, clock, lock or thread: packets leave through a
//! [`Transmit`] that the caller brings, arrive as calls, and what must happen because of them is
//! returned as a value. So a whole job can be simulated in one thread, from a seed.
//!
//! * [`outbox`]: messages on their way out; [`send`]: how they are asked for; `lane`: what waits
//!   for room at one peer; `lent`: what the link still reads.
//! * [`inbox`]: messages on their way in, and which of them have been delivered.
//! * [`tasks`]: sets and counts of tasks.
//! * [`ops`]: operations of this task that wait for a reply.
//! * [`content`]: where data lies, at both ends. [`pieces`]: which parts of it go by remote access.
//! * [`collective`]: barrier and exchange among all tasks; `rounds`: which tasks send to which;
//!   [`placement`]: which tasks share a host.
//! * [`liveness`]: which tasks are silent, and for how long.

pub mod collective;
pub mod content;
pub mod inbox;
mod lane;
mod lent;
pub mod liveness;
pub mod ops;
pub mod outbox;
pub mod pieces;
pub mod placement;
mod rounds;
pub mod send;
pub mod tasks;

use crate::wire::frame::{Outgoing, SendOutcome, Task};

/// The way out for packets.
pub trait Transmit {
    /// Offers one packet to `peer`.
    ///
    /// # Safety
    /// The pieces of `packet` must be readable during the call, and a piece that may be taken until
    /// it is reported.
    unsafe fn send(&mut self, peer: Task, packet: &Outgoing<'_>) -> SendOutcome;

    /// Gives `peer` a number without a packet, if there is a way for that now: otherwise nothing
    /// has changed. The number takes the place of the last one that was even or odd as this one is.
    fn signal(&mut self, _peer: Task, _number: u32) -> bool {
        false
    }

    /// Whether `peer` has given this task the number, and no later one has its place.
    fn signalled(&mut self, _peer: Task, _number: u32) -> bool {
        false
    }
}

/// Numbers of messages between two tasks, compared as they wrap around.
#[inline]
pub(crate) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

#[cfg(test)]
pub(crate) mod tests;
