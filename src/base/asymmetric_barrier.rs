//! The asymmetric barrier between a thread that sends often and a thread that sleeps seldom.
//!
//! The pattern is Dekker's: the sender writes a message and then reads the sleeper's flag; the
//! sleeper writes its flag and then reads the messages. Each needs a full barrier between its write
//! and its read, or both may miss the other. The sender does this for every message, the sleeper
//! only before it sleeps, so the whole cost goes to the sleeper: [`Heavy`] makes every processor
//! that runs a registered process execute a barrier (`membarrier(2)`, global expedited), and
//! [`Light`] is then no more than a barrier to the compiler.
//!
//! The interrupt goes to every processor that runs a registered process, of any job. Where there
//! are more tasks than processors, threads sleep so often that the interrupts cost more than the
//! senders' barriers save: there both sides use full barriers ([`pays_off`]).
//!
//! Where both are threads of one process, [`own_fence`] is the barrier of the seldom one: it
//! interrupts the processors that run this process, and no others.
//!
//! The models of loom have no membarrier: there both sides are full barriers, which is what the
//! kernel's barrier amounts to for the side that is interrupted by it.

use super::clock;
use super::machine::processors;
use super::sync::{Ordering, fence};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, compiler_fence};
use std::time::Duration;

const REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;
const GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;
const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;

/// Whether this process takes part in asymmetric barriers. Registers it at the first call.
pub fn registered() -> bool {
    static DONE: OnceLock<bool> = OnceLock::new();
    *DONE.get_or_init(|| membarrier(REGISTER_GLOBAL_EXPEDITED))
}

/// Whether this process can take part in asymmetric barriers, and they cost less than they save in
/// a job of `tasks` tasks. All tasks of a job must use the same kind: they use the asymmetric one
/// only when this is true in each of them.
pub fn pays_off(tasks: u32) -> bool {
    tasks <= processors() && registered()
}

/// A filter of system calls that was set after [`own_registered`] refuses what that was granted.
static REFUSED: AtomicBool = AtomicBool::new(false);

/// Whether [`own_fence`] works in this process. Registers it at the first call.
pub fn own_registered() -> bool {
    static DONE: OnceLock<bool> = OnceLock::new();
    let granted = || *DONE.get_or_init(|| membarrier(REGISTER_PRIVATE_EXPEDITED));
    cfg!(loom) || granted() && !REFUSED.load(std::sync::atomic::Ordering::Relaxed)
}

/// A full barrier here and in every thread of this process, in which [`own_registered`] has
/// returned `true`.
pub fn own_fence() {
    fence(Ordering::SeqCst);
    if cfg!(loom) || membarrier(PRIVATE_EXPEDITED) {
        return;
    }
    if !(membarrier(REGISTER_PRIVATE_EXPEDITED) && membarrier(PRIVATE_EXPEDITED)) {
        REFUSED.store(true, std::sync::atomic::Ordering::Relaxed);
        outwait_others();
    }
}

/// Waits until every other processor has done with the instructions that it had begun. A sender
/// that has missed the flag has loaded it before the flag was visible here, whether its processor
/// loads in order (x86) or ahead of the store in front (Arm, POWER). Store and load were in that
/// processor at one time then: an interrupt in between would have discarded the load, and it would
/// see the flag when it is done again. So the store is made now, and published: no processor keeps
/// an instruction, or a store to itself, for nearly as long. What is loaded here afterwards is
/// loaded after a system call, and not ahead of it.
fn outwait_others() {
    clock::sleep(Duration::from_millis(1));
}

/// The sleeper's side.
#[derive(Clone, Copy, Debug)]
pub struct Heavy {
    asymmetric: bool,
}

impl Heavy {
    /// `asymmetric` when any sender may use the asymmetric [`Light`] for this sleeper; then this
    /// process is registered.
    pub const fn new(asymmetric: bool) -> Self {
        Self { asymmetric }
    }

    /// A full barrier here and, when asymmetric, in every registered process.
    pub fn fence(self) {
        self.fence_by(|| cfg!(loom) || membarrier(GLOBAL_EXPEDITED), outwait_others);
    }

    /// [`Self::fence`] by this call of the kernel. It fails when the program has set a filter of
    /// system calls since this process was registered: then this `otherwise` is the barrier.
    fn fence_by(self, kernel: impl FnOnce() -> bool, otherwise: impl FnOnce()) {
        fence(Ordering::SeqCst);
        if self.asymmetric && !kernel() {
            otherwise();
        }
    }
}

/// The sender's side.
#[derive(Clone, Copy, Debug)]
pub struct Light {
    asymmetric: bool,
}

impl Light {
    /// `asymmetric` only when every sleeper that this sender may have to wake uses the
    /// asymmetric [`Heavy`], and this process is registered too; otherwise the sender pays for
    /// its own barrier.
    pub const fn new(asymmetric: bool) -> Self {
        Self { asymmetric }
    }

    /// The barrier.
    #[inline]
    pub fn fence(self) {
        if self.asymmetric {
            compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }
}

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: membarrier(2) takes three integers and touches no memory of ours.
    !cfg!(loom) && unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Heavy, own_fence, own_registered, pays_off, processors, registered};

    /// A sleeper that looked at once would miss a packet that its sender has not published yet,
    /// and the sender would not see that it sleeps.
    #[test]
    fn a_barrier_that_the_kernel_refuses_is_waited_for() {
        for (asymmetric, granted, waits) in [(true, false, 1), (true, true, 0), (false, false, 0)] {
            let mut waited = 0;
            Heavy::new(asymmetric).fence_by(|| granted, || waited += 1);
            assert_eq!(waited, waits, "asymmetric: {asymmetric}, granted: {granted}");
        }
    }

    #[test]
    fn the_barrier_of_one_process_may_be_used_before_it_is_registered() {
        own_fence();
        assert!(own_registered() || !registered(), "a kernel that has one has the other");
        own_fence();
    }

    #[test]
    fn crowded_tasks_pay_for_their_own_barriers() {
        assert_eq!(pays_off(processors()), registered());
        assert!(!pays_off(processors() + 1));
    }
}
