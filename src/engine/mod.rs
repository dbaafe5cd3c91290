//! A context that moves.
//!
//! * [`context`]: the state behind a handle, and the only way to it: [`context::Held`].
//! * [`lock`]: the context's lock, which knows its owner.
//! * [`dispatcher`]: takes packets in and keeps everything going; never entered twice.
//! * [`origin`]: starts the program's operations, [`vector`] those between vectors, [`local`] those to oneself.
//! * [`bulk`]: which way long messages go; [`tuner`]: which one is faster; [`transfer`]: copies across address spaces.
//! * [`arrival`]: messages that come in; [`handlers`]: their header handlers; [`reply`]: answers.
//! * [`completion`]: threads that run completion handlers. [`notifier`]: the thread of interrupt mode.
//! * [`wait`]: how a thread waits. [`counter`]: counters. [`stats`]: what is counted.

pub mod arrival;
pub mod bulk;
pub mod completion;
pub mod context;
pub mod copying;
pub mod counter;
pub mod dispatcher;
pub mod handlers;
pub mod interrupt;
pub mod local;
pub mod lock;
pub mod message;
pub mod notifier;
pub mod origin;
pub mod reply;
pub mod request;
pub mod sleepers;
pub mod stats;
pub mod threads;
pub mod transfer;
pub mod tuner;
pub mod vector;
pub mod wait;
pub mod workers;

#[cfg(test)]
mod tests;
