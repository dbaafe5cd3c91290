//! Handles of programs (the man page of LAPI_Util: LAPI_REGISTER_DGSP, LAPI_RESERVE_DGSP,
//! LAPI_UNRESERVE_DGSP).
//!
//! A handle is the address of the descriptor in a [`Program`]. The user's references are
//! counted here; an operation that uses a program holds an `Arc` of it. So a program that the
//! user has given back lives until the last operation on it has ended, but its handle is
//! invalid from then on.

use super::Program;
use crate::abi::{
    BYTE_DGSP, LAPI_ERR_DGSP, LAPI_ERR_DGSP_FREE, LAPI_ERR_DGSP_OTHER, lapi_dg_handle_t, lapi_dgsp_descr_t,
};
use crate::error::{Error, Result};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem::{self, ManuallyDrop};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The registered programs of a process. They belong to no context: a handle is valid in all of
/// them, and after LAPI_Term.
pub static REGISTRY: Registry = Registry::new();

/// Before this thread forks: no thread changes [`REGISTRY`] until [`after_fork`], so that the
/// child's copy is whole.
pub fn before_fork() {
    // Should another thread be about to make it, the child would wait for that thread for ever.
    let _ = byte();
    // A thread that is just ending has no such variable any more; it does not fork.
    let _ = HELD.try_with(|held| {
        let mut held = held.borrow_mut();
        // Called twice, it must not wait for itself.
        if held.is_empty() {
            held.extend(REGISTRY.shards.iter().map(write));
        }
    });
}

/// After the fork, in the parent and in the child.
pub fn after_fork() {
    let _ = HELD.try_with(|held| drop(mem::take(&mut **held.borrow_mut())));
}

thread_local! {
    /// What a thread that forks holds. The child's only thread is a copy of that thread. It is
    /// emptied before the thread ends: a destructor would be registered under the loader's lock.
    static HELD: RefCell<ManuallyDrop<Vec<RwLockWriteGuard<'static, Shard>>>> =
        const { RefCell::new(ManuallyDrop::new(Vec::new())) };
}

/// A table of handles.
#[derive(Debug)]
pub struct Registry {
    /// Handles are spread over several tables, so that threads that look up different programs do
    /// not meet. The locks are the standard library's, which keep no list of threads: such a list
    /// would be wrong in a forked child.
    shards: [RwLock<Shard>; SHARDS],
}

type Shard = BTreeMap<usize, Entry>;

const SHARDS: usize = 16;

#[derive(Debug)]
struct Entry {
    program: Arc<Program>,
    /// How often it was registered and reserved, less how often it was unreserved; never 0.
    references: usize,
}

impl Registry {
    /// A table that knows only LAPI_BYTE.
    pub const fn new() -> Self {
        Self { shards: [const { RwLock::new(BTreeMap::new()) }; SHARDS] }
    }

    /// Compiles a copy of a program and gives it a handle.
    ///
    /// # Errors
    /// LAPI_ERR_DGSP: the pointer is null. All errors of [`Program::compile`].
    ///
    /// # Safety
    /// The conditions of [`Program::compile`] hold; the pointer must be null or readable.
    pub unsafe fn register(
        &self,
        descriptor: *const lapi_dgsp_descr_t,
        verify: bool,
    ) -> Result<lapi_dg_handle_t> {
        // SAFETY: the caller vouches for the descriptor and for its code.
        let program = unsafe {
            let descriptor = descriptor.as_ref().ok_or_else(null)?;
            Program::compile(descriptor, verify)?
        };
        let handle = program.handle();
        self.write(handle).insert(handle.addr(), Entry { program, references: 1 });
        Ok(handle)
    }

    /// Adds a reference (LAPI_RESERVE_DGSP).
    ///
    /// # Errors
    /// LAPI_ERR_DGSP: no such handle.
    pub fn reserve(&self, handle: lapi_dg_handle_t) -> Result<()> {
        if is_byte(handle) {
            return Ok(());
        }
        let mut shard = self.write(handle);
        shard.get_mut(&handle.addr()).ok_or_else(|| unknown(handle))?.references += 1;
        Ok(())
    }

    /// Takes a reference away (LAPI_UNRESERVE_DGSP); with the last one the handle ends. LAPI_BYTE
    /// never ends.
    ///
    /// # Errors
    /// LAPI_ERR_DGSP: the handle is null. LAPI_ERR_DGSP_FREE: no such handle, or not any more.
    pub fn unreserve(&self, handle: lapi_dg_handle_t) -> Result<()> {
        if handle.is_null() {
            return Err(null());
        }
        if is_byte(handle) {
            return Ok(());
        }
        let mut shard = self.write(handle);
        let entry = shard
            .get_mut(&handle.addr())
            .ok_or_else(|| Error::new(LAPI_ERR_DGSP_FREE, format!("handle {handle:p}")))?;
        entry.references -= 1;
        if entry.references == 0 {
            let last = shard.remove(&handle.addr());
            // Freeing a large program takes too long for a lock.
            drop(shard);
            drop(last);
        }
        Ok(())
    }

    /// The program of a handle. Its holder may use it whatever happens to the handle.
    ///
    /// # Errors
    /// LAPI_ERR_DGSP: no such handle.
    pub fn lookup(&self, handle: lapi_dg_handle_t) -> Result<Arc<Program>> {
        if is_byte(handle) {
            return byte();
        }
        let shard = self.read(handle);
        shard.get(&handle.addr()).map(|entry| entry.program.clone()).ok_or_else(|| unknown(handle))
    }

    /// Uses the program of a handle for a moment, which costs less than [`Registry::lookup`]. `run`
    /// must not call the program's user.
    ///
    /// # Errors
    /// LAPI_ERR_DGSP: no such handle. Those of `run`.
    pub fn with<R>(&self, handle: lapi_dg_handle_t, run: impl FnOnce(&Program) -> Result<R>) -> Result<R> {
        if is_byte(handle) {
            return run(&*byte()?);
        }
        let shard = self.read(handle);
        run(&shard.get(&handle.addr()).ok_or_else(|| unknown(handle))?.program)
    }

    fn read(&self, handle: lapi_dg_handle_t) -> RwLockReadGuard<'_, Shard> {
        self.shard(handle).read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, handle: lapi_dg_handle_t) -> RwLockWriteGuard<'_, Shard> {
        write(self.shard(handle))
    }

    fn shard(&self, handle: lapi_dg_handle_t) -> &RwLock<Shard> {
        // Programs are larger than 64 bytes: the bits below carry no information.
        &self.shards[(handle.addr() >> 6) % SHARDS]
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

/// A lock is never poisoned for us: a panic ends the process.
fn write(shard: &RwLock<Shard>) -> RwLockWriteGuard<'_, Shard> {
    shard.write().unwrap_or_else(PoisonError::into_inner)
}

fn is_byte(handle: lapi_dg_handle_t) -> bool {
    std::ptr::eq(handle, BYTE_DGSP.handle())
}

fn byte() -> Result<Arc<Program>> {
    static BYTE: OnceLock<Option<Arc<Program>>> = OnceLock::new();
    // SAFETY: the predefined descriptor and its code live as long as the process and are
    // never written.
    let program = BYTE.get_or_init(|| unsafe { Program::compile(&*BYTE_DGSP.handle(), true).ok() });
    program.clone().ok_or_else(|| Error::new(LAPI_ERR_DGSP_OTHER, "LAPI_BYTE"))
}

fn null() -> Error {
    Error::new(LAPI_ERR_DGSP, "a null pointer")
}

fn unknown(handle: lapi_dg_handle_t) -> Error {
    Error::new(LAPI_ERR_DGSP, format!("handle {handle:p}"))
}
