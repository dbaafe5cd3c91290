//! Puts and gets between vectors, in packets.
//!
//! The target's vector travels as a description ([`crate::dgsp::description`]). A put
//! that fits a packet takes description and data in one; otherwise the data is a message of its own, whose number the
//! description tells.

use crate::abi::LAPI_NORMAL;
use crate::base::bytes::{self, Piece};
use crate::dgsp::Layout;
use crate::dgsp::description::{describe_layout, layout_of};
use crate::engine::context::Held;
use crate::engine::context::incoming::{Delivery, Incoming, Then};
use crate::engine::transfer::send::{self, broken, refuse};
use crate::engine::transfer::{assembly, deliver, reply};
use crate::proto::content::{Content, Sink};
use crate::proto::inbox::Assembly;
use crate::proto::outbox::{Body, Continuation, SendDone, Sent, Streaming};
use crate::transport::Task;
use crate::wire::packet::Head;
use std::sync::Arc;

/// What the packets of a put carry besides its data.
#[derive(Clone, Copy)]
pub struct Marks {
    /// Its number.
    pub id: u32,
    /// The target's counter, or 0.
    pub tgt_cntr: u64,
    /// Our operation, or 0.
    pub cookie: u64,
}

/// Sends a put between two vectors in packets.
///
/// # Safety
/// The data must be readable until the message is done.
pub(in crate::engine) unsafe fn send_put(
    held: &mut Held<'_>,
    tgt: Task,
    marks: Marks,
    description: &[u64],
    data: &Content,
    done: SendDone,
) -> Sent {
    let Marks { id, tgt_cntr, cookie } = marks;
    let (total, words) = (data.len() as u64, description.len() as u32);
    let described = Piece { ptr: description.as_ptr().cast(), len: size_of_val(description) };
    let core = held.core();
    if described.len + data.len() <= core.outbox.max_body() {
        let head = Head::Vector { id, get: 0, words, data: 0, total, cookie, tgt_cntr };
        // SAFETY: the caller's promise; the description lives until the call is over, and is copied when it is parked.
        return unsafe { send::send(held, tgt, &head, Body { header: described, data }, false, done) };
    }
    let second = core.outbox.number(tgt);
    let copied = data.len() <= core.options.copy_limit && core.outbox.has_buffer();
    let head = Head::Vector { id, get: 0, words, data: second, total, cookie, tgt_cntr };
    // SAFETY: the description is copied at once; the data is the caller's promise.
    unsafe {
        let sent = send_description(held, tgt, id, &head, described);
        if matches!(sent, Sent::Gone | Sent::NoMemory) {
            held.core().outbox.take_back(tgt);
            return sent;
        }
        let how = Streaming { copied, atom: 0 };
        let sent = send::stream(held, tgt, None, Continuation::Message(second), data, how, done);
        if sent == Sent::NoMemory {
            // The target waits for the data already.
            send::out_of_memory(tgt);
        }
        sent
    }
}

/// Sends the packets of a description.
///
/// # Safety
/// The description must be readable.
unsafe fn send_description(held: &mut Held<'_>, tgt: Task, id: u32, head: &Head, described: Piece) -> Sent {
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

/// Asks the target for data that lies in many places.
pub(in crate::engine) fn request(
    held: &mut Held<'_>,
    tgt: Task,
    words: &[u64],
    total: u64,
    tgt_cntr: u64,
    cookie: u64,
) -> Sent {
    let id = held.core().outbox.number(tgt);
    let head = Head::Vector { id, get: 1, words: words.len() as u32, data: 0, total, cookie, tgt_cntr };
    let described = Piece { ptr: words.as_ptr().cast(), len: size_of_val(words) };
    // SAFETY: the description lives until the call is over.
    unsafe { send_description(held, tgt, id, &head, described) }
}

/// The kernel has refused a copy: asks for packets instead.
pub fn request_runs(held: &mut Held<'_>, tgt: Task, target: &Layout, tgt_cntr: u64, cookie: u64) {
    // A peer that has gone meanwhile is reported when somebody waits for the answer.
    if request(held, tgt, &describe_layout(target), target.len(), tgt_cntr, cookie) == Sent::NoMemory {
        send::out_of_memory(tgt);
    }
}

/// The kernel has refused a copy: puts by packets instead.
///
/// # Safety
/// The data must be readable until the message is done.
pub unsafe fn put_runs(
    held: &mut Held<'_>,
    tgt: Task,
    marks: Marks,
    origin: &Arc<Layout>,
    target: &Layout,
    done: SendDone,
) -> Sent {
    let content = Content::Scattered(origin.clone());
    // SAFETY: the caller's promise.
    unsafe { send_put(held, tgt, marks, &describe_layout(target), &content, done) }
}

/// A packet with a vector's description has arrived, or the first one.
pub fn arrived(held: &mut Held<'_>, src: Task, head: &Head, body: Piece) {
    let Head::Vector { id, get, words, data, total, cookie, tgt_cntr } = *head else {
        return broken(held, src);
    };
    let described = words as usize * 8;
    let (get, empty) = (get != 0, Box::default());
    let mut incoming = Incoming { words: empty, get, data, total, cookie, tgt_cntr };
    if described <= body.len {
        // SAFETY: the body is in the packet.
        incoming.words = unsafe { bytes::copy_aligned(body.part(0, described)) };
        return known(held, src, id, &incoming, body.part(described, body.len - described));
    }
    // As many as the packet says, of which memory is taken only as they arrive.
    let Some(words) = bytes::zeroed(words as usize) else { return refuse(held, src, id) };
    incoming.words = words;
    let sink = Sink::Buffer(incoming.words.as_mut_ptr() as usize);
    let then = Then::Describe(Box::new(incoming));
    let assembly = Assembly { sink, total: described as u64, arrived: 0, then };
    if let Some(Then::Describe(incoming)) = assembly::begin(held, src, id, assembly, body) {
        self::described(held, src, id, *incoming);
    }
}

/// The description is complete.
pub fn described(held: &mut Held<'_>, src: Task, id: u32, incoming: Incoming) {
    known(held, src, id, &incoming, Piece::EMPTY);
}

fn known(held: &mut Held<'_>, src: Task, id: u32, incoming: &Incoming, here: Piece) {
    let Some(layout) = layout_of(&incoming.words).filter(|layout| layout.len() == incoming.total) else {
        // The data of a put may come as a message of its own.
        return refuse(held, src, if incoming.get { id } else { incoming.data });
    };
    if incoming.get {
        deliver::confirm(held, src, id);
        return reply::serve_get(held, src, &Content::from(layout), incoming.cookie, incoming.tgt_cntr);
    }
    let sink = Sink::from(layout);
    let delivery = |id| Delivery {
        src,
        id: Some(id),
        tgt_cntr: incoming.tgt_cntr,
        cookie: incoming.cookie,
        handler: None,
        parameter: 0,
        ret_flags: LAPI_NORMAL,
        bytes: incoming.total,
    };
    if here.len as u64 == incoming.total {
        // SAFETY: the origin's program says that it may write there; the data is in the packet.
        unsafe { deliver::take(held, &sink, 0, here) };
        return deliver::delivered(held, delivery(id));
    }
    deliver::confirm(held, src, id);
    let delivery = delivery(incoming.data);
    assembly::begin_landing(held, incoming.data, sink, incoming.total, delivery, Piece::EMPTY);
}
