//! A context that moves. From the ground up; each module uses those above it in this list alone:
//!
//! * [`lock`]: the context's lock, which knows its owner. [`counter`]: counters. [`stats`]: what is counted.
//!   [`watch`]: counters with a list of tasks.
//!   [`threads`]: how threads are made. [`sleepers`]: who sleeps. [`conditions`]: conditions of the program.
//!   [`tuner`]: which way is faster for long messages.
//!   [`running`]: which handler of the program runs. [`alarm`]: the bell by which a report is asked for.
//! * [`request`]: what the program asks for. [`message`]: what has arrived. [`transfer`]: a copy across address spaces.
//! * [`completion`]: completion handlers to be run. [`notifier`]: the thread of interrupt mode, as others see it.
//!   [`options`]: what a context is told.
//! * [`core`](self::core): what the lock guards. [`context`]: the state behind a handle, and the only way to it:
//!   [`context::Held`].
//! * [`shared`]: the lock as the program has it.
//! * [`bulk`]: which way long messages go. [`handlers`]: header handlers.
//! * [`post`]: how anything leaves this task. [`landing`]: what follows when data is where it belongs.
//!   [`workers`]: the threads that run completion handlers.
//! * [`assembly`]: messages of several packets. [`reply`]: answers, on both sides.
//! * [`description`]: vectors in packets. [`copying`]: makes the copies across address spaces.
//! * [`arrival`]: messages that come in. [`local`]: a task and itself.
//! * [`origin`]: starts the program's operations, [`vector`] those between vectors.
//! * [`dispatcher`]: takes packets in and keeps everything going; never entered twice.
//! * [`peers`]: what happens when a task has left or does not answer. [`recovery`]: tasks that the program gives up, and
//!   lets come back.
//! * [`wait`]: how a thread waits. [`interrupt`]: what the thread of interrupt mode does.
//! * [`report`]: who waits for what in a context. [`reporter`]: the thread that tells it.

pub mod alarm;
pub mod arrival;
pub mod assembly;
pub mod bulk;
pub mod completion;
pub mod conditions;
pub mod context;
pub mod copying;
pub mod core;
pub mod counter;
pub mod description;
pub mod dispatcher;
pub mod handlers;
pub mod interrupt;
pub mod landing;
pub mod local;
pub mod lock;
pub mod message;
pub mod notifier;
pub mod options;
pub mod origin;
pub mod peers;
pub mod post;
pub mod recovery;
pub mod reply;
pub mod report;
pub mod reporter;
pub mod request;
pub mod running;
pub mod shared;
pub mod sleepers;
pub mod stats;
pub mod threads;
pub mod transfer;
pub mod tuner;
pub mod vector;
pub mod wait;
pub mod watch;
pub mod workers;

#[cfg(test)]
mod tests;
