//! What knows nothing of LAPI: memory, rings, barriers, who wakes whom, clocks.

#[cfg(not(loom))]
pub mod bell;
pub mod bytes;
pub mod clock;
pub mod doorbell;
pub mod fence;
pub mod line;
pub mod lock;
#[cfg(not(loom))]
pub mod poll;
pub mod ring;
pub mod rng;
pub mod sync;
#[cfg(not(loom))]
pub mod thread;
pub mod waiting_room;

#[cfg(all(test, loom))]
mod models;
