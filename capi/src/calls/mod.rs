//! What the calls do: conversion from C, one call of the core, conversion back.

// The parameters are those of the C calls.
#![allow(clippy::too_many_arguments)]

pub mod active_message;
pub mod address;
pub mod env;
pub mod fence;
pub mod init;
mod lock_sharing;
pub mod progress;
pub mod put_get;
pub mod recovery;
pub mod rmw;
pub mod util;
pub mod vector;
pub mod xfer;

use libc::{c_ulong, c_void};
use openlapi::abi::{lapi_cntr_t, scompl_hndlr_p, wide};
use openlapi::proto::outbox::SendDone;

/// What follows when the origin's memory is free.
fn done(
    peer: u32,
    org_cntr: *mut lapi_cntr_t,
    handler: scompl_hndlr_p,
    info: *mut c_void,
    bytes: c_ulong,
) -> SendDone {
    SendDone {
        org_cntr: org_cntr as usize,
        handler: handler.map_or(0, |handler| handler as usize),
        info: info as usize,
        peer,
        error: 0,
        bytes: wide(bytes),
        piece: 0,
        posted: 0,
        user: true,
    }
}
