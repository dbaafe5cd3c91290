//! Messages that come in: puts and active messages, with their header handlers, and what follows when they are complete.

use super::bulk::{self, Transfer};
use super::completion::Completion;
use super::context::{ADDRESS_TABLE, Context, Core, Held};
use super::counter;
use super::dispatcher::{self, answer};
use super::local;
use crate::abi::{
    AM_ERR, LAPI_BURY_MSG, LAPI_DELIVER_MSG, LAPI_DROP_PKT, LAPI_ERR_DGSP, LAPI_ERR_HDR_HNDLR_NULL,
    LAPI_NORMAL, LAPI_RECV_COMPLETE, compl_hndlr_p, compl_hndlr_t, hdr_hndlr_t, lapi_ret_flags_t,
    lapi_return_info_t,
};
use crate::base::bytes::{self, Piece, pad8};
use crate::base::clock::ticks;
use crate::error::Error;
use crate::proto::inbox::{Assembly, Misplaced};
use crate::transport::Task;
use crate::wire::packet::Head;
use libc::{c_int, c_void};
use std::ptr;

/// The value of MAGIC in a whole lapi_return_info_t.
const MAGIC: c_int = 0x4c41_5049;

/// Bodies from so many bytes on are timed when they are copied.
const MEASURED: usize = 4096;

/// What an active message says of itself.
#[derive(Clone, Copy, Debug)]
pub struct ActiveMessage {
    /// The task that sent it.
    pub src: Task,
    /// Its number; none when it comes from this very task.
    pub id: Option<u32>,
    /// Address or index of its header handler.
    pub handler: u64,
    /// Target counter, or 0.
    pub tgt_cntr: u64,
    /// The origin's operation, or 0.
    pub cookie: u64,
}

/// Where the data of an active message is.
#[derive(Clone, Copy, Debug)]
pub enum Data {
    /// All of it here, in one packet.
    Here(Piece),
    /// All of it here, too long for what counts as one packet.
    Local(Piece),
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
            total if data.len as u64 == total => Self::Local(data),
            _ => return None,
        };
        Some((body.part(0, header), data))
    }

    fn len(&self) -> u64 {
        match *self {
            Self::Here(data) | Self::Local(data) => data.len as u64,
            Self::Begun { total, .. } | Self::Remote { total, .. } => total,
        }
    }
}

/// What follows when all data of a message is where it belongs.
#[derive(Clone, Copy, Debug)]
pub struct Landing {
    src: Task,
    id: Option<u32>,
    tgt_cntr: u64,
    cookie: u64,
    handler: compl_hndlr_p,
    parameter: usize,
    ret_flags: lapi_ret_flags_t,
    bytes: u64,
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

/// What a header handler wants.
enum Verdict {
    /// Deliver there (0: throw the data away), then this.
    Deliver { buffer: usize, landing: Landing },
    /// Offer it again.
    Drop,
}

/// An active message has arrived: runs its header handler, and does what it wants.
pub fn active_message(held: &mut Held<'_>, message: &ActiveMessage, header: Piece, data: Data) {
    match ask_header_handler(held, message, header, &data) {
        Verdict::Deliver { buffer, landing } => deliver(held, message, buffer, landing, data),
        // SAFETY: header and data are here, in the packet or in the program's memory.
        Verdict::Drop => unsafe { keep(held, message, header, data) },
    }
}

fn deliver(held: &mut Held<'_>, message: &ActiveMessage, buffer: usize, landing: Landing, data: Data) {
    match data {
        Data::Here(piece) | Data::Local(piece) => {
            if buffer != 0 {
                // SAFETY: the header handler has said that the message may be written there; the data is here.
                unsafe { bytes::copy(piece, buffer as *mut u8) };
            }
            landed(held, landing);
        }
        Data::Begun { first, total } => {
            let Some(id) = message.id else { unreachable!("a message to oneself is always whole") };
            let assembly = Assembly { buffer, total, arrived: 0, then: landing };
            held.core().inbox.begin(message.src, id, assembly);
            assemble(held, message.src, id, first);
        }
        Data::Remote { addr, total } => {
            let Some(id) = message.id else { unreachable!("a message to oneself is never remote") };
            if buffer == 0 || total == 0 {
                answer(held.core(), message.src, &Head::Pulled { cookie: message.cookie, refused: 0 });
                landed(held, landing);
                return;
            }
            held.core().inbox.begin(message.src, id, Assembly { buffer, total, arrived: 0, then: landing });
            bulk::begin(held, Transfer::pull(message.src, id, message.cookie, addr, buffer, total as usize));
        }
    }
}

/// Calls the header handler of a message.
fn ask_header_handler(held: &mut Held<'_>, message: &ActiveMessage, header: Piece, data: &Data) -> Verdict {
    let context = held.context();
    let mut landing = Landing {
        src: message.src,
        id: message.id,
        tgt_cntr: message.tgt_cntr,
        // The origin of exposed data always has an operation; it is told of the completion all the same.
        cookie: message.cookie,
        handler: None,
        parameter: 0,
        ret_flags: LAPI_NORMAL,
        bytes: data.len(),
    };
    let Some(handler) = header_handler(held, message.handler) else {
        let error = Error::new(
            LAPI_ERR_HDR_HNDLR_NULL,
            format!(
                "task {} has sent a message for header handler {}, which is not set here",
                message.src, message.handler
            ),
        );
        context.report(held, AM_ERR, message.src, &error);
        return Verdict::Deliver { buffer: 0, landing };
    };
    let here = match *data {
        Data::Here(piece) if piece.len != 0 => piece.ptr as *mut c_void,
        _ => ptr::null_mut(),
    };
    let mut info = lapi_return_info_t {
        msg_len: landing.bytes,
        MAGIC,
        ret_flags: LAPI_NORMAL,
        ctl_flags: LAPI_DELIVER_MSG,
        dgsp_handle: ptr::null_mut(),
        bytes: 0,
        src: message.src as c_int,
        udata_one_pkt_ptr: here,
        recv_offset_dgsp_bytes: 0,
    };
    let mut uhdr_len = header.len as libc::c_uint;
    let uhdr = if header.len == 0 { ptr::null_mut() } else { header.ptr as *mut c_void };
    let (mut completion, mut parameter): (compl_hndlr_p, *mut c_void) = (None, ptr::null_mut());
    // SAFETY: the program's own header handler, with pointers that live during the call; no reference into the core is
    // out.
    let buffer = unsafe {
        handler(
            context.handle_ptr(),
            uhdr,
            &mut uhdr_len,
            ptr::from_mut(&mut info).cast(),
            &mut completion,
            &mut parameter,
        )
    };
    if info.ctl_flags == LAPI_DROP_PKT {
        return Verdict::Drop;
    }
    landing.handler = completion;
    landing.parameter = parameter as usize;
    landing.ret_flags = info.ret_flags;
    let mut buffer = if info.ctl_flags == LAPI_BURY_MSG { 0 } else { buffer as usize };
    if !info.dgsp_handle.is_null() && buffer != 0 {
        let error = Error::new(LAPI_ERR_DGSP, "scatter by a DGSP is not built yet; the data is thrown away");
        context.report(held, AM_ERR, message.src, &error);
        buffer = 0;
    }
    Verdict::Deliver { buffer, landing }
}

/// The function behind a header handler's address or index.
fn header_handler(held: &mut Held<'_>, named: u64) -> Option<hdr_hndlr_t> {
    let address =
        if named < ADDRESS_TABLE as u64 { held.core().addresses[named as usize] } else { named as usize };
    // SAFETY: the address of a header handler, by the contract of LAPI_Amsend and LAPI_Addr_set; 0 becomes none.
    unsafe { std::mem::transmute::<usize, Option<hdr_hndlr_t>>(address) }
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
        unsafe { take(held.core(), body, addr as usize) };
        return landed(held, landing);
    }
    held.core().inbox.begin(src, id, Assembly { buffer: addr as usize, total, arrived: 0, then: landing });
    assemble(held, src, id, body);
}

/// The first packet of a message under way, and what came before it.
fn assemble(held: &mut Held<'_>, src: Task, id: u32, first: Piece) {
    more_data(held, src, id, 0, first);
    for early in held.core().inbox.early(src, id) {
        more_data(held, src, id, early.offset, early.bytes());
    }
}

/// More data of a message under way.
pub fn more_data(held: &mut Held<'_>, src: Task, id: u32, offset: u64, body: Piece) {
    match held.core().inbox.place(src, id, offset, body.len) {
        Ok((to, complete)) => {
            if to != 0 {
                // SAFETY: inside of the buffer that the message was promised, checked by `place`.
                unsafe { take(held.core(), body, to) };
            }
            if let Some(assembly) = complete {
                landed(held, assembly.then);
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
/// The body must be readable, and `to` writable for its length.
#[inline]
pub unsafe fn take(core: &mut Core, body: Piece, to: usize) {
    if body.len < MEASURED {
        // SAFETY: the caller's promise.
        return unsafe { bytes::copy(body, to as *mut u8) };
    }
    let before = ticks();
    // SAFETY: the caller's promise.
    unsafe { bytes::copy(body, to as *mut u8) };
    core.tuner.note_taken(body.len, ticks() - before);
}

/// All data of a message is where it belongs.
#[inline]
pub fn landed(held: &mut Held<'_>, landing: Landing) {
    let core = held.core();
    core.unreported |= LAPI_RECV_COMPLETE;
    match landing.id {
        Some(id) => {
            core.stats.peers.bytes_received += landing.bytes;
            if let Some(count) = core.inbox.deliver(landing.src, id) {
                answer(core, landing.src, &Head::FenceAck { count });
            }
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
    let piece = match data {
        Data::Here(piece) | Data::Local(piece) | Data::Begun { first: piece, .. } => piece,
        Data::Remote { .. } => Piece::EMPTY,
    };
    // SAFETY: the caller's promise.
    let (kept_header, here) = unsafe { (bytes::copy_aligned(header), bytes::copy_aligned(piece)) };
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
            Data::Local(piece) => Data::Local(kept(piece)),
            Data::Begun { first, total } => Data::Begun { first: kept(first), total },
            remote => remote,
        };
        active_message(held, &dropped.message, header, data);
    }
    // The message may be refused for long: that is not progress that anyone should stay awake for.
    held.core().dropped.len() < waiting
}
