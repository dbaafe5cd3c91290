//! Sessions: two processes that no launcher has started put into, get from and send to each other.
//!
//! A service listens, and its clients connect, at a Unix socket, at a TCP port with a key file, or
//! by a pair of pipes such as ssh's. Neither is a task of a job, and a task of a job may have
//! sessions beside its context. A [`Session`] that is dropped is lost for the peer;
//! [`Session::close`] ends it in order.
//!
//! ```no_run
//! use lapi::session::{Listener, Settings, connect_unix};
//!
//! fn service() -> lapi::session::Result<()> {
//!     let mut memory = vec![0_u8; 4096];
//!     let mut listener = Listener::unix("/tmp/service", &Settings::default())?;
//!     let session = listener.accept(None)?.expect("no deadline");
//!     // The client learns where it may put.
//!     let address = memory.as_mut_ptr().expose_provenance() as u64;
//!     session.send(b"memory", &address.to_le_bytes())?;
//!     assert!(session.receive(None).is_err(), "the client has closed the session");
//!     session.close()
//! }
//!
//! fn client() -> lapi::session::Result<()> {
//!     let session = connect_unix("/tmp/service", &Settings::default())?;
//!     let message = session.receive(None)?.expect("no deadline");
//!     let address = u64::from_le_bytes(message.data.try_into().expect("8 bytes"));
//!     // SAFETY: the service lends 4096 bytes there until the session is closed.
//!     unsafe { session.put(b"hello".as_ptr(), 5, address)? };
//!     session.close()
//! }
//! ```

pub use openlapi_session::{
    Change, Error, Fetch, LONGEST_HEADER, Landing, Listener, Message, Result, Routes, Seen, Session,
    Settings, VERSION, accept, connect, connect_tcp, connect_unix, key_file,
};
