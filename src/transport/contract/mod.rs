//! The contract between the engine and every transport, by its four sides. The head of
//! [`crate::transport`] says what they promise.

mod access;
mod endpoint;
mod peers;
mod wakeup;

pub use access::{
    Access, AccessId, COPIED_MAX, Copy, EndedWrite, Exposure, Reach, RemoteAccess, Started, Transfer,
};
pub use endpoint::{Endpoint, Inbound, Limits, Look, MIN_BODY, Report, Seen, Tally, Want};
pub(crate) use peers::HAS_PURGED;
pub use peers::{ConnectionView, NO_EPOCH, PeerStanding, PeerState, Peers, View, Withdrawal};
pub use wakeup::Wakeup;

use crate::transport::Task;

/// One task's end of a transport: all sides of it behind one table of functions.
pub trait Transport: Endpoint + Wakeup + Peers + RemoteAccess {}

impl<T: Endpoint + Wakeup + Peers + RemoteAccess + ?Sized> Transport for T {}

/// The name of what connects a task with others, for messages: the network's, where it is not
/// alone.
pub fn name(transport: &dyn Transport, me: Task, tasks: u32) -> &'static str {
    let others = (0..tasks).filter(|&peer| peer != me).map(|peer| transport.limits(peer));
    let farthest = others.max_by_key(|limits| limits.keeps_time);
    farthest.map_or_else(|| transport.limits(me).name, |limits| limits.name)
}
