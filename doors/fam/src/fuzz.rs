//! What daemons and programs read of each other, and the files of settings.

use crate::files::{Interface, MemoryServers, Metadata, Pe};
use crate::wire::{
    Answer, Ask, Attributes, Change, Kind, Message, PartKind, READ, RUN, Role, SECRET, Sealed, Shape, Ticket,
    VERSION, decode, decode_answer, encode, encode_answer, runs,
};
use openlapi::fuzz::{Seed, Target, seed};

/// The targets of this crate.
pub const TARGETS: &[Target] = &[
    Target { name: "fam_message", feed: message, seeds: message_seeds },
    Target { name: "fam_ask", feed: ask, seeds: ask_seeds },
    Target { name: "fam_answer", feed: answer, seeds: answer_seeds },
    Target { name: "fam_files", feed: files, seeds: file_seeds },
];

fn message(bytes: &[u8]) -> bool {
    let Some(message) = Message::decode(bytes) else { return false };
    assert_eq!(*message.encode(), *bytes);
    if let Message::Scatter { shape: Shape::Runs { count }, .. } = message {
        assert!(runs(bytes, count).is_none_or(|runs| runs.len() * RUN <= bytes.len()));
    }
    true
}

fn ask(bytes: &[u8]) -> bool {
    let Some(ask) = decode(bytes) else { return false };
    assert_eq!(decode(&encode(&ask)).as_ref(), Some(&ask));
    if let Ask::Open { ticket } | Ask::Seal { ticket } | Ask::Restore { to: ticket, .. } = ask
        && let Some(ticket) = ticket.read()
    {
        let mut at = 0;
        for segment in ticket.segments(0, ticket.size).take(1000) {
            assert!(segment.length != 0);
            assert!(segment.offset + segment.length <= ticket.pieces[segment.piece].length);
            at += segment.length;
        }
        assert!(at <= ticket.size);
    }
    true
}

fn answer(bytes: &[u8]) -> bool {
    let answer = decode_answer(bytes);
    let is_one = answer.is_ok();
    assert_eq!(decode_answer(&encode_answer(&answer)), answer);
    is_one
}

fn files(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let read = [
        Pe::parse(text).is_ok(),
        Interface::parse(text).is_ok(),
        MemoryServers::parse(text).is_ok(),
        Metadata::parse(text).is_ok_and(|metadata| metadata.block.is_power_of_two()),
    ];
    read.contains(&true)
}

fn ticket() -> Sealed {
    let pieces = Ticket::lengths(5000, 1024, 3).into_iter().enumerate();
    let pieces =
        pieces.map(|(at, length)| crate::wire::Piece { server: at as u64, part: 3, offset: 0, length });
    let ticket =
        Ticket { item: 9, user: 1000, rights: READ, size: 5000, block: 1024, pieces: pieces.collect() };
    Sealed::new(&ticket, &[4; SECRET])
}

fn message_seeds() -> Vec<Seed> {
    let (number, item, offset) = (5, 1, 128);
    let shape = Shape::Strided { element: 8, count: 10, first: 0, stride: 16 };
    let (change, kind) = (Change::CompareSwap, Kind::Int128);
    let one = |name: &'static str, message: Message| seed(name, message.encode().to_vec());
    vec![
        one("ask", Message::Ask { number }),
        one("put", Message::Put { number, item, offset }),
        one("get", Message::Get { number, item, offset, length: 64 }),
        one("scatter", Message::Scatter { number, item, shape: Shape::Runs { count: 2 } }),
        one("gather", Message::Gather { number, item, shape }),
        one("atomic", Message::Atomic { number, item, offset, change, kind, operand: 7, comparand: 8 }),
        one("done", Message::Done { number, code: 13 }),
        one("data", Message::Data { number }),
        one("old", Message::Old { number, value: 7 }),
    ]
}

fn ask_seeds() -> Vec<Seed> {
    let attributes = Attributes::default();
    let one = |name: &'static str, ask: Ask| seed(name, encode(&ask));
    vec![
        one("hello", Ask::Hello { version: VERSION, role: Role::Program, user: 1000, group: 100 }),
        one("create", Ask::CreateRegion { name: "r".to_owned(), size: 1 << 20, mode: 0o640, attributes }),
        one("allocate", Ask::Allocate { region: 1, name: "i".to_owned(), size: 128, mode: 0o600 }),
        one("open", Ask::Open { ticket: ticket() }),
        one("seal", Ask::Seal { ticket: ticket() }),
        one("restore", Ask::Restore { name: "b".to_owned(), to: ticket() }),
        one("join", Ask::Join { pool: 7, secret: [4; SECRET], parts: vec![1, 2] }),
        one("part", Ask::MakePart { part: 1, size: 1 << 20, kind: PartKind::Persistent }),
    ]
}

fn answer_seeds() -> Vec<Seed> {
    let hello = Answer::Hello { version: VERSION, user: 1000, group: 100, servers: Vec::new() };
    let one = |name: &'static str, answer: Answer| seed(name, encode_answer(&Ok(answer)));
    vec![one("done", Answer::Done), one("hello", hello), one("opened", Answer::Opened { number: 4 })]
}

fn file_seeds() -> Vec<Seed> {
    vec![
        seed("pe", b"fam_client_interface_service_address: 127.0.0.1:8787\nprovider: sockets\n".to_vec()),
        seed("interface", b"memsrv_list: [0:127.0.0.1:8789, 1:node2:8790]\n".to_vec()),
        seed("memory", b"Memservers:\n 0:\n  memory_type: persistent\n  fam_path: /var/fam\n".to_vec()),
        seed("metadata", b"metadata_path: /var/meta\ndataitem_interleave_size: 4096\n".to_vec()),
    ]
}
