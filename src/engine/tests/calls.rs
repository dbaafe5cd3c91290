//! Single operations, with as few arguments as possible.

use super::job::{self, Task};
use crate::abi::*;
use crate::api::{active_message, fence, progress, put_get, rmw};
use crate::engine::context::Held;
use crate::engine::context::request::{Get, Hint, Message, Places, Put};
use crate::error::Result;
use crate::memory::bytes::Piece;
use crate::proto::content::Content;
use crate::proto::outbox::SendDone;
use libc::{c_uint, c_ulong, c_void};
use std::ptr;
use std::sync::atomic::AtomicI32;

/// What an operation has beside its data.
#[derive(Clone, Copy, Default)]
pub struct Extras<'a> {
    pub tgt_cntr: Option<&'a AtomicI32>,
    pub org_cntr: Option<&'a AtomicI32>,
    pub cmpl_cntr: Option<&'a AtomicI32>,
    /// The parameter of the send completion handler, which notes it in
    /// [`Task::reported`]; 0 for none.
    pub reported: usize,
    pub hint: Hint,
}

fn address(counter: Option<&AtomicI32>) -> usize {
    counter.map_or(0, |counter| counter.as_ptr().addr())
}

impl Extras<'_> {
    fn done(&self, tgt: u32, bytes: usize) -> SendDone {
        SendDone {
            org_cntr: address(self.org_cntr),
            handler: if self.reported == 0 { 0 } else { note_sent as *const () as usize },
            info: self.reported,
            bytes: bytes as u64,
            user: true,
            ..SendDone::nothing(tgt)
        }
    }
}

pub unsafe extern "C" fn note_sent(
    hndl: *mut lapi_handle_t,
    parameter: *mut c_void,
    info: *mut lapi_sh_info_t,
) {
    // SAFETY: the library gives the structure for the time of the call.
    let reason = unsafe { (*info).reason };
    job::task(hndl).reported.lock().push((parameter.addr(), reason));
}

/// A completion handler of a get, which has nothing to do.
pub unsafe extern "C" fn note_arrived(_: *mut lapi_handle_t, _: *mut c_void) {}

/// The lock of a context that is open.
pub fn enter(task: &Task) -> Held<'_> {
    task.context.enter().expect("an open context")
}

/// LAPI_Put. Data and target must live until it is complete.
pub fn put(task: &Task, tgt: u32, to: *mut u8, data: &[u8], extras: Extras<'_>) -> Result<()> {
    let put = Put {
        tgt,
        places: Places::Contiguous { local: data.as_ptr().addr(), remote: to.addr() as u64, len: data.len() },
        tgt_cntr: address(extras.tgt_cntr) as u64,
        cmpl_cntr: address(extras.cmpl_cntr),
        done: extras.done(tgt, data.len()),
        hint: extras.hint,
    };
    // SAFETY: the caller's memory, by the contract of this function.
    unsafe { put_get::put(&mut task.context.enter()?, &put) }
}

/// LAPI_Get. Source and buffer must live until it is complete.
pub fn get(task: &Task, tgt: u32, from: &[u8], buffer: *mut u8, extras: Extras<'_>) -> Result<()> {
    get_noted(task, tgt, from, buffer, extras, None)
}

/// LAPI_Xfer of a get, with this completion handler.
pub fn get_noted(
    task: &Task,
    tgt: u32,
    from: &[u8],
    buffer: *mut u8,
    extras: Extras<'_>,
    handler: compl_hndlr_p,
) -> Result<()> {
    let get = Get {
        tgt,
        places: Places::Contiguous {
            local: buffer.addr(),
            remote: from.as_ptr().addr() as u64,
            len: from.len(),
        },
        tgt_cntr: address(extras.tgt_cntr) as u64,
        org_cntr: address(extras.org_cntr),
        handler,
        parameter: 0,
        hint: extras.hint,
    };
    // SAFETY: as for `put`.
    unsafe { put_get::get(&mut task.context.enter()?, &get) }
}

/// LAPI_Rmw64 that adds 1. The variable must live until it is complete.
pub fn increment(task: &Task, tgt: u32, variable: *const u64, extras: Extras<'_>) -> Result<()> {
    let one = 1u64;
    let request = rmw::Request {
        tgt,
        op: FETCH_AND_ADD,
        size: 64,
        var: variable.addr() as u64,
        in_val: (&raw const one).addr(),
        previous: 0,
        done: extras.done(tgt, 0),
    };
    // SAFETY: as for `put`; the value is read before the call returns.
    unsafe { rmw::rmw(&mut task.context.enter()?, &request) }
}

/// LAPI_Amsend. Header and data must live until it is complete.
pub fn send(
    task: &Task,
    tgt: u32,
    handler: hdr_hndlr_t,
    header: &[u8],
    data: &[u8],
    extras: Extras<'_>,
) -> Result<()> {
    let message = Message {
        tgt,
        handler: handler as *const () as u64,
        header: Piece::of(header),
        data: Content::Piece(Piece::of(data)),
        shape: None,
        atom: 0,
        tgt_cntr: address(extras.tgt_cntr) as u64,
        cmpl_cntr: address(extras.cmpl_cntr),
        done: extras.done(tgt, data.len()),
        hint: extras.hint,
        copied: false,
    };
    // SAFETY: as for `put`.
    unsafe { active_message::amsend(&mut task.context.enter()?, &message) }
}

/// A header handler: the data goes to the address in the header.
pub unsafe extern "C" fn as_the_header_says(
    _: *mut lapi_handle_t,
    uhdr: *mut c_void,
    _: *mut c_uint,
    _: *mut c_ulong,
    _: *mut compl_hndlr_p,
    _: *mut *mut c_void,
) -> *mut c_void {
    // SAFETY: the header begins with one word.
    ptr::with_exposed_provenance_mut(unsafe { uhdr.cast::<usize>().read_unaligned() })
}

/// LAPI_Fence.
pub fn fence(task: &Task) -> Result<()> {
    fence::fence(&mut task.context.enter()?)
}

/// LAPI_Gfence.
pub fn gfence(task: &Task) -> Result<()> {
    fence::gfence(&mut task.context.enter()?)
}

/// LAPI_Waitcntr.
pub fn wait(task: &Task, counter: &AtomicI32, value: i32) -> Result<i32> {
    // SAFETY: a counter that lives during the call.
    unsafe { progress::waitcntr(&mut task.context.enter()?, counter.as_ptr().addr(), value) }
}

/// Memory that lives for as long as the process: what a task that has died was about to use
/// is never freed.
pub fn forever(len: usize) -> &'static mut [u8] {
    Box::leak(vec![0; len].into_boxed_slice())
}

/// A counter that lives for as long as the process.
pub fn counter() -> &'static AtomicI32 {
    Box::leak(Box::default())
}
