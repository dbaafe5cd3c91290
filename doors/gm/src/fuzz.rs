//! What a port reads of its peers, what a process that is started by hand reads, and what must hold
//! of whatever they read.

use crate::abi::Status;
use crate::hand::hello::Hello;
use crate::hand::map::parse;
use crate::nodes::Nodes;
use crate::protocol::{Data, Event, Port, Request, Settings, Target as To, Then, Verdict};
use crate::wire::{Header, Kind, Word};
use openlapi::fuzz::{Seed, Target, seed};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// The targets of this crate.
pub const TARGETS: &[Target] = &[
    Target { name: "gm", feed, seeds },
    Target { name: "gm_hello", feed: hello, seeds: hello_seeds },
    Target { name: "gm_map", feed: map, seeds: map_seeds },
];

const PORT: u8 = 2;
/// How many buffers of each size are there.
const BUFFERS: usize = 2;

/// Messages, which two peers send in turns to a port that sends to both: how many bytes the header
/// has, how many the data, and the header.
fn feed(input: &[u8]) -> bool {
    let epochs = Arc::new(AtomicU32::new(0));
    let settings = Settings { patience: 1000, check: false, epochs, counts_all: false };
    let mut port = Port::new(PORT, Arc::new(Nodes::by_lowest(&[0, 1, 2])), settings);
    port.allow_remote_access();
    for size in 3..8 {
        for at in 0..BUFFERS {
            _ = port.provide(usize::from(size) * 100 + at, size, 0, 9);
        }
    }
    for (at, kind) in [Kind::Send, Kind::Put, Kind::Get, Kind::Send].into_iter().enumerate() {
        let target = To { node: 1 + at as u32 % 2, port: PORT, priority: 0 };
        let then = Then { callback: 1, context: at };
        port.start(0, Request { kind, target, size: 4, address: 8 * (at + 1), length: 8, remote: 0, then });
    }
    let mut is_accepted = false;
    let (mut received, mut ended) = (0, 0);
    let mut rest = input;
    for at in 0.. {
        let Some((&[len, data], others)) = rest.split_first_chunk() else { break };
        let (bytes, others) = others.split_at(others.len().min(len.into()));
        rest = others;
        let Some(header) = Header::decode(bytes, data.into()) else { continue };
        is_accepted = true;
        let (from, now) = (at as u32 % 2, 100 * at as u64);
        match header.kind {
            Kind::Send | Kind::Put | Kind::Get | Kind::Data | Kind::Datagram => {
                if let Verdict::Into { token, .. } = port.arrived(from, &header) {
                    port.complete(now, token);
                }
            }
            _ => drop(port.replied(now, from, &header)),
        }
        port.hear(now, &header);
        port.found_nothing();
        port.tick(now);
        while let Some(output) = port.next_output() {
            let data = if let Data::Memory { length, .. } = output.data { length } else { 0 };
            assert_eq!(Header::decode(output.header.encode().as_bytes(), data), Some(output.header));
            assert!(output.task < 3, "a task of the job");
            output.data.free();
        }
        while let Some(event) = port.next_event() {
            match event {
                Event::Received { size, length, .. } => {
                    received += 1;
                    assert!(u64::from(length) <= crate::abi::capacity(size));
                }
                Event::Ended { status, .. } => {
                    ended += 1;
                    assert_ne!(status, Status::InvalidCommand);
                }
            }
        }
    }
    assert!(received <= 5 * BUFFERS && ended <= 4, "{received} messages and {ended} ends");
    is_accepted
}

/// A message as [`feed`] reads it.
fn message(header: &Header) -> Vec<u8> {
    let encoded = header.encode();
    let data = if header.kind == Kind::Get { 0 } else { header.length as u8 };
    [&[encoded.as_bytes().len() as u8, data], encoded.as_bytes()].concat()
}

/// The word that the first message to the first peer is delivered.
const WORD: Option<Word> = Some(Word { epoch: 1, seq: 0, index: 0 });

fn seeds() -> Vec<Seed> {
    let of = |kind, change: fn(&mut Header)| {
        let mut header = Header { epoch: 1, size: 4, length: 8, ..Header::of(kind, PORT, PORT) };
        change(&mut header);
        message(&header)
    };
    let send = |seq: u32| {
        message(&Header { epoch: 1, size: 4, length: 8, seq, ..Header::of(Kind::Send, PORT, PORT) })
    };
    let reply = |kind| of(kind, |_| {});
    vec![
        seed("messages", [send(0), send(1), send(2)].concat()),
        seed("order", [send(1), send(0)].concat()),
        seed("put", of(Kind::Put, |header| header.address = 5)),
        seed("get", of(Kind::Get, |header| header.address = 5)),
        seed("datagram", of(Kind::Datagram, |_| {})),
        seed("delivered", of(Kind::Delivered, |header| header.word = WORD)),
        seed("word", of(Kind::Send, |header| header.word = WORD)),
        seed("wait", [reply(Kind::Wait), reply(Kind::Go), reply(Kind::Wait)].concat()),
        seed("again", reply(Kind::Again)),
        seed("refused", of(Kind::Refused, |header| header.code = Status::SendTargetPortClosed as u8)),
        seed("nothing", of(Kind::NoData, |header| (header.index, header.round) = (2, 1))),
    ]
}

/// How many nodes the map of those who greet has.
const NODES: usize = 3;

/// The length of a header, the header, and data.
fn hello(input: &[u8]) -> bool {
    let Some((&length, rest)) = input.split_first() else { return false };
    let (header, data) = rest.split_at(rest.len().min(length.into()));
    let Some(hello) = Hello::decode(header, data, NODES) else { return false };
    assert!((hello.task as usize) < NODES);
    let (again, data_again) = hello.encode();
    assert_eq!((again, &data_again[..]), (header, data));
    true
}

fn hello_seeds() -> Vec<Seed> {
    let of = |task, life| {
        let (header, data) = Hello { task, life }.encode();
        [&[header.len() as u8], header, &data].concat()
    };
    vec![seed("first", of(0, 1)), seed("last", of(NODES as u32 - 1, u64::MAX))]
}

fn map(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let Ok(nodes) = parse(text) else { return false };
    let lines = (1..).zip(&nodes).map(|(number, node)| format!("{number} {} {}\n", node.host, node.address));
    assert_eq!(parse(&lines.collect::<String>()).as_ref(), Ok(&nodes));
    true
}

fn map_seeds() -> Vec<Seed> {
    let one = |name: &'static str, text: &str| seed(name, text.as_bytes().to_vec());
    vec![
        one("unix", "1 alpha unix:/tmp/gm.1\n2 alpha unix:/tmp/gm.2 # the other one\n"),
        one("tcp", "# two hosts\n2 beta tcp:10.0.0.2:77\n\n1 alpha tcp:[fe80::1%3]:5\n"),
    ]
}
