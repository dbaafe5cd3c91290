//! Short messages that have come from a peer of this machine: what the [`dispatcher`] does with
//! them, without what only other messages and other states need.
//!
//! A packet is taken here only where nothing hinders that ([`Clear::TO_TAKE`]), in place, through
//! the door to its sender, and only if it is one of four: a whole put that changes nothing but the
//! target counter, an active message ([`short_message`]), a get whose data fits a packet, and the
//! whole reply to one. All others are for a round of the dispatcher.

use crate::abi::LAPI_RECV_COMPLETE;
use crate::base::known_threads::this_thread;
use crate::base::long_calls;
use crate::engine::context::Core;
#[cfg(doc)]
use crate::engine::context::clear::Clear;
use crate::engine::context::incoming::ActiveMessage;
use crate::engine::context::unhindered::Unhindered;
use crate::engine::progress::dispatcher::{self, LONG_BODY};
use crate::engine::progress::short_message;
use crate::engine::transfer::send::send_control;
use crate::memory::bytes::{self, Piece, fits_pointer, is_memory};
use crate::memory::counter;
use crate::transport::{Door, Look, Seen, Task};
use crate::wire::packet::Head;
use std::ptr;

/// What a look has found.
#[derive(Clone, Copy)]
pub(super) enum See {
    /// A round of the dispatcher would find nothing to do.
    Nothing,
    /// A packet of this peer, which may be for [`take`].
    Packet(Task),
    /// A round of the dispatcher may find something.
    Something,
}

/// Looks for what has come. To be called where nothing hinders that it is taken.
#[inline(always)]
pub(super) fn see(way: &mut Unhindered<'_>, look: Look) -> See {
    let core = way.core();
    match core.transport.look(look) {
        Seen::Packet(src, _) => return See::Packet(src),
        Seen::Something => return See::Something,
        Seen::Nothing => {}
    }
    // A report may have come, through a door.
    if !core.awaits_reports() || !core.next_has_report() { See::Nothing } else { See::Something }
}

/// Takes the first packet of the peer, if it is one short message. `false`: nothing was done; it is
/// for the dispatcher.
#[inline(never)]
pub(super) fn take(way: &mut Unhindered<'_>, src: Task) -> bool {
    let context = way.context();
    let Core { transport, inbox, outbox, ops, stats, msgpoll_state, waiters, options, .. } = way.core();
    let Some(door) = transport.door(src) else { return false };
    let Some(packet) = door.arrived(src) else { return false };
    if packet.body_len >= LONG_BODY {
        long_calls::begins();
    }
    // SAFETY: the door vouches for the head until the packet is given back.
    let head = unsafe { std::slice::from_raw_parts(packet.head, packet.head_len) };
    let body = Piece { ptr: packet.body, len: packet.body_len };
    let head = Head::decode_frequent(head);
    // What a packet names is looked at in each case: the head stays in registers.
    let guarded = options.guarded;
    if let Some(Head::Am { id, uhdr_len, handler, tgt_cntr, cookie, total: 0, atoms: false }) = head {
        if guarded && dispatcher::is_address(handler, tgt_cntr) || !fits_pointer(tgt_cntr) {
            return false;
        }
        let id = Some(id);
        let message = ActiveMessage { src, id, handler, shape: None, atoms: false, tgt_cntr, cookie };
        return short_message::take(way, packet, body, uhdr_len, message);
    }
    let mut asked = None;
    // A report of a fault names the packet.
    let free = context.activity.begin(this_thread());
    debug_assert!(free, "a round would hinder this");
    context.activity.handles(&packet);
    let taken = match head {
        Some(Head::Put { id, addr, tgt_cntr, cookie: 0, total })
            if !guarded && total <= body.len as u64 && is_memory(addr, total) && fits_pointer(tgt_cntr) =>
        {
            // SAFETY: the origin's program says that it may write there.
            unsafe { bytes::copy(body, addr as usize as *mut u8) };
            *msgpoll_state |= LAPI_RECV_COMPLETE;
            stats.peers.bytes_received += body.len as u64;
            asked = inbox.deliver(src, id);
            // SAFETY: a counter of this task, by the contract of the call that sent the message.
            unsafe { counter::bump(tgt_cntr as usize) };
            true
        }
        Some(Head::Get { addr, len, cookie, tgt_cntr })
            if !guarded
                && len <= outbox.max_body() as u64
                && is_memory(addr, len)
                && fits_pointer(tgt_cntr) =>
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
                *msgpoll_state |= LAPI_RECV_COMPLETE;
                stats.peers.bytes_received += body.len as u64;
                door.note_reply(waiters.last_poll);
            }
            get.is_some()
        }
        _ => false,
    };
    context.activity.handles(ptr::null());
    context.activity.end();
    if !taken {
        return false;
    }
    stats.peers.packets_received += 1;
    door.give_back(&packet);
    if let Some(count) = asked {
        // The sender's fence has waited for this message.
        way.forget();
        send_control(way.core(), src, &Head::FenceAck { count });
    }
    true
}

/// Sends the data of a get. `false`: there is no room.
///
/// # Safety
/// The data must be readable.
#[inline]
unsafe fn answer(door: &mut Door, cookie: u64, data: Piece) -> bool {
    let Ok(filling) = door.begin() else { return false };
    // SAFETY: the caller's promise.
    let filled = unsafe {
        filling.packet(|to| Head::Reply { cookie, offset: 0 }.write(to), Piece::EMPTY, data.into())
    };
    let Ok(filled) = filled else { return false };
    filled.publish();
    door.published();
    true
}
