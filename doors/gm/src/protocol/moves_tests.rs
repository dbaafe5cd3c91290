//! What becomes of a port that one task of a node has closed, and another one has opened.

use super::{Data, Event, Output, Port, Request, Settings, Target, Then, Verdict};
use crate::abi::Status;
use crate::nodes::Nodes;
use crate::wire::{Header, Kind, MAY_MOVE, answer};
use std::sync::Arc;

const PORT: u8 = 2;

/// The port of task 0, whose node is 1. The tasks 1 and 2 are on node 2.
fn port() -> Port {
    let settings = Settings { patience: 1_000_000, check: false, epochs: Arc::default(), counts_all: false };
    Port::new(PORT, Arc::new(Nodes::by_lowest(&[0, 1, 1])), settings)
}

fn start(port: &mut Port, kind: Kind) {
    let (target, then) = (Target { node: 2, port: PORT, priority: 0 }, Then { callback: 1, context: 1 });
    port.start(0, Request { kind, target, size: 5, address: 64, length: 8, remote: 4096, then });
}

fn next(port: &mut Port) -> Output {
    let output = port.next_output().expect("a message");
    output.data.free();
    output
}

/// Both tasks are asked where the port is, and this one has it.
fn answer(port: &mut Port, has: u32) {
    let asked = [next(port), next(port)];
    for Output { task, header, .. } in asked {
        assert_eq!(header.kind, Kind::Where);
        let code = if task == has { answer::HERE } else { answer::CLOSED };
        port.replied(1, task, &header.reply(Kind::Answer, code));
    }
}

/// The next message is of this kind and for this task.
fn sent(port: &mut Port, kind: Kind, to: u32) -> Header {
    let Output { task, header, .. } = next(port);
    assert_eq!((header.kind, task), (kind, to));
    header
}

fn refusal(header: &Header) -> Header {
    let kind = if header.kind == Kind::Get { Kind::NoData } else { Kind::Refused };
    header.reply(kind, Status::SendTargetPortClosed as u8)
}

fn ended(port: &mut Port) -> Option<Status> {
    port.tick(2);
    port.next_event().map(|event| match event {
        Event::Ended { status, .. } => status,
        Event::Received { .. } => panic!("nothing was received"),
    })
}

#[test]
fn a_port_is_looked_for_again_after_a_get_or_a_datagram_was_refused() {
    for kind in [Kind::Get, Kind::Datagram] {
        let mut port = port();
        start(&mut port, kind);
        start(&mut port, kind);
        answer(&mut port, 1);
        let before = [(); 2].map(|()| sent(&mut port, kind, 1));
        assert!(before.iter().all(|header| header.code == if kind == Kind::Datagram { MAY_MOVE } else { 0 }));
        port.replied(1, 1, &refusal(&before[0]));
        if kind == Kind::Get {
            // The other one still has its answer to come, and those that follow wait for that.
            start(&mut port, kind);
            assert_eq!(ended(&mut port), Some(Status::SendTargetPortClosed));
            assert!(port.next_output().is_none());
            port.replied(1, 1, &refusal(&before[1]));
            assert_eq!(ended(&mut port), Some(Status::SendTargetPortClosed));
        } else {
            assert_eq!([(); 2].map(|()| ended(&mut port)), [Some(Status::Success); 2]);
            start(&mut port, kind);
        }
        answer(&mut port, 2);
        sent(&mut port, kind, 2);
        // A late refusal of the task before says nothing of this one.
        port.replied(1, 1, &refusal(&before[1]));
        start(&mut port, kind);
        sent(&mut port, kind, 2);
        assert!(port.next_output().is_none());
    }
}

/// What is under way when its task dies fails, also where the port was closed there before.
#[test]
fn a_get_from_a_task_that_closes_its_port_and_dies_ends() {
    let mut port = port();
    start(&mut port, Kind::Get);
    start(&mut port, Kind::Get);
    answer(&mut port, 1);
    let before = [(); 2].map(|()| sent(&mut port, Kind::Get, 1));
    port.replied(1, 1, &refusal(&before[0]));
    port.lost(1, 1);
    let ends = [(); 3].map(|()| ended(&mut port));
    assert_eq!(ends, [Some(Status::SendTargetPortClosed), Some(Status::SendTargetNodeUnreachable), None]);
}

/// What a port says that is being closed.
#[test]
fn only_a_datagram_that_asks_for_it_is_refused() {
    for code in [0, MAY_MOVE] {
        let mut port = port();
        port.close();
        port.arrived(1, &Header { code, ..Header::of(Kind::Datagram, PORT, PORT) });
        let said = port.next_output().map(|output| (output.task, output.header.kind, output.data));
        assert_eq!(said, (code == MAY_MOVE).then_some((1, Kind::Refused, Data::None)));
    }
}

/// The program may have other memory there by now, or have asked for something else.
#[test]
fn an_answer_to_a_get_of_an_earlier_opening_is_none_of_a_new_one() {
    let settings = Settings { patience: 1_000_000, check: false, epochs: Arc::default(), counts_all: false };
    let open = || Port::new(PORT, Arc::new(Nodes::by_lowest(&[0, 1])), settings.clone());
    let [(_, old), (mut port, new)] = [(); 2].map(|()| {
        let mut port = open();
        start(&mut port, Kind::Get);
        let header = sent(&mut port, Kind::Get, 1);
        (port, header)
    });
    let data = |get: &Header| Header { length: 8, ..get.reply(Kind::Data, 0) };
    assert_eq!((old.index, old.round, old.seq), (new.index, new.round, new.seq));
    assert_eq!(port.arrived(1, &data(&old)), Verdict::Bury);
    assert!(port.replied(1, 1, &refusal(&old)));
    assert_eq!(ended(&mut port), None);
    assert_eq!(port.arrived(2, &data(&new)), Verdict::Bury, "another task was asked");
    let Verdict::Into { address: 64, token } = port.arrived(1, &data(&new)) else {
        panic!("the answer is taken");
    };
    port.complete(1, token);
    assert_eq!(ended(&mut port), Some(Status::Success));
}
