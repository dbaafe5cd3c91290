//! From which peers no packets are taken, because of what their messages make this task keep.
//!
//! A peer whose messages are refused, wait for completion handlers or are sent on faster than the
//! next task takes them is *held* once what is kept exceeds a bound: its packets stay in its ring,
//! the ring gets full, and the peer's own calls slow down. It is *released* when what is kept has
//! fallen below half of the bound.
//!
//! What makes room may itself depend on a packet that the ring holds back. So a hold is never
//! absolute: when what is kept has made no progress for [`LONGEST_HOLD`] ticks, the hold is
//! *lifted* for a few messages, then for twice as many, and so on. See
//! docs/design/0012-bounded-memory.md.

use crate::transport::Task;

/// Without progress a hold is lifted after this many ticks: some tenths of a second.
pub const LONGEST_HOLD: u64 = 500_000_000;
/// The first lift lets this many messages pass that make what is kept grow; others pass
/// freely meanwhile.
const FIRST: u32 = 8;
/// No lift lets more pass than this.
const MOST: u32 = 256;

/// What makes this task keep something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Header handlers refuse the peer's messages.
    Kept,
    /// Data has arrived of messages that have not begun.
    Early,
    /// Completion handlers wait for their turn.
    Completions,
    /// Header handlers send more than the tasks they send to take.
    Forwarded,
}

/// The state of what is kept for one reason.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    /// The amount is still more than half of the bound.
    pub high: bool,
    /// A number that changes when something of it is done, and not while nothing is.
    pub progress: u64,
    /// Everything that would make room waits for packets: the hold must be lifted now.
    pub blocked: bool,
}

/// A peer that is held, or whose hold is lifted.
#[derive(Clone, Copy, Debug)]
pub struct Hold {
    /// The peer.
    pub peer: Task,
    /// Why.
    pub reason: Reason,
    /// Nothing is taken from it now.
    held: bool,
    /// How many messages pass before it is held again.
    allowance: u32,
    /// How many lifts there were since the last progress.
    lifts: u32,
    progress: u64,
    since: u64,
}

/// All holds. A peer has one for each reason at most.
#[derive(Default)]
pub struct Holds {
    list: Vec<Hold>,
    /// This peer has left, and what it sent before is being taken in: it is not held.
    drained: Option<Task>,
    /// No peer is held any more.
    ended: bool,
}

impl Holds {
    /// Whether there are none, not even lifted ones.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// A message of `peer` has made what is kept grow beyond its bound, at `now`, in ticks. `true`:
    /// from now on it is held.
    pub fn grown(&mut self, peer: Task, reason: Reason, progress: u64, now: u64) -> bool {
        if self.ended || self.drained == Some(peer) {
            return false;
        }
        let held = self.is_held(peer);
        let known = self.list.iter().position(|hold| (hold.peer, hold.reason) == (peer, reason));
        let at = known.unwrap_or_else(|| {
            self.list.push(Hold { peer, reason, held: false, allowance: 0, lifts: 0, progress, since: now });
            self.list.len() - 1
        });
        let hold = &mut self.list[at];
        if hold.allowance > 0 {
            hold.allowance -= 1;
            if matches!(reason, Reason::Kept | Reason::Early) {
                // Growth is not progress.
                hold.progress = progress;
            }
            return false;
        }
        (hold.held, hold.since, hold.progress) = (true, now, progress);
        !held
    }

    /// Checks all holds at `now`, in ticks. `level` gives the state of each hold's cause. Returns
    /// the peers that are released.
    pub fn look(&mut self, now: u64, mut level: impl FnMut(&Hold) -> Level) -> Vec<Task> {
        let before: Vec<Task> = self.held().collect();
        self.list.retain_mut(|hold| {
            let Level { high, progress, blocked } = level(hold);
            if progress != hold.progress {
                (hold.progress, hold.since, hold.lifts) = (progress, now, 0);
            }
            if hold.held && (blocked || now.wrapping_sub(hold.since) >= LONGEST_HOLD) {
                (hold.held, hold.since) = (false, now);
                hold.allowance = FIRST.saturating_mul(1 << hold.lifts.min(16)).min(MOST);
                hold.lifts += 1;
            }
            high
        });
        let mut released: Vec<Task> = before.into_iter().filter(|&peer| !self.is_held(peer)).collect();
        released.sort_unstable();
        released.dedup();
        released
    }

    /// Does not hold this peer from now on, but any other; `None`: holds all.
    pub fn drain(&mut self, peer: Option<Task>) {
        self.drained = peer;
    }

    /// Forgets the peer. Returns whether it is released.
    pub fn forget(&mut self, peer: Task) -> bool {
        let held = self.is_held(peer);
        self.list.retain(|hold| hold.peer != peer);
        held
    }

    /// Releases all peers, and holds none from now on: the context is closing. Returns those that
    /// are released.
    pub fn end(&mut self) -> Vec<Task> {
        self.ended = true;
        let mut held: Vec<Task> = self.held().collect();
        self.list.clear();
        held.sort_unstable();
        held.dedup();
        held
    }

    /// The peers that are held; a peer may come several times.
    pub fn held(&self) -> impl Iterator<Item = Task> + '_ {
        self.list.iter().filter(|hold| hold.held).map(|hold| hold.peer)
    }

    fn is_held(&self, peer: Task) -> bool {
        self.held().any(|held| held == peer)
    }
}

#[cfg(test)]
#[path = "holds_tests.rs"]
mod tests;
