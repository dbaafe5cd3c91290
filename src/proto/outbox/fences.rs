//! Which messages the peers have confirmed.

use super::Outbox;
use crate::proto::Transmit;
use crate::wire::frame::{SendError, Task};

impl Outbox {
    /// Asks every peer that was sent something since the last fence to confirm it, and calls `note`
    /// with each peer and the number of messages that it must confirm.
    ///
    /// A later fence does not ask for the same messages again, so no such packet may be lost for
    /// want of memory. It needs no place among what is parked: it has no body, and a peer that gets
    /// it before the messages replies when they have arrived.
    pub fn ask(&mut self, link: &mut impl Transmit, mut note: impl FnMut(Task, u64)) {
        for at in 0..self.unfenced.members().len() {
            let peer = self.unfenced.members()[at];
            let Some(lane) = self.lanes[peer as usize].as_deref_mut() else { continue };
            let count = lane.next;
            note(peer, count);
            if lane.asked == count {
                continue;
            }
            lane.asked = count;
            self.asked.insert(peer);
            if lane.gone {
                continue;
            }
            if lane.busy {
                lane.fence_waits = true;
                continue;
            }
            match lane.send_fence(link, peer) {
                Ok(()) => {}
                Err(SendError::NoRoom) => {
                    self.lane_waits(peer);
                }
                Err(SendError::PeerGone) => (lane.gone, lane.fence_waits) = (true, false),
            }
        }
    }

    /// Whether every peer has confirmed all that it was sent.
    #[inline]
    pub fn is_fenced(&self) -> bool {
        self.unfenced.members().is_empty()
    }

    /// Notes that `peer` has confirmed all messages before the one whose number ends in `count`.
    pub fn acknowledge(&mut self, peer: Task, count: u32) {
        let Some(lane) = self.lanes[peer as usize].as_deref_mut() else { return };
        // The request was sent less than 2^32 messages ago, or it is not from this outbox.
        let count = lane.next.wrapping_sub(u64::from((lane.next as u32).wrapping_sub(count)));
        if count > lane.acknowledged && count <= lane.asked {
            lane.acknowledged = count;
            if count == lane.asked {
                self.asked.remove(peer);
            }
            if count == lane.next {
                self.unfenced.remove(peer);
            }
        }
    }

    /// Whether `peer` has confirmed all messages before `count`, or was given up.
    pub fn confirmed(&self, peer: Task, count: u64) -> bool {
        self.lanes[peer as usize].as_deref().is_none_or(|lane| lane.acknowledged >= count)
    }

    /// Whether `peer` has confirmed everything that was sent to it.
    pub fn is_confirmed(&self, peer: Task) -> bool {
        self.lanes[peer as usize].as_deref().is_none_or(|lane| lane.acknowledged == lane.next)
    }

    /// How many messages were numbered for `peer`, modulo 2^32.
    pub fn count(&self, peer: Task) -> u32 {
        self.lanes[peer as usize].as_deref().map_or(0, |lane| lane.next as u32)
    }

    /// The peers that a fence has asked and that have not confirmed, in no order.
    pub fn unconfirmed(&self) -> &[Task] {
        self.asked.members()
    }

    /// Whether a fence has asked `peer` for a confirmation that has not come.
    pub fn asks(&self, peer: Task) -> bool {
        self.lanes[peer as usize].as_deref().is_some_and(|lane| lane.acknowledged < lane.asked)
    }
}
