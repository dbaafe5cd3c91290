//! Long messages: which way they go.
//!
//! A long message goes as a stream of packets, so that both processors copy at the same time; in one copy across
//! address spaces (see [`crate::engine::transfer::direct`]), which needs no help from the peer; or, to a peer whose memory is
//! reached by keys, by bulk transfer ([`crate::engine::transfer::bulk`], and of its long pieces [`crate::engine::transfer::parts`]).

use crate::base::clock::ticks;
use crate::engine::context::Core;
use crate::engine::context::request::{Hint, Preference};
use crate::engine::context::tuner::Way;
use crate::proto::outbox::SendDone;
use crate::transport::{Reach, Task};

/// Ticks between two kicks, about a millisecond: a peer that was woken is on its way.
const BETWEEN_PRODS: u64 = 2_000_000;

/// The path of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// A stream of packets.
    Packets,
    /// A copy across address spaces.
    Direct,
    /// Bulk transfer by a key.
    Bulk,
}

/// The path of `len` bytes in pieces of `piece` bytes (0: contiguous). What leaves in one packet without the peer's help is
/// not asked about: a get of few bytes is, for which the peer has to look.
pub fn choose(core: &mut Core, peer: Task, len: usize, piece: u32, hint: Hint) -> Path {
    match core.reach(peer) {
        Reach::Open if len != 0 && across(core, peer, len, piece, hint) == Way::Attach => Path::Direct,
        Reach::Keyed if by_key(core, peer, len, hint) => Path::Bulk,
        _ => Path::Packets,
    }
}

/// Whether long pieces of an active message of `len` bytes go by bulk transfer.
pub fn is_bulk(core: &mut Core, peer: Task, len: usize, hint: Hint) -> bool {
    by_key(core, peer, len, hint) && core.reach(peer) == Reach::Keyed
}

/// Whether the program wants bulk transfer for a message of `len` bytes. The hint of the message is independent of its settings
/// for the task, except that what fits a packet goes in one.
fn by_key(core: &Core, peer: Task, len: usize, hint: Hint) -> bool {
    let policy = core.options.bulk;
    let room = core.outbox.max_body_to(peer);
    match hint.path() {
        Hint::Packets => false,
        Hint::Bulk => len > room,
        _ => policy.by_key && len >= policy.minimum && len > room,
    }
}

/// Whether a copy across address spaces is better than packets.
fn across(core: &mut Core, peer: Task, len: usize, piece: u32, hint: Hint) -> Way {
    let policy = core.options.bulk;
    let (contiguous, polls) = (piece == 0, core.transport.polls(peer));
    let room = core.outbox.max_body_to(peer);
    match (policy.preference, hint.path()) {
        (Preference::Packets, _) | (Preference::Auto, Hint::Packets) => Way::Packets,
        (Preference::Attach, _) if contiguous && len <= room => Way::Packets,
        (Preference::Auto, _) if contiguous && len <= room && polls => Way::Packets,
        (Preference::Attach, _) | (Preference::Auto, Hint::Bulk) => Way::Attach,
        // What fits a packet costs less than a system call, if the peer looks for it.
        (Preference::Auto, _) if len <= room / 2 && polls => Way::Packets,
        // A peer that is not looking for packets would have to be woken to take a stream.
        (Preference::Auto, _) if contiguous && (policy.crowded || !polls) => Way::Attach,
        (Preference::Auto, _) => core.tuner.choose(len, piece),
    }
}

/// A send operation that went as a stream is done: what it has taken. To a peer that is reached by keys the stream may be a
/// small part of the message, and nothing is chosen by the tuner.
pub fn note_stream(core: &mut Core, done: &SendDone) {
    if core.reach(done.peer) == Reach::Open {
        core.tuner.note_stream(done.bytes, done.piece, done.sent_at, ticks());
    }
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
