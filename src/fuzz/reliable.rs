//! The datagrams of the transport `udp`, and its reliable core.

use super::{Reader, Seed, Target, seed};
use crate::base::process::Process;
use crate::transport::udp::reliable::{Arrived, Buffers, Connection, Content, Parameters, Sending, State};
use crate::wire::datagram::{DatagramKind, Fragment, HEADER, Header, Hello, MAP, NO_DELAY};
use crate::wire::frame::HEAD_MAX;

/// The headers of datagrams, and the hellos.
pub const DATAGRAM: Target = Target { name: "datagram", feed: datagram, seeds: headers };

/// The reliable core.
pub const RELIABLE: Target = Target { name: "reliable", feed: reliable, seeds: conversations };

fn datagram(content: &[u8]) -> bool {
    let hello = Hello::decode(content);
    if let Some(hello) = hello {
        assert_eq!(hello.encode(), content);
    }
    let Some((header, after)) = Header::decode(content) else { return hello.is_some() };
    assert_eq!(after, &content[HEADER..]);
    let again = [&header.encode()[..], after].concat();
    assert_eq!(Header::decode(&again), Some((header, after)));
    match header.kind {
        DatagramKind::Data(fragment) => {
            assert!(usize::from(fragment.head_len) <= HEAD_MAX.min(fragment.packet_len as usize));
            let range = fragment.place(after.len()).expect("it was looked at");
            // Its bytes lie in the packet, and no two fragments share any.
            assert!(range.start <= range.end && range.end <= fragment.packet_len as usize);
            assert!(range.start == usize::from(fragment.index) * after.len() && range.len() <= after.len());
        }
        DatagramKind::Acknowledgement(words) => assert_eq!(after.len(), 8 * usize::from(words)),
        DatagramKind::Probe(_) => {}
        DatagramKind::Ping | DatagramKind::Close(_) | DatagramKind::Closed | DatagramKind::Reply(_) => {
            assert!(after.is_empty())
        }
    }
    true
}

fn headers() -> Vec<Seed> {
    let header = |kind| Header { kind, acknowledged: 3, echo: 4, room: 5, delay: NO_DELAY }.encode();
    let fragment = Fragment { number: 7, index: 1, count: 3, head_len: 48, packet_len: 70, urgent: true };
    let process = Process { pid: 4, started: 5 };
    let hello = Hello { mine: 1, yours: 2, epoch: 3, process, longest: 0, opening: 0 };
    vec![
        seed("data", [&header(DatagramKind::Data(fragment))[..], &[1; 24]].concat()),
        seed("acknowledgement", [&header(DatagramKind::Acknowledgement(2))[..], &[5; 16]].concat()),
        seed("ping", header(DatagramKind::Ping)),
        seed("close", header(DatagramKind::Close(9))),
        seed("closed", header(DatagramKind::Closed)),
        seed("probe", [&header(DatagramKind::Probe(9))[..], &[6; 20]].concat()),
        seed("reply", header(DatagramKind::Reply(9))),
        seed("hello", hello.encode()),
    ]
}

const PARAMETERS: Parameters = Parameters {
    unit: 16,
    base: 9,
    window: 12,
    acknowledge_every: 3,
    acknowledge_after: 500_000,
    longest_interval: 400_000_000,
};

/// The longest packet, in bytes.
const LONGEST: usize = 5 * PARAMETERS.unit;

/// The process of both sides.
const PROCESS: Process = Process { pid: 1, started: 1 };

/// One side of a connection, and what it has in memory.
struct Side {
    connection: Connection,
    buffers: Buffers,
    taken: Vec<Arrived>,
}

/// What an input does, by a byte that stands for it.
mod action {
    /// Bytes arrive: their number, and they.
    pub const BYTES: u8 = 0;
    /// The header of a fragment arrives, with small numbers.
    pub const FRAGMENT: u8 = 1;
    /// Another header arrives, with small numbers.
    pub const HEADER: u8 = 2;
    /// A hello arrives.
    pub const HELLO: u8 = 3;
    /// A packet is to be sent: its length.
    pub const PUSH: u8 = 4;
    /// Time passes.
    pub const WAIT: u8 = 5;
    /// What is due is sent, and arrives at the other side unless a bit says that it is lost.
    pub const SEND: u8 = 6;
    /// Packets are released.
    pub const RELEASE: u8 = 7;
    /// The peer is kicked.
    pub const KICK: u8 = 8;
    /// The task ends LAPI.
    pub const CLOSE: u8 = 9;
    pub const COUNT: u8 = 10;
}

impl Side {
    fn new(mine: u128, yours: u128) -> Self {
        let hello = Hello { mine, yours, epoch: 0, process: PROCESS, longest: 0, opening: 0 };
        let buffers = Buffers::new(PARAMETERS.unit, LONGEST);
        Self { connection: Connection::new(hello, &PARAMETERS, 0), buffers, taken: Vec::new() }
    }

    fn receive(&mut self, now: u64, theirs: u128, transmission: u64, content: &[u8]) {
        self.connection.receive(now, theirs, transmission, content, &mut self.buffers);
        while let Some(packet) = self.connection.take() {
            assert!(
                packet.head_len <= packet.len
                    && packet.len <= LONGEST
                    && packet.len <= 8 * packet.buffer.len()
            );
            self.taken.push(packet);
        }
        // Room is given back by `release` alone: whatever arrives, there is no more than
        // the window has.
        let kept: u64 = self.taken.iter().map(|packet| u64::from(packet.fragments)).sum();
        assert!(kept <= u64::from(PARAMETERS.window));
    }

    fn release(&mut self) {
        if let Some(packet) = self.taken.pop() {
            self.connection.release(packet.fragments);
            self.buffers.give(packet.buffer);
        }
    }

    fn push(&mut self, now: u64, len: usize) {
        if self.connection.has_room(len)
            && let Some(buffer) = self.buffers.take(len)
        {
            self.connection.push(now, buffer, (len / 2 / 8 * 8).min(HEAD_MAX), len);
        }
    }

    fn content(&self, sending: &Sending) -> Option<Vec<u8>> {
        Some(match &sending.content {
            Content::Hello => self.connection.hello().encode().to_vec(),
            Content::Header(header) => header.to_vec(),
            Content::Fragment(header, number) => [header, self.connection.payload(*number)?].concat(),
            Content::Map(header, len) => [&header[..], &self.connection.map()[..*len]].concat(),
            Content::Padded(header, len) => [&header[..], &[0; PARAMETERS.unit][..*len]].concat(),
        })
    }
}

/// The input: actions of two sides of a connection, and of a peer that knows the keys and
/// sends anything.
fn reliable(bytes: &[u8]) -> bool {
    let mut reader = Reader(bytes);
    let mut sides = [Side::new(1, 2), Side::new(2, 1)];
    let (mut now, mut forged) = (0, 0);
    while !reader.is_empty() {
        let byte = reader.byte();
        let (at, other) = if byte & 0x80 == 0 { (0, 1) } else { (1, 0) };
        let theirs = other as u128 + 1;
        match byte % 0x80 % action::COUNT {
            action::BYTES => {
                let len = usize::from(reader.byte());
                forged += 1;
                sides[at].receive(now, theirs, forged, reader.bytes(len));
            }
            action::FRAGMENT => {
                let (content, number) = a_fragment(&mut reader);
                sides[at].receive(now, theirs, number, &content);
            }
            action::HEADER => {
                let (content, number) = a_header(&mut reader);
                sides[at].receive(now, theirs, number, &content);
            }
            action::HELLO => {
                let [mine, yours] = [reader.byte(), reader.byte()].map(|number| u128::from(number % 4));
                let hello =
                    Hello { mine: mine.max(1), yours, epoch: 0, process: PROCESS, longest: 0, opening: 0 };
                sides[at].connection.receive_hello(now, &hello);
            }
            action::PUSH => sides[at].push(now, 1 + usize::from(reader.byte()) % LONGEST),
            action::WAIT => now += u64::from(reader.byte()).pow(2) * 10_000,
            action::SEND => send(&mut sides, at, now, reader.byte()),
            action::RELEASE => sides[at].release(),
            action::KICK => sides[at].connection.kick(now),
            _ => {
                debug_assert_eq!(byte % 0x80 % action::COUNT, action::CLOSE);
                sides[at].connection.close(now);
            }
        }
        for side in &sides {
            side.connection.check(&PARAMETERS);
            let due = side.connection.due(now);
            assert!(due.is_none_or(|due| due <= now + 60_000_000_000), "nothing waits for ever");
        }
    }
    for side in &mut sides {
        side.connection.abandon(&mut side.buffers);
        assert!(side.connection.is_empty());
    }
    sides.iter().any(|side| side.connection.state() != State::Opening)
}

/// Lets one side send what is due: no more than there can be at one moment.
fn send(sides: &mut [Side; 2], at: usize, now: u64, lost: u8) {
    let other = 1 - at;
    for step in 0..4 * usize::from(PARAMETERS.window) {
        let Some(sending) = sides[at].connection.transmit(now) else { return };
        let content = sides[at].content(&sending);
        let Some(content) = content.filter(|_| lost >> (step % 8) & 1 == 0) else { continue };
        if matches!(sending.content, Content::Hello) {
            let hello = *sides[at].connection.hello();
            sides[other].connection.receive_hello(now, &hello);
        } else {
            assert!(Header::decode(&content).is_some(), "what is sent is sound");
            sides[other].receive(now, at as u128 + 1, sending.transmission, &content);
        }
    }
    panic!("it sends without end");
}

/// A fragment that may fit to others: numbers up to 15 for most of its fields.
fn a_fragment(reader: &mut Reader<'_>) -> (Vec<u8>, u64) {
    let [number, place, size, report] = [(); 4].map(|()| reader.byte());
    let (index, count) = (u16::from(place & 15), u16::from(place >> 4));
    let (head_len, len) = (size & 0x40, usize::from(size & 0x3f) % 33);
    let packet_len = if count == 1 { len } else { usize::from(count) * PARAMETERS.unit };
    let fragment = Fragment {
        number: number.into(),
        index,
        count,
        head_len: head_len / 8,
        packet_len: packet_len as u32,
        urgent: report & 0x80 != 0,
    };
    (with_report(DatagramKind::Data(fragment), report, &vec![number; len]), u64::from(number))
}

fn a_header(reader: &mut Reader<'_>) -> (Vec<u8>, u64) {
    let [kind, number, report] = [(); 3].map(|()| reader.byte());
    let words = kind >> 4 & 1;
    let kind = match kind % 4 {
        0 => DatagramKind::Acknowledgement(words),
        1 => DatagramKind::Ping,
        2 => DatagramKind::Close(number.into()),
        _ => DatagramKind::Closed,
    };
    let map = if kind == DatagramKind::Acknowledgement(1) {
        reader.long().to_le_bytes().to_vec()
    } else {
        Vec::new()
    };
    const { assert!(MAP >= 1) };
    (with_report(kind, report, &map), u64::from(number))
}

fn with_report(kind: DatagramKind, report: u8, after: &[u8]) -> Vec<u8> {
    let report = u64::from(report);
    let header = Header {
        kind,
        acknowledged: report & 15,
        echo: report >> 2 & 31,
        room: (report >> 3) as u16,
        delay: if report & 1 == 0 { NO_DELAY } else { 1 },
    };
    [&header.encode()[..], after].concat()
}

fn conversations() -> Vec<Seed> {
    use action::{BYTES, CLOSE, FRAGMENT, HEADER, KICK, PUSH, RELEASE, SEND, WAIT};
    const OTHER: u8 = 0x80;
    let up = [SEND, 0, OTHER | SEND, 0, SEND, 0, OTHER | SEND, 0];
    let packets = [PUSH, 70, PUSH, 5, KICK, SEND, 2, OTHER | SEND, 0, OTHER | RELEASE];
    let again = [WAIT, 200, SEND, 0, WAIT, 100, OTHER | SEND, 0, OTHER | RELEASE, OTHER | PUSH, 9];
    let end = [CLOSE, SEND, 0, OTHER | SEND, 0, OTHER | CLOSE, OTHER | SEND, 0, SEND, 0];
    let forged =
        [FRAGMENT, 0, 0x20, 16, 3, FRAGMENT, 1, 0x21, 16, 3, HEADER, 0x10, 1, 9, 3, 0, 0, 0, 0, 0, 0, 0];
    vec![
        seed("packets", [&up[..], &packets, &again].concat()),
        seed("end", [&up[..], &packets, &again, &end].concat()),
        seed("forged", [&up[..], &[PUSH, 70, SEND, 0xff], &forged, &[BYTES, 40], &[0; 40]].concat()),
    ]
}
