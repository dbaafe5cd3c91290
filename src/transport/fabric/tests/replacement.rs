//! Several rails of libfabric: another process takes the place of a task, with which there was
//! contact by some of the rails, or none.

use super::network::{self, open, preferring};
use super::{Calm, is_there, rejoins};
use crate::base::clock::test_deadline;
use crate::base::process::Process;
use crate::error::Result;
use crate::transport::conformance::Calls;
use crate::transport::fabric::{Directory, FabricTransport, Own};
use crate::transport::rails::{Rail, RailEvent, Rails};
use crate::transport::{Endpoint, NO_EPOCH, Outgoing, Peers, Piece, SendOutcome, Task, Want};
use crate::wire::network::Rejoin;
use crate::wire::rails::NOTE;
use std::sync::{Arc, Mutex};
use std::time::Instant;

const PROVIDER: &str = "tcp;ofi_rxm";

/// Two tasks without contact, one rail of each. They see each other's processes,
/// which are this one.
fn strangers() -> Vec<FabricTransport> {
    let mut ends = network::strangers(2, &preferring(PROVIDER));
    for end in &mut ends {
        end.become_rail();
        end.watch_others(vec![0, 1], vec![Process::own(); 2], Box::default());
    }
    ends
}

/// What another process of task 0 sends first.
fn hello(tag: u32, echo: u32) -> Rejoin {
    let own = Process::own();
    Rejoin { tag, echo, epoch: NO_EPOCH, process: Process { started: own.started + 1, ..own }, waits: true }
}

#[test]
fn what_comes_after_a_peer_has_rejoined_is_named_after_that() {
    if !is_there(PROVIDER) {
        return;
    }
    let mut ends = strangers();
    rejoins(&mut ends, hello(101, 0));
    let mine = ends[1].peer(0).expect("a peer").mine;
    rejoins(&mut ends, hello(101, mine));
    let note = RailEvent::Note(0, [0; NOTE]);
    ends[1].note_event(note);
    let rejoined = Some(RailEvent::Rejoined(0, NO_EPOCH));
    assert_eq!(ends[1].event(), rejoined, "the rails' owner must know it");
    assert_eq!(ends[1].event(), Some(note));
    // What is not named before they part is not named at all.
    ends[1].part(0);
    Peers::rejoin(&mut ends[1], 0, 3).expect("can rejoin");
    let mine = ends[1].peer(0).expect("a peer").mine;
    rejoins(&mut ends, hello(103, mine));
    ends[1].note_event(RailEvent::Lost(0));
    ends[1].part(0);
    assert_eq!((ends[1].event(), ends[1].rejoined()), (None, None));
}

/// Otherwise one rail would be connected with the process that has died, and the other one with
/// its successor.
#[test]
fn a_rail_without_contact_refuses_the_successor_of_a_process_that_another_rail_knows() {
    if !is_there(PROVIDER) {
        return;
    }
    let mut ends = strangers();
    ends[1].note_contact(0);
    rejoins(&mut ends, hello(101, 0));
    let deadline = Instant::now() + test_deadline();
    loop {
        assert!(Instant::now() < deadline, "the death of the process before is not reported");
        assert_eq!(ends[1].rejoined(), None);
        if let Some(event) = ends[1].event() {
            assert_eq!(event, RailEvent::Ended(0));
            break;
        }
        ends[1].serve();
    }
}

/// What the tasks have published on one rail: a process that takes the place of another one
/// replaces that.
#[derive(Clone)]
struct Latest(Arc<Mutex<Vec<Vec<u8>>>>);

impl Directory<Vec<u8>> for Latest {
    fn address_of(&mut self, peer: Task) -> Result<Vec<u8>> {
        Ok(self.0.lock().expect("a lock")[peer as usize].clone())
    }
}

/// The end of a task with a rail in each directory.
fn end(own: Vec<Own>, me: Task, directories: &[Latest], replaces: bool) -> Rails<FabricTransport> {
    let rails = own.into_iter().zip(directories).map(|(own, directory)| {
        let mut rail = FabricTransport::new(own, &[7; 16], Box::new(directory.clone())).expect("a transport");
        if replaces {
            rail.replaces_another();
        }
        rail
    });
    Rails::new(rails.collect(), me, 2, Box::new(Calm), None).expect("rails")
}

/// The endpoints of each of the two tasks on two rails, and the directories of the rails.
fn two_rails() -> ([Vec<Own>; 2], Vec<Latest>) {
    let (mut own, mut directories) = ([Vec::new(), Vec::new()], Vec::new());
    for _ in 0..2 {
        let (ends, published): (Vec<Own>, Vec<Vec<u8>>) =
            open(2, PROVIDER).expect("endpoints").into_iter().unzip();
        own.iter_mut().zip(ends).for_each(|(own, end)| own.push(end));
        directories.push(Latest(Arc::new(Mutex::new(published))));
    }
    (own, directories)
}

fn sends(end: &mut Rails<FabricTransport>, to: Task) -> bool {
    let packet =
        Outgoing { head: &[1; 8], first: Piece::EMPTY, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
    // SAFETY: the head is readable during the call.
    let sent = unsafe { end.try_send(to, &packet) };
    assert_ne!(sent, SendOutcome::Gone);
    sent == SendOutcome::Sent
}

fn receives(end: &mut Rails<FabricTransport>) -> bool {
    end.recv().map(|packet| end.release(packet)).is_some()
}

/// Serves both until a packet has gone each way.
fn exchange(ends: &mut [Rails<FabricTransport>; 2], what: &str) {
    let deadline = Instant::now() + test_deadline();
    let (mut sent, mut received) = ([false; 2], [false; 2]);
    while received != [true; 2] {
        assert!(Instant::now() < deadline, "{what}: sent {sent:?}, received {received:?}");
        for (me, end) in ends.iter_mut().enumerate() {
            end.serve();
            sent[me] = sent[me] || sends(end, 1 - me as Task);
            received[me] = received[me] || receives(end);
        }
    }
}

#[test]
fn a_successor_connects_on_both_rails_with_tasks_that_knew_the_process_before_and_others() {
    if !is_there(PROVIDER) {
        return;
    }
    for contact in [false, true] {
        let ([survivor, former], directories) = two_rails();
        let mut survivor = end(survivor, 0, &directories, false);
        let mut former = end(former, 1, &directories, false);
        if contact {
            let mut ends = [survivor, former];
            exchange(&mut ends, "before");
            [survivor, former] = ends;
            survivor.part(1);
            survivor.rejoin(1, 9).expect("can rejoin");
        }
        // It ends without a message to the others.
        std::mem::forget(former);
        let (mut own, others) = two_rails();
        for (rail, other) in directories.iter().zip(&others) {
            rail.0.lock().expect("a lock")[1] = other.0.lock().expect("a lock")[1].clone();
        }
        let mut successor = end(std::mem::take(&mut own[1]), 1, &directories, true);
        successor.want(Want::Connection(0));
        let mut ends = [survivor, successor];
        let expected = if contact { [Some((1, NO_EPOCH)), Some((0, 9))] } else { [None; 2] };
        let mut named = [None; 2];
        let deadline = Instant::now() + test_deadline();
        while named != expected {
            assert!(Instant::now() < deadline, "contact: {contact}, {named:?}");
            for (named, end) in named.iter_mut().zip(&mut ends) {
                end.serve();
                *named = named.or_else(|| end.rejoined());
            }
        }
        // The successor sends first: a task that sends to it before has contact with the
        // process before.
        while !sends(&mut ends[1], 0) {
            assert!(Instant::now() < deadline, "contact: {contact}, no room");
            ends.iter_mut().for_each(|end| end.serve());
        }
        exchange(&mut ends, "after");
        assert!(ends.iter_mut().all(|end| end.rejoined().is_none()), "named without contact, or twice");
    }
}
