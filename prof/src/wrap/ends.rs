//! LAPI_Init and LAPI_Term.

use super::arguments::{Arguments, LAPI_Init, LAPI_Qenv, LAPI_Term, find_all};
use crate::record::{Before, Seen, Traffic, call_begins, record};
use crate::{identity, process};
use libc::c_int;
use openlapi::abi::{
    LAPI_SUCCESS, NUM_TASKS, QUERY_SHM_NUM_TASKS, QUERY_SHM_TASKS, TASK_ID, lapi_handle_t, lapi_query_t,
};
use openlapi::base::clock::ticks;

impl LAPI_Init {
    /// # Safety
    ///
    /// As LAPI_Init.
    pub unsafe fn profiled(self, site: usize, traffic: Option<Traffic>) -> c_int {
        process::before_init();
        Self::find();
        let first = identity::tasks() == 0;
        if first {
            // Before LAPI has threads.
            find_all();
        }
        let start = ticks();
        // Before the first one there are no buffers, whose place in memory is the
        // same in all tasks.
        let before = if first { Before::default() } else { call_begins(Self::CALL, site, start) };
        // SAFETY: the caller's promise.
        let code = unsafe { self.make() };
        if code == LAPI_SUCCESS {
            // SAFETY: the call has filled it in.
            let hndl = unsafe { *self.hndl };
            // The call is recorded after this, which begins to record.
            process::opened(asked(hndl, TASK_ID), asked(hndl, NUM_TASKS), || sharing(hndl));
        }
        let seen = Seen { call: Self::CALL, site, start, end: ticks(), good: code == LAPI_SUCCESS, traffic };
        record(seen, before);
        code
    }
}

impl LAPI_Term {
    /// # Safety
    ///
    /// As LAPI_Term.
    pub unsafe fn profiled(self, site: usize, traffic: Option<Traffic>) -> c_int {
        // SAFETY: the caller's promise.
        let code = unsafe { Arguments::profiled(self, site, traffic) };
        if code == LAPI_SUCCESS {
            process::closed();
        }
        code
    }
}

/// The tasks with which this one uses shared memory, itself included.
fn sharing(hndl: lapi_handle_t) -> Vec<u32> {
    let mut tasks = vec![0; asked(hndl, QUERY_SHM_NUM_TASKS) as usize];
    // SAFETY: this query codes as many ints as the one before says.
    let code = unsafe { LAPI_Qenv { hndl, query: QUERY_SHM_TASKS, ret_val: tasks.as_mut_ptr() }.make() };
    if code == LAPI_SUCCESS { tasks.into_iter().map(|task: i32| task as u32).collect() } else { Vec::new() }
}

fn asked(hndl: lapi_handle_t, query: lapi_query_t) -> u32 {
    let mut value = 0;
    // SAFETY: both queries code an int, into one that lives during the call.
    unsafe { LAPI_Qenv { hndl, query, ret_val: &mut value }.make() };
    value as u32
}
