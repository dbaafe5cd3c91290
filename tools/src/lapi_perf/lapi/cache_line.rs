//! The time of a cache-line transfer between the cores of two tasks: what no transport in memory
//! is faster than, and whether two rows were measured at the same distance.

use std::fs::{File, OpenOptions};
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use super::task::Task;
use crate::lapi_perf::error::{Failure, Result};

const PAGE: NonZeroUsize = NonZeroUsize::new(4096).expect("not 0");
/// Batches, of which the median counts, and round trips in each.
const BATCHES: usize = 5;
const ROUNDS: u64 = 400;
/// The clock is read once in this number of polls.
const POLLS: u64 = 1 << 16;
const PATIENCE: Duration = Duration::from_secs(20);

/// Which side of the pair a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lapi_perf) enum Side {
    /// The task begins; its pages are shared.
    First,
    /// The task's peer begins.
    Second(u32),
    /// Another task of the job.
    Neither,
}

/// A page of memory without a name, in two tasks.
pub(in crate::lapi_perf) struct CacheLine {
    side: Side,
    page: Option<NonNull<AtomicU64>>,
}

impl CacheLine {
    /// Collective.
    pub(in crate::lapi_perf) fn share(task: &Task, side: Side) -> Result<Self> {
        let failed = |why: io::Error| Failure::failed(format!("task {}: --cache-line: {why}", task.me));
        let own = (side == Side::First).then(create).transpose().map_err(failed)?;
        let name = own.as_ref().map_or(0, |memory| name_of(std::process::id(), memory.as_raw_fd()));
        let names = task.exchange(name)?;
        let other = match side {
            Side::Second(peer) => Some(open(names[peer as usize]).map_err(failed)?),
            _ => None,
        };
        let page = own.as_ref().or(other.as_ref()).map(map).transpose().map_err(failed)?;
        // The peer has opened what closes now.
        task.meet()?;
        Ok(Self { side, page })
    }

    /// Collective: the nanoseconds of one way, in the task that begins; 0 in the others.
    pub(in crate::lapi_perf) fn time(&self, task: &Task) -> Result<f64> {
        task.meet()?;
        let Some(page) = self.page else {
            // As often as the pair below.
            task.meet()?;
            task.meet()?;
            return Ok(0.0);
        };
        // SAFETY: mapped until this value is dropped, and only accessed as an atomic.
        let line = unsafe { page.as_ref() };
        let mut batches = [0.0; BATCHES];
        let mut number = line.load(Ordering::Acquire);
        // Neither side has begun to write.
        task.meet()?;
        for batch in &mut batches {
            let start = Instant::now();
            for _ in 0..ROUNDS {
                if self.side == Side::First {
                    line.store(number + 1, Ordering::Release);
                    await_number(line, number + 2)?;
                } else {
                    await_number(line, number + 1)?;
                    line.store(number + 2, Ordering::Release);
                }
                number += 2;
            }
            *batch = start.elapsed().as_secs_f64() * 1e9 / (2 * ROUNDS) as f64;
        }
        batches.sort_unstable_by(f64::total_cmp);
        task.meet()?;
        Ok(if self.side == Side::First { batches[BATCHES / 2] } else { 0.0 })
    }
}

impl Drop for CacheLine {
    fn drop(&mut self) {
        if let Some(page) = self.page {
            // SAFETY: mapped with this length by `map`, and used by this value alone.
            let _ = unsafe { munmap(page.cast(), PAGE.get()) };
        }
    }
}

fn create() -> io::Result<File> {
    let memory = File::from(memfd_create(c"lapi_perf", MFdFlags::MFD_CLOEXEC)?);
    memory.set_len(PAGE.get() as u64)?;
    Ok(memory)
}

/// What the peer opens it by.
fn name_of(process: u32, number: RawFd) -> u64 {
    u64::from(process) << 32 | u64::from(number as u32)
}

fn open(name: u64) -> io::Result<File> {
    let path = format!("/proc/{}/fd/{}", name >> 32, name as u32);
    let opened = OpenOptions::new().read(true).write(true).open(&path);
    opened.map_err(|why| io::Error::new(why.kind(), format!("{path}: {why}")))
}

fn map(memory: &File) -> io::Result<NonNull<AtomicU64>> {
    let rights = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: a new mapping, of a file that has this length.
    let page = unsafe { mmap(None, PAGE, rights, MapFlags::MAP_SHARED, memory.as_fd(), 0) }?;
    Ok(page.cast())
}

/// Polls without a pause instruction, which would add its own time.
fn await_number(line: &AtomicU64, number: u64) -> Result<()> {
    let (mut polls, mut began) = (0, None);
    while line.load(Ordering::Acquire) != number {
        polls += 1;
        if polls % POLLS == 0 {
            std::thread::yield_now();
            if began.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                let seconds = PATIENCE.as_secs();
                return Err(Failure::failed(format!(
                    "--cache-line: the other task did not reply within {seconds} s"
                )));
            }
        }
    }
    Ok(())
}
