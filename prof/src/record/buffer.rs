//! The buffer of a thread, and the list of all.

use super::events::Claim;
use super::open::Open;
use super::sampling::Rhythm;
use super::timeline::Timeline;
use super::{Count, SIZES, Traffic};
use crate::calls::{Call, Class};
use crate::identity;
use crate::memory;
use crate::site;
use libc::c_void;
use openlapi::base::loader::stay_loaded;
use std::ptr::{self, null_mut};
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicPtr, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

/// How many buffers a process maps in advance.
const SPARE: usize = 16;
/// How many call sites a thread records separately; calls from other places are counted
/// by call alone.
const SITES: usize = 1024;
/// How many entries a lookup tries.
const REACH: usize = 32;

/// The record of one thread. All zeroes is an empty one.
#[derive(Debug)]
pub struct Buffer {
    /// The one made before it.
    next: AtomicPtr<Buffer>,
    /// Whether a thread has it.
    taken: AtomicBool,
    /// Whether a thread has ever had it.
    used: AtomicBool,
    number: AtomicU16,
    /// The name of the thread that has it, or has had it last, as the system knows it: 16 bytes
    /// that end in a zero.
    name: [AtomicU64; 2],
    /// The places that were called from, by hash.
    sites: [Site; SITES],
    /// Calls from places for which there was no room.
    elsewhere: [Site; Call::ALL.len() + 1],
    peers: AtomicPtr<Peer>,
    peer_count: AtomicU32,
    /// When it called what.
    pub timeline: Timeline,
    /// How long handlers have run in this thread since its last call ended: inside of the call
    /// that ends next.
    pub handlers_inside: Count,
    /// How long the calls have taken that ended in this thread since the handler began
    /// that it is in.
    pub calls_inside: Count,
    /// When the long part began of the call that this thread is in; 0: it has none so far.
    pub long_since: Count,
    /// The calls and handlers that this thread is in.
    pub open: Open,
    /// The place whose puts were not timed until a while ago.
    pub ended: Ended,
    /// The events that it may write.
    pub claim: Claim,
}

/// The calls of one kind from one place; or the runs of one handler.
#[derive(Debug)]
pub struct Site {
    /// The address behind the call, 0 when it is not known; the address of the handler.
    pub address: AtomicUsize,
    /// Which call, or `Call::None` while the entry is free.
    call: AtomicU16,
    /// How many.
    pub count: Count,
    /// How many of them have failed.
    pub errors: Count,
    /// What the others have moved.
    pub bytes: Count,
    /// How long all have taken.
    pub ticks: Count,
    /// How long the longest has taken.
    pub longest: Count,
    /// How many of which size.
    pub sizes: [Count; SIZES],
    /// Which of them are timed.
    pub rhythm: Rhythm,
}

/// The place whose puts could be repeated ones until one of them was timed, and what each of
/// them has moved.
#[derive(Debug)]
pub struct Ended {
    site: AtomicPtr<Site>,
    peer: Count,
    bytes: Count,
}

impl Ended {
    pub(super) fn set(&self, site: &Site, Traffic { peer, bytes }: Traffic) {
        self.site.store(ptr::from_ref(site).cast_mut(), Ordering::Relaxed);
        self.peer.set(u64::from(peer));
        self.bytes.set(bytes);
    }

    /// Both; `None` when no such put was timed yet.
    pub(super) fn get(&self) -> Option<(&'static Site, Traffic)> {
        // SAFETY: null, or a place of this buffer, which is never freed.
        let site = unsafe { self.site.load(Ordering::Relaxed).as_ref() }?;
        Some((site, Traffic { peer: self.peer.get() as u32, bytes: self.bytes.get() }))
    }
}

/// What was moved to or from one task.
#[derive(Debug)]
pub struct Peer {
    /// By kind: put, get, am, rmw.
    pub moves: [Moves; Class::MOVING],
    /// How many of which size.
    pub sizes: [Count; SIZES],
}

/// The transfers of one kind between two tasks.
#[derive(Debug)]
pub struct Moves {
    /// How many.
    pub count: Count,
    /// How many bytes.
    pub bytes: Count,
    /// How long the calls have taken.
    pub ticks: Count,
}

static ALL: AtomicPtr<Buffer> = AtomicPtr::new(null_mut());
static NEXT_NUMBER: AtomicU16 = AtomicU16::new(0);

/// Under which each thread keeps its buffer, to give it back when it ends; below 0: there is none,
/// and a buffer stays with its thread.
///
/// The destructor of a `thread_local` would be registered under the loader's lock, which another
/// thread may hold that waits for a handler in this one (see `base::known_threads`).
static KEY: AtomicI64 = AtomicI64::new(-1);

/// Makes the key; once.
pub fn prepare() {
    stay_loaded(give_back as *const () as usize);
    let mut key = 0;
    // SAFETY: the number is written; the function stays loaded.
    if unsafe { libc::pthread_key_create(&mut key, Some(give_back)) } == 0 {
        KEY.store(key.into(), Ordering::Relaxed);
    }
}

/// The calling thread ends.
unsafe extern "C" fn give_back(buffer: *mut c_void) {
    set(None);
    // SAFETY: a buffer, which is never freed.
    unsafe { &*buffer.cast::<Buffer>() }.taken.store(false, Ordering::Release);
}

/// The buffer of this thread; `None` when memory is exhausted.
#[inline]
pub fn mine() -> Option<&'static Buffer> {
    if let Some(buffer) = known() { Some(buffer) } else { first_call() }
}

/// The buffer of this thread; `None` when it has none yet.
#[inline(always)]
pub fn known() -> Option<&'static Buffer> {
    // SAFETY: null, or what `set` was given.
    unsafe { site::record().cast::<Buffer>().as_ref() }
}

fn set(buffer: Option<&'static Buffer>) {
    site::set_repeated(ptr::null());
    site::set_record(buffer.map_or(ptr::null(), ptr::from_ref).cast());
}

/// All buffers, of threads that have ended too.
pub fn all() -> impl Iterator<Item = &'static Buffer> {
    // SAFETY: buffers are never freed.
    let at = |pointer: *mut Buffer| unsafe { pointer.as_ref() };
    std::iter::successors(at(ALL.load(Ordering::Acquire)), move |buffer| {
        at(buffer.next.load(Ordering::Acquire))
    })
}

/// In the first LAPI_Init: maps buffers for threads that come later. What a thread of the library
/// maps at its first handler would otherwise change where the program's own mappings lie, in one
/// task and not in another.
pub fn reserve() {
    let tasks = identity::tasks() as usize;
    // SAFETY: a Buffer and a Peer consist of atomics, for which zeroes are valid.
    let memory = unsafe { (memory::zeroed::<Buffer>(SPARE), memory::zeroed::<Peer>(SPARE * tasks)) };
    let (Some(buffers), Some(peers)) = memory else { return };
    for (buffer, peers) in buffers.iter().zip(peers.chunks(tasks)) {
        buffer.peers.store(peers.as_ptr().cast_mut(), Ordering::Relaxed);
        buffer.peer_count.store(tasks as u32, Ordering::Release);
        enlist(buffer);
    }
}

/// How many threads at the same time have had a buffer.
pub fn threads() -> usize {
    all().filter(|buffer| buffer.used.load(Ordering::Relaxed)).count()
}

/// In the child of a fork: begins with no buffers. Those of the parent's threads stay in
/// memory, unused.
pub fn fork_child() {
    set(None);
    ALL.store(null_mut(), Ordering::Relaxed);
    NEXT_NUMBER.store(0, Ordering::Relaxed);
}

#[cold]
fn first_call() -> Option<&'static Buffer> {
    let buffer = all().find(|buffer| buffer.take()).or_else(make)?;
    buffer.note_name();
    // A thread before may have ended in a handler.
    buffer.handlers_inside.take();
    buffer.open.reset();
    set(Some(buffer));
    if let Ok(key) = KEY.load(Ordering::Relaxed).try_into() {
        // SAFETY: the key was made, and is not deleted.
        unsafe { libc::pthread_setspecific(key, ptr::from_ref(buffer).cast()) };
    }
    Some(buffer)
}

fn make() -> Option<&'static Buffer> {
    // SAFETY: a Buffer consists of atomics, for which zeroes are valid.
    let buffer = unsafe { memory::zeroed::<Buffer>(1) }?.first()?;
    buffer.taken.store(true, Ordering::Relaxed);
    buffer.used.store(true, Ordering::Relaxed);
    enlist(buffer);
    Some(buffer)
}

/// Numbers a new buffer, and enters it in the list.
fn enlist(buffer: &'static Buffer) {
    buffer.number.store(NEXT_NUMBER.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
    let pointer = ptr::from_ref(buffer).cast_mut();
    let mut first = ALL.load(Ordering::Relaxed);
    loop {
        buffer.next.store(first, Ordering::Relaxed);
        match ALL.compare_exchange_weak(first, pointer, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(other) => first = other,
        }
    }
}

impl Buffer {
    /// Whether the call that this thread is in has been long, or a handler has run inside of it.
    #[inline(always)]
    pub(super) fn is_marked(&self) -> bool {
        self.long_since.get() != 0 || self.handlers_inside.get() != 0
    }

    fn take(&self) -> bool {
        !self.taken.load(Ordering::Relaxed)
            && self.taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
            && {
                self.used.store(true, Ordering::Relaxed);
                true
            }
    }

    fn note_name(&self) {
        let mut name = [0_u64; 2];
        // SAFETY: the system writes 16 bytes.
        unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
        self.name.iter().zip(name).for_each(|(place, word)| place.store(word, Ordering::Relaxed));
    }

    /// The name of the buffer's thread; empty when no thread has had this buffer.
    pub fn name(&self) -> String {
        let bytes: Vec<u8> =
            self.name.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    /// The number of this buffer, from 0: the thread's number in a trace.
    #[inline]
    pub fn number(&self) -> u16 {
        self.number.load(Ordering::Relaxed)
    }

    /// The entry for a call from a place.
    #[inline]
    pub fn site(&self, address: usize, call: Call) -> &Site {
        let at = place(address, call);
        for step in 0..REACH {
            let site = &self.sites[(at + step) % SITES];
            let found = site.call.load(Ordering::Relaxed);
            if found == call as u16 && site.address.load(Ordering::Relaxed) == address {
                return site;
            }
            if found == Call::None as u16 {
                site.address.store(address, Ordering::Relaxed);
                site.call.store(call as u16, Ordering::Release);
                return site;
            }
        }
        let site = &self.elsewhere[call as usize];
        site.call.store(call as u16, Ordering::Release);
        site
    }

    /// The entry for a call from a place, if it is the first that a search finds, as
    /// nearly all are.
    #[inline(always)]
    pub fn known_site(&self, address: usize, call: Call) -> Option<&Site> {
        let site = &self.sites[place(address, call) % SITES];
        let same = site.call.load(Ordering::Relaxed) == call as u16
            && site.address.load(Ordering::Relaxed) == address;
        same.then_some(site)
    }

    /// The entry for a task; none for one that does not exist.
    #[inline]
    pub fn peer(&self, task: u32) -> Option<&Peer> {
        let peers = self.peers();
        match peers.get(task as usize) {
            Some(peer) => Some(peer),
            None if peers.is_empty() => self.make_peers().get(task as usize),
            None => None,
        }
    }

    #[cold]
    fn make_peers(&self) -> &[Peer] {
        let tasks = identity::tasks();
        // SAFETY: a Peer consists of atomics, for which zeroes are valid.
        if let Some(peers) = unsafe { memory::zeroed::<Peer>(tasks as usize) } {
            self.peers.store(peers.as_ptr().cast_mut(), Ordering::Relaxed);
            self.peer_count.store(tasks, Ordering::Release);
        }
        self.peers()
    }

    /// The entries for all tasks; empty when nothing was moved.
    #[inline]
    pub fn peers(&self) -> &[Peer] {
        let count = self.peer_count.load(Ordering::Acquire) as usize;
        if count == 0 {
            return &[];
        }
        // SAFETY: the pointer was set before the count and points to `count` entries; they
        // are never freed.
        unsafe { std::slice::from_raw_parts(self.peers.load(Ordering::Relaxed), count) }
    }

    /// All entries that are in use.
    pub fn sites(&self) -> impl Iterator<Item = (Call, &Site)> {
        self.sites.iter().chain(&self.elsewhere).filter_map(|site| Some((site.call()?, site)))
    }
}

/// Where the search for an entry begins.
#[inline(always)]
fn place(address: usize, call: Call) -> usize {
    let mixed = (address as u64 ^ ((call as u64) << 48)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as usize
}

impl Site {
    fn call(&self) -> Option<Call> {
        let number = self.call.load(Ordering::Acquire) as usize;
        Call::ALL.get(number.wrapping_sub(1)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::{Call, SITES, make};

    #[test]
    fn places_are_distinguished_as_long_as_there_is_room() {
        let buffer = make().expect("there is memory");
        for address in 1..=SITES / 2 {
            for _ in 0..3 {
                buffer.site(address * 16, Call::LAPI_Put).count.add(1);
            }
            buffer.site(address * 16, Call::LAPI_Get).count.add(1);
        }
        let mut counts = [0; 2];
        for (call, site) in buffer.sites() {
            let address = site.address.load(std::sync::atomic::Ordering::Relaxed);
            let each = if call == Call::LAPI_Put { 3 } else { 1 };
            assert!(address == 0 || site.count.get() == each, "{address} {call:?}");
            counts[usize::from(call == Call::LAPI_Get)] += site.count.get();
        }
        assert_eq!(counts, [3 * SITES as u64 / 2, SITES as u64 / 2]);
        // More than there is room for: nothing is lost.
        for address in 0..10 * SITES {
            buffer.site(address, Call::LAPI_Rmw).count.add(1);
        }
        let all: u64 = buffer
            .sites()
            .filter(|(call, _)| *call == Call::LAPI_Rmw)
            .map(|(_, site)| site.count.get())
            .sum();
        assert_eq!(all, 10 * SITES as u64);
    }
}
