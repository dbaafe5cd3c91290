//! What a process says that ends, perhaps without having closed its ports: its peers learn what it
//! has delivered.
//!
//! A signal handler may exit, too, in the middle of any call of its thread. So no lock is taken
//! that this thread may have been interrupted with, and what was in the middle of a change says
//! nothing. In a job nothing is said at all where a port is: handlers take its lock beneath the
//! core's, so a thread that enters the core may wait for this one.

use super::slot::State;
use super::{LOOK, Slot, World, current};
use crate::abi::PORTS;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A process that exits waits this long at most until what it has said has arrived.
const PARTING: Duration = Duration::from_millis(100);

/// The process that calls [`tell_at_exit`], and not a forked child of it; 0: none.
static TELLS_AT_EXIT: AtomicU32 = AtomicU32::new(0);

/// This process tells its peers when it exits.
pub fn prepare() {
    if TELLS_AT_EXIT.swap(process::id(), Ordering::Relaxed) == 0 {
        // SAFETY: a function that may run at exit.
        unsafe { libc::atexit(tell_at_exit) };
    }
}

extern "C" fn tell_at_exit() {
    let tells = TELLS_AT_EXIT.load(Ordering::Relaxed) == process::id();
    let Some(world) = current().filter(|_| tells) else { return };
    if !world.begin_exit() {
        return;
    }
    world.exits.store(true, Ordering::Relaxed);
    let told: [bool; PORTS] = std::array::from_fn(|number| world.tell_last(&world.slots[number]));
    // Another thread may be giving words to the network.
    let has_given_all = || {
        world.slots.iter().zip(told).all(|(slot, told)| {
            !told
                || slot.lock_at_exit(LOOK).is_some_and(|state| match &*state {
                    State::Open(open) => open.port.has_given_all(),
                    _ => true,
                })
        })
    };
    // Packets may wait for others.
    world.carrier.poll();
    world.carrier.finish(Instant::now() + PARTING, has_given_all);
}

impl World {
    /// Whether something can be said. In a job not where the lock of a port is not to be had: where
    /// this thread has it, or was interrupted between taking it and being its owner.
    pub(super) fn begin_exit(&self) -> bool {
        let has_all = || self.slots.iter().all(|slot| slot.lock_at_exit(PARTING).is_some());
        self.carrier.begin_exit(PARTING) && (!self.carrier.has_core() || has_all())
    }

    /// Says what a port has delivered. `false`: nothing was said.
    fn tell_last(&self, slot: &Slot) -> bool {
        let told = slot.lock_at_exit(PARTING).and_then(|state| {
            self.change(slot, state, |open| {
                open.port.tell_at_once();
                open.port.tell();
            })
        });
        told.is_some()
    }
}
