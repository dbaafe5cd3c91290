//! The program that runs a [`Plan`]: it starts operations, and its handlers check what
//! they are given.

use super::job::{self, Task};
use super::memory::{Memory, bytes_of};
use super::plan::{Op, Plan, What, When};
use crate::abi::*;
use crate::api::{active_message, put_get, rmw, vector};
use crate::engine::context::Held;
use crate::engine::context::request::{Get, Message, Places, Put};
use crate::memory::bytes::Piece;
use crate::proto::content::Content;
use crate::proto::outbox::SendDone;
use libc::{c_int, c_uint, c_ulong, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// The index under which tasks register their header handler.
const INDEX: usize = 7;

/// Gives the plan to a task, and registers its header handler.
pub fn prepare(task: &Task, plan: &Arc<Plan>) {
    assert!(task.play.set(plan.clone()).is_ok(), "a task plays once");
    let mut held = task.context.enter().expect("an open context");
    held.register_function(INDEX as i32, header_handler as *const () as usize).expect("a valid index");
}

/// The plan of a task.
pub fn plan(task: &Task) -> Arc<Plan> {
    task.play.get().cloned().and_then(|play| play.downcast().ok()).expect("a task that plays a plan")
}

/// Starts an operation.
pub fn start(plan: &Plan, number: usize, held: &mut Held<'_>) {
    let op = &plan.ops[number];
    let target = &plan.counters[op.to as usize][op.thread];
    let origin = &plan.counters[op.from as usize][op.thread];
    let address = |wanted: bool, counter: &AtomicI32| if wanted { counter.as_ptr().addr() } else { 0 };
    let (tgt_cntr, cmpl_cntr) =
        (address(op.tgt_cntr, &target.tgt) as u64, address(op.cmpl_cntr, &origin.cmpl));
    let done = SendDone {
        org_cntr: address(op.org_cntr, &origin.org),
        handler: if op.reported { sent as *const () as usize } else { 0 },
        info: number,
        bytes: op.origin.len as u64,
        user: true,
        ..SendDone::nothing(op.to)
    };
    let data = Piece { ptr: op.origin.ptr(), len: op.origin.len };
    op.started.fetch_add(1, Ordering::AcqRel);
    // SAFETY: all addresses are of the plan's memory, which is there until the job is over.
    let outcome = unsafe {
        let [here, there] = [&op.origin, &op.target].map(Memory::vector);
        let (origin, target) = (here, there);
        let handler = op.reported.then_some(got as compl_hndlr_t);
        let (local, remote, len) = (op.origin.ptr().addr(), op.target.ptr().addr() as u64, op.origin.len);
        let places = Places::Contiguous { local, remote, len };
        let (tgt, hint, org_cntr, parameter) = (op.to, op.hint, done.org_cntr, number);
        match &op.what {
            What::Put => {
                let put = Put { tgt, places, tgt_cntr, cmpl_cntr, done, hint };
                if origin.is_none() {
                    put_get::put(held, &put)
                } else {
                    let pair = vector::Pair { origin, target, contiguous: false };
                    let put = Put { places: Places::EMPTY, ..put };
                    vector::put(held, vector::PutRequest { pair, put })
                }
            }
            What::Get => {
                let get = Get { tgt, places, tgt_cntr, org_cntr, handler, parameter, hint };
                if origin.is_none() {
                    put_get::get(held, &get)
                } else {
                    let pair = vector::Pair { origin, target, contiguous: false };
                    let get = Get { places: Places::EMPTY, ..get };
                    vector::get(held, vector::GetRequest { pair, get })
                }
            }
            What::Am { header, copied, by_index, .. } => {
                let message = Message {
                    tgt: op.to,
                    handler: if *by_index { INDEX as u64 } else { header_handler as *const () as u64 },
                    header: Piece { ptr: header.ptr(), len: header.len },
                    data: Content::Piece(data),
                    shape: None,
                    atom: 0,
                    tgt_cntr,
                    cmpl_cntr,
                    done,
                    hint: op.hint,
                    copied: *copied,
                };
                match origin {
                    Some(_) => vector::amsend(held, message, origin, false),
                    None => active_message::amsend(held, &message),
                }
            }
            What::Rmw { op: code, wide, values } => {
                let narrow = values.map(|value| value as u32);
                let in_val = if *wide { values.as_ptr().addr() } else { narrow.as_ptr().addr() };
                let request = rmw::Request {
                    tgt: op.to,
                    op: *code,
                    size: if *wide { 64 } else { 32 },
                    var: plan.variables[op.to as usize][*code as usize][usize::from(*wide)].as_ptr() as u64,
                    in_val,
                    previous: op.origin.ptr().addr(),
                    done,
                };
                rmw::rmw(held, &request)
            }
        }
    };
    plan.expect(outcome.is_ok(), || format!("{}: {outcome:?}", op.name()));
    if op.free_at_once(plan.shape.copy_limit) {
        // What a handler sends is reported when the handler has returned.
        let reported = op.reported_times.load(Ordering::Acquire);
        plan.expect(reported == u32::from(op.reported && !held.in_handler()), || {
            format!("{}: reported {reported} times when the call returned", op.name())
        });
        spoil(op);
    }
}

/// The origin's memory is free: what is read from it now is wrong.
fn spoil(op: &Op) {
    op.origin.fill(op.number + 1);
    if let What::Am { header, .. } = &op.what {
        header.fill(op.number + 1);
    }
}

fn start_children(plan: &Plan, op: &Op, when: When, task: &Task) {
    for &(_, child) in op.children.iter().filter(|(then, _)| *then == when) {
        match task.context.enter() {
            Ok(mut held) => start(plan, child, &mut held),
            Err(error) => plan.expect(false, || format!("{}: {error}", plan.ops[child].name())),
        }
    }
}

/// Notes an event, and that it is not one too many.
fn count(plan: &Plan, op: &Op, count: &AtomicU32, most: u32, what: &str) {
    let times = count.fetch_add(1, Ordering::AcqRel) + 1;
    plan.expect(times <= most, || format!("{}: {what} {times} times", op.name()));
}

unsafe extern "C" fn header_handler(
    hndl: *mut lapi_handle_t,
    uhdr: *mut c_void,
    uhdr_len: *mut c_uint,
    msg_len: *mut c_ulong,
    comp_h: *mut compl_hndlr_p,
    uinfo: *mut *mut c_void,
) -> *mut c_void {
    let task = job::task(hndl);
    let plan = plan(&task);
    // SAFETY: the library gives these pointers for the time of the call; msg_len is the first field
    // of the structure.
    let (header, info) = unsafe {
        let header = std::slice::from_raw_parts(uhdr.cast::<u8>(), *uhdr_len as usize);
        (header, &mut *msg_len.cast::<lapi_return_info_t>())
    };
    let number = header.first_chunk().map_or(usize::MAX, |word| usize::from_ne_bytes(*word));
    let Some(op) = plan.ops.get(number) else {
        plan.expect(false, || format!("task {} was sent a header that says {number}", task.me));
        return ptr::null_mut();
    };
    let What::Am { header: sent, ctl, ret, null, handler, drops, .. } = &op.what else {
        plan.expect(false, || format!("{}: a message", op.name()));
        return ptr::null_mut();
    };
    let right = header.len() == sent.len
        && header[8..] == bytes_of(number, sent.len)[8..]
        && uhdr.addr().is_multiple_of(8)
        && info.msg_len as usize == op.target.len
        && info.src == op.from as c_int
        && task.me == op.to
        && (info.ret_flags, info.ctl_flags, info.recv_offset_dgsp_bytes)
            == (LAPI_NORMAL, LAPI_DELIVER_MSG, 0);
    plan.expect(right, || {
        format!("{}: arrived at task {} with {info:?}, {} bytes of header", op.name(), task.me, header.len())
    });
    let short = op.target.len != 0 && sent.len + op.target.len <= plan.shape.packet;
    let here = info.udata_one_pkt_ptr.cast::<u8>();
    plan.expect(short != here.is_null(), || format!("{}: its data is shown at {here:?}", op.name()));
    if !here.is_null() {
        // SAFETY: the data that is shown is readable during the call.
        let shown = unsafe { std::slice::from_raw_parts(here, op.target.len) };
        let right = here.addr() % 8 == 0 && shown == bytes_of(number, op.target.len);
        plan.expect(right, || format!("{}: other data is shown, at {here:?}", op.name()));
    }
    if op.offered.fetch_add(1, Ordering::AcqRel) < *drops {
        info.ctl_flags = LAPI_DROP_PKT;
        return ptr::null_mut();
    }
    count(&plan, op, &op.accepted, 1, "accepted");
    info.ctl_flags = *ctl;
    info.ret_flags = *ret;
    // SAFETY: the library's own variables, for the time of the call.
    unsafe {
        *comp_h = handler.then_some(completed as compl_hndlr_t);
        *uinfo = ptr::without_provenance_mut(number);
    }
    start_children(&plan, op, When::Header, &task);
    let buffer = op.target.vector_ptr().unwrap_or(op.target.ptr().cast());
    if *null { ptr::null_mut() } else { buffer }
}

unsafe extern "C" fn completed(hndl: *mut lapi_handle_t, parameter: *mut c_void) {
    let task = job::task(hndl);
    let plan = plan(&task);
    let op = &plan.ops[parameter.addr()];
    count(&plan, op, &op.completed, 1, "completed");
    plan.expect(op.arrived(), || format!("{}: complete, but the data is not there", op.name()));
    start_children(&plan, op, When::Completion, &task);
}

unsafe extern "C" fn got(hndl: *mut lapi_handle_t, parameter: *mut c_void) {
    let task = job::task(hndl);
    let plan = plan(&task);
    let op = &plan.ops[parameter.addr()];
    count(&plan, op, &op.reported_times, 1, "reported");
    plan.expect(op.arrived(), || format!("{}: complete, but the data is not there", op.name()));
    start_children(&plan, op, When::Sent, &task);
}

unsafe extern "C" fn sent(hndl: *mut lapi_handle_t, parameter: *mut c_void, info: *mut lapi_sh_info_t) {
    let task = job::task(hndl);
    let plan = plan(&task);
    let op = &plan.ops[parameter.addr()];
    // SAFETY: the library gives the structure for the time of the call.
    let info = unsafe { &*info };
    plan.expect((info.src, info.reason) == (op.to, 0), || format!("{}: sent, with {info:?}", op.name()));
    count(&plan, op, &op.reported_times, 1, "reported");
    if !matches!(op.what, What::Rmw { .. }) {
        spoil(op);
    }
    start_children(&plan, op, When::Sent, &task);
}
