//! The bell that requests a report: rung by the handler of a signal, or by a thread that has waited
//! for long. It is a pipe, read by the thread that reports (see [`crate::report::thread`]).
//!
//! The bell and the signal belong to the process, so there is one of each. The pipe is known by its
//! number and its inode: a program that has closed it and has another file there now is never
//! written to. All is atomic, because a signal may come in the middle of anything, and because a
//! child of fork must be able to forget it.

use libc::c_int;
use openlapi::base::loader::stay_loaded;
use rustix::fs::fstat;
use rustix::pipe::{PipeFlags, pipe_with};
use std::mem::{self, ManuallyDrop};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Why a report is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The signal has come.
    Signal = b's' as isize,
    /// No progress has been made for long.
    Stall = b't' as isize,
    /// The reporter must check its orders.
    Orders = b'o' as isize,
}

/// The writing end, -1 when there is none, and its inode.
static BELL: AtomicI32 = AtomicI32::new(-1);
static INODE: AtomicU64 = AtomicU64::new(0);
/// A waiting call rings after this number of seconds without progress; 0: never.
static STALL: AtomicU32 = AtomicU32::new(0);
/// The signal whose handler is ours; 0: none.
static SIGNAL: AtomicI32 = AtomicI32::new(0);

/// The reading end of a pipe, and the writing end, which stays open as long as this lives.
pub(crate) struct Bell {
    read: ManuallyDrop<OwnedFd>,
    write: ManuallyDrop<OwnedFd>,
    inode: u64,
}

impl Bell {
    /// Sets the bell up.
    pub(crate) fn open() -> rustix::io::Result<Self> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let inode = fstat(&write)?.st_ino;
        INODE.store(inode, Ordering::Relaxed);
        BELL.store(write.as_raw_fd(), Ordering::Release);
        Ok(Self { read: ManuallyDrop::new(read), write: ManuallyDrop::new(write), inode })
    }

    /// The reading end; `None` when the program has closed it.
    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.owns(&self.read).then(|| self.read.as_fd())
    }

    fn owns(&self, end: &OwnedFd) -> bool {
        fstat(end).is_ok_and(|found| found.st_ino == self.inode)
    }

    /// Why it was rung since the last time, without repetitions.
    pub(crate) fn take_causes(&self) -> Vec<Cause> {
        let mut bytes = [0; 256];
        let count = self.fd().map_or(0, |fd| rustix::io::read(fd, &mut bytes).unwrap_or(0));
        let mut causes = Vec::new();
        for cause in [Cause::Signal, Cause::Stall, Cause::Orders] {
            if bytes[..count].contains(&(cause as u8)) {
                causes.push(cause);
            }
        }
        causes
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        let _ = BELL.compare_exchange(self.write.as_raw_fd(), -1, Ordering::AcqRel, Ordering::Relaxed);
        // What the program has closed may be a file of its own by now: not ours to be closed.
        let (read, write) = (self.owns(&self.read), self.owns(&self.write));
        // SAFETY: each is dropped once at most, and not used afterwards.
        unsafe {
            if read {
                ManuallyDrop::drop(&mut self.read);
            }
            if write {
                ManuallyDrop::drop(&mut self.write);
            }
        }
    }
}

/// Rings, if there is a thread that reports. May be called from a signal handler.
pub fn ring(cause: Cause) {
    let bell = BELL.load(Ordering::Acquire);
    if bell < 0 {
        return;
    }
    let byte = cause as u8;
    // SAFETY: both calls may be made from a signal handler, and only look at memory that lives
    // during the call. The number is written to only while it is the bell's.
    unsafe {
        let mut found: libc::stat = mem::zeroed();
        if libc::fstat(bell, &mut found) == 0 && found.st_ino as u64 == INODE.load(Ordering::Relaxed) {
            libc::write(bell, ptr::from_ref(&byte).cast(), 1);
        }
    }
}

/// After how long without progress a waiting call rings; zero: never.
pub fn stall() -> Duration {
    Duration::from_secs(STALL.load(Ordering::Relaxed).into())
}

/// Sets that.
pub fn set_stall(seconds: u32) {
    STALL.store(seconds, Ordering::Relaxed);
}

extern "C" fn on_signal(_: c_int) {
    // SAFETY: errno belongs to this thread; what the interrupted code finds there must not change.
    let errno = unsafe { *libc::__errno_location() };
    ring(Cause::Signal);
    // SAFETY: errno belongs to this thread.
    unsafe { *libc::__errno_location() = errno };
}

/// Makes this signal ring, unless the program has a handler of its own for it, or ignores it. The
/// handler stays until the process ends: a launcher may send the signal at any time, also when the
/// last context has just been closed. Then it does nothing.
pub fn install_handler(signal: c_int) {
    // SAFETY: the structures live during the calls; the handler makes only calls that a
    // handler may make.
    unsafe {
        let mut now: libc::sigaction = mem::zeroed();
        if libc::sigaction(signal, ptr::null(), &mut now) != 0 || now.sa_sigaction != libc::SIG_DFL {
            return;
        }
        stay_loaded(on_signal as *const () as usize);
        let mut ours: libc::sigaction = mem::zeroed();
        ours.sa_sigaction = on_signal as *const () as usize;
        ours.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
        if libc::sigaction(signal, &ours, ptr::null_mut()) == 0 {
            SIGNAL.store(signal, Ordering::Relaxed);
        }
    }
}

/// Gives the signal back, if its handler is still ours: in a child of fork, which has no thread
/// that would report.
fn remove_handler() {
    let signal = SIGNAL.swap(0, Ordering::Relaxed);
    if signal == 0 {
        return;
    }
    // SAFETY: the structures live during the calls.
    unsafe {
        let mut now: libc::sigaction = mem::zeroed();
        let ours = on_signal as *const () as usize;
        if libc::sigaction(signal, ptr::null(), &mut now) == 0 && now.sa_sigaction == ours {
            let mut default: libc::sigaction = mem::zeroed();
            default.sa_sigaction = libc::SIG_DFL;
            libc::sigaction(signal, &default, ptr::null_mut());
        }
    }
}

/// A child of fork has no thread that would report.
pub(crate) fn forget() {
    BELL.store(-1, Ordering::Relaxed);
    remove_handler();
}
