//! A task that is purged and resumed by another one, and has not purged that one: one that has
//! begun with the job, and one that has taken the place of another process.

use super::calls::{Extras, counter, enter, forever, gfence, put};
use super::failure::start_everything;
use super::job::{self, Habits, Task, in_threads};
use super::recovery::{all_is_well, ends, habits, look, purge, resume, settle};
use crate::abi::LAPI_ERR_NO_CONNECTIVITY;
use crate::api::address;
use crate::base::rng::Rng;
use crate::engine::context::membership::Standing;
use crate::engine::progress::lost_peers;
use crate::proto::tests::seeds;
use std::sync::Arc;
use std::time::Duration;

/// One task purges another one and resumes it, in the middle of everything: the other
/// one learns of it.
fn part_alone(tasks: &[Arc<Task>], replaces: bool, waits: bool, rng: &mut Rng) {
    if replaces {
        enter(&tasks[1]).core().membership.join_at(0);
    }
    start_everything(&tasks[0], 1, Default::default());
    if waits {
        start_everything(&tasks[1], 0, Default::default());
    }
    for _ in 0..rng.below(40) {
        tasks[rng.below(3) as usize].step();
    }
    if !waits {
        settle(tasks);
    }
    purge(&tasks[0], 1);
    resume(&tasks[0], 1);
    tasks[1].reported.lock().clear();
    start_everything(&tasks[0], 1, Default::default());
    if waits {
        // It is refused, and reported later, where it is known that the other one takes nothing.
        let extras = Extras { cmpl_cntr: Some(counter()), ..Extras::default() };
        let refused = put(&tasks[1], 0, forever(8).as_mut_ptr(), &*forever(8), extras).err();
        assert!(refused.is_none_or(|error| error.code == LAPI_ERR_NO_CONNECTIVITY));
    }
    for _ in 0..200 {
        lost_peers::look_after_peers(&mut enter(&tasks[1]));
        tasks[1].step();
    }
    let reports = tasks[1].reports();
    assert_eq!(reports.len(), usize::from(waits), "{reports:?}");
    for report in reports {
        assert_eq!((report.code, report.src), (LAPI_ERR_NO_CONNECTIVITY, 0));
    }
}

/// From seeds, runs `then` where task 0 has purged and resumed task 1, which may have taken the
/// place of another process.
fn after_parting(replaces: bool, then: impl Fn(&[Arc<Task>])) {
    seeds(20, |seed| {
        for waits in [true, false] {
            let mut rng = Rng::new(seed);
            let (ends, _, plan) = ends(3, &mut rng, seed);
            println!("{plan:?}, waits: {waits}");
            let tasks = job::open(ends, &habits(&mut rng));
            part_alone(&tasks, replaces, waits, &mut rng);
            then(&tasks);
            job::close(tasks);
        }
    });
}

/// Tasks 0 and 1 connect again, and everything works between them and with task 2.
fn meet_again(tasks: &[Arc<Task>]) {
    look(tasks);
    look(tasks);
    settle(tasks);
    for (from, to) in [(0, 1), (1, 0), (2, 1), (0, 2)] {
        all_is_well(tasks, from, to);
    }
}

/// A program that has begun with the job does its part itself.
#[test]
fn a_task_that_was_purged_alone_learns_of_it_and_begins_again() {
    after_parting(false, |tasks| {
        assert_eq!(enter(&tasks[0]).core().membership.standing(1), Standing::Rejoining);
        purge(&tasks[1], 0);
        resume(&tasks[1], 0);
        meet_again(tasks);
        assert_eq!((tasks[0].reports(), tasks[2].reports()), (Vec::new(), Vec::new()));
    });
}

/// A process that has taken the place of another one connects again without its program, once
/// or more often.
#[test]
fn a_new_process_that_is_purged_is_connected_again() {
    after_parting(true, |tasks| {
        for round in 0..2 {
            if round != 0 {
                purge(&tasks[0], 1);
                resume(&tasks[0], 1);
                lost_peers::look_after_peers(&mut enter(&tasks[1]));
            }
            meet_again(tasks);
        }
        assert_eq!((tasks[0].reports(), tasks[2].reports()), (Vec::new(), Vec::new()));
        // Its program has purged the other one now: that does its part itself from now on.
        purge(&tasks[1], 0);
        resume(&tasks[1], 0);
        purge(&tasks[0], 1);
        resume(&tasks[0], 1);
        look(tasks);
        look(tasks);
        settle(tasks);
        all_is_well(tasks, 1, 0);
        purge(&tasks[0], 1);
        resume(&tasks[0], 1);
        lost_peers::look_after_peers(&mut enter(&tasks[1]));
        look(tasks);
        assert_eq!(enter(&tasks[0]).core().membership.standing(1), Standing::Rejoining);
        assert!(!enter(&tasks[1]).core().membership.connects_again(0));
        assert!(enter(&tasks[1]).core().transport.standing(0).has_parted);
        purge(&tasks[1], 0);
        resume(&tasks[1], 0);
        meet_again(tasks);
    });
}

/// A new process is in a collective call, of several rounds, when another task purges and resumes
/// it: the call goes on.
#[test]
fn a_collective_call_goes_on_when_a_new_process_is_connected_again() {
    for (tasks, hosts) in [(2, 1), (3, 1), (5, 1), (6, 2), (7, 3)] {
        for purging in 0..tasks {
            let habits = Habits { hosts, ..Habits::THREADED };
            let tasks = job::open(job::mem(tasks, 8, false), &habits);
            let new = (purging + 1) % tasks.len() as u32;
            enter(&tasks[new as usize]).core().membership.join_at(0);
            in_threads(&tasks, 1, move |task, _| {
                if task.me == purging {
                    // The others have gone as far as they can without this task.
                    std::thread::sleep(Duration::from_millis(20));
                    purge(task, new);
                    resume(task, new);
                }
                let mut held = enter(task);
                let values = address::exchange(&mut held, u64::from(task.me) + 7).expect("an exchange");
                drop(held);
                assert_eq!(values, (0..values.len() as u64).map(|of| of + 7).collect::<Vec<_>>());
                gfence(task).expect("a fence of all tasks");
            });
            assert!(tasks.iter().all(|task| task.reports().is_empty()));
            job::close(tasks);
        }
    }
}
