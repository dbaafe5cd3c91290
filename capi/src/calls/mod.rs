//! What the calls do, each by what follows `LAPI_` in its name: conversion from C, one call of the
//! core, conversion back.

// The parameters are those of the C calls.
#![allow(clippy::too_many_arguments)]

mod active_message;
mod address;
mod env;
mod fence;
mod init;
mod lock_sharing;
mod progress;
mod put_get;
mod recovery;
mod rmw;
mod util;
mod vector;
mod xfer;

pub(crate) use active_message::amsend;
pub(crate) use address::{addr_get, addr_set, address, address_init, address_init64};
pub(crate) use env::{msg_string, qenv, senv};
pub(crate) use fence::{fence, gfence};
pub(crate) use init::{init, term};
pub(crate) use progress::{getcntr, msgpoll, probe, setcntr, waitcntr};
pub(crate) use put_get::{get, put, put_in};
pub(crate) use recovery::{nopoll_wait, purge_totask, resume_totask, setcntr_wstatus};
pub(crate) use rmw::{rmw, rmw64};
pub(crate) use util::util;
pub(crate) use vector::{amsendv, getv, putv};
pub(crate) use xfer::xfer;
