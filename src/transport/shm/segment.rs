//! The memory that a task shares with its peers: a few words about itself, and one ring for each peer to write into.
//!
//! A segment is a memory file without a name, passed to the peers over a socket: it is gone when the last of them is
//! gone, and no small `/dev/shm` limits it. Its size is sealed, so that no peer can cut it off under the others.

use crate::abi::LAPI_ERR_SHM_SETUP;
use crate::base::clock::ticks;
use crate::base::doorbell::Doorbell;
use crate::base::line::Line;
use crate::base::ring::{Consumer, Geometry, Producer};
use crate::error::{Error, Result};
use crate::transport::Task;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fstat, ftruncate, memfd_create};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use std::ffi::c_void;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The most tasks that can share memory: as many bits as there are in `contacts`.
pub const MAX_TASKS: u32 = 1024;

const POLLING: u64 = u64::MAX;
/// A task that has polled within this many ticks will poll again soon: 10 to 50 microseconds.
const RECENT: u64 = 50_000;

/// Bytes before the first ring.
const CONTROL: usize = 4096;

const RUNNING: u32 = 1;
const CLOSED: u32 = 2;

/// What a task says of itself. Zeroed memory, then `state` becomes RUNNING.
#[repr(C)]
struct Control {
    /// Read with every packet, written seldom.
    presence: Line<Presence>,
    /// [`POLLING`] while the task waits for packets, otherwise when it last polled, in ticks. Written often; read for
    /// long messages and gets only.
    polled: Line<AtomicU64>,
    /// Bytes that peers have copied out of the owner's memory without telling it otherwise.
    fetched: Line<AtomicU64>,
    /// One bit for each peer that has ever written into its ring.
    contacts: [AtomicU64; MAX_TASKS as usize / 64],
}

#[repr(C)]
struct Presence {
    state: AtomicU32,
    doorbell: Doorbell,
}

/// A memory file, mapped.
struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the mapping belongs to this value; what is in it is shared by atomics and by the rings' protocol.
unsafe impl Send for Mapping {}

/// A mapped segment, one's own or a peer's.
pub struct Segment {
    memory: Mapping,
    geometry: Geometry,
}

/// Memory for one ring, which a rejoining task gets instead of its ring in a segment: that one may still hold packets, and
/// its former producer may still write to it.
pub struct RejoinRing {
    memory: Mapping,
    geometry: Geometry,
}

/// The rings' size for a job of so many tasks: every task can write to every other one, so it shrinks as they grow.
pub fn geometry(tasks: u32) -> Geometry {
    let data = match tasks {
        0..=8 => 128 << 10,
        9..=32 => 64 << 10,
        _ => 32 << 10,
    };
    Geometry { slots: 256, data }
}

/// The size of each task's segment in a job of so many tasks, in bytes; memory is used only where rings were written.
pub fn bytes(tasks: u32) -> usize {
    size(tasks, geometry(tasks))
}

fn stride(geometry: Geometry) -> usize {
    geometry.bytes().next_multiple_of(4096)
}

fn size(tasks: u32, geometry: Geometry) -> usize {
    CONTROL + tasks as usize * stride(geometry)
}

/// Where the ring of `sender` begins in a segment, in bytes.
#[cfg(test)]
pub(super) fn ring_offset(tasks: u32, sender: Task) -> usize {
    CONTROL + sender as usize * stride(geometry(tasks))
}

impl Segment {
    /// Makes a segment for a task in a job of `tasks`: the file and its mapping.
    ///
    /// # Errors
    /// `LAPI_ERR_SHM_SETUP`, with the size and what the system said.
    pub fn create(tasks: u32) -> Result<(OwnedFd, Self)> {
        const { assert!(size_of::<Control>() <= CONTROL) };
        if tasks > MAX_TASKS {
            let detail = format!("{tasks} tasks on one machine; shared memory serves at most {MAX_TASKS}");
            return Err(Error::new(LAPI_ERR_SHM_SETUP, detail));
        }
        let geometry = geometry(tasks);
        let (file, memory) = Mapping::create(size(tasks, geometry))?;
        let segment = Self { memory, geometry };
        segment.control().presence.state.store(RUNNING, Ordering::Release);
        Ok((file, segment))
    }

    /// Maps the segment of a peer.
    ///
    /// # Errors
    /// `LAPI_ERR_SHM_SETUP`: it is not a segment of this job, or cannot be mapped.
    pub fn open(file: BorrowedFd<'_>, tasks: u32, peer: Task) -> Result<Self> {
        let geometry = geometry(tasks);
        Ok(Self { memory: Mapping::open(file, size(tasks, geometry), peer)?, geometry })
    }

    fn control(&self) -> &Control {
        // SAFETY: the mapping begins with the control words, page-aligned, and they are all atomics.
        unsafe { self.memory.base.cast::<Control>().as_ref() }
    }

    fn ring(&self, sender: Task) -> NonNull<u8> {
        let at = CONTROL + sender as usize * stride(self.geometry);
        assert!(at + self.geometry.bytes() <= self.memory.bytes, "a ring outside of the segment");
        // SAFETY: inside of the mapping, checked above.
        unsafe { self.memory.base.add(at) }
    }

    /// The end of a ring that `sender` writes to. The segment must outlive it, and `sender` makes only one.
    pub fn producer(&self, sender: Task) -> Producer {
        // SAFETY: page-aligned, inside of the mapping, zeroed when the segment was made; one producer by the rule that
        // a task makes producers for itself only, one for each peer.
        unsafe { Producer::new(self.ring(sender), self.geometry) }
    }

    /// The other end, for the segment's owner. The segment must outlive it, and there is only one.
    pub fn consumer(&self, sender: Task) -> Consumer {
        // SAFETY: as for `producer`; only the segment's owner makes consumers, one for each peer.
        unsafe { Consumer::new(self.ring(sender), self.geometry) }
    }

    /// Whether the owner takes packets.
    #[inline]
    pub fn running(&self) -> bool {
        self.control().presence.state.load(Ordering::Relaxed) == RUNNING
    }

    /// Whether the owner has ended LAPI.
    pub fn closed(&self) -> bool {
        self.control().presence.state.load(Ordering::Acquire) == CLOSED
    }

    /// The owner ends LAPI.
    pub fn close(&self) {
        self.control().presence.state.store(CLOSED, Ordering::Release);
    }

    /// By which the owner is found asleep.
    #[inline]
    pub fn doorbell(&self) -> &Doorbell {
        &self.control().presence.doorbell
    }

    /// Whether the owner polls, or did so a moment ago.
    pub fn polls(&self) -> bool {
        let last = self.control().polled.load(Ordering::Relaxed);
        last == POLLING || ticks().wrapping_sub(last) < RECENT
    }

    /// The owner polls from now on, or has polled until `now` (in ticks).
    #[inline]
    pub fn set_polling(&self, polling: bool, now: u64) {
        self.control().polled.store(if polling { POLLING } else { now }, Ordering::Relaxed);
    }

    /// A peer has copied bytes out of the owner's memory.
    pub fn count_fetched(&self, bytes: u64) {
        self.control().fetched.fetch_add(bytes, Ordering::Relaxed);
    }

    /// How many bytes peers have copied out of the owner's memory.
    pub fn fetched(&self) -> u64 {
        self.control().fetched.load(Ordering::Relaxed)
    }

    /// Notes that `sender` will write into its ring.
    pub fn contact(&self, sender: Task) {
        self.control().contacts[sender as usize / 64].fetch_or(1 << (sender % 64), Ordering::SeqCst);
    }

    /// The contacts number `64 * word` and up, one bit for each.
    #[inline]
    pub fn contacts(&self, word: usize) -> u64 {
        self.control().contacts[word].load(Ordering::Acquire)
    }
}

impl RejoinRing {
    /// Makes the memory of one ring, for a job of `tasks`.
    ///
    /// # Errors
    /// `LAPI_ERR_SHM_SETUP`, with the size and what the system said.
    pub fn create(tasks: u32) -> Result<(OwnedFd, Self)> {
        let geometry = geometry(tasks);
        let (file, memory) = Mapping::create(stride(geometry))?;
        Ok((file, Self { memory, geometry }))
    }

    /// Maps the ring of a peer.
    ///
    /// # Errors
    /// `LAPI_ERR_SHM_SETUP`: it is no such memory of this job, or cannot be mapped.
    pub fn open(file: BorrowedFd<'_>, tasks: u32, peer: Task) -> Result<Self> {
        let geometry = geometry(tasks);
        Ok(Self { memory: Mapping::open(file, stride(geometry), peer)?, geometry })
    }

    /// The end that writes. The ring's memory must outlive it; only one task, and only once, makes it.
    pub fn producer(&self) -> Producer {
        // SAFETY: page-aligned, as long as a ring, zeroed when it was made; one producer by the rule above.
        unsafe { Producer::new(self.memory.base, self.geometry) }
    }

    /// The other end, for the task that made it, once.
    pub fn consumer(&self) -> Consumer {
        // SAFETY: as for `producer`.
        unsafe { Consumer::new(self.memory.base, self.geometry) }
    }
}

impl Mapping {
    /// A file of so many bytes, zeroed, whose size is sealed.
    fn create(bytes: usize) -> Result<(OwnedFd, Self)> {
        let failed = |what: &str, reason: rustix::io::Errno| {
            Error::new(
                LAPI_ERR_SHM_SETUP,
                format!("{what} of {bytes} bytes for shared memory failed: {reason}"),
            )
        };
        let file = memfd_create("lapi", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(|reason| failed("a memory file", reason))?;
        ftruncate(&file, bytes as u64).map_err(|reason| failed("the size", reason))?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(|reason| failed("sealing", reason))?;
        let memory = Self::map(file.as_fd(), bytes).map_err(|reason| failed("a mapping", reason))?;
        Ok((file, memory))
    }

    /// The file of a peer, which must have so many bytes.
    fn open(file: BorrowedFd<'_>, bytes: usize, peer: Task) -> Result<Self> {
        let failed = |what: String| {
            Error::new(LAPI_ERR_SHM_SETUP, format!("the shared memory of task {peer} cannot be used: {what}"))
        };
        let found = fstat(file).map_err(|reason| failed(reason.to_string()))?.st_size as u64;
        if found != bytes as u64 {
            return Err(failed(format!("it has {found} bytes, not {bytes}")));
        }
        Self::map(file, bytes).map_err(|reason| failed(reason.to_string()))
    }

    fn map(file: BorrowedFd<'_>, bytes: usize) -> rustix::io::Result<Self> {
        let map = || {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: a new mapping of a file whose size is `bytes` and sealed; nothing else is at its place.
            let base = unsafe { mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, file, 0)? };
            // A forked child has no part in the job: what it does by mistake must not reach this memory. Where the
            // kernel cannot keep it away from the child, the child still knows of no handle that leads here.
            // SAFETY: the mapping was made above; nothing changes for this process.
            let _ = unsafe { madvise(base, bytes, Advice::LinuxDontFork) };
            NonNull::new(base.cast()).ok_or(rustix::io::Errno::NOMEM)
        };
        #[cfg(one_mapping)]
        let map = || super::one_mapping::share(file, map);
        Ok(Self { base: map()?, bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let unmap = || {
            // SAFETY: the mapping was made by this value; the rings on it are dropped before, see `ShmTransport`.
            let unmapped = unsafe { munmap(self.base.as_ptr().cast::<c_void>(), self.bytes) };
            debug_assert!(unmapped.is_ok());
        };
        #[cfg(one_mapping)]
        let unmap = || super::one_mapping::give_back(self.base, unmap);
        unmap();
    }
}
