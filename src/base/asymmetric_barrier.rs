//! The asymmetric barrier between a thread that sends often and a thread that sleeps seldom.
//!
//! The pattern is Dekker's: the sender writes a message and then reads the sleeper's flag; the sleeper writes
//! its flag and then reads the messages. Each needs a full barrier between its write and its read, or both may
//! miss the other. The sender does this for every message, the sleeper only before it sleeps, so the whole cost
//! goes to the sleeper: [`heavy`] makes every processor that runs a registered process execute a barrier
//! (`membarrier(2)`, global expedited), and [`Light`] is then no more than a barrier to the compiler.
//!
//! The models of loom have no membarrier: there both sides are full barriers, which is what the kernel's barrier amounts
//! to for the side that is interrupted by it.

use super::sync::{Ordering, fence};
use std::sync::OnceLock;
use std::sync::atomic::compiler_fence;

const REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;
const GLOBAL_EXPEDITED: libc::c_int = 1 << 1;

/// Whether this process takes part in asymmetric barriers. Registers it at the first call.
pub fn registered() -> bool {
    static DONE: OnceLock<bool> = OnceLock::new();
    *DONE.get_or_init(|| membarrier(REGISTER_GLOBAL_EXPEDITED))
}

/// The sleeper's side: a full barrier here and, when every process concerned is [`registered`], in them too.
pub fn heavy() {
    fence(Ordering::SeqCst);
    if registered() {
        // A failure here would need the kernel to take back what it granted; the fence above is then all there is.
        membarrier(GLOBAL_EXPEDITED);
    }
}

/// The sender's side.
#[derive(Clone, Copy, Debug)]
pub struct Light {
    asymmetric: bool,
}

impl Light {
    /// `asymmetric` only when every process that may call [`heavy`] for this sender is registered, and this one
    /// too; otherwise the sender pays for its own barrier.
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
