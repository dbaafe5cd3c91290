//! Sleepers and the threads that wake them: a consumer that sleeps on an empty ring, a producer
//! that sleeps on a full one, and both at once. The steps are those of `transport::shm`:
//! `try_send`, `release`, `arm`, `disarm`.

use super::ring::{End, HEAVY, LIGHT, ends};
use super::{Descriptor, check};
use crate::base::doorbell::Doorbell;
use crate::base::ring::{Consumer, Geometry, Producer, Room};
use crate::base::sync::{AtomicU32, Ordering};
use loom::thread;
use std::sync::Arc;

/// What others see of a task.
struct Task {
    doorbell: Doorbell,
    descriptor: Descriptor,
}

impl Task {
    fn new() -> Arc<Self> {
        Arc::new(Self { doorbell: Doorbell::new(), descriptor: Descriptor::new() })
    }

    /// Wakes the task if it must: there is something to do.
    fn notify(&self) {
        if self.doorbell.needs_wake(LIGHT) {
            self.descriptor.ring();
        }
    }

    /// Sleeps unless there is something to do.
    fn sleep(&self, busy: impl FnOnce() -> bool) {
        if self.doorbell.prepare_sleep(HEAVY, busy) {
            self.descriptor.sleep();
            self.doorbell.cancel();
        }
    }
}

/// Sends a packet; sleeps as long as there is no room.
fn send(producer: &mut End<Producer>, me: &Task, peer: &Task, number: u64, len: usize) {
    while producer.push(number, len).is_err() {
        let shortage = producer.end.shortage();
        producer.end.ask_for_room();
        me.sleep(|| producer.end.room_since(shortage));
    }
    peer.notify();
}

/// Receives a packet; sleeps as long as there is none.
fn receive(consumer: &mut End<Consumer>, me: &Task, peer: &Task, number: u64, len: usize) {
    loop {
        match consumer.take(number, len) {
            Some(Room::Wanted) => return peer.notify(),
            Some(Room::Unasked) => return,
            None => me.sleep(|| consumer.end.ready()),
        }
    }
}

/// Two tasks: one sends `packets` packets of length `len` to the other.
fn one_way(preemptions: usize, geometry: Geometry, packets: u64, len: usize) {
    check(preemptions, move || {
        let (mut producer, mut consumer) = ends(geometry);
        let (sender, receiver) = (Task::new(), Task::new());
        let (me, peer) = (sender.clone(), receiver.clone());
        let writer = thread::spawn(move || {
            (0..packets).for_each(|number| send(&mut producer, &me, &peer, number, len));
        });
        (0..packets).for_each(|number| receive(&mut consumer, &receiver, &sender, number, len));
        writer.join().expect("the writer ends");
    });
}

#[test]
fn a_sleeping_receiver_is_woken() {
    one_way(3, Geometry { slots: 4, data: 256 }, 2, 8);
}

#[test]
fn a_sender_that_waits_for_a_slot_is_woken() {
    one_way(3, Geometry { slots: 1, data: 256 }, 2, 0);
    one_way(2, Geometry { slots: 2, data: 256 }, 4, 0);
}

#[test]
fn a_sender_that_waits_for_the_second_area_is_woken() {
    one_way(2, Geometry { slots: 8, data: 256 }, 6, 64);
}

/// A sender that sleeps until packets are reported, which asks for nothing before it sleeps: not
/// even the second of two reports is lost.
#[test]
fn a_sender_that_waits_for_a_report_is_woken() {
    check(3, || {
        let (mut producer, mut consumer) = ends(Geometry { slots: 64, data: 1024 });
        let (sender, receiver) = (Task::new(), Task::new());
        let (me, peer) = (sender.clone(), receiver.clone());
        let writer = thread::spawn(move || {
            let counts = [0, 1].map(|number| producer.push_reported(number, 8));
            peer.notify();
            for count in counts {
                while producer.end.given_back() < count {
                    me.sleep(|| producer.end.given_back() >= count);
                }
            }
        });
        (0..2).for_each(|number| receive(&mut consumer, &receiver, &sender, number, 8));
        writer.join().expect("the writer ends");
    });
}

/// A sender that sees some room, but not enough, asks again, and that request is not lost either.
#[test]
fn a_sender_that_needs_the_room_of_two_packets_is_woken() {
    check(3, || {
        let (mut producer, mut consumer) = ends(Geometry { slots: 16, data: 512 });
        let (sender, receiver) = (Task::new(), Task::new());
        (0..8).for_each(|number| producer.push(number, 64).expect("room"));
        let (me, peer) = (sender.clone(), receiver.clone());
        let writer = thread::spawn(move || send(&mut producer, &me, &peer, 8, 128));
        // Two of them make room for it.
        (0..2).for_each(|number| receive(&mut consumer, &receiver, &sender, number, 64));
        writer.join().expect("the writer ends");
    });
}

/// A consumer that reports its room only now and then, as a long ring lets it, still reports it to
/// a waiting producer.
#[test]
fn room_that_is_reported_seldom_is_reported_in_time() {
    check(2, || {
        let geometry = Geometry { slots: 16, data: 256 };
        let (mut producer, mut consumer) = ends(geometry);
        let (sender, receiver) = (Task::new(), Task::new());
        for number in 0..16 {
            producer.push(number, 0).expect("room");
        }
        // All but the last two have been taken before; one of those was not reported.
        for number in 0..13 {
            consumer.take(number, 0).expect("it is there");
        }
        for number in 16..28 {
            producer.push(number, 0).expect("room");
        }
        for number in 13..25 {
            consumer.take(number, 0).expect("it is there");
        }
        let (me, peer) = (sender.clone(), receiver.clone());
        let writer = thread::spawn(move || {
            for number in 28..42 {
                send(&mut producer, &me, &peer, number, 0);
            }
        });
        (25..42).for_each(|number| receive(&mut consumer, &receiver, &sender, number, 0));
        writer.join().expect("the writer ends");
    });
}

/// Two senders find the same sleeper: it is woken, and by one of them only.
#[test]
fn one_of_two_senders_rings() {
    check(3, || {
        let sleeper = Task::new();
        let (work, rings) = (Arc::new([AtomicU32::new(0), AtomicU32::new(0)]), Arc::new(AtomicU32::new(0)));
        let senders: Vec<_> = (0..2)
            .map(|number| {
                let (sleeper, work, rings) = (sleeper.clone(), work.clone(), rings.clone());
                thread::spawn(move || {
                    work[number].store(1, Ordering::Relaxed);
                    if sleeper.doorbell.needs_wake(LIGHT) {
                        rings.fetch_add(1, Ordering::Relaxed);
                        sleeper.descriptor.ring();
                    }
                })
            })
            .collect();
        let mut sleeps = 0;
        for mine in work.iter() {
            while mine.load(Ordering::Relaxed) == 0 {
                if sleeper.doorbell.prepare_sleep(HEAVY, || mine.load(Ordering::Relaxed) != 0) {
                    sleeps += 1;
                    sleeper.descriptor.sleep();
                    sleeper.doorbell.cancel();
                }
            }
        }
        senders.into_iter().for_each(|sender| sender.join().expect("a sender ends"));
        assert!(rings.load(Ordering::Relaxed) <= sleeps + 2);
    });
}

/// Two tasks that ask and reply, each asleep as often as it may.
#[test]
fn both_may_sleep() {
    check(2, || {
        let geometry = Geometry { slots: 1, data: 256 };
        let (mut ask, mut asked) = ends(geometry);
        let (mut reply, mut replied) = ends(geometry);
        let (one, other) = (Task::new(), Task::new());
        let (me, peer) = (other.clone(), one.clone());
        let server = thread::spawn(move || {
            for number in 0..2 {
                receive(&mut asked, &me, &peer, number, 0);
                send(&mut reply, &me, &peer, number, 0);
            }
        });
        for number in 0..2 {
            send(&mut ask, &one, &other, number, 0);
            receive(&mut replied, &one, &other, number, 0);
        }
        server.join().expect("the server ends");
    });
}
