//! The notifier: the thread of interrupt mode, as the rest of the context sees it. It has a timer,
//! by which others set it to check the program or to end. What it does is in
//! [`crate::engine::progress::interrupt_thread`].

use crate::abi::LAPI_ERR_MEMORY_EXHAUSTED;
use crate::base::descriptor::Descriptor;
use crate::base::poll::is_event;
use crate::base::sync::Mutex;
use crate::base::thread::{self, Thread, ThreadConfig};
use crate::error::{Error, Result};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

/// How long the program may be silent before the notifier arms the transport, at first.
pub(in crate::engine) const WATCH_FIRST: Duration = Duration::from_micros(200);

/// How soon the notifier sends what a call has left that waits for other packets.
const SOON: Duration = Duration::from_millis(1);

const RESTING: u8 = 0;
const WATCHING: u8 = 1;

/// No thread waits for the timer: there is none, or it is at work, perhaps in a handler
/// of the program.
const AWAKE: u8 = 0;
/// The thread waits.
const ASLEEP: u8 = 1;
/// The thread waits, and wakes in [`SOON`] at the latest.
const CALLED: u8 = 2;

/// The notifier of one context.
pub struct Notifier {
    thread: Mutex<Option<(Thread, Arc<Descriptor>)>>,
    /// The timer of the present thread; -1 when there is none.
    timer: AtomicI32,
    state: AtomicU8,
    /// A thread of an earlier generation ends.
    generation: AtomicU64,
    /// [`AWAKE`], [`ASLEEP`] or [`CALLED`]. Written with the context's lock held.
    sleep: AtomicU8,
    /// The process exits, and this thread with it.
    exits: AtomicBool,
}

impl Notifier {
    pub(in crate::engine) fn new() -> Self {
        Self {
            thread: Mutex::new(None),
            timer: AtomicI32::new(-1),
            state: AtomicU8::new(RESTING),
            generation: AtomicU64::new(0),
            sleep: AtomicU8::new(AWAKE),
            exits: AtomicBool::new(false),
        }
    }

    /// Starts the thread, which does this with its timer and the number of its generation.
    pub(in crate::engine) fn start(
        &self,
        thread_config: ThreadConfig,
        run: impl FnOnce(BorrowedFd<'_>, u64) + Send + 'static,
    ) -> Result<()> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK)
            .map_err(|reason| {
                Error::new(LAPI_ERR_MEMORY_EXHAUSTED, format!("no timer can be made: {reason}"))
            })?;
        let timer = Arc::new(Descriptor::new(timer));
        self.timer.store(timer.as_fd().as_raw_fd(), Ordering::Relaxed);
        let (own, generation) = (timer.clone(), self.generation.load(Ordering::Relaxed));
        let thread = thread::spawn("lapi-intr", thread_config, move || {
            #[cfg(test)]
            let _timer = crate::base::simulation::Timer(own.as_fd().as_raw_fd());
            run(own.as_fd(), generation);
        })?;
        *self.thread.lock() = Some((thread, timer));
        self.watch();
        Ok(())
    }

    /// Ends the thread, and waits for it unless it is the caller. The lock must not be held.
    pub fn stop(&self) {
        if let Some(thread) = self.end() {
            thread.join();
        }
    }

    /// Ends the thread without waiting for it.
    pub fn dismiss(&self) {
        if let Some(thread) = self.end() {
            thread.detach();
        }
    }

    fn end(&self) -> Option<Thread> {
        let (thread, timer) = self.thread.lock().take()?;
        self.generation.fetch_add(1, Ordering::Release);
        self.timer.store(-1, Ordering::Relaxed);
        set_timer(timer.as_fd(), Duration::from_nanos(1));
        Some(thread)
    }

    /// Whether there is a thread.
    pub fn exists(&self) -> bool {
        self.timer.load(Ordering::Relaxed) >= 0
    }

    /// Makes the notifier look at the program from now on.
    pub fn watch(&self) {
        let timer = self.timer.load(Ordering::Relaxed);
        if timer >= 0 {
            self.state.store(WATCHING, Ordering::Relaxed);
            // SAFETY: `end` takes the number away before it drops the timer, and no other call
            // is inside then.
            set_timer(unsafe { BorrowedFd::borrow_raw(timer) }, WATCH_FIRST);
        }
    }

    /// Whether the thread takes the lock in [`SOON`] at the latest: a call may leave packets to it.
    /// It costs two system calls once in that time. The lock must be held.
    pub(in crate::engine) fn looks_soon(&self) -> bool {
        let (timer, sleep) = (self.timer.load(Ordering::Relaxed), self.sleep.load(Ordering::Relaxed));
        if timer < 0 || sleep == AWAKE || self.exits.load(Ordering::Relaxed) {
            return false;
        }
        if sleep == ASLEEP {
            self.sleep.store(CALLED, Ordering::Relaxed);
            // SAFETY: as in `watch`.
            set_timer(unsafe { BorrowedFd::borrow_raw(timer) }, SOON);
        }
        true
    }

    /// The process exits, and no packets are left to the thread from now on. Whether some
    /// may have been.
    pub(in crate::engine) fn look_no_more(&self) -> bool {
        self.exits.store(true, Ordering::Relaxed);
        self.sleep.load(Ordering::Acquire) == CALLED
    }

    /// The thread has the lock, and has sent what was left to it.
    pub(in crate::engine) fn note_wake(&self) {
        self.sleep.store(AWAKE, Ordering::Release);
    }

    /// The thread leaves the lock and waits for its timer, which is set for this time if there is
    /// one. The lock must be held.
    pub(in crate::engine) fn note_sleep(&self, timer: BorrowedFd<'_>, after: Option<Duration>) {
        self.sleep.store(ASLEEP, Ordering::Relaxed);
        after.into_iter().for_each(|after| set_timer(timer, after));
    }

    /// [`Self::watch`], if the notifier rests.
    pub(in crate::engine) fn watch_if_idle(&self) {
        if self.state.load(Ordering::Relaxed) == RESTING {
            self.watch();
        }
    }

    /// Whether it rests.
    #[cfg(test)]
    pub(in crate::engine) fn rests(&self) -> bool {
        self.state.load(Ordering::Relaxed) == RESTING
    }

    /// Whether the thread of this generation shall continue.
    pub(in crate::engine) fn present(&self, generation: u64) -> bool {
        self.generation.load(Ordering::Acquire) == generation
    }

    /// The thread rests from now on.
    pub(in crate::engine) fn note_rest(&self) {
        self.state.store(RESTING, Ordering::Relaxed);
    }

    /// The thread watches from now on.
    pub(in crate::engine) fn note_watch(&self) {
        self.state.store(WATCHING, Ordering::Relaxed);
    }
}

/// Lets the timer ring once after this time. The program may have closed it, and made its own under
/// the number: that is left alone, and the thread looks often.
fn set_timer(timer: BorrowedFd<'_>, after: Duration) {
    #[cfg(test)]
    if crate::base::simulation::set_timer(timer.as_raw_fd(), after) {
        return;
    }
    if !is_event(timer) {
        return;
    }
    let value = Timespec { tv_sec: after.as_secs() as i64, tv_nsec: i64::from(after.subsec_nanos()) };
    let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
    // It can fail for wrong arguments only.
    let _ = timerfd_settime(timer, TimerfdTimerFlags::empty(), &once);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::time::timerfd_gettime;
    use std::os::fd::{FromRawFd, OwnedFd};

    fn with_timer() -> (Notifier, Descriptor) {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK).expect("a timer");
        let (notifier, timer) = (Notifier::new(), Descriptor::new(timer));
        notifier.timer.store(timer.as_fd().as_raw_fd(), Ordering::Relaxed);
        (notifier, timer)
    }

    fn left(timer: &Descriptor) -> Duration {
        let value = timerfd_gettime(timer).expect("a timer").it_value;
        Duration::new(value.tv_sec as u64, value.tv_nsec as u32)
    }

    fn stop(timer: &Descriptor) {
        set_timer(timer.as_fd(), Duration::ZERO);
    }

    /// Whatever the thread has done just before, what is left to it has a timer; while it does not
    /// wait, nothing is left to it.
    #[test]
    fn what_is_left_has_a_timer_whenever_the_thread_sleeps() {
        let (notifier, timer) = with_timer();
        assert!(!notifier.looks_soon(), "it has not begun to wait");
        for before in [None, Some(Duration::from_micros(1)), Some(2 * WATCH_FIRST)] {
            notifier.note_sleep(timer.as_fd(), before);
            stop(&timer);
            assert!(notifier.looks_soon());
            assert!(left(&timer) > Duration::ZERO, "after {before:?}");
            notifier.note_wake();
            assert!(!notifier.looks_soon());
        }
    }

    #[test]
    fn the_timer_is_not_moved_while_packets_follow() {
        let (notifier, timer) = with_timer();
        notifier.note_sleep(timer.as_fd(), None);
        assert!(notifier.looks_soon());
        stop(&timer);
        assert!(notifier.looks_soon());
        assert_eq!(left(&timer), Duration::ZERO);
    }

    #[test]
    fn nothing_is_left_to_the_thread_when_the_process_exits() {
        let (notifier, timer) = with_timer();
        notifier.note_sleep(timer.as_fd(), None);
        assert!(notifier.looks_soon());
        assert!(notifier.look_no_more(), "some may wait");
        assert!(!notifier.looks_soon());
    }

    /// A program has closed all descriptors, and made a timer of its own.
    #[test]
    fn a_timer_of_the_program_under_the_number_is_not_set() {
        let (notifier, timer) = with_timer();
        let number = timer.as_fd().as_raw_fd();
        let period = Timespec { tv_sec: 3600, tv_nsec: 0 };
        let own = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK).expect("a timer");
        let periodic = Itimerspec { it_interval: period, it_value: period };
        timerfd_settime(&own, TimerfdTimerFlags::empty(), &periodic).expect("it is set");
        // SAFETY: the library is to see that the number is not its own any more.
        assert_eq!(unsafe { libc::dup2(own.as_raw_fd(), number) }, number);
        notifier.watch();
        notifier.note_sleep(timer.as_fd(), Some(SOON));
        assert!(notifier.looks_soon());
        let now = timerfd_gettime(&own).expect("a timer");
        assert_eq!(now.it_interval, period);
        assert!(now.it_value.tv_sec > 1800, "{now:?}");
        drop(timer);
        // SAFETY: from now on the number is the program's.
        drop(unsafe { OwnedFd::from_raw_fd(number) });
    }
}
