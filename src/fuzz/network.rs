//! What tasks send each other over a network and over sockets of one host, beside packets.

use super::{Seed, Target, seed};
use crate::base::process::Process;
use crate::memory::bytes::pad8;
use crate::wire::frame::HEAD_MAX;
use crate::wire::hello;
use crate::wire::key::Key;
use crate::wire::network::{self, Content, FRAME, Frame, NOTICE, Notice, Rejoin, TAG};
use crate::wire::rails::{self, Keys, NOTE, Note, RAILS, RailState};

/// The frames of a network, and the transport's own messages.
pub const NETWORK: Target = Target { name: "network", feed: network, seeds: frames };

/// Heads, keys and notes of several rails.
pub const RAIL_MESSAGES: Target = Target { name: "rails", feed: rails, seeds: rail_messages };

/// The messages by which two tasks of a host connect.
pub const HELLO: Target = Target { name: "hello", feed: hello, seeds: hellos };

fn network(message: &[u8]) -> bool {
    let Some(frame) = Frame::decode(message) else { return false };
    let (bytes, after) = message.split_at(FRAME);
    assert_eq!(frame.encode(), bytes);
    let after = if frame.kind.has_tag() { &after[..after.len() - TAG] } else { after };
    match frame.kind {
        network::FrameKind::Packet => {
            assert!(frame.head_len <= HEAD_MAX && frame.head_len % 8 == 0);
            assert_eq!(after.len(), frame.head_len + pad8(frame.body_len as usize));
        }
        network::FrameKind::Rejoin => {
            // As the transport takes it: the address ends with the body.
            let Some((rejoin, address)) = after.get(..frame.body_len as usize).and_then(Rejoin::decode)
            else {
                return false;
            };
            assert_eq!(Rejoin::decode(&rejoin.encode()), Some((rejoin, &[][..])));
            assert!(address.len() <= frame.body_len as usize);
        }
        network::FrameKind::Notice => {
            let Some(notice) = Notice::decode(after) else { return false };
            assert_eq!(Notice::decode(&notice.encode()), Some(notice));
        }
        network::FrameKind::RailNote => note(after.try_into().expect("the frame fits")),
        _ => assert!(after.is_empty()),
    }
    true
}

fn frames() -> Vec<Seed> {
    use network::FrameKind::{
        Credits, Departure, DepartureSeen, Hello, Kick, Notice as Death, Packet, RailNote,
    };
    let frame = |kind, head_len, body_len| {
        let frame = Frame { kind, src: 3, tag: 0x1234, credits: 9, head_len, body_len };
        frame.encode().to_vec()
    };
    let process = Process { pid: 10, started: 11 };
    let rejoin = Rejoin { tag: 7, echo: 8, epoch: 9, process, waits: true };
    let notice = Notice { content: Content::DiedConfirm, task: 4, life: 77 };
    let rejoining = [&rejoin.encode()[..], b"address", &[0]].concat();
    let tag = [7; TAG];
    let mut seeds: Vec<Seed> = [Hello, Departure, DepartureSeen, Kick]
        .map(|kind| seed(&format!("{kind:?}"), [&frame(kind, 0, 5)[..], &tag].concat()))
        .into();
    seeds.push(seed("Credits", frame(Credits, 0, 5)));
    seeds.push(seed("Packet", [frame(Packet, 24, 5), vec![1; 24 + 8]].concat()));
    seeds.push(seed("Rejoin", [frame(network::FrameKind::Rejoin, 0, 39), rejoining, tag.into()].concat()));
    seeds.push(seed("Notice", [&frame(Death, 0, NOTICE as u32)[..], &notice.encode(), &tag].concat()));
    seeds.push(seed("RailNote", [&frame(RailNote, 0, NOTE as u32)[..], &a_note().encode(), &tag].concat()));
    seeds
}

fn note(bytes: &[u8; NOTE]) {
    let note = Note::decode(bytes);
    assert_eq!(Note::decode(&note.encode()), note);
}

fn rails(bytes: &[u8]) -> bool {
    let head = rails::Head::decode(bytes);
    if let Some(head) = head {
        assert_eq!(rails::Head::decode(&head.encode()), Some(head));
    }
    let keys = Keys::decode(bytes);
    if let Some(keys) = keys {
        let again = keys.encode();
        assert!(again.len() <= bytes.len() && again.len() <= Keys::LONGEST);
        assert_eq!(Keys::decode(&again), Some(keys));
    }
    let noted = bytes.try_into().map(note).is_ok();
    noted || head.is_some() || keys.is_some()
}

fn rail_messages() -> Vec<Seed> {
    let head =
        rails::Head { kind: rails::RailFrameKind::Packet, number: 1, accepted: 2, session: 3, head_len: 48 };
    let mut keys = Keys { id: 5, rails: [None; RAILS] };
    keys.rails[1] = Some((3, Key { key: 1, offset: 2 }));
    keys.rails[7] = Some((0, Key { key: 3, offset: u64::MAX }));
    vec![
        seed("head", head.encode()),
        seed("keys", keys.encode()),
        seed("no_keys", Keys { id: 5, rails: [None; RAILS] }.encode()),
        seed("note", a_note().encode()),
    ]
}

fn a_note() -> Note {
    let mut rails = [(0, RailState::Live); RAILS];
    (rails[1], rails[2], rails[3]) = ((1, RailState::Left), (2, RailState::Ready), (3, RailState::Joining));
    Note { session: 1, to: 2, accepted: 3, wants_reply: true, rails }
}

fn hello(bytes: &[u8]) -> bool {
    use hello::{LONGEST, LONGEST_SECRET, Message};
    let Some(message) = Message::decode(bytes) else { return false };
    let again = message.encode();
    assert!(again.len() <= LONGEST);
    match &message {
        Message::Request(hello) | Message::Reply(hello) => {
            assert!(hello.secret.len() <= LONGEST_SECRET);
            assert_eq!(again, bytes);
        }
        Message::Confirm => assert_eq!(again, bytes),
        // Bytes that are no text have become longer, and then the text is cut.
        Message::Refuse(why) => {
            let Some(Message::Refuse(cut)) = Message::decode(&again) else { panic!("a refusal") };
            assert!(why.starts_with(&cut));
        }
    }
    true
}

fn hellos() -> Vec<Seed> {
    use hello::{Hello, Message};
    let hello = Hello { task: 1, tasks: 2, maps: [3, 4], asymmetric: true, ..Hello::default() };
    let with_secret = Hello { secret: vec![7; 16], ..hello.clone() };
    vec![
        seed("request", Message::Request(hello).encode()),
        seed("reply", Message::Reply(with_secret).encode()),
        seed("confirm", Message::Confirm.encode()),
        seed("refuse", Message::Refuse("another version".into()).encode()),
    ]
}
