//! Copies between the tasks of a network, all of which are in one address space.

use super::MemTransport;
use crate::memory::bytes;
use crate::transport::{
    Access, AccessId, COPIED_MAX, Copy, EndedWrite, Exposure, Key, PeerState, Peers, Piece, Reach,
    RemoteAccess, Report, Started, Task, Transfer,
};
use rustix::io::Errno;
use std::io;
use std::ptr::with_exposed_provenance_mut;
use std::sync::atomic::Ordering;

/// The number of each task's key of all memory of a peer.
const ALL: u64 = u64::MAX;

/// How many single copies may be under way.
const SINGLES: usize = 4;

impl RemoteAccess for MemTransport {
    fn reach(&mut self, peer: Task) -> Reach {
        match (self.network.options.remote, self.network.options.keyed) {
            (false, _) => Reach::None,
            (true, false) => Reach::Open,
            (true, true) => Reach::Keyed(self.key_of_all(peer)),
        }
    }

    unsafe fn expose(&mut self, peer: Task, memory: Piece, exposure: Exposure) -> io::Result<Key> {
        if !matches!(self.reach(peer), Reach::Keyed(_)) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.registered += 1;
        if self.registered > self.network.options.registrations {
            return Err(Errno::NOMEM.into());
        }
        if self.network.end(self.task).state() != PeerState::Up {
            return Err(Errno::NOTCONN.into());
        }
        let start = memory.ptr.expose_provenance() as u64;
        let key = self.network.next_ticket();
        let (len, Exposure { access, one_rail }) = (memory.len as u64, exposure);
        let registration = Registration { owner: self.task, peer, start, len, access, one_rail };
        self.network.registrations.lock().insert(key, registration);
        // Accesses count from the start of the memory, as on networks without virtual addresses.
        Ok(Key { key, offset: 0_u64.wrapping_sub(start) })
    }

    unsafe fn access(&mut self, peer: Task, transfer: Transfer<'_>) -> io::Result<Started> {
        match transfer {
            Transfer::Copies { access, key, copies } => {
                // SAFETY: the caller's promise.
                unsafe { self.start_copies(access, peer, key, copies) }
            }
            Transfer::Write { copy, cookie, copied } => {
                // SAFETY: the caller's promise.
                let started = unsafe { self.start_write(peer, copy, cookie, copied) };
                if started { Ok(Started::Pending(AccessId(cookie))) } else { Err(Errno::AGAIN.into()) }
            }
        }
    }
}

/// Memory of one task that a peer may access.
pub(super) struct Registration {
    pub(super) owner: Task,
    pub(super) peer: Task,
    start: u64,
    len: u64,
    access: Access,
    /// Accesses are not to be striped. Here there is one way only.
    pub(super) one_rail: bool,
}

/// A remote access that waits to be made.
pub(super) struct Pending {
    id: AccessId,
    access: Access,
    pub(super) peer: Task,
    key: Option<Key>,
    copies: Box<[Copy]>,
    single: Option<Single>,
}

/// Of a write by the standing key: its cookie, and the data if that was copied.
pub(super) struct Single {
    cookie: u64,
    data: Option<Box<[u8]>>,
}

// SAFETY: the addresses are the program's; the code that starts an access promises that they
// are valid for it.
unsafe impl Send for Pending {}

/// A remote access that was made, and how it went.
pub(super) struct Made {
    id: AccessId,
    pub(super) peer: Task,
    outcome: io::Result<()>,
    /// Of a write by the standing key: what it was.
    single: Option<(Single, Copy)>,
}

// SAFETY: as for `Pending`; nothing is accessed any more.
unsafe impl Send for Made {}

impl MemTransport {
    /// The key of all memory of the peer.
    fn key_of_all(&self, peer: Task) -> Option<Key> {
        let there = self.network.options.standing && self.standing(peer).state == PeerState::Up;
        there.then_some(Key { key: ALL, offset: 0 })
    }

    /// Withdraws one registration made for the peer.
    pub(super) fn withdraw_key(&mut self, peer: Task, key: Key) {
        let mut registrations = self.network.registrations.lock();
        if registrations.get(&key.key).is_some_and(|found| (found.owner, found.peer) == (self.task, peer)) {
            registrations.remove(&key.key);
        }
    }

    /// # Safety
    /// The conditions of [`RemoteAccess::access`] hold.
    unsafe fn start_copies(
        &mut self,
        access: Access,
        peer: Task,
        key: Option<Key>,
        copies: &[Copy],
    ) -> io::Result<Started> {
        if self.network.options.pending {
            let id = AccessId(self.network.next_ticket());
            let single = None;
            self.accesses.push_back(Pending { id, access, peer, key, copies: copies.into(), single });
            return Ok(Started::Pending(id));
        }
        if self.network.options.seen && key.is_none() {
            let polls = self.network.end(self.task).polling.load(Ordering::Relaxed);
            assert!(polls, "task {} copies, and its peers do not see it polling", self.task);
        }
        // SAFETY: the caller's promise.
        unsafe { self.make(access, peer, key, copies) }.map(|()| Started::Done)
    }

    /// # Safety
    /// The conditions of [`RemoteAccess::access`] hold.
    unsafe fn start_write(&mut self, peer: Task, copy: Copy, cookie: u64, copied: bool) -> bool {
        if copied && copy.len > COPIED_MAX {
            return false;
        }
        // SAFETY: the caller's promise.
        let data = copied.then(|| unsafe { std::slice::from_raw_parts(copy.local, copy.len) }.into());
        self.start_single(peer, copy, Single { cookie, data })
    }

    /// The next access that was made.
    pub(super) fn next_made(&mut self) -> Option<Report> {
        let Made { id, peer, outcome, single } = self.made.pop_front()?;
        let Some((Single { cookie, data }, copy)) = single else {
            return Some(Report::Accessed(id, outcome));
        };
        let data = data.filter(|_| outcome.is_err());
        Some(Report::Written(EndedWrite { peer, cookie, copy, outcome, data }))
    }

    /// How many single writes were started and not reported.
    fn singles(&self) -> usize {
        self.accesses.iter().filter(|pending| pending.single.is_some()).count()
            + self.made.iter().filter(|made| made.single.is_some()).count()
    }

    fn start_single(&mut self, peer: Task, copy: Copy, single: Single) -> bool {
        let Reach::Keyed(Some(key)) = self.reach(peer) else { return false };
        if self.singles() == SINGLES {
            return false;
        }
        let (id, copies) = (AccessId(single.cookie), [copy].into());
        let (access, key) = (Access::Write, Some(key));
        self.accesses.push_back(Pending { id, access, peer, key, copies, single: Some(single) });
        if !self.network.options.pending {
            self.make_accesses();
        }
        true
    }

    /// Makes the accesses that were started.
    pub(super) fn make_accesses(&mut self) {
        while let Some(Pending { id, access, peer, key, copies, single }) = self.accesses.pop_front() {
            let mut copies = copies;
            let asked = copies.first().copied();
            if let Some(data) = single.as_ref().and_then(|single| single.data.as_ref()) {
                copies[0].local = data.as_ptr().cast_mut();
            }
            // SAFETY: the promise of the caller of `start`, which holds until the access is
            // reported; or the data was copied.
            let outcome = unsafe { self.make(access, peer, key, &copies) };
            let single = single.zip(asked);
            self.made.push_back(Made { id, peer, outcome, single });
        }
    }

    /// # Safety
    /// The conditions of [`RemoteAccess::access`] hold.
    unsafe fn make(
        &mut self,
        access: Access,
        peer: Task,
        key: Option<Key>,
        copies: &[Copy],
    ) -> io::Result<()> {
        if !self.network.options.remote {
            return Err(io::ErrorKind::Unsupported.into());
        }
        if self.network.end(peer).state() == PeerState::Dead {
            return Err(Errno::SRCH.into());
        }
        if !self.network.options.keyed {
            copies.iter().try_for_each(check)?;
            // SAFETY: the caller promises the local places. The remote addresses belong to
            // this same process, and the code that sets `MemOptions::remote` promises that
            // they are valid.
            copies.iter().for_each(|copy| unsafe { make_one(access, copy.remote, copy) });
            return Ok(());
        }
        let denied = || io::Error::from(Errno::ACCESS);
        self.accessed += 1;
        if self.accessed > self.network.options.accesses {
            return Err(Errno::IO.into());
        }
        let key = key.ok_or_else(denied)?;
        if key.key == ALL && self.network.options.standing {
            let open = self.network.open.lock();
            if !open.contains(&(peer, self.task)) {
                return Err(denied());
            }
            // SAFETY: as for addresses alone; the owner has not withdrawn it, and does not while
            // the list is locked.
            copies.iter().for_each(|copy| unsafe { make_one(access, copy.remote, copy) });
            return Ok(());
        }
        let registrations = self.network.registrations.lock();
        let registration = registrations.get(&key.key).ok_or_else(denied)?;
        if (registration.owner, registration.peer, registration.access) != (peer, self.task, access) {
            return Err(denied());
        }
        for copy in copies {
            let from = key.target(copy.remote);
            if from.checked_add(copy.len as u64).is_none_or(|end| end > registration.len) {
                return Err(Errno::FAULT.into());
            }
            // SAFETY: the caller promises the local place. The owner of the registration promises
            // the remote one while it is registered, which it is while the list is locked.
            unsafe { make_one(access, registration.start + from, copy) };
        }
        Ok(())
    }
}

/// Makes one copy from or to this address. The two places may overlap.
///
/// # Safety
/// Both places must be readable, and the one that is written writable.
unsafe fn make_one(access: Access, remote: u64, copy: &Copy) {
    let remote = with_exposed_provenance_mut(remote as usize);
    // SAFETY: the caller's promise.
    unsafe {
        match access {
            Access::Read => bytes::copy(Piece { ptr: remote, len: copy.len }, copy.local),
            Access::Write => bytes::copy(Piece { ptr: copy.local, len: copy.len }, remote),
        }
    }
}

fn check(copy: &Copy) -> io::Result<()> {
    let end = usize::try_from(copy.remote).ok().and_then(|start| start.checked_add(copy.len));
    if copy.len > 0 && (copy.remote == 0 || end.is_none()) {
        return Err(Errno::FAULT.into());
    }
    Ok(())
}
