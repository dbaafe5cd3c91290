//! Collective calls of several steps, which begin only when all tasks make the same one.

use super::Port;
use openlapi::abi::LAPI_ERR_UNKNOWN;
use openlapi::api::{address, fence};
use openlapi::error::{Error, Result};
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

/// What a collective call is about.
#[derive(Clone, Copy)]
pub enum CollectiveKind {
    Exchange = 1,
    Window,
    Counter,
    Free,
    Begin,
    End,
}

impl CollectiveKind {
    fn name(self) -> &'static str {
        match self {
            Self::Exchange => "an exchange",
            Self::Window => "the making of a window",
            Self::Counter => "the making of a counter",
            Self::Free => "the freeing of a window",
            Self::Begin => "the beginning of an exclusive access",
            Self::End => "the end of an exclusive access",
        }
    }
}

/// The steps of one collective call.
pub struct Step<'a>(&'a Port);

impl Step<'_> {
    /// Every task gives a number and gets those of all, by task.
    ///
    /// # Errors
    /// As the man page of LAPI_Address_init64 says.
    pub fn exchange(&self, value: u64) -> Result<Vec<u64>> {
        address::exchange(&mut self.0.enter()?, value)
    }

    /// A fence of all tasks.
    ///
    /// # Errors
    /// As the man page of LAPI_Gfence says.
    pub fn gfence(&self) -> Result<()> {
        fence::gfence(&mut self.0.enter()?)
    }

    /// A number that all tasks agree on, and that none of them has used.
    ///
    /// # Errors
    /// The errors of [`Self::exchange`].
    pub fn number(&self) -> Result<u64> {
        let proposed = self.exchange(self.0.next.load(Ordering::Relaxed))?;
        let number = proposed.into_iter().max().unwrap_or(1);
        self.0.next.store(number + 1, Ordering::Relaxed);
        Ok(number)
    }
}

impl Port {
    /// This thread's turn to make a collective call.
    pub(super) fn turn(&self, what: &str) -> Result<MutexGuard<'_, ()>> {
        // A handler must not wait for the turn of a thread that waits for the dispatcher.
        drop(self.enter_to_wait(what)?);
        Ok(self.turn.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A collective call of several steps. It begins only when all tasks make the same one: of this
    /// kind, with this number.
    pub(crate) fn collectively<R>(
        &self,
        kind: CollectiveKind,
        number: u64,
        steps: impl FnOnce(&Step<'_>) -> Result<R>,
    ) -> Result<R> {
        let _turn = self.turn(kind.name())?;
        let step = Step(self);
        let tag = (kind as u64) << 56 | (number & ((1 << 56) - 1));
        let tags = step.exchange(tag)?;
        if let Some(other) = tags.iter().position(|other| *other != tag) {
            let what = kind.name();
            let detail =
                format!("task {} is in {what}, task {other} in another collective call", self.task());
            return Err(Error::new(LAPI_ERR_UNKNOWN, detail));
        }
        steps(&step)
    }
}
