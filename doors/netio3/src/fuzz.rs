//! What reads bytes of a peer, and what must hold of whatever it reads.

use crate::frame::{BEFORE, LENGTH, Order, SLOTS, before, hello, read_hello};
use openlapi::fuzz::{Seed, Target, seed};

/// The targets of this crate.
pub const TARGETS: &[Target] = &[Target { name: "netio3", feed, seeds }];

/// What the first byte of an input says that the others are.
const HELLO: u8 = 0;
const MESSAGES: u8 = 1;

fn feed(input: &[u8]) -> bool {
    match input.split_first() {
        Some((&HELLO, bytes)) => read_hello(bytes).is_ok(),
        Some((&MESSAGES, bytes)) => messages(bytes),
        _ => false,
    }
}

/// Messages of a known sender: each has its length in one byte, what stands before it, and as many
/// bytes.
fn messages(mut bytes: &[u8]) -> bool {
    let (mut order, mut held, mut taken) = (Order::default(), 0, 0);
    while let Some((length, rest)) = bytes.split_first() {
        let Some((before, rest)) = rest.split_at_checked(BEFORE.min(rest.len())) else { break };
        let (data, rest) = rest.split_at(rest.len().min((*length).into()));
        bytes = rest;
        if order.push(before, data.to_vec()).is_err() {
            break;
        }
        held += 1;
        while let Some(whole) = order.pop() {
            assert!(whole.header <= whole.bytes.len() && whole.header <= LENGTH);
            held -= 1;
            taken += 1;
        }
        assert!(held < SLOTS, "{held} messages wait for an earlier one");
    }
    taken > 0
}

fn seeds() -> Vec<Seed> {
    let mut two = vec![MESSAGES];
    for (number, header) in [(1, 2), (0, 0)] {
        two.push(3);
        two.extend(before(number, header));
        two.extend(b"abc");
    }
    vec![seed("hello", [&[HELLO][..], &hello(1 << 20)].concat()), seed("messages", two)]
}
