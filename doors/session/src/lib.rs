//! Sessions: two processes that no launcher started put into, get from and send to each other.
//!
//! One process listens ([`Listener`], or [`accept`] on a pair of pipes), the other one connects
//! ([`connect()`], [`connect_tcp`], [`connect_unix`]). The channel that they find each other by
//! carries start-up bytes alone; data takes the best way between them: shared memory on one host,
//! libfabric or encrypted UDP between hosts. A session is a job of two tasks of OpenLAPI's core: it
//! ends alone, needs none of LAPI's handles, and a process has as many as its limits allow.

mod channel;
mod connect;
mod error;
mod exchange;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;
mod handshake;
mod line;
mod listener;
mod messages;
mod session;
mod silence;
mod watch;
mod wire;

pub use channel::User;
pub use connect::{
    accept, connect, connect_tcp, connect_unix, connect_unix_of_any_user, key_file, usual_key_file,
};
pub use error::{Error, Result};
pub use listener::{Arrived, Listener, Seen};
pub use messages::{LONGEST_HEADER, Landing, Message, Place, Receiver};
pub use session::{Change, Fetch, Session, Settings};
pub use wire::{Routes, VERSION};
