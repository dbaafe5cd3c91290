//! Reads and writes of peers' memory over the rails.
//!
//! A registration has a key on each rail. Its own key is the number of the registration, and the
//! session of its owner: the keys of the rails follow in a packet ([`Keys`]), which comes before
//! each packet that can name the registration.

use super::agreement::Why;
use super::peer::Peer;
use super::striping::Usable;
use super::{Rail, Rails};
use crate::transport::{
    Exposure, Key, Piece, Reach, RemoteAccess, Report, Started, Task, Transfer, Withdrawal,
};
use crate::wire::rails::{Keys, RAILS, RailFrameKind};
use rustix::io::Errno;
use std::io;

impl<T: Rail> RemoteAccess for Rails<T> {
    fn reach(&mut self, peer: Task) -> Reach {
        match self.rails[0].reach(peer) {
            Reach::Keyed(_) if peer != self.me && !self.closed => Reach::Keyed(None),
            _ => Reach::None,
        }
    }

    /// For accesses that are not striped the peer gets a key of one rail only: that which packets
    /// use. When the rail is left, accesses by the key fail.
    unsafe fn expose(&mut self, task: Task, memory: Piece, exposure: Exposure) -> io::Result<Key> {
        let home = self.home(task);
        let among = match self.peer(task).map(|peer| peer.agreement.live_from(home)) {
            _ if !exposure.one_rail => self.all(),
            None => 1 << home,
            Some(Some(rail)) => 1 << rail,
            Some(None) => return Err(Errno::HOSTUNREACH.into()),
        };
        // SAFETY: the caller's promise.
        unsafe { self.expose_on(task, memory, exposure, among) }
    }

    unsafe fn access(&mut self, task: Task, transfer: Transfer<'_>) -> io::Result<Started> {
        let Transfer::Copies { access, key: Some(key), copies } = transfer else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        if self.closed || !self.meet(task).is_up() {
            return Err(Errno::SRCH.into());
        }
        if !self.meet(task).may_have(key) {
            return Err(Errno::ACCESS.into());
        }
        if copies.iter().all(|copy| copy.len == 0) {
            return Ok(Started::Done);
        }
        let access = self.striping.add(access, task, key.key, copies);
        self.advance_accesses();
        Ok(Started::Pending(access))
    }
}

impl<T: Rail> Rails<T> {
    /// Withdraws one registration made for the peer, on all rails.
    pub(super) fn withdraw_key(&mut self, task: Task, key: Key) {
        let Self { peers, rails, .. } = self;
        let Some(peer) = peers[task as usize].as_deref_mut() else { return };
        if key != key_of(key.key, peer.session) {
            return;
        }
        let Some(keys) = peer.registrations.remove(&key.key) else { return };
        for (at, key) in keys.into_iter().enumerate() {
            // A rail that was left has withdrawn it.
            let present = |(generation, _): &(u32, Key)| {
                peer.agreement.is_live(at) && peer.agreement.generation(at) == *generation
            };
            if let Some((_, key)) = key.filter(present) {
                rails[at].withdraw(task, Withdrawal::Key(key));
            }
        }
        self.send_control(task, RailFrameKind::Withdrawn, &key.key.to_le_bytes());
    }

    /// Registers memory on those of the rails `among` that are in use, bit by bit.
    ///
    /// # Safety
    /// The conditions of [`RemoteAccess::expose`] hold.
    unsafe fn expose_on(
        &mut self,
        task: Task,
        memory: Piece,
        exposure: Exposure,
        among: u8,
    ) -> io::Result<Key> {
        if self.closed {
            return Err(Errno::SHUTDOWN.into());
        }
        let peer = self.meet(task);
        if !peer.is_up() {
            return Err(Errno::NOTCONN.into());
        }
        let agreement = peer.agreement.clone();
        let mut keys = [None; RAILS];
        let mut refusal = io::Error::from(Errno::HOSTUNREACH);
        let usable = |at: usize| among & 1 << at != 0 && agreement.is_live(at);
        for (at, rail) in self.rails.iter_mut().enumerate().filter(|(at, _)| usable(*at)) {
            // SAFETY: the caller's promise; the registration is withdrawn on all rails.
            match unsafe { rail.expose(task, memory, exposure) } {
                Ok(key) => keys[at] = Some((agreement.generation(at), key)),
                Err(why) => refusal = why,
            }
        }
        if keys.iter().all(Option::is_none) {
            return Err(refusal);
        }
        let peer = self.meet(task);
        let id = peer.next_registration;
        peer.next_registration += 1;
        peer.registrations.insert(id, keys);
        let key = key_of(id, peer.session);
        self.send_control(task, RailFrameKind::Keys, &Keys { id, rails: keys }.encode());
        Ok(key)
    }
}

/// The key of a registration. Its second word distinguishes it from what is no key, and from those
/// of other connections.
fn key_of(id: u64, session: u32) -> Key {
    let check = id.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    Key { key: id, offset: u64::from(session) | check << 32 }
}

impl Peer {
    /// Whether the peer may have made this key: one that was withdrawn is not among them.
    fn may_have(&self, key: Key) -> bool {
        let session = if self.theirs == 0 { key.offset as u32 } else { self.theirs };
        key == key_of(key.key, session) && (key.key >= self.known_keys || self.keys.contains_key(&key.key))
    }

    /// The rails over which memory with this number can be reached.
    fn usable(&self, id: u64, rails: usize) -> Usable {
        let live = (0..rails).filter(|&rail| self.agreement.is_live(rail));
        match self.keys.get(&id) {
            // A key of another generation was withdrawn, or is not valid before the rail is
            // joined here, too.
            Some(keys) => {
                let valid = |rail: &usize| {
                    keys[*rail].is_some_and(|(generation, _)| generation == self.agreement.generation(*rail))
                };
                Usable::Now(live.filter(valid).fold(0, |bits, rail| bits | 1 << rail))
            }
            None if id >= self.known_keys => Usable::Later,
            None => Usable::Now(0),
        }
    }
}

impl<T: Rail> Rails<T> {
    /// A packet of the transport's own has arrived, in order.
    #[cold]
    pub(super) fn note_control(&mut self, task: Task, kind: RailFrameKind, body: &[u8]) {
        self.striping.note_change();
        let Some(peer) = self.peer_mut(task) else { return };
        match kind {
            RailFrameKind::Keys => {
                if let Some(keys) = Keys::decode(body) {
                    peer.keys.insert(keys.id, keys.rails);
                    peer.known_keys = peer.known_keys.max(keys.id.saturating_add(1));
                }
            }
            RailFrameKind::Withdrawn => {
                if let Some(id) = body.first_chunk() {
                    peer.keys.remove(&u64::from_le_bytes(*id));
                }
            }
            RailFrameKind::Packet => {}
        }
    }

    /// The peer has left: the accesses that are under way with it are reported. From now on no rail
    /// makes one, and none lets the peer make one.
    #[cold]
    pub(super) fn end_accesses(&mut self, task: Task) {
        // What was made before counts.
        let suspects = self.take_reports();
        self.rails.iter_mut().for_each(|rail| rail.withdraw(task, Withdrawal::Traffic));
        self.striping.abandon(task);
        if let Some(peer) = self.peer_mut(task) {
            peer.registrations.clear();
        }
        self.fail_suspects(suspects);
    }

    /// Takes note of the stripes that are over. Returns the rails that have refused what another
    /// rail has done, by peer.
    fn take_reports(&mut self) -> Vec<(Task, u8)> {
        let mut suspects = Vec::new();
        for at in 0..self.rails.len() {
            while let Some(report) = self.rails[at].report() {
                if let Report::Accessed(id, outcome) = report {
                    suspects.extend(self.striping.finished(at, id, outcome));
                }
            }
        }
        suspects
    }

    fn fail_suspects(&mut self, suspects: Vec<(Task, u8)>) {
        for (task, refused) in suspects {
            for rail in (0..self.rails.len()).filter(|rail| refused & 1 << rail != 0) {
                self.fail(rail, task, Why::Failure);
            }
        }
    }

    /// Starts stripes while rails have room, and takes note of those that are over.
    pub(super) fn advance_accesses(&mut self) {
        let mut suspects = self.take_reports();
        let Self { striping, rails, peers, .. } = self;
        let count = rails.len();
        let peer = |task: Task| peers[task as usize].as_deref();
        let usable = |task: Task, key: u64| peer(task).map_or(Usable::Now(0), |peer| peer.usable(key, count));
        while let Some(start) = striping.next_start(usable) {
            let key = peer(start.peer).and_then(|peer| peer.keys.get(&start.key)?[start.rail]);
            let key = key.map(|(_, key)| key);
            let copy = start.stripe.copy;
            // SAFETY: the promise of the caller of `start`, which holds until the access is
            // reported or recalled.
            let outcome = unsafe {
                let transfer = Transfer::Copies { access: start.access, key, copies: &[copy] };
                rails[start.rail].access(start.peer, transfer)
            };
            match outcome {
                Ok(Started::Pending(id)) => striping.started(start, id),
                Ok(Started::Done) => suspects.extend(striping.ended(start, Ok(()))),
                Err(why) => suspects.extend(striping.ended(start, Err(why))),
            }
        }
        striping.report(|task, rail, generation| {
            peer(task).is_none_or(|peer| peer.agreement.is_cut(rail, generation))
        });
        self.fail_suspects(suspects);
    }
}
