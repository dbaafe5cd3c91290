//! A receiver that does not poll every ring, and may sleep, and senders that announce their
//! packets. The steps are those of `transport::shm`: `try_send` and `announce` of a sender,
//! `find_quiet`, `take_announcements` and `arm` of the receiver.

use super::ring::{End, HEAVY, LIGHT, ends};
use super::{Descriptor, check};
use crate::base::announcements::Announcements;
use crate::base::doorbell::Doorbell;
use crate::base::ring::{Consumer, Geometry, Producer};
use loom::thread;
use std::sync::Arc;

const GEOMETRY: Geometry = Geometry { slots: 4, data: 256 };

/// What senders see of the receiver.
struct Task {
    doorbell: Doorbell,
    announcements: Announcements,
    descriptor: Descriptor,
}

impl Task {
    fn new() -> Arc<Self> {
        let (doorbell, announcements) = (Doorbell::new(), Announcements::new());
        Arc::new(Self { doorbell, announcements, descriptor: Descriptor::new() })
    }
}

/// The sender with this number sends a packet, for which there is room.
fn send(producer: &mut End<Producer>, me: u32, peer: &Task, number: u64) {
    producer.push(number, 8).expect("room");
    if !peer.doorbell.needs_more(LIGHT) {
        return;
    }
    if peer.doorbell.selective() && producer.end.must_announce() {
        peer.announcements.announce(me);
    }
    if peer.doorbell.needs_wake(LIGHT) {
        peer.descriptor.ring();
    }
}

/// The receiver's side of one ring.
struct Ring {
    consumer: End<Consumer>,
    /// The number that it has for the receiver, and of the next packet.
    peer: u32,
    next: u64,
    quiet: bool,
}

impl Ring {
    fn take(&mut self) -> bool {
        let taken = self.consumer.take(self.next, 8).is_some();
        self.next += u64::from(taken);
        taken
    }
}

/// Stops polling these rings, unless there is a packet.
fn find_quiet(me: &Task, rings: &mut [Ring]) {
    me.doorbell.set_selective(true);
    rings.iter().filter(|ring| !ring.quiet).for_each(|ring| ring.consumer.end.stop_polling());
    HEAVY.fence();
    for ring in rings.iter_mut().filter(|ring| !ring.quiet) {
        if ring.consumer.end.ready() {
            ring.consumer.end.poll_again();
        } else {
            ring.quiet = true;
        }
    }
}

fn take_announcements(me: &Task, rings: &mut [Ring]) {
    me.announcements.take(|peer| {
        let ring = rings.iter_mut().find(|ring| ring.peer == peer).expect("a sender's number");
        ring.quiet = false;
    });
    if rings.iter().all(|ring| !ring.quiet) {
        me.doorbell.set_selective(false);
    }
}

/// Receives the packets of all senders: polls a ring only as long as it is not quiet, stops polling
/// each one that is empty, and sleeps when there is nothing to do.
fn receive(me: &Task, rings: &mut [Ring], packets: u64) {
    while rings.iter().any(|ring| ring.next < packets) {
        let mut taken = false;
        for ring in rings.iter_mut().filter(|ring| !ring.quiet) {
            taken |= ring.take();
        }
        if taken {
            continue;
        }
        if me.announcements.any() {
            take_announcements(me, rings);
            continue;
        }
        find_quiet(me, rings);
        let busy =
            || me.announcements.any() || rings.iter().any(|ring| !ring.quiet && ring.consumer.end.ready());
        if me.doorbell.prepare_sleep(HEAVY, busy) {
            me.descriptor.sleep();
            me.doorbell.cancel();
        }
    }
}

/// Senders with these numbers send `packets` packets each.
fn all_arrive(preemptions: usize, senders: &'static [u32], packets: u64) {
    check(preemptions, move || {
        let receiver = Task::new();
        let (mut threads, mut rings) = (Vec::new(), Vec::new());
        for &me in senders {
            let (mut producer, consumer) = ends(GEOMETRY);
            let peer = receiver.clone();
            rings.push(Ring { consumer, peer: me, next: 0, quiet: false });
            threads.push(thread::spawn(move || {
                (0..packets).for_each(|number| send(&mut producer, me, &peer, number));
            }));
        }
        receive(&receiver, &mut rings, packets);
        threads.into_iter().for_each(|thread| thread.join().expect("a sender ends"));
    });
}

#[test]
fn no_packet_of_a_quiet_peer_is_lost() {
    all_arrive(3, &[5], 2);
}

#[test]
fn two_quiet_peers_in_one_word() {
    all_arrive(2, &[5, 6], 1);
}

#[test]
fn two_quiet_peers_in_two_words() {
    all_arrive(2, &[5, 70], 1);
}
