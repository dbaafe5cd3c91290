//! What a transport reports later: packets that it has taken, deadlines.
//!
//! A transport that takes nothing and has no deadlines passes: what is tested then is that its
//! reports are consistent with that.

use super::support::{Deadline, Sample, catch_up, in_threads, pattern, sleep};
use super::{nothing_more, pass};
use crate::transport::conformance::Calls;
use crate::transport::{Outgoing, Piece, SendOutcome, Task, Ticket, Transport};
use std::collections::BTreeSet;

pub(super) fn suite<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    reports_each_taken_packet_once(make);
    wakes_for_a_report(make);
    reads_nothing_after_a_recall(make);
    is_served_by_its_deadlines(make);
}

/// Memory that a packet is sent from, and its number.
struct Lent {
    id: u64,
    bytes: Box<[u8]>,
}

impl Lent {
    fn new(id: u64, len: usize) -> Self {
        let from = id as usize * 8 % 4096;
        Self { id, bytes: pattern()[from..from + len].into() }
    }

    /// Offers it to `to`; `None` when there is no room.
    fn offer<T: Transport>(&self, end: &mut T, to: Task) -> Option<SendOutcome> {
        let second = Piece::of(&self.bytes).into();
        let packet = Outgoing { head: &self.id.to_ne_bytes(), first: Piece::EMPTY, second, copy_limit: 0 };
        // SAFETY: the callers keep the memory until the packet is reported or recalled.
        let outcome = unsafe { end.try_send(to, &packet) };
        assert_ne!(outcome, SendOutcome::Gone);
        catch_up(end);
        (outcome != SendOutcome::NoRoom).then_some(outcome)
    }

    /// The sender may do this as soon as its memory is free.
    fn spoil(&mut self) {
        self.bytes.fill(0xee);
    }
}

/// Takes a packet, if one has arrived. Panics unless it has the bytes that it was sent with.
fn take_intact<T: Transport>(end: &mut T, len: usize) -> bool {
    let Some(packet) = end.recv() else { return false };
    let id = Sample::id_of(&packet);
    // SAFETY: the packet has not been released.
    let body = unsafe { std::slice::from_raw_parts(packet.body, packet.body_len) };
    assert!(
        body == &*Lent::new(id, len).bytes,
        "packet {id} is not what was sent: its memory was read too late"
    );
    end.release(packet);
    true
}

fn reports_each_taken_packet_once<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let mut ends = make(2);
    let len = ends[0].limits(1).max_body;
    let (mut packets, mut waiting) = (Vec::new(), BTreeSet::new());
    for id in 0..200 {
        let mut packet = Lent::new(id, len);
        let deadline = Deadline::new("room for a packet that may be taken");
        let outcome = loop {
            if let Some(outcome) = packet.offer(&mut ends[0], 1) {
                break outcome;
            }
            deadline.check();
            take_intact(&mut ends[1], len);
            note_reports(&mut ends[0], &mut waiting, &mut packets);
        };
        match outcome {
            SendOutcome::Taken(ticket) => {
                assert!(waiting.insert(ticket), "{ticket:?} names two packets");
                packets.push((ticket, packet));
            }
            _ => packet.spoil(),
        }
        assert!(waiting.is_empty() || !ends[0].settled(), "unreported packets are not settled");
    }
    let deadline = Deadline::new("reports of all taken packets");
    while !waiting.is_empty() || !ends[0].settled() {
        deadline.check();
        take_intact(&mut ends[1], len);
        note_reports(&mut ends[0], &mut waiting, &mut packets);
        catch_up(&mut ends[0]);
    }
    assert_eq!(ends[0].completed(), None);
}

/// Takes note of what is free, and spoils it.
fn note_reports<T: Transport>(end: &mut T, waiting: &mut BTreeSet<Ticket>, packets: &mut [(Ticket, Lent)]) {
    while let Some(ticket) = end.completed() {
        assert!(waiting.remove(&ticket), "{ticket:?} was not taken, or was reported twice");
        packets.iter_mut().filter(|(taken, _)| *taken == ticket).for_each(|(_, packet)| packet.spoil());
    }
}

/// A sender may sleep until its memory is free.
fn wakes_for_a_report<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    const PACKETS: u64 = 300;
    let mut ends = make(2);
    let len = ends[0].limits(1).max_body;
    in_threads(&mut ends, |task, end, failed| {
        for id in 0..PACKETS {
            if task == 1 {
                while end.recv().map(|packet| end.release(packet)).is_none() {
                    sleep(end, "a packet that may be taken", failed);
                }
                continue;
            }
            let packet = Lent::new(id, len);
            let outcome = loop {
                match packet.offer(end, 1) {
                    Some(outcome) => break outcome,
                    None => sleep(end, "room for a packet that may be taken", failed),
                }
            };
            if let SendOutcome::Taken(ticket) = outcome {
                let mut reported = None;
                while reported.is_none() {
                    sleep(end, "the report of a taken packet", failed);
                    reported = end.completed();
                }
                assert_eq!(reported, Some(ticket));
            }
        }
    });
}

/// After a recall, and after the end, the memory is the program's again.
fn reads_nothing_after_a_recall<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    for close in [false, true] {
        let mut ends = make(2);
        let len = ends[0].limits(1).max_body;
        let mut packets: Vec<_> = (0..20).map(|id| Lent::new(id, len)).collect();
        let accepted = packets.iter().take_while(|packet| packet.offer(&mut ends[0], 1).is_some()).count();
        if close {
            ends[0].close();
        } else {
            ends[0].recall(1);
        }
        packets.iter_mut().for_each(Lent::spoil);
        drop(packets);
        assert_eq!(ends[0].completed(), None, "what was recalled is not reported");
        let arrived = (0..1_000).filter(|_| take_intact(&mut ends[1], len)).count();
        assert!(
            arrived <= accepted && (arrived == accepted || !close),
            "{arrived} of {accepted} have arrived"
        );
    }
}

/// An endpoint that is only served when it is due has sent everything in the end.
fn is_served_by_its_deadlines<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let mut ends = make(2);
    assert!(ends[0].due().is_none() && ends[0].settled(), "nothing was sent");
    for id in 0..60 {
        let sample = Sample::exact(id, 8, 100, None);
        pass(&mut ends, 0, 1, &sample);
        let deadline = Deadline::new("an end of all deadlines");
        while ends[0].due().is_some() {
            assert!(ends[0].limits(1).keeps_time, "it has said that it has no deadlines");
            catch_up(&mut ends[0]);
            deadline.check();
        }
        assert!(ends[0].settled(), "no deadline, nothing taken, and yet not settled");
    }
    nothing_more(&mut ends);
}
