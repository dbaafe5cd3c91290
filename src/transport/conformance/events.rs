//! Sleeping and waking: what makes the event descriptor readable, and that no wake-up is lost.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::support::{Deadline, Sample, expect, in_threads, readable, sleep, try_send};
use super::{nothing_more, send_now};
use crate::base::rng::Rng;
use crate::transport::{SendError, Task, Transport, Want};

pub(super) fn suite<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    lets_the_idle_sleep(make);
    stays_quiet_unless_armed(make);
    notices_what_came_before(make);
    wakes_for_a_packet(make);
    wakes_for_room(make);
    wakes_on_demand(make);
    wakes_each_time_from_a_thread(make);
    wakes_both_sides_of_a_conversation(make);
    wakes_both_sides_of_a_stream(make);
}

/// Only what needs no quiet.
pub(super) fn disturbed<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    notices_what_came_before(make);
    wakes_both_sides_of_a_conversation(make);
    wakes_both_sides_of_a_stream(make);
}

/// Without traffic a task can arm and the descriptor stays quiet, or sleeping would be spinning.
fn lets_the_idle_sleep<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let mut ends = make(2);
    becomes_quiet(&mut ends[0]);
    // Also after it was busy.
    for id in 0..10 {
        let sample = Sample::random(id, ends[0].limits(1).max_body);
        send_now(&mut ends[1], 0, &sample.outgoing());
        expect(&mut ends[0], "a packet", |packet| sample.check(packet, 1));
    }
    becomes_quiet(&mut ends[0]);
    becomes_quiet(&mut ends[1]);
}

/// Arms it until it stays armed and quiet, and disarms it.
fn becomes_quiet<T: Transport>(end: &mut T) {
    let quiet = (0..1_000).any(|_| {
        assert!(end.recv().is_none(), "nothing was sent");
        end.arm() && {
            let quiet = !readable(end);
            end.disarm();
            quiet
        }
    });
    assert!(quiet, "armed without traffic, the descriptor never stays quiet");
    assert!(!readable(end), "disarm empties the descriptor");
}

/// The descriptor of a task that is not armed does not become readable by packets or by room: what
/// reads it is only what was woken.
fn stays_quiet_unless_armed<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let mut ends = make(2);
    let max = ends[0].limits(1).max_body;
    becomes_quiet(&mut ends[0]);
    becomes_quiet(&mut ends[1]);
    for round in 0..5 {
        let mut sent = 0;
        while try_send(&mut ends[0], 1, &Sample::random(sent, max).outgoing()).is_ok() && sent < 100 {
            sent += 1;
        }
        assert!(!readable(&ends[1]), "packets have arrived, and it was not armed");
        for _ in 0..sent {
            expect(&mut ends[1], "a packet", |_| ());
        }
        assert!(!readable(&ends[0]), "room was made, and it was not armed (round {round})");
    }
}

/// A packet that has arrived before `arm` is not slept over.
fn notices_what_came_before<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let mut ends = make(2);
    let max = ends[0].limits(1).max_body;
    for id in 0..50 {
        let sample = Sample::random(id, max);
        send_now(&mut ends[0], 1, &sample.outgoing());
        sleep(&mut ends[1], "a packet that was there before", &AtomicBool::new(false));
        expect(&mut ends[1], "the packet", |packet| sample.check(packet, 0));
    }
}

/// A packet that arrives after `arm` makes the descriptor readable, for each of several
/// senders, every time.
fn wakes_for_a_packet<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let mut ends = make(3);
    let max = ends[0].limits(1).max_body;
    for id in 0..50 {
        let from = if id % 3 == 0 { 2 } else { 0 };
        let sample = Sample::random(id, max);
        let armed = arm_firmly(&mut ends[1]);
        send_now(&mut ends[from], 1, &sample.outgoing());
        armed.must_wake(&mut ends[1], "a packet after arm");
        // The end of the sleep does not take the packet away.
        expect(&mut ends[1], "the packet", |packet| sample.check(packet, from as Task));
    }
    nothing_more(&mut ends);
}

/// A sender that was refused and sleeps is woken by room.
fn wakes_for_room<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let mut ends = make(2);
    let max = ends[0].limits(1).max_body;
    let mut sent = 0;
    'rounds: for _ in 0..10 {
        let before = sent;
        loop {
            match try_send(&mut ends[0], 1, &Sample::random(sent, max).outgoing()) {
                Ok(()) => sent += 1,
                Err(SendError::PeerGone) => panic!("the peer is up"),
                // Refused, but something has changed since: try again. Otherwise it is armed now,
                // and really full.
                Err(SendError::NoRoom) if ends[0].arm() => break,
                Err(SendError::NoRoom) => {}
            }
            if sent - before > 20_000 {
                // This one takes all it is given.
                break 'rounds;
            }
        }
        for _ in before..sent {
            expect(&mut ends[1], "a packet of the full load", |_| ());
        }
        Armed.must_wake(&mut ends[0], "room after NoRoom");
        send_now(&mut ends[0], 1, &Sample::random(sent, max).outgoing());
        expect(&mut ends[1], "the packet that now has room", |_| ());
        sent += 1;
    }
}

/// A wake and a kick make the descriptor readable, before arming as after it.
fn wakes_on_demand<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let mut ends = make(3);
    for round in 0..20 {
        // Not one of these disturbs the others.
        let by_kick = round % 2 == 0;
        let call = |ends: &mut [T]| match by_kick {
            true => ends[1].want(Want::Attention(0)),
            false => ends[0].want(Want::Wake),
        };

        let armed = arm_firmly(&mut ends[0]);
        call(&mut ends);
        armed.must_wake(&mut ends[0], "a wake or kick after arm");

        call(&mut ends);
        sleep(&mut ends[0], "a wake or kick before arm", &AtomicBool::new(false));

        becomes_quiet(&mut ends[0]);
        becomes_quiet(&mut ends[1]);
        becomes_quiet(&mut ends[2]);
    }
    // A kick is for a peer that is not even armed.
    ends[2].want(Want::Attention(1));
    let deadline = Deadline::new("a kick of a peer that is not armed");
    while !readable(&ends[1]) {
        deadline.check();
    }
    ends[1].disarm();
}

/// One kick after the other from another thread, each of them seen, in every position
/// relative to `arm`.
fn wakes_each_time_from_a_thread<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    const ROUNDS: u64 = 1_500;
    let mut ends = make(2);
    let (posted, seen) = (AtomicU64::new(0), AtomicU64::new(0));
    in_threads(&mut ends, |task, end, failed| {
        let mut rng = Rng::stream(4, task.into());
        for round in 1..=ROUNDS {
            if task == 1 {
                dawdle(&mut rng);
                posted.store(round, Ordering::Release);
                end.want(Want::Attention(0));
                let deadline = Deadline::new("the sleeper's reaction to a kick");
                while seen.load(Ordering::Acquire) < round {
                    assert!(!failed.load(Ordering::Relaxed), "the sleeper has failed");
                    deadline.check();
                }
            } else {
                dawdle(&mut rng);
                while posted.load(Ordering::Acquire) < round {
                    sleep(end, "a kick from another thread", failed);
                }
                seen.store(round, Ordering::Release);
            }
        }
    });
}

/// Two tasks reply to each other and sleep in between.
fn wakes_both_sides_of_a_conversation<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    const ROUNDS: u64 = 1_500;
    let mut ends = make(2);
    in_threads(&mut ends, |task, end, failed| {
        let peer = 1 - task;
        let mut rng = Rng::stream(5, task.into());
        let (mut sent, mut got) = (0, 0);
        while got < ROUNDS || sent < ROUNDS {
            // Task 0 asks, task 1 replies.
            if sent < ROUNDS && sent + u64::from(task) <= got {
                let sample = Sample::numbered(task, peer, sent, end.limits(peer).max_body);
                if try_send(end, peer, &sample.outgoing()).is_ok() {
                    sent += 1;
                    continue;
                }
            }
            if let Some(packet) = end.recv() {
                Sample::numbered(peer, task, got, end.limits(peer).max_body).check(&packet, peer);
                end.release(packet);
                got += 1;
                continue;
            }
            dawdle(&mut rng);
            sleep(end, "the other side of a conversation", failed);
        }
    });
}

/// One task sends as fast as there is room, the other takes; a task that cannot continue sleeps.
fn wakes_both_sides_of_a_stream<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    const PACKETS: u64 = 5_000;
    let mut ends = make(2);
    let got = AtomicU64::new(0);
    in_threads(&mut ends, |task, end, failed| {
        let mut rng = Rng::stream(6, task.into());
        if task == 0 {
            for seq in 0..PACKETS {
                let sample = Sample::numbered(0, 1, seq, end.limits(1).max_body);
                while let Err(why) = try_send(end, 1, &sample.outgoing()) {
                    assert_eq!(why, SendError::NoRoom);
                    dawdle(&mut rng);
                    sleep(end, "room in a stream", failed);
                }
            }
        } else {
            while got.load(Ordering::Relaxed) < PACKETS {
                match end.recv() {
                    Some(packet) => {
                        let id = Sample::id_of(&packet);
                        Sample::random(id, end.limits(0).max_body).check(&packet, 0);
                        end.release(packet);
                        got.fetch_add(1, Ordering::Relaxed);
                    }
                    None => {
                        dawdle(&mut rng);
                        sleep(end, "a packet of a stream", failed);
                    }
                }
            }
        }
    });
    nothing_more(&mut ends);
}

/// Proof that an end is armed.
struct Armed;

impl Armed {
    fn must_wake<T: Transport>(self, end: &mut T, why: &'static str) {
        let deadline = Deadline::new(why);
        while !readable(end) {
            deadline.check();
        }
        end.disarm();
    }
}

/// Arms an end that has nothing to do: it may decline for a while, not for ever.
fn arm_firmly<T: Transport>(end: &mut T) -> Armed {
    let deadline = Deadline::new("an idle end to be armed");
    while !end.arm() {
        assert!(end.recv().is_none(), "nothing was sent");
        deadline.check();
    }
    Armed
}

/// Does something for a short while that differs from time to time, so that threads meet in
/// all positions.
fn dawdle(rng: &mut Rng) {
    match rng.below(8) {
        0 => std::thread::yield_now(),
        1..4 => (0..rng.below(2_000)).for_each(|_| std::hint::spin_loop()),
        _ => {}
    }
}
