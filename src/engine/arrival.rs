//! Messages that come in: puts and active messages, where their data goes, and what follows when it is there.

use super::completion::Completion;
use super::context::{Context, Core, Held};
use super::counter;
use super::dispatcher::{self, answer};
use super::handlers::{self, ActiveMessage, Verdict};
use super::local;
use super::transfer::{self, Transfer};
use super::vector;
use crate::abi::{LAPI_NORMAL, LAPI_RECV_COMPLETE, compl_hndlr_p, compl_hndlr_t, lapi_ret_flags_t};
use crate::base::bytes::{self, Piece, pad8};
use crate::base::clock::ticks;
use crate::proto::content::{self, Content, Sink};
use crate::proto::inbox::{Assembly, Misplaced};
use crate::transport::Task;
use crate::wire::packet::Head;
use libc::c_void;

/// Bodies from so many bytes on are timed when they are copied.
const MEASURED: usize = 4096;

/// Where the data of an active message is.
#[derive(Clone, Debug)]
pub enum Data {
    /// All of it here, in one packet.
    Here(Piece),
    /// All of it here, too long for what counts as one packet. The number is that of the bytes of an atom.
    Local(Content, usize),
    /// Its beginning here, the rest to come.
    Begun {
        /// What is here.
        first: Piece,
        /// Bytes in all.
        total: u64,
    },
    /// In the origin's memory.
    Remote {
        /// Its address there.
        addr: u64,
        /// Its length.
        total: u64,
    },
}

impl Data {
    /// User header and data of a packet's body. `None` when the lengths cannot be.
    #[inline]
    pub fn in_packet(body: Piece, uhdr_len: u16, total: u64) -> Option<(Piece, Self)> {
        let header = usize::from(uhdr_len);
        if header > body.len {
            return None;
        }
        let from = pad8(header).min(body.len);
        let data = body.part(from, body.len - from);
        let data = match total {
            0 => Self::Here(data),
            total if (data.len as u64) < total => Self::Begun { first: data, total },
            // Longer than what counts as one packet, and yet it has found room in one.
            total if data.len as u64 == total => Self::Local(Content::Piece(data), 0),
            _ => return None,
        };
        Some((body.part(0, header), data))
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Here(data) => data.len as u64,
            Self::Local(data, _) => data.len() as u64,
            Self::Begun { total, .. } | Self::Remote { total, .. } => *total,
        }
    }
}

/// What follows when all data of a message is where it belongs.
#[derive(Clone, Copy, Debug)]
pub struct Landing {
    pub(super) src: Task,
    pub(super) id: Option<u32>,
    pub(super) tgt_cntr: u64,
    pub(super) cookie: u64,
    pub(super) handler: compl_hndlr_p,
    pub(super) parameter: usize,
    pub(super) ret_flags: lapi_ret_flags_t,
    pub(super) bytes: u64,
}

/// What follows when an assembly is complete.
pub enum Then {
    /// The message has landed.
    Land(Landing),
    /// The description of a vector is there.
    Describe(Box<vector::Incoming>),
}

/// A message whose header handler did not want it yet: kept, and offered again.
pub struct Dropped {
    message: ActiveMessage,
    header: Box<[u64]>,
    header_len: usize,
    here: Box<[u64]>,
    data: Data,
}

impl Dropped {
    /// Whether the message comes from this very task.
    pub fn from_self(&self) -> bool {
        self.message.id.is_none()
    }
}

/// An active message has arrived: runs its header handler, and does what it wants.
pub fn active_message(held: &mut Held<'_>, message: &ActiveMessage, header: Piece, data: Data) {
    match handlers::ask(held, message, header, &data) {
        Verdict::Deliver { sink, landing } => deliver(held, message, sink, landing, data),
        // SAFETY: header and data are here, in the packet or in the program's memory.
        Verdict::Drop => unsafe { keep(held, message, header, data) },
    }
}

fn deliver(held: &mut Held<'_>, message: &ActiveMessage, sink: Sink, landing: Landing, data: Data) {
    match data {
        Data::Here(piece) => {
            // SAFETY: the header handler has said that the message may be written there; the data is here.
            unsafe { sink.take(0, piece) };
            landed(held, landing);
        }
        Data::Local(content, atom) => {
            // SAFETY: as above.
            unsafe { content::copy(&content, &sink, atom) };
            landed(held, landing);
        }
        Data::Begun { first, total } => {
            let Some(id) = message.id else { unreachable!("a message to oneself is always whole") };
            begin(
                held,
                message.src,
                id,
                Assembly { sink, total, arrived: 0, then: Then::Land(landing) },
                first,
            );
        }
        Data::Remote { addr, total } => {
            let Some(id) = message.id else { unreachable!("a message to oneself is never remote") };
            if sink.is_nowhere() || total == 0 {
                answer(held.core(), message.src, &Head::Pulled { cookie: message.cookie, refused: 0 });
                landed(held, landing);
                return;
            }
            let buffer = sink.as_buffer();
            held.core().inbox.begin(
                message.src,
                id,
                Assembly { sink, total, arrived: 0, then: Then::Land(landing) },
            );
            match buffer {
                Some(buffer) => {
                    transfer::begin(
                        held,
                        Transfer::pull(message.src, id, message.cookie, addr, buffer, total as usize),
                    );
                }
                // Into many places it comes in packets.
                None => {
                    answer(
                        held.core(),
                        message.src,
                        &Head::Pulled { cookie: message.cookie, refused: total },
                    );
                }
            }
        }
    }
}

/// What the first packet of a put says.
#[derive(Clone, Copy, Debug)]
pub struct IncomingPut {
    /// The task that sent it.
    pub src: Task,
    /// Its number.
    pub id: u32,
    /// Where the data goes.
    pub addr: u64,
    /// Target counter, or 0.
    pub tgt_cntr: u64,
    /// The origin's operation, or 0.
    pub cookie: u64,
    /// Bytes in all, when they are more than this packet's; else 0.
    pub total: u64,
}

/// A put has arrived, or its first packet.
#[inline]
pub fn put(held: &mut Held<'_>, put: &IncomingPut, body: Piece) {
    let IncomingPut { src, id, addr, tgt_cntr, cookie, total } = *put;
    let landing = Landing {
        src,
        id: Some(id),
        tgt_cntr,
        cookie,
        handler: None,
        parameter: 0,
        ret_flags: LAPI_NORMAL,
        // Of a put by a copy across address spaces only the length comes in a packet.
        bytes: if body.len == 0 { addr } else { total.max(body.len as u64) },
    };
    if total <= body.len as u64 {
        // SAFETY: the origin's program says that it may write there; the body is in the packet.
        unsafe { take(held.core(), &Sink::Buffer(addr as usize), 0, body) };
        return landed(held, landing);
    }
    let sink = Sink::Buffer(addr as usize);
    begin(held, src, id, Assembly { sink, total, arrived: 0, then: Then::Land(landing) }, body);
}

/// The beginning of a message of several packets: its first bytes, and what came before them.
pub(super) fn begin(held: &mut Held<'_>, src: Task, id: u32, assembly: Assembly<Then>, first: Piece) {
    held.core().inbox.begin(src, id, assembly);
    if first.len != 0 {
        more_data(held, src, id, 0, first);
    }
    for early in held.core().inbox.early(src, id) {
        more_data(held, src, id, early.offset, early.bytes());
    }
}

/// More data of a message under way.
pub fn more_data(held: &mut Held<'_>, src: Task, id: u32, offset: u64, body: Piece) {
    match held.core().inbox.place(src, id, offset, body.len) {
        Ok((sink, complete)) => {
            // SAFETY: inside of what the message was promised, checked by `place`.
            unsafe { take(held.core(), &sink, offset, body) };
            match complete.map(|assembly| assembly.then) {
                Some(Then::Land(landing)) => landed(held, landing),
                Some(Then::Describe(description)) => vector::described(held, src, id, *description),
                None => {}
            }
        }
        // SAFETY: the body is in the packet.
        Err(Misplaced::Unknown) => unsafe { held.core().inbox.keep(src, id, offset, body) },
        Err(Misplaced::Outside) => dispatcher::broken(held, src),
    }
}

/// Copies a packet's bytes to where they belong, and notes how long that takes when they are many.
///
/// # Safety
/// The body must be readable, and its places in `sink` writable.
#[inline]
pub unsafe fn take(core: &mut Core, sink: &Sink, offset: u64, body: Piece) {
    if body.len < MEASURED {
        // SAFETY: the caller's promise.
        return unsafe { sink.take(offset, body) };
    }
    let before = ticks();
    // SAFETY: the caller's promise.
    unsafe { sink.take(offset, body) };
    core.tuner.note_taken(body.len, ticks() - before);
}

/// A message needs nothing more: the sender's fence may have waited for it.
#[inline]
pub fn confirm(held: &mut Held<'_>, src: Task, id: u32) {
    let core = held.core();
    if let Some(count) = core.inbox.deliver(src, id) {
        answer(core, src, &Head::FenceAck { count });
    }
}

/// All data of a message is where it belongs.
#[inline]
pub fn landed(held: &mut Held<'_>, landing: Landing) {
    let core = held.core();
    core.unreported |= LAPI_RECV_COMPLETE;
    match landing.id {
        Some(id) => {
            core.stats.peers.bytes_received += landing.bytes;
            confirm(held, landing.src, id);
        }
        None => core.stats.local.bytes_received += landing.bytes,
    }
    match landing.handler {
        None => conclude(held, &landing),
        Some(handler) => complete_by_handler(held, landing, handler),
    }
}

fn complete_by_handler(held: &mut Held<'_>, landing: Landing, handler: compl_hndlr_t) {
    let context: &Context = held.context();
    if landing.ret_flags == LAPI_NORMAL {
        let completion = Completion { handler, parameter: landing.parameter, then: Some(landing) };
        context.completions.push(completion);
        return;
    }
    // SAFETY: the program's own completion handler, with the parameter that its header handler gave; no reference into
    // the core is out.
    unsafe { handler(context.handle_ptr(), landing.parameter as *mut c_void) };
    conclude(held, &landing);
}

/// The message is complete, its completion handler has returned: target counter first, then the origin is told.
#[inline]
pub fn conclude(held: &mut Held<'_>, landing: &Landing) {
    // SAFETY: a counter of this task, by the contract of the call that sent the message.
    unsafe { counter::bump(landing.tgt_cntr as usize) };
    if landing.cookie != 0 {
        match landing.id {
            Some(_) => {
                answer(held.core(), landing.src, &Head::Done { cookie: landing.cookie });
            }
            None => local::complete(landing.cookie),
        }
    }
}

/// Keeps a message that its header handler did not want yet.
///
/// # Safety
/// Header and data must be readable.
unsafe fn keep(held: &mut Held<'_>, message: &ActiveMessage, header: Piece, data: Data) {
    let piece = match &data {
        Data::Here(piece) | Data::Begun { first: piece, .. } => *piece,
        Data::Local(..) | Data::Remote { .. } => Piece::EMPTY,
    };
    // SAFETY: the caller's promise.
    let (kept_header, mut here) = unsafe { (bytes::copy_aligned(header), bytes::copy_aligned(piece)) };
    if let Data::Local(content, _) = &data {
        here = vec![0; content.len().div_ceil(8)].into_boxed_slice();
        // SAFETY: the caller's promise; the copy has room for the data.
        unsafe { content.part(0, content.len()).copy_to(here.as_mut_ptr().cast()) };
    }
    let dropped = Dropped { message: *message, header: kept_header, header_len: header.len, here, data };
    held.core().dropped.push_back(dropped);
}

/// Offers the messages again that were not wanted before, each once.
pub fn offer_again(held: &mut Held<'_>) -> bool {
    let waiting = held.core().dropped.len();
    for _ in 0..waiting {
        let Some(dropped) = held.core().dropped.pop_front() else { break };
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
        active_message(held, &dropped.message, header, data);
    }
    // The message may be refused for long: that is not progress that anyone should stay awake for.
    held.core().dropped.len() < waiting
}
