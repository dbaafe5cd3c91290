//! Arriving messages: puts and active messages, and where their data goes.

use crate::abi::LAPI_RECV_COMPLETE;
use crate::base::clock::moment;
use crate::engine::context::Held;
use crate::engine::context::core::flow;
use crate::engine::context::direct_copy::{CopyKind, DirectCopy};
use crate::engine::context::incoming::{
    ActiveMessage, Data, Delivery, Dropped, IncomingPut, Kept, Stay, Then,
};
use crate::engine::context::request::Places;
use crate::engine::transfer::deliver::{confirm, delivered, scatter, take};
use crate::engine::transfer::header_handler::{self, Answer, Verdict};
use crate::engine::transfer::send::send_control;
use crate::engine::transfer::{assembly, direct, impossible, parts};
use crate::memory::bytes::{self, Piece, is_memory};
use crate::proto::content::{self, Content, Sink};
use crate::proto::inbox::Assembly;
use crate::transport::Task;
use crate::wire::packet::Head;

/// An active message has arrived: runs its header handler, and does what that has decided.
pub fn active_message(held: &mut Held<'_>, message: &ActiveMessage, header: Piece, data: Data) {
    offer(held, message, header, data, Stay::NONE);
}

/// Offers a message that has been kept for this long to its header handler.
#[inline(always)]
fn offer(held: &mut Held<'_>, message: &ActiveMessage, header: Piece, data: Data, stay: Stay) {
    let incarnation = held.core().incarnation(message.src);
    let verdict = header_handler::ask(held, message, header, &data, stay.since);
    follow(held, message, header, data, stay, (verdict, incarnation));
}

/// The header handler of a message in one packet has answered, which a short way has called when
/// the sender had this incarnation.
pub fn answered(
    held: &mut Held<'_>,
    message: &ActiveMessage,
    (header, data): (Piece, Piece),
    answer: &Answer,
    incarnation: u32,
) {
    let verdict = header_handler::judge(held, message, answer, message.delivery(data.len as u64));
    follow(held, message, header, Data::Here(data), Stay::NONE, (verdict, incarnation));
}

/// What a header handler has decided is done, if the sender still has the incarnation that it had
/// when the handler began.
#[inline(always)]
fn follow(
    held: &mut Held<'_>,
    message: &ActiveMessage,
    header: Piece,
    data: Data,
    stay: Stay,
    (verdict, incarnation): (Verdict, u32),
) {
    if held.core().incarnation(message.src) != incarnation || held.core().is_closing() {
        // The handler has given the sender up, and the message with it, or has ended the context.
        return;
    }
    flow::handled(held.core(), message.src);
    match (verdict, data) {
        // The most frequent case, without copies of what describes it.
        (Verdict::Deliver { sink: sink @ Sink::Buffer(_), delivery }, Data::Here(piece)) => {
            // SAFETY: the header handler has given this place for the message; the data is here.
            unsafe { take(held, &sink, 0, piece) };
            delivered(held, delivery);
        }
        (Verdict::Deliver { sink, delivery }, data) => deliver(held, message, sink, delivery, data),
        // SAFETY: header and data are here, in the packet or in the program's memory.
        (Verdict::Drop, data) => unsafe { keep(held, message, header, data, stay) },
    }
}

fn deliver(held: &mut Held<'_>, message: &ActiveMessage, sink: Sink, delivery: Delivery, data: Data) {
    match data {
        Data::Here(piece) => {
            // SAFETY: the header handler has given this place for the message; the data is here.
            scatter(held, &sink, || unsafe { sink.take(0, piece) });
            delivered(held, delivery);
        }
        Data::Local(content, atom) => {
            // SAFETY: the header handler has given this place; the data stays until this returns.
            scatter(held, &sink, || unsafe { content::copy(&content, &sink, atom) });
            delivered(held, delivery);
        }
        Data::Begun { first, total } => {
            let Some(id) = message.id else { unreachable!("a message to oneself is always whole") };
            assembly::begin_delivery(held, id, sink, total, delivery, first);
        }
        Data::Remote { addr, total } => {
            let Some(id) = message.id else { unreachable!("a message to oneself is never remote") };
            if sink.is_nowhere() || total == 0 {
                send_control(held.core(), message.src, &Head::Fetched { cookie: message.cookie, refused: 0 });
                delivered(held, delivery);
                return;
            }
            let (buffer, core) = (sink.as_buffer(), held.core());
            let then = Then::Deliver(delivery);
            core.inbox.begin(message.src, id, Assembly { sink, total, arrived: 0, then });
            let Some(buffer) = buffer else {
                // Into many places it comes in packets.
                let refusal = Head::Fetched { cookie: message.cookie, refused: total };
                return send_control(core, message.src, &refusal);
            };
            let places = Places::Contiguous { local: buffer, remote: addr, len: total as usize };
            let kind = CopyKind::Pull { id, cookie: message.cookie };
            direct::begin(held, DirectCopy::new(message.src, places, kind));
        }
        Data::Parts { parts, total } => {
            let Some(id) = message.id else { unreachable!("a message to oneself is never remote") };
            if sink.is_nowhere() {
                send_control(held.core(), message.src, &Head::Fetched { cookie: message.cookie, refused: 0 });
                return delivered(held, delivery);
            }
            parts::fetch(held, message, id, sink, delivery, (parts, total));
        }
    }
}

/// A put has arrived, or its first packet.
#[inline]
pub fn put(held: &mut Held<'_>, put: &IncomingPut, body: Piece) {
    let IncomingPut { src, id, addr, tgt_cntr, cookie, total } = *put;
    let delivery = Delivery::without_handler(src, id, tgt_cntr, cookie, total.max(body.len as u64));
    if !is_memory(addr, delivery.bytes) {
        return impossible::put(held, id, delivery, body);
    }
    if total <= body.len as u64 {
        // SAFETY: the origin's program says that it may write there; the body is in the packet.
        unsafe { take(held, &Sink::Buffer(addr as usize), 0, body) };
        return delivered(held, delivery);
    }
    let sink = Sink::Buffer(addr as usize);
    assembly::begin_delivery(held, id, sink, total, delivery, body);
}

/// The origin has put `bytes` bytes where they belong by itself, or has taken them from here
/// by itself (0).
pub fn placed(held: &mut Held<'_>, src: Task, id: u32, bytes: u64, tgt_cntr: u64, cookie: u64) {
    delivered(held, Delivery::without_handler(src, id, tgt_cntr, cookie, bytes));
}

/// The origin has put bytes into this task's memory by itself.
pub fn accessed(held: &mut Held<'_>, src: Task, id: u32, written: u64) {
    let core = held.core();
    core.path_to(src).bytes_received += written;
    core.note_completed(LAPI_RECV_COMPLETE);
    confirm(held, src, id);
}

/// More data of a message under way.
pub fn more_data(held: &mut Held<'_>, src: Task, id: u32, offset: u64, body: Piece) {
    if let Some(delivery) = parts::more_data(held, src, id, offset, body) {
        delivered(held, delivery);
    }
}

/// Keeps a message that its header handler has refused for now, or whose header handler
/// is not set yet.
///
/// # Safety
/// Header and data must be readable.
unsafe fn keep(held: &mut Held<'_>, message: &ActiveMessage, header: Piece, data: Data, stay: Stay) {
    let piece = match &data {
        Data::Here(piece) | Data::Begun { first: piece, .. } => *piece,
        Data::Local(..) | Data::Remote { .. } | Data::Parts { .. } => Piece::EMPTY,
    };
    // SAFETY: the caller's promise.
    let (kept_header, mut here) = unsafe { (bytes::aligned(header), bytes::aligned(piece)) };
    if let Data::Local(content, _) = &data {
        // SAFETY: the caller's promise.
        here = unsafe { bytes::aligned(content.all()) };
    }
    let stay = Stay { since: if stay.since == 0 { moment() } else { stay.since }, ..stay };
    let dropped =
        Dropped { message: *message, header: kept_header, header_len: header.len, here, data, stay };
    flow::keep(held.core(), dropped);
}

/// Offers the messages again that were refused before: some of them, each once, when it is time for
/// that. Returns whether one was accepted.
pub fn offer_again(held: &mut Held<'_>) -> bool {
    let core = held.core();
    let waiting = core.kept_to_offer();
    if waiting == 0 {
        return false;
    }
    for _ in 0..waiting.min(Kept::BATCH) {
        let core = held.core();
        if core.is_closing() {
            break;
        }
        let Some(dropped) = core.next_kept() else { break };
        let header = Piece { ptr: dropped.header.as_ptr().cast(), len: dropped.header_len };
        let kept = |piece: Piece| Piece { ptr: dropped.here.as_ptr().cast(), len: piece.len };
        let data = match dropped.data {
            Data::Here(piece) => Data::Here(kept(piece)),
            Data::Local(content, atom) => {
                let piece = Piece { ptr: dropped.here.as_ptr().cast(), len: content.len() };
                Data::Local(Content::Piece(piece), atom)
            }
            Data::Begun { first, total } => Data::Begun { first: kept(first), total },
            remote => remote,
        };
        offer(held, &dropped.message, header, data, dropped.stay);
    }
    // The message may be refused for long: that is not progress that a thread should
    // stay awake for.
    held.core().note_kept_offered(waiting)
}
