//! Puts and gets between vectors, in packets.
//!
//! The target's vector travels as a description ([`crate::dgsp::description`]). A put that fits a
//! packet takes description and data in one; otherwise the data, if there is any, is a message of
//! its own, whose number the description contains.

use crate::dgsp::Layout;
use crate::dgsp::description::layout_of;
use crate::engine::context::Held;
use crate::engine::context::incoming::{Delivery, Incoming, Then};
use crate::engine::context::request::{Layouts, Marks};
use crate::engine::transfer::send::{self, broken, refuse};
use crate::engine::transfer::{assembly, deliver, impossible, reply};
use crate::memory::bytes::{self, Piece, is_memory};
use crate::proto::content::{Content, Sink};
use crate::proto::inbox::Assembly;
use crate::proto::outbox::{Body, Continuation, SendDone, Sent, Streaming};
use crate::transport::Task;
use crate::wire::packet::{Head, VECTOR_ALONE, VECTOR_GET, VECTOR_PUT};

/// Sends a put between two vectors in packets.
///
/// # Safety
/// The data must be readable until the message is done.
pub(in crate::engine) unsafe fn put(
    held: &mut Held<'_>,
    tgt: Task,
    marks: Marks,
    layouts: &Layouts,
    copied: bool,
    done: SendDone,
) -> Sent {
    let Marks { id, tgt_cntr, cookie } = marks;
    let data = &Content::Scattered(layouts.local.clone());
    let (total, words) = (data.len() as u64, layouts.description.len() as u32);
    let described = bytes_of(&layouts.description);
    let core = held.core();
    if described.len + data.len() <= core.outbox.max_body() {
        let head = Head::Vector { id, op: VECTOR_PUT, words, data: 0, total, cookie, tgt_cntr };
        // SAFETY: the caller's promise; the description lives until the call is over, and is copied
        // when it is parked.
        return unsafe { send::send(held, tgt, &head, Body { header: described, data }, false, done) };
    }
    if total == 0 {
        // No data follows under a number of its own: the description is the whole message.
        let head = Head::Vector { id, op: VECTOR_PUT, words, data: 0, total, cookie, tgt_cntr };
        // SAFETY: the description is the head's, and is copied at once.
        return unsafe { send_words(held, tgt, id, &head, &layouts.description) };
    }
    let second = core.outbox.number(tgt);
    let head = Head::Vector { id, op: VECTOR_PUT, words, data: second, total, cookie, tgt_cntr };
    // SAFETY: the description is copied at once; the data is the caller's promise.
    unsafe {
        let sent = send_words(held, tgt, id, &head, &layouts.description);
        if matches!(sent, Sent::Gone | Sent::NoMemory) {
            held.core().outbox.take_back(tgt);
            return sent;
        }
        let how = Streaming { copied, atom: 0 };
        let sent = send::stream(held, tgt, None, Continuation::Message(second), data, how, done);
        if sent == Sent::NoMemory {
            // The target waits for the data already.
            held.core().end_without_memory(tgt);
        }
        sent
    }
}

/// Sends the packets of a description, and of what is before it.
///
/// # Safety
/// The head must be one whose words these are.
pub(in crate::engine) unsafe fn send_words(
    held: &mut Held<'_>,
    tgt: Task,
    id: u32,
    head: &Head,
    words: &[u64],
) -> Sent {
    let described = bytes_of(words);
    let (content, quiet) = (Content::Piece(described), SendDone::nothing(tgt));
    // SAFETY: the caller's promise; both ways copy what they cannot send at once.
    unsafe {
        if described.len <= held.core().outbox.max_body() {
            return send::send(held, tgt, head, Body::data(&content), true, quiet);
        }
        let how = Streaming { copied: true, atom: 0 };
        send::stream(held, tgt, Some((head, Piece::EMPTY)), Continuation::Message(id), &content, how, quiet)
    }
}

/// Words as they travel: valid as long as they live.
pub(in crate::engine) fn bytes_of(words: &[u64]) -> Piece {
    Piece { ptr: words.as_ptr().cast(), len: size_of_val(words) }
}

/// Asks the target for the `total` bytes of a get, which is operation `cookie`. The words are its
/// vector, and what is before it by `by_keys` as in [`Head::Vector`]'s `op`.
pub(in crate::engine) fn get(
    held: &mut Held<'_>,
    tgt: Task,
    (cookie, tgt_cntr): (u64, u64),
    total: u64,
    by_keys: u16,
    words: &[u64],
) -> Sent {
    let outbox = &mut held.core().outbox;
    let (id, alone) =
        if bytes_of(words).len <= outbox.max_body() { (0, VECTOR_ALONE) } else { (outbox.number(tgt), 0) };
    let (op, count) = (VECTOR_GET | by_keys | alone, words.len() as u32);
    let head = Head::Vector { id, op, words: count, data: 0, total, cookie, tgt_cntr };
    // SAFETY: the words live until the call is over.
    let sent = unsafe { send_words(held, tgt, id, &head, words) };
    if alone == 0 && matches!(sent, Sent::Gone | Sent::NoMemory) {
        held.core().outbox.take_back(tgt);
    }
    sent
}

/// A packet with a vector's description has arrived, or the first one. Returns the description when
/// it is complete, and data that came with it.
pub fn arrived(held: &mut Held<'_>, src: Task, head: &Head, body: Piece) -> Option<(Incoming, Piece)> {
    let Head::Vector { id, op, words, data, total, cookie, tgt_cntr } = *head else {
        broken(held, src);
        return None;
    };
    let described = (words as usize).checked_mul(8);
    let is_here = described.is_some_and(|described| described <= body.len);
    if op & VECTOR_ALONE != 0 && !(is_here && op & VECTOR_GET != 0) {
        broken(held, src);
        return None;
    }
    let Some(described) = described else {
        refuse(held, src, id);
        return None;
    };
    let mut incoming = Incoming { words: Box::default(), op, data, total, cookie, tgt_cntr };
    if is_here {
        // SAFETY: the body is in the packet.
        incoming.words = unsafe { bytes::aligned(body.part(0, described)) };
        return Some((incoming, body.part(described, body.len - described)));
    }
    // As many as the packet gives; memory for them is used only as they arrive.
    let Some(words) = bytes::zeroed(words as usize) else {
        refuse(held, src, id);
        return None;
    };
    incoming.words = words;
    let sink = Sink::Buffer(incoming.words.as_mut_ptr() as usize);
    let then = Then::Describe(Box::new(incoming));
    let assembly = Assembly { sink, total: described as u64, arrived: 0, then };
    match assembly::begin(held, src, id, assembly, body) {
        Some(Then::Describe(incoming)) => Some((*incoming, Piece::EMPTY)),
        Some(Then::Deliver(_)) | None => None,
    }
}

/// The description is complete; `here` is data that came with it.
pub fn known(held: &mut Held<'_>, src: Task, id: u32, incoming: &Incoming, here: Piece) {
    let get = incoming.op & VECTOR_GET != 0;
    let of_total = |layout: &Layout| layout.len() == incoming.total && is_memory(0, incoming.total);
    let Some(layout) = layout_of(&incoming.words).filter(of_total) else {
        return impossible::vector(held, src, id, incoming, here);
    };
    if get {
        deliver::described(held, src, id, incoming.op);
        return reply::serve_get(held, src, &Content::from(layout), incoming.cookie, incoming.tgt_cntr);
    }
    let sink = Sink::from(layout);
    let delivery =
        |id| Delivery::without_handler(src, id, incoming.tgt_cntr, incoming.cookie, incoming.total);
    if here.len as u64 == incoming.total {
        // SAFETY: the origin's program says that it may write there; the data is in the packet.
        unsafe { deliver::take(held, &sink, 0, here) };
        return deliver::delivered(held, delivery(id));
    }
    deliver::confirm(held, src, id);
    let delivery = delivery(incoming.data);
    assembly::begin_delivery(held, incoming.data, sink, incoming.total, delivery, Piece::EMPTY);
}
