//! The registers of a thread that a signal has interrupted.

use super::place::Symbol;
use libc::c_void;

/// What the thread was doing.
pub(super) struct Registers {
    pub(super) instruction: usize,
    pub(super) stack: usize,
    context: *mut libc::ucontext_t,
}

#[cfg(target_arch = "x86_64")]
const PLACES: (usize, usize) = (libc::REG_RIP as usize, libc::REG_RSP as usize);
#[cfg(target_arch = "x86")]
const PLACES: (usize, usize) = (libc::REG_EIP as usize, libc::REG_ESP as usize);

impl Registers {
    /// # Safety
    /// `context` is what a handler with SA_SIGINFO gets.
    pub(super) unsafe fn of(context: *mut c_void) -> Self {
        let context = context.cast::<libc::ucontext_t>();
        // SAFETY: the caller's promise.
        let registers = unsafe { &(*context).uc_mcontext.gregs };
        Self { instruction: registers[PLACES.0] as usize, stack: registers[PLACES.1] as usize, context }
    }

    /// Returns from a function of which no instruction has run, if something has called it. For the
    /// unwinder alone: the handler sets the registers back.
    pub(super) fn leave(&mut self) -> bool {
        // SAFETY: a thread that called something has a stack. Of one that has none, this read is
        // the fault that ends the process.
        let caller = unsafe { (self.stack as *const usize).read_unaligned() };
        if Symbol::of(caller).file.is_null() {
            return false;
        }
        self.instruction = caller;
        self.set(caller, self.stack + size_of::<usize>());
        true
    }

    /// The thread's registers.
    pub(super) fn set(&mut self, instruction: usize, stack: usize) {
        // SAFETY: what the handler got, until it returns.
        let registers = unsafe { &mut (*self.context).uc_mcontext.gregs };
        (registers[PLACES.0], registers[PLACES.1]) = (instruction as _, stack as _);
    }
}
