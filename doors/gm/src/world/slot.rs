//! The place of a port: never opened, open, or closed.

use super::lock::{Lock, Locked};
use crate::abi::{RecvEvent, Status};
use crate::protocol::{Event, Port, Then};
use crate::wire::Header;
use openlapi::base::known_threads::this_thread;
use std::cell::UnsafeCell;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// With events at each look, one look in this number is at the clock, too.
const EVENTS_PER_TIME: u32 = 64;
/// [`Slot::due`] where an event waits for the network, which still uses its memory.
pub const SOON: u64 = 0;
/// [`Slot::claim`] where there is none.
const NO_CLAIM: RawFd = -1;

/// A port, or the place for one.
pub struct Slot {
    number: u8,
    state: Lock<State>,
    /// Whether the program has an event to get.
    ready: AtomicBool,
    /// When something is to be done though nothing arrives, in microseconds: [`SOON`] where
    /// something has ended whose memory the network still uses, and the highest number for never.
    due: AtomicU64,
    /// The thread that is in a call that looks for events; 0: none.
    looks: AtomicUsize,
    /// The descriptor of the open port's claim, for a forked child; [`NO_CLAIM`].
    claim: AtomicI32,
    /// What gm_receive returns a pointer to, and the list of a GM_SENT_EVENT.
    event: UnsafeCell<(RecvEvent, [usize; 2])>,
}

// SAFETY: the event is written and read by the thread that uses the port, of which GM allows one at
// a time; everything else is behind the lock or atomic.
unsafe impl Sync for Slot {}

/// What a port is.
pub enum State {
    /// Not opened yet: who has sent something waits until it is.
    Never {
        /// Their tasks, and what they have sent.
        early: Vec<(u32, Header)>,
    },
    /// Open.
    Open(Box<Open>),
    /// Closed.
    Closed,
}

/// An open port, with what its thread needs.
pub struct Open {
    /// The first to be dropped: a child that is forked before that has a copy.
    _claim: Option<UnixListener>,
    /// What it does with others.
    pub port: Port,
    /// How many send tokens the program has given back, by priority.
    pub tokens: [u32; 2],
    /// Alarms: when, in microseconds, and the program's structure.
    pub alarms: Vec<(u64, usize)>,
    /// What gm_unknown does with the last event.
    pub pending: Option<Pending>,
    /// How often the program has looked for an event.
    looks: u32,
    /// What the program has seen without taking it: that is the next one.
    peeked: Option<Peeked>,
}

/// What gm_unknown does.
#[derive(Clone, Copy, Debug)]
pub enum Pending {
    /// Calls this.
    Callback(Then, Status),
    /// Calls the function of this alarm.
    Alarm(usize),
}

/// Which kind of event the program has seen.
#[derive(Clone, Copy, Debug)]
enum Peeked {
    /// The first one of the port.
    Event,
    /// An alarm.
    Alarm(usize),
}

/// The next event of a port.
#[derive(Clone, Copy, Debug)]
pub enum Next {
    /// Of the protocol.
    Event(Event),
    /// An alarm.
    Alarm(usize),
}

impl Open {
    pub fn new(port: Port, claim: Option<UnixListener>) -> Self {
        Self {
            port,
            tokens: [0; 2],
            alarms: Vec::new(),
            pending: None,
            looks: 0,
            peeked: None,
            _claim: claim,
        }
    }

    /// Takes the next event, and notes what gm_unknown does with it. `clock` gives the time; it is
    /// told whether that must be exact.
    #[inline]
    pub fn next(&mut self, clock: impl FnOnce(bool) -> u64) -> Option<Next> {
        let next = match self.peeked.take().and_then(|peeked| self.again(peeked)) {
            Some(Next::Event(_)) => self.port.next_event().map(Next::Event),
            Some(alarm) => Some(alarm),
            None => self.find(clock, Port::next_event),
        };
        if let Some(Next::Alarm(alarm)) = next {
            self.alarms.retain(|(_, set)| *set != alarm);
        }
        self.pending = match next {
            Some(Next::Alarm(alarm)) => Some(Pending::Alarm(alarm)),
            Some(Next::Event(Event::Ended { then, status, .. })) if then.callback != 0 => {
                Some(Pending::Callback(then, status))
            }
            _ => None,
        };
        next
    }

    /// The next event, which stays.
    pub fn peek(&mut self, clock: impl FnOnce(bool) -> u64) -> Option<Next> {
        let next = self.peeked.and_then(|peeked| self.again(peeked));
        let next = next.or_else(|| self.find(clock, |port| port.peek().copied()));
        self.peeked = next.map(|next| match next {
            Next::Event(_) => Peeked::Event,
            Next::Alarm(alarm) => Peeked::Alarm(alarm),
        });
        next
    }

    /// What the program has seen, if it is still there.
    fn again(&self, peeked: Peeked) -> Option<Next> {
        match peeked {
            Peeked::Event => self.port.peek().copied().map(Next::Event),
            Peeked::Alarm(alarm) => self.has(alarm).then_some(Next::Alarm(alarm)),
        }
    }

    /// Takes an alarm back, or all: none of them comes as an event, and of one that has come the
    /// function is not called any more.
    pub fn forget(&mut self, alarm: Option<usize>) {
        let is_meant = |other: usize| alarm.is_none_or(|alarm| alarm == other);
        self.alarms.retain(|(_, set)| !is_meant(*set));
        if matches!(self.pending, Some(Pending::Alarm(pending)) if is_meant(pending)) {
            self.pending = None;
        }
        // It may be set again, for a later time.
        if matches!(self.peeked, Some(Peeked::Alarm(peeked)) if is_meant(peeked)) {
            self.peeked = None;
        }
    }

    /// Whether an alarm is set.
    fn has(&self, alarm: usize) -> bool {
        self.alarms.iter().any(|(_, set)| *set == alarm)
    }

    /// Looks for the next event. The clock is asked where there is none, and from time to time.
    #[inline]
    fn find(
        &mut self,
        clock: impl FnOnce(bool) -> u64,
        event: impl Fn(&mut Port) -> Option<Event>,
    ) -> Option<Next> {
        self.looks = self.looks.wrapping_add(1);
        if !self.looks.is_multiple_of(EVENTS_PER_TIME)
            && let Some(event) = event(&mut self.port)
        {
            return Some(Next::Event(event));
        }
        if !self.alarms.is_empty() || self.port.deadline().is_some() || self.port.lags() {
            let now = clock(!self.alarms.is_empty());
            self.port.tick(now);
            let due = self.alarms.iter().min_by_key(|(at, _)| *at).filter(|(at, _)| *at <= now);
            if let Some(&(_, alarm)) = due {
                return Some(Next::Alarm(alarm));
            }
        }
        let next = event(&mut self.port).map(Next::Event);
        if next.is_none() {
            self.port.found_nothing();
        }
        next
    }

    /// [`Slot::due`].
    #[inline]
    pub fn due(&self) -> u64 {
        if self.port.lags() { SOON } else { self.port.deadline().unwrap_or(u64::MAX) }
    }

    /// When something is to be done though nothing arrives, in microseconds.
    pub fn deadline(&self) -> Option<u64> {
        self.alarms.iter().map(|(at, _)| *at).chain(self.port.deadline()).min()
    }
}

impl Slot {
    pub fn new(number: u8) -> Self {
        Self {
            number,
            state: Lock::new(State::Never { early: Vec::new() }),
            ready: AtomicBool::new(false),
            due: AtomicU64::new(u64::MAX),
            looks: AtomicUsize::new(0),
            claim: AtomicI32::new(NO_CLAIM),
            event: UnsafeCell::new((RecvEvent::plain(0), [0; 2])),
        }
    }

    /// The port's number.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// The state. No call into the core is made with it: handlers take it beneath the core's lock.
    #[inline]
    pub fn lock(&self) -> Locked<'_, State> {
        self.state.lock()
    }

    /// [`Lock::lock_at_exit`] for the state.
    pub fn lock_at_exit(&self, at_most: Duration) -> Option<Locked<'_, State>> {
        self.state.lock_at_exit(at_most)
    }

    /// Whether there is an event.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Acquire)
    }

    /// Notes whether there is an event.
    #[inline]
    pub fn set_ready(&self, ready: bool) {
        self.ready.store(ready, Ordering::Release);
    }

    /// Does this in a call of the program that looks for events, and goes on when there is one.
    #[inline]
    pub fn look(&self, look: impl FnOnce()) {
        self.looks.store(this_thread(), Ordering::Relaxed);
        look();
        self.looks.store(0, Ordering::Relaxed);
    }

    /// Whether such a call is under way.
    #[inline]
    pub fn looks(&self) -> bool {
        self.looks.load(Ordering::Relaxed) != 0
    }

    /// Whether such a call is under way in this thread. Then no other one takes events of the port.
    #[inline]
    pub fn looks_here(&self) -> bool {
        self.looks.load(Ordering::Relaxed) == this_thread()
    }

    /// When something of the port is to be done, in microseconds; [`SOON`]; the highest number:
    /// never.
    #[inline]
    pub fn due(&self) -> u64 {
        self.due.load(Ordering::Acquire)
    }

    /// Notes when something of the port is to be done.
    #[inline]
    pub fn set_due(&self, due: u64) {
        self.due.store(due, Ordering::Release);
    }

    /// Notes the claim that the port has from now on, or, before that is closed, none.
    pub fn set_claim(&self, claim: Option<&UnixListener>) {
        self.claim.store(claim.map_or(NO_CLAIM, AsRawFd::as_raw_fd), Ordering::Relaxed);
    }

    /// In a forked child: the parent alone has the claim, however long the child lives.
    pub fn forget_in_child(&self) {
        let claim = self.claim.swap(NO_CLAIM, Ordering::Relaxed);
        if claim != NO_CLAIM {
            // SAFETY: the child's copy of an open descriptor, whose owner the child has forgotten.
            unsafe { libc::close(claim) };
        }
    }

    /// Stores the event for the program, with a list of one message if it has one. Returns its
    /// address.
    ///
    /// # Safety
    /// The calling thread is the one that uses the port.
    pub unsafe fn store(&self, mut event: RecvEvent, list: Option<usize>) -> *mut RecvEvent {
        // SAFETY: the caller's promise.
        unsafe {
            let place = self.event.get();
            if let Some(message) = list {
                (*place).1 = [message, 0];
                event.message = (&raw const (*place).1).expose_provenance();
            }
            (*place).0 = event;
            &raw mut (*place).0
        }
    }
}
