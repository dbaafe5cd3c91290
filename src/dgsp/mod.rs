//! The gather/scatter machine: where the bytes of a message lie in memory, and how they get from
//! there into packets and back (the manual's chapter 6).
//!
//! * [`Program`]: a DGSP, compiled at registration into a tree of runs and loops, that packs and
//!   unpacks any range of its bytes. `decode`, `compile`, `sequence` and `shape` make the tree,
//!   `walk` goes through it, and three sinks take what it finds: `copy` (with `records`)
//!   moves bytes, `ddm` calls the program's function, `merge` lists runs.
//! * [`registry`]: handles of programs.
//! * [`pack`]: LAPI_DGSP_PACK and LAPI_DGSP_UNPACK.
//! * [`vector`]: vectors as C describes them, and their checks. [`Layout`]: any layout, vectors and
//!   programs alike. [`description`]: a vector or a layout as it travels in packets.
//!   [`mod@overlaps`]: what is contiguous in two layouts.

// c_long and c_ulong have 32 bits on some targets, and then these casts do something.
#![allow(clippy::unnecessary_cast)]

mod compile;
mod copy;
mod ddm;
mod decode;
pub mod description;
mod layout;
mod merge;
mod overlaps;
pub mod pack;
mod program;
mod records;
pub mod registry;
mod selected;
mod sequence;
mod shape;
pub mod vector;
mod verify;
mod walk;

#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use compile::MAX_DEPTH;
pub use layout::Layout;
pub use overlaps::overlaps;
pub use program::Program;
