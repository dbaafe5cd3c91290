//! Leaving the job for a checkpoint, and coming back.

use super::Port;
use openlapi::api::checkpoint;
use openlapi::error::Result;

impl Port {
    /// Leaves the job for a checkpoint (`lapi_checkpoint.h`): waits until all that this task has
    /// sent and all that others have sent to it is complete, handlers included, and parts from all
    /// other tasks. What they send from then on waits for [`Self::checkpoint_after`]. Until then
    /// this task's operations with other tasks, and collective calls, return
    /// `LAPI_ERR_TGT_PURGED`; windows and counters stay valid, and no other task reads or writes
    /// them.
    ///
    /// Other threads must not send meanwhile: what they have under way when the task leaves ends
    /// with an error, if the context has an error handler
    /// ([`Builder::on_error`](crate::Builder::on_error)).
    ///
    /// # Errors
    /// `LAPI_ERR_CKPT`: the task has left already, or another thread is in this call; a handler
    /// calls. `LAPI_ERR_HNDL_INVALID`: the context has ended.
    ///
    /// # Safety
    /// Other tasks go on with the addresses of this process's windows and counters. The task must
    /// come back as this process, or as a copy of it that a checkpointer has restored: if it ends
    /// before [`Self::checkpoint_after`], no other process may be started in its place.
    pub unsafe fn checkpoint_before(&self) -> Result<()> {
        let mut held = self.enter()?;
        checkpoint::before(&mut held)?;
        for task in (0..self.tasks()).filter(|&task| task != self.task) {
            self.end_awaited(task, self.life(task)?);
        }
        drop(held);
        self.wake();
        Ok(())
    }

    /// Comes back after [`Self::checkpoint_before`]: all tasks may rejoin, and what they have sent
    /// meanwhile arrives. Returns at once.
    ///
    /// # Errors
    /// `LAPI_ERR_CKPT`: the task has not left. `LAPI_ERR_SHM_SETUP`: the system lacks what is
    /// needed; the call may be repeated. `LAPI_ERR_HNDL_INVALID`: the context has ended.
    pub fn checkpoint_after(&self) -> Result<()> {
        checkpoint::after(&mut self.enter()?)
    }
}
