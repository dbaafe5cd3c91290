//! Which handler of the program runs with the lock held: for who wants to know why the lock cannot be had.

use std::sync::atomic::{AtomicU64, Ordering};

/// What kind of handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A header handler.
    Header = 1,
    /// A send completion handler.
    SendCompletion = 2,
    /// A completion handler that runs inline.
    Completion = 3,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Header, Self::SendCompletion, Self::Completion];

    /// As a report calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Header => "a header handler",
            Self::SendCompletion => "a send completion handler",
            Self::Completion => "an inline completion handler",
        }
    }
}

/// The upper byte of a word has the kind, the others the handler's address.
const KIND: u32 = 56;

/// The handler that runs, as the thread that holds the lock says it; others only read. Each value makes sense by itself, so
/// no order between them is needed.
pub struct Running {
    /// 0: none.
    what: AtomicU64,
    /// How many have begun: the same number, the same run.
    runs: AtomicU64,
}

/// One run of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// What kind of handler.
    pub kind: Kind,
    /// Where it stands.
    pub address: usize,
    /// Which run it is.
    pub number: u64,
}

impl Running {
    pub(crate) fn new() -> Self {
        Self { what: AtomicU64::new(0), runs: AtomicU64::new(0) }
    }

    /// A handler begins. The answer belongs to [`Self::leave`].
    #[inline]
    pub(crate) fn enter(&self, kind: Kind, address: usize) -> u64 {
        let before = self.what.load(Ordering::Relaxed);
        self.runs.store(self.runs.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.what.store((kind as u64) << KIND | address as u64, Ordering::Relaxed);
        before
    }

    /// It has returned: what ran before runs again.
    #[inline]
    pub(crate) fn leave(&self, before: u64) {
        self.what.store(before, Ordering::Relaxed);
    }

    /// The handler that runs, if one does.
    pub fn now(&self) -> Option<Run> {
        let number = self.runs.load(Ordering::Relaxed);
        let what = self.what.load(Ordering::Relaxed);
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u64 == what >> KIND)?;
        Some(Run { kind, address: (what & ((1 << KIND) - 1)) as usize, number })
    }
}
