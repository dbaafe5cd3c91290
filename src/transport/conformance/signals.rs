//! Numbers that tasks give each other without a packet, where the transport can do that. Where it
//! cannot, it says so each time.

use super::partings::reconnect;
use super::support::{Deadline, readable};
use crate::transport::conformance::Calls;
use crate::transport::{Task, Transport};

pub(super) fn suite<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    are_found(make);
    wake_a_sleeper(make);
    reach_no_task_that_has_left(make);
}

/// The ends of a job in which tasks can give each other numbers.
fn ends<T: Transport>(make: &impl Fn(u32) -> Vec<T>, tasks: u32) -> Option<Vec<T>> {
    let mut ends = make(tasks);
    let can = ends[0].signal(1, 7);
    assert_eq!(ends[1].signalled(0, 7), can);
    can.then(|| make(tasks))
}

/// Of each sender, the last even and the last odd number.
fn are_found<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let Some(mut ends) = ends(make, 3) else { return };
    assert!((0..4).all(|number| !ends[0].signalled(1, number) && !ends[0].signalled(2, number)));
    for number in [u32::MAX - 2, u32::MAX - 1, u32::MAX, 0, 1, 2, 3, 1 << 31] {
        assert!(ends[1].signal(0, number));
        assert!(ends[0].signalled(1, number) && ends[0].signalled(1, number), "it stays there");
        assert!(!ends[0].signalled(1, number.wrapping_sub(2)), "another one has its place");
        assert!(!ends[0].signalled(2, number) && !ends[2].signalled(1, number), "between two tasks");
        assert!(!ends[1].signalled(0, number), "and in one direction");
    }
    assert!(ends[0].signalled(1, 3), "an odd number before an even one");
    assert!(ends.iter_mut().all(|end| end.recv().is_none()), "a packet");
}

/// A number keeps no task from sleeping, and wakes one that sleeps.
fn wake_a_sleeper<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let Some(mut ends) = ends(make, 2) else { return };
    for number in 0..10 {
        let deadline = Deadline::new("it may sleep");
        while !ends[0].arm() {
            deadline.check();
            assert!(ends[0].recv().is_none(), "nothing was sent");
        }
        assert!(!ends[0].signalled(1, number));
        assert!(ends[1].signal(0, number));
        let deadline = Deadline::new("it wakes");
        while !readable(&ends[0]) {
            deadline.check();
        }
        assert!(ends[0].signalled(1, number));
        ends[0].disarm();
    }
}

fn reach_no_task_that_has_left<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let Some(mut ends) = ends(make, 3) else { return };
    assert!(ends[1].signal(0, 5));
    ends[1].close();
    assert!(!ends[0].signal(1, 5));
    assert!(ends[0].signalled(1, 5), "what it gave before it left");
    assert!(ends[0].signal(2, 5));
}

/// Tasks that have parted give each other none, and find none of before when they are
/// connected again.
pub(super) fn are_forgotten<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let Some(mut ends) = ends(make, 2) else { return };
    for (first, second) in [(0, 1), (1, 0)] {
        for number in [4, 5] {
            assert!(ends[first].signal(second as Task, number) && ends[second].signal(first as Task, number));
        }
        ends[first].part(second as Task);
        assert!(!ends[first].signal(second as Task, 6) && !ends[first].signalled(second as Task, 4));
        // The other one need not know of it.
        ends[second].signal(first as Task, 6);
        ends[second].part(first as Task);
        reconnect(&mut ends, first, second);
        for number in 4..8 {
            assert!((0..2).all(|end| !ends[end].signalled(1 - end as Task, number)), "number {number}");
        }
        assert!(ends[first].signal(second as Task, 7) && ends[second].signal(first as Task, 7));
        assert!((0..2).all(|end| ends[end].signalled(1 - end as Task, 7)));
    }
}
