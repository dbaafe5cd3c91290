//! This task in its job: one context of LAPI, and memory that the other tasks can aim at.

use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;
use std::path::Path;
use std::ptr;

use nix::libc::{c_int, c_uint, c_ulong};
use openlapi::abi::*;

use super::handlers;
use super::library::{Functions, Library};
use super::memory::{Counter, Memory, Sizes};
use crate::lapi_perf::error::{Failure, Result};

/// An open context.
pub(in crate::lapi_perf) struct Task {
    library: Library,
    pub(super) handle: lapi_handle_t,
    device: lapi_dev_t,
    pub(in crate::lapi_perf) me: u32,
    pub(in crate::lapi_perf) tasks: u32,
    pub(in crate::lapi_perf) memory: Memory,
    /// The addresses of the memory of all tasks.
    bases: Vec<u64>,
}

impl Task {
    /// LAPI_Init.
    pub(in crate::lapi_perf) fn open(library: Option<&Path>) -> Result<Self> {
        let library = Library::open(library)?;
        // SAFETY: numbers and pointers, all of which may be 0.
        let mut info: lapi_info_t = unsafe { MaybeUninit::zeroed().assume_init() };
        info.lib_vers = LAST_LIB;
        let mut handle = 0;
        // SAFETY: both live during the call.
        let code = unsafe { (library.calls.init)(&raw mut handle, &raw mut info) };
        // Only the words of LAPI_Rmw are needed before `share`.
        let memory = Memory::new(Sizes { header: 8, extent: 8, slots: 1 })?;
        let mut task =
            Self { library, handle, device: info.protocol, me: 0, tasks: 0, memory, bases: Vec::new() };
        task.checked("LAPI_Init", code)?;
        task.me = task.query(TASK_ID)? as u32;
        task.tasks = task.query(NUM_TASKS)? as u32;
        for (index, handler) in handlers::ALL {
            // SAFETY: functions, which live as long as the process.
            let code = unsafe { (task.calls().addr_set)(task.handle, handler(), index) };
            task.checked("LAPI_Addr_set", code)?;
        }
        Ok(task)
    }

    /// LAPI_Term.
    pub(in crate::lapi_perf) fn close(self) -> Result<()> {
        self.meet()?;
        self.leave()
    }

    /// LAPI_Term, where no operation was begun.
    pub(in crate::lapi_perf) fn leave(&self) -> Result<()> {
        // SAFETY: the call takes a number.
        let code = unsafe { (self.calls().term)(self.handle) };
        self.checked("LAPI_Term", code)
    }

    /// Collective: memory with these parts in every task, in place of what was before.
    pub(in crate::lapi_perf) fn share(&mut self, sizes: Sizes) -> Result<()> {
        self.meet()?;
        self.memory = Memory::new(sizes)?;
        self.bases = self.exchange(self.memory.address())?;
        Ok(())
    }

    pub(super) fn calls(&self) -> &Functions {
        &self.library.calls
    }

    /// The file of the library that is measured.
    pub(in crate::lapi_perf) fn library(&self) -> &Path {
        &self.library.path
    }

    /// An address in the memory of a task.
    pub(super) fn there(&self, task: u32, offset: u64) -> u64 {
        self.bases[task as usize] + offset
    }

    /// An error of LAPI with its text, and with the task, since not only task 0 writes them.
    #[inline]
    pub(super) fn checked(&self, call: &str, code: c_int) -> Result<()> {
        if code as u32 == LAPI_SUCCESS as u32 { Ok(()) } else { Err(self.failure(call, code)) }
    }

    #[cold]
    fn failure(&self, call: &str, code: c_int) -> Failure {
        let mut text: [c_char; 256] = [0; 256];
        // SAFETY: the text is longer than LAPI_MAX_ERR_STRING, and ends with a zero.
        let text = unsafe {
            (self.calls().msg_string)(code, text.as_mut_ptr().cast());
            CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
        };
        let task = if self.tasks == 0 { String::new() } else { format!("task {}: ", self.me) };
        Failure::failed(format!("{task}{call}: {text}"))
    }

    fn query(&self, what: lapi_query_t) -> Result<c_int> {
        let mut value = 0;
        // SAFETY: each query used here writes one int.
        let code = unsafe { (self.calls().qenv)(self.handle, what, &raw mut value) };
        self.checked("LAPI_Qenv", code)?;
        Ok(value)
    }

    /// LAPI_Senv of a switch.
    pub(in crate::lapi_perf) fn switch(&self, what: lapi_query_t, on: bool) -> Result<()> {
        // SAFETY: the call takes numbers.
        let code = unsafe { (self.calls().senv)(self.handle, what, c_int::from(on)) };
        self.checked("LAPI_Senv", code)
    }

    /// The longest user header.
    pub(in crate::lapi_perf) fn longest_header(&self) -> Result<u64> {
        Ok(self.query(MAX_UHDR_SZ)? as u64)
    }

    /// The tasks with which this one uses shared memory.
    pub(in crate::lapi_perf) fn sharing(&self) -> Result<Vec<u32>> {
        let count = self.query(QUERY_SHM_NUM_TASKS)?.max(0) as usize;
        if count == 0 {
            return Ok(Vec::new());
        }
        let mut tasks: Vec<c_int> = vec![0; count];
        // SAFETY: the query writes as many numbers as the one before it has said.
        let code = unsafe { (self.calls().qenv)(self.handle, QUERY_SHM_TASKS, tasks.as_mut_ptr()) };
        self.checked("LAPI_Qenv", code)?;
        Ok(tasks.into_iter().map(|task| task as u32).collect())
    }

    /// What carries messages to tasks with which no memory is shared.
    pub(in crate::lapi_perf) fn network(&self) -> &'static str {
        match self.device {
            UDP_DEV => "UDP",
            LAPI_FABRIC_DEV => "libfabric",
            _ => "the network",
        }
    }

    /// LAPI_Gfence.
    pub(in crate::lapi_perf) fn meet(&self) -> Result<()> {
        // SAFETY: the call takes a number.
        let code = unsafe { (self.calls().gfence)(self.handle) };
        self.checked("LAPI_Gfence", code)
    }

    /// LAPI_Fence.
    pub(super) fn fence(&self) -> Result<()> {
        // SAFETY: the call takes a number.
        let code = unsafe { (self.calls().fence)(self.handle) };
        self.checked("LAPI_Fence", code)
    }

    /// Collective: the values of all tasks.
    pub(in crate::lapi_perf) fn exchange(&self, value: u64) -> Result<Vec<u64>> {
        let mut all: Vec<u64> = vec![0; self.tasks as usize];
        // SAFETY: there is a place for each task.
        let code = unsafe { (self.calls().address_init64)(self.handle, value, all.as_mut_ptr()) };
        self.checked("LAPI_Address_init64", code)?;
        Ok(all)
    }

    /// LAPI_Waitcntr.
    #[inline]
    pub(in crate::lapi_perf) fn wait(&self, counter: Counter, value: u64) -> Result<()> {
        // SAFETY: the counter lives as long as the memory.
        let code = unsafe {
            (self.calls().waitcntr)(
                self.handle,
                self.memory.counter(counter),
                value as c_int,
                ptr::null_mut(),
            )
        };
        self.checked("LAPI_Waitcntr", code)
    }

    /// LAPI_Probe.
    #[inline]
    pub(super) fn probe(&self) -> Result<()> {
        // SAFETY: the call takes a number.
        let code = unsafe { (self.calls().probe)(self.handle) };
        self.checked("LAPI_Probe", code)
    }

    /// Waits until the handlers have dropped `count` messages: no counter is incremented for those.
    #[inline]
    pub(in crate::lapi_perf) fn wait_dropped(&self, count: u64) -> Result<()> {
        while !handlers::take_dropped(count) {
            self.probe()?;
        }
        if handlers::in_pieces() {
            return Err(Failure::failed(format!(
                "task {}: a message took more than one packet, and cannot be read in place: give smaller sizes (-s)",
                self.me
            )));
        }
        Ok(())
    }

    /// Waits until the last 8 bytes of the first `size` of the data are this number.
    #[inline]
    pub(in crate::lapi_perf) fn wait_seen(&self, size: u64, number: u64) -> Result<()> {
        while self.memory.last_word(size) != number {
            self.probe()?;
        }
        Ok(())
    }

    /// Increments a counter of another task: a put without data.
    pub(in crate::lapi_perf) fn signal(&self, tgt: u32, counter: Counter) -> Result<()> {
        let there = self.there(tgt, Sizes::counter(counter)) as *mut lapi_cntr_t;
        let (handle, none) = (self.handle, ptr::null_mut());
        // SAFETY: the counter is part of the target's memory, which lives until it
        // meets the others.
        let code = unsafe {
            (self.calls().put)(handle, tgt, 0, ptr::null_mut(), ptr::null_mut(), there, none, ptr::null_mut())
        };
        self.checked("LAPI_Put", code)
    }

    /// Copies memory of another task, whose address that task has sent, and which it does not
    /// change meanwhile.
    pub(in crate::lapi_perf) fn fetch(&self, from: u32, address: u64, into: &mut [u64]) -> Result<()> {
        if into.is_empty() {
            return Ok(());
        }
        let (here, there) = (into.as_mut_ptr().cast(), address as *mut _);
        let (length, own) = (size_of_val(into) as c_ulong, self.memory.counter(Counter::Own));
        // SAFETY: `into` stays until the wait below is over. The owner of the other memory waits in
        // `meet` until then.
        let code = unsafe {
            (self.calls().get)(self.handle, from as c_uint, length, there, here, ptr::null_mut(), own)
        };
        self.checked("LAPI_Get", code)?;
        self.wait(Counter::Own, 1)
    }

    /// Collective: the bytes that task 0 has, in all tasks.
    pub(in crate::lapi_perf) fn broadcast(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        let words: Vec<u64> = bytes
            .chunks(8)
            .map(|chunk| chunk.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)))
            .collect();
        let length = self.exchange(bytes.len() as u64)?[0] as usize;
        let address = self.exchange(words.as_ptr() as u64)?[0];
        let mut all = vec![0; length.div_ceil(8)];
        if self.me == 0 {
            all.copy_from_slice(&words);
        } else {
            self.fetch(0, address, &mut all)?;
        }
        self.meet()?;
        let mut bytes: Vec<u8> = all.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.truncate(length);
        Ok(bytes)
    }
}
