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

fn signal(end: &mut impl Transport, peer: Task, number: u32) -> bool {
    end.door(peer).is_some_and(|door| door.signal(number))
}

fn signalled(end: &mut impl Transport, peer: Task, number: u32) -> bool {
    end.door(peer).is_some_and(|door| door.signalled(number))
}

/// The ends of a job in which tasks can give each other numbers.
fn ends<T: Transport>(make: &impl Fn(u32) -> Vec<T>, tasks: u32) -> Option<Vec<T>> {
    let mut ends = make(tasks);
    let can = signal(&mut ends[0], 1, 7);
    assert_eq!(signalled(&mut ends[1], 0, 7), can);
    can.then(|| make(tasks))
}

/// Of each sender, the last even and the last odd number.
fn are_found<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let Some(mut ends) = ends(make, 3) else { return };
    assert!((0..4).all(|number| !signalled(&mut ends[0], 1, number) && !signalled(&mut ends[0], 2, number)));
    for number in [u32::MAX - 2, u32::MAX - 1, u32::MAX, 0, 1, 2, 3, 1 << 31] {
        assert!(signal(&mut ends[1], 0, number));
        assert!(signalled(&mut ends[0], 1, number) && signalled(&mut ends[0], 1, number), "it stays there");
        assert!(!signalled(&mut ends[0], 1, number.wrapping_sub(2)), "another one has its place");
        assert!(
            !signalled(&mut ends[0], 2, number) && !signalled(&mut ends[2], 1, number),
            "between two tasks"
        );
        assert!(!signalled(&mut ends[1], 0, number), "and in one direction");
    }
    assert!(signalled(&mut ends[0], 1, 3), "an odd number before an even one");
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
        assert!(!signalled(&mut ends[0], 1, number));
        assert!(signal(&mut ends[1], 0, number));
        let deadline = Deadline::new("it wakes");
        while !readable(&ends[0]) {
            deadline.check();
        }
        assert!(signalled(&mut ends[0], 1, number));
        ends[0].disarm();
    }
}

fn reach_no_task_that_has_left<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let Some(mut ends) = ends(make, 3) else { return };
    assert!(signal(&mut ends[1], 0, 5));
    ends[1].close();
    assert!(!signal(&mut ends[0], 1, 5));
    assert!(signalled(&mut ends[0], 1, 5), "what it gave before it left");
    assert!(signal(&mut ends[0], 2, 5));
}

/// Tasks that have parted give each other none, and find none of before when they are
/// connected again.
pub(super) fn are_forgotten<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let Some(mut ends) = ends(make, 2) else { return };
    for (first, second) in [(0, 1), (1, 0)] {
        for number in [4, 5] {
            assert!(
                signal(&mut ends[first], second as Task, number)
                    && signal(&mut ends[second], first as Task, number)
            );
        }
        ends[first].part(second as Task);
        assert!(
            !signal(&mut ends[first], second as Task, 6) && !signalled(&mut ends[first], second as Task, 4)
        );
        // The other one need not know of it.
        signal(&mut ends[second], first as Task, 6);
        ends[second].part(first as Task);
        reconnect(&mut ends, first, second);
        for number in 4..8 {
            assert!((0..2).all(|end| !signalled(&mut ends[end], 1 - end as Task, number)), "number {number}");
        }
        assert!(signal(&mut ends[first], second as Task, 7) && signal(&mut ends[second], first as Task, 7));
        assert!((0..2).all(|end| signalled(&mut ends[end], 1 - end as Task, 7)));
    }
}
