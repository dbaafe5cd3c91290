//! The memory that a task shares with its peers: its segment, which has a few words about itself,
//! and for each connection two rings, each made by the task that receives from it.
//!
//! All of it is memory files without a name, passed to the peers over a socket: they are gone when
//! the last of those that map them is gone, and no small `/dev/shm` limits them. Their sizes are
//! sealed, so that no peer can cut them off under the others.

use super::window::{self, WindowPart};
use crate::abi::LAPI_ERR_SHM_SETUP;
use crate::base::announcements::{self, Announcements};
use crate::base::clock::ticks;
use crate::base::doorbell::Doorbell;
use crate::base::limits;
use crate::base::line::Line;
use crate::base::machine::page;
use crate::base::ring::{Consumer, Geometry, Producer};
use crate::base::signals::Signals;
use crate::error::{Error, Result};
use crate::transport::Task;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, memfd_create};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use std::ffi::c_void;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The most tasks that can share memory.
pub const MAX_TASKS: u32 = 1024;

const POLLING: u64 = u64::MAX;
/// A task that has polled within this many ticks will poll again soon: 10 to 50 microseconds.
pub(super) const RECENT: u64 = 50_000;

const RUNNING: u32 = 1;
const CLOSED: u32 = 2;

/// What a task publishes about itself. Zeroed memory, then `state` becomes RUNNING.
#[repr(C)]
struct Control {
    /// Read with every packet, written seldom.
    presence: Line<Presence>,
    /// [`POLLING`] while the task waits for packets, otherwise when it last polled, in ticks.
    /// Written often; read for long messages and gets only.
    polled: Line<AtomicU64>,
    /// Bytes that peers have copied out of the owner's memory without another report to it.
    fetched: Line<AtomicU64>,
    /// The peers that have sent something and whose rings the owner does not poll. Read with every
    /// poll that finds nothing, when there are such rings.
    announcements: Announcements,
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
    /// Where it is, when that was chosen.
    place: Option<WindowPart>,
}

// SAFETY: the mapping belongs to this value; what is in it is shared by atomics and by the
// rings' protocol.
unsafe impl Send for Mapping {}

/// A mapped segment, one's own or a peer's.
pub struct Segment {
    memory: Mapping,
}

/// The memory of what one task sends another one, made for one connection: nothing of a former one
/// can be in it. It has a ring, and before it numbers.
pub(super) struct RingMemory {
    memory: Mapping,
    geometry: Geometry,
}

/// The rings' size in a job whose hosts have up to `tasks` tasks: every task of a host can write to
/// every other one of it, so it shrinks as they grow. Where a producer runs less than 190 KiB
/// ahead, streams take twice as long on some processors (docs/performance.md).
pub fn geometry(tasks: u32) -> Geometry {
    let data = match tasks {
        0..=8 => 252 << 10,
        9..=32 => 64 << 10,
        _ => 32 << 10,
    };
    Geometry { slots: 256, data }
}

/// The bytes of a user header for which a packet has room besides data of a sixteenth of the area.
const HEADER_ROOM: usize = 256;

/// The longest body of a packet in such a ring, in bytes.
pub fn longest_body(geometry: Geometry) -> usize {
    geometry.data / 16 + HEADER_ROOM
}

/// The addresses that a task keeps free for its peers' memory in a job whose hosts have up to
/// `tasks` tasks, in bytes; memory is used only for peers that it is connected with, as far as
/// their rings were written.
pub fn bytes(tasks: u32) -> usize {
    let sizes = Sizes::of(tasks, page());
    sizes.segment + window::bytes(tasks, sizes.segment, sizes.ring)
}

/// The sizes of the memory that the tasks of a job share, the same in each of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// The bytes of a segment, whole pages.
    pub(super) segment: usize,
    /// The bytes of a ring's memory, whole pages.
    pub(super) ring: usize,
    geometry: Geometry,
}

impl Sizes {
    /// Those of a job whose hosts have up to `tasks` tasks, on a machine whose pages have `page`
    /// bytes.
    pub(super) fn of(tasks: u32, page: usize) -> Self {
        let geometry = geometry(tasks);
        Self {
            segment: size_of::<Control>().next_multiple_of(page),
            ring: (RING + geometry.bytes()).next_multiple_of(page),
            geometry,
        }
    }
}

/// Where the ring begins in its memory: behind the numbers that its producer gives the consumer
/// without a packet.
const RING: usize = size_of::<Signals>();

impl Segment {
    /// Makes a segment for a task of a host with `tasks`: the file and its mapping.
    ///
    /// # Errors
    /// `LAPI_ERR_SHM_SETUP`, with the size and the system's reason.
    pub fn create(tasks: u32) -> Result<(OwnedFd, Self)> {
        Self::with_sizes(tasks, Sizes::of(tasks, page()))
    }

    /// As [`Self::create`], of this size.
    pub(super) fn with_sizes(tasks: u32, sizes: Sizes) -> Result<(OwnedFd, Self)> {
        const { assert!(MAX_TASKS <= announcements::MOST) };
        if tasks > MAX_TASKS {
            let detail = format!("{tasks} tasks on one machine; shared memory serves at most {MAX_TASKS}");
            return Err(Error::new(LAPI_ERR_SHM_SETUP, detail));
        }
        let (file, memory) = Mapping::create(sizes.segment, None)?;
        let segment = Self { memory };
        segment.control().presence.state.store(RUNNING, Ordering::Release);
        Ok((file, segment))
    }

    /// Maps the segment of a peer, at the place if one is given.
    ///
    /// # Errors
    /// `LAPI_ERR_SHM_SETUP`: it is not a segment of this job, or cannot be mapped.
    pub(super) fn open(
        file: BorrowedFd<'_>,
        sizes: Sizes,
        peer: Task,
        place: Option<WindowPart>,
    ) -> Result<Self> {
        Ok(Self { memory: Mapping::open(file, sizes.segment, peer, place)? })
    }

    fn control(&self) -> &Control {
        // SAFETY: the mapping begins with the control words, page-aligned, and they
        // are all atomics.
        unsafe { self.memory.base.cast::<Control>().as_ref() }
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

    /// By this word senders detect that the owner sleeps, or does not poll every ring.
    #[inline]
    pub fn doorbell(&self) -> &Doorbell {
        &self.control().presence.doorbell
    }

    /// Where peers announce what they have sent to an owner that does not poll their rings.
    pub fn announcements(&self) -> &Announcements {
        &self.control().announcements
    }

    /// Whether the owner polls, or did so a moment ago.
    pub fn polls(&self) -> bool {
        let last = self.control().polled.load(Ordering::Relaxed);
        // One that polls all the time has often stored a later time than this processor has read:
        // a processor may read its clock while it waits for the line. A time that is much later is
        // of before a hibernation, after which ticks are counted from the beginning.
        last == POLLING || ticks().wrapping_sub(last).wrapping_add(RECENT) < 2 * RECENT
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
}

impl RingMemory {
    /// Makes the memory of one ring, at the place if one is given.
    ///
    /// # Errors
    /// `LAPI_ERR_SHM_SETUP`, with the size and the system's reason.
    pub(super) fn create(sizes: Sizes, place: Option<WindowPart>) -> Result<(OwnedFd, Self)> {
        let (file, memory) = Mapping::create(sizes.ring, place)?;
        Ok((file, Self { memory, geometry: sizes.geometry }))
    }

    /// Maps the ring of a peer, at the place if one is given.
    ///
    /// # Errors
    /// `LAPI_ERR_SHM_SETUP`: it is not such memory of this job, or cannot be mapped.
    pub(super) fn open(
        file: BorrowedFd<'_>,
        sizes: Sizes,
        peer: Task,
        place: Option<WindowPart>,
    ) -> Result<Self> {
        let memory = Mapping::open(file, sizes.ring, peer, place)?;
        Ok(Self { memory, geometry: sizes.geometry })
    }

    /// The end that writes. The ring's memory must outlive it; only one task, and only
    /// once, makes it.
    pub(super) fn producer(&self) -> Producer {
        // SAFETY: aligned, as long as a ring, zeroed when it was made; one producer by
        // the rule above.
        unsafe { Producer::new(self.ring(), self.geometry) }
    }

    /// The other end, for the task that made it, once.
    pub(super) fn consumer(&self) -> Consumer {
        // SAFETY: as for `producer`.
        unsafe { Consumer::new(self.ring(), self.geometry) }
    }

    fn ring(&self) -> NonNull<u8> {
        const { assert!(RING.is_multiple_of(128)) };
        // SAFETY: inside of the mapping, see `Sizes`.
        unsafe { self.memory.base.add(RING) }
    }

    /// The numbers that are given without a packet.
    #[inline]
    pub(super) fn signals(&self) -> &Signals {
        // SAFETY: the mapping begins with them, page-aligned, and they are all atomics.
        unsafe { self.memory.base.cast::<Signals>().as_ref() }
    }

    /// Writes a word anywhere in the ring, as a task does whose memory is corrupt.
    #[cfg(test)]
    pub(super) fn write_word(&self, at: usize, word: u64) {
        assert!(at.is_multiple_of(8) && at + 8 <= self.geometry.bytes());
        // SAFETY: inside of the mapping, and aligned; both ends use atomic operations on it.
        unsafe {
            let place = self.ring().as_ptr().add(at).cast::<u64>();
            std::sync::atomic::AtomicU64::from_ptr(place).store(word, std::sync::atomic::Ordering::Relaxed);
        }
    }
}

/// What keeps the size of a file as it is.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

impl Mapping {
    /// A file of `bytes` bytes, zeroed, whose size is sealed.
    fn create(bytes: usize, place: Option<WindowPart>) -> Result<(OwnedFd, Self)> {
        let failed = |what: &str, reason: rustix::io::Errno| {
            Error::new(
                LAPI_ERR_SHM_SETUP,
                format!("{what} of {bytes} bytes for shared memory failed: {}", limits::explained(reason)),
            )
        };
        let file = memfd_create("lapi", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(|reason| failed("a memory file", reason))?;
        limits::set_size(&file, bytes as u64).map_err(|reason| failed("the size", reason))?;
        fcntl_add_seals(&file, SEALS).map_err(|reason| failed("sealing", reason))?;
        let memory = Self::map(file.as_fd(), bytes, place).map_err(|reason| failed("a mapping", reason))?;
        Ok((file, memory))
    }

    /// The file of a peer, which must have `bytes` bytes, and can never have less.
    fn open(file: BorrowedFd<'_>, bytes: usize, peer: Task, place: Option<WindowPart>) -> Result<Self> {
        let failed = |what: String| {
            Error::new(LAPI_ERR_SHM_SETUP, format!("the shared memory of task {peer} cannot be used: {what}"))
        };
        let found = fstat(file).map_err(|reason| failed(reason.to_string()))?.st_size as u64;
        if found != bytes as u64 {
            return Err(failed(format!("it has {found} bytes, not {bytes}")));
        }
        let seals = fcntl_get_seals(file).map_err(|reason| failed(reason.to_string()))?;
        if !seals.contains(SEALS) {
            return Err(failed("its size is not sealed".into()));
        }
        Self::map(file, bytes, place).map_err(|reason| failed(limits::explained(reason)))
    }

    fn map(file: BorrowedFd<'_>, bytes: usize, place: Option<WindowPart>) -> rustix::io::Result<Self> {
        // All tasks of the process share one mapping then, wherever it is.
        #[cfg(one_mapping)]
        let place = place.and(None::<WindowPart>);
        let place = place.filter(|place| place.bytes == bytes);
        let (at, fixed) = match &place {
            Some(place) => (place.at.as_ptr().cast(), MapFlags::FIXED),
            None => (std::ptr::null_mut(), MapFlags::empty()),
        };
        let map = || {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: a new mapping of a file whose size is `bytes` and sealed; nothing else is at
            // its place, which was kept free for it if it is given.
            let base = unsafe { mmap(at, bytes, access, MapFlags::SHARED | fixed, file, 0)? };
            // A forked child has no part in the job: what it does by mistake must not reach this
            // memory. Where the kernel cannot keep it away from the child, the child still knows of
            // no handle that leads here.
            // SAFETY: the mapping was made above; nothing changes for this process.
            let _ = unsafe { madvise(base, bytes, Advice::LinuxDontFork) };
            NonNull::new(base.cast()).ok_or(rustix::io::Errno::NOMEM)
        };
        #[cfg(one_mapping)]
        let map = || super::one_mapping::share(file, map);
        Ok(Self { base: map()?, bytes, place })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.place.is_some() {
            // It is made free by the place.
            return;
        }
        let unmap = || {
            // SAFETY: the mapping was made by this value; the rings on it are dropped before, see
            // `ShmTransport`.
            let unmapped = unsafe { munmap(self.base.as_ptr().cast::<c_void>(), self.bytes) };
            debug_assert!(unmapped.is_ok());
        };
        #[cfg(one_mapping)]
        let unmap = || super::one_mapping::give_back(self.base, unmap);
        unmap();
    }
}
