//! Puts and gets in packets, whatever their layouts.

use crate::engine::context::Held;
use crate::engine::context::request::{Marks, Places};
use crate::engine::transfer::send::{self, send_request};
use crate::engine::transfer::vector_wire;
use crate::memory::bytes::Piece;
use crate::proto::content::Content;
use crate::proto::outbox::{Body, Continuation, SendDone, Sent, Streaming};
use crate::transport::Task;
use crate::wire::packet::Head;

/// Sends a put in packets; what is longer than one is copied when it has to wait, if
/// that is wanted.
///
/// # Safety
/// The data must be readable until the message is done.
#[inline]
pub(in crate::engine) unsafe fn put(
    held: &mut Held<'_>,
    tgt: Task,
    marks: Marks,
    places: &Places,
    copied: bool,
    done: SendDone,
) -> Sent {
    let Marks { id, tgt_cntr, cookie } = marks;
    let (local, addr, len) = match *places {
        Places::Contiguous { local, remote, len } => (local, remote, len),
        Places::Layouts(ref layouts) => {
            // SAFETY: the caller's promise.
            return unsafe { vector_wire::put(held, tgt, marks, layouts, copied, done) };
        }
    };
    let data = Content::Piece(Piece { ptr: local as *const u8, len });
    if len <= held.core().outbox.max_body_to(tgt) {
        let head = Head::Put { id, addr, tgt_cntr, cookie, total: 0 };
        // SAFETY: the caller's promise.
        return unsafe { send::send(held, tgt, &head, Body::data(&data), false, done) };
    }
    let how = Streaming { copied, atom: 0 };
    let head = Head::Put { id, addr, tgt_cntr, cookie, total: len as u64 };
    let (first, next) = (Some((&head, Piece::EMPTY)), Continuation::Message(id));
    // SAFETY: the caller's promise.
    unsafe { send::stream(held, tgt, first, next, &data, how, done) }
}

/// Asks the target for the data of a get, which is operation `cookie`.
pub(in crate::engine) fn get(
    held: &mut Held<'_>,
    tgt: Task,
    tgt_cntr: u64,
    cookie: u64,
    places: &Places,
) -> Sent {
    match *places {
        Places::Contiguous { remote, len, .. } => {
            send_request(held.core(), tgt, &Head::Get { addr: remote, len: len as u64, cookie, tgt_cntr })
        }
        Places::Layouts(ref layouts) => {
            let (total, words) = (places.len() as u64, &layouts.description);
            vector_wire::get(held, tgt, (cookie, tgt_cntr), total, 0, words)
        }
    }
}
