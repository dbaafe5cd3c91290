//! Failures that no call can return.

use super::events::Failure;
use super::{Context, Core, Held};
use crate::abi::lapi_err_t;
use crate::base::clock::{self, elapsed};
use crate::error::Error;
use crate::transport::{Task, Want};
use std::time::Duration;

impl Context {
    /// Reports a failure that no call can return to whoever has opened the session (the manual's
    /// chapter 5, error handler). The lock is never held meanwhile, not even the program's or that
    /// of a handler which has made the call.
    pub fn report(&self, held: &mut Held<'_>, kind: lapi_err_t, src: Task, error: &Error) {
        let options = &held.core().options;
        let (task, events) = (options.me, options.events.clone());
        let failure = Failure { error, kind, task, source: src };
        if events.ends_by(&failure) {
            last_notices(held.core());
            return held.core().end();
        }
        held.without_lock(|| events.failed(self, &failure));
    }
}

/// How long a task that ends because of an error serves its transport, at least and at most.
const LAST_NOTICES: (Duration, Duration) = (Duration::from_millis(150), Duration::from_millis(400));

/// The error may be the death of a task of which other hosts learn by this task only.
fn last_notices(core: &mut Core) {
    let start = clock::now();
    while core.keeps_time()
        && (elapsed(start) < LAST_NOTICES.0
            || core.transport.tally().outstanding != 0 && elapsed(start) < LAST_NOTICES.1)
    {
        core.transport.want(Want::Serve);
        clock::sleep(Duration::from_millis(1));
    }
}
