//! The threads that a report can name: what pthreads call them, and the system's number of each.
//!
//! A thread enters itself when it first sleeps in LAPI, and a destructor of the thread's own
//! removes it when it ends. So no call needs to ask the system which threads still exist. The table
//! is lock-free: the child of a fork uses it too. A thread that finds no place stays unknown.
//!
//! The destructor is that of a key (pthread_key_create). One of a `thread_local` would be
//! registered under the loader's lock, which another thread may hold that waits for this one:
//! LAPI_Init in the constructor of a library that is being opened.

use crate::base::loader::stay_loaded;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicUsize, Ordering};

/// The most threads that are known at the same time.
const PLACES: usize = 128;

/// A place belongs to the thread that has changed `thread` from 0; only that one writes `number`,
/// and changes `thread` back.
///
/// Relaxed is enough: a reader that finds its thread beside an old number names a thread that no
/// longer exists, which is what a report of a moment ago may do, and 0 is not named.
struct ThreadSlot {
    thread: AtomicUsize,
    number: AtomicI32,
}

static PLACE: [ThreadSlot; PLACES] =
    [const { ThreadSlot { thread: AtomicUsize::new(0), number: AtomicI32::new(0) } }; PLACES];

/// A number of the calling thread that no other living thread has; never 0.
#[inline]
pub fn this_thread() -> usize {
    #[cfg(all(target_arch = "x86_64", target_pointer_width = "64", target_env = "gnu"))]
    {
        // What pthread_self returns, without a call: the thread's own block begins with its
        // address, by the processor's ABI.
        let block;
        // SAFETY: FS is the base of the calling thread's block in every thread of a program with
        // the GNU C library.
        unsafe {
            std::arch::asm!("mov {}, fs:0", out(reg) block, options(pure, readonly, nostack, preserves_flags));
        }
        block
    }
    #[cfg(not(all(target_arch = "x86_64", target_pointer_width = "64", target_env = "gnu")))]
    // SAFETY: pthread_self has no preconditions.
    unsafe {
        libc::pthread_self() as usize
    }
}

/// Under which each thread keeps its place, as that number and 1; null: it has none.
static KEY: Key = Key(AtomicI64::new(Key::UNMADE));

/// A key that is made once. Of threads that make it at the same time the first one wins, and none
/// waits: a child of fork would for ever, if it was forked in the middle of that.
struct Key(AtomicI64);

impl Key {
    const UNMADE: i64 = -1;
    const NONE: i64 = -2;

    /// The key, if it was made.
    fn made(&self) -> Option<libc::pthread_key_t> {
        self.0.load(Ordering::Acquire).try_into().ok()
    }

    /// The key, made by the first call. `None`: the process has too many, and all threads stay
    /// unknown.
    fn get(&self, make: impl FnOnce() -> Option<libc::pthread_key_t>) -> Option<libc::pthread_key_t> {
        if self.0.load(Ordering::Acquire) == Self::UNMADE {
            let made = make();
            let new = made.map_or(Self::NONE, i64::from);
            let first = self.0.compare_exchange(Self::UNMADE, new, Ordering::AcqRel, Ordering::Acquire);
            if let (Err(_), Some(made)) = (first, made) {
                // SAFETY: no thread has used it.
                unsafe { libc::pthread_key_delete(made) };
            }
        }
        self.made()
    }
}

fn make_key() -> Option<libc::pthread_key_t> {
    stay_loaded(leave as *const () as usize);
    let mut key = 0;
    // SAFETY: the number is written; `leave` stays loaded.
    let made = unsafe { libc::pthread_key_create(&mut key, Some(leave)) };
    (made == 0).then_some(key)
}

/// The calling thread ends.
unsafe extern "C" fn leave(mine: *mut c_void) {
    let place = &PLACE[mine as usize - 1];
    place.number.store(0, Ordering::Relaxed);
    place.thread.store(0, Ordering::Relaxed);
}

/// Enters the calling thread, so that a report can name it. One system call the first
/// time, none later.
pub fn note_thread() {
    let Some(key) = KEY.get(make_key) else { return };
    // SAFETY: the key exists, and its value is a number.
    unsafe {
        if libc::pthread_getspecific(key).is_null()
            && let Some(at) = enter()
        {
            libc::pthread_setspecific(key, ptr::without_provenance(at + 1));
        }
    }
}

fn enter() -> Option<usize> {
    let me = this_thread();
    let at = PLACE.iter().position(|place| {
        place.thread.load(Ordering::Relaxed) == 0
            && place.thread.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    })?;
    PLACE[at].number.store(rustix::thread::gettid().as_raw_pid(), Ordering::Relaxed);
    Some(at)
}

/// The system's number of a thread that is known (see [`this_thread`]).
pub fn thread_number(thread: usize) -> Option<i32> {
    let place = PLACE.iter().find(|place| place.thread.load(Ordering::Relaxed) == thread)?;
    Some(place.number.load(Ordering::Relaxed)).filter(|number| *number != 0)
}

/// In a forked child: the parent's other threads do not exist here, and this one has
/// another number.
pub fn forget_in_child() {
    if let Some(key) = KEY.made() {
        // SAFETY: the key exists.
        unsafe { libc::pthread_setspecific(key, ptr::null()) };
    }
    for place in &PLACE {
        place.number.store(0, Ordering::Relaxed);
        place.thread.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "known_threads_tests.rs"]
mod tests;
