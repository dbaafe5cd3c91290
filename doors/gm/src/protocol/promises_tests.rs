//! What a sender does with a promise that it cannot use as it should, and when it asks.

use super::{Data, Output, Port, Request, Settings, Target, Then};
use crate::nodes::Nodes;
use crate::wire::{Header, Kind, Word};
use std::sync::Arc;

const PORT: u8 = 2;

/// A port that has sent two messages, and the headers of these.
fn sender() -> (Port, [Header; 2]) {
    let settings = Settings { patience: 1_000_000, check: false, epochs: Arc::default(), counts_all: false };
    let mut port = Port::new(PORT, Arc::new(Nodes::by_lowest(&[0, 1])), settings);
    let target = Target { node: 2, port: PORT, priority: 0 };
    for context in [1, 2] {
        let then = Then { callback: 1, context };
        port.start(0, Request { kind: Kind::Send, target, size: 5, address: 64, length: 8, remote: 0, then });
    }
    let headers = [next(&mut port), next(&mut port)];
    (port, headers)
}

fn next(port: &mut Port) -> Header {
    let Output { header, data, .. } = port.next_output().expect("a message");
    data.free();
    assert_eq!(data != Data::None, header.kind == Kind::Send);
    header
}

/// The word that this message is delivered.
fn delivered(message: &Header) -> Header {
    let Header { epoch, seq, index, .. } = *message;
    Header { word: Some(Word { epoch, seq, index }), ..Header::of(Kind::Delivered, PORT, PORT) }
}

#[test]
fn a_promise_that_overtakes_its_wait_is_used() {
    let (mut port, [first, second]) = sender();
    port.hear(1, &delivered(&first));
    port.replied(2, 1, &second.reply(Kind::Go, 0));
    let again = next(&mut port);
    assert_eq!((again.kind, again.seq, again.round), (Kind::Send, second.seq, second.round + 1));
    port.replied(3, 1, &second.reply(Kind::Wait, 0));
    port.tick(2_000_000);
    assert_eq!(next(&mut port).kind, Kind::Ping, "it does not wait");
    port.hear(2_000_001, &delivered(&again));
    assert_eq!([0; 2].map(|_| port.next_event().is_some()), [true; 2]);
}

#[test]
fn a_promise_to_a_port_that_is_being_closed_is_declined() {
    let (mut port, [first, _]) = sender();
    port.replied(1, 1, &first.reply(Kind::Wait, 0));
    port.close();
    port.replied(2, 1, &first.reply(Kind::Go, 0));
    assert_eq!(next(&mut port).kind, Kind::Decline);
    assert!(port.next_output().is_none());
}

#[test]
fn a_promise_to_the_port_that_was_open_before_is_not_known() {
    let (_, [first, _]) = sender();
    let settings = Settings { patience: 1_000_000, check: false, epochs: Arc::default(), counts_all: false };
    let mut port = Port::new(PORT, Arc::new(Nodes::by_lowest(&[0, 1])), settings);
    assert!(!port.replied(2, 1, &first.reply(Kind::Go, 0)), "the target has its buffer back");
    assert!(sender().0.replied(2, 1, &first.reply(Kind::Go, 0)));
}

#[test]
fn a_port_that_was_opened_again_costs_only_what_the_one_before_may_have_taken() {
    for met in [0, 1] {
        let (mut port, sent) = sender();
        // It has had messages before these.
        port.hear(1, &delivered(&sent[0]));
        port.hear(1, &delivered(&sent[1]));
        while port.next_event().is_some() {}
        let target = Target { node: 2, port: PORT, priority: 0 };
        for context in [3, 4] {
            let then = Then { callback: 1, context };
            port.start(
                2,
                Request { kind: Kind::Send, target, size: 5, address: 64, length: 8, remote: 0, then },
            );
        }
        let sent = [next(&mut port), next(&mut port)];
        let again = sent[met].reply(Kind::Again, 0);
        port.replied(3, 1, &Header { seq: 0, address: sent[met].seq.into(), ..again });
        match met {
            0 => {
                let anew = [next(&mut port), next(&mut port)];
                assert_eq!(anew.map(|header| (header.kind, header.seq)), [(Kind::Send, 0), (Kind::Send, 1)]);
                assert!(anew[0].epoch > sent[0].epoch);
            }
            _ => assert!(port.next_event().is_some() && port.next_output().is_none(), "the first has failed"),
        }
    }
}

/// By a message of another size, by a put, and by one of a new epoch.
#[test]
fn a_promise_that_its_connection_leaves_is_the_next_ones() {
    let settings = Settings { patience: 1_000_000, check: false, epochs: Arc::default(), counts_all: false };
    let message = |kind, size, epoch, round| Header { size, epoch, round, ..Header::of(kind, PORT, PORT) };
    for other in [message(Kind::Send, 6, 1, 1), message(Kind::Put, 0, 1, 1), message(Kind::Send, 6, 2, 0)] {
        let mut port = Port::new(PORT, Arc::new(Nodes::by_lowest(&[0, 1, 2])), settings.clone());
        let said = |port: &mut Port| port.next_output().map(|output| (output.task, output.header.kind));
        for from in [1, 2] {
            port.arrived(from, &message(Kind::Send, 5, 1, 0));
            assert_eq!(said(&mut port), Some((from, Kind::Wait)));
        }
        port.provide(64, 5, 0, 0);
        assert_eq!(said(&mut port), Some((1, Kind::Go)));
        port.arrived(1, &other);
        assert_eq!(said(&mut port).map(|(task, _)| task), Some(1), "it is not taken");
        assert_eq!(said(&mut port), Some((2, Kind::Go)), "{other:?}");
    }
}

/// The target has looked once and then computes; the program here looks in vain or not at all, has
/// other events, sends to others: all of that changes nothing.
#[test]
fn a_target_that_may_owe_a_word_is_asked_soon_and_then_less_and_less() {
    let (mut port, [first, second]) = sender();
    let asked = |port: &mut Port, times: std::ops::Range<u64>| {
        let mut count = 0;
        for now in times.step_by(1000) {
            port.tick(now);
            while let Some(output) = port.next_output() {
                assert_eq!(output.header.kind, Kind::Ping);
                count += 1;
            }
        }
        count
    };
    assert_eq!(asked(&mut port, 0..5_000), 0);
    assert!((1..=3).contains(&asked(&mut port, 5_000..50_000)));
    // One that says nothing, because it is stopped, is asked once a second in the end.
    assert!((5..=6).contains(&asked(&mut port, 50_000..2_000_000)));
    assert!((59..=61).contains(&asked(&mut port, 2_000_000..62_000_000)));
    // A word begins it again for the next message, and the last word ends it.
    port.hear(62_000_000, &delivered(&first));
    assert!(port.deadline().is_some_and(|at| at <= 62_005_000));
    assert_eq!(asked(&mut port, 62_005_000..62_006_000), 1);
    port.hear(62_006_000, &delivered(&second));
    assert_eq!(asked(&mut port, 62_006_000..70_000_000), 0);
}
