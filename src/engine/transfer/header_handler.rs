//! Header handlers: the program's functions that decide where the data of an active message goes.

use crate::abi::{
    AM_ERR, BYTE_DGSP, LAPI_BURY_MSG, LAPI_DELIVER_MSG, LAPI_DROP_PKT, LAPI_ERR_DATA_LEN, LAPI_ERR_DGSP_CTL,
    LAPI_ERR_HDR_HNDLR_NULL, LAPI_NORMAL, compl_hndlr_p, ddm_func_p, hdr_hndlr_t, lapi_dg_handle_t,
    lapi_return_info_t, lapi_vec_t, wide,
};
use crate::base::clock::since;
use crate::base::handler_runs::{Handler, HandlerKind};
use crate::dgsp::Layout;
use crate::dgsp::registry::REGISTRY;
use crate::dgsp::vector::{self, Vector};
use crate::engine::context::addresses::is_index;
use crate::engine::context::incoming::{ActiveMessage, Data, Delivery};
use crate::engine::context::{Context, Held};
use crate::error::{Error, Result};
use crate::memory::bytes::{Piece, is_memory};
use crate::proto::content::Sink;
use crate::transport::Task;
use libc::{c_int, c_ulong, c_void};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

/// The value of MAGIC in a whole lapi_return_info_t.
const MAGIC: c_int = 0x4c41_5049;

/// What a header handler has decided.
pub enum Verdict {
    /// Deliver there, then this.
    Deliver {
        /// Where the data goes.
        sink: Sink,
        /// What follows.
        delivery: Delivery,
    },
    /// Offer it again.
    Drop,
}

/// How long a message waits for LAPI_Addr_set of its index: a program may register its handlers
/// after the call in which the message was taken in.
const UNSET: Duration = Duration::from_secs(1);

/// Calls the header handler of a message. The message is kept since the moment `kept`; 0: it
/// has just arrived.
pub fn ask(held: &mut Held<'_>, message: &ActiveMessage, header: Piece, data: &Data, kept: u32) -> Verdict {
    let context = held.context();
    if held.core().partings.keep_messages() {
        return Verdict::Drop;
    }
    let delivery = message.delivery(data.len());
    if !is_memory(0, delivery.bytes) {
        let what =
            format!("task {} has sent {} bytes, more than this task can have", message.src, delivery.bytes);
        context.report(held, AM_ERR, message.src, &Error::new(LAPI_ERR_DATA_LEN, what));
        return Verdict::Deliver { sink: Sink::Nowhere, delivery: Delivery { bytes: 0, ..delivery } };
    }
    let Some(handler) = header_handler(held, message.handler) else {
        // A message to oneself is a mistake of the call that has sent it.
        let may_be_early = message.id.is_some() && is_index(message.handler);
        if may_be_early && (kept == 0 || since(kept) < UNSET) {
            return Verdict::Drop;
        }
        let what = format!(
            "task {} has sent a message for header handler {}, which is not set here",
            message.src, message.handler
        );
        context.report(held, AM_ERR, message.src, &Error::new(LAPI_ERR_HDR_HNDLR_NULL, what));
        return Verdict::Deliver { sink: Sink::Nowhere, delivery };
    };
    let here = match *data {
        Data::Here(piece) => piece.ptr,
        _ => ptr::null(),
    };
    // What it sends while nothing waits is not counted as forwarded: that concerns a
    // single handler.
    let counted = held.core().outbox.waiting();
    if counted {
        held.core().outbox.set_forwarding(true);
    }
    let bytes = (header.len as u64).saturating_add(delivery.bytes);
    let run = Handler { kind: HandlerKind::Header, address: handler as usize, peer: message.src, bytes };
    // SAFETY: the program's own header handler; no reference into the core is out.
    let answer = held.run_handler(run, || unsafe {
        call(context, handler, message.src, header, Piece { ptr: here, len: data.len() as usize })
    });
    if counted {
        held.core().outbox.set_forwarding(false);
    }
    judge(held, message, &answer, delivery)
}

/// What a header handler has answered.
pub struct Answer {
    /// Where the data goes.
    buffer: *mut c_void,
    info: lapi_return_info_t,
    completion: compl_hndlr_p,
    parameter: *mut c_void,
}

impl Answer {
    /// Where the data goes, if it goes to contiguous memory or nowhere (null), and nothing follows.
    #[inline(always)]
    pub fn plain_place(&self) -> Option<*mut u8> {
        let place = match self.info.ctl_flags {
            LAPI_DELIVER_MSG if self.info.dgsp_handle.is_null() => self.buffer.cast(),
            LAPI_BURY_MSG => ptr::null_mut(),
            _ => return None,
        };
        self.completion.is_none().then_some(place)
    }
}

/// Calls a header handler. Of `data` the address is null where the data is not all there.
///
/// # Safety
/// It must be a header handler of the program, in a round of the dispatcher, and no reference into
/// the core may be out.
#[inline(always)]
pub unsafe fn call(context: &Context, handler: hdr_hndlr_t, src: Task, header: Piece, data: Piece) -> Answer {
    let mut info = lapi_return_info_t {
        msg_len: data.len as c_ulong,
        MAGIC,
        ret_flags: LAPI_NORMAL,
        ctl_flags: LAPI_DELIVER_MSG,
        dgsp_handle: ptr::null_mut(),
        bytes: data.len as c_ulong,
        src: src as c_int,
        udata_one_pkt_ptr: if data.len == 0 { ptr::null_mut() } else { data.ptr as *mut c_void },
        recv_offset_dgsp_bytes: 0,
    };
    let mut uhdr_len = header.len as libc::c_uint;
    let uhdr = if header.len == 0 { ptr::null_mut() } else { header.ptr as *mut c_void };
    let (mut completion, mut parameter): (compl_hndlr_p, *mut c_void) = (None, ptr::null_mut());
    // SAFETY: the caller's promise, with pointers that live during the call. A vector header
    // handler differs in the type that its result points to, and in nothing else.
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
    Answer { buffer, info, completion, parameter }
}

/// What follows from the answer.
pub fn judge(held: &mut Held<'_>, message: &ActiveMessage, answer: &Answer, delivery: Delivery) -> Verdict {
    let Answer { buffer, ref info, completion, parameter } = *answer;
    if info.ctl_flags == LAPI_DROP_PKT {
        return Verdict::Drop;
    }
    let delivery = Delivery {
        handler: completion,
        parameter: parameter as usize,
        ret_flags: info.ret_flags,
        ..delivery
    };
    // With a DGSP null is an address like any other: the program's offsets count from it.
    let nowhere = buffer.is_null() && (message.shape.is_some() || counts_from_a_buffer(info.dgsp_handle));
    if info.ctl_flags == LAPI_BURY_MSG || nowhere {
        return Verdict::Deliver { sink: Sink::Nowhere, delivery };
    }
    let sink = match message.shape {
        Some(shape) => to_vector(buffer.cast(), shape),
        None if info.dgsp_handle.is_null() => Ok(Sink::Buffer(buffer as usize)),
        None => {
            let function = held.ddm_function();
            to_program(message, buffer, info, function)
        }
    };
    let sink = sink.unwrap_or_else(|error| {
        held.context().report(held, AM_ERR, message.src, &error);
        Sink::Nowhere
    });
    Verdict::Deliver { sink, delivery }
}

/// Whether a layout needs the address of a buffer: none is given, or it is LAPI_BYTE, whose
/// offsets are none.
fn counts_from_a_buffer(layout: lapi_dg_handle_t) -> bool {
    layout.is_null() || ptr::eq(layout.cast_const().cast(), &raw const BYTE_DGSP)
}

/// The places of a target vector.
fn to_vector(vector: *const lapi_vec_t, shape: u64) -> Result<Sink> {
    // SAFETY: what a vector header handler returns.
    let vector = unsafe { Vector::of(vector) };
    vector::check_target(vector.as_ref(), (shape >> 32) as u32, shape as u32 as usize)?;
    Ok(vector.map_or(Sink::Nowhere, |vector| Sink::from(Layout::vector(&vector))))
}

/// The places of a DGSP.
fn to_program(
    message: &ActiveMessage,
    buffer: *mut c_void,
    info: &lapi_return_info_t,
    function: ddm_func_p,
) -> Result<Sink> {
    let program = REGISTRY.lookup(info.dgsp_handle)?;
    if program.has_control() && !message.atoms {
        let what =
            "a scatter program with CONTROL needs an atom_size at the origin, or operands would be cut apart";
        return Err(Error::new(LAPI_ERR_DGSP_CTL, what));
    }
    let skip = wide(info.recv_offset_dgsp_bytes);
    let bytes = wide(info.bytes.min(info.msg_len)).saturating_add(skip);
    let layout = Layout::target_program(program, buffer.cast(), bytes, function)?;
    Ok(Sink::Scattered(Arc::new(layout), skip))
}

/// The function behind a header handler's address or index.
fn header_handler(held: &mut Held<'_>, named: u64) -> Option<hdr_hndlr_t> {
    let address = held.core().resolve_function(named);
    // SAFETY: the address of a header handler, by the contract of LAPI_Amsend and LAPI_Addr_set.
    unsafe { at(address) }
}

/// The header handler at this address; 0: none.
///
/// # Safety
/// It must be one.
#[inline(always)]
pub unsafe fn at(address: usize) -> Option<hdr_hndlr_t> {
    // SAFETY: the caller's promise; 0 becomes none.
    unsafe { std::mem::transmute::<usize, Option<hdr_hndlr_t>>(address) }
}
