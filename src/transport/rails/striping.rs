//! Accesses to peers' memory over several rails: cut into stripes, each of which goes over one
//! rail, and again over another one when that is lost. Without a clock or a socket.

use crate::transport::{Access, AccessId, Copy, Task};
use crate::wire::rails::RAILS;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io;

/// The longest stripe, in bytes.
const STRIPE: usize = 256 << 10;

/// Stripes under way on one rail, at most. A peer has at most as many as are free, which is half of
/// them where it is the only one.
const DEPTH: usize = 16;

/// A part of an access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stripe {
    pub(super) copy: Copy,
    /// The rails that have refused it, bit by bit.
    refused: u8,
}

/// What is to be started on a rail.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) rail: usize,
    pub(super) peer: Task,
    pub(super) access: Access,
    /// The number of the registration.
    pub(super) key: u64,
    pub(super) stripe: Stripe,
    running: u64,
}

/// The rails that can make an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Usable {
    /// Not known yet, or none for a while.
    Later,
    /// These, bit by bit. None: it fails.
    Now(u8),
}

struct Running {
    id: u64,
    peer: Task,
    access: Access,
    key: u64,
    /// What is to be made.
    stripes: VecDeque<Stripe>,
    under_way: usize,
    /// Lost rails, with their generation, on which stripes were under way: both sides must have
    /// left them before the report.
    lost: Vec<(usize, u32)>,
    failed: Option<io::Error>,
    /// Why a rail has refused a stripe.
    refusal: Option<io::Error>,
}

struct UnderWay {
    rail: usize,
    peer: Task,
    id: AccessId,
    running: u64,
    stripe: Stripe,
}

/// All accesses of a task.
pub(super) struct Striping {
    /// In the order of their numbers.
    running: VecDeque<Running>,
    under_way: Vec<UnderWay>,
    /// Stripes under way on each rail, and of each peer on each rail.
    load: [usize; RAILS],
    used: Vec<[u8; RAILS]>,
    /// Something has changed since all accesses were looked at: a stripe may be started or an
    /// access be over. Otherwise a poll looks at none of them, however many there are.
    changed: bool,
    done: VecDeque<(Task, AccessId, io::Result<()>)>,
    next: u64,
    rails: usize,
}

// SAFETY: the addresses are the program's; the code that starts an access promises that they
// are valid for it.
unsafe impl Send for Striping {}

impl Striping {
    pub(super) fn new(rails: usize) -> Self {
        Self {
            running: VecDeque::new(),
            under_way: Vec::new(),
            load: [0; RAILS],
            used: Vec::new(),
            changed: false,
            done: VecDeque::new(),
            next: 0,
            rails,
        }
    }

    /// Whether accesses are not over.
    #[inline]
    pub(super) fn is_busy(&self) -> bool {
        !self.running.is_empty()
    }

    pub(super) fn has_reports(&self) -> bool {
        !self.done.is_empty()
    }

    /// The next access that is over.
    pub(super) fn next_report(&mut self) -> Option<(AccessId, io::Result<()>)> {
        self.done.pop_front().map(|(_, id, outcome)| (id, outcome))
    }

    /// The rails that can make accesses to some peer, or the keys, may have changed.
    pub(super) fn note_change(&mut self) {
        self.changed = true;
    }

    /// A new access.
    pub(super) fn add(&mut self, access: Access, peer: Task, key: u64, copies: &[Copy]) -> AccessId {
        let id = self.next;
        self.next += 1;
        self.changed = true;
        if self.used.len() <= peer as usize {
            self.used.resize(peer as usize + 1, [0; RAILS]);
        }
        let stripes = copies.iter().filter(|copy| copy.len != 0);
        let stripes = stripes.map(|copy| Stripe { copy: *copy, refused: 0 }).collect();
        self.running.push_back(Running {
            id,
            peer,
            access,
            key,
            stripes,
            under_way: 0,
            lost: Vec::new(),
            failed: None,
            refusal: None,
        });
        AccessId(id)
    }

    /// The next stripe that can be started. `usable` says which rails can make an access to this
    /// peer by this key. A peer gets a place on a rail while it has fewer than are free there, so
    /// that those that make no progress leave some to the others.
    pub(super) fn next_start(&mut self, usable: impl Fn(Task, u64) -> Usable) -> Option<Start> {
        if !self.changed {
            return None;
        }
        let Self { running, load, used, rails, .. } = self;
        for running in running.iter_mut() {
            let Some(stripe) = running.stripes.front_mut() else { continue };
            let Usable::Now(rails_now) = usable(running.peer, running.key) else { continue };
            let rails_left = rails_now & !stripe.refused;
            if rails_left == 0 {
                let why = running.refusal.take().unwrap_or_else(|| Errno::HOSTUNREACH.into());
                running.failed.get_or_insert(why);
                running.stripes.clear();
                continue;
            }
            let used = &mut used[running.peer as usize];
            let free =
                |rail: &usize| rails_left & 1 << *rail != 0 && usize::from(used[*rail]) < DEPTH - load[*rail];
            let Some(rail) = (0..*rails).filter(free).min_by_key(|rail| load[*rail]) else { continue };
            let copy = &mut stripe.copy;
            let len = copy.len.min(STRIPE);
            let start = Start {
                rail,
                peer: running.peer,
                access: running.access,
                key: running.key,
                stripe: Stripe { copy: Copy { len, ..*copy }, refused: stripe.refused },
                running: running.id,
            };
            copy.local = copy.local.wrapping_add(len);
            copy.remote += len as u64;
            copy.len -= len;
            if copy.len == 0 {
                running.stripes.pop_front();
            }
            running.under_way += 1;
            load[rail] += 1;
            used[rail] += 1;
            return Some(start);
        }
        None
    }

    /// The rail has taken the stripe, and will report it under this name.
    pub(super) fn started(&mut self, start: Start, id: AccessId) {
        let Start { rail, peer, stripe, running, .. } = start;
        self.under_way.push(UnderWay { rail, peer, id, running, stripe });
    }

    /// The rail has ended the stripe at once. Returns as [`Self::finished`].
    pub(super) fn ended(&mut self, start: Start, outcome: io::Result<()>) -> Option<(Task, u8)> {
        self.end(start.rail, start.peer, start.running, start.stripe, outcome)
    }

    /// The rail reports a stripe. When it has succeeded after other rails had refused it: the peer,
    /// and these rails.
    pub(super) fn finished(
        &mut self,
        rail: usize,
        id: AccessId,
        outcome: io::Result<()>,
    ) -> Option<(Task, u8)> {
        let at = self.under_way.iter().position(|under_way| (under_way.rail, under_way.id) == (rail, id))?;
        let UnderWay { peer, running, stripe, .. } = self.under_way.swap_remove(at);
        self.end(rail, peer, running, stripe, outcome)
    }

    fn end(
        &mut self,
        rail: usize,
        peer: Task,
        running: u64,
        mut stripe: Stripe,
        outcome: io::Result<()>,
    ) -> Option<(Task, u8)> {
        self.changed = true;
        self.load[rail] -= 1;
        self.used[peer as usize][rail] -= 1;
        let running = find(&mut self.running, running)?;
        running.under_way -= 1;
        match outcome {
            Ok(()) => (stripe.refused != 0).then_some((running.peer, stripe.refused)),
            Err(why) => {
                stripe.refused |= 1 << rail;
                running.refusal = Some(why);
                if running.failed.is_none() {
                    running.stripes.push_front(stripe);
                }
                None
            }
        }
    }

    /// A rail to the peer was left: what was under way on it is to be made again. What the rail has
    /// refused may be tried there when it was joined again.
    pub(super) fn lose(&mut self, rail: usize, peer: Task, generation: u32) {
        self.changed = true;
        let Self { running, under_way, load, used, .. } = self;
        for stripe in
            running.iter_mut().filter(|running| running.peer == peer).flat_map(|one| &mut one.stripes)
        {
            stripe.refused &= !(1 << rail);
        }
        under_way.retain(|one| {
            if (one.rail, one.peer) != (rail, peer) {
                return true;
            }
            let Some(owner) = find(running, one.running) else { return true };
            load[rail] -= 1;
            used[peer as usize][rail] -= 1;
            owner.under_way -= 1;
            if owner.failed.is_none() {
                owner.stripes.push_front(one.stripe);
            }
            if !owner.lost.contains(&(rail, generation)) {
                owner.lost.push((rail, generation));
            }
            false
        });
    }

    /// Moves what is over to the reports. `is_cut` says whether both sides have left this
    /// generation of a rail.
    pub(super) fn report(&mut self, is_cut: impl Fn(Task, usize, u32) -> bool) {
        if !std::mem::take(&mut self.changed) {
            return;
        }
        let mut at = 0;
        while let Some(running) = self.running.get_mut(at) {
            let peer = running.peer;
            let over = running.under_way == 0 && running.stripes.is_empty();
            if over {
                running.lost.retain(|(rail, generation)| !is_cut(peer, *rail, *generation));
            }
            if !over || !running.lost.is_empty() {
                at += 1;
            } else if let Some(running) = self.running.remove(at) {
                self.done.push_back((peer, AccessId(running.id), running.failed.map_or(Ok(()), Err)));
            }
        }
    }

    /// Forgets the accesses to the peer.
    pub(super) fn recall(&mut self, peer: Task) {
        self.forget_stripes(peer);
        self.running.retain(|running| running.peer != peer);
        self.done.retain(|(of, ..)| *of != peer);
    }

    /// The peer has left, and no rail makes an access to it any more: those that are not
    /// done have failed.
    pub(super) fn abandon(&mut self, peer: Task) {
        self.forget_stripes(peer);
        let all = std::mem::take(&mut self.running).into_iter();
        let (ended, kept): (VecDeque<_>, VecDeque<_>) = all.partition(|one| one.peer == peer);
        self.running = kept;
        for running in ended {
            // What is complete and waits for a rail to be cut is in place: this side has cut it.
            let complete = running.under_way == 0 && running.stripes.is_empty();
            let outcome = match running.failed {
                None if complete => Ok(()),
                failure => Err(failure.unwrap_or_else(|| Errno::SRCH.into())),
            };
            self.done.push_back((peer, AccessId(running.id), outcome));
        }
    }

    /// What is under way with the peer does not count any more.
    fn forget_stripes(&mut self, peer: Task) {
        self.changed = true;
        let Self { under_way, load, used, .. } = self;
        under_way.retain(|one| {
            let own = one.peer == peer;
            if own {
                load[one.rail] -= 1;
                used[peer as usize][one.rail] -= 1;
            }
            !own
        });
    }

    /// Stripes under way on each rail.
    #[cfg(test)]
    pub(super) fn load(&self) -> &[usize] {
        &self.load[..self.rails]
    }

    /// Forgets all accesses.
    pub(super) fn withdraw_all(&mut self) {
        *self = Self { next: self.next, ..Self::new(self.rails) };
    }
}

/// The access with this number.
fn find(running: &mut VecDeque<Running>, id: u64) -> Option<&mut Running> {
    let at = running.binary_search_by_key(&id, |running| running.id).ok()?;
    running.get_mut(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_peer_that_makes_no_progress_leaves_places_to_others() {
        let mut striping = Striping::new(2);
        let copy = Copy { local: std::ptr::null_mut(), remote: 0, len: 64 << 20 };
        let both = |_: Task, _: u64| Usable::Now(0b11);
        let mut ids = 0..;
        for peer in 1..4 {
            striping.add(Access::Read, peer, 0, &[copy]);
            let mut began = 0;
            while let Some(start) = striping.next_start(both) {
                assert_eq!(start.peer, peer);
                striping.started(start, AccessId(ids.next().expect("a number")));
                began += 1;
            }
            assert!(began != 0, "peer {peer} has none");
            assert!(peer != 1 || striping.load() == [8, 8], "{:?}", striping.load());
        }
    }

    /// One round of a poll: starts what can be started, and reports. How often it has asked for
    /// rails or cuts.
    fn round(striping: &mut Striping, ids: &mut impl Iterator<Item = u64>) -> usize {
        let asked = Cell::new(0);
        let count = || asked.set(asked.get() + 1);
        while let Some(start) = striping.next_start(|_, _| {
            count();
            Usable::Now(0b11)
        }) {
            striping.started(start, AccessId(ids.next().expect("a number")));
        }
        striping.report(|_, _, _| {
            count();
            true
        });
        asked.get()
    }

    #[test]
    fn a_poll_looks_at_accesses_that_wait_only_after_a_change() {
        let mut striping = Striping::new(2);
        let copy = Copy { local: std::ptr::null_mut(), remote: 0, len: 8 };
        let mut ids = 0..;
        let first = striping.add(Access::Read, 1, 0, &[copy]);
        for _ in 1..1000 {
            striping.add(Access::Read, 1, 0, &[copy]);
        }
        assert!(round(&mut striping, &mut ids) >= 1000);
        assert_eq!(striping.load(), [8, 8]);
        assert_eq!(round(&mut striping, &mut ids), 0, "both rails are full");
        striping.finished(0, AccessId(0), Ok(()));
        assert_ne!(round(&mut striping, &mut ids), 0);
        assert_eq!(striping.next_report().map(|(id, outcome)| (id, outcome.is_ok())), Some((first, true)));
        assert_eq!(striping.load(), [8, 8]);
        assert_eq!(round(&mut striping, &mut ids), 0);
        striping.note_change();
        assert_ne!(round(&mut striping, &mut ids), 0);
        striping.lose(0, 1, 3);
        assert_ne!(round(&mut striping, &mut ids), 0, "its stripes are made again");
        assert_eq!(striping.load(), [8, 8]);
        assert_eq!(round(&mut striping, &mut ids), 0);
        striping.abandon(1);
        assert_eq!((striping.load(), striping.is_busy()), (&[0, 0][..], false));
    }

    #[test]
    fn what_a_rail_has_refused_may_be_made_there_after_it_was_joined_again() {
        let mut striping = Striping::new(2);
        let copy = Copy { local: std::ptr::null_mut(), remote: 0, len: 8 };
        let id = striping.add(Access::Read, 1, 0, &[copy]);
        let both = |_: Task, _: u64| Usable::Now(0b11);
        let refused = striping.next_start(both).expect("a stripe");
        assert_eq!(refused.rail, 0);
        striping.ended(refused, Err(Errno::IO.into()));
        let other = striping.next_start(both).expect("it is made again");
        assert_eq!(other.rail, 1);
        striping.started(other, AccessId(7));
        // The first rail is left and joined, and then the other one fails, too.
        striping.lose(1, 1, 0);
        striping.lose(0, 1, 0);
        let again =
            striping.next_start(|_, _| Usable::Now(0b01)).expect("it was refused before the rail was left");
        assert_eq!(again.rail, 0);
        striping.ended(again, Ok(()));
        striping.report(|_, _, _| true);
        assert_eq!(striping.next_report().map(|(id, outcome)| (id, outcome.is_ok())), Some((id, true)));
    }
}
