//! Cross-memory attach: one copy from one process's memory to another's, made by the kernel without
//! the other's help (`process_vm_readv`, `process_vm_writev`).
//!
//! The kernel may refuse: to another user always, to the same user where a security module, a
//! container or `ptrace_scope` forbids it. Whether it works is therefore tested by a real copy of a
//! landmark, before the first copy to or from each peer.
//!
//! The kernel knows a peer by its process number, and such numbers are used again; a process may
//! also become another program, or may have parted from this task. In each case the other end of
//! the channel is closed, which is tested before each access.

#[cfg(test)]
mod tests;

use super::ShmTransport;
use crate::base::random::random;
use crate::error::Log;
use crate::transport::{Access, Copy, Exposure, Key, Piece, Reach, RemoteAccess, Started, Task, Transfer};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// What one call is asked for at most. The kernel moves a page less than 2 GiB in a call, and stops
/// there without an error.
const CALL_MAX: usize = 1 << 30;

/// Copies between this process and those of the peers.
#[derive(Debug)]
pub struct CrossMemory {
    peers: Box<[Process]>,
    denied: bool,
    /// Where to report, once, that copies are not possible.
    log: Option<Log>,
}

/// What is known of a peer's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Process {
    /// The peer has no process here, or the system has refused a copy.
    None,
    /// This process has sent the place of its landmark. No copy was made yet.
    Said(i32, Landmark),
    /// A copy has shown that it is there.
    Proven(i32),
}

/// An address in a process, and the number that distinguishes this process from every other one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Landmark {
    /// Where it is.
    pub address: u64,
    /// What it is made from.
    pub mark: u64,
}

impl Landmark {
    /// Tests by a real copy whether this process may access that one's memory, and whether the
    /// landmark is there.
    ///
    /// # Errors
    /// The kernel's error: EPERM (not allowed), ESRCH (no such process here), EFAULT (no such
    /// memory there), ENOSYS (not built into the kernel). `InvalidData`: the copy has worked,
    /// but something else is there, so that the process must be another one, or has become
    /// another program.
    pub fn look_up(self, pid: i32) -> io::Result<()> {
        if pid <= 0 {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        let mut found = [0_u64; LANDMARK_WORDS];
        let (local, len) = (found.as_mut_ptr().cast(), size_of_val(&found));
        // SAFETY: `found` is writable, and as long as this.
        unsafe { copy(Access::Read, pid, self.address, local, len, CALL_MAX)? };
        if found == pattern(self.mark) {
            return Ok(());
        }
        let what = format!("process {pid} has no landmark at {:#x}", self.address);
        Err(io::Error::new(io::ErrorKind::InvalidData, what))
    }

    /// Whether it is there, as far as this can be tested.
    pub(super) fn stands_in(self, pid: i32) -> bool {
        self.look_up(pid).is_ok()
    }
}

impl CrossMemory {
    /// Copies to and from the processes of `tasks` tasks. When `denied` (`LAPI_SHM_ATTACH=deny`),
    /// behaves as if the kernel refused every copy with EPERM. A refusal is reported once to `log`.
    pub fn new(tasks: u32, denied: bool, log: Option<Log>) -> Self {
        Self { peers: vec![Process::None; tasks as usize].into(), denied, log }
    }

    /// Makes copies to or from the memory of the process of `peer`, after the first check
    /// of its landmark.
    ///
    /// # Errors
    /// The kernel's error; some of the copies may have been made. After a refusal the peer
    /// is out of reach.
    ///
    /// # Safety
    /// Each local place must be readable and, for [`Access::Read`], writable for its length.
    pub unsafe fn copy(&mut self, access: Access, peer: Task, copies: &[Copy]) -> io::Result<()> {
        // SAFETY: the caller vouches for the places here.
        let outcome = self.prove(peer).and_then(|pid| unsafe { copy_all(access, pid, copies) });
        if let Err(reason) = &outcome {
            // An address that does not exist there is no evidence about the next one.
            if reason.raw_os_error() != Some(libc::EFAULT) {
                self.give_up(peer, reason);
            }
        }
        outcome
    }

    /// The process of `peer`, which has its landmark.
    fn prove(&mut self, peer: Task) -> io::Result<i32> {
        if self.denied {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        match self.peers.get(peer as usize) {
            Some(&Process::Proven(pid)) => Ok(pid),
            Some(&Process::Said(pid, landmark)) => {
                landmark
                    .look_up(pid)
                    .map_err(|reason| io::Error::new(io::ErrorKind::PermissionDenied, reason))?;
                self.peers[peer as usize] = Process::Proven(pid);
                Ok(pid)
            }
            Some(Process::None) | None => Err(io::Error::from_raw_os_error(libc::ESRCH)),
        }
    }

    #[cold]
    fn give_up(&mut self, peer: Task, reason: &io::Error) {
        if let Some(known) = self.peers.get_mut(peer as usize) {
            *known = Process::None;
        }
        if let Some(log) = self.log.take() {
            log.line(format_args!(
                "copies across address spaces are not possible with task {peer} ({reason}); packets are used"
            ));
        }
    }

    /// The peer is another process from now on, which has sent the place of its landmark; `None`:
    /// it has no process any more, and every copy fails.
    pub fn moved(&mut self, peer: Task, process: Option<(i32, Landmark)>) {
        if let Some(known) = self.peers.get_mut(peer as usize) {
            let process = process.filter(|(pid, _)| *pid > 0);
            *known = process.map_or(Process::None, |(pid, landmark)| Process::Said(pid, landmark));
        }
    }

    fn reaches(&self, peer: Task) -> bool {
        self.peers.get(peer as usize).is_some_and(|process| *process != Process::None)
    }
}

impl RemoteAccess for ShmTransport {
    fn reach(&mut self, peer: Task) -> Reach {
        match &self.memory {
            Some(memory) if memory.reaches(peer) => Reach::Open,
            _ => Reach::None,
        }
    }

    unsafe fn expose(&mut self, _peer: Task, _memory: Piece, _exposure: Exposure) -> io::Result<Key> {
        Err(io::ErrorKind::Unsupported.into())
    }

    unsafe fn access(&mut self, peer: Task, transfer: Transfer<'_>) -> io::Result<Started> {
        let Transfer::Copies { access, copies, .. } = transfer else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        // A task that has parted from this one need not have said so yet, and its memory is
        // its own again.
        if self.peer(peer).is_none_or(|peer| peer.process.has_left()) {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let Some(memory) = &mut self.memory else { return Err(io::ErrorKind::Unsupported.into()) };
        // SAFETY: the caller's promise.
        unsafe { memory.copy(access, peer, copies) }.map(|()| Started::Done)
    }
}

/// The landmark of this process. Valid for as long as it lives and runs this program; a process
/// that has been forked asks again, and has another one.
pub fn landmark() -> Landmark {
    /// Made from the process's number in its lower half, so that a forked child sees that it
    /// is not its own.
    static MARK: AtomicU64 = AtomicU64::new(0);
    let pid = std::process::id();
    let mut mark = MARK.load(Ordering::Acquire);
    if mark as u32 != pid {
        let new = u64::from_ne_bytes(random()) << 32 | u64::from(pid);
        mark = MARK
            .compare_exchange(mark, new, Ordering::AcqRel, Ordering::Acquire)
            .map_or_else(|theirs| theirs, |_| new);
    }
    for (cell, word) in LANDMARK.iter().zip(pattern(mark)) {
        cell.store(word, Ordering::Relaxed);
    }
    Landmark { address: LANDMARK.as_ptr() as u64, mark }
}

const LANDMARK_WORDS: usize = 4;

static LANDMARK: [AtomicU64; LANDMARK_WORDS] = [const { AtomicU64::new(0) }; LANDMARK_WORDS];

/// What a landmark holds: its number, spread so that no ordinary data looks like it.
fn pattern(mark: u64) -> [u64; LANDMARK_WORDS] {
    const ODD: [u64; LANDMARK_WORDS] =
        [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0xd6e8_feb8_6659_fd93];
    ODD.map(|odd| (mark ^ odd.rotate_left(32)).wrapping_mul(odd) | 1)
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
        // Interrupted, stopped at a page, or refused: copying piece by piece continues, or
        // shows the reason.
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
        // SAFETY: `here` lies within what the caller vouches for. The kernel checks `there` against
        // the other process's memory and returns EFAULT; should the other process be this one, it
        // writes only to what the peer asked for, which is the peer's to vouch for.
        let moved = unsafe { call(pid, &here, 1, &there, 1, 0) };
        match moved {
            // Less than was asked for: the copy of the next byte shows the reason, or continues.
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
