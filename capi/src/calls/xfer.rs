//! LAPI_Xfer: the same operations, by a structure.

use super::done;
use crate::table;
use libc::{c_int, c_ulong, c_void};
use openlapi::abi::*;
use openlapi::api::vector::{self, Pair};
use openlapi::api::{active_message, dgsp, put_get, rmw, unbuilt};
use openlapi::base::bytes::Piece;
use openlapi::dgsp::vector::Vector;
use openlapi::engine::context::Held;
use openlapi::engine::context::request::{Get, GetDone, Hint, Message, Put};
use openlapi::error::{Error, Result};
use openlapi::proto::content::Content;

pub(crate) unsafe fn xfer(hndl: lapi_handle_t, xfer_cmd: *mut lapi_xfer_t) -> c_int {
    table::call("LAPI_Xfer", hndl, |held| {
        // SAFETY: null, or the program's structure, of which only the member that its type names is looked at.
        unsafe {
            let command = xfer_cmd
                .as_ref()
                .ok_or_else(|| Error::new(LAPI_ERR_XFER_CMD, "a null pointer to the command"))?;
            match command.Xfer_type {
                LAPI_GET_XFER => get(held, &command.Get),
                LAPI_PUT_XFER => put(held, &command.Put),
                LAPI_AM_XFER => am(held, &command.Am),
                LAPI_AM_LW_XFER => light_weight(held, &command.Am),
                LAPI_RMW_XFER => read_modify_write(held, &command.Rmw),
                LAPI_PUTV_XFER => putv(held, &command.Putv),
                LAPI_GETV_XFER => getv(held, &command.Getv),
                LAPI_AMV_XFER => amv(held, &command.Amv),
                LAPI_DGSP_XFER => am_dgsp(held, &command.Dgsp),
                other => Err(unbuilt::transfer(other)),
            }
        }
    })
}

fn hint(flags: c_int) -> Hint {
    if flags & LAPI_NOT_USE_BULK_XFER != 0 {
        Hint::Packets
    } else if flags & LAPI_USE_BULK_XFER != 0 {
        Hint::Bulk
    } else {
        Hint::None
    }
}

unsafe fn get(held: &mut Held<'_>, command: &lapi_get_t) -> Result<()> {
    let get = Get {
        tgt: command.tgt,
        addr: command.tgt_addr,
        buffer: command.org_addr as usize,
        len: wide(command.len),
        tgt_cntr: command.tgt_cntr,
        org_cntr: command.org_cntr as usize,
        handler: command.chndlr,
        parameter: command.cinfo as usize,
        hint: hint(command.flags),
    };
    // SAFETY: what the man page asks of the program is what the core asks.
    unsafe { put_get::get(held, &get) }
}

unsafe fn put(held: &mut Held<'_>, command: &lapi_put_t) -> Result<()> {
    let put = Put {
        tgt: command.tgt,
        addr: command.tgt_addr,
        data: Piece { ptr: command.org_addr as *const u8, len: command.len as usize },
        tgt_cntr: command.tgt_cntr,
        cmpl_cntr: command.cmpl_cntr as usize,
        done: done(command.tgt, command.org_cntr, command.shdlr, command.sinfo, command.len),
        hint: hint(command.flags),
    };
    // SAFETY: what the man page asks of the program is what the core asks.
    unsafe { put_get::put(held, &put) }
}

/// What both kinds of active message look at; a light-weight one leaves the other fields uninitialised.
fn message(command: &lapi_am_t, bytes: c_ulong) -> Message {
    Message {
        tgt: command.tgt,
        handler: command.hdr_hdl,
        header: Piece { ptr: command.uhdr as *const u8, len: command.uhdr_len as usize },
        data: Content::Piece(Piece { ptr: command.udata as *const u8, len: command.udata_len as usize }),
        shape: None,
        atom: 0,
        tgt_cntr: 0,
        cmpl_cntr: 0,
        done: done(command.tgt, std::ptr::null_mut(), None, std::ptr::null_mut(), bytes),
        hint: Hint::None,
        copied: false,
    }
}

unsafe fn am(held: &mut Held<'_>, command: &lapi_am_t) -> Result<()> {
    let message = Message {
        tgt_cntr: command.tgt_cntr,
        cmpl_cntr: command.cmpl_cntr as usize,
        done: done(command.tgt, command.org_cntr, command.shdlr, command.sinfo, command.udata_len),
        hint: hint(command.flags),
        ..message(command, command.udata_len)
    };
    // SAFETY: what the man page asks of the program is what the core asks.
    unsafe { active_message::amsend(held, &message) }
}

unsafe fn light_weight(held: &mut Held<'_>, command: &lapi_am_t) -> Result<()> {
    let message = Message { copied: true, ..message(command, command.udata_len) };
    // SAFETY: what the man page asks of the program is what the core asks.
    unsafe { active_message::light_weight(held, &message) }
}

unsafe fn read_modify_write(held: &mut Held<'_>, command: &lapi_rmw_t) -> Result<()> {
    let request = rmw::Request {
        tgt: command.tgt,
        op: command.op,
        size: command.size,
        var: command.tgt_var,
        in_val: command.in_val as usize,
        previous: command.prev_tgt_val as usize,
        done: done(command.tgt, command.org_cntr, command.shdlr, command.sinfo, 0),
    };
    // SAFETY: what the man page asks of the program is what the core asks.
    unsafe { rmw::rmw(held, &request) }
}

/// The target's vector: a lapi_vec_t, or a lapi_lvec_t, whose addresses are 64 bits wide in 32-bit programs too.
unsafe fn target_vector(vector: *mut c_void, flags: c_int) -> Option<Vector> {
    // SAFETY: null, or a vector of the program of the kind that the flags tell.
    unsafe {
        if flags & USE_TGT_VEC_TYPE != 0 { Vector::of(vector.cast()) } else { Vector::of_long(vector.cast()) }
    }
}

unsafe fn putv(held: &mut Held<'_>, command: &lapi_putv_t) -> Result<()> {
    // SAFETY: null, or vectors of the program.
    let (origin, target) =
        unsafe { (Vector::of(command.org_vec), target_vector(command.tgt_vec, command.flags)) };
    let pair = Pair {
        tgt: command.tgt,
        origin: origin.as_ref(),
        target: target.as_ref(),
        tgt_cntr: command.tgt_cntr,
        hint: hint(command.flags),
    };
    let done = done(command.tgt, command.org_cntr, command.shdlr, command.sinfo, 0);
    // SAFETY: what the man page asks of the program is what the core asks.
    unsafe { vector::put(held, &pair, command.cmpl_cntr as usize, done) }
}

unsafe fn getv(held: &mut Held<'_>, command: &lapi_getv_t) -> Result<()> {
    // SAFETY: null, or vectors of the program.
    let (origin, target) =
        unsafe { (Vector::of(command.org_vec), target_vector(command.tgt_vec, command.flags)) };
    let pair = Pair {
        tgt: command.tgt,
        origin: origin.as_ref(),
        target: target.as_ref(),
        tgt_cntr: command.tgt_cntr,
        hint: hint(command.flags),
    };
    let done = GetDone {
        org_cntr: command.org_cntr as usize,
        handler: command.chndlr,
        parameter: command.cinfo as usize,
    };
    // SAFETY: what the man page asks of the program is what the core asks.
    unsafe { vector::get(held, &pair, done) }
}

unsafe fn amv(held: &mut Held<'_>, command: &lapi_amv_t) -> Result<()> {
    let message = Message {
        tgt: command.tgt,
        handler: command.hdr_hdl,
        header: Piece { ptr: command.uhdr as *const u8, len: command.uhdr_len as usize },
        data: Content::EMPTY,
        shape: None,
        atom: 0,
        tgt_cntr: command.tgt_cntr,
        cmpl_cntr: command.cmpl_cntr as usize,
        done: done(command.tgt, command.org_cntr, command.shdlr, command.sinfo, 0),
        hint: hint(command.flags),
        copied: false,
    };
    // SAFETY: what the man page asks of the program is what the core asks.
    unsafe { vector::amsend(held, message, Vector::of(command.org_vec).as_ref()) }
}

unsafe fn am_dgsp(held: &mut Held<'_>, command: &lapi_amdgsp_t) -> Result<()> {
    let message = Message {
        tgt: command.tgt,
        handler: command.hdr_hdl,
        header: Piece { ptr: command.uhdr as *const u8, len: command.uhdr_len as usize },
        data: Content::EMPTY,
        shape: None,
        atom: 0,
        tgt_cntr: command.tgt_cntr,
        cmpl_cntr: command.cmpl_cntr as usize,
        done: done(command.tgt, command.org_cntr, command.shdlr, command.sinfo, command.udata_len),
        hint: hint(command.flags),
        copied: false,
    };
    // SAFETY: what the man page asks of the program is what the core asks.
    unsafe { dgsp::amsend(held, message, command.dgsp, command.udata.cast(), wide(command.udata_len)) }
}
