//! A context that moves.
//!
//! * [`context`]: the state behind a handle, and the only way to it: [`context::Held`].
//! * [`lock`]: the context's lock, which knows its owner.
//! * [`dispatcher`]: takes packets in and keeps everything going; never entered twice.
//! * [`origin`]: starts the program's operations. [`local`]: those to oneself. [`bulk`]: copies across address spaces,
//!   and [`tuner`]: when they are the faster way.
//! * [`arrival`]: active messages and puts that come in, header handlers included.
//! * [`completion`]: threads that run completion handlers. [`notifier`]: the thread of interrupt mode.
//! * [`wait`]: how a thread waits. [`counter`]: counters. [`stats`]: what is counted.

pub mod arrival;
pub mod bulk;
pub mod completion;
pub mod context;
pub mod counter;
pub mod dispatcher;
pub mod local;
pub mod lock;
pub mod notifier;
pub mod origin;
pub mod stats;
pub mod threads;
pub mod tuner;
pub mod wait;

#[cfg(test)]
mod tests;
