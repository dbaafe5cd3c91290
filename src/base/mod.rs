//! What does not depend on LAPI: memory, rings, barriers, sleeping and waking, clocks.

pub mod announcements;
pub mod asymmetric_barrier;
pub mod biased_lock;
#[cfg(not(loom))]
pub mod call_stack;
#[cfg(not(loom))]
pub mod callers;
pub mod clock;
#[cfg(not(loom))]
pub mod control_group;
#[cfg(not(loom))]
pub mod descriptor;
pub mod doorbell;
pub mod event_count;
pub mod handler_runs;
#[cfg(not(loom))]
pub mod known_threads;
#[cfg(not(loom))]
pub mod limits;
pub mod line;
#[cfg(not(loom))]
pub mod loader;
pub mod lock;
#[cfg(not(loom))]
pub mod long_calls;
#[cfg(not(loom))]
pub mod mac;
pub mod machine;
mod mark;
#[cfg(not(loom))]
pub mod open_files;
#[cfg(not(loom))]
pub mod patient;
pub mod pause;
#[cfg(not(loom))]
pub mod poll;
#[cfg(not(loom))]
pub mod process;
#[cfg(not(loom))]
pub mod random;
#[cfg(not(loom))]
pub mod ranges;
pub mod ring;
pub mod rng;
pub mod signals;
#[cfg(all(test, not(loom)))]
pub(crate) mod simulation;
pub mod slots;
pub mod sync;
#[cfg(test)]
#[cfg(not(loom))]
pub(crate) mod this_program;
#[cfg(not(loom))]
pub mod thread;
#[cfg(not(loom))]
pub(crate) mod undisturbed;
pub mod work_queue;

#[cfg(all(test, loom))]
mod models;
