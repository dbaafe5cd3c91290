//! Messages whose parts are registered in several batches: what a task does between two of them,
//! and requests for batches that no correct task sends.

use super::calls::{counter, enter};
use super::job::{self, MAX_BODY, Task};
use super::keyed::{End, two_in_batches};
use super::malformed::inject;
use super::parts::Trial;
use super::recovery::{purge, settle};
use crate::base::rng::Rng;
use crate::engine::context::request::Hint;
use crate::proto::pieces::MOST;
use crate::transport::testing::mem::{MemOptions, NetworkHandle};
use crate::wire::packet::Head;
use std::sync::Arc;

const LONG_PIECES: usize = 20;

/// Two tasks that register this number of parts at a time, and operations of task 0 with
/// [`LONG_PIECES`] parts each, which have begun.
fn begun(options: MemOptions, batch: usize, hint: Hint) -> (Vec<Arc<Task>>, NetworkHandle, Trial) {
    let mut rng = Rng::new(17);
    let (tasks, handle) = two_in_batches(MemOptions { capacity: 64, ..options }, batch);
    let lens = [2 * MAX_BODY; LONG_PIECES];
    let mut trial = Trial::new(3, &lens, &lens, &mut rng);
    trial.start(&tasks[0], [(); 3].map(|()| counter()), hint);
    (tasks, handle, trial)
}

/// How many copies of a task wait for parts. The count of those whose accesses are
/// under way is exact.
fn awaiting(task: &Task) -> usize {
    let mut held = enter(task);
    let core = held.core();
    let accessing = core.copies.iter().filter(|copy| !copy.waits.is_empty()).count();
    assert_eq!(core.copies.waiting(), accessing);
    assert!(core.copies.awaiting_parts().all(|copy| copy.waits.is_empty()));
    core.copies.awaiting_parts().count()
}

/// Whether a task has work, and whether LAPI_Term would wait.
fn busy(task: &Task) -> (bool, bool) {
    let mut held = enter(task);
    let core = held.core();
    (core.has_work(), core.is_sending())
}

/// A task that has asked for parts has nothing to do until they come: its threads may sleep.
/// LAPI_Term waits for them, unless their origin has left.
#[test]
fn a_task_that_awaits_parts_has_no_work() {
    for pending in [false, true] {
        let (tasks, handle, _) = begun(MemOptions { pending, ..job::KEYED }, 2, Hint::None);
        let asked = (0..1000).any(|_| {
            tasks[1].step();
            awaiting(&tasks[1]) == 4
        });
        assert!(asked, "all four operations are between two batches");
        assert_eq!(busy(&tasks[1]), (false, true), "the origin is there");
        assert_eq!(enter(&tasks[1]).core().copies.iter().count(), 0);
        handle.kill(0);
        (0..50).for_each(|_| _ = tasks[1].step());
        assert_eq!((awaiting(&tasks[1]), busy(&tasks[1])), (4, (false, false)), "the origin is dead");
        purge(&tasks[1], 0);
        assert_eq!((awaiting(&tasks[1]), handle.registrations()), (0, 0));
        job::close(tasks);
    }
}

/// All batches are registered as the program's hint says.
#[test]
fn every_batch_is_registered_for_one_rail() {
    for (hint, one_rail) in [(Hint::Bulk, false), (Hint::BulkOneRail, true)] {
        let (tasks, handle, trial) = begun(job::KEYED, 2, hint);
        let mut batches = 0;
        while !enter(&tasks[0]).core().ops.is_empty() {
            batches += awaiting(&tasks[1]);
            let all = if one_rail { handle.registrations() } else { 0 };
            assert_eq!(handle.registrations_for_one_rail(), all);
            tasks.iter().for_each(|task| _ = task.step());
        }
        assert!(batches >= LONG_PIECES, "{batches}");
        settle(&tasks);
        trial.check("by one rail or several");
        assert_eq!(handle.registrations(), 0);
        job::close(tasks);
    }
}

/// The cookies of the first four operations of a context.
fn cookies() -> impl Iterator<Item = u64> {
    (1..=4).map(|slot| 1 << 32 | slot)
}

/// A request for the parts of no operation, and for parts after the last ones: nothing is
/// withdrawn, and the messages arrive.
#[test]
fn requests_for_parts_that_do_not_exist_are_dropped() {
    let (tasks, handle, trial) = begun(job::KEYED, MOST, Hint::Bulk);
    let registered = handle.registrations();
    assert_eq!(registered, 4 * LONG_PIECES);
    for (before, cookie) in cookies().chain([1 << 32 | 99, 0]).enumerate() {
        inject(&tasks, &Head::NextParts { cookie }, &[]);
        assert_eq!((tasks[0].reports().len(), handle.registrations()), (before + 1, registered));
    }
    settle(&tasks);
    trial.check("after requests");
    assert_eq!((tasks[1].reports().len(), handle.registrations()), (0, 0));
    job::close(tasks);
}

/// Requests for a batch before the one before is over: the origin registers no more than one batch,
/// and when the peer is given up nothing is left.
#[test]
fn requests_for_parts_too_early_keep_nothing_registered() {
    const BATCH: usize = 2;
    for repeated in 1..=LONG_PIECES / BATCH + 2 {
        let (tasks, handle, _trial) = begun(job::KEYED, BATCH, Hint::Bulk);
        for _ in 0..repeated {
            for cookie in cookies() {
                inject(&tasks, &Head::NextParts { cookie }, &[]);
                assert!(handle.registrations() <= 4 * BATCH, "{} of them", handle.registrations());
            }
        }
        let none = 4 * repeated.saturating_sub(LONG_PIECES / BATCH - 1);
        assert_eq!(tasks[0].reports().len(), none, "those beyond the last batch");
        for step in 0..400 {
            tasks[step % 2].step();
            awaiting(&tasks[1]);
        }
        End::OriginPurges.happens(&tasks, &handle);
        End::OriginPurges.is_overcome(&tasks, &handle, &[1, 2, 3], &format!("{repeated} requests"));
        assert_eq!((awaiting(&tasks[1]), handle.registrations()), (0, 0));
        job::close(tasks);
    }
}
