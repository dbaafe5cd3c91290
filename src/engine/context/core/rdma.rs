//! RDMA transfers of the program: the memory that it has registered, and the contexts that it
//! holds of other tasks. Another task needs no table to use a registration: its name is the
//! address.

use crate::abi::{
    LAPI_ERR_NO_RDMA_RESOURCE, LAPI_ERR_OFFSET_LEN, LAPI_ERR_SRC_BUFHNDL, LAPI_ERR_TGT, LAPI_ERR_TGT_BUFHNDL,
    LAPI_ERR_TGT_CONTEXT, LAPI_ERR_TGT_OFFSET, LAPI_ERR_XLATE_FAILED,
};
use crate::engine::context::Held;
use crate::engine::context::counter_status::Handled;
use crate::engine::context::request::Places;
use crate::error::{Error, Result};
use crate::memory::bytes::is_memory;
use crate::transport::Task;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// What a context has registered and holds.
#[derive(Default)]
pub struct Rdma {
    /// By the address of the first byte.
    pieces: HashMap<u64, Registered>,
    /// The contexts of other tasks, by number.
    contexts: HashMap<u32, Task>,
    /// The number that was given out last.
    last: u32,
}

/// Memory that is registered, once or several times.
struct Registered {
    /// Bytes, in the longest of its registrations.
    len: u64,
    times: usize,
}

/// A place in registered memory.
#[derive(Clone, Copy, Debug)]
pub struct RdmaAddress {
    /// The registration: usr_pvo.
    pub memory: u64,
    /// Bytes into it.
    pub offset: u32,
}

impl Rdma {
    /// Registers memory (LAPI_XLATE_ADDRESS). Returns usr_pvo; or `LAPI_ERR_XLATE_FAILED`.
    pub fn register(&mut self, address: u64, len: u64) -> Result<u64> {
        let refused = |detail| Err(Error::new(LAPI_ERR_XLATE_FAILED, detail));
        if address == 0 || len == 0 {
            return refused(format!("{len} bytes at {address:#x}; neither may be 0"));
        }
        if !is_memory(address, len) {
            return refused(format!("{len} bytes at {address:#x}: beyond the last address"));
        }
        let piece = self.pieces.entry(address).or_insert(Registered { len, times: 0 });
        piece.len = piece.len.max(len);
        piece.times += 1;
        Ok(address)
    }

    /// Ends one registration; `LAPI_ERR_SRC_BUFHNDL`: there is none.
    pub fn release(&mut self, memory: u64) -> Result<()> {
        let Entry::Occupied(mut piece) = self.pieces.entry(memory) else { return Err(unregistered(memory)) };
        piece.get_mut().times -= 1;
        if piece.get().times == 0 {
            piece.remove();
        }
        Ok(())
    }

    /// The address of `len` bytes, all of which are registered.
    fn local(&self, place: RdmaAddress, len: u64) -> Result<u64> {
        let RdmaAddress { memory, offset } = place;
        let piece = self.pieces.get(&memory).ok_or_else(|| unregistered(memory))?;
        if u64::from(offset).checked_add(len).is_some_and(|end| end <= piece.len) {
            return Ok(memory + u64::from(offset));
        }
        let detail = format!("{len} bytes from src_offset {offset} on; {} are registered", piece.len);
        Err(Error::new(LAPI_ERR_OFFSET_LEN, detail))
    }

    fn acquire(&mut self, task: Task, limit: u32) -> Result<u32> {
        let held = self.contexts.values().filter(|&&holder| holder == task).count();
        if held >= limit as usize {
            let detail = format!("{held} contexts of task {task} are held; MP_RDMA_COUNT is {limit}");
            return Err(Error::new(LAPI_ERR_NO_RDMA_RESOURCE, detail));
        }
        loop {
            self.last = self.last.wrapping_add(1);
            if self.last != 0 && !self.contexts.contains_key(&self.last) {
                self.contexts.insert(self.last, task);
                return Ok(self.last);
            }
        }
    }

    fn check_context(&self, task: Task, number: u32) -> Result<()> {
        if self.contexts.get(&number) == Some(&task) {
            return Ok(());
        }
        Err(Error::new(LAPI_ERR_TGT_CONTEXT, format!("no context {number} of task {task} is held")))
    }

    /// Gives a context back; `LAPI_ERR_TGT_CONTEXT`: it is not held.
    pub fn give_back(&mut self, task: Task, number: u32) -> Result<()> {
        self.check_context(task, number)?;
        self.contexts.remove(&number);
        Ok(())
    }
}

impl Held<'_> {
    /// Takes a context of another task (LAPI_REMOTE_RCXT). Returns its number.
    ///
    /// # Errors
    /// `LAPI_ERR_NO_RDMA_RESOURCE`; `LAPI_ERR_TGT`: `task` is this task.
    pub fn acquire_context(&mut self, task: Task) -> Result<u32> {
        let (me, limit) = (self.core().options.me, self.core().options.rdma_contexts);
        let rdma = self.rdma()?;
        if task == me {
            let detail = format!("task {task} is this task itself: an RDMA context is of another one");
            return Err(Error::new(LAPI_ERR_TGT, detail));
        }
        rdma.acquire(task, limit)
    }

    /// The data of a transfer with `task` by one of its contexts, at both tasks. What the other
    /// task has registered is not known here.
    ///
    /// # Errors
    /// Of LAPI_RDMA_XFER: no such context, or memory that cannot be.
    pub fn rdma_places(
        &mut self,
        task: Task,
        context: u32,
        source: RdmaAddress,
        target: RdmaAddress,
        len: u64,
    ) -> Result<Places> {
        let rdma = self.rdma()?;
        rdma.check_context(task, context)?;
        let local = rdma.local(source, len)? as usize;
        let RdmaAddress { memory, offset } = target;
        if memory == 0 {
            return Err(Error::new(LAPI_ERR_TGT_BUFHNDL, "tgt_pvo is 0"));
        }
        let remote = memory.checked_add(offset.into());
        let Some(remote) = remote.filter(|first| is_memory(*first, len)) else {
            let detail = format!("{len} bytes from tgt_offset {offset} on: beyond the last address");
            return Err(Error::new(LAPI_ERR_TGT_OFFSET, detail));
        };
        Ok(Places::Contiguous { local, remote, len: len as usize })
    }

    /// What an operation with `handled.peer` raises in place of a counter: it raises that counter
    /// when it is complete, and has the send completion handler called after that.
    pub fn handle_completion(&mut self, handled: Handled) -> usize {
        self.core().watched.handle(handled)
    }

    /// The operation was not started: nothing follows.
    pub fn forget_completion(&mut self, cntr: usize) {
        self.core().watched.take_handled(cntr);
    }

    /// What this context has registered and holds; `LAPI_ERR_NO_RDMA_RESOURCE`: no RDMA transfers.
    pub fn rdma(&mut self) -> Result<&mut Rdma> {
        let core = self.core();
        if core.options.rdma_contexts == 0 {
            return Err(Error::new(
                LAPI_ERR_NO_RDMA_RESOURCE,
                "MP_RDMA_COUNT (poe -rdma_count) is not set, or 0",
            ));
        }
        Ok(&mut core.rdma)
    }
}

#[cold]
fn unregistered(memory: u64) -> Error {
    Error::new(LAPI_ERR_SRC_BUFHNDL, format!("no memory is registered as {memory:#x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T: std::fmt::Debug>(outcome: Result<T>) -> i32 {
        outcome.unwrap_err().code
    }

    #[test]
    fn a_registration_lasts_until_its_last_release_and_has_its_greatest_length() {
        let mut rdma = Rdma::default();
        assert_eq!(rdma.register(0x1000, 64).unwrap(), 0x1000);
        assert_eq!(rdma.register(0x1000, 16).unwrap(), 0x1000);
        let at = |rdma: &Rdma, offset, len| rdma.local(RdmaAddress { memory: 0x1000, offset }, len);
        assert_eq!(at(&rdma, 32, 32).unwrap(), 0x1020);
        assert_eq!(at(&rdma, 64, 0).unwrap(), 0x1040);
        for (offset, len) in [(32, 33), (65, 0), (0, 65), (u32::MAX, 1), (1, u64::MAX)] {
            assert_eq!(code(at(&rdma, offset, len)), LAPI_ERR_OFFSET_LEN);
        }
        rdma.release(0x1000).unwrap();
        assert!(at(&rdma, 0, 64).is_ok());
        rdma.release(0x1000).unwrap();
        assert_eq!(code(at(&rdma, 0, 1)), LAPI_ERR_SRC_BUFHNDL);
        assert_eq!(code(rdma.release(0x1000)), LAPI_ERR_SRC_BUFHNDL);
    }

    #[test]
    fn memory_that_cannot_be_is_not_registered() {
        let mut rdma = Rdma::default();
        for (address, len) in [(0, 1), (1, 0), (0, 0), (u64::MAX, 1), (u64::MAX - 1, 2), (2, u64::MAX)] {
            assert_eq!(code(rdma.register(address, len)), LAPI_ERR_XLATE_FAILED, "{len} at {address:#x}");
        }
        assert!(rdma.pieces.is_empty());
    }

    #[test]
    fn contexts_have_numbers_of_their_own_that_are_never_0() {
        let mut rdma = Rdma { last: u32::MAX - 1, ..Rdma::default() };
        let numbers = [(1, u32::MAX), (1, 1), (2, 2)].map(|(task, number)| {
            assert_eq!(rdma.acquire(task, 2).unwrap(), number);
            (task, number)
        });
        assert_eq!(code(rdma.acquire(1, 2)), LAPI_ERR_NO_RDMA_RESOURCE);
        assert_eq!(code(rdma.give_back(2, 1)), LAPI_ERR_TGT_CONTEXT);
        rdma.last = u32::MAX - 1;
        assert_eq!(rdma.acquire(2, 2).unwrap(), 3, "those in use are skipped");
        for (task, number) in numbers {
            rdma.give_back(task, number).unwrap();
            assert_eq!(code(rdma.check_context(task, number)), LAPI_ERR_TGT_CONTEXT);
        }
    }
}
