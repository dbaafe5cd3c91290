//! Whether the dispatcher runs in a context, and in which handler of the program it is.
//!
//! Only this module records it. The thread that holds the context's lock writes it; any thread may
//! read it, without the lock too: a report names the reason why the lock is not free.

pub use crate::base::handler_runs::HandlerKind;
use crate::base::known_threads::this_thread;
use crate::transport::Inbound;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// The kinds of handlers that run with the context's lock held; of completion handlers, those
/// that run inline.
const KINDS: [HandlerKind; 4] =
    [HandlerKind::Header, HandlerKind::SendCompletion, HandlerKind::Completion, HandlerKind::Distribution];

impl HandlerKind {
    /// As a report calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Header => "a header handler",
            Self::SendCompletion => "a send completion handler",
            Self::Completion => "an inline completion handler",
            Self::Distribution => "a data distribution function",
        }
    }
}

/// What a context does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No thread runs the dispatcher.
    Outside,
    /// A thread runs the dispatcher, and is in no handler.
    Dispatching,
    /// A thread runs the dispatcher, which has called a handler of this kind.
    Handler(HandlerKind),
}

/// The upper byte of a word has the kind, the others the handler's address.
const KIND: u32 = 56;

/// The [`State`] of a context. Only the thread that holds the lock writes it, so each value is
/// right for that thread. No order between the values is needed for other readers: a report may be
/// a moment late.
pub struct Activity {
    /// The thread that runs the dispatcher; 0: no thread does.
    thread: AtomicUsize,
    /// The handler that runs; 0: none.
    handler: AtomicU64,
    /// How many handlers have begun: the same number means the same run.
    runs: AtomicU64,
    /// The packet that the round handles; null: it does something else. Of a round that is over it
    /// may be an old one.
    packet: AtomicPtr<Inbound>,
}

/// One run of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// What kind of handler.
    pub kind: HandlerKind,
    /// The handler's address.
    pub address: usize,
    /// Which run it is.
    pub number: u64,
}

impl Activity {
    pub(crate) const fn new() -> Self {
        Self {
            thread: AtomicUsize::new(0),
            handler: AtomicU64::new(0),
            runs: AtomicU64::new(0),
            packet: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The calling thread, which is `me`, begins a round of the dispatcher. `false`: a round is
    /// under way already, in this thread or in another one, and nothing has changed.
    #[inline]
    pub(crate) fn begin(&self, me: usize) -> bool {
        let free = self.thread.load(Ordering::Relaxed) == 0;
        if free {
            self.thread.store(me, Ordering::Relaxed);
        }
        free
    }

    /// The round that [`Self::begin`] began is over.
    #[inline]
    pub(crate) fn end(&self) {
        self.thread.store(0, Ordering::Relaxed);
    }

    /// The round handles this packet now, until it says that it handles none: a packet is there
    /// for no longer, and a fault that comes later, in a network's library, is not about it.
    #[inline]
    pub(crate) fn handles(&self, packet: *const Inbound) {
        self.packet.store(packet.cast_mut(), Ordering::Relaxed);
    }

    /// The packet that the calling thread handles, further up its stack: for the
    /// description of a fault.
    pub fn packet(&self) -> Option<*const Inbound> {
        let packet = self.packet.load(Ordering::Relaxed).cast_const();
        (self.here() && !packet.is_null()).then_some(packet)
    }

    /// Calls a handler of the program, from inside of a round.
    #[inline(always)]
    pub(crate) fn run<R>(&self, kind: HandlerKind, address: usize, handler: impl FnOnce() -> R) -> R {
        debug_assert!(self.here(), "handlers run in a round of the dispatcher only");
        // A handler may scatter data by a data distribution function.
        let before = self.handler.load(Ordering::Relaxed);
        self.runs.store(self.runs.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.handler.store((kind as u64) << KIND | address as u64, Ordering::Relaxed);
        let result = handler();
        self.handler.store(before, Ordering::Relaxed);
        result
    }

    /// What the context does.
    pub fn state(&self) -> State {
        match (self.thread(), self.now()) {
            (0, _) => State::Outside,
            (_, None) => State::Dispatching,
            (_, Some(run)) => State::Handler(run.kind),
        }
    }

    /// Whether the state is another one than [`State::Outside`].
    #[inline]
    pub fn busy(&self) -> bool {
        self.thread() != 0
    }

    /// Whether the calling thread runs the dispatcher: a call that it makes now comes
    /// from a handler.
    #[inline]
    pub fn here(&self) -> bool {
        let thread = self.thread();
        thread != 0 && thread == this_thread()
    }

    /// The thread that runs the dispatcher; 0: none.
    #[inline]
    pub fn thread(&self) -> usize {
        self.thread.load(Ordering::Relaxed)
    }

    /// The handler that runs, if one does.
    pub fn now(&self) -> Option<Run> {
        let number = self.runs.load(Ordering::Relaxed);
        let handler = self.handler.load(Ordering::Relaxed);
        let kind = KINDS.into_iter().find(|kind| *kind as u64 == handler >> KIND)?;
        Some(Run { kind, address: (handler & ((1 << KIND) - 1)) as usize, number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_entered_once_and_knows_its_handler() {
        let activity = Activity::new();
        assert_eq!((activity.state(), activity.here()), (State::Outside, false));
        assert!(activity.begin(this_thread()));
        assert!(!activity.begin(this_thread()), "a round is under way");
        assert_eq!((activity.state(), activity.here()), (State::Dispatching, true));
        activity.run(HandlerKind::Header, 0x1234, || {
            assert_eq!(activity.state(), State::Handler(HandlerKind::Header));
            assert_eq!(activity.now().map(|run| run.address), Some(0x1234));
            activity.run(HandlerKind::Distribution, 0x10, || {
                assert_eq!(activity.state(), State::Handler(HandlerKind::Distribution));
            });
            assert_eq!(activity.state(), State::Handler(HandlerKind::Header));
        });
        assert_eq!(activity.state(), State::Dispatching);
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(activity.busy() && !activity.here() && !activity.begin(this_thread())));
        });
        activity.end();
        assert_eq!((activity.state(), activity.now()), (State::Outside, None));
    }
}
