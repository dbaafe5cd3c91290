//! Reports of this process: what its threads wait for (`thread`, which `bell` wakes; `look`,
//! `message`, `process`), what a fault has ended (`crash`, `lines`), and waiting for a debugger
//! (`attach`).

pub mod attach;
pub mod bell;
pub mod crash;
pub mod lines;
mod look;
mod message;
mod process;
pub mod thread;
