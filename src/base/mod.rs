//! What knows nothing of LAPI: memory, rings, fences, clocks.

pub mod bytes;
pub mod clock;
pub mod fence;
pub mod ring;
pub mod rng;
