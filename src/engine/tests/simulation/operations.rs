//! How the tasks of a simulation start operations, and the handlers of these.

use super::super::memory::{Memory, bytes_of};
use super::model::Model;
use super::op::{Op, What};
use crate::abi::*;
use crate::api::{active_message, put_get, rmw, vector};
use crate::base::rng::Rng;
use crate::base::simulation;
use crate::engine::context::events::{Events, Failure};
use crate::engine::context::membership::Standing;
use crate::engine::context::request::{Get, Hint, Message, Places, Put};
use crate::engine::context::{Context, Held};
use crate::error::Result;
use crate::memory::bytes::Piece;
use crate::proto::content::Content;
use crate::proto::outbox::SendDone;
use crate::transport::Task;
use libc::{c_int, c_uint, c_ulong, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Draws an operation, and starts it.
pub(super) fn draw_and_start(
    model: &Arc<Model>,
    rng: &mut Rng,
    held: &mut Held<'_>,
    (me, to): (Task, Task),
    phase: Option<u32>,
) {
    let incarnation = if me == to { 0 } else { held.core().incarnation(to) };
    let standing = if me == to { Standing::Up } else { held.core().membership.standing(to) };
    let op = model.draw(rng, me, to, incarnation, phase);
    let outcome = start(model, &op, held);
    if let Err(error) = outcome {
        let no_memory = error.code == LAPI_ERR_MEMORY_EXHAUSTED && model.scenario.shortage > 0.0;
        let may = no_memory
            || model.may_be_gone(me, to)
            || standing == Standing::Purged
            || op.void.load(Ordering::Relaxed);
        model.expect(may, || format!("{}: {error}", op.name()));
        model.withdraw(&op);
    }
}

fn start(model: &Model, op: &Op, held: &mut Held<'_>) -> Result<()> {
    let address = |at: usize| if op.has[at] { op.counters[at].as_ptr().addr() } else { 0 };
    let (tgt, tgt_cntr, cmpl_cntr, hint) = (op.to, address(0) as u64, address(2), Hint::None);
    let done = SendDone {
        org_cntr: address(1),
        bytes: op.origin.len as u64,
        user: true,
        ..SendDone::nothing(op.to)
    };
    let [origin, target] = [&op.origin, &op.target].map(Memory::vector);
    let (local, remote, len) = (op.origin.ptr().addr(), op.target.ptr().addr() as u64, op.origin.len);
    let places = Places::Contiguous { local, remote, len };
    // SAFETY: all addresses are of the model's memory, which is there until the simulation is over.
    unsafe {
        match op.what {
            What::Put => {
                let put = Put { tgt, places, tgt_cntr, cmpl_cntr, done, hint };
                if origin.is_none() {
                    return put_get::put(held, &put);
                }
                let pair = vector::Pair { origin, target, contiguous: false };
                vector::put(held, vector::PutRequest { pair, put: Put { places: Places::EMPTY, ..put } })
            }
            What::Get => {
                let get =
                    Get { tgt, places, tgt_cntr, org_cntr: address(1), handler: None, parameter: 0, hint };
                if origin.is_none() {
                    return put_get::get(held, &get);
                }
                let pair = vector::Pair { origin, target, contiguous: false };
                vector::get(held, vector::GetRequest { pair, get: Get { places: Places::EMPTY, ..get } })
            }
            What::Am { .. } => {
                let message = Message {
                    tgt,
                    handler: header_handler as *const () as u64,
                    header: Piece { ptr: op.header.ptr(), len: op.header.len },
                    data: Content::Piece(Piece { ptr: op.origin.ptr(), len: op.origin.len }),
                    shape: None,
                    atom: 0,
                    tgt_cntr,
                    cmpl_cntr,
                    done,
                    hint,
                    copied: false,
                };
                match origin {
                    Some(_) => vector::amsend(held, message, origin, false),
                    None => active_message::amsend(held, &message),
                }
            }
            What::Rmw => {
                let one = 1_u64;
                let var = model.variable(op.to, op.to_life).as_ptr() as u64;
                let request = rmw::Request {
                    tgt,
                    op: FETCH_AND_ADD,
                    size: 64,
                    var,
                    in_val: (&raw const one).addr(),
                    previous: op.origin.ptr().addr(),
                    done,
                };
                rmw::rmw(held, &request)
            }
        }
    }
}

fn model() -> Arc<Model> {
    simulation::here().expect("a thread of a simulation")
}

/// The task of a handler: its context has this handle.
fn task(hndl: *mut lapi_handle_t) -> Task {
    // SAFETY: the library gives a pointer to the handle, which is valid during the call.
    unsafe { *hndl - 1 }
}

/// Compares what is reported with what the model expects.
pub(super) struct Reports;

impl Events for Reports {
    fn ends_by(&self, _: &Failure<'_>) -> bool {
        false
    }

    fn failed(&self, _: &Context, failure: &Failure<'_>) {
        let (model, me, code, src) = (model(), failure.task, failure.error.code, failure.source);
        // A task that waits for one whose death is not reported lets others wait.
        let before = model.may_be_gone(me, src);
        model.of(me, |own| own.reports[src as usize] += 1);
        model.log(|| format!("error {code} of task {src} is reported to task {me}"));
        let may = before || code == LAPI_ERR_TIMEOUT && model.scenario.has_silence();
        let right = [LAPI_ERR_NO_CONNECTIVITY, LAPI_ERR_TIMEOUT].contains(&code);
        model.expect(may && right, || format!("error {code} of task {src} was reported to task {me}"));
    }

    fn fatal(&self) {}

    fn stalled(&self) {}

    fn closing(&self, _: &Context, _: bool) {}
}

unsafe extern "C" fn header_handler(
    hndl: *mut lapi_handle_t,
    uhdr: *mut c_void,
    uhdr_len: *mut c_uint,
    msg_len: *mut c_ulong,
    comp_h: *mut compl_hndlr_p,
    uinfo: *mut *mut c_void,
) -> *mut c_void {
    let (model, me) = (model(), task(hndl));
    // SAFETY: the library gives these pointers for the time of the call; msg_len is the first field
    // of the structure.
    let (header, info) = unsafe {
        let header = std::slice::from_raw_parts(uhdr.cast::<u8>(), *uhdr_len as usize);
        (header, &mut *msg_len.cast::<lapi_return_info_t>())
    };
    let number = header.first_chunk().map_or(usize::MAX, |word| usize::from_ne_bytes(*word));
    let Some(op) = model.op(number) else {
        model.expect(false, || format!("task {me} was sent a header that says {number}"));
        return ptr::null_mut();
    };
    let What::Am { handler, drops, .. } = op.what else {
        model.expect(false, || format!("{}: a message", op.name()));
        return ptr::null_mut();
    };
    let life = model.of(me, |own| own.life);
    let lives = op.to_life..=op.last_life.load(Ordering::Relaxed);
    let right = header.len() == op.header.len
        && header[8..] == bytes_of(number, op.header.len)[8..]
        && (info.msg_len as usize, info.src, me) == (op.target.len, op.from as c_int, op.to);
    model.expect(right && lives.contains(&life), || {
        format!("{}: arrived at task {me}, life {life} of {lives:?}, with {info:?}", op.name())
    });
    if op.offered.fetch_add(1, Ordering::Relaxed) < drops {
        info.ctl_flags = LAPI_DROP_PKT;
        return ptr::null_mut();
    }
    let times = op.accepted.fetch_add(1, Ordering::Relaxed) + 1;
    model.expect(times == 1, || format!("{}: accepted {times} times", op.name()));
    info.ctl_flags = LAPI_DELIVER_MSG;
    if let Some(how) = handler {
        info.ret_flags = [LAPI_SEND_REPLY, LAPI_LOCAL_STATE, LAPI_NORMAL][how as usize];
    }
    // SAFETY: the library's own variables, for the time of the call.
    unsafe {
        *comp_h = handler.map(|_| completed as compl_hndlr_t);
        *uinfo = ptr::without_provenance_mut(number);
    }
    op.target.vector_ptr().unwrap_or(op.target.ptr().cast())
}

unsafe extern "C" fn completed(hndl: *mut lapi_handle_t, parameter: *mut c_void) {
    let (model, me) = (model(), task(hndl));
    let Some(op) = model.op(parameter.addr()) else { return };
    let times = op.completed.fetch_add(1, Ordering::Relaxed) + 1;
    model.expect(times == 1 && op.arrived(), || {
        format!("{}: completed {times} times, its data is there: {}", op.name(), op.arrived())
    });
    // A thread in a handler cannot be ended.
    let What::Am { goes_on: true, handler: Some(0), .. } = op.what else { return };
    let context = model.of(me, |own| own.context.upgrade());
    let Some(mut held) = context.as_ref().and_then(|context| context.enter().ok()) else { return };
    let mut rng = Rng::stream(model.scenario.seed, 1 << 32 | op.number as u64);
    let to = rng.below(model.scenario.tasks.into()) as Task;
    draw_and_start(&model, &mut rng, &mut held, (me, to), None);
}
