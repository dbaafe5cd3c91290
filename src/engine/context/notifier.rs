//! The notifier: the thread of interrupt mode, as the rest of the context sees it. It has a timer, by which others set it
//! to check the program or to end. What it does is in [`crate::engine::progress::interrupt_thread`].

use crate::abi::LAPI_ERR_MEMORY_EXHAUSTED;
use crate::base::clock::ticks;
use crate::base::sync::Mutex;
use crate::base::thread::{self, Thread, ThreadConfig};
use crate::error::{Error, Result};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

/// How long the program may be silent before the notifier arms the transport, at first.
pub(in crate::engine) const WATCH_FIRST: Duration = Duration::from_micros(200);

/// How soon the notifier sends what a program has left that waits for others.
const SOON: Duration = Duration::from_millis(1);
/// Its timer is set for that again after this many ticks at the earliest, 0.2 to 1 milliseconds: while a stream lasts, it is not woken.
const SOON_TICKS: u64 = 1_000_000;

const RESTING: u8 = 0;
const WATCHING: u8 = 1;

/// The notifier of one context.
pub struct Notifier {
    thread: Mutex<Option<(Thread, Arc<OwnedFd>)>>,
    /// The timer of the present thread; -1 when there is none.
    timer: AtomicI32,
    state: AtomicU8,
    /// A thread of an earlier generation ends.
    generation: AtomicU64,
    /// When its timer was set for [`SOON`], in ticks, if its thread has not looked since.
    soon_set: AtomicU64,
}

impl Notifier {
    pub(in crate::engine) fn new() -> Self {
        Self {
            thread: Mutex::new(None),
            timer: AtomicI32::new(-1),
            state: AtomicU8::new(RESTING),
            generation: AtomicU64::new(0),
            soon_set: AtomicU64::new(0),
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
        let timer = Arc::new(timer);
        self.timer.store(timer.as_raw_fd(), Ordering::Relaxed);
        let (own, generation) = (timer.clone(), self.generation.load(Ordering::Relaxed));
        let thread = thread::spawn("lapi-intr", thread_config, move || {
            #[cfg(test)]
            let _timer = crate::base::simulation::Timer(own.as_raw_fd());
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

    /// Makes the notifier look at the program from now on.
    pub fn watch(&self) {
        let timer = self.timer.load(Ordering::Relaxed);
        if timer >= 0 {
            self.state.store(WATCHING, Ordering::Relaxed);
            // SAFETY: `end` takes the number away before it drops the timer, and no other call is inside then.
            set_timer(unsafe { BorrowedFd::borrow_raw(timer) }, WATCH_FIRST);
        }
    }

    /// Makes the notifier look at the program in [`SOON`], or before, because packets have waited since then, in ticks. It costs a system
    /// call for the first packets that wait, and for others now and then. The lock must be held.
    pub(in crate::engine) fn look_soon(&self, since: u64) {
        let (timer, set) = (self.timer.load(Ordering::Relaxed), self.soon_set.load(Ordering::Relaxed));
        // A timer that was set afterwards is not moved: then these packets would wait for longer.
        if timer < 0 || set >= since {
            return;
        }
        let now = ticks();
        if now.wrapping_sub(set) > SOON_TICKS {
            self.soon_set.store(now, Ordering::Relaxed);
            // SAFETY: as in `watch`.
            set_timer(unsafe { BorrowedFd::borrow_raw(timer) }, SOON);
        }
    }

    /// The notifier's thread sets its timer. The lock must be held.
    pub(in crate::engine) fn look_in(&self, timer: BorrowedFd<'_>, after: Duration) {
        self.soon_set.store(if after == SOON { ticks() } else { 0 }, Ordering::Relaxed);
        set_timer(timer, after);
    }

    /// The notifier's thread sleeps without its timer. The lock must be held.
    pub(in crate::engine) fn look_not(&self) {
        self.soon_set.store(0, Ordering::Relaxed);
    }

    /// The same as [`Self::watch`], if it rests.
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

/// Lets the timer ring once after this time.
fn set_timer(timer: BorrowedFd<'_>, after: Duration) {
    #[cfg(test)]
    if crate::base::simulation::set_timer(timer.as_raw_fd(), after) {
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

    fn with_timer() -> (Notifier, OwnedFd) {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK).expect("a timer");
        let notifier = Notifier::new();
        notifier.timer.store(timer.as_raw_fd(), Ordering::Relaxed);
        (notifier, timer)
    }

    fn left(timer: &OwnedFd) -> Duration {
        let value = timerfd_gettime(timer).expect("a timer").it_value;
        Duration::new(value.tv_sec as u64, value.tv_nsec as u32)
    }

    fn stop(timer: &OwnedFd) {
        set_timer(timer.as_fd(), Duration::ZERO);
    }

    /// Whatever the thread has done just before, packets that wait from now on have a timer.
    #[test]
    fn packets_have_a_timer_after_the_thread_has_gone_to_sleep() {
        let (notifier, timer) = with_timer();
        for before in [Duration::from_micros(1), WATCH_FIRST, 2 * WATCH_FIRST, SOON] {
            notifier.look_in(timer.as_fd(), before);
            stop(&timer);
            notifier.look_not();
            notifier.look_soon(ticks());
            assert!(left(&timer) > Duration::ZERO, "after {before:?}");
        }
    }

    #[test]
    fn the_timer_is_not_moved_while_the_same_packets_wait() {
        let (notifier, timer) = with_timer();
        let since = ticks();
        notifier.look_soon(since);
        stop(&timer);
        notifier.look_soon(since);
        assert_eq!(left(&timer), Duration::ZERO);
    }
}
