//! How peers rejoin.
//!
//! Tasks that have parted connect again by two messages. Each side chooses a tag, and sends it
//! until it knows that the other has it: a message with the receiver's own tag as echo proves that.
//! What the other side has sent before this one lets it rejoin is kept. A message from a process
//! that has ended meanwhile does no harm: its successor gets an echo that is not its own, and sends
//! its tag again.

use super::FabricTransport;
use super::contact::Peer;
use super::own::Wants;
use crate::transport::presence::Presence;
use crate::transport::rails::RailEvent;
use crate::transport::{NO_EPOCH, Task};
use crate::wire::network::Rejoin;
use std::collections::VecDeque;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often a peer that is awaited is sent the same message to rejoin.
const REJOIN_AGAIN: Duration = Duration::from_millis(100);

/// The peers that may rejoin, and those that have.
pub(super) struct Rejoining {
    /// This process has taken the place of another one: the peers let it rejoin.
    pub(super) replaces: bool,
    /// Peers that may rejoin and have not yet.
    pub(super) awaited: Vec<Task>,
    /// When these are sent again what a message that was lost with a connection had said.
    next: Instant,
    /// Peers that have rejoined and were not named yet.
    pub(super) back: VecDeque<(Task, u64)>,
}

impl Rejoining {
    pub(super) fn new() -> Self {
        Self { replaces: false, awaited: Vec::new(), next: Instant::now(), back: VecDeque::new() }
    }
}

impl FabricTransport {
    /// This process has taken the place of another one: packets to a peer find no room until the
    /// peer has let it rejoin.
    pub fn replaces_another(&mut self) {
        self.rejoining.replaces = true;
    }

    /// Looks whether another process has taken the place of a peer that is awaited. What this task
    /// has sent to rejoin may have been lost: an access that was under way when the two parted
    /// makes the provider for TCP end the connection.
    pub(super) fn look_for_awaited(&mut self) {
        if self.rejoining.awaited.is_empty() {
            return;
        }
        let awaits = |peer: &Peer| peer.standing == Presence::Rejoining;
        let mut awaited = std::mem::take(&mut self.rejoining.awaited);
        awaited.retain(|&task| self.peer(task).is_some_and(awaits));
        let now = Instant::now();
        let again = now >= self.rejoining.next;
        if again {
            self.rejoining.next = now + REJOIN_AGAIN;
        }
        for &task in &awaited {
            let before = self.peer(task).and_then(|peer| peer.address);
            let _ = self.look_up(task);
            let address = self.peer(task).and_then(|peer| peer.address);
            if address != before || again && !self.posting.has_current(task) {
                self.owe(task, Wants::REJOIN);
                self.send_own(task);
            }
        }
        self.rejoining.awaited.append(&mut awaited);
        self.rejoining.awaited.sort_unstable();
        self.rejoining.awaited.dedup();
    }

    /// A tag that this task has not used for the peer, and that no former process with its number
    /// has used lately.
    pub(super) fn fresh_tag(&self, task: Task) -> u32 {
        let former = self.peer(task).map(|peer| peer.mine).filter(|tag| *tag != self.credentials.first_tag);
        tag_after(former, tag_now())
    }

    /// A peer wants to rejoin.
    #[cold]
    pub(super) fn note_hello(&mut self, task: Task, after: &[u8], body_len: usize) {
        let Some((hello, address)) = after.get(..body_len).and_then(Rejoin::decode) else { return };
        if self.is_elsewhere(task) {
            return;
        }
        if self.peer(task).is_none() {
            self.add(task);
        }
        let Some(peer) = self.peer_mut(task) else { return };
        if peer.is_up() && hello.tag == peer.theirs {
            // It is connected already: this is the proof that this task waited for, or the proof
            // for the peer was lost.
            if hello.waits {
                self.owe(task, Wants::REJOIN);
                self.send_own(task);
            }
            return;
        }
        peer.hello = Some(hello);
        if peer.is_up() && peer.is_known() {
            let process = hello.process;
            self.tell_watch(|watch| watch.has_successor(task, process));
            if self.has_parted(task, &hello) && self.knows_process(task, process) {
                self.note_parted(task, hello.epoch);
            }
        }
        if self.has_come_back(task, &hello) {
            // An access that was under way when the peer has parted from this task has ended the
            // connection before.
            if let Some(peer) = self.peer_mut(task) {
                peer.standing = Presence::HasParted;
            }
        }
        if self.peer(task).is_some_and(|peer| peer.is_up() && !peer.is_known()) {
            self.await_first(task);
        }
        if self.enter(task, address).is_ok()
            && self.peer(task).is_some_and(|peer| peer.standing == Presence::Rejoining)
        {
            self.accept(task, hello);
        }
    }

    /// The peer rejoins the job, and this task has not had contact with it before.
    pub(super) fn await_first(&mut self, task: Task) {
        self.drop_arrived(task);
        self.posting.note_former(task);
        self.want_no_more(task, Wants::ALL);
        let fresh = self.fresh_tag(task);
        let Some(peer) = self.peer_mut(task) else { return };
        peer.reset();
        (peer.mine, peer.theirs, peer.standing, peer.epoch) = (fresh, 0, Presence::Rejoining, NO_EPOCH);
        self.open_memory(task);
        self.rejoining.awaited.push(task);
    }

    /// Whether a peer that is up has sent this after it has parted from this task: in its
    /// connection, it had sent an earlier tag.
    fn has_parted(&self, task: Task, hello: &Rejoin) -> bool {
        self.peer(task).is_some_and(|peer| {
            let later = peer.theirs == self.credentials.first_tag || is_later(hello.tag, peer.theirs);
            peer.is_up() && later && hello.epoch != NO_EPOCH && !self.is_rail_epoch(hello.epoch)
        })
    }

    /// Whether a peer that counts as dead only because a message could not be sent has sent this:
    /// it has parted from this task.
    fn has_come_back(&self, task: Task, hello: &Rejoin) -> bool {
        self.rail.is_none()
            && hello.epoch != NO_EPOCH
            && self.peer(task).is_some_and(|peer| peer.broken && matches!(peer.standing, Presence::Dead(_)))
            && self.knows_process(task, hello.process)
    }

    /// The peer has parted from this task, and lets it rejoin: they connect when this task has
    /// done the same.
    #[cold]
    fn note_parted(&mut self, task: Task, epoch: u64) {
        if self.rail.is_some() {
            // The rails' owner parts from the peer on all rails.
            self.note_event(RailEvent::Parted(task, epoch));
            self.sleeper.note(true);
        } else {
            self.note_left(task, Presence::HasParted);
        }
    }

    /// A peer that this task lets rejoin has sent its tag.
    pub(super) fn accept(&mut self, task: Task, hello: Rejoin) {
        let Some(peer) = self.peers[task as usize].as_deref_mut() else { return };
        peer.theirs = hello.tag;
        if hello.echo == peer.mine {
            peer.standing = Presence::Up;
            peer.met = true;
            peer.hello = None;
            // Without epochs there is nothing to name, but to the rails' owner: one of the
            // two has taken the place of another process, and neither has had contact with
            // the other before.
            peer.unnamed = self.rail.is_some() || (peer.epoch, hello.epoch) != (NO_EPOCH, NO_EPOCH);
            if peer.unnamed {
                self.note_rejoined(task, hello.epoch);
            } else if !peer.held {
                self.receiving.add_packets(&mut peer.aside);
            }
            self.sleeper.note(true);
            self.note_process(task, hello.process);
        }
        // The peer waits for the proof that this task has its tag.
        self.owe(task, Wants::REJOIN);
        self.send_own(task);
        self.look_at_departure(task);
    }
}

/// The tag of this moment: odd, and about 15,000 a second later for each second.
fn tag_now() -> u32 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() >> 16);
    now as u32 | 1
}

/// The tag of this moment, or, where the peer would not see that it is later than the one that
/// this task has used for it, the one after that: tags begin again after three days, and
/// clocks are set back.
fn tag_after(former: Option<u32>, now: u32) -> u32 {
    former.filter(|former| !is_later(now, *former)).map_or(now, |former| former.wrapping_add(2))
}

/// Whether the one tag was chosen after the other, by one task for one peer.
fn is_later(one: u32, other: u32) -> bool {
    one != other && one.wrapping_sub(other) < 1 << 31
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half of all tags count as earlier ones: those of 39 hours.
    #[test]
    fn the_next_tag_for_a_peer_is_later_whenever_it_is_chosen() {
        let hour = 3_600_000_000_000_u64 >> 16;
        let first = 0xffff_0001_u32;
        for hours in [0, 1, 30, 40, 60, 77, 79, 200, 10_000] {
            let now = first.wrapping_add((hours * hour) as u32) | 1;
            let next = tag_after(Some(first), now);
            assert!(is_later(next, first) && next % 2 == 1, "after {hours} hours");
        }
        assert!(is_later(tag_after(Some(first), first - 50_000), first), "the clock was set back");
        assert_eq!(tag_after(None, 7), 7);
    }
}
