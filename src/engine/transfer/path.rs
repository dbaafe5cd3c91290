//! Long messages: which way they go.
//!
//! A long message goes as a stream of packets, so that both processors copy at the same time, or in one copy across
//! address spaces (see [`crate::engine::transfer::direct`]), which needs no help from the peer.

use crate::base::clock::ticks;
use crate::engine::context::Core;
use crate::engine::context::request::{Hint, Preference};
use crate::engine::context::tuner::Way;
use crate::proto::outbox::SendDone;
use crate::transport::{Reach, Task};

/// Ticks between two kicks, about a millisecond: a peer that was woken is on its way.
const BETWEEN_PRODS: u64 = 2_000_000;

/// The way of `len` bytes in pieces of `piece` bytes (0: contiguous). What leaves in one packet without the peer's help is
/// not asked about: a get of few bytes is, for which the peer has to look.
pub fn choose(core: &mut Core, peer: Task, len: usize, piece: u32, hint: Hint) -> Way {
    let policy = core.options.bulk;
    if len == 0 || core.reach(peer) != Reach::Open {
        return Way::Packets;
    }
    let (contiguous, polls) = (piece == 0, core.transport.polls(peer));
    let room = core.outbox.max_body();
    match (policy.preference, hint) {
        (Preference::Packets, _) | (Preference::Auto, Hint::Packets) => Way::Packets,
        (Preference::Attach, _) if contiguous && len <= room => Way::Packets,
        (Preference::Auto, _) if contiguous && len <= room && polls => Way::Packets,
        (Preference::Attach, _) | (Preference::Auto, Hint::Bulk) => Way::Attach,
        // What fits a packet costs less than a system call, if the peer looks for it.
        (Preference::Auto, Hint::None) if len <= room / 2 && polls => Way::Packets,
        // A peer that is not looking for packets would have to be woken to take a stream.
        (Preference::Auto, Hint::None) if contiguous && (policy.crowded || !polls) => Way::Attach,
        (Preference::Auto, Hint::None) => core.tuner.choose(len, piece),
    }
}

/// A send operation that went as a stream is done: what it has taken.
pub fn note_stream(core: &mut Core, done: &SendDone) {
    core.tuner.note_stream(done.bytes, done.piece, done.posted, ticks());
}

/// Wakes peers that this task waits for and that do not look for packets. Goes through those peers at most once a millisecond,
/// and wakes each of them the more seldom the longer it makes no progress.
pub fn kick_inattentive_peers(core: &mut Core) {
    let now = ticks();
    if now.wrapping_sub(core.last_kick) < BETWEEN_PRODS {
        return;
    }
    core.last_kick = now;
    let (me, transport) = (core.options.me, &core.transport);
    let listed = core.outbox.waiting_for().chain(core.outbox.unconfirmed().iter().copied());
    for peer in core.ops.peers().chain(listed).chain(core.collectives.awaited()) {
        // A peer that stands in several lists is woken once: the next kick is not due then.
        if peer != me
            && !transport.polls(peer)
            && core.peers.kick_is_due(peer, transport.progress(peer), now, BETWEEN_PRODS)
        {
            transport.kick(peer);
        }
    }
}
