//! Operations that are prepared once and started many times.

use std::mem::MaybeUninit;
use std::ptr;

use nix::libc::{c_int, c_uint, c_ulong, c_void};
use openlapi::abi::*;

use super::handlers::{self, Arrival};
use super::memory::{Counter, Sizes, Word};
use super::scattered::{Blocks, Program, Vector};
use super::task::Task;
use crate::lapi_perf::catalog::{Operation, Rmw};
use crate::lapi_perf::error::Result;

/// Which counters an operation increments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::lapi_perf) struct Counters {
    /// `Arrived` of the target.
    pub(in crate::lapi_perf) target: bool,
    /// `Own` as the origin counter.
    pub(in crate::lapi_perf) origin: bool,
    /// `Own` as the completion counter.
    pub(in crate::lapi_perf) completion: bool,
}

/// What an operation moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lapi_perf) struct Shape {
    pub(in crate::lapi_perf) operation: Operation,
    pub(in crate::lapi_perf) size: u64,
    /// How the data lies where it is scattered.
    pub(in crate::lapi_perf) blocks: Blocks,
    pub(in crate::lapi_perf) header: u64,
}

/// What is called.
enum Call<'task> {
    Put,
    PutAndFence,
    Get,
    Putv { here: Vector, there: Vector },
    Getv { here: Vector, there: Vector },
    Am { handler: c_int, header: c_uint },
    AmLight,
    Amv { here: Vector },
    Dgsp { here: Program<'task> },
    Rmw(c_uint),
    Rmw64(c_uint),
    Gfence,
}

/// One side of a row: an operation to a task, and the place where those of others arrive. When it
/// is dropped, the operations that it has started are complete.
pub(in crate::lapi_perf) struct Prepared<'task> {
    task: &'task Task,
    call: Call<'task>,
    tgt: c_uint,
    len: c_ulong,
    /// Data, or the variable, of the target.
    there: *mut c_void,
    /// Data of this task.
    here: *mut c_void,
    target_counter: *mut lapi_cntr_t,
    origin_counter: *mut lapi_cntr_t,
    completion_counter: *mut lapi_cntr_t,
    // What the handlers use.
    arrival: Box<Arrival>,
    _arriving: (Option<Vector>, Option<Program<'task>>),
}

impl<'task> Prepared<'task> {
    /// Prepares operations to the slot of a task. Each task must call it before the tasks meet and
    /// any of them starts one.
    pub(in crate::lapi_perf) fn new(
        task: &'task Task,
        shape: Shape,
        (tgt, slot): (u32, u64),
        counters: Counters,
    ) -> Result<Self> {
        let Shape { operation, size, blocks, header } = shape;
        let (memory, sizes) = (&task.memory, task.memory.sizes);
        assert!(size <= sizes.extent && header <= sizes.header && slot < sizes.slots, "more than is shared");
        let data = memory.at(sizes.data(0)) as u64;
        let source = memory.at(sizes.source()) as u64;
        let (data_there, source_there) = (task.there(tgt, sizes.data(slot)), task.there(tgt, sizes.source()));
        let variable = task.there(tgt, Sizes::word(Word::Variable));
        let (there, here) = match operation {
            Operation::Get | Operation::GetStrided => (source_there, data),
            Operation::Rmw(_) => (variable, memory.at(Sizes::word(Word::Input)) as u64),
            _ => (data_there, source),
        };
        let vector = if operation == Operation::PutPieces { Vector::pieces } else { Vector::strided };
        let call = match operation {
            Operation::Put | Operation::PutSeen => Call::Put,
            Operation::Fence => Call::PutAndFence,
            Operation::Get => Call::Get,
            Operation::PutStrided | Operation::PutPieces => {
                Call::Putv { here: vector(here, blocks), there: vector(there, blocks) }
            }
            Operation::GetStrided => Call::Getv { here: vector(here, blocks), there: vector(there, blocks) },
            Operation::Am => Call::Am { handler: handlers::PLAIN, header: 0 },
            Operation::AmHeader => Call::Am { handler: handlers::PLAIN, header: header as c_uint },
            Operation::AmRead => Call::Am { handler: handlers::READ, header: 0 },
            Operation::AmLight => Call::AmLight,
            Operation::AmStrided => Call::Amv { here: vector(here, blocks) },
            Operation::Dgsp => Call::Dgsp { here: Program::register(task, blocks)? },
            Operation::Rmw(rmw) if size == 4 => Call::Rmw(number(rmw)),
            Operation::Rmw(rmw) => Call::Rmw64(number(rmw)),
            Operation::Gfence => Call::Gfence,
        };
        let arriving = match operation {
            Operation::AmStrided => (Some(Vector::strided(data, blocks)), None),
            Operation::Dgsp => (None, Some(Program::register(task, blocks)?)),
            _ => (None, None),
        };
        let mut arrival = Box::new(Arrival {
            data: data as *mut c_void,
            vector: arriving.0.as_ref().map_or(ptr::null_mut(), Vector::as_ptr),
            dgsp: arriving.1.as_ref().map_or(ptr::null_mut(), |program| program.handle),
        });
        handlers::expect(&raw mut *arrival);
        let own = |wanted| if wanted { memory.counter(Counter::Own) } else { ptr::null_mut() };
        let arrived = task.there(tgt, Sizes::counter(Counter::Arrived)) as *mut lapi_cntr_t;
        Ok(Self {
            task,
            call,
            tgt,
            len: size as c_ulong,
            there: there as *mut c_void,
            here: here as *mut c_void,
            target_counter: if counters.target { arrived } else { ptr::null_mut() },
            origin_counter: own(counters.origin),
            completion_counter: own(counters.completion),
            arrival,
            _arriving: arriving,
        })
    }

    /// Starts the operation once.
    #[inline]
    pub(in crate::lapi_perf) fn start(&self) -> Result<()> {
        let Self { task, call, tgt, len, there, here, .. } = self;
        let (calls, handle) = (task.calls(), task.handle);
        let (target, origin, completion) =
            (self.target_counter, self.origin_counter, self.completion_counter);
        let (tgt, len, there, here) = (*tgt, *len, *there, *here);
        let header = || task.memory.at(Sizes::header()).cast::<c_void>();
        let before = || task.memory.at(Sizes::word(Word::Before));
        // SAFETY: of every call below. `there` and the target's counter belong to the memory of the
        // target, which is laid out as that of this task (`new` has checked the lengths) and lives
        // until all tasks meet after the row. `here`, vectors and programs live as long as this
        // value, which fences when it is dropped. Handlers are given by their index.
        let (name, code) = unsafe {
            match call {
                Call::Put | Call::PutAndFence => {
                    ("LAPI_Put", (calls.put)(handle, tgt, len, there, here, target, origin, completion))
                }
                Call::Get => ("LAPI_Get", (calls.get)(handle, tgt, len, there, here, target, origin)),
                Call::Putv { here, there } => {
                    let (there, here) = (there.as_ptr(), here.as_ptr());
                    ("LAPI_Putv", (calls.putv)(handle, tgt, there, here, target, origin, completion))
                }
                Call::Getv { here, there } => {
                    ("LAPI_Getv", (calls.getv)(handle, tgt, there.as_ptr(), here.as_ptr(), target, origin))
                }
                Call::Am { handler, header: length } => {
                    let index = index(*handler);
                    let code = (calls.amsend)(
                        handle,
                        tgt,
                        index,
                        header(),
                        *length,
                        here,
                        len,
                        target,
                        origin,
                        completion,
                    );
                    ("LAPI_Amsend", code)
                }
                Call::AmLight => {
                    let mut xfer: lapi_xfer_t = MaybeUninit::zeroed().assume_init();
                    xfer.Am.Xfer_type = LAPI_AM_LW_XFER;
                    xfer.Am.tgt = tgt;
                    xfer.Am.hdr_hdl = handlers::LIGHT as lapi_long_t;
                    xfer.Am.udata = here;
                    xfer.Am.udata_len = len;
                    ("LAPI_Xfer of LAPI_AM_LW_XFER", (calls.xfer)(handle, &raw mut xfer))
                }
                Call::Amv { here } => {
                    let index = index(handlers::VECTOR);
                    let none = ptr::null_mut();
                    let code = (calls.amsendv)(
                        handle,
                        tgt,
                        index,
                        none,
                        0,
                        here.as_ptr(),
                        target,
                        origin,
                        completion,
                    );
                    ("LAPI_Amsendv", code)
                }
                Call::Dgsp { here: program } => {
                    let mut xfer: lapi_xfer_t = MaybeUninit::zeroed().assume_init();
                    xfer.Dgsp.Xfer_type = LAPI_DGSP_XFER;
                    xfer.Dgsp.tgt = tgt;
                    xfer.Dgsp.hdr_hdl = handlers::LAYOUT as lapi_long_t;
                    xfer.Dgsp.udata = here;
                    xfer.Dgsp.udata_len = len;
                    xfer.Dgsp.tgt_cntr = target as lapi_long_t;
                    xfer.Dgsp.org_cntr = origin;
                    xfer.Dgsp.cmpl_cntr = completion;
                    xfer.Dgsp.dgsp = program.handle;
                    ("LAPI_Xfer of LAPI_DGSP_XFER", (calls.xfer)(handle, &raw mut xfer))
                }
                Call::Rmw(op) => {
                    let (variable, input) = (there.cast(), here.cast());
                    ("LAPI_Rmw", (calls.rmw)(handle, *op, tgt, variable, input, before().cast(), origin))
                }
                Call::Rmw64(op) => {
                    let (variable, input) = (there.cast(), here.cast());
                    ("LAPI_Rmw64", (calls.rmw64)(handle, *op, tgt, variable, input, before().cast(), origin))
                }
                Call::Gfence => ("LAPI_Gfence", (calls.gfence)(handle)),
            }
        };
        task.checked(name, code)?;
        if matches!(call, Call::PutAndFence) { task.fence() } else { Ok(()) }
    }
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        // A failure is that of a context which ends: the next call reports it.
        let _ = self.task.fence();
        // All tasks have met after the row: nothing that needs the arrival is under way.
        debug_assert!(!self.arrival.data.is_null());
        handlers::expect(ptr::null_mut());
    }
}

/// A header handler by its index in LAPI_Addr_set's table.
fn index(of: c_int) -> *mut c_void {
    of as usize as *mut c_void
}

fn number(rmw: Rmw) -> c_uint {
    match rmw {
        Rmw::Add => FETCH_AND_ADD,
        Rmw::Or => FETCH_AND_OR,
        Rmw::Swap => SWAP,
        Rmw::CompareAndSwap => COMPARE_AND_SWAP,
    }
}
