//! Counters that other tasks increment.

use crate::port::{CollectiveKind, Port, purged};
use openlapi::abi::{LAPI_ERR_CNTR_VAL, lapi_cntr_t};
use openlapi::api::progress;
use openlapi::error::{Error, Result};
use std::sync::Arc;

/// One counter of each task, which puts and messages to that task increment when their data is
/// in place there.
///
/// Its memory is kept for the rest of the process, because another task may still increment it.
#[derive(Debug)]
pub struct TargetCounter {
    port: Arc<Port>,
    own: usize,
    /// The counter's address in each task, and in which life of the task.
    remote: Box<[(u64, u32)]>,
}

impl TargetCounter {
    /// Makes a counter that stands at 0. All tasks call this.
    ///
    /// # Errors
    /// `LAPI_ERR_UNKNOWN`: called in a header handler, or another task makes another
    /// collective call.
    pub fn new(port: &Arc<Port>) -> Result<Self> {
        let own = Box::into_raw(Box::new(lapi_cntr_t::new(0))) as usize;
        // The lives before the addresses: what is purged after this is refused.
        let (lives, addresses) = port.collectively(CollectiveKind::Counter, 0, |step| {
            Ok((port.lives(), step.exchange(own as u64)?))
        })?;
        Ok(Self { port: port.clone(), own, remote: addresses.into_iter().zip(lives).collect() })
    }

    /// The value of this task's counter. Makes progress (LAPI_Getcntr).
    ///
    /// # Errors
    /// `LAPI_ERR_HNDL_INVALID`: the context has ended.
    pub fn get(&self) -> Result<i32> {
        // SAFETY: made from a box that is never freed.
        Ok(unsafe { progress::getcntr(&mut self.port.enter()?, self.own) })
    }

    /// Waits until this task's counter has reached `value`, and subtracts that; returns what is
    /// left (LAPI_Waitcntr).
    ///
    /// It waits for ever if the tasks that were to increment it do not: a task that may be lost is
    /// waited for by [`Self::get`] in a loop.
    ///
    /// # Errors
    /// `LAPI_ERR_CNTR_VAL`: the value is 0 or more than a counter holds. `LAPI_ERR_UNKNOWN`: called
    /// in a header handler.
    pub fn wait(&self, value: u32) -> Result<i32> {
        let value = i32::try_from(value).ok().filter(|&value| value > 0);
        let value = value.ok_or_else(|| Error::from(LAPI_ERR_CNTR_VAL))?;
        // SAFETY: made from a box that is never freed.
        unsafe { progress::waitcntr(&mut self.port.enter_to_wait("a wait for a counter")?, self.own, value) }
    }

    /// The counter of a task, for an operation of this context.
    pub(crate) fn address(&self, port: &Port, task: u32) -> Result<u64> {
        self.port.check_same(port, "the counter")?;
        let life = self.port.life(task)?;
        let (address, then) = self.remote[task as usize];
        if life == then { Ok(address) } else { Err(purged(task)) }
    }
}
