//! Requests: what the engine is asked for, made from C's structures. A call that has a structure in
//! LAPI_Xfer makes its request from that structure too.

use libc::{c_int, c_uint, c_ulong, c_void};
use openlapi::abi::*;
use openlapi::api::dgsp::DgspMessage;
pub use openlapi::api::request::{Get, Message, PlainGet, PlainMessage, PlainPut, Put};
use openlapi::api::request::{Hint, Places};
use openlapi::api::vector::{GetRequest, Pair, PutRequest, Vector};
use openlapi::api::{Content, Piece, SendDone};
use openlapi::api::{rdma, rmw};

/// The request of LAPI_Put.
#[inline]
pub fn put(command: &lapi_put_t) -> Put {
    Put {
        tgt: command.tgt,
        places: between(command.org_addr, command.tgt_addr, command.len),
        tgt_cntr: command.tgt_cntr,
        cmpl_cntr: command.cmpl_cntr as usize,
        done: send_done(command.tgt, command.org_cntr, command.shdlr, command.sinfo, command.len),
        hint: hint(command.flags),
    }
}

/// The request of LAPI_Get.
#[inline]
pub fn get(command: &lapi_get_t) -> Get {
    Get {
        tgt: command.tgt,
        places: between(command.org_addr, command.tgt_addr, command.len),
        tgt_cntr: command.tgt_cntr,
        org_cntr: command.org_cntr as usize,
        handler: command.chndlr,
        parameter: command.cinfo as usize,
        hint: hint(command.flags),
    }
}

/// The request of LAPI_Amsend.
#[inline]
pub fn active_message(command: &lapi_am_t) -> Message {
    let header = piece(command.uhdr, command.uhdr_len as usize);
    Message {
        tgt: command.tgt,
        handler: command.hdr_hdl,
        header,
        data: contiguous(command.udata, command.udata_len),
        shape: None,
        atom: 0,
        tgt_cntr: command.tgt_cntr,
        cmpl_cntr: command.cmpl_cntr as usize,
        done: send_done(command.tgt, command.org_cntr, command.shdlr, command.sinfo, command.udata_len),
        hint: hint(command.flags),
        copied: false,
    }
}

/// The request of LAPI_AM_LW_XFER: its handlers, counters and flags may be uninitialised, and are
/// not read. Header and data may be changed when the call returns.
#[inline]
pub fn light_weight(command: &lapi_am_t) -> Message {
    Message {
        data: contiguous(command.udata, command.udata_len),
        done: SendDone { bytes: wide(command.udata_len), user: true, ..SendDone::nothing(command.tgt) },
        copied: true,
        ..without_data(command.tgt, command.hdr_hdl, command.uhdr, command.uhdr_len)
    }
}

/// The request of LAPI_Amsendv, without the data: that is what the vector describes.
#[inline]
pub fn vector_message(command: &lapi_amv_t) -> Message {
    Message {
        tgt_cntr: command.tgt_cntr,
        cmpl_cntr: command.cmpl_cntr as usize,
        done: send_done(command.tgt, command.org_cntr, command.shdlr, command.sinfo, 0),
        hint: hint(command.flags),
        ..without_data(command.tgt, command.hdr_hdl, command.uhdr, command.uhdr_len)
    }
}

/// The request of LAPI_DGSP_XFER.
#[inline]
pub fn dgsp_message(command: &lapi_amdgsp_t) -> DgspMessage {
    let message = Message {
        tgt_cntr: command.tgt_cntr,
        cmpl_cntr: command.cmpl_cntr as usize,
        done: send_done(command.tgt, command.org_cntr, command.shdlr, command.sinfo, command.udata_len),
        hint: hint(command.flags),
        ..without_data(command.tgt, command.hdr_hdl, command.uhdr, command.uhdr_len)
    };
    DgspMessage {
        message,
        dgsp: command.dgsp,
        udata: command.udata.cast(),
        bytes: wide(command.udata_len),
        contiguous: is_contiguous(command.flags),
    }
}

/// The request of LAPI_Rmw and LAPI_Rmw64.
pub fn read_modify_write(command: &lapi_rmw_t) -> rmw::Request {
    rmw::Request {
        tgt: command.tgt,
        op: command.op,
        size: command.size,
        var: command.tgt_var,
        in_val: command.in_val as usize,
        previous: command.prev_tgt_val as usize,
        done: send_done(command.tgt, command.org_cntr, command.shdlr, command.sinfo, 0),
    }
}

/// The request of LAPI_RDMA_XFER: its rdma_tag may be uninitialised, and is not read.
pub fn rdma(command: &lapi_hwxfer_t) -> rdma::Request {
    rdma::Request {
        tgt: command.tgt,
        op: command.op.into(),
        context: command.remote_cxt,
        source: rdma::RdmaAddress { memory: command.src_pvo, offset: command.src_offset },
        target: rdma::RdmaAddress { memory: command.tgt_pvo, offset: command.tgt_offset },
        len: wide(command.len),
        org_cntr: command.org_cntr as usize,
        handler: command.shdlr.map_or(0, |handler| handler as usize),
        info: command.sinfo as usize,
    }
}

/// The request of LAPI_Putv.
///
/// # Safety
/// The vectors must be null or as [`Vector::of`] wants them.
pub unsafe fn put_vector(command: &lapi_putv_t) -> PutRequest {
    PutRequest {
        // SAFETY: the caller's promise.
        pair: unsafe { pair(command.org_vec, command.tgt_vec, command.flags) },
        put: Put {
            tgt: command.tgt,
            places: Places::EMPTY,
            tgt_cntr: command.tgt_cntr,
            cmpl_cntr: command.cmpl_cntr as usize,
            done: send_done(command.tgt, command.org_cntr, command.shdlr, command.sinfo, 0),
            hint: hint(command.flags),
        },
    }
}

/// The request of LAPI_Getv.
///
/// # Safety
/// The vectors must be null or as [`Vector::of`] wants them.
pub unsafe fn get_vector(command: &lapi_getv_t) -> GetRequest {
    GetRequest {
        // SAFETY: the caller's promise.
        pair: unsafe { pair(command.org_vec, command.tgt_vec, command.flags) },
        get: Get {
            tgt: command.tgt,
            places: Places::EMPTY,
            tgt_cntr: command.tgt_cntr,
            org_cntr: command.org_cntr as usize,
            handler: command.chndlr,
            parameter: command.cinfo as usize,
            hint: hint(command.flags),
        },
    }
}

/// The vectors of a put or get.
///
/// # Safety
/// The conditions of [`Vector::of`] hold.
unsafe fn pair(origin: *const lapi_vec_t, target: *mut c_void, flags: c_int) -> Pair {
    // SAFETY: the caller's promise.
    let (origin, target) = unsafe { (origin_vector(origin), target_vector(target, flags)) };
    Pair { origin, target, contiguous: is_contiguous(flags) }
}

/// The vector at the origin; none for null.
///
/// # Safety
/// The conditions of [`Vector::of`] hold.
pub unsafe fn origin_vector(vector: *const lapi_vec_t) -> Option<Vector> {
    // SAFETY: the caller's promise.
    unsafe { Vector::of(vector) }
}

/// The target's vector: a lapi_vec_t, or a lapi_lvec_t, whose addresses are 64 bits wide in
/// 32-bit programs too.
unsafe fn target_vector(vector: *mut c_void, flags: c_int) -> Option<Vector> {
    // SAFETY: null, or a vector of the program of the kind that the flags name.
    unsafe {
        if flags & USE_TGT_VEC_TYPE != 0 { Vector::of(vector.cast()) } else { Vector::of_long(vector.cast()) }
    }
}

/// What all kinds of active message have.
#[inline]
fn without_data(tgt: c_uint, handler: lapi_long_t, uhdr: *mut c_void, uhdr_len: c_uint) -> Message {
    Message {
        tgt,
        handler,
        header: Piece { ptr: uhdr as *const u8, len: uhdr_len as usize },
        data: Content::EMPTY,
        shape: None,
        atom: 0,
        tgt_cntr: 0,
        cmpl_cntr: 0,
        done: SendDone::nothing(tgt),
        hint: Hint::None,
        copied: false,
    }
}

/// Contiguous data at both tasks.
#[inline]
fn between(local: *mut c_void, remote: lapi_long_t, len: c_ulong) -> Places {
    Places::Contiguous { local: local as usize, remote, len: len as usize }
}

/// A piece of the program's memory.
#[inline]
pub fn piece(first: *mut c_void, len: usize) -> Piece {
    Piece { ptr: first as *const u8, len }
}

#[inline]
fn contiguous(data: *mut c_void, len: c_ulong) -> Content {
    Content::Piece(piece(data, len as usize))
}

/// What follows when the origin's memory may be changed again.
#[inline]
fn send_done(
    peer: c_uint,
    org_cntr: *mut lapi_cntr_t,
    handler: scompl_hndlr_p,
    info: *mut c_void,
    bytes: c_ulong,
) -> SendDone {
    SendDone {
        org_cntr: org_cntr as usize,
        handler: handler.map_or(0, |handler| handler as usize),
        info: info as usize,
        bytes: wide(bytes),
        user: true,
        ..SendDone::nothing(peer)
    }
}

/// Whether the program declares all data contiguous, whatever its vectors and DGSPs describe.
#[inline]
pub fn is_contiguous(flags: c_int) -> bool {
    flags & BUFFER_BOTH_CONTIGUOUS != 0
}

/// The flags that are hints.
const HINTS: c_int = LAPI_NOT_USE_BULK_XFER | LAPI_USE_BULK_XFER | LAPI_NOT_STRIPE;

#[inline]
fn hint(flags: c_int) -> Hint {
    if flags & HINTS == 0 { Hint::None } else { hint_of(flags & HINTS) }
}

#[cold]
fn hint_of(hints: c_int) -> Hint {
    match hints {
        LAPI_USE_BULK_XFER => Hint::Bulk,
        LAPI_NOT_STRIPE => Hint::OneRail,
        _ if hints & LAPI_NOT_USE_BULK_XFER != 0 => Hint::Packets,
        _ => Hint::BulkOneRail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_hints() {
        let (bulk, not_bulk, one) = (LAPI_USE_BULK_XFER, LAPI_NOT_USE_BULK_XFER, LAPI_NOT_STRIPE);
        for (flags, wanted) in [
            (0, Hint::None),
            (bulk, Hint::Bulk),
            (one, Hint::OneRail),
            (one | bulk, Hint::BulkOneRail),
            (not_bulk, Hint::Packets),
            (not_bulk | bulk, Hint::Packets),
            (not_bulk | one, Hint::Packets),
            (not_bulk | bulk | one, Hint::Packets),
        ] {
            assert_eq!(hint(flags), wanted, "{flags:#x}");
            assert_eq!(hint(flags | USE_TGT_VEC_TYPE | BUFFER_BOTH_CONTIGUOUS), wanted, "{flags:#x}");
        }
    }
}
