//! A process of a map whose peer is lost while it sends, and one that exits.

use super::{CURRENT, RECEIVING, World, by_launcher};
use crate::abi::Status;
use crate::carrier::Carrier;
use crate::hand::Hand;
use crate::hand::tests::{late, lose, map, session, sessions, until};
use crate::nodes::Nodes;
use crate::protocol::{Event, Request, Target, Then};
use crate::settings::Variables;
use crate::wire::Kind;
use crate::world::Next;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::Ordering;

thread_local! {
    /// Done once, between a message has left its port and the carrier gets it.
    static BEFORE_POST: RefCell<Option<Box<dyn FnOnce()>>> = RefCell::default();
}

/// The place in [`World::pump`] where tests do something.
pub fn before_post() {
    if let Some(hook) = BEFORE_POST.take() {
        hook();
    }
}

const PORT: u8 = 2;
const TARGET: Target = Target { node: 2, port: PORT, priority: 0 };

/// In the middle of a change of a port, in a job: handlers wait for that beneath the core's lock.
#[test]
fn a_thread_that_exits_with_a_port_does_not_enter_the_core() {
    let variables = Variables { by_task: false, timeout: 60_000_000, check: false, map: None };
    let world = World::new(by_launcher(false).expect("a job of one task"), &variables);
    let slot = world.slot(PORT.into()).expect("a place");
    let held = slot.lock();
    assert!(!world.begin_exit(), "this thread has it");
    std::thread::scope(|scope| {
        scope.spawn(|| assert!(!world.begin_exit(), "as where it is not the owner yet"));
    });
    drop(held);
    assert!(world.begin_exit());
    world.carrier.close();
}

/// The program is told that the message could not be delivered, and sends it again, perhaps: where
/// the process is the same one, it would have it twice.
#[test]
fn what_was_for_a_lost_peer_does_not_reach_its_successor() {
    let folder = std::env::temp_dir().join(format!("gm-successor-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder");
    let hand = Hand::open(map(&folder, 2), RECEIVING).expect("a place");
    let variables = Variables { by_task: false, timeout: 60_000_000, check: false, map: None };
    let found = (Carrier::Hand(hand), Nodes::by_lowest(&[0, 1]), String::new());
    let world: &'static World = Box::leak(Box::new(World::new(found, &variables)));
    CURRENT.store(std::ptr::from_ref(world).cast_mut(), Ordering::Release);
    let Carrier::Hand(hand) = &world.carrier else { unreachable!() };
    hand.start().expect("a thread");
    let slot = world.slot(PORT.into()).expect("a place");
    world.open(slot).expect("a port");
    let send = |data: &'static [u8; 8]| {
        let (address, then) = (data.as_ptr().expose_provenance(), Then { callback: 1, context: 0 });
        let (kind, length) = (Kind::Send, data.len() as u64);
        let request = Request { kind, target: TARGET, size: 5, address, length, remote: 0, then };
        world.with(slot, |open| open.port.start(0, request)).expect("an open port");
    };

    let before = session(1, &folder, 1);
    until("the peer is there", || sessions(hand, 1) == 1);
    let successor = Rc::new(RefCell::new(None));
    let (place, at) = (successor.clone(), folder.clone());
    BEFORE_POST.set(Some(Box::new(move || {
        lose(hand, 1);
        *place.borrow_mut() = Some(session(1, &at, 2));
        until("its successor is there", || sessions(hand, 1) == 1);
    })));
    send(b"to first");
    let ended = world.next_event(slot);
    let failed =
        matches!(ended, Some(Next::Event(Event::Ended { status: Status::SendTargetNodeUnreachable, .. })));
    assert!(failed, "{ended:?}");
    world.with(slot, |open| open.port.resume(0, TARGET, Then { callback: 1, context: 0 }));
    send(b"to other");
    let successor = successor.take().expect("a session");
    let message = successor.receive(late()).expect("a session").expect("a message");
    assert_eq!(message.data, b"to other", "the message that was lost arrives as well");

    drop((before, successor));
    world.close(slot);
    world.carrier.close();
    CURRENT.store(std::ptr::null_mut(), Ordering::Release);
    std::fs::remove_dir_all(&folder).expect("no folder");
}
