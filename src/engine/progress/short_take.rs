//! Short messages that have come from a peer of this machine: what the [`dispatcher`] does with
//! them, without what only other messages and other states need.
//!
//! A packet is taken here only where nothing hinders that ([`Clear::TO_TAKE`]), in place, through
//! the door to its sender, and only if it is one of three: a whole put of which nothing but the
//! target counter is to be told, a get whose data fits a packet, and the whole reply to one. All
//! others are for a round of the dispatcher.

use crate::abi::LAPI_RECV_COMPLETE;
#[cfg(doc)]
use crate::engine::context::clear::Clear;
use crate::engine::context::{Core, Held};
#[cfg(doc)]
use crate::engine::progress::dispatcher;
use crate::engine::progress::dispatcher::LONG_BODY;
use crate::engine::transfer::send::send_control;
use crate::memory::bytes::{self, Piece};
use crate::memory::counter;
use crate::transport::{Door, Inbound, Seen};
use crate::wire::packet::Head;
use std::ptr;

/// What a look has found.
pub(super) enum Looked {
    /// A round of the dispatcher would find nothing to do.
    Nothing,
    /// A message, which was taken.
    Taken,
    /// A packet that is for the dispatcher. Nothing else may be received before it is given back.
    Packet(Inbound),
    /// A round of the dispatcher may find something.
    Something,
}

/// Looks for what has come, and takes it if it is one short message. To be called where nothing
/// hinders that. `polled`: peers learn that this task has polled until this moment, in ticks.
#[inline(always)]
pub(super) fn look(held: &mut Held<'_>, polled: Option<u64>) -> Looked {
    let context = held.context();
    let Core { transport, inbox, outbox, ops, stats, unreported, waiters, .. } = held.core();
    let seen = match polled {
        Some(now) => transport.poll(now),
        None => transport.look(),
    };
    let (src, door) = match seen {
        Seen::Packet(src, door) => (src, door),
        Seen::Nothing => return reports(held.core()),
        Seen::Something => return Looked::Something,
    };
    let Some(packet) = door.arrived(src) else { return Looked::Something };
    if packet.body_len >= LONG_BODY {
        return Looked::Packet(packet);
    }
    // SAFETY: the door vouches for the head until the packet is given back.
    let head = unsafe { std::slice::from_raw_parts(packet.head, packet.head_len) };
    let body = Piece { ptr: packet.body, len: packet.body_len };
    let mut asked = None;
    // A report of a fault names the packet.
    if !context.activity.begin(context.lock_owner()) {
        // A handler of another context runs in this thread, or a round.
        return Looked::Something;
    }
    context.activity.handles(&packet);
    let taken = match Head::decode_frequent(head) {
        Some(Head::Put { id, addr, tgt_cntr, cookie: 0, total }) if total <= body.len as u64 => {
            // SAFETY: the origin's program says that it may write there.
            unsafe { bytes::copy(body, addr as usize as *mut u8) };
            *unreported |= LAPI_RECV_COMPLETE;
            stats.peers.bytes_received += body.len as u64;
            asked = inbox.deliver(src, id);
            // SAFETY: a counter of this task, by the contract of the call that sent the message.
            unsafe { counter::bump(tgt_cntr as usize) };
            true
        }
        Some(Head::Get { addr, len, cookie, tgt_cntr })
            if body.len == 0 && len < LONG_BODY.min(outbox.max_body() + 1) as u64 =>
        {
            let data = Piece { ptr: addr as usize as *const u8, len: len as usize };
            // SAFETY: the origin's program says that it may read there.
            let answered = unsafe { answer(door, cookie, data) };
            if answered {
                stats.peers.packets_sent += 1;
                stats.peers.bytes_sent += len;
                // SAFETY: as that of a put.
                unsafe { counter::bump(tgt_cntr as usize) };
            }
            answered
        }
        Some(Head::Reply { cookie, offset: 0 }) => {
            let get = ops.take_plain_get(src, cookie, body.len);
            if let Some((at, org_cntr)) = get {
                // SAFETY: the program has given this place and the counter for the get, which was
                // in flight.
                unsafe {
                    bytes::copy(body, at as *mut u8);
                    counter::bump(org_cntr);
                }
                *unreported |= LAPI_RECV_COMPLETE;
                stats.peers.bytes_received += body.len as u64;
                door.note_reply(waiters.last_poll());
            }
            get.is_some()
        }
        _ => false,
    };
    context.activity.handles(ptr::null());
    context.activity.end();
    if !taken {
        return Looked::Packet(packet);
    }
    stats.peers.packets_received += 1;
    door.give_back(&packet);
    if let Some(count) = asked {
        // The sender's fence has waited for this message.
        held.forget_clear();
        send_control(held.core(), src, &Head::FenceAck { count });
    }
    Looked::Taken
}

/// Sends the data of a get. `false`: there is no room.
///
/// # Safety
/// The data must be readable.
#[inline]
unsafe fn answer(door: &mut Door, cookie: u64, data: Piece) -> bool {
    let Ok(filling) = door.begin() else { return false };
    // SAFETY: the caller's promise.
    let filled = unsafe { Head::Reply { cookie, offset: 0 }.write(filling).body(Piece::EMPTY, data.into()) };
    let Ok(filled) = filled else { return false };
    filled.publish();
    door.published();
    true
}

/// No packet has come. A report may have, through a door.
#[inline(always)]
fn reports(core: &mut Core) -> Looked {
    if core.reporting.is_empty() || !core.has_report() { Looked::Nothing } else { Looked::Something }
}
