//! All memory of a task, for its peers: where a registration pins nothing, one for each peer covers
//! every address, so that a peer writes and reads without asking first.
//!
//! The key follows from the job's secret, the owner, the peer, and the tag of the frames to the
//! owner. So both compute it, and it changes with the connection. The owner registers before it
//! sends anything in a connection: a peer that has received something may use the key.

use super::FabricTransport;
#[cfg(doc)]
use crate::transport::Withdrawal;
use crate::transport::{Key, Task};
use std::time::{Duration, Instant};

/// How long what has arrived is stored, at most: a peer that lives may write all the time.
const LONGEST: Duration = Duration::from_millis(50);
/// A provider without a descriptor does not say whether something is there: how long it is given.
const BLINDLY: Duration = Duration::from_millis(2);

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
        let start = Instant::now();
        let longest = if self.device.descriptor().is_some() { LONGEST } else { BLINDLY };
        self.advance();
        while start.elapsed() < longest && self.device.has_more() {
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
