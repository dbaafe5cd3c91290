//! Cross-memory attach: one copy from one process's memory to another's, made by the kernel without the other's
//! help (`process_vm_readv`, `process_vm_writev`).
//!
//! The kernel may refuse: to another user always, to the same user where a security module, a container or
//! `ptrace_scope` says so. Whether it works is therefore found out by a real copy ([`CrossMemory::probe`]), never
//! guessed.
//!
//! The kernel knows a peer by its process number, and such numbers are used again. A caller must stop copying to
//! and from a peer that is known to be dead.

#[cfg(test)]
mod tests;

use super::ShmTransport;
use crate::transport::{Access, Copy, RemoteAccess, Started, Task};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// What one call is asked for at most. The kernel moves a page less than 2 GiB in a call, and stops there without
/// an error.
const CALL_MAX: usize = 1 << 30;

/// Copies between this process and those of the peers.
#[derive(Debug)]
pub struct CrossMemory {
    /// The process of each task; 0: none that can be reached.
    pids: Box<[i32]>,
    denied: bool,
}

impl CrossMemory {
    /// Copies to and from the process `pids[task]` of each task. When `denied` (`LAPI_SHM_ATTACH=deny`), behaves as if
    /// the kernel refused every copy with EPERM.
    pub fn new(pids: Vec<i32>, denied: bool) -> Self {
        Self { pids: pids.into(), denied }
    }

    /// Finds out by a real copy whether this process may reach into the peer's, and whether that process is the
    /// peer: `remote` is what [`landmark`] answered there.
    ///
    /// # Errors
    /// What the kernel says: EPERM (not allowed), ESRCH (no such process here), EFAULT (no such memory there), ENOSYS
    /// (not built into the kernel). `InvalidData`: the copy has worked, but something else stands there, so
    /// that the process must be another one.
    pub fn probe(&self, peer: Task, remote: u64) -> io::Result<()> {
        let pid = self.pid(peer)?;
        let mut found = [0_u64; LANDMARK_WORDS];
        let copy = Copy { local: found.as_mut_ptr().cast(), remote, len: size_of_val(&found) };
        // SAFETY: `found` is writable, and as long as this.
        unsafe { self.copy(Access::Read, peer, &[copy])? };
        if found == pattern(pid) {
            Ok(())
        } else {
            let what = format!("process {pid} has no landmark at {remote:#x}: it is not task {peer}");
            Err(io::Error::new(io::ErrorKind::InvalidData, what))
        }
    }

    /// Makes copies to or from the memory of the process of `peer`.
    ///
    /// # Errors
    /// What the kernel says; some of the copies may have been made.
    ///
    /// # Safety
    /// Each local place must be readable and, for [`Access::Read`], writable for its length.
    pub unsafe fn copy(&self, access: Access, peer: Task, copies: &[Copy]) -> io::Result<()> {
        // SAFETY: the caller vouches for the places here.
        unsafe { copy_all(access, self.pid(peer)?, copies) }
    }

    /// The peer is another process from now on, which has its landmark at this address; `None`: it has no process any more,
    /// and every copy fails.
    pub(super) fn moved(&mut self, peer: Task, process: Option<(i32, u64)>) {
        let Some(known) = self.pids.get_mut(peer as usize) else { return };
        *known = process.map_or(0, |(pid, _)| pid);
        if process.is_some_and(|(_, landmark)| self.probe(peer, landmark).is_err()) {
            self.pids[peer as usize] = 0;
        }
    }

    fn pid(&self, peer: Task) -> io::Result<i32> {
        if self.denied {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        // The number 0 means a process that cannot be seen from here.
        let pid = self.pids.get(peer as usize).copied().filter(|pid| *pid > 0);
        pid.ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))
    }
}

impl RemoteAccess for ShmTransport {
    fn reaches(&self, peer: Task) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.pid(peer).is_ok())
    }

    unsafe fn start(&mut self, access: Access, peer: Task, copies: &[Copy]) -> io::Result<Started> {
        let Some(memory) = &self.memory else { return Err(io::ErrorKind::Unsupported.into()) };
        // SAFETY: the caller's promise.
        unsafe { memory.copy(access, peer, copies) }.map(|()| Started::Done)
    }

    fn count_fetched(&self, peer: Task, bytes: u64) {
        if let Some(peer) = self.peer(peer) {
            peer.segment.count_fetched(bytes);
        }
    }

    fn fetched(&self) -> u64 {
        self.segment.fetched()
    }
}

/// The address of a pattern that tells this process from every other one, for [`CrossMemory::probe`] in the peers.
/// Valid for as long as the process lives; a process that has been forked asks again.
pub fn landmark() -> u64 {
    for (cell, word) in LANDMARK.iter().zip(pattern(std::process::id() as i32)) {
        cell.store(word, Ordering::Relaxed);
    }
    LANDMARK.as_ptr() as u64
}

const LANDMARK_WORDS: usize = 4;

static LANDMARK: [AtomicU64; LANDMARK_WORDS] = [const { AtomicU64::new(0) }; LANDMARK_WORDS];

/// What the landmark of a process holds: its number, spread so that no ordinary data looks like it.
fn pattern(pid: i32) -> [u64; LANDMARK_WORDS] {
    const ODD: [u64; LANDMARK_WORDS] =
        [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0xd6e8_feb8_6659_fd93];
    ODD.map(|odd| (pid as u64 ^ odd.rotate_left(32)).wrapping_mul(odd))
}

/// How many pieces one call takes.
const BATCH: usize = 1024;

/// Makes many copies, as many of them in one call as the kernel takes.
///
/// # Safety
/// The places here must be readable, for [`Access::Read`] writable.
unsafe fn copy_all(access: Access, pid: i32, copies: &[Copy]) -> io::Result<()> {
    let call = match access {
        Access::Read => libc::process_vm_readv,
        Access::Write => libc::process_vm_writev,
    };
    if let [piece] = copies {
        // SAFETY: the caller's promise.
        return unsafe { copy(access, pid, piece.remote, piece.local, piece.len, CALL_MAX) };
    }
    for batch in copies.chunks(BATCH) {
        let bytes: usize = batch.iter().map(|copy| copy.len).sum();
        let side = |at: fn(&Copy) -> *mut libc::c_void| -> Vec<libc::iovec> {
            batch.iter().map(|copy| libc::iovec { iov_base: at(copy), iov_len: copy.len }).collect()
        };
        let (here, there) = (side(|copy| copy.local.cast()), side(|copy| copy.remote as *mut libc::c_void));
        let pieces = batch.len() as libc::c_ulong;
        // SAFETY: as for `copy`, for each piece.
        let moved = unsafe { call(pid, here.as_ptr(), pieces, there.as_ptr(), pieces, 0) };
        if moved as usize == bytes {
            continue;
        }
        // Interrupted, stopped at a page, or refused: piece by piece it goes on, or the reason comes out.
        for piece in batch {
            // SAFETY: the caller's promise.
            unsafe { copy(access, pid, piece.remote, piece.local, piece.len, CALL_MAX)? };
        }
    }
    Ok(())
}

/// Copies `len` bytes, at most `call_max` of them in one call.
///
/// # Safety
/// `local` must be readable or, for [`Access::Read`], writable for `len` bytes.
unsafe fn copy(
    access: Access,
    pid: i32,
    remote: u64,
    local: *mut u8,
    len: usize,
    call_max: usize,
) -> io::Result<()> {
    let fault = || io::Error::from_raw_os_error(libc::EFAULT);
    let remote = usize::try_from(remote).map_err(|_| fault())?;
    remote.checked_add(len).ok_or_else(fault)?;
    let call = match access {
        Access::Read => libc::process_vm_readv,
        Access::Write => libc::process_vm_writev,
    };

    let mut done = 0;
    while done < len {
        let iov_len = (len - done).min(call_max);
        let here = libc::iovec { iov_base: local.wrapping_add(done).cast(), iov_len };
        let there = libc::iovec { iov_base: (remote + done) as *mut libc::c_void, iov_len };
        // SAFETY: `here` lies within what the caller vouches for. The kernel checks `there` against the other
        // process's memory and answers EFAULT; should the other process be this one, it writes only to what the
        // peer asked for, which is the peer's to vouch for.
        let moved = unsafe { call(pid, &here, 1, &there, 1, 0) };
        match moved {
            // Less than was asked for: at the next byte the reason comes out, or it goes on.
            1.. => done += moved as usize,
            0 => return Err(fault()),
            _ => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
    Ok(())
}
