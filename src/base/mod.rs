//! What knows nothing of LAPI: memory, rings, barriers, who wakes whom, clocks.

pub mod bytes;
pub mod clock;
pub mod doorbell;
pub mod fence;
pub mod line;
pub mod lock;
pub mod ring;
pub mod rng;
pub mod sync;
pub mod waiting_room;

#[cfg(all(test, loom))]
mod models;
