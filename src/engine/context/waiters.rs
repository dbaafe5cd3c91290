//! Which threads wait in a context, where they sleep, and what they are to learn.

use crate::base::call_stack::Stack;
use crate::engine::context::event_loop::{ArmedBy, EventLoop};
use std::time::Duration;

/// A thread that polls by itself and never sleeps checks once in this many polls whether a check of
/// its peers is due.
const POLLS_BETWEEN_LOOKS: u32 = 1 << 6;

/// What a thread waits for.
#[derive(Clone, Copy, Debug)]
pub struct WaitTarget {
    /// The call that the program made.
    pub call: &'static str,
    /// A counter's address, and the value that is wanted.
    pub counter: Option<(usize, i32)>,
}

impl From<&'static str> for WaitTarget {
    fn from(call: &'static str) -> Self {
        Self { call, counter: None }
    }
}

impl<F: FnOnce() -> Self> From<F> for WaitTarget {
    fn from(make: F) -> Self {
        make()
    }
}

/// A thread that waits, and has begun to sleep. One that is served while it still polls
/// is in no list.
#[derive(Clone, Copy, Debug)]
pub struct Waiter {
    /// Which thread (see [`crate::base::known_threads::this_thread`]).
    pub thread: usize,
    /// For what.
    pub awaited: WaitTarget,
    /// Since when, to a few milliseconds.
    pub since: u32,
    /// From where it was called; nothing while it has not waited for long.
    pub stack: Stack,
}

/// Since when no packet has gone in or out.
#[derive(Default)]
pub struct StallDetector {
    /// Packets in and out at the last check.
    moved: u64,
    since: u32,
    /// The stall was reported.
    reported: bool,
}

impl StallDetector {
    /// Notes how many packets have gone in and out. `true` when none has for as long as `limit`,
    /// and this waiter has waited that long: it is time to report it, once until something moves.
    pub fn look(&mut self, moved: u64, now: u32, waits_since: u32, limit: Duration) -> bool {
        if self.since == 0 || self.moved != moved {
            *self = Self { moved, since: now, reported: false };
        }
        let still = now.wrapping_sub(self.since).min(now.wrapping_sub(waits_since));
        let due = !self.reported && !limit.is_zero() && Duration::from_millis(still.into()) >= limit;
        self.reported |= due;
        due
    }

    /// Something else has caused a report, which has named the threads that wait here.
    pub fn note_reported(&mut self, moved: u64, now: u32) {
        if self.since == 0 || self.moved != moved {
            *self = Self { moved, since: now, reported: false };
        }
        self.reported = true;
    }
}

/// The threads that wait in a context, and what they are to learn. Guarded by the lock.
#[derive(Default)]
pub struct Waiters {
    /// Threads in [`crate::engine::progress::wait::wait_until`].
    waiting: u32,
    /// Those of them that run a completion handler.
    handlers: u32,
    /// Threads in LAPI_Msgpoll.
    pub(in crate::engine) polling: u32,
    /// How often threads of the program poll by themselves before one looks after the peers.
    polls_left: u32,
    /// How many consecutive times a thread of the program has polled by itself and found nothing.
    pub(in crate::engine) idle_polls: u32,
    /// One of them sleeps on the transport's descriptor.
    pub(in crate::engine) on_descriptor: bool,
    /// Those that wait and have begun to sleep.
    pub(in crate::engine) listed: Vec<Waiter>,
    /// The thread that waits in LAPI_Term until completion handlers have returned. It is not in the
    /// list, since it does not look for messages.
    pub(in crate::engine) settling: Option<Waiter>,
    /// Since when no packet has gone in or out.
    pub(in crate::engine) stall_detector: StallDetector,
    /// How many sleep in the [`crate::base::event_count`]; and one more from the time on when the
    /// program's event loop has first armed, for which whatever moves is news.
    parked: u32,
    /// Who has armed the transport, outside of calls that wait.
    pub(in crate::engine) armed: ArmedBy,
    /// The program's event loop.
    event_loop: EventLoop,
    /// Something has changed that a waiting thread may wait for.
    news: bool,
    /// How often the program's own threads have polled; the notifier detects by it whether they do.
    pub(in crate::engine) activity: u64,
    /// When one of them last polled, or began to, in ticks.
    pub(in crate::engine) last_poll: u64,
    /// Threads that have released the lock in the middle of a call and will use the core again; a
    /// thread may be listed several times.
    inside: Vec<usize>,
}

impl Waiters {
    /// A thread begins to wait. Returns whether it is the only one.
    pub fn begin_wait(&mut self, runs_handler: bool) -> bool {
        self.waiting += 1;
        self.handlers += u32::from(runs_handler);
        self.waiting == 1
    }

    /// A thread waits no more. Returns whether it was the only one.
    pub fn end_wait(&mut self, runs_handler: bool) -> bool {
        self.waiting -= 1;
        self.handlers -= u32::from(runs_handler);
        self.news |= match self.waiting {
            // The event loop may have slept while threads served that waited.
            0 => self.event_loop == EventLoop::Asleep,
            // One of the parked threads must go to the descriptor.
            _ => !self.on_descriptor,
        };
        self.waiting == 0
    }

    /// A thread releases the lock in the middle of a call, and will use the core again.
    #[inline]
    pub fn step_out(&mut self, thread: usize) {
        self.inside.push(thread);
    }

    /// The thread has the lock again.
    #[inline]
    pub fn step_in(&mut self, thread: usize) {
        if let Some(at) = self.inside.iter().rposition(|&inside| inside == thread) {
            self.inside.swap_remove(at);
        }
    }

    /// The threads that have released the lock so.
    #[inline]
    pub fn inside(&self) -> &[usize] {
        &self.inside
    }

    /// How many threads wait.
    #[inline]
    pub fn waiting(&self) -> u32 {
        self.waiting
    }

    /// How many of them run a completion handler.
    pub fn in_handlers(&self) -> usize {
        self.handlers as usize
    }

    /// A thread begins a call of LAPI_Msgpoll. Returns whether another one waits or polls.
    pub fn begin_poll(&mut self) -> bool {
        self.polling += 1;
        self.waiting + self.polling > 1
    }

    /// A thread of the program polls by itself. Returns whether it is to look after the peers, as
    /// one in [`POLLS_BETWEEN_LOOKS`] is.
    pub fn count_poll(&mut self) -> bool {
        let looks = !self.count_common_poll();
        if looks {
            self.polls_left = POLLS_BETWEEN_LOOKS - 1;
        }
        looks
    }

    /// A thread of the program polls by itself, unless it is to look after the peers.
    #[inline(always)]
    pub fn count_common_poll(&mut self) -> bool {
        let (left, looks) = self.polls_left.overflowing_sub(1);
        if !looks {
            self.polls_left = left;
        }
        !looks
    }

    /// Whether such a poll has found something.
    pub fn note_found(&mut self, something: bool) {
        self.idle_polls = if something { 0 } else { self.idle_polls.saturating_add(1) };
    }

    /// A thread that waits begins to sleep.
    pub fn list(&mut self, waiter: Waiter) {
        self.listed.push(waiter);
    }

    /// The entry of a thread that has begun to sleep at that moment.
    fn entry(&self, thread: usize, since: u32) -> Option<usize> {
        self.listed.iter().rposition(|waiter| waiter.thread == thread && waiter.since == since)
    }

    /// Such a thread waits no more.
    pub fn unlist(&mut self, thread: usize, since: u32) {
        self.entry(thread, since).map(|at| self.listed.swap_remove(at));
    }

    /// Such a thread has called from there.
    pub fn note_stack(&mut self, thread: usize, since: u32, stack: Stack) {
        if let Some(at) = self.entry(thread, since) {
            self.listed[at].stack = stack;
        }
    }

    /// A thread goes to sleep in the parking.
    pub fn park(&mut self) {
        self.parked += 1;
    }

    /// The thread has woken.
    pub fn unpark(&mut self) {
        self.parked -= 1;
    }

    /// How many threads are parked.
    pub fn parked(&self) -> u32 {
        self.parked - u32::from(self.event_loop != EventLoop::Absent)
    }

    /// Whether a thread is parked, or the program has an event loop.
    #[inline]
    pub fn awaits_news(&self) -> bool {
        self.parked != 0
    }

    /// The program's event loop does this from now on.
    pub fn set_event_loop(&mut self, event_loop: EventLoop) {
        self.parked += u32::from(self.event_loop == EventLoop::Absent && event_loop != EventLoop::Absent);
        self.event_loop = event_loop;
    }

    /// What the program's event loop does.
    #[inline]
    pub fn event_loop(&self) -> EventLoop {
        self.event_loop
    }

    /// Something has changed that a waiting thread may wait for.
    #[inline]
    pub fn note_news(&mut self) {
        self.news = true;
    }

    /// Something has changed: threads may wait for it, and each of them looks.
    #[inline]
    pub fn note_news_if_waiting(&mut self) {
        self.news |= self.waiting != 0;
    }

    /// Something has changed: threads may wait for it, and the program's event loop is to look.
    #[inline]
    pub fn note_news_if_awaited(&mut self) {
        self.news |= self.waiting != 0 || self.parked != 0;
    }

    /// Something has moved in a round of one thread: others may wait for it.
    #[inline]
    pub fn note_moved(&mut self) {
        self.news |= self.waiting > 1 || self.on_descriptor || self.parked != 0;
    }

    /// Whether something has changed that sleeping threads are still to learn.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.news
    }

    /// They are woken.
    pub fn take_news(&mut self) {
        self.news = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_stall_is_reported_once_until_something_moves() {
        let mut still = StallDetector::default();
        let mut reported = Vec::new();
        for now in (100..10_000).step_by(250) {
            let moved = if now < 5000 { 7 } else { 8 };
            if still.look(moved, now, 100, SECOND) {
                reported.push(now);
            }
        }
        assert_eq!(reported, [1100, 6100]);
    }

    #[test]
    fn a_new_waiter_has_not_waited_while_nothing_moved_before() {
        let mut still = StallDetector::default();
        assert!(!still.look(1, 100, 100, SECOND));
        assert!(!still.look(1, 5000, 4500, SECOND), "it waits for half a second");
        assert!(still.look(1, 5500, 4500, SECOND));
        assert!(!still.look(1, 9000, 4500, SECOND));
        assert!(!still.look(1, 90_000, 9000, Duration::ZERO), "never");
    }

    #[test]
    fn what_was_reported_is_not_reported_again() {
        let mut still = StallDetector::default();
        still.note_reported(3, 50);
        assert!(!still.look(3, 9000, 40, SECOND));
        assert!(!still.look(4, 9100, 40, SECOND));
        assert!(still.look(4, 10_200, 40, SECOND));
    }
}
