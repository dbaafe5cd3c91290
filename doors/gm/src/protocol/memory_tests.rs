//! When the memory of a task is free again though its peer is gone.

use super::{Data, Event, Output, Port, Request, Settings, Target, Then, Verdict};
use crate::abi::Status;
use crate::nodes::Nodes;
use crate::wire::{Header, Kind};
use std::sync::Arc;

const PORT: u8 = 2;

fn port(counts_all: bool) -> (Port, Arc<Nodes>) {
    let nodes = Arc::new(Nodes::by_lowest(&[0, 1]));
    let settings = Settings { patience: 1_000_000, check: false, epochs: Arc::default(), counts_all };
    let mut port = Port::new(PORT, nodes.clone(), settings);
    port.allow_remote_access();
    (port, nodes)
}

fn data(port: &mut Port) -> Data {
    let Output { data, .. } = port.next_output().expect("data");
    assert_ne!(data, Data::None);
    data
}

#[test]
fn what_others_have_asked_for_is_in_use_until_it_was_counted() {
    let get = Header { length: 8, address: 64, ..Header::of(Kind::Get, PORT, PORT) };
    for counts_all in [true, false] {
        let (mut port, nodes) = port(counts_all);
        port.arrived(1, &get);
        data(&mut port).free();
        assert!(port.is_quiet());
        port.arrived(1, &get);
        let late = data(&mut port);
        assert!(!port.is_quiet());
        nodes.lose(1);
        port.lost(5, 1);
        assert_eq!(port.is_quiet(), !counts_all, "by hand it is being sent");
        if counts_all {
            late.free();
            assert!(port.is_quiet());
        }
        nodes.find(1);
        port.arrived(1, &get);
        let next = data(&mut port);
        assert!(!port.is_quiet(), "what was counted before counts no more");
        next.free();
        assert!(port.is_quiet());
    }
}

#[test]
fn a_message_for_a_task_that_is_gone_ends_when_its_memory_is_free() {
    for counts_all in [true, false] {
        let (mut port, nodes) = port(counts_all);
        let target = Target { node: 2, port: PORT, priority: 0 };
        let then = Then { callback: 1, context: 7 };
        let request = Request { kind: Kind::Send, target, size: 5, address: 64, length: 8, remote: 0, then };
        port.start(0, request);
        let sent = data(&mut port);
        nodes.lose(1);
        port.lost(5, 1);
        if counts_all {
            assert_eq!(port.next_event(), None, "by hand it is being sent");
            assert!(port.lags() && !port.is_quiet());
            sent.free();
            port.tick(6);
        }
        let status = Status::SendTargetNodeUnreachable;
        assert_eq!(port.next_event(), Some(Event::Ended { then, status, address: 64 }));
        assert!(port.is_quiet());
    }
}

/// By hand another process may have the place of the one that is gone.
#[test]
fn a_datagram_that_is_being_sent_to_a_task_that_is_gone_is_not_sent_again() {
    let (mut port, nodes) = port(true);
    let target = Target { node: 2, port: PORT, priority: 0 };
    let then = Then { callback: 1, context: 7 };
    let request = Request { kind: Kind::Datagram, target, size: 5, address: 64, length: 8, remote: 0, then };
    port.start(0, request);
    let sent = data(&mut port);
    port.lost(5, 1);
    assert!(port.next_output().is_none());
    nodes.lose(1);
    port.lost(6, 1);
    nodes.find(1);
    port.start(7, request);
    data(&mut port).free();
    assert!(port.next_output().is_none() && port.next_event().is_none());
    sent.free();
    port.tick(8);
    let ended = Event::Ended { then, status: Status::Success, address: 64 };
    assert_eq!([(); 3].map(|()| port.next_event()), [Some(ended), Some(ended), None]);
}

#[test]
fn what_has_not_left_for_a_task_that_is_gone_never_does() {
    for counts_all in [true, false] {
        let (mut port, nodes) = port(counts_all);
        port.arrived(1, &Header { length: 8, address: 64, ..Header::of(Kind::Get, PORT, PORT) });
        nodes.lose(1);
        port.lost(5, 1);
        nodes.find(1);
        assert!(port.next_output().is_none() && port.is_quiet());
    }
}

#[test]
fn what_is_no_memory_is_refused_at_both_sides() {
    for (address, length) in [(64, 1 << 32), (0, 8), (usize::MAX - 3, 8)] {
        let (mut port, _) = port(false);
        let target = Target { node: 2, port: PORT, priority: 0 };
        for kind in [Kind::Put, Kind::Get] {
            let then = Then { callback: 1, context: 3 };
            port.start(1, Request { kind, target, size: 0, address, length, remote: 64, then });
            let status = Status::InvalidParameter;
            assert_eq!(port.next_event(), Some(Event::Ended { then, status, address }));
            assert!(port.next_output().is_none());
        }
        for (kind, refused) in [(Kind::Get, Kind::NoData), (Kind::Put, Kind::Refused)] {
            let header = Header { epoch: 1, address: address as u64, length, ..Header::of(kind, PORT, PORT) };
            assert_eq!(port.arrived(1, &header), Verdict::Bury);
            let Header { kind, code, .. } = port.next_output().expect("a reply").header;
            assert_eq!((kind, code), (refused, Status::MemoryFault as u8));
        }
    }
}
