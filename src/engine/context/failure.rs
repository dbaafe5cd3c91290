//! Failures that no call can return.

use super::events::Failure;
use super::{Context, Core, Held};
use crate::abi::lapi_err_t;
use crate::base::clock::{self, elapsed};
use crate::base::known_threads::this_thread;
use crate::error::Error;
use crate::transport::{Task, Want};
use std::time::Duration;

/// The threads in which whoever has opened the session is told of a lost peer just now.
#[derive(Debug, Default)]
pub struct LossReports {
    threads: Vec<usize>,
}

impl LossReports {
    /// Whether a thread is to wait for the end of such a report, which another one makes: by then
    /// the program knows why an operation has ended that was not made. A thread that makes one
    /// itself does not wait for others, which may wait for it.
    #[inline]
    pub fn are_awaited(&self) -> bool {
        !self.threads.is_empty() && !self.threads.contains(&this_thread())
    }
}

impl Context {
    /// [`Self::report`] of a peer that is lost. Fences and failed collective calls of other threads
    /// return when it is over.
    pub fn report_loss(&self, held: &mut Held<'_>, kind: lapi_err_t, peer: Task, error: &Error) {
        let thread = this_thread();
        held.core().loss_reports.threads.push(thread);
        self.report(held, kind, peer, error);
        let core = held.core();
        let threads = &mut core.loss_reports.threads;
        if let Some(at) = threads.iter().position(|&reporting| reporting == thread) {
            threads.swap_remove(at);
        }
        core.waiters.note_news();
    }

    /// Reports a failure that no call can return to the session's owner (the manual's
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
