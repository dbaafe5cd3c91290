//! Bulk transfer: long messages between tasks that reach each other's memory by keys.
//!
//! The task that starts an operation registers the long pieces of its data, the *parts*
//! ([`crate::proto::pieces`]), and sends their addresses and keys; contiguous data is one part. The
//! other task makes the accesses, at most
//! [`ACCESSES`](crate::engine::context::direct_copy::ACCESSES) at a time, because only it knows the
//! other place, or because its memory would have to be registered first. What is in no part goes in
//! packets when the accesses are over:
//!
//! | operation | the request | the accesses | the rest | the message is complete |
//! |---|---|---|---|---|
//! | put | [`Head::Vector`] with parts | the target reads | asked for by [`Head::Fetched`] | with the rest |
//! | get | [`Head::Vector`] with parts | the target writes, then [`Head::Written`] | replies | with both, which may come in any order |
//! | active message | [`Head::PartsToSend`] | the target reads | as for a put | as for a put |
//!
//! A message with more parts than a request has room for is divided into batches:
//! [`Head::NextParts`] asks for the next one when the accesses of one are over, and
//! [`Head::MoreParts`], which is one packet, brings it. So a bounded part of the data is registered
//! at a time, and the header handler of an active message runs on arrival of the first packet.
//!
//! The origin of a put or get knows both layouts, so a part is long at both. The origin of an
//! active message does not know what its header handler returns: the target refuses the parts when
//! they are cut into short pieces there. When a registration for the request is refused, or an
//! access fails, all data goes in packets, from its beginning ([`registration`] reports the first
//! failure); when one of a later batch is refused, what is in no part before it.

use crate::dgsp::Layout;
use crate::dgsp::description::layout_of;
use crate::engine::context::direct_copy::{DirectCopy, Keyed};
use crate::engine::context::incoming::{ActiveMessage, Delivery, Incoming, Parts, Then};
use crate::engine::context::request::{Get, Hint, Layouts, Marks, Message, Places, Put};
use crate::engine::context::{Core, Held};
use crate::engine::transfer::send::{self, broken, send_control};
use crate::engine::transfer::{assembly, deliver, direct, impossible, registration, reply, vector_wire};
use crate::error::Result;
use crate::memory::bytes::{Piece, is_memory, pad8};
use crate::proto::content::{Content, Sink};
use crate::proto::inbox::Assembly;
use crate::proto::ops::{Divided, Op, Registered};
use crate::proto::outbox::{Body, SendDone, Sent};
use crate::proto::pieces::{self, Batch, Span};
use crate::transport::{Access, Task};
use crate::wire::key::Part;
use crate::wire::packet::{Head, VECTOR_BY_KEYS, VECTOR_GET, VECTOR_MORE, VECTOR_PUT};
use std::sync::Arc;

/// The first parts of data that go by bulk transfer, at most `most` of them. `None`: all parts
/// together have too few bytes.
fn first_parts(
    held: &mut Held<'_>,
    peer: Task,
    (here, there): (&Layout, Option<&Layout>),
    hint: Hint,
    most: usize,
) -> Option<Batch> {
    let core = held.core();
    let minimum = if hint.path() == Hint::Bulk { 1 } else { core.options.bulk.minimum as u64 };
    let least = core.outbox.max_body_to(peer) as u64;
    let batch = core.options.bulk.batch;
    let first = pieces::divide(here, there, least, 0, most.min(batch));
    let (mut bytes, mut next) = (first.bytes(), first.next);
    while bytes < minimum.max(1) {
        let following = pieces::divide(here, there, least, next?, batch);
        (bytes, next) = (bytes + following.bytes(), following.next);
    }
    Some(first)
}

/// How many parts a packet has room for behind `before` bytes.
fn room(core: &Core, before: usize) -> usize {
    core.outbox.max_body().saturating_sub(before) / (Part::WORDS * 8)
}

/// Registers the first parts of a message, and adds their words to `words`. `None`: they cannot
/// be registered.
fn expose(
    core: &mut Core,
    peer: Task,
    data: Content,
    there: Option<&Arc<Layout>>,
    batch: &Batch,
    (access, hint, atom): (Access, Hint, usize),
    words: &mut Vec<u64>,
) -> Option<Box<Registered>> {
    let one_rail = hint.is_one_rail();
    let mut registered = registration::register_parts(core, peer, &batch.parts, access, one_rail, words)?;
    let (parts, next) = (batch.ranges(), batch.next);
    registered.divided = Some(Divided { data, there: there.cloned(), parts, next, one_rail, atom });
    Some(registered)
}

/// Registers the first parts of a put or get. Returns them, the words of the request (the parts,
/// whose number stands in the first, then the target's layout), and what [`Head::Vector`]'s `op`
/// says of the parts. `None`: there are too few, or they cannot be registered.
fn prepare(
    held: &mut Held<'_>,
    peer: Task,
    places: &Places,
    (access, hint): (Access, Hint),
) -> Option<(Box<Registered>, Vec<u64>, u16)> {
    let contiguous;
    let Layouts { local, remote, description } = match *places {
        Places::Layouts(ref layouts) => &**layouts,
        Places::Contiguous { local, remote, len } => {
            contiguous = Layouts::contiguous(local, remote, len);
            &contiguous
        }
    };
    let batch = first_parts(held, peer, (local, Some(remote)), hint, usize::MAX)?;
    let mut words = Vec::with_capacity(1 + batch.parts.len() * Part::WORDS);
    words.push(batch.parts.len() as u64);
    let (data, how) = (places.local_content(), (access, hint, 0));
    let registered = expose(held.core(), peer, data, Some(remote), &batch, how, &mut words)?;
    words.extend(description);
    Some((registered, words, VECTOR_BY_KEYS | if batch.next.is_some() { VECTOR_MORE } else { 0 }))
}

/// Inserts the operation of a put, and returns its cookie. The operation `completion` that waits
/// for the put's completion, if there is one, waits for the accesses as well.
fn begin(core: &mut Core, tgt: Task, op: Op, completion: u64) -> u64 {
    match core.ops.get_mut(tgt, completion) {
        Some(waiting) => {
            *waiting = op;
            completion
        }
        None => core.ops.insert(tgt, op, false),
    }
}

/// Asks the target to read the long pieces of a put. `None`: there are too few, or they cannot
/// be registered.
///
/// # Safety
/// The data must be readable until the put is done.
pub unsafe fn put(held: &mut Held<'_>, put: &Put, marks: Marks) -> Option<Sent> {
    let (tgt, total) = (put.tgt, put.places.len() as u64);
    let (registered, words, by_keys) = prepare(held, tgt, &put.places, (Access::Read, put.hint))?;
    let core = held.core();
    let second = core.outbox.number(tgt);
    let done = SendDone { bytes: total, ..put.done };
    let op = Op::rendezvous(done, put.cmpl_cntr, second, 0, Some(registered));
    let cookie = begin(core, tgt, op, marks.cookie);
    let head = Head::Vector {
        id: marks.id,
        op: VECTOR_PUT | by_keys,
        words: words.len() as u32,
        data: second,
        total,
        cookie,
        tgt_cntr: marks.tgt_cntr,
    };
    // SAFETY: the words live until the call is over, and are copied at once.
    let sent = unsafe { vector_wire::send_words(held, tgt, marks.id, &head, &words) };
    if matches!(sent, Sent::Gone | Sent::NoMemory) {
        let core = held.core();
        registration::give_up(core, tgt, cookie);
        core.outbox.take_back(tgt);
        return Some(sent);
    }
    Some(Sent::Queued)
}

/// Asks the target to write the long pieces of a get, and returns its operation. `None`: there are
/// too few, or they cannot be registered.
pub fn get(
    held: &mut Held<'_>,
    get: &Get,
    op: impl FnOnce(Sink, Option<Box<Registered>>) -> Op,
) -> Option<(u64, Sent)> {
    let tgt = get.tgt;
    let (registered, words, by_keys) = prepare(held, tgt, &get.places, (Access::Write, get.hint))?;
    let cookie = held.core().ops.insert(tgt, op(get.places.local_sink(), Some(registered)), true);
    let total = get.places.len() as u64;
    Some((cookie, vector_wire::get(held, tgt, (cookie, get.tgt_cntr), total, by_keys, &words)))
}

/// Asks the target to read the long pieces of an active message: the request is the packet for
/// which the header handler runs, and has the parts that find room in it. `None`: there are too
/// few, or they cannot be registered.
///
/// # Safety
/// The data must be readable until the message is done, the header during the call.
pub unsafe fn active_message(held: &mut Held<'_>, message: &Message) -> Option<Result<()>> {
    let (tgt, total) = (message.tgt, message.data.len() as u64);
    let here = Span::of_content(&message.data).into_layout();
    let most = room(held.core(), pad8(message.header.len));
    let batch = first_parts(held, tgt, (&here, None), message.hint, most)?;
    let core = held.core();
    let mut words = Vec::with_capacity(batch.parts.len() * Part::WORDS);
    let how = (Access::Read, message.hint, message.atom);
    let registered = expose(core, tgt, message.data.clone(), None, &batch, how, &mut words)?;
    let id = core.outbox.number(tgt);
    let done = SendDone { bytes: total, ..message.done };
    let op = Op::rendezvous(done, message.cmpl_cntr, id, 0, Some(registered));
    let cookie = core.ops.insert(tgt, op, false);
    let head = Head::PartsToSend {
        id,
        uhdr_len: message.header.len as u16,
        handler: message.handler,
        shape: message.shape,
        total,
        cookie,
        tgt_cntr: message.tgt_cntr,
        atoms: message.atom != 0,
        more: batch.next.is_some(),
    };
    let words = Content::Piece(vector_wire::bytes_of(&words));
    let body = Body { header: message.header, data: &words };
    // SAFETY: the header is the caller's promise; parked, it is copied, as the words are.
    let sent = unsafe { send::send(held, tgt, &head, body, true, SendDone::nothing(tgt)) };
    Some(send::requested(held.core(), tgt, cookie, true, sent))
}

/// The target has written the parts of a get that were registered.
pub fn written(held: &mut Held<'_>, src: Task, cookie: u64) {
    let Some(Op::Get { registered: Some(registered), len, arrived, .. }) =
        held.core().ops.get_mut(src, cookie)
    else {
        return broken(held, src);
    };
    *arrived += registered.before + registered.bytes;
    if *arrived >= *len {
        reply::got(held, src, cookie);
    }
}

/// The target has made its accesses to the parts that it knows: registers the next ones instead.
/// When that is refused, what is left goes in packets with the rest.
pub fn next_wanted(held: &mut Held<'_>, src: Task, cookie: u64) {
    let core = held.core();
    let (registered, access) = match core.ops.get_mut(src, cookie) {
        Some(Op::Rendezvous { registered, fetched: false, .. }) => (registered, Access::Read),
        Some(Op::Get { registered, .. }) => (registered, Access::Write),
        _ => return broken(held, src),
    };
    let known = registered.as_mut().and_then(|known| {
        let Divided { data, there, next, one_rail, .. } = known.divided.as_mut()?;
        let next = next.take()?;
        known.before += std::mem::take(&mut known.bytes);
        Some((std::mem::take(&mut known.keys), data.clone(), there.clone(), next, *one_rail))
    });
    let Some((keys, data, there, next, one_rail)) = known else { return broken(held, src) };
    registration::withdraw_keys(core, src, &keys);
    let least = core.outbox.max_body_to(src) as u64;
    let here = Span::of_content(&data).into_layout();
    let mut batch =
        pieces::divide(&here, there.as_deref(), least, next, room(core, 0).min(core.options.bulk.batch));
    let mut words = Vec::with_capacity(batch.parts.len() * Part::WORDS);
    let more = registration::register_parts(core, src, &batch.parts, access, one_rail, &mut words);
    if more.is_none() {
        batch = Batch::default();
    }
    let following = batch.next.is_some();
    if let Some(Op::Rendezvous { registered: Some(known), .. } | Op::Get { registered: Some(known), .. }) =
        core.ops.get_mut(src, cookie)
    {
        known.add(more, batch);
    }
    let head = Head::MoreParts { cookie, more: following };
    let words = Content::Piece(vector_wire::bytes_of(&words));
    // SAFETY: parked, the words are copied.
    let sent = unsafe { send::send(held, src, &head, Body::data(&words), true, SendDone::nothing(src)) };
    if sent == Sent::NoMemory {
        held.core().end_without_memory(src);
    }
}

/// The parts have arrived that this task has asked for. Those that are malformed are dropped.
pub fn more_parts(held: &mut Held<'_>, src: Task, cookie: u64, more: bool, body: Piece) {
    let core = held.core();
    let Some(mut transfer) = core.copies.take_awaiting(src, cookie) else { return broken(held, src) };
    let least = core.outbox.max_body_to(src) as u64;
    let Some(keyed) = transfer.keyed.as_deref_mut() else { return };
    let parts = if body.len == 0 && !more {
        // The origin cannot register them.
        Some(Parts { list: Box::default(), more })
    } else {
        Parts::read(body, more, keyed.end(), keyed.total)
    };
    let Some(parts) = parts else {
        core.copies.await_parts(transfer);
        return broken(held, src);
    };
    // The request had no room for a part: it was not known how long they are here.
    let (first, refused) = (keyed.end() == 0, keyed.total);
    if first && !keyed.here.is_long_in(&parts.list, least) {
        return send_control(core, src, &Head::Fetched { cookie, refused });
    }
    keyed.add(parts);
    direct::begin(held, transfer);
}

/// A packet with a vector's description has arrived, or the first one.
pub fn vector_arrived(held: &mut Held<'_>, src: Task, head: &Head, body: Piece) {
    let Head::Vector { id, .. } = *head else { return broken(held, src) };
    if let Some((incoming, here)) = vector_wire::arrived(held, src, head, body) {
        vector_known(held, src, id, &incoming, here);
    }
}

/// A message of several packets has got the last one. Returns what follows when that was data.
pub fn more_data(held: &mut Held<'_>, src: Task, id: u32, offset: u64, body: Piece) -> Option<Delivery> {
    match assembly::more_data(held, src, id, offset, body)? {
        Then::Deliver(delivery) => Some(delivery),
        Then::Describe(incoming) => {
            vector_known(held, src, id, &incoming, Piece::EMPTY);
            None
        }
    }
}

/// The description of a vector is complete; `here` is data that came with it.
fn vector_known(held: &mut Held<'_>, src: Task, id: u32, incoming: &Incoming, here: Piece) {
    if incoming.op & VECTOR_BY_KEYS == 0 {
        return vector_wire::known(held, src, id, incoming, here);
    }
    let Some((parts, layout)) = requested(incoming) else {
        return impossible::vector(held, src, id, incoming, here);
    };
    deliver::described(held, src, id, incoming.op);
    let (layout, total) = (Arc::new(layout), incoming.total);
    let keyed = Keyed::new(parts, Span::new(layout.clone()), total);
    if incoming.op & VECTOR_GET != 0 {
        return direct::begin(held, DirectCopy::serve(src, incoming.cookie, incoming.tgt_cntr, keyed));
    }
    let delivery = Delivery::without_handler(src, incoming.data, incoming.tgt_cntr, incoming.cookie, total);
    let (sink, then) = (Sink::Scattered(layout, 0), Then::Deliver(delivery));
    held.core().inbox.begin(src, incoming.data, Assembly { sink, total, arrived: 0, then });
    direct::begin(held, DirectCopy::pull_by_keys(src, incoming.data, incoming.cookie, keyed));
}

/// The parts of a put or get, and the layout here. `None`: the request is malformed, or of memory
/// that this task cannot have.
fn requested(incoming: &Incoming) -> Option<(Parts, Layout)> {
    let (count, words) = incoming.words.split_first()?;
    let len = usize::try_from(*count).ok()?.checked_mul(Part::WORDS)?;
    let (parts, description) = words.split_at_checked(len)?;
    let layout = layout_of(description)
        .filter(|layout| layout.len() == incoming.total && is_memory(0, incoming.total))?;
    let more = incoming.op & VECTOR_MORE != 0;
    Some((Parts { list: Part::list(parts, incoming.total)?, more }, layout))
}

/// The header handler of a message has given its places, some of which are no buffer, or the origin
/// has exposed parts of it: reads these, if they are long here as well, or asks for packets.
pub fn fetch(
    held: &mut Held<'_>,
    message: &ActiveMessage,
    id: u32,
    sink: Sink,
    delivery: Delivery,
    (parts, total): (Parts, u64),
) {
    let (src, cookie) = (message.src, message.cookie);
    let core = held.core();
    let least = core.outbox.max_body_to(src) as u64;
    let here = Span::of_sink(&sink, total).filter(|here| here.is_long_in(&parts.list, least));
    core.inbox.begin(src, id, Assembly { sink, total, arrived: 0, then: Then::Deliver(delivery) });
    match here {
        Some(here) => {
            let keyed = Keyed::new(parts, here, total);
            direct::begin(held, DirectCopy::pull_by_keys(src, id, cookie, keyed));
        }
        None => send_control(core, src, &Head::Fetched { cookie, refused: total }),
    }
}
