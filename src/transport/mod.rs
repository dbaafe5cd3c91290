//! How bytes travel between tasks.
//!
//! A transport moves packets and does not interpret them: a packet is a short *head* (at most
//! [`HEAD_MAX`] bytes, always present) and a *body* (possibly empty). The protocol above decides
//! what they contain; it never sees a transport, and the engine joins the two. What a task holds of
//! a transport has four sides: [`Endpoint`] moves packets, [`Wakeup`] lets a thread sleep until
//! something happens, [`Peers`] knows the state of the connections, and [`RemoteAccess`], where the
//! transport can, reads and writes a peer's memory without the peer's help.
//!
//! The contract of every transport, which the conformance suite tests on each of them:
//!
//! * **Exactly once.** A packet that was accepted arrives exactly once while the peer is up, whole
//!   and unchanged. Loss and duplication are repaired below this wall, because the protocol above
//!   does not repair them. Order between two packets of one sender is kept only where
//!   [`Limits::ordered`] is set.
//! * **No waiting.** [`Endpoint::try_send`] never blocks and never allocates on its common path.
//!   Without room it changes nothing and returns [`SendOutcome::NoRoom`].
//! * **Doors.** [`Endpoint::door`] is shared memory's alone: another transport returns `None`.
//! * **In place.** The head and the body of an [`Inbound`] start at an address that is a multiple
//!   of 8 and stay valid until the packet is given back with [`Endpoint::release`].
//! * **Taking.** An endpoint may send from the program's memory: it takes the packet, and reports
//!   later that the memory is free ([`SendOutcome::Taken`], [`Report::Free`]). The message's
//!   origin counter and send completion handler follow then.
//! * **Time.** [`Endpoint::due`] names the next moment at which something must be sent again or
//!   acknowledged. A thread that waits wakes by then; and where the program computes with
//!   INTERRUPT_SET off, the library's own thread serves the endpoint without running the
//!   program's handlers. It looks every few milliseconds, so that a deadline nearer than that may
//!   be served as much late.
//! * **Waiting for others.** A packet that was accepted may wait, to be sent with those that follow
//!   ([`SendOutcome::Held`]). It is sent by [`Want::Flush`], by [`Want::Serve`], which is
//!   due then, and by [`Wakeup::arm`]. Without room it stays: then it is sent when there is some,
//!   in any of the endpoint's methods, and [`Endpoint::due`] names no deadline for it.
//! * **Ending.** LAPI_Term waits, as long as it waits for anything, until the peers have what
//!   was sent ([`Tally::outstanding`]). [`Endpoint::close`] lingers for what is left.
//! * **Sleeping.** Between [`Wakeup::arm`] (which returned `true`) and [`Wakeup::disarm`], an
//!   arriving packet or number ([`Door::signal`]), room after `NoRoom`, a report of a taken
//!   packet or of a remote access, or a [`Want::Wake`] makes the event descriptor readable. No
//!   wake-up is lost. The descriptor is readable only when it was armed, woken or kicked since the
//!   last `disarm`.
//! * **Remote access** may be asynchronous. An access that is done has *placed* its bytes: what
//!   the engine announces to the peer is there ([`RemoteAccess::access`]). An access is given to
//!   the transport whole, however long it is: the transport splits it, bounds what is in flight,
//!   and reports it once. Also when the peer leaves: an access that is under way then, and
//!   cannot be made any more, has failed. Only what the task itself recalls
//!   ([`Withdrawal::Traffic`]) is not reported.
//! * **Keys.** Where the memory of a peer is reached by keys ([`Reach::Keyed`]), the peer
//!   registers it for this task and sends the key. The key gives access to nothing else, and to
//!   nothing after the registration was withdrawn; but where the owner's processor stores what
//!   peers write, because the network has no card, the rest of a write that it had begun to
//!   receive may still be stored if the peer lives and sends it later. What had arrived is stored
//!   before the withdrawal of the connection returns ([`Peers::withdraw`]).
//! * **Departure.** A task that closes or drops its end is closed or dead for its peers, which are
//!   woken. Nothing that was sent before two tasks parted ([`Withdrawal::Connection`]) arrives
//!   after they have rejoined ([`Peers::rejoin`], on both sides).
//! * **Limits per peer.** [`Endpoint::limits`], and what [`RemoteAccess`] reaches, may differ
//!   between peers; limits never change. What arrives before it is received has a bound:
//!   [`Limits::window`] packets of each peer.
//! * **Short packets.** Every packet holds a head and at least [`MIN_BODY`] bytes of body, so
//!   that the longest user header fits: a transport whose network has shorter packets splits and
//!   joins them itself.
//! * **Byte order.** Heads are little-endian. Bodies are bytes to the transport; what the library
//!   itself puts into them (descriptions of vectors, values of collective operations) has the byte
//!   order of the machine, so that the tasks of a job run on machines of one byte order.

mod any;
pub mod coalescing;
#[cfg(test)]
pub(crate) mod conformance;
mod contract;
mod deaths;
pub mod directory;
pub mod fabric;
pub mod link_state;
mod parcel;
mod poll_pause;
mod presence;
pub mod rails;
pub mod route;
pub mod shm;
mod sleeper;
#[cfg(test)]
pub(crate) mod testing;
pub mod udp;

pub use crate::memory::bytes::{Piece, pad8};
pub use crate::wire::frame::{HEAD_MAX, Outgoing, SendError, SendOutcome, Task, Ticket};
pub use crate::wire::key::Key;
pub use any::AnyTransport;
pub use contract::*;
pub use shm::Door;
