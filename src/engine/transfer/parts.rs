//! Bulk transfer of messages whose data lies in many places: piece by piece.
//!
//! The task that starts an operation registers the long pieces of its data, the *parts* ([`crate::proto::pieces`]), and sends their
//! addresses and keys; the other task makes the accesses, at most [`ACCESSES`](crate::engine::context::direct_copy::ACCESSES) at a
//! time. What is in no part goes in packets when the accesses are over:
//!
//! | operation | the request | the accesses | the rest | the message is complete |
//! |---|---|---|---|---|
//! | put | [`Head::Vector`] with parts | the target reads | asked for by [`Head::Fetched`] | with the rest |
//! | get | [`Head::Vector`] with parts | the target writes, then [`Head::Written`] | replies | with both, which may come in any order |
//! | active message | [`Head::PartsToSend`] | the target reads | as for a put | as for a put |
//!
//! The origin of a put or get knows both layouts, so a part is long at both. The origin of an active message does not know what
//! its header handler returns: the target refuses the parts when they are cut into short pieces there. When a registration is
//! refused, or an access fails, all data goes in packets, from its beginning.

use crate::base::bytes::{Piece, pad8};
use crate::dgsp::Layout;
use crate::dgsp::description::layout_of;
use crate::engine::context::Held;
use crate::engine::context::direct_copy::{DirectCopy, Keyed};
use crate::engine::context::incoming::{ActiveMessage, Delivery, Incoming, Then};
use crate::engine::context::request::{Get, Hint, Layouts, Marks, Message, Places, Put};
use crate::engine::transfer::send::{self, broken, not_sent, refuse, send_control};
use crate::engine::transfer::{assembly, bulk, deliver, direct, registration, vector_wire};
use crate::error::Result;
use crate::proto::content::{Content, Sink};
use crate::proto::inbox::Assembly;
use crate::proto::ops::{Divided, Op, Registered};
use crate::proto::outbox::{Body, SendDone, Sent};
use crate::proto::pieces::{self, Range, Span};
use crate::transport::{Access, Task};
use crate::wire::key::Part;
use crate::wire::packet::{Head, VECTOR_BY_KEYS, VECTOR_GET, VECTOR_PUT};
use std::sync::Arc;

/// The parts of `total` bytes of data that go by bulk transfer. `None`: they are too many, or too few bytes.
fn parts_of(
    held: &mut Held<'_>,
    peer: Task,
    here: &Layout,
    there: Option<&Layout>,
    hint: Hint,
) -> Option<Vec<(u64, Piece)>> {
    let core = held.core();
    let minimum = if hint.path() == Hint::Bulk { 1 } else { core.options.bulk.minimum as u64 };
    let parts = pieces::divide(here, there, core.outbox.max_body_to(peer) as u64)?;
    let bytes: u64 = parts.iter().map(|(_, piece)| piece.len as u64).sum();
    (bytes >= minimum.max(1)).then_some(parts)
}

/// Where the parts stand in the data.
fn ranges_of(parts: &[(u64, Piece)]) -> Vec<Range> {
    parts.iter().map(|(from, piece)| (*from, piece.len as u64)).collect()
}

/// The words of a request for a put or get: the parts, then the target's layout. Their number stands in the first.
fn request(parts: usize) -> Vec<u64> {
    let mut words = Vec::with_capacity(1 + parts * Part::WORDS);
    words.push(parts as u64);
    words
}

/// Asks the target to read the long pieces of a put. `None`: there are too few, or they cannot be registered.
///
/// # Safety
/// The data must be readable until the put is done.
pub unsafe fn put(held: &mut Held<'_>, put: &Put, marks: Marks) -> Option<Sent> {
    let Places::Layouts(layouts) = &put.places else { return None };
    let Layouts { local, remote, description } = &**layouts;
    let tgt = put.tgt;
    let parts = parts_of(held, tgt, local, Some(remote), put.hint)?;
    let core = held.core();
    let mut words = request(parts.len());
    let mut registered = registration::register_parts(core, tgt, &parts, Access::Read, put.hint, &mut words)?;
    let parts = ranges_of(&parts);
    registered.divided = Some(Divided { data: Content::Scattered(local.clone()), parts, atom: 0 });
    words.extend(description);
    let second = core.outbox.number(tgt);
    let done = SendDone { bytes: local.len(), ..put.done };
    let op = Op::rendezvous(done, put.cmpl_cntr, second, 0, Some(registered));
    let cookie = bulk::begin(core, tgt, op, marks.cookie);
    let head = Head::Vector {
        id: marks.id,
        op: VECTOR_PUT | VECTOR_BY_KEYS,
        words: words.len() as u32,
        data: second,
        total: local.len(),
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

/// Asks the target to write the long pieces of a get, and returns its operation. `None`: there are too few, or they cannot be
/// registered.
pub fn get(
    held: &mut Held<'_>,
    get: &Get,
    op: impl FnOnce(Sink, Option<Box<Registered>>) -> Op,
) -> Option<(u64, Sent)> {
    let Places::Layouts(layouts) = &get.places else { return None };
    let Layouts { local, remote, description } = &**layouts;
    let tgt = get.tgt;
    let parts = parts_of(held, tgt, local, Some(remote), get.hint)?;
    let core = held.core();
    let mut words = request(parts.len());
    let keys = registration::register_parts(core, tgt, &parts, Access::Write, get.hint, &mut words)?;
    let here = Span::new(local.clone()).select(pieces::reordered(&ranges_of(&parts), local.len()));
    let cookie = core.ops.insert(tgt, op(Sink::from(here), Some(keys)), true);
    words.extend(description);
    let id = core.outbox.number(tgt);
    let head = Head::Vector {
        id,
        op: VECTOR_GET | VECTOR_BY_KEYS,
        words: words.len() as u32,
        data: 0,
        total: local.len(),
        cookie,
        tgt_cntr: get.tgt_cntr,
    };
    // SAFETY: the words live until the call is over, and are copied at once.
    let sent = unsafe { vector_wire::send_words(held, tgt, id, &head, &words) };
    if matches!(sent, Sent::Gone | Sent::NoMemory) {
        held.core().outbox.take_back(tgt);
    }
    Some((cookie, sent))
}

/// Asks the target to read the long pieces of an active message. `None`: there are too few, they cannot be registered, or the
/// request does not fit a packet.
///
/// # Safety
/// The data must be readable until the message is done, the header during the call.
pub unsafe fn active_message(held: &mut Held<'_>, message: &Message) -> Option<Result<()>> {
    let (tgt, total) = (message.tgt, message.data.len() as u64);
    let parts = match &message.data {
        Content::Piece(piece) => vec![(0, *piece)],
        Content::Scattered(layout) => parts_of(held, tgt, layout, None, message.hint)?,
    };
    let core = held.core();
    if pad8(message.header.len) + parts.len() * Part::WORDS * 8 > core.outbox.max_body() {
        return None;
    }
    let mut words = Vec::with_capacity(parts.len() * Part::WORDS);
    let mut registered =
        registration::register_parts(core, tgt, &parts, Access::Read, message.hint, &mut words)?;
    let parts = ranges_of(&parts);
    registered.divided = Some(Divided { data: message.data.clone(), parts, atom: message.atom });
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
    };
    let words = Content::Piece(vector_wire::bytes_of(&words));
    let body = Body { header: message.header, data: &words };
    // SAFETY: the header is the caller's promise; parked, it is copied, as the words are.
    let sent = unsafe { send::send(held, tgt, &head, body, true, SendDone::nothing(tgt)) };
    if matches!(sent, Sent::Gone | Sent::NoMemory) {
        let core = held.core();
        registration::give_up(core, tgt, cookie);
        core.outbox.take_back(tgt);
        return Some(Err(not_sent(core, tgt, sent)));
    }
    Some(Ok(()))
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
    let get = incoming.op & VECTOR_GET != 0;
    let Some((parts, layout)) = requested(incoming) else {
        return refuse(held, src, if get { id } else { incoming.data });
    };
    deliver::confirm(held, src, id);
    let (layout, total) = (Arc::new(layout), incoming.total);
    let keyed = Keyed::new(parts, Span::new(layout.clone()), total);
    if get {
        return direct::begin(held, DirectCopy::serve(src, incoming.cookie, incoming.tgt_cntr, keyed));
    }
    let delivery = Delivery::without_handler(src, incoming.data, incoming.tgt_cntr, incoming.cookie, total);
    let (sink, then) = (Sink::Scattered(layout, 0), Then::Deliver(delivery));
    held.core().inbox.begin(src, incoming.data, Assembly { sink, total, arrived: 0, then });
    direct::begin(held, DirectCopy::pull_by_keys(src, incoming.data, incoming.cookie, keyed));
}

/// The parts of a put or get, and the layout here. `None`: the request is malformed.
fn requested(incoming: &Incoming) -> Option<(Box<[Part]>, Layout)> {
    let (count, words) = incoming.words.split_first()?;
    let len = usize::try_from(*count).ok()?.checked_mul(Part::WORDS)?;
    let (parts, description) = words.split_at_checked(len)?;
    let layout = layout_of(description).filter(|layout| layout.len() == incoming.total)?;
    Some((Part::list(parts, incoming.total)?, layout))
}

/// The header handler of a message has given its places, some of which are no buffer, or the origin has exposed parts of it:
/// reads these, if they are long here as well, or asks for packets.
pub fn fetch(
    held: &mut Held<'_>,
    message: &ActiveMessage,
    id: u32,
    sink: Sink,
    delivery: Delivery,
    (parts, total): (Box<[Part]>, u64),
) {
    let (src, cookie) = (message.src, message.cookie);
    let core = held.core();
    let least = core.outbox.max_body_to(src) as u64;
    let here = Span::of_sink(&sink, total).filter(|here| here.is_long_in(&parts, least));
    core.inbox.begin(src, id, Assembly { sink, total, arrived: 0, then: Then::Deliver(delivery) });
    match here {
        Some(here) => {
            let keyed = Keyed::new(parts, here, total);
            direct::begin(held, DirectCopy::pull_by_keys(src, id, cookie, keyed));
        }
        None => send_control(core, src, &Head::Fetched { cookie, refused: total }),
    }
}
