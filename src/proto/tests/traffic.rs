//! Messages, gets and fences among a few tasks, until everything is delivered; fences are held
//! to their word.

use super::network::{Network, Packet};
use super::seeds;
use crate::base::rng::Rng;
use crate::memory::bytes::{Piece, pad8};
use crate::proto::content::{Content, Sink};
use crate::proto::inbox::{Assembly, Inbox, Misplaced};
use crate::proto::ops::{Op, Ops};
use crate::proto::outbox::{Body, Continuation, Outbox, SendDone, Sent, Streaming};
use crate::proto::tests::network;
use crate::wire::frame::Task;
use crate::wire::packet::Head;

const MAX_BODY: usize = 128;

/// A message, or a get.
struct DirectCopy {
    from: Task,
    to: Task,
    header: Vec<u8>,
    /// The data where it comes from; spoilt as soon as the sender is done with it.
    source: Box<[u8]>,
    /// Where it goes.
    sink: Box<[u8]>,
    delivered: bool,
    /// How often it was reported that the sender is done with its memory; the send may have
    /// reported it already.
    reported: u32,
    free: bool,
}

struct Fence {
    epoch: u64,
    asked: Vec<(Task, u64)>,
    /// What it covers: transfers up to this number.
    covers: usize,
    over: bool,
}

struct Node {
    outbox: Outbox,
    inbox: Inbox<usize>,
    ops: Ops,
    finished: Vec<SendDone>,
    fences: Vec<Fence>,
}

struct World {
    rng: Rng,
    network: Network,
    nodes: Vec<Node>,
    transfers: Vec<DirectCopy>,
}

/// What a byte of a transfer is.
fn byte(number: usize, at: usize) -> u8 {
    (number.wrapping_mul(167) ^ at ^ at >> 7) as u8
}

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let tasks = 2 + rng.below(4) as u32;
        let network = Network::new(seed, 1 + rng.below(12) as usize, 0.1, rng.chance(0.3));
        // The numbers that messages begin with: a job may have run for long.
        let begin = [0, (1 << 32) - 20, (1 << 31) - 20, (7 << 32) - 5][rng.below(4) as usize];
        let node = |me: Task| {
            let mut node = Node {
                outbox: Outbox::new(tasks, MAX_BODY),
                inbox: Inbox::new(tasks),
                ops: Ops::new(4),
                finished: Vec::new(),
                fences: Vec::new(),
            };
            for peer in (0..tasks).filter(|&peer| peer != me) {
                node.outbox.begin_at(peer, begin);
                node.inbox.begin_at(peer, begin as u32);
            }
            node
        };
        Self { nodes: (0..tasks).map(node).collect(), rng, network, transfers: Vec::new() }
    }

    /// Starts a message or a get, from any task to any other.
    fn start(&mut self) {
        let number = self.transfers.len();
        let rng = &mut self.rng;
        let tasks = self.nodes.len() as u64;
        let from = rng.below(tasks) as Task;
        let to = ((u64::from(from) + 1 + rng.below(tasks - 1)) % tasks) as Task;
        let len = match rng.below(4) {
            0 => 0,
            1 => rng.below(40),
            2 => rng.below(200),
            _ => rng.below(40 * MAX_BODY as u64),
        } as usize;
        let mut header = number.to_le_bytes().to_vec();
        header.extend((0..rng.below(50)).map(|at| byte(number, at as usize)));
        let source = (0..len).map(|at| byte(number, at)).collect();
        let sink = vec![0; len].into();
        let get = rng.chance(0.2);
        let free = false;
        self.transfers.push(DirectCopy {
            from,
            to,
            header,
            source,
            sink,
            delivered: false,
            reported: 0,
            free,
        });
        let copy_limit = [0, 64, 1000][rng.below(3) as usize];
        let transfer = &self.transfers[number];
        let Node { outbox, ops, finished, .. } = &mut self.nodes[from as usize];
        if get {
            let (sink, total) = (Sink::Buffer(transfer.sink.as_ptr().expose_provenance()), len as u64);
            let op = Op::Get {
                sink,
                len: total,
                arrived: 0,
                org_cntr: 0,
                handler: 0,
                info: number,
                registered: None,
            };
            let cookie = ops.insert(to, op, true);
            let head = Head::Get { addr: number as u64, len: total, cookie, tgt_cntr: 0 };
            return self.send_control(from, to, &head);
        }
        let id = outbox.number(to);
        let done = SendDone { info: number, ..SendDone::nothing(to) };
        let (header, data) = (Piece::of(&transfer.header), &Content::Piece(Piece::of(&transfer.source)));
        let short = pad8(header.len) + len <= MAX_BODY;
        let total = if short { 0 } else { len as u64 };
        let head = Head::Am {
            id,
            uhdr_len: header.len as u16,
            handler: 0,
            tgt_cntr: 0,
            cookie: 0,
            total,
            atoms: false,
        };
        let mut link = self.network.link(from);
        // SAFETY: header and source are left alone until the transfer is reported.
        let sent = unsafe {
            if short {
                outbox.send(&mut link, to, &head, Body { header, data }, copy_limit, done)
            } else {
                let sent = outbox.send_stream(
                    to,
                    Some((&head, header)),
                    Continuation::Message(id),
                    data,
                    Streaming { copied: len <= copy_limit, atom: 0 },
                    done,
                );
                outbox.pump(&mut link, finished);
                sent
            }
        };
        // The header is copied in any case.
        self.transfers[number].header.clear();
        match sent {
            Sent::Free => self.spoil(number),
            Sent::Queued => {}
            Sent::Gone => panic!("no task leaves"),
            Sent::NoMemory => panic!("there is memory"),
        }
        self.report(from);
    }

    /// The sender is done with its memory.
    fn spoil(&mut self, number: usize) {
        let transfer = &mut self.transfers[number];
        assert!(!transfer.free, "transfer {number} is free twice");
        transfer.free = true;
        transfer.source.fill(0xee);
    }

    fn report(&mut self, node: Task) {
        for done in std::mem::take(&mut self.nodes[node as usize].finished) {
            assert_eq!(done.error, 0);
            self.transfers[done.info].reported += 1;
            self.spoil(done.info);
        }
    }

    fn send_control(&mut self, from: Task, to: Task, head: &Head) {
        let mut link = self.network.link(from);
        // SAFETY: there is no body.
        let sent = unsafe {
            let outbox = &mut self.nodes[from as usize].outbox;
            outbox.send(&mut link, to, head, Body::EMPTY, usize::MAX, SendDone::nothing(to))
        };
        assert_eq!(sent, Sent::Free);
    }

    fn pump(&mut self, node: Task) {
        let Node { outbox, finished, .. } = &mut self.nodes[node as usize];
        network::pump(outbox, self.network.link(node), finished);
        assert_eq!(outbox.waiting(), outbox.waiting_for().next().is_some());
        self.report(node);
    }

    fn fence(&mut self, node: Task) {
        let Node { outbox, ops, .. } = &mut self.nodes[node as usize];
        let epoch = ops.epochs().close();
        let mut asked = Vec::new();
        outbox.ask(&mut self.network.link(node), |peer, count| asked.push((peer, count)));
        let fence = Fence { epoch, asked, covers: self.transfers.len(), over: false };
        self.nodes[node as usize].fences.push(fence);
    }

    /// Looks which fences are over, and whether they are right.
    fn check_fences(&mut self, node: Task) {
        let Node { outbox, ops, fences, .. } = &mut self.nodes[node as usize];
        for fence in fences.iter_mut().filter(|fence| !fence.over) {
            let confirmed = fence.asked.iter().all(|&(peer, count)| outbox.confirmed(peer, count));
            fence.over = confirmed && ops.epochs().over(fence.epoch);
            if fence.over {
                let covered = self.transfers[..fence.covers].iter().enumerate();
                let open = covered.filter(|(_, transfer)| transfer.from == node && !transfer.delivered);
                assert_eq!(
                    open.map(|(number, _)| number).collect::<Vec<_>>(),
                    [],
                    "task {node} was notified of their arrival"
                );
            }
        }
    }

    fn arrive(&mut self, packet: &Packet) {
        let (me, src) = (packet.dst, packet.src);
        match packet.head {
            Head::Am { id, uhdr_len, total, .. } => {
                let (header, data) = packet.bytes().split_at(usize::from(uhdr_len));
                let data = &data[(pad8(header.len()) - header.len()).min(data.len())..];
                let number = header.first_chunk().map_or(usize::MAX, |word| usize::from_le_bytes(*word));
                assert!(
                    header[8..].iter().zip(0..).all(|(&found, at)| found == byte(number, at)),
                    "the header"
                );
                let transfer = &mut self.transfers[number];
                assert!((transfer.from, transfer.to, transfer.delivered) == (src, me, false));
                if total == 0 {
                    transfer.sink.copy_from_slice(data);
                    return self.delivered(number, id);
                }
                let sink = Sink::Buffer(transfer.sink.as_mut_ptr().expose_provenance());
                let inbox = &mut self.nodes[me as usize].inbox;
                inbox.begin(src, id, Assembly { sink, total, arrived: 0, then: number });
                self.place(me, src, id, 0, data);
                for early in self.nodes[me as usize].inbox.early(src, id) {
                    let Piece { ptr, len } = early.bytes();
                    // SAFETY: the bytes are there as long as `early`.
                    let data = unsafe { std::slice::from_raw_parts(ptr, len) };
                    self.place(me, src, id, early.offset, data);
                }
            }
            Head::Data { id, offset } => self.place(me, src, id, offset, packet.bytes()),
            Head::Get { addr, len, cookie, .. } => self.serve(me, src, addr as usize, len as usize, cookie),
            Head::Reply { cookie, offset } => self.take_reply(me, src, cookie, offset, packet),
            Head::Fence { count } => {
                if let Some(count) = self.nodes[me as usize].inbox.ask(src, count) {
                    self.send_control(me, src, &Head::FenceAck { count });
                }
            }
            Head::FenceAck { count } => self.nodes[me as usize].outbox.acknowledge(src, count),
            other => panic!("unexpected packet {other:?}"),
        }
    }

    fn place(&mut self, me: Task, src: Task, id: u32, offset: u64, data: &[u8]) {
        let inbox = &mut self.nodes[me as usize].inbox;
        match inbox.place(src, id, offset, data.len()) {
            Ok((to, complete)) => {
                // SAFETY: inside of the sink, by `place`; the sink stays where it is.
                unsafe { to.take(offset, Piece::of(data)) };
                if let Some(assembly) = complete {
                    self.delivered(assembly.then, id);
                }
            }
            // SAFETY: the data is in the packet.
            Err(Misplaced::Unknown) => unsafe { _ = inbox.keep(src, id, offset, Piece::of(data)) },
            Err(Misplaced::Outside) => panic!("data of message {id} at {offset}"),
        }
    }

    fn delivered(&mut self, number: usize, id: u32) {
        let transfer = &mut self.transfers[number];
        let right = transfer.sink.iter().enumerate().all(|(at, &found)| found == byte(number, at));
        assert!(right && !transfer.delivered, "transfer {number}");
        transfer.delivered = true;
        let (from, to) = (transfer.from, transfer.to);
        if let Some(count) = self.nodes[to as usize].inbox.deliver(from, id) {
            self.send_control(to, from, &Head::FenceAck { count });
        }
    }

    fn serve(&mut self, me: Task, src: Task, number: usize, len: usize, cookie: u64) {
        let data = &Content::Piece(Piece::of(&self.transfers[number].source));
        assert_eq!(data.len(), len);
        let Node { outbox, finished, .. } = &mut self.nodes[me as usize];
        let mut link = self.network.link(me);
        let done = SendDone { info: number, ..SendDone::nothing(src) };
        // SAFETY: the source is left alone until the transfer is reported.
        let sent = unsafe {
            if len <= MAX_BODY {
                outbox.send(&mut link, src, &Head::Reply { cookie, offset: 0 }, Body::data(data), 32, done)
            } else {
                let sent = outbox.send_stream(
                    src,
                    None,
                    Continuation::Reply(cookie),
                    data,
                    Streaming::default(),
                    done,
                );
                outbox.pump(&mut link, finished);
                sent
            }
        };
        if sent == Sent::Free {
            self.spoil(number);
        }
        self.report(me);
    }

    fn take_reply(&mut self, me: Task, src: Task, cookie: u64, offset: u64, packet: &Packet) {
        let wrong = (src + 1) % self.nodes.len() as u32;
        let ops = &mut self.nodes[me as usize].ops;
        assert!(ops.get_mut(wrong, cookie).is_none(), "the reply of another task");
        let Some(Op::Get { sink, len, arrived, info, .. }) = ops.get_mut(src, cookie) else {
            panic!("a reply that no operation waits for");
        };
        let (number, body) = (*info, packet.body());
        assert!(offset + body.len as u64 <= *len);
        *arrived += body.len as u64;
        let complete = *arrived == *len;
        // SAFETY: inside of the sink, as just seen.
        unsafe { sink.take(offset, body) };
        if complete {
            ops.remove(src, cookie).expect("it was there");
            assert!(ops.get_mut(src, cookie).is_none(), "its cookie is stale");
            let transfer = &mut self.transfers[number];
            assert!(transfer.sink.iter().enumerate().all(|(at, &found)| found == byte(number, at)));
            transfer.delivered = true;
        }
    }
}

#[test]
fn everything_is_delivered_and_fences_hold() {
    seeds(60, |seed| {
        let mut world = World::new(seed);
        let mut left = 150;
        let quiet = |world: &World| {
            world.network.flying() == 0 && world.nodes.iter().all(|node| !node.outbox.waiting())
        };
        let mut steps = 0;
        while left > 0 || !quiet(&world) {
            let node = world.rng.below(world.nodes.len() as u64) as Task;
            match world.rng.below(16) {
                0..=3 if left > 0 => {
                    left -= 1;
                    world.start();
                }
                4 if left > 0 => world.fence(node),
                5..=7 => world.pump(node),
                _ => {
                    if let Some(packet) = world.network.arrival() {
                        world.arrive(&packet);
                        world.check_fences(packet.dst);
                    }
                }
            }
            steps += 1;
            assert!(steps < 1_000_000, "it never comes to an end");
        }
        for (number, transfer) in world.transfers.iter().enumerate() {
            assert!(transfer.delivered && transfer.free && transfer.reported <= 1, "transfer {number}");
        }
        for (me, node) in world.nodes.iter_mut().enumerate() {
            assert!(node.fences.iter().all(|fence| fence.over), "a fence of task {me} never ended");
            assert!(node.ops.is_empty());
        }
    });
}
