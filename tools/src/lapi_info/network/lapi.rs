//! LAPI for the check: one context, whose operations are waited for at once.

use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;

use openlapi::abi::{LAPI_GET_XFER, LAPI_PUT_XFER};
use openlapi::abi::{QUERY_SHM_TASKS, lapi_cntr_t, lapi_get_t, lapi_info_t, lapi_put_t};
use openlapi::api::env::{self, Value};
use openlapi::api::{Context, address, fence, progress, put_get};
use openlapi::error::{Error, Result};
use openlapi::job::Identity;
use openlapi_runtime::environment::process_env;
use openlapi_runtime::init::{self, Request};
use openlapi_runtime::request;

/// The handle of the only context; messages show it.
const HANDLE: u32 = 1;

/// An open context. Its calls return errors of LAPI.
pub(super) struct Lapi {
    context: Arc<Context>,
    /// Incremented by the completion of this task's own operations.
    completed: Box<lapi_cntr_t>,
    pub(super) me: u32,
    pub(super) tasks: u32,
}

impl Lapi {
    /// LAPI_Init.
    pub(super) fn open() -> Result<Self> {
        let identity = Identity::from_env(&process_env)?;
        // SAFETY: numbers and pointers, all of which may be 0.
        let info: lapi_info_t = unsafe { MaybeUninit::zeroed().assume_init() };
        // SAFETY: no attributes of threads are given.
        let request = unsafe { Request::new(HANDLE, 0, &info) };
        let context = Arc::new(Context::new());
        init::init(&context, &request)?;
        // SAFETY: numbers and pointers, all of which may be 0.
        let completed = Box::new(unsafe { MaybeUninit::<lapi_cntr_t>::zeroed().assume_init() });
        Ok(Self { context, completed, me: identity.task, tasks: identity.tasks })
    }

    /// What the network was chosen from, as lines; in task 0 only.
    pub(super) fn networks(&self) -> Result<Vec<String>> {
        Ok(env::networks(&mut self.context.enter()?))
    }

    /// LAPI_Term.
    pub(super) fn close(self) -> Result<()> {
        init::term(&self.context, self.context.handle())
    }

    /// LAPI_Gfence.
    pub(super) fn meet(&self) -> Result<()> {
        fence::gfence(&mut self.context.enter()?)
    }

    /// LAPI_Address_init64: the values of all tasks.
    pub(super) fn exchange(&self, value: u64) -> Result<Vec<u64>> {
        address::exchange(&mut self.context.enter()?, value)
    }

    /// The lowest of the tasks with which this one uses shared memory, itself included.
    pub(super) fn first_sharing(&self) -> Result<u32> {
        match env::query(&mut self.context.enter()?, QUERY_SHM_TASKS)? {
            Value::List(tasks) => Ok(tasks.first().map_or(self.me, |task| *task as u32)),
            _ => Err(Error::new(openlapi::abi::LAPI_ERR_UNKNOWN, "QUERY_SHM_TASKS is no list")),
        }
    }

    /// Puts the bytes `count` times to an address of another task, and waits until
    /// all are in place.
    pub(super) fn put(&mut self, tgt: u32, to: u64, bytes: &[u64], count: u32) -> Result<()> {
        let put = request::put(&lapi_put_t {
            Xfer_type: LAPI_PUT_XFER,
            flags: 0,
            tgt,
            pad: 0,
            tgt_addr: to,
            org_addr: bytes.as_ptr().cast_mut().cast(),
            len: size_of_val(bytes) as u64,
            shdlr: None,
            sinfo: ptr::null_mut(),
            tgt_cntr: 0,
            org_cntr: ptr::null_mut(),
            cmpl_cntr: &raw mut *self.completed,
        });
        for _ in 0..count {
            // SAFETY: the bytes stay until the wait below is over, the counter as long as the
            // context. The target has published the address of memory of this length, which it
            // keeps until its LAPI_Term.
            unsafe { put_get::put(&mut self.context.enter()?, &put)? };
        }
        self.await_completed(count)
    }

    /// Gets bytes from an address of another task.
    pub(super) fn get(&mut self, tgt: u32, from: u64, bytes: &mut [u64]) -> Result<()> {
        let get = request::get(&lapi_get_t {
            Xfer_type: LAPI_GET_XFER,
            flags: 0,
            tgt,
            pad: 0,
            tgt_addr: from,
            org_addr: bytes.as_mut_ptr().cast(),
            len: size_of_val(bytes) as u64,
            tgt_cntr: 0,
            org_cntr: &raw mut *self.completed,
            chndlr: None,
            cinfo: ptr::null_mut(),
        });
        // SAFETY: as for `put`; the bytes are this call's alone until it returns.
        unsafe { put_get::get(&mut self.context.enter()?, &get)? };
        self.await_completed(1)
    }

    fn await_completed(&mut self, count: u32) -> Result<()> {
        let counter = &raw mut *self.completed as usize;
        // SAFETY: the counter lives as long as the context.
        unsafe { progress::waitcntr(&mut self.context.enter()?, counter, count as i32)? };
        Ok(())
    }
}
