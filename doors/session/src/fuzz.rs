//! What reads bytes of a peer, known or not, and what must hold of whatever it reads.

use crate::handshake::{Handshake, Trust};
use crate::wire::{Card, Frames, LONGEST, MessageKind, Routes, Side};
use openlapi::base::process::Process;
use openlapi::fuzz::{Seed, Target, seed};
use openlapi::wire::user_header::{pack, unpack};

/// The targets of this crate.
pub const TARGETS: &[Target] = &[Target { name: "session", feed, seeds }];

const TRUST: Trust = Trust::Key([7; 16]);

/// What the first byte of an input says that the others are.
const CARD: u8 = 0;
const GREETING: u8 = 1;
const REPLY: u8 = 2;
const FRAME: u8 = 3;
const CONTENTS: u8 = 4;
const HEADER: u8 = 5;

fn own() -> Card {
    let process = Process { pid: 7, started: 8 };
    Card { host: 9, process, numbering: 10, routes: Routes::ALL }
}

fn feed(input: &[u8]) -> bool {
    let Some((what, bytes)) = input.split_first() else { return false };
    match *what {
        CARD => card(bytes),
        GREETING => greet(Side::Accepting, bytes),
        REPLY => greet(Side::Connecting, bytes),
        FRAME => frame(bytes),
        CONTENTS => contents(bytes),
        HEADER => unpack(bytes).is_some_and(|header| header.len() + 4 <= bytes.len()),
        _ => false,
    }
}

fn card(bytes: &[u8]) -> bool {
    let Ok(card) = Card::decode(bytes) else { return false };
    assert_eq!(card.encode(), bytes);
    true
}

/// A stranger greets; whether it gets an answer.
fn greet(side: Side, mut bytes: &[u8]) -> bool {
    let mut handshake = Handshake::new(side, TRUST, &own());
    let hello = handshake.output().len();
    let (mut read, mut answered) = (0, 0);
    while !bytes.is_empty() {
        let (next, rest) = bytes.split_at(bytes.len().min(handshake.wanted()).min(1 + bytes.len() / 2));
        if next.is_empty() {
            break;
        }
        (read, bytes) = (read + next.len(), rest);
        let result = handshake.read(next);
        answered += handshake.output().len();
        assert!(!handshake.is_proved() && !matches!(result, Ok(Some(_))), "the key was guessed");
        if result.is_err() {
            break;
        }
    }
    assert!(read <= 72 && answered <= 40 && hello <= 56);
    answered > 0
}

/// The frames of two sides that know each other.
fn both() -> [Frames; 2] {
    let mut sides = [Side::Accepting, Side::Connecting].map(|side| Handshake::new(side, TRUST, &own()));
    let mut agreed = [None, None];
    while agreed.iter().any(Option::is_none) {
        for me in [0, 1] {
            let output = sides[me].output();
            let mut rest = &output[..];
            while !rest.is_empty() {
                let (next, after) = rest.split_at(rest.len().min(sides[1 - me].wanted()));
                rest = after;
                let read = sides[1 - me].read(next).expect("an honest side");
                agreed[1 - me] = agreed[1 - me].take().or(read);
            }
        }
    }
    agreed.map(|one| one.expect("both have agreed").frames)
}

/// A stranger on the way writes into a connection.
fn frame(bytes: &[u8]) -> bool {
    let [mut to, _] = both();
    to.push(bytes);
    assert!(!matches!(to.next(), Ok(Some(_))), "a proof was guessed");
    false
}

/// A known peer sends anything.
fn contents(bytes: &[u8]) -> bool {
    let [mut to, from] = both();
    to.push(&from.sealed(bytes));
    match to.next() {
        Ok(Some((_, body))) => {
            assert!(body.len() + 5 == bytes.len() && bytes.len() < LONGEST);
            true
        }
        Ok(None) => panic!("a whole frame"),
        Err(_) => false,
    }
}

fn seeds() -> Vec<Seed> {
    let with = |what: u8, bytes: &[u8]| [&[what][..], bytes].concat();
    let mut room = [0; openlapi::api::MAX_UHDR];
    let header = pack(b"a header", &mut room).expect("it is short").to_vec();
    let mut hello = b"LAPICON1".to_vec();
    hello.extend(TRUST.subject());
    hello.extend([3; 16]);
    // The card was the first one.
    let ready = [&1_u32.to_le_bytes()[..], &[MessageKind::Ready as u8]].concat();
    vec![
        seed("card", with(CARD, &own().encode())),
        seed("greeting", with(GREETING, &hello)),
        seed("ready", with(CONTENTS, &ready)),
        seed("header", with(HEADER, &header)),
    ]
}
