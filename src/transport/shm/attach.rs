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

use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::transport::{Attach, Copy, Task};

/// What one call is asked for at most. The kernel moves a page less than 2 GiB in a call, and stops there without
/// an error.
const CALL_MAX: usize = 1 << 30;

/// What [`measure`] and [`measure_memcpy`] copy at a time, in bytes.
const SAMPLE: usize = 256 * 1024;

/// How often they copy it. The best time counts: the others were disturbed.
const SAMPLES: u32 = 5;

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
        // SAFETY: `found` is writable, and as long as this.
        unsafe { self.read(peer, remote, found.as_mut_ptr().cast(), size_of_val(&found))? };
        if found == pattern(pid) {
            Ok(())
        } else {
            let what = format!("process {pid} has no landmark at {remote:#x}: it is not task {peer}");
            Err(io::Error::new(io::ErrorKind::InvalidData, what))
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

impl Attach for CrossMemory {
    unsafe fn read(&self, peer: Task, remote: u64, local: *mut u8, len: usize) -> io::Result<()> {
        // SAFETY: the caller vouches for `local`.
        unsafe { copy(Direction::Read, self.pid(peer)?, remote, local, len, CALL_MAX) }
    }

    unsafe fn write(&self, peer: Task, remote: u64, local: *const u8, len: usize) -> io::Result<()> {
        // SAFETY: the caller vouches for `local`, which is only read.
        unsafe { copy(Direction::Write, self.pid(peer)?, remote, local.cast_mut(), len, CALL_MAX) }
    }

    unsafe fn read_all(&self, peer: Task, copies: &[Copy]) -> io::Result<()> {
        // SAFETY: the caller vouches for the places here.
        unsafe { copy_all(Direction::Read, self.pid(peer)?, copies) }
    }

    unsafe fn write_all(&self, peer: Task, copies: &[Copy]) -> io::Result<()> {
        // SAFETY: the caller vouches for the places here, which are only read.
        unsafe { copy_all(Direction::Write, self.pid(peer)?, copies) }
    }

    fn moved(&mut self, peer: Task, process: Option<(i32, u64)>) {
        let Some(known) = self.pids.get_mut(peer as usize) else { return };
        *known = process.map_or(0, |(pid, _)| pid);
        if process.is_some_and(|(_, landmark)| self.probe(peer, landmark).is_err()) {
            self.pids[peer as usize] = 0;
        }
    }
}

/// Bytes per second that a copy across address spaces moves, measured on this process itself in a fraction of a
/// millisecond.
///
/// # Errors
/// What the kernel says.
pub fn measure() -> io::Result<f64> {
    let pid = std::process::id() as i32;
    let (from, mut to) = (vec![1_u8; SAMPLE], vec![2_u8; SAMPLE]);
    let remote = from.as_ptr() as u64;
    best(|| {
        // SAFETY: `to` is writable and as long as this; nobody else knows it.
        unsafe { copy(Direction::Read, pid, remote, to.as_mut_ptr(), SAMPLE, CALL_MAX) }
    })
}

/// Bytes per second that this processor copies within this process, measured like [`measure`].
pub fn measure_memcpy() -> f64 {
    let (from, mut to) = (vec![1_u8; SAMPLE], vec![2_u8; SAMPLE]);
    let measured = best(|| {
        to.copy_from_slice(black_box(&from));
        black_box(&mut to);
        Ok(())
    });
    measured.unwrap_or_default()
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

#[derive(Clone, Copy)]
enum Direction {
    Read,
    Write,
}

/// How many pieces one call takes.
const BATCH: usize = 1024;

/// Makes many copies, as many of them in one call as the kernel takes.
///
/// # Safety
/// The places here must be readable, for [`Direction::Read`] writable.
unsafe fn copy_all(direction: Direction, pid: i32, copies: &[Copy]) -> io::Result<()> {
    let call = match direction {
        Direction::Read => libc::process_vm_readv,
        Direction::Write => libc::process_vm_writev,
    };
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
            unsafe { copy(direction, pid, piece.remote, piece.local, piece.len, CALL_MAX)? };
        }
    }
    Ok(())
}

/// Copies `len` bytes, at most `call_max` of them in one call.
///
/// # Safety
/// `local` must be readable or, when `direction` says `Read`, writable for `len` bytes.
unsafe fn copy(
    direction: Direction,
    pid: i32,
    remote: u64,
    local: *mut u8,
    len: usize,
    call_max: usize,
) -> io::Result<()> {
    let fault = || io::Error::from_raw_os_error(libc::EFAULT);
    let remote = usize::try_from(remote).map_err(|_| fault())?;
    remote.checked_add(len).ok_or_else(fault)?;
    let call = match direction {
        Direction::Read => libc::process_vm_readv,
        Direction::Write => libc::process_vm_writev,
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

/// The best of several times in bytes per second, after one copy that only warms up.
fn best(mut copy: impl FnMut() -> io::Result<()>) -> io::Result<f64> {
    copy()?;
    let mut best = Duration::MAX;
    for _ in 0..SAMPLES {
        let start = Instant::now();
        copy()?;
        best = best.min(start.elapsed());
    }
    Ok(SAMPLE as f64 / best.max(Duration::from_nanos(1)).as_secs_f64())
}
