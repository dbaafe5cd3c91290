//! The order in which the program learns how its sends have ended.

use super::{Data, Event, Port, Request, Settings, Target, Then};
use crate::abi::{SEND_TOKENS, Status};
use crate::nodes::Nodes;
use crate::wire::{Header, Kind, Word};
use std::sync::Arc;

const PORT: u8 = 2;
const TARGET: Target = Target { node: 2, port: PORT, priority: 0 };

fn port() -> Port {
    let settings = Settings { patience: 1_000_000, check: false, epochs: Arc::default(), counts_all: false };
    Port::new(PORT, Arc::new(Nodes::by_lowest(&[0, 1])), settings)
}

fn send(port: &mut Port, target: Target, size: u8, context: usize) {
    let then = Then { callback: 1, context };
    port.start(0, Request { kind: Kind::Send, target, size, address: 64, length: 8, remote: 0, then });
}

fn ended(port: &mut Port) -> Vec<(usize, Status)> {
    let ends = std::iter::from_fn(|| port.next_event()).map(|event| match event {
        Event::Ended { then, status, .. } => (then.context, status),
        Event::Received { .. } => panic!("nothing was received"),
    });
    ends.collect()
}

/// All that was sent is delivered.
fn deliver(port: &mut Port) {
    let mut last = None;
    while let Some(output) = port.next_output() {
        output.data.free();
        if output.data != Data::None {
            last = Some(output.header);
        }
    }
    let Header { epoch, seq, index, .. } = last.expect("something was sent");
    let word = Some(Word { epoch, seq, index });
    port.hear(1, &Header { word, ..Header::of(Kind::Delivered, PORT, PORT) });
}

#[test]
fn a_send_that_is_wrong_by_itself_ends_after_those_before_it() {
    let mut port = port();
    for turn in 0..2 {
        // A size that a message of 8 bytes does not fit.
        send(&mut port, TARGET, 3, 0);
        assert_eq!(ended(&mut port), [(0, Status::InvalidParameter)], "nothing is before it");
        for (size, context) in [(5, 1), (3, 2), (3, 3), (5, 4), (3, 5)] {
            send(&mut port, TARGET, size, context);
        }
        // Those to others are not held up.
        send(&mut port, Target { priority: 1, ..TARGET }, 3, 6);
        send(&mut port, Target { node: 9, ..TARGET }, 5, 7);
        assert_eq!(
            ended(&mut port),
            [(6, Status::InvalidParameter), (7, Status::SendTargetNodeUnreachable)],
            "turn {turn}"
        );
        deliver(&mut port);
        let (sent, wrong) = (Status::Success, Status::InvalidParameter);
        assert_eq!(ended(&mut port), [(1, sent), (2, wrong), (3, wrong), (4, sent), (5, wrong)]);
    }
}

#[test]
fn a_send_without_a_token_ends_after_those_that_have_one() {
    let mut port = port();
    (0..=SEND_TOKENS).for_each(|context| send(&mut port, TARGET, 5, context));
    assert!(ended(&mut port).is_empty());
    deliver(&mut port);
    let ends = ended(&mut port);
    assert!(ends.iter().map(|(context, _)| *context).eq(0..=SEND_TOKENS));
    assert_eq!(ends.last().map(|(_, status)| *status), Some(Status::InvalidParameter));
}

/// The callback of a drop may free the memory of what was dropped.
#[test]
fn a_drop_ends_after_what_it_has_dropped() {
    let mut port = port();
    (0..3).for_each(|context| send(&mut port, TARGET, 5, context));
    let [first, second, third] = [(); 3].map(|()| port.next_output().expect("a message"));
    first.data.free();
    port.replied(1, 1, &first.header.reply(Kind::Refused, Status::SendRejected as u8));
    assert_eq!(ended(&mut port), [(0, Status::SendRejected)]);
    port.drop_sends(2, TARGET, Then { callback: 1, context: 9 });
    send(&mut port, TARGET, 5, 3);
    third.data.free();
    port.tick(3);
    assert!(ended(&mut port).is_empty(), "the second one is being read");
    port.drop_sends(3, TARGET, Then { callback: 1, context: 10 });
    assert!(ended(&mut port).is_empty(), "the drop before has not ended");
    second.data.free();
    port.tick(4);
    let dropped = Status::SendDropped;
    let sent = Status::Success;
    assert_eq!(ended(&mut port), [(1, dropped), (2, dropped), (9, sent), (10, sent)]);
    deliver(&mut port);
    assert_eq!(ended(&mut port), [(3, Status::Success)]);
    port.drop_sends(5, TARGET, Then { callback: 1, context: 9 });
    assert_eq!(ended(&mut port), [(9, Status::Success)], "nothing has failed");
}
