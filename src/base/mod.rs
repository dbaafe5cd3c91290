//! What knows nothing of LAPI: memory, rings, fences, locks, clocks.

pub mod bytes;
pub mod clock;
pub mod fence;
pub mod lock;
pub mod ring;
pub mod rng;
