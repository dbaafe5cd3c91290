//! What makes progress in a context, from the bottom up:
//!
//! * [`completion_threads`]: the threads that run completion handlers.
//! * [`dispatcher`]: takes packets in and advances what is under way; never entered twice.
//! * [`lost_peers`]: ends what waits for a task that has left or does not respond. [`recovery`]:
//!   tasks that the program purges and resumes. [`checkpoint`]: a task that parts from all others
//!   and comes back. [`parting`]: what these have in common.
//! * [`attention`]: wakes peers that compute. [`wait`]: how a thread waits, [`sleep`] how it
//!   sleeps, and [`poll`] how one makes progress that does not wait. [`event_loop`]: the program's
//!   own loop, which sleeps outside of calls.
//! * [`operations`]: starts what the program asks for; [`short`]: short messages, and
//!   [`short_take`] and [`short_message`] where they arrive. [`counters`]: calls on counters.
//!   [`message_poll`]: LAPI_Msgpoll.
//! * [`collective`]: barrier and exchange of all tasks. [`fence`]: LAPI_Fence and LAPI_Gfence.
//! * [`interrupt_thread`]: the thread of interrupt mode. [`closing`]: LAPI_Term.

pub mod attention;
pub mod checkpoint;
pub mod closing;
pub mod collective;
pub mod completion_threads;
pub mod counters;
pub mod dispatcher;
pub mod event_loop;
pub mod fence;
pub mod interrupt_thread;
pub mod lost_peers;
pub mod message_poll;
pub mod operations;
pub mod parting;
pub mod poll;
pub mod recovery;
pub mod reports;
pub mod short;
mod short_message;
mod short_take;
pub mod sleep;
pub mod wait;
