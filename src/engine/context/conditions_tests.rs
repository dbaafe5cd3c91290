use super::*;
use std::sync::mpsc::channel;
use std::thread;

#[test]
fn a_signal_wakes_the_one_that_has_waited_longest() {
    let conditions = &Conditions::default();
    let (woken, order) = channel();
    let tickets = [1, 2, 1].map(|condition| conditions.join(condition));
    assert!(conditions.awaited(1) && conditions.awaited(2) && !conditions.awaited(3));
    thread::scope(|scope| {
        for (number, ticket) in tickets.iter().enumerate() {
            let woken = woken.clone();
            scope.spawn(move || {
                assert!(conditions.wait(ticket, None));
                woken.send(number).expect("the test looks");
            });
        }
        for (condition, expected) in [(1, 0), (2, 1), (1, 2)] {
            conditions.signal(3);
            conditions.signal(condition);
            assert_eq!(order.recv(), Ok(expected));
        }
    });
    assert!(!conditions.awaited(1));
    conditions.signal(1);
}

#[test]
fn a_time_that_has_passed_is_not_waited_for() {
    let conditions = Conditions::default();
    let ticket = conditions.join(1);
    assert!(!conditions.wait(&ticket, Some(SystemTime::UNIX_EPOCH)));
    assert!(!conditions.awaited(1));
    let ticket = conditions.join(1);
    assert!(!conditions.wait(&ticket, Some(SystemTime::now() + Duration::from_millis(20))));
    let ticket = conditions.join(1);
    conditions.signal(1);
    assert!(conditions.wait(&ticket, Some(SystemTime::UNIX_EPOCH)), "what came in time counts");
}

#[test]
fn the_end_wakes_every_waiter() {
    let conditions = &Conditions::default();
    let tickets = [1, 1, 2].map(|condition| conditions.join(condition));
    thread::scope(|scope| {
        for ticket in &tickets {
            scope.spawn(move || assert!(conditions.wait(ticket, None)));
        }
        conditions.end();
    });
    assert!(!conditions.awaited(1));
    assert!(conditions.over());
    conditions.begin();
    assert!(!conditions.over());
}
