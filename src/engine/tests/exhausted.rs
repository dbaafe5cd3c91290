//! Tasks that have no memory for a packet that another task waits for.

use super::calls::{Extras, enter, fence, forever, gfence, put};
use super::job::{self, Habits, Task, in_threads};
use crate::abi::LAPI_ERR_NO_CONNECTIVITY;
use crate::engine::transfer::send::send_control;
use crate::wire::packet::Head;
use std::sync::Arc;

fn two() -> Vec<Arc<Task>> {
    job::open(job::mem(2, 2, false), &Habits::STEPPED)
}

/// The task has sent the other one as much as the link takes, and has no memory for what must wait.
fn exhaust(task: &Task) {
    let mut held = enter(task);
    let core = held.core();
    while !core.outbox.waiting() {
        send_control(core, 1, &Head::Pong);
    }
    core.outbox.exhausted = true;
}

/// The other task would wait for it without end.
#[test]
fn a_task_ends_that_has_no_memory_for_its_part_of_an_exchange() {
    let tasks = two();
    exhaust(&tasks[0]);
    let mut held = enter(&tasks[0]);
    let core = held.core();
    let (collectives, outbox, mut wire) = core.collective();
    collectives.enter(Some(7), outbox, &mut wire);
    assert!(!core.has_failed());
    core.advance_collective();
    assert!(core.has_failed());
    drop(held);
    job::close(tasks);
}

#[test]
fn a_task_ends_that_has_no_memory_to_report_that_an_exchange_has_failed() {
    let tasks = two();
    exhaust(&tasks[0]);
    let mut held = enter(&tasks[0]);
    let core = held.core();
    core.outbox.exhausted = false;
    let (collectives, outbox, mut wire) = core.collective();
    collectives.enter(Some(7), outbox, &mut wire);
    core.outbox.exhausted = true;
    core.collectives.lose(1, LAPI_ERR_NO_CONNECTIVITY);
    core.advance_collective();
    assert!(core.has_failed());
    drop(held);
    job::close(tasks);
}

/// A fence packet needs no memory: every fence ends when there is room again.
#[test]
fn a_fence_ends_without_memory() {
    let tasks = two();
    let (there, data) = (forever(8).as_mut_ptr(), &*forever(8));
    put(&tasks[0], 1, there, data, Extras::default()).expect("a put");
    exhaust(&tasks[0]);
    in_threads(&tasks, 1, |task, _| {
        if task.me == 0 {
            fence(task).expect("a fence");
            fence(task).expect("another one");
            enter(task).core().outbox.exhausted = false;
        }
        gfence(task).expect("a fence of all");
    });
    job::close(tasks);
}
