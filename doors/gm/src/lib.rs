//! GM 2.0 at source level on OpenLAPI's core: `gm.h`, `libgm.so` and `libgm.a`.

pub mod abi;
#[doc(hidden)]
pub mod board;
mod calls;
mod carrier;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod hand;
mod job;
pub mod nodes;
pub mod protocol;
mod settings;
pub mod wire;
mod world;
