//! The calls of the manual, one file per family, without C's types: addresses are numbers, errors are values.
//!
//! A call checks what it was given (all of it with ERROR_CHK on; always what would otherwise harm the library
//! itself), starts the operation in the engine, and lets the dispatcher have one round, as the manual has it for most
//! calls.

pub mod active_message;
pub mod address;
pub mod check;
pub mod dgsp;
pub mod env;
pub mod fence;
pub mod fork;
pub mod init;
pub mod lock_sharing;
pub mod progress;
pub mod put_get;
pub mod recovery;
pub mod request;
pub mod rmw;
pub mod unbuilt;
pub mod vector;

pub use crate::engine::context::{Context, Held};
use crate::engine::progress::{dispatcher, wait};
use crate::transport::Task;

/// The longest user header in bytes: MAX_UHDR_SZ.
pub const MAX_UHDR: usize = 1024;

/// Ends a call of the program that sends to `tgt`: one round of the dispatcher, unless a handler made the call; and when what
/// waits for room there takes too many bytes, a pause in which the target can make some.
#[inline]
pub(crate) fn nudge(held: &mut Held<'_>, tgt: Task) {
    dispatcher::turn(held);
    let core = held.core();
    if core.outbox.waiting() && core.outbox.bytes(tgt) > core.options.lane_bytes {
        wait::throttle(held, tgt);
    }
    held.wake_waiters();
}
