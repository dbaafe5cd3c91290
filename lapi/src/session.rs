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
//!
//! A server for several users opens each session in a thread of its own, and takes messages with a
//! [`Receiver`] where they arrive:
//!
//! ```no_run
//! use lapi::session::{Arrived, Listener, Place, Receiver, Session, Settings, User};
//! use std::sync::{Arc, atomic::{AtomicUsize, Ordering}};
//!
//! #[derive(Default)]
//! struct Bytes(AtomicUsize);
//!
//! // SAFETY: it gives no memory.
//! unsafe impl Receiver for Bytes {
//!     fn begin(&self, header: &[u8], length: usize, _here: Option<&[u8]>) -> Place {
//!         self.0.fetch_add(length, Ordering::Relaxed);
//!         if header == b"count" { Place::Nowhere } else { Place::Inbox }
//!     }
//!
//!     fn end(&self, _number: usize) {}
//! }
//!
//! fn serve(mut peer: Arrived) -> lapi::session::Result<()> {
//!     let user: Option<User> = peer.user();
//!     let bytes = Arc::new(Bytes::default());
//!     peer.set_receiver(bytes.clone());
//!     let session: Session = peer.open()?;
//!     while session.receive(None).is_ok() {}
//!     println!("{user:?}: {} bytes", bytes.0.load(Ordering::Relaxed));
//!     session.close()
//! }
//!
//! fn service() -> lapi::session::Result<()> {
//!     // No peer may put to an address of this process.
//!     let settings = Settings { guarded: true, ..Settings::default() };
//!     let mut listener = Listener::unix_of_any_user("service", &settings)?;
//!     loop {
//!         let peer = listener.next(None)?.expect("no deadline");
//!         std::thread::spawn(move || serve(peer));
//!     }
//! }
//! ```

pub use openlapi_session::{
    Arrived, Change, Error, Fetch, LONGEST_HEADER, Landing, Listener, Message, Place, Receiver, Result,
    Routes, Seen, Session, Settings, User, VERSION, accept, connect, connect_tcp, connect_unix,
    connect_unix_of_any_user, key_file, usual_key_file,
};
