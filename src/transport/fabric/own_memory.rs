//! All memory of a task, for its peers: where a registration pins nothing, one for each peer covers
//! every address, so that a peer writes and reads without asking first.
//!
//! The key follows from the job's secret, the owner, the peer, and the tag of the frames to the
//! owner. So both compute it, and it changes with the connection. The owner registers before it
//! sends anything in a connection: a peer that has received something may use the key.

use super::FabricTransport;
use crate::base::clock;
#[cfg(doc)]
use crate::transport::Withdrawal;
use crate::transport::{Key, Task};
use std::time::{Duration, Instant};

/// The processor time for which what has arrived is stored, at most: a peer that lives may write
/// all the time. On a busy machine, of the time that passes others get the most.
const LONGEST: Duration = Duration::from_millis(50);
/// The time that may pass meanwhile: other peers wait.
const PASSES: Duration = Duration::from_millis(500);
/// A provider without a descriptor does not say whether something is there: how long it is given.
const BLINDLY: Duration = Duration::from_millis(2);
/// How often in a row nothing is there when all has arrived: on a busy machine the kernel carries
/// the rest in a thread of its own.
const EMPTY: u32 = 3;

impl FabricTransport {
    /// Lets the peer access all memory of this task in the connection whose tag was chosen now, and
    /// not in those before.
    pub(super) fn open_memory(&mut self, task: Task) {
        self.close_memory(task);
        // Over rails, the owner of the rails divides accesses.
        if !self.device.info().registers_any_address() || self.rail.is_some() || self.is_elsewhere(task) {
            return;
        }
        let Some(peer) = self.peers[task as usize].as_deref_mut() else { return };
        let key = self.credentials.own_memory_key(task, peer.mine);
        // Without it the peer's first access fails, and it asks from then on.
        if let Ok(region) = self.device.register_all(key) {
            let key = Key { key, offset: 0 };
            peer.own_key = Some(key);
            self.accesses.note_registration(task, key, region);
        }
    }

    /// The peer may not do so any more.
    pub(super) fn close_memory(&mut self, task: Task) {
        if let Some(key) = self.peer_mut(task).and_then(|peer| peer.own_key.take()) {
            self.withdraw_key(task, key);
        }
    }

    /// The peer has lost its key ([`Withdrawal::Traffic`]). A provider without a card that has
    /// begun to receive a write stores the rest of it nevertheless, in looks of this task. So what
    /// has arrived is taken now, before the memory is the program's again.
    pub(super) fn end_writes_of(&mut self, task: Task) {
        if !self.peer_mut(task).is_some_and(|peer| peer.own_key.take().is_some() && peer.met) {
            return;
        }
        let longest = if self.device.descriptor().is_some() { LONGEST } else { BLINDLY };
        let (start, until) = (Instant::now(), clock::thread_time() + longest);
        let mut empty = 0;
        self.advance();
        while empty < EMPTY && clock::thread_time() < until && start.elapsed() < PASSES {
            if self.device.has_more() {
                empty = 0;
            } else {
                empty += 1;
                clock::yield_now();
            }
            self.advance();
        }
    }

    /// The key of all memory of the peer.
    #[inline]
    pub(super) fn key_of_all(&mut self, task: Task) -> Option<Key> {
        let peer = self.peer(task).filter(|peer| peer.is_up() && peer.heard && !peer.has_refused)?;
        match peer.its_key {
            Some((tag, key)) if tag == peer.theirs => Some(key),
            _ => self.compute_key_of_all(task),
        }
    }

    #[cold]
    fn compute_key_of_all(&mut self, task: Task) -> Option<Key> {
        if !self.device.info().registers_any_address() || self.rail.is_some() || self.closed {
            return None;
        }
        let peer = self.peers[task as usize].as_deref_mut()?;
        let key = self.credentials.memory_key_of(task, &peer.published, peer.theirs);
        let key = Key { key, offset: 0 };
        peer.its_key = Some((peer.theirs, key));
        Some(key)
    }
}
