//! Failures that no call can return.

use super::events::Failure;
use super::{Context, Core, Held};
use crate::abi::lapi_err_t;
use crate::base::clock::{self, elapsed};
use crate::base::known_threads::this_thread;
use crate::error::Error;
use crate::transport::{Task, Want};
use std::time::{Duration, Instant};

/// How long calls wait for an error handler of another thread, at most. It may itself wait for what
/// such a call's thread holds.
pub const HANDLER_TIME: Duration = Duration::from_secs(1);

/// An error handler that runs because a peer is lost.
#[derive(Debug)]
struct LossReport {
    thread: usize,
    peer: Task,
    /// Whether the loss has ended operations of this task alone, or a collective one only.
    ends_operations: bool,
    begun: Instant,
}

/// The reports of lost peers that the session's owner gets just now. Calls that such a loss has
/// ended wait for them, so that the program knows why when they return.
#[derive(Debug, Default)]
pub struct LossReports {
    reports: Vec<LossReport>,
}

impl LossReports {
    /// Whether no report is to be waited for.
    #[inline]
    pub fn are_made(&self) -> bool {
        self.reports.is_empty()
    }

    /// Until when a fence waits for reports that other threads make of losses that have ended
    /// operations of this task; `None`: there is none to wait for.
    #[inline]
    pub fn due_to_fences(&self) -> Option<Instant> {
        if self.are_made() { None } else { self.due(|report| report.ends_operations) }
    }

    /// Until when a collective operation that has failed because of this peer waits for the report
    /// of its loss.
    pub fn due_to_failure(&self, peer: Task) -> Option<Instant> {
        self.due(|report| report.peer == peer)
    }

    /// A thread that makes a report itself does not wait for others, which may wait for it.
    #[cold]
    fn due(&self, concerns: impl Fn(&LossReport) -> bool) -> Option<Instant> {
        let (thread, now) = (this_thread(), clock::now());
        if self.reports.iter().any(|report| report.thread == thread) {
            return None;
        }
        let awaited = self.reports.iter().filter(|report| concerns(report));
        awaited.map(|report| report.begun + HANDLER_TIME).filter(|due| *due > now).max()
    }
}

impl Context {
    /// [`Self::report`] of a peer that is lost; `ends_operations`: with operations of this task,
    /// and not just a collective one. Calls of other threads that the loss has ended return when
    /// this is over, or after [`HANDLER_TIME`].
    pub fn report_loss(
        &self,
        held: &mut Held<'_>,
        (kind, peer): (lapi_err_t, Task),
        ends_operations: bool,
        error: &Error,
    ) {
        let (thread, begun) = (this_thread(), clock::now());
        held.core().loss_reports.reports.push(LossReport { thread, peer, ends_operations, begun });
        self.report(held, kind, peer, error);
        let core = held.core();
        let reports = &mut core.loss_reports.reports;
        if let Some(at) = reports.iter().position(|report| (report.thread, report.peer) == (thread, peer)) {
            reports.swap_remove(at);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_wait_for_the_reports_that_concern_them_and_not_for_long() {
        let (own, now) = (this_thread(), clock::now());
        let report =
            |thread, peer, ends_operations, begun| LossReport { thread, peer, ends_operations, begun };
        let of = |reports| LossReports { reports };
        let due = Some(now + HANDLER_TIME);
        assert_eq!(LossReports::default().due_to_fences(), None);

        // What ended was a collective operation: fences have nothing to do with it.
        let collective = of(vec![report(own + 1, 3, false, now)]);
        assert_eq!((collective.due_to_fences(), collective.due_to_failure(3)), (None, due));
        assert_eq!(collective.due_to_failure(4), None);

        let both = of(vec![report(own + 1, 3, true, now), report(own + 2, 4, false, now)]);
        assert_eq!((both.due_to_fences(), both.due_to_failure(4)), (due, due));

        if let Some(long_ago) = now.checked_sub(HANDLER_TIME) {
            let late = of(vec![report(own + 1, 3, true, long_ago)]);
            assert_eq!((late.due_to_fences(), late.due_to_failure(3)), (None, None));
        }
        let nested = of(vec![report(own + 1, 3, true, now), report(own, 4, true, now)]);
        assert_eq!((nested.due_to_fences(), nested.due_to_failure(3)), (None, None));
    }
}
