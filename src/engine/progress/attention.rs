//! The attention of peers that compute: they are woken when this task waits for them.

use crate::base::clock::ticks;
use crate::engine::context::Core;
use crate::transport::{View, Want};

/// Wakes peers that this task waits for and that do not look for packets. Goes through those
/// peers at most once a millisecond, and wakes each of them the more seldom the longer it
/// makes no progress.
pub fn kick_inattentive_peers(core: &mut Core) {
    let now = ticks();
    if !core.membership.begin_kicks(now) {
        return;
    }
    let (me, transport) = (core.options.me, &mut core.transport);
    let listed = core.outbox.waiting_for().chain(core.outbox.unconfirmed().iter().copied());
    for peer in core.ops.peers().chain(listed).chain(core.collectives.awaited()) {
        // A peer that stands in several lists is woken once: the next kick is not due then.
        if peer != me
            && let View { progress, polls: false, .. } = transport.view(peer)
            && core.membership.kick_is_due(peer, progress, now)
        {
            transport.want(Want::Attention(peer));
        }
    }
}
