//! The place of a port: never opened, open, or closed.

use crate::abi::{RecvEvent, Status};
use crate::protocol::{Event, Port, Then};
use crate::wire::Header;
use std::cell::UnsafeCell;
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A port, or the place for one.
pub struct Slot {
    number: u8,
    state: Mutex<State>,
    /// Whether the program has an event to get.
    ready: AtomicBool,
    /// Whether something has ended whose memory the network still uses.
    lags: AtomicBool,
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
    /// What it does with others.
    pub port: Port,
    /// How many send tokens the program has given back, by priority.
    pub tokens: [u32; 2],
    /// Alarms: when, in microseconds, and the program's structure.
    pub alarms: Vec<(u64, usize)>,
    /// What gm_unknown does with the last event.
    pub pending: Option<Pending>,
    _claim: Option<UnixListener>,
}

/// What gm_unknown does.
#[derive(Clone, Copy, Debug)]
pub enum Pending {
    /// Calls this.
    Callback(Then, Status),
    /// Calls the function of this alarm.
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
        Self { port, tokens: [0; 2], alarms: Vec::new(), pending: None, _claim: claim }
    }

    /// Takes the next event.
    pub fn next(&mut self, now: impl FnOnce() -> u64) -> Option<Next> {
        if self.port.deadline().is_some() || self.port.lags() || !self.alarms.is_empty() {
            let now = now();
            self.port.tick(now);
            let due = self.alarms.iter().enumerate().min_by_key(|(_, (at, _))| *at);
            if let Some((place, &(at, alarm))) = due
                && at <= now
            {
                self.alarms.remove(place);
                return Some(Next::Alarm(alarm));
            }
        }
        self.port.next_event().map(Next::Event)
    }

    /// The next event, which stays.
    pub fn peek(&mut self, now: u64) -> Option<Next> {
        self.port.tick(now);
        let due = self.alarms.iter().min_by_key(|(at, _)| *at).filter(|(at, _)| *at <= now);
        let next = || self.port.peek().copied().map(Next::Event);
        due.map(|(_, alarm)| Next::Alarm(*alarm)).or_else(next)
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
            state: Mutex::new(State::Never { early: Vec::new() }),
            ready: AtomicBool::new(false),
            lags: AtomicBool::new(false),
            event: UnsafeCell::new((RecvEvent::plain(0), [0; 2])),
        }
    }

    /// The port's number.
    pub fn number(&self) -> u8 {
        self.number
    }

    /// The state. No call into the core is made with it: handlers take it beneath the core's lock.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Whether an event waits for the network, which still uses its memory.
    #[inline]
    pub fn lags(&self) -> bool {
        self.lags.load(Ordering::Acquire)
    }

    /// Notes whether an event waits for the network.
    #[inline]
    pub fn set_lags(&self, lags: bool) {
        self.lags.store(lags, Ordering::Release);
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
