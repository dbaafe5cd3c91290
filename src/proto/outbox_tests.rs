//! What one lane does, step by step, on a link with room for a number of packets.

use super::*;
use crate::base::rng::Rng;
use crate::proto::lane::PUMP_BUDGET;
use crate::proto::tests::network::gather;
use std::collections::VecDeque;

impl Outbox {
    /// As if `number` messages had been sent to `peer` and confirmed.
    pub(crate) fn begin_at(&mut self, peer: Task, number: u64) {
        let lane = self.lanes[peer as usize].get_or_insert_default();
        (lane.next, lane.acknowledged, lane.asked) = (number, number, number);
    }
}

/// Takes a number of packets, and keeps them.
#[derive(Default)]
struct Room {
    left: usize,
    gone: bool,
    /// Lendable packets are taken, and named here when they are done.
    takes: bool,
    tickets: u64,
    completed: VecDeque<Ticket>,
    taken: Vec<(Task, Head, Vec<u8>)>,
}

impl Transmit for Room {
    unsafe fn send(&mut self, peer: Task, packet: &Outgoing<'_>) -> SendOutcome {
        if self.gone {
            return SendOutcome::Gone;
        }
        let Some(left) = self.left.checked_sub(1) else { return SendOutcome::NoRoom };
        self.left = left;
        // SAFETY: the caller's promise.
        let words = unsafe { gather(packet) };
        let body: Vec<u8> =
            words.iter().flat_map(|word| word.to_ne_bytes()).take(packet.body_len()).collect();
        self.taken.push((peer, Head::decode(packet.head).expect("a head"), body));
        match packet.lendable() {
            Some(_) if self.takes => {
                self.tickets += 1;
                SendOutcome::Taken(Ticket(self.tickets))
            }
            _ => SendOutcome::Sent,
        }
    }
}

impl Room {
    fn heads(&mut self) -> Vec<Head> {
        self.taken.drain(..).map(|(_, head, _)| head).collect()
    }
}

const BODY: usize = 64;

fn done(info: usize) -> SendDone {
    SendDone { info, ..SendDone::nothing(1) }
}

fn put(id: u32) -> Head {
    Head::Put { id, addr: 8, tgt_cntr: 0, cookie: 0, total: 0 }
}

/// Sends one packet of data, or of a header and data.
fn send(outbox: &mut Outbox, room: &mut Room, id: u32, header: &[u8], data: &[u8], limit: usize) -> Sent {
    let body = Body { header: Piece::of(header), data: &Content::Piece(Piece::of(data)) };
    // SAFETY: the tests keep what is queued.
    unsafe { outbox.send(room, 1, &put(id), body, limit, done(id as usize)) }
}

fn send_stream(outbox: &mut Outbox, peer: Task, id: u32, data: &[u8], how: Streaming) -> Sent {
    let (first, header) = (put(id), Piece::of(b"four"));
    let (next, data) = (Continuation::Message(id), Content::Piece(Piece::of(data)));
    // SAFETY: the tests keep what is queued.
    unsafe { outbox.send_stream(peer, Some((&first, header)), next, &data, how, done(id as usize)) }
}

const AS_IT_IS: Streaming = Streaming { copied: false, atom: 0 };

fn pump(outbox: &mut Outbox, room: &mut Room, left: usize) -> Vec<(usize, i32)> {
    room.left = left;
    let mut finished = Vec::new();
    room.completed.drain(..).for_each(|ticket| outbox.free(ticket, &mut finished));
    outbox.pump(room, &mut finished);
    finished.iter().map(|done| (done.info, done.error)).collect()
}

#[test]
fn without_room_a_packet_is_parked_and_copied_up_to_the_limit() {
    let (mut outbox, mut room) = (Outbox::new(2, BODY), Room::default());
    let (mut header, mut short, long) = (*b"hea", *b"short", *b"a bit longer");
    assert_eq!(send(&mut outbox, &mut room, 1, &header, &short, 8), Sent::Free);
    assert_eq!(send(&mut outbox, &mut room, 2, &header, &long, 8), Sent::Queued);
    assert_eq!(send(&mut outbox, &mut room, 3, &[], &short[..0], 0), Sent::Free);
    // What was copied may change: both headers, and the short data.
    header.fill(0);
    short.fill(0);
    assert!(outbox.waiting() && outbox.waits(1) && !outbox.waits(0) && outbox.parked(1) == 3);
    assert_eq!(pump(&mut outbox, &mut room, 1), []);
    assert_eq!(pump(&mut outbox, &mut room, 9), [(2, 0)], "only the one that was not copied is reported");
    assert!(!outbox.waiting() && room.left == 7);
    let bodies: Vec<_> = room.taken.iter().map(|(_, _, body)| body.as_slice()).collect();
    assert_eq!(bodies, [&b"hea\0\0\0\0\0short"[..], b"hea\0\0\0\0\0a bit longer", b""]);
}

#[test]
fn at_once_goes_what_changes_nothing_else() {
    let (mut outbox, mut room) = (Outbox::new(2, BODY), Room { left: 3, ..Room::default() });
    let at_once = |outbox: &mut Outbox, room: &mut Room| {
        let Some(number) = outbox.at_once(1) else { return false };
        let head = put(*number as u32).encode();
        let (first, second) = (Piece::of(b"head"), Piece::of(b"data").into());
        let packet = Outgoing { head: head.as_bytes(), first, second, copy_limit: usize::MAX };
        // SAFETY: the pieces live.
        let sent = unsafe { room.send(1, &packet) } == SendOutcome::Sent;
        *number += u64::from(sent);
        sent
    };
    assert!(!at_once(&mut outbox, &mut room), "a fence does not know of the peer");
    assert_eq!(outbox.number(1), 0);
    send(&mut outbox, &mut room, 0, &[], b"x", BODY);
    assert!(at_once(&mut outbox, &mut room) && at_once(&mut outbox, &mut room));
    assert!(!at_once(&mut outbox, &mut room), "there is no room");
    assert_eq!(
        room.taken[1..].iter().map(|(_, _, body)| &body[..]).collect::<Vec<_>>(),
        [b"head\0\0\0\0data"; 2]
    );
    assert_eq!(room.heads(), [put(0), put(1), put(2)]);
    assert!(!outbox.waiting() && outbox.number(1) == 3);
    send(&mut outbox, &mut room, 3, &[], b"x", BODY);
    room.left = 3;
    assert!(!at_once(&mut outbox, &mut room), "one waits that must go first");
    pump(&mut outbox, &mut room, 1);
    room.left = 1;
    assert!(at_once(&mut outbox, &mut room));
    let mut asked = Vec::new();
    room.left = 2;
    outbox.ask(&mut room, |peer, count| asked.push((peer, count)));
    assert_eq!(asked, [(1, 5)], "a fence asks for all of them");
    outbox.acknowledge(1, 5);
    assert!(!at_once(&mut outbox, &mut room), "the next fence would not ask the peer");
}

#[test]
fn packets_keep_their_order_once_one_is_parked() {
    let (mut outbox, mut room) = (Outbox::new(2, BODY), Room::default());
    send(&mut outbox, &mut room, 1, &[], b"x", BODY);
    room.left = 5;
    send(&mut outbox, &mut room, 2, &[], b"x", BODY);
    assert!(room.taken.is_empty(), "the second does not overtake the first");
    pump(&mut outbox, &mut room, 5);
    assert_eq!(room.heads(), [put(1), put(2)]);
}

#[test]
fn short_messages_pass_streams_and_streams_keep_their_order() {
    let (mut outbox, mut room) = (Outbox::new(2, BODY), Room::default());
    let data: Vec<u8> = (0..200).collect();
    assert_eq!(send_stream(&mut outbox, 1, 1, &data, AS_IT_IS), Sent::Queued);
    assert_eq!(send_stream(&mut outbox, 1, 2, &data[..60], AS_IT_IS), Sent::Queued);
    assert_eq!(pump(&mut outbox, &mut room, 2), []);
    // One goes at once, past both streams; two are parked, and go before the streams.
    room.left = 1;
    send(&mut outbox, &mut room, 3, &[], b"x", BODY);
    send(&mut outbox, &mut room, 4, &[], b"x", BODY);
    send(&mut outbox, &mut room, 5, &[], b"x", BODY);
    assert_eq!(pump(&mut outbox, &mut room, 100), [(1, 0), (2, 0)]);
    let data_of = |id, offset| Head::Data { id, offset };
    let order = [
        put(1),
        data_of(1, 56),
        put(3),
        put(4),
        put(5),
        data_of(1, 120),
        data_of(1, 184),
        put(2),
        data_of(2, 56),
    ];
    let bodies: Vec<u8> = room
        .taken
        .iter()
        .filter(|(_, head, _)| matches!(head, Head::Data { id: 1, .. }) || *head == put(1))
        .flat_map(|(_, head, body)| body[if *head == put(1) { 8 } else { 0 }..].to_vec())
        .collect();
    assert_eq!(bodies, data);
    assert_eq!(room.heads(), order);
}

#[test]
fn a_stream_that_was_copied_is_free_at_once() {
    let (mut outbox, mut room) = (Outbox::new(2, BODY), Room::default());
    let mut data = [7u8; 150];
    assert_eq!(send_stream(&mut outbox, 1, 1, &data, Streaming { copied: true, atom: 0 }), Sent::Free);
    data.fill(0);
    assert_eq!(pump(&mut outbox, &mut room, 100), []);
    assert!(room.taken.iter().all(|(_, _, body)| body.iter().rev().take(30).all(|&byte| byte == 7)));
}

#[test]
fn packets_of_a_stream_hold_whole_atoms() {
    let (mut outbox, mut room) = (Outbox::new(2, BODY), Room::default());
    let data: Vec<u8> = (0..200).collect();
    send_stream(&mut outbox, 1, 1, &data, Streaming { copied: false, atom: 24 });
    assert_eq!(pump(&mut outbox, &mut room, 100), [(1, 0)]);
    let lens: Vec<_> = room.taken.iter().map(|(_, _, body)| body.len()).collect();
    // Room for 64 bytes; the first packet has 8 of header as well.
    assert_eq!(lens, [8 + 48, 48, 48, 48, 8]);
}

#[test]
fn no_stream_keeps_the_others_from_their_turn() {
    let (mut outbox, mut room) = (Outbox::new(3, BODY), Room::default());
    let data = vec![0; 100 * BODY];
    send_stream(&mut outbox, 1, 1, &data, AS_IT_IS);
    send_stream(&mut outbox, 2, 2, &data, AS_IT_IS);
    pump(&mut outbox, &mut room, 1000);
    let to = |peer| room.taken.iter().filter(|(to, _, _)| *to == peer).count();
    assert_eq!([to(1), to(2)], [PUMP_BUDGET; 2]);
}

#[test]
fn what_waits_for_a_peer_that_leaves_ends_with_an_error() {
    for abandoned in [false, true] {
        let (mut outbox, mut room) = (Outbox::new(3, BODY), Room::default());
        let data = [1u8; 500];
        send(&mut outbox, &mut room, 1, &[], &data[..60], 0);
        send(&mut outbox, &mut room, 2, &[], &data[..60], BODY);
        send_stream(&mut outbox, 1, 3, &data, AS_IT_IS);
        send_stream(&mut outbox, 2, 4, &data, AS_IT_IS);
        outbox.number(1);
        let mut finished = Vec::new();
        if abandoned {
            outbox.abandon(1, LAPI_ERR_NO_CONNECTIVITY, &mut finished);
            assert!(outbox.confirmed(1, 1) && outbox.waiting_for().eq([2]));
        } else {
            room.gone = true;
            outbox.pump(&mut room, &mut finished);
            assert!(!outbox.waiting());
        }
        let ended: Vec<_> =
            finished.iter().filter(|done| done.info != 4).map(|done| (done.info, done.error)).collect();
        assert_eq!(ended, [(1, LAPI_ERR_NO_CONNECTIVITY), (3, LAPI_ERR_NO_CONNECTIVITY)]);
        room = Room { left: 9, ..Room::default() };
        assert_eq!(send(&mut outbox, &mut room, 5, &[], b"x", BODY), Sent::Gone);
        assert_eq!(send_stream(&mut outbox, 1, 6, &data, AS_IT_IS), Sent::Gone);
        assert!(room.taken.is_empty() && outbox.is_gone(1));
    }
}

#[test]
fn a_fence_asks_once_and_accepts_only_possible_counts() {
    for begin in [0, u64::from(u32::MAX) - 1, (5 << 32) - 3, (1 << 31) - 2] {
        let (mut outbox, mut room) = (Outbox::new(3, BODY), Room { left: 99, ..Room::default() });
        outbox.begin_at(1, begin);
        let mut ask = |outbox: &mut Outbox| {
            let mut asked = Vec::new();
            outbox.ask(&mut room, |peer, count| asked.push((peer, count)));
            (asked, room.heads())
        };
        assert_eq!(ask(&mut outbox), (vec![], vec![]), "nothing was sent");
        let numbers: Vec<u32> = (0..4).map(|_| outbox.number(1)).collect();
        assert_eq!(numbers, (0..4).map(|at| (begin + at) as u32).collect::<Vec<_>>());
        let question = Head::Fence { count: (begin + 4) as u32 };
        assert_eq!(ask(&mut outbox), (vec![(1, begin + 4)], vec![question]));
        assert_eq!(ask(&mut outbox), (vec![(1, begin + 4)], vec![]), "the question is on its way");
        assert_eq!(outbox.unconfirmed(), [1]);
        outbox.number(1);
        for wrong in [begin + 5, begin.wrapping_sub(1), begin, begin + (1 << 31)] {
            outbox.acknowledge(1, wrong as u32);
            assert!(!outbox.confirmed(1, begin + 4), "{wrong} was believed");
        }
        outbox.acknowledge(1, (begin + 4) as u32);
        assert!(outbox.confirmed(1, begin + 4) && !outbox.confirmed(1, begin + 5));
        assert_eq!(ask(&mut outbox).1, [Head::Fence { count: (begin + 5) as u32 }]);
        outbox.acknowledge(1, (begin + 5) as u32);
        assert_eq!(ask(&mut outbox), (vec![], vec![]), "all is confirmed");
        assert!(outbox.unconfirmed().is_empty());
    }
}

#[test]
fn a_fence_covers_more_messages_than_numbers_have_bits() {
    let (mut outbox, mut room) = (Outbox::new(2, BODY), Room { left: 9, ..Room::default() });
    outbox.number(1);
    let lane = outbox.lanes[1].as_deref_mut().expect("a lane with a message");
    // That is the number of messages without a fence.
    lane.next = (1 << 32) + (1 << 31) + 7;
    let count = lane.next;
    let mut asked = Vec::new();
    outbox.ask(&mut room, |peer, count| asked.push((peer, count)));
    assert_eq!((asked, room.heads()), (vec![(1, count)], vec![Head::Fence { count: count as u32 }]));
    assert!(!outbox.confirmed(1, count));
    outbox.acknowledge(1, count as u32);
    assert!(outbox.confirmed(1, count));
}

#[test]
fn a_fence_that_finds_neither_room_nor_memory_is_sent_first() {
    let (mut outbox, mut room) = (Outbox::new(2, BODY), Room { left: 1, ..Room::default() });
    outbox.number(1);
    assert_eq!(send(&mut outbox, &mut room, 0, &[], b"x", BODY), Sent::Free);
    outbox.exhausted = true;
    (0..2).for_each(|_| outbox.ask(&mut room, |_, _| {}));
    assert!(outbox.waiting() && outbox.waits(1) && outbox.asks(1));
    assert_eq!((outbox.parked(1), outbox.bytes(1)), (0, 0));
    outbox.exhausted = false;
    outbox.number(1);
    room.left = 1;
    send(&mut outbox, &mut room, 1, &[], b"x", BODY);
    assert_eq!(outbox.parked(1), 1, "it does not take the fence's room");
    room.left = 0;
    outbox.ask(&mut room, |_, _| {});
    pump(&mut outbox, &mut room, 9);
    assert_eq!(room.heads(), [put(0), Head::Fence { count: 2 }, put(1)], "one fence about both");
    outbox.acknowledge(1, 2);
    assert!(outbox.is_fenced() && !outbox.waiting());
    // Nothing of it is left behind where the peer leaves.
    outbox.number(1);
    room.left = 0;
    outbox.ask(&mut room, |_, _| {});
    assert!(outbox.waiting());
    outbox.abandon(1, 7, &mut Vec::new());
    assert!(!outbox.waiting() && outbox.is_fenced() && pump(&mut outbox, &mut room, 9).is_empty());
    assert_eq!(room.heads(), []);
}

/// Small messages without end, and one stream: it continues at each pump.
#[test]
fn a_stream_does_not_starve_behind_small_messages() {
    for seed in 1..=20 {
        let mut rng = Rng::stream(seed, 5);
        let (mut outbox, mut room) = (Outbox::new(2, BODY), Room::default());
        let long = vec![7; 40 * BODY];
        assert_eq!(send_stream(&mut outbox, 1, 0, &long, AS_IT_IS), Sent::Queued);
        let (mut finished, mut id, mut rounds) = (Vec::new(), 1, 0);
        while finished.is_empty() {
            rounds += 1;
            assert!(rounds < 1000, "seed {seed}: the stream is stuck");
            // More than there is room for: something small always waits.
            for _ in 0..rng.below(4) + 4 {
                room.left = 0;
                send(&mut outbox, &mut room, id, b"", b"small", 128);
                id += 1;
            }
            let room_made = rng.below(4) as usize + 1;
            finished = pump(&mut outbox, &mut room, room_made);
            assert!(outbox.parked(1) > 0, "seed {seed}");
        }
        assert_eq!(finished, [(0, 0)]);
        let small = room.taken.iter().filter(|(_, head, _)| matches!(head, Head::Put { id, .. } if *id != 0));
        assert!(small.count() > 40, "seed {seed}: small messages continue as well");
    }
}

#[test]
fn what_waits_is_counted_in_bytes_and_buffers() {
    for seed in 1..=20 {
        let mut rng = Rng::stream(seed, 6);
        let (mut outbox, mut room) = (Outbox::new(3, BODY), Room::default());
        outbox.limit_buffers(3);
        let data = vec![1; 10 * BODY];
        for step in 0..400 {
            let len = rng.below(BODY as u64) as usize;
            let free = outbox.has_buffer();
            room.left = 0;
            outbox.set_forwarding(rng.chance(0.5));
            match rng.below(6) {
                0 | 1 => {
                    let sent = send(&mut outbox, &mut room, step, b"", &data[..len], BODY / 2);
                    let copied = len <= BODY / 2 && free;
                    assert_eq!(
                        sent,
                        if copied { Sent::Free } else { Sent::Queued },
                        "seed {seed}, step {step}"
                    );
                }
                2 if free => {
                    let how = Streaming { copied: true, atom: 0 };
                    let before = outbox.bytes(2);
                    assert_eq!(send_stream(&mut outbox, 2, step, &data, how), Sent::Free);
                    assert!(outbox.bytes(2) >= before + data.len(), "seed {seed}, step {step}: its copy");
                }
                3 => {
                    pump(&mut outbox, &mut room, rng.below(8) as usize);
                }
                4 if rng.chance(0.05) => {
                    let peer = 1 + rng.below(2) as Task;
                    outbox.abandon(peer, 7, &mut Vec::new());
                    outbox.renew(peer);
                }
                _ => {}
            }
            assert_eq!(outbox.bytes(1) + outbox.bytes(2), outbox.bytes_in_all(), "seed {seed}, step {step}");
            for (peer, other) in [(1, 2), (2, 1)] {
                let forwarded = outbox.forwarded_beside(peer);
                assert!(forwarded <= outbox.bytes(other), "seed {seed}, step {step}: {forwarded} bytes");
            }
            assert_eq!(outbox.waiting(), outbox.bytes_in_all() != 0, "seed {seed}, step {step}");
        }
        while outbox.waiting() {
            pump(&mut outbox, &mut room, 100);
        }
        assert_eq!((outbox.bytes_in_all(), outbox.forwarded_beside(0)), (0, 0), "seed {seed}");
        assert!(outbox.has_buffer(), "seed {seed}: all buffers are free again");
    }
}

#[test]
fn no_more_messages_are_copied_than_there_are_buffers() {
    let (mut outbox, mut room) = (Outbox::new(2, BODY), Room::default());
    outbox.limit_buffers(2);
    let data = [1; 10 * BODY];
    assert!(outbox.has_buffer());
    assert_eq!(send(&mut outbox, &mut room, 1, b"", b"small", BODY), Sent::Free);
    let how = Streaming { copied: true, atom: 0 };
    assert_eq!(send_stream(&mut outbox, 1, 2, &data, how), Sent::Free);
    assert!(!outbox.has_buffer());
    assert_eq!(send(&mut outbox, &mut room, 3, b"", b"small", BODY), Sent::Queued);
    // What must be copied takes no buffer.
    assert_eq!(send(&mut outbox, &mut room, 4, b"", b"small", usize::MAX), Sent::Free);
    assert_eq!(pump(&mut outbox, &mut room, 1), [], "the first one, which was copied");
    assert!(outbox.has_buffer());
    assert_eq!(send(&mut outbox, &mut room, 5, b"", b"small", BODY), Sent::Free);
    assert_eq!(send(&mut outbox, &mut room, 6, b"", b"small", BODY), Sent::Queued);
    assert_eq!(pump(&mut outbox, &mut room, 100), [(3, 0), (6, 0)]);
}

#[test]
fn what_header_handlers_send_is_counted_by_itself() {
    let (mut outbox, mut room) = (Outbox::new(4, BODY), Room::default());
    let park = |outbox: &mut Outbox, peer| {
        let body = Body { header: Piece::of(b"four"), data: &Content::EMPTY };
        // SAFETY: the header is copied.
        unsafe { outbox.send(&mut Room::default(), peer, &put(0), body, usize::MAX, done(0)) }
    };
    park(&mut outbox, 1);
    assert_eq!(outbox.forwarded_beside(2), 0, "the program's own calls");
    outbox.set_forwarding(true);
    park(&mut outbox, 1);
    park(&mut outbox, 2);
    outbox.set_forwarding(false);
    park(&mut outbox, 3);
    let one = outbox.bytes(3);
    let beside = [1, 2, 3].map(|peer| outbox.forwarded_beside(peer));
    assert_eq!(beside, [one, one, 2 * one], "of three messages of the same length each");
    outbox.abandon(2, 7, &mut Vec::new());
    assert_eq!(outbox.forwarded_beside(3), one);
    // In order: the program's message first.
    pump(&mut outbox, &mut room, 1);
    assert_eq!(outbox.forwarded_beside(3), one);
    pump(&mut outbox, &mut room, 1);
    assert_eq!(outbox.forwarded_beside(3), 0);
}

#[test]
fn a_stream_is_cut_for_its_peer() {
    let (mut outbox, mut room) = (Outbox::new(3, BODY), Room::default());
    outbox.set_bodies([BODY as u32, BODY as u32, 3 * BODY as u32].into());
    let data = [7; 4 * BODY];
    assert_eq!((outbox.max_body(), outbox.max_body_to(1), outbox.max_body_to(2)), (BODY, BODY, 3 * BODY));
    for peer in [1, 2] {
        assert_eq!(send_stream(&mut outbox, peer, 1, &data, AS_IT_IS), Sent::Queued);
    }
    assert_eq!(pump(&mut outbox, &mut room, 99).len(), 2);
    let bodies = |to| -> Vec<usize> {
        room.taken.iter().filter(|(peer, ..)| *peer == to).map(|(.., body)| body.len()).collect()
    };
    // The first packet has a header of 8 bytes with its padding.
    assert_eq!((bodies(1), bodies(2)), (vec![BODY, BODY, BODY, BODY, 8], vec![3 * BODY, BODY + 8]));
}
