//! Reads and writes of memory that a peer has registered. An access is cut into chunks, of which a
//! bounded number is under way.

use super::FabricTransport;
use super::contact::Peer;
use super::ofi::{Device, Errno, Region, Slot};
use super::single::{self, Singles};
use crate::memory::bytes;
use crate::transport::{
    Access, AccessId, COPIED_MAX, Copy, Exposure, Key, Piece, Reach, RemoteAccess, Report, Started, Task,
    Transfer,
};
use rustix::io::Errno as System;
use std::collections::{BTreeSet, VecDeque};
use std::io;

/// Chunks under way at a time, of all accesses. A peer has at most as many as are free, which is
/// half of them where it is the only one.
pub(super) const CHUNKS: usize = 32;

/// The longest chunk, in bytes.
const CHUNK: usize = 1 << 20;

/// What this task reads and writes, and what its peers may.
pub(super) struct Accesses {
    /// The first of the slots; the others follow.
    first: Slot,
    free: Vec<u16>,
    /// The access that each slot works for, and the peer.
    owners: [Option<(u64, Task)>; CHUNKS],
    /// In the order of their numbers.
    running: VecDeque<Running>,
    /// Accesses of which chunks wait for room.
    waiting: usize,
    /// Something has changed since all accesses were looked at: a chunk may be started. Otherwise a
    /// poll looks at none of them, however many there are.
    changed: bool,
    /// How often an access was looked at to start chunks of it.
    #[cfg(test)]
    pub(super) looks: usize,
    done: VecDeque<(Task, AccessId, io::Result<()>)>,
    singles: Singles,
    /// By peer and key: a message of many parts has as many registrations, and each of them is
    /// withdrawn on its own.
    registrations: BTreeSet<(Task, Key, Region)>,
    next: u64,
}

/// An access that is not done.
struct Running {
    id: u64,
    peer: Task,
    access: Access,
    key: Key,
    /// What is to be copied still, and the registration of the place here.
    copies: VecDeque<(Copy, Option<Region>)>,
    regions: Vec<Region>,
    under_way: usize,
    failed: Option<io::Error>,
    /// The access is not reported.
    recalled: bool,
    /// The provider has not ended it in time: it is not awaited any more.
    given_up: bool,
}

// SAFETY: the addresses are the program's; the code that starts an access promises that they
// are valid for it.
unsafe impl Send for Running {}

impl Running {
    fn is_over(&self) -> bool {
        self.under_way == 0 && self.copies.is_empty()
    }

    /// Whether it is under way with the peer, and its end is awaited.
    fn is_awaited(&self, peer: Task) -> bool {
        self.peer == peer && !self.given_up
    }

    fn fail(&mut self, why: io::Error) {
        self.copies.clear();
        self.failed.get_or_insert(why);
    }
}

impl Accesses {
    pub(super) fn new(first: Slot) -> Self {
        Self {
            first,
            free: (0..CHUNKS as u16).rev().collect(),
            owners: [None; CHUNKS],
            running: VecDeque::new(),
            waiting: 0,
            changed: false,
            #[cfg(test)]
            looks: 0,
            done: VecDeque::new(),
            singles: Singles::new(first + CHUNKS),
            registrations: BTreeSet::new(),
            next: 0,
        }
    }

    /// Whether this is the slot of a chunk, or of a single write.
    pub(super) fn has(&self, slot: Slot) -> bool {
        (self.first..self.first + CHUNKS).contains(&slot) || self.singles.has(slot)
    }

    /// The peer may access this memory by its key.
    pub(super) fn note_registration(&mut self, peer: Task, key: Key, region: Region) {
        self.registrations.insert((peer, key, region));
    }

    /// How many single writes were not reported.
    #[cfg(test)]
    pub(super) fn unreported(&self) -> usize {
        self.singles.unreported()
    }

    /// The next access or single write that is over.
    #[inline]
    pub(super) fn next_report(&mut self) -> Option<Report> {
        if let Some(ended) = self.singles.take() {
            return Some(Report::Written(ended));
        }
        self.done.pop_front().map(|(_, id, outcome)| Report::Accessed(id, outcome))
    }

    pub(super) fn has_reports(&self) -> bool {
        !self.done.is_empty() || self.singles.have_ended()
    }

    /// Whether chunks wait for room.
    #[inline]
    pub(super) fn wait(&self) -> bool {
        self.waiting != 0
    }

    /// Whether one of these may have room now.
    #[inline]
    pub(super) fn may_start(&self) -> bool {
        self.waiting != 0 && self.changed
    }

    /// A chunk or a single write has ended: whose memory it was for, if that is still of interest.
    pub(super) fn end(&mut self, device: &mut Device, slot: Slot, failure: Option<String>) -> Option<Task> {
        if self.singles.has(slot) {
            return self.singles.end(slot, failure);
        }
        let at = slot - self.first;
        self.free.push(at as u16);
        self.changed = true;
        let (owner, _) = self.owners[at].take()?;
        let at = self.running.binary_search_by_key(&owner, |running| running.id).ok()?;
        let running = &mut self.running[at];
        let peer = (!running.recalled).then_some(running.peer);
        running.under_way -= 1;
        if let Some(why) = failure {
            self.waiting -= usize::from(!running.copies.is_empty());
            running.fail(io::Error::other(why));
        }
        if running.is_over() {
            self.report(device, at);
        }
        peer
    }

    /// Moves an access that is over to the reports.
    fn report(&mut self, device: &mut Device, at: usize) {
        let Some(running) = self.running.remove(at) else { return };
        running.regions.into_iter().for_each(|region| device.deregister(region));
        if !running.recalled {
            let outcome = running.failed.map_or(Ok(()), Err);
            self.done.push_back((running.peer, AccessId(running.id), outcome));
        }
    }

    /// Moves all that are over to the reports, and counts those that wait.
    fn report_all(&mut self, device: &mut Device) {
        let mut at = 0;
        while let Some(running) = self.running.get(at) {
            if running.is_over() { self.report(device, at) } else { at += 1 }
        }
        self.waiting = self.running.iter().filter(|running| !running.copies.is_empty()).count();
    }

    /// Withdraws what the peer may access, and gives up what is to be copied: nothing is reported.
    /// Whether something is still under way.
    pub(super) fn recall(&mut self, device: &mut Device, peer: Task) -> bool {
        self.done.retain(|(of, ..)| *of != peer);
        self.singles.recall(peer);
        for running in self.running.iter_mut().filter(|running| running.peer == peer) {
            running.recalled = true;
            running.copies.clear();
        }
        self.withdraw(device, peer)
    }

    /// The peer has left: the same, but each access is reported. It has failed if a part of it was
    /// not started, or fails.
    pub(super) fn abandon(&mut self, device: &mut Device, peer: Task) -> bool {
        let unfinished = |running: &&mut Running| running.peer == peer && !running.copies.is_empty();
        self.running.iter_mut().filter(unfinished).for_each(|running| running.fail(System::SRCH.into()));
        self.withdraw(device, peer)
    }

    /// The provider does not end what is under way with a peer that has left, though the connection
    /// was cut: it is reported as failed.
    pub(super) fn give_up(&mut self, peer: Task) {
        let Self { running, done, .. } = self;
        for running in running.iter_mut().filter(|running| running.is_awaited(peer)) {
            running.given_up = true;
            if std::mem::replace(&mut running.recalled, true) {
                continue;
            }
            let why = running.failed.take().unwrap_or_else(|| System::SRCH.into());
            done.push_back((peer, AccessId(running.id), Err(why)));
        }
        self.singles.give_up(peer);
    }

    fn withdraw(&mut self, device: &mut Device, peer: Task) -> bool {
        let first = (peer, Key { key: 0, offset: 0 }, Region::FIRST);
        while let Some(&one) = self.registrations.range(first..).next().filter(|(to, ..)| *to == peer) {
            self.registrations.remove(&one);
            device.deregister(one.2);
        }
        self.report_all(device);
        self.running.iter().any(|running| running.is_awaited(peer))
            || self.singles.slots_of(peer).next().is_some()
    }

    /// Withdraws what any peer may access, and forgets what is to be copied: the
    /// endpoint is closed.
    pub(super) fn withdraw_all(&mut self, device: &mut Device) {
        let registrations = std::mem::take(&mut self.registrations);
        registrations.into_iter().for_each(|(.., region)| device.deregister(region));
        let regions = self.running.drain(..).flat_map(|running| running.regions);
        regions.for_each(|region| device.deregister(region));
        self.waiting = 0;
        self.done.clear();
        self.singles.clear();
    }

    /// The slots of what is under way with the peer.
    pub(super) fn of(&self, peer: Task) -> Vec<Slot> {
        let of_peer =
            |id: u64| self.running.iter().any(|running| running.id == id && running.is_awaited(peer));
        (0..CHUNKS)
            .filter(|at| self.owners[*at].is_some_and(|(id, _)| of_peer(id)))
            .map(|at| self.first + at)
            .chain(self.singles.slots_of(peer))
            .collect()
    }
}

impl RemoteAccess for FabricTransport {
    fn reach(&mut self, peer: Task) -> Reach {
        if peer == self.credentials.me || self.closed {
            Reach::None
        } else {
            Reach::Keyed(self.key_of_all(peer))
        }
    }

    unsafe fn expose(&mut self, peer: Task, memory: Piece, exposure: Exposure) -> io::Result<Key> {
        if self.closed {
            return Err(System::SHUTDOWN.into());
        }
        let is_written = exposure.access == Access::Write;
        // SAFETY: the caller's promise.
        unsafe { touch(memory, is_written) };
        // SAFETY: the caller's promise; the registration is withdrawn before the memory is the
        // program's again.
        let region =
            unsafe { self.device.register(memory.ptr, memory.len, Some(is_written)) }.map_err(system)?;
        let offset = if self.device.info().has_virtual_addresses() {
            0
        } else {
            0_u64.wrapping_sub(memory.ptr.addr() as u64)
        };
        let key = Key { key: self.device.key(region), offset };
        self.accesses.note_registration(peer, key, region);
        Ok(key)
    }

    #[inline]
    unsafe fn access(&mut self, peer: Task, transfer: Transfer<'_>) -> io::Result<Started> {
        match transfer {
            Transfer::Copies { access, key, copies } => {
                // SAFETY: the caller's promise.
                unsafe { self.start_copies(access, peer, key, copies) }
            }
            Transfer::Write { copy, cookie, copied } => {
                // SAFETY: the caller's promise.
                let started = unsafe { self.start_single(peer, copy, cookie, copied) };
                if started { Ok(Started::Pending(AccessId(cookie))) } else { Err(System::AGAIN.into()) }
            }
        }
    }
}

impl FabricTransport {
    /// Withdraws one registration made for the peer.
    pub(super) fn withdraw_key(&mut self, peer: Task, key: Key) {
        let registrations = &mut self.accesses.registrations;
        let found = registrations.range((peer, key, Region::FIRST)..).next();
        if let Some(&one) = found.filter(|(to, own, _)| (*to, *own) == (peer, key)) {
            registrations.remove(&one);
            self.device.deregister(one.2);
        }
    }

    /// Starts an access, of which each copy is registered here if the provider wants that.
    ///
    /// # Safety
    /// The conditions of [`RemoteAccess::access`] hold.
    unsafe fn start_copies(
        &mut self,
        access: Access,
        peer: Task,
        key: Option<Key>,
        copies: &[Copy],
    ) -> io::Result<Started> {
        let key = key.ok_or_else(|| io::Error::from(System::ACCESS))?;
        if self.closed || !self.meet(peer) || !self.peer(peer).is_some_and(Peer::is_up) {
            return Err(System::SRCH.into());
        }
        let mut running = Running {
            id: self.accesses.next,
            peer,
            access,
            key,
            copies: VecDeque::with_capacity(copies.len()),
            regions: Vec::new(),
            under_way: 0,
            failed: None,
            recalled: false,
            given_up: false,
        };
        for copy in copies.iter().filter(|copy| copy.len != 0) {
            let region = if self.device.info().registers() {
                // SAFETY: the caller's promise; it is withdrawn before the access is reported.
                match unsafe { self.device.register(copy.local, copy.len, None) } {
                    Ok(region) => Some(region),
                    Err(errno) => {
                        running.regions.into_iter().for_each(|region| self.device.deregister(region));
                        return Err(system(errno));
                    }
                }
            } else {
                None
            };
            running.regions.extend(region);
            running.copies.push_back((*copy, region));
        }
        if running.copies.is_empty() {
            return Ok(Started::Done);
        }
        let id = AccessId(running.id);
        self.accesses.next += 1;
        self.accesses.running.push_back(running);
        self.accesses.changed = true;
        self.start_chunks();
        self.rest.note_access();
        self.notify();
        Ok(Started::Pending(id))
    }

    /// Starts chunks while there are slots, and room in the endpoint. A peer gets a slot while it
    /// has fewer than are free, so that those that make no progress leave some to the others.
    pub(super) fn start_chunks(&mut self) {
        let Self { accesses, device, peers, .. } = self;
        accesses.changed = false;
        #[cfg(test)]
        {
            accesses.looks += accesses.running.len();
        }
        let Accesses { running, free, owners, first, changed, .. } = accesses;
        let mut full: Vec<Task> = Vec::new();
        'accesses: for running in running.iter_mut() {
            if full.contains(&running.peer) {
                continue;
            }
            let Some(address) = peers[running.peer as usize].as_deref().and_then(|peer| peer.address) else {
                running.fail(System::SRCH.into());
                continue;
            };
            while let Some((copy, region)) = running.copies.front_mut() {
                let used = owners.iter().flatten().filter(|(_, peer)| *peer == running.peer).count();
                if used >= free.len() {
                    full.push(running.peer);
                    continue 'accesses;
                }
                let Some(at) = free.pop() else { break 'accesses };
                let slot = *first + usize::from(at);
                let len = copy.len.min(CHUNK);
                let remote = running.key.target(copy.remote);
                // SAFETY: the promise of the caller of `start`, which holds until the access is
                // reported or recalled.
                let posted = unsafe {
                    touch(Piece { ptr: copy.local, len }, running.access == Access::Read);
                    device.access(
                        running.access,
                        (copy.local, len),
                        *region,
                        address,
                        (remote, running.key.key),
                        slot,
                    )
                };
                if let Err(errno) = posted {
                    free.push(at);
                    if errno.is_again() {
                        // The accesses to other peers may have room.
                        *changed = true;
                        continue 'accesses;
                    }
                    running.fail(system(errno));
                    continue 'accesses;
                }
                owners[usize::from(at)] = Some((running.id, running.peer));
                running.under_way += 1;
                copy.local = copy.local.wrapping_add(len);
                copy.remote += len as u64;
                copy.len -= len;
                if copy.len == 0 {
                    running.copies.pop_front();
                }
            }
        }
        self.accesses.report_all(&mut self.device);
    }

    /// Starts a write, of data that is copied if `copied`: whether it was started.
    ///
    /// # Safety
    /// The conditions of [`crate::transport::RemoteAccess::access`] hold.
    #[inline]
    pub(super) unsafe fn start_single(&mut self, peer: Task, copy: Copy, cookie: u64, copied: bool) -> bool {
        if copy.len > if copied { COPIED_MAX } else { single::LONGEST } || self.closed {
            return false;
        }
        let Some(key) = self.key_of_all(peer) else { return false };
        let Some(address) = self.peer(peer).and_then(|peer| peer.address) else { return false };
        let begun = self.accesses.singles.begin(peer, cookie, copy, copied);
        let Some((slot, local)) = begun else { return false };
        if copied {
            // SAFETY: the caller's promise; the slot has room for the data.
            unsafe { bytes::copy(Piece { ptr: copy.local, len: copy.len }, local) };
        } else {
            // SAFETY: the caller's promise.
            unsafe { Piece { ptr: copy.local, len: copy.len }.touch() };
        }
        let there = (key.target(copy.remote), key.key);
        // SAFETY: the caller's promise, or memory of the slot, which is free and used for nothing
        // else until the operation has ended.
        let started =
            unsafe { self.device.access(Access::Write, (local, copy.len), None, address, there, slot) };
        if let Err(errno) = started {
            self.accesses.singles.take_back(slot);
            if errno.is_again() {
                self.notify();
            } else {
                self.note_refusal(peer);
            }
            return false;
        }
        self.rest.note_access();
        self.notify();
        true
    }

    /// The peer's memory is not accessed by its key any more in this connection.
    #[cold]
    pub(super) fn note_refusal(&mut self, peer: Task) {
        if let Some(peer) = self.peer_mut(peer) {
            peer.has_refused = true;
        }
    }
}

/// Lets memory that is not there be a fault here, not a failure of the connection.
///
/// # Safety
/// The memory must be readable, and writable if it is `written`.
unsafe fn touch(memory: Piece, written: bool) {
    // SAFETY: the caller's promise.
    unsafe { if written { memory.touch_to_write() } else { memory.touch() } }
}

/// An error of libfabric as one of the system, which most of them are.
fn system(errno: Errno) -> io::Error {
    if errno.0 < 256 { io::Error::from_raw_os_error(errno.0) } else { io::Error::other(errno.text()) }
}
