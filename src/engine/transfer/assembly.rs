//! Messages of several packets, put together.

use crate::engine::context::Held;
use crate::engine::context::core::flow;
use crate::engine::context::incoming::{Delivery, Then};
use crate::engine::transfer::deliver::{delivered, take};
use crate::engine::transfer::send::broken;
use crate::memory::bytes::Piece;
use crate::proto::content::Sink;
use crate::proto::inbox::{Assembly, Misplaced};
use crate::transport::Task;

/// Up to this many bytes of data without a message are not checked.
const EARLY_UNNOTICED: usize = 1 << 20;

/// The beginning of a message: its first bytes, and what came before them. Returns what follows if
/// that is all of it.
#[must_use]
pub fn begin(
    held: &mut Held<'_>,
    src: Task,
    id: u32,
    assembly: Assembly<Then>,
    first: Piece,
) -> Option<Then> {
    held.core().inbox.begin(src, id, assembly);
    let mut complete = None;
    if first.len != 0 {
        complete = more_data(held, src, id, 0, first);
    }
    for early in held.core().inbox.early(src, id) {
        // Only the last packet makes a message complete, and it leaves the inbox then.
        complete = more_data(held, src, id, early.offset, early.bytes()).or(complete);
    }
    complete
}

/// Begins a message that is delivered when it is complete, as number `id` of its sender.
pub fn begin_delivery(
    held: &mut Held<'_>,
    id: u32,
    sink: Sink,
    total: u64,
    delivery: Delivery,
    first: Piece,
) {
    let assembly = Assembly { sink, total, arrived: 0, then: Then::Deliver(delivery) };
    if let Some(Then::Deliver(delivery)) = begin(held, delivery.src, id, assembly, first) {
        delivered(held, delivery);
    }
}

/// More data of a message under way. Returns what follows if that was the last of it.
#[inline]
#[must_use]
pub fn more_data(held: &mut Held<'_>, src: Task, id: u32, offset: u64, body: Piece) -> Option<Then> {
    match held.core().inbox.place(src, id, offset, body.len) {
        Ok((sink, complete)) => {
            // SAFETY: inside of what the message was promised, checked by `place`.
            unsafe { take(held, &sink, offset, body) };
            return complete.map(|assembly| assembly.then);
        }
        // SAFETY: the body is in the packet.
        Err(Misplaced::Unknown) => unsafe {
            let core = held.core();
            if core.inbox.keep(src, id, offset, body) > EARLY_UNNOTICED {
                flow::kept(core, src);
            }
        },
        Err(Misplaced::Outside) => broken(held, src),
    }
    None
}
