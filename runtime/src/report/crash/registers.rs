//! The registers of a thread that a signal has interrupted.

use super::place::Symbol;
use libc::{c_void, ucontext_t};

/// What the thread was doing.
pub(super) struct Registers {
    pub(super) instruction: usize,
    pub(super) stack: usize,
    context: *mut ucontext_t,
}

impl Registers {
    /// # Safety
    /// `context` is what a handler with SA_SIGINFO gets.
    pub(super) unsafe fn of(context: *mut c_void) -> Self {
        let context = context.cast::<ucontext_t>();
        // SAFETY: the caller's promise.
        let (instruction, stack) = machine::read(unsafe { &*context });
        Self { instruction, stack, context }
    }

    /// Returns from a function of which no instruction has run, if something has called it. For the
    /// unwinder alone: the handler sets the registers back.
    pub(super) fn leave(&mut self) -> bool {
        // SAFETY: what the handler got, until it returns.
        let link = machine::link(unsafe { &*self.context });
        let (caller, stack) = match link {
            Some(link) => (link, self.stack),
            // SAFETY: a thread that called something has a stack. Of one that has none, this read
            // is the fault that ends the process.
            None => unsafe {
                ((self.stack as *const usize).read_unaligned(), self.stack + size_of::<usize>())
            },
        };
        if Symbol::of(caller).file.is_null() {
            return false;
        }
        self.instruction = caller;
        self.set(caller, stack);
        true
    }

    /// The thread's registers.
    pub(super) fn set(&mut self, instruction: usize, stack: usize) {
        // SAFETY: what the handler got, until it returns.
        machine::write(unsafe { &mut *self.context }, instruction, stack);
    }
}

/// Where the kernel puts the registers of an x86 processor. A call leaves the address of its return
/// on the stack.
#[cfg(any(target_arch = "x86_64", target_arch = "x86"))]
mod machine {
    use libc::ucontext_t;

    #[cfg(target_arch = "x86_64")]
    const PLACES: (usize, usize) = (libc::REG_RIP as usize, libc::REG_RSP as usize);
    #[cfg(target_arch = "x86")]
    const PLACES: (usize, usize) = (libc::REG_EIP as usize, libc::REG_ESP as usize);

    /// The next instruction, and the stack pointer.
    pub(super) fn read(context: &ucontext_t) -> (usize, usize) {
        let registers = &context.uc_mcontext.gregs;
        (registers[PLACES.0] as usize, registers[PLACES.1] as usize)
    }

    /// Sets both.
    pub(super) fn write(context: &mut ucontext_t, instruction: usize, stack: usize) {
        let registers = &mut context.uc_mcontext.gregs;
        (registers[PLACES.0], registers[PLACES.1]) = (instruction as _, stack as _);
    }

    /// The address behind a call, where a register has it: the stack has it here.
    pub(super) fn link(_: &ucontext_t) -> Option<usize> {
        None
    }
}

/// Where the kernel puts the registers of an Arm processor. A call leaves the address of its return
/// in x30.
#[cfg(target_arch = "aarch64")]
mod machine {
    use libc::ucontext_t;

    /// The next instruction, and the stack pointer.
    pub(super) fn read(context: &ucontext_t) -> (usize, usize) {
        (context.uc_mcontext.pc as usize, context.uc_mcontext.sp as usize)
    }

    /// Sets both.
    pub(super) fn write(context: &mut ucontext_t, instruction: usize, stack: usize) {
        (context.uc_mcontext.pc, context.uc_mcontext.sp) = (instruction as u64, stack as u64);
    }

    /// The address behind a call of a function of which no instruction has run.
    pub(super) fn link(context: &ucontext_t) -> Option<usize> {
        Some(context.uc_mcontext.regs[30] as usize)
    }
}

/// Where the kernel puts the registers of a POWER processor. A call leaves the address of its
/// return in the link register.
#[cfg(target_arch = "powerpc64")]
mod machine {
    use libc::ucontext_t;

    /// Places in the kernel's `pt_regs`: r1, the next instruction, the link register.
    const STACK: usize = 1;
    const INSTRUCTION: usize = 32;
    const LINK: usize = 36;

    /// The next instruction, and the stack pointer.
    pub(super) fn read(context: &ucontext_t) -> (usize, usize) {
        let registers = &context.uc_mcontext.gp_regs;
        (registers[INSTRUCTION] as usize, registers[STACK] as usize)
    }

    /// Sets both.
    pub(super) fn write(context: &mut ucontext_t, instruction: usize, stack: usize) {
        let registers = &mut context.uc_mcontext.gp_regs;
        (registers[INSTRUCTION], registers[STACK]) = (instruction as u64, stack as u64);
    }

    /// The address behind a call of a function of which no instruction has run.
    pub(super) fn link(context: &ucontext_t) -> Option<usize> {
        Some(context.uc_mcontext.gp_regs[LINK] as usize)
    }
}
