//! What the events of a context mean in a program of LAPI: the program's error handler is called,
//! and without one the process ends.

use crate::console;
use crate::report::bell::{self, Cause};
use crate::report::thread;
use openlapi::abi::LAPI_err_hndlr_p;
use openlapi::api::{Context, Events, Failure};

/// The exit status of a task that a failure ends: one of 128 and above makes the launcher end the
/// job.
const ENDED: i32 = 134;

/// What a program of LAPI has given to LAPI_Init for events.
pub struct LapiEvents {
    /// The program's error handler.
    pub error_handler: LAPI_err_hndlr_p,
}

impl Events for LapiEvents {
    fn ends_by(&self, failure: &Failure<'_>) -> bool {
        if self.error_handler.is_some() {
            return false;
        }
        let error = failure.error;
        console::log(format_args!("{error}; no error handler is registered: this task ends"));
        true
    }

    fn failed(&self, context: &Context, failure: &Failure<'_>) {
        let Some(handler) = self.error_handler else { return };
        let error = failure.error;
        if context.info_level() >= 1 {
            console::log(format_args!("{error}"));
        }
        let (mut code, mut kind) = (error.code, failure.kind);
        let (mut task, mut source) = (failure.task as i32, failure.source as i32);
        // SAFETY: the program's own function, with pointers that live during the call.
        unsafe { handler(context.handle_ptr(), &mut code, &mut kind, &mut task, &mut source) }
    }

    fn fatal(&self) {
        // `exit` would run the program's own exit functions under the context's lock.
        // SAFETY: _exit has no preconditions.
        unsafe { libc::_exit(ENDED) }
    }

    fn stalled(&self) {
        bell::ring(Cause::Stall);
    }

    fn closing(&self, context: &Context, wait: bool) {
        thread::dismiss(context, wait);
    }
}
