//! Long messages: which way they go.
//!
//! A long message goes as a stream of packets, so that both processors copy at the same time; in one copy across
//! address spaces (see [`crate::engine::transfer::direct`]), which needs no help from the peer; or, to a peer whose memory is
//! reached by keys, by bulk transfer ([`crate::engine::transfer::bulk`], and of its long pieces [`crate::engine::transfer::parts`]).

use crate::base::clock::ticks;
use crate::engine::context::Core;
use crate::engine::context::request::{Hint, Policy, Preference};
use crate::transport::{Reach, Task};

/// Ticks between two kicks, about a millisecond: a peer that was woken is on its way.
const BETWEEN_PRODS: u64 = 2_000_000;
/// Bytes from which on the kernel copies a piece sooner than a peer is woken to take it.
const LONG_PIECE: u32 = 1024;

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
        Reach::Open if len != 0 && is_copied(core, peer, len, piece, hint) => Path::Direct,
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

fn is_copied(core: &Core, peer: Task, len: usize, piece: u32, hint: Hint) -> bool {
    let Policy { preference, crowded, .. } = core.options.bulk;
    let (polls, room) = (core.transport.polls(peer), core.outbox.max_body_to(peer));
    copy_is_better(preference, hint.path(), &Message { len, piece, room, polls, crowded })
}

/// What decides whether a message to a task of this host is one copy across address spaces.
struct Message {
    len: usize,
    /// Bytes of a piece, on average; 0 for contiguous data.
    piece: u32,
    /// Bytes that one packet holds.
    room: usize,
    /// Whether the peer looks for packets.
    polls: bool,
    /// Whether the machine has more tasks than processors.
    crowded: bool,
}

/// Whether a copy across address spaces is better than packets. Where both tasks are at work a stream of packets is: each
/// processor copies a half (docs/design/0004-long-messages.md has the figures). A peer that does not look for packets would
/// have to be woken for a stream, and with more tasks than processors the two tasks would run in turn.
fn copy_is_better(preference: Preference, hint: Hint, message: &Message) -> bool {
    let &Message { len, piece, room, polls, crowded } = message;
    let contiguous = piece == 0;
    match (preference, hint) {
        (Preference::Packets, _) | (Preference::Auto, Hint::Packets) => false,
        (Preference::Attach, _) => !contiguous || len > room,
        // What fits a packet costs less than a system call, if the peer looks for it.
        (Preference::Auto, _) if contiguous && polls && len <= room => false,
        (Preference::Auto, Hint::Bulk) => true,
        (Preference::Auto, _) if polls && (len <= room || !crowded) => false,
        (Preference::Auto, _) => contiguous || piece >= LONG_PIECE,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths, pieces and states of the peer, and whether `auto` copies across address spaces.
    #[test]
    fn a_stream_needs_a_peer_that_looks_for_packets() {
        const ROOM: usize = 8192;
        for (len, piece, polls, crowded, copied) in [
            (ROOM, 0, true, false, false),
            (ROOM, 0, true, true, false),
            (1, 0, false, false, true),
            (ROOM + 1, 0, true, false, false),
            (1 << 30, 0, true, false, false),
            (ROOM + 1, 0, true, true, true),
            (ROOM + 1, 0, false, false, true),
            (1 << 20, 1 << 16, true, false, false),
            (1 << 20, 1 << 16, false, false, true),
            (1 << 20, 1 << 16, true, true, true),
            (1 << 20, 64, false, false, false),
            (ROOM, 1 << 12, true, true, false),
        ] {
            let message = Message { len, piece, room: ROOM, polls, crowded };
            let chosen = copy_is_better(Preference::Auto, Hint::None, &message);
            assert_eq!(
                chosen, copied,
                "{len} bytes in pieces of {piece}, polls: {polls}, crowded: {crowded}"
            );
        }
    }

    /// What the program or the environment wants is done, whatever the peer does.
    #[test]
    fn wishes_come_first() {
        for (polls, crowded) in [(false, false), (false, true), (true, false), (true, true)] {
            let long = Message { len: 1 << 20, piece: 0, room: 8192, polls, crowded };
            assert!(copy_is_better(Preference::Attach, Hint::None, &long));
            assert!(copy_is_better(Preference::Attach, Hint::Packets, &long));
            assert!(copy_is_better(Preference::Auto, Hint::Bulk, &long));
            assert!(!copy_is_better(Preference::Packets, Hint::Bulk, &long));
            assert!(!copy_is_better(Preference::Auto, Hint::Packets, &long));
        }
    }
}
