//! Long messages whose data lies in many places, to peers whose memory is reached by keys: every
//! byte where an independent computation says, whatever the layouts, whatever fails; and no memory
//! is touched when a peer dies or is given up.

use super::calls::{as_the_header_says, counter, enter, forever, note_sent};
use super::failure::LONG;
use super::job::{self, BULK_MINIMUM, Habits, MAX_BODY, Task};
use super::keyed::{End, packets_of, two, two_in_batches};
use super::recovery::{purge, settle};
use crate::abi::*;
use crate::api::{active_message, put_get};
use crate::base::rng::Rng;
use crate::dgsp::Layout;
use crate::dgsp::description::describe_layout;
use crate::engine::context::direct_copy::ACCESSES;
use crate::engine::context::request::{Get, Hint, Layouts, Message, Places, Preference, Put};
use crate::memory::bytes::Piece;
use crate::proto::content::Content;
use crate::proto::outbox::SendDone;
use crate::proto::pieces::MOST;
use crate::proto::tests::seeds;
use crate::transport::testing::faults::FaultPlan;
use crate::transport::testing::mem::MemOptions;
use crate::wire::key::Part;
use libc::{c_uint, c_ulong, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

const BLANK: u8 = 0x5a;

/// Memory in which a message lies, in pieces apart from each other, in any order. What is in no
/// piece must stay as it is.
struct Area {
    bytes: &'static mut [u8],
    /// Where each piece begins, and its length.
    pieces: Vec<(usize, usize)>,
    vector: &'static lapi_vec_t,
}

impl Area {
    fn new(lens: &[usize], touching: bool, rng: &mut Rng) -> Self {
        let mut order: Vec<usize> = (0..lens.len()).collect();
        if rng.chance(0.5) {
            (1..order.len()).for_each(|at| order.swap(at, rng.below(at as u64 + 1) as usize));
        }
        let mut pieces = vec![(0, 0); lens.len()];
        let mut end = 1 + rng.below(40) as usize;
        for at in order {
            pieces[at] = (end, lens[at]);
            end += lens[at] + if touching { 0 } else { 1 + rng.below(30) as usize };
        }
        let bytes = forever(end + 40);
        bytes.fill(BLANK);
        let start = bytes.as_mut_ptr().expose_provenance();
        let address = |&(at, _): &(usize, usize)| ptr::with_exposed_provenance_mut::<c_void>(start + at);
        let addresses: Vec<_> = pieces.iter().map(address).collect();
        let lens: Vec<_> = lens.iter().map(|&len| len as c_ulong).collect();
        let vector = Box::leak(Box::new(lapi_vec_t {
            vec_type: LAPI_GEN_GENERIC,
            num_vecs: pieces.len() as c_uint,
            info: addresses.leak().as_mut_ptr(),
            len: lens.leak().as_mut_ptr(),
        }));
        Self { bytes, pieces, vector }
    }

    fn layout(&mut self) -> Layout {
        let start = self.bytes.as_mut_ptr();
        Layout::pieces(self.pieces.iter().map(|&(at, len)| (start.wrapping_add(at), len as u64)))
    }

    fn fill(&mut self, seed: usize) {
        let mut number = 0;
        for &(at, len) in &self.pieces {
            for byte in &mut self.bytes[at..at + len] {
                *byte = byte_of(seed, number);
                number += 1;
            }
        }
    }

    /// Whether the message is here, and nothing else has changed.
    fn holds(&self, seed: usize) -> bool {
        let mut wanted = vec![BLANK; self.bytes.len()];
        let mut number = 0;
        for &(at, len) in &self.pieces {
            for byte in &mut wanted[at..at + len] {
                *byte = byte_of(seed, number);
                number += 1;
            }
        }
        *self.bytes == wanted
    }

    fn is_blank(&self) -> bool {
        self.bytes.iter().all(|&byte| byte == BLANK)
    }
}

fn byte_of(seed: usize, number: usize) -> u8 {
    ((number * 31) ^ (number >> 7) ^ (seed * 97)) as u8
}

/// The lengths of pieces of a message of `total` bytes: long ones (more than a packet), short ones,
/// and empty ones.
fn cut(total: usize, short: f64, rng: &mut Rng) -> Vec<usize> {
    let (mut lens, mut left) = (Vec::new(), total);
    while left != 0 {
        let len = match rng.below(8) {
            0 => 0,
            _ if rng.chance(short) => 1 + rng.below(300) as usize,
            _ => MAX_BODY + rng.below(5 * MAX_BODY as u64) as usize,
        };
        let len = if left < len + MAX_BODY && short == 0.0 { left } else { len.min(left) };
        lens.push(len);
        left -= len;
    }
    lens
}

/// A put, a get, a message to a vector, and a message to a buffer, of one length. Each has an area
/// at task 0 and one at task 1.
pub(super) struct Trial {
    seed: usize,
    here: [Area; 4],
    there: [Area; 4],
    headers: [&'static mut [u8]; 2],
}

const PUT: usize = 0;
const GET: usize = 1;
const TO_VECTOR: usize = 2;
const TO_BUFFER: usize = 3;

impl Trial {
    /// With these pieces at both ends, apart from each other.
    pub(super) fn new(seed: usize, cut_here: &[usize], cut_there: &[usize], rng: &mut Rng) -> Self {
        Self::with(seed, cut_here, cut_there, [false; 2], rng)
    }

    /// A trial with pieces that may touch at either end.
    fn with(
        seed: usize,
        cut_here: &[usize],
        cut_there: &[usize],
        touching: [bool; 2],
        rng: &mut Rng,
    ) -> Self {
        let total = cut_here.iter().sum();
        let mut here = [(); 4].map(|()| Area::new(cut_here, touching[0], rng));
        let mut there =
            [cut_there, cut_there, cut_there, &[total]].map(|lens| Area::new(lens, touching[1], rng));
        for which in [PUT, TO_VECTOR, TO_BUFFER] {
            here[which].fill(seed);
        }
        there[GET].fill(seed);
        let at = there[TO_BUFFER].pieces[0].0;
        let buffer = there[TO_BUFFER].bytes[at..].as_mut_ptr().expose_provenance();
        let returned = [ptr::from_ref(there[TO_VECTOR].vector).expose_provenance(), buffer];
        let headers = returned.map(|address| {
            let header = forever(16);
            header[..8].copy_from_slice(&address.to_ne_bytes());
            header
        });
        Self { seed, here, there, headers }
    }

    /// Draws the pieces.
    fn draw(seed: u64, rng: &mut Rng) -> Self {
        let total = LONG + rng.below(LONG as u64) as usize;
        let [here, there] = [(); 2].map(|()| match rng.below(4) {
            0 => vec![total],
            1 => cut(total, 0.0, rng),
            2 => cut(total, 0.3, rng),
            _ => cut(total, 0.8, rng),
        });
        let touching = [(); 2].map(|()| rng.chance(0.2));
        Self::with(seed as usize, &here, &there, touching, rng)
    }

    /// Starts the four operations from task 0 to task 1.
    pub(super) fn start(&mut self, task: &Task, [tgt, org, cmpl]: [&'static AtomicI32; 3], hint: Hint) {
        let address = |counter: &AtomicI32| counter.as_ptr().expose_provenance();
        let (tgt_cntr, cmpl_cntr) = (address(tgt) as u64, address(cmpl));
        let done = |bytes: u64, info| SendDone {
            org_cntr: address(org),
            handler: note_sent as *const () as usize,
            info,
            bytes,
            user: true,
            ..SendDone::nothing(1)
        };
        let mut places = |which: usize| {
            let (local, remote) = (self.here[which].layout(), self.there[which].layout());
            let description = describe_layout(&remote);
            Places::Layouts(Arc::new(Layouts { local: local.into(), remote: remote.into(), description }))
        };
        let put = Put { tgt: 1, places: Places::EMPTY, tgt_cntr, cmpl_cntr, done: done(0, 1), hint };
        let put = put.with(places(PUT));
        let (org_cntr, get) = (address(org), places(GET));
        let get = Get { tgt: 1, places: get, tgt_cntr, org_cntr, handler: None, parameter: 0, hint };
        // SAFETY: the areas live for ever.
        unsafe {
            put_get::put(&mut enter(task), &put).expect("a put");
            put_get::get(&mut enter(task), &get).expect("a get");
        }
        for (which, handler) in
            [(TO_VECTOR, as_the_header_says as hdr_hndlr_t), (TO_BUFFER, as_the_header_says)]
        {
            let layout = self.here[which].layout();
            let (bytes, pieces) = (layout.len(), self.here[which].pieces.len() as u64);
            let message = Message {
                tgt: 1,
                handler: handler as *const () as u64,
                header: Piece::of(self.headers[which - TO_VECTOR]),
                data: Content::from(layout),
                shape: (which == TO_VECTOR).then_some(u64::from(LAPI_GEN_GENERIC) << 32 | pieces),
                atom: if which == TO_VECTOR { 0 } else { 24 },
                tgt_cntr,
                cmpl_cntr,
                done: done(bytes, which),
                hint,
                copied: false,
            };
            // SAFETY: areas, headers and counters live for ever.
            unsafe { active_message::amsend(&mut enter(task), &message).expect("a message") };
        }
    }

    pub(super) fn check(&self, what: &str) {
        for which in [PUT, GET, TO_VECTOR, TO_BUFFER] {
            let area = if which == GET { &self.here[GET] } else { &self.there[which] };
            assert!(area.holds(self.seed), "operation {which}, {what}, seed {}", self.seed);
        }
    }
}

/// Makes the operations of a trial. Returns how many packets task 0 has sent and received.
fn exchange(tasks: &[Arc<Task>], trial: &mut Trial, hint: Hint, what: &str) -> u64 {
    let (before, counters) = (packets_of(&tasks[0]), [(); 3].map(|()| counter()));
    tasks[0].reported.lock().clear();
    trial.start(&tasks[0], counters, hint);
    settle(tasks);
    trial.check(what);
    let reached = counters.map(|counter| counter.load(Ordering::SeqCst));
    assert_eq!(reached, [4, 4, 3], "target, origin and completion counters; {what}");
    let mut reported = tasks[0].reported.lock().clone();
    reported.sort_unstable();
    assert_eq!(reported, [(1, 0), (2, 0), (3, 0)], "send completion handlers; {what}");
    assert!(enter(&tasks[0]).core().ops.is_empty(), "{what}");
    packets_of(&tasks[0]) - before
}

/// How many parts are registered at a time.
fn a_batch(rng: &mut Rng) -> usize {
    [1, 2, 5, MOST][rng.below(4) as usize]
}

fn refused(tasks: &[Arc<Task>]) -> u64 {
    tasks.iter().map(|task| enter(task).core().stats.peers.refused).sum()
}

#[test]
fn every_byte_is_where_it_belongs() {
    seeds(60, |seed| {
        let mut rng = Rng::new(seed);
        let options = MemOptions {
            pending: rng.chance(0.7),
            capacity: [2, 8, 64][rng.below(3) as usize],
            ..job::KEYED
        };
        let (tasks, handle) = two_in_batches(options, a_batch(&mut rng));
        for _ in 0..4 {
            exchange(&tasks, &mut Trial::draw(seed, &mut rng), Hint::None, "as it is");
            assert_eq!(handle.registrations(), 0);
        }
        assert_eq!(refused(&tasks), 0, "nothing fails");
        job::close(tasks);
    });
}

/// Packets overtake each other.
#[test]
fn every_byte_is_where_it_belongs_without_order() {
    seeds(30, |seed| {
        let mut rng = Rng::new(seed);
        let options =
            MemOptions { accesses: if rng.chance(0.5) { u64::MAX } else { rng.below(40) }, ..job::KEYED };
        let tasks = job::open(
            job::faulty(2, options, &FaultPlan::rough(seed)),
            &Habits { copy_limit: 0, batch: a_batch(&mut rng), ..Habits::STEPPED },
        );
        for _ in 0..3 {
            exchange(&tasks, &mut Trial::draw(seed, &mut rng), Hint::None, "without order");
        }
        job::close(tasks);
    });
}

/// Registrations are refused, or accesses fail, from any moment on.
#[test]
fn data_arrives_when_registrations_are_refused_and_accesses_fail() {
    seeds(60, |seed| {
        let mut rng = Rng::new(seed);
        let (registrations, accesses) = match rng.below(3) {
            0 => (rng.below(40), u64::MAX),
            1 => (u64::MAX, rng.below(40)),
            _ => (rng.below(60), rng.below(40)),
        };
        let options = MemOptions { registrations, accesses, pending: rng.chance(0.5), ..job::KEYED };
        let (tasks, handle) = two_in_batches(options, a_batch(&mut rng));
        for _ in 0..4 {
            exchange(&tasks, &mut Trial::draw(seed, &mut rng), Hint::None, "with failures");
            assert_eq!(handle.registrations(), 0);
        }
        // Long at both ends: more registrations and accesses than are allowed.
        for _ in 0..15 {
            let lens = [2 * MAX_BODY; 5];
            exchange(&tasks, &mut Trial::new(7, &lens, &lens, &mut rng), Hint::None, "with failures");
        }
        assert!(refused(&tasks) > 0, "{options:?} allows fewer");
        assert_eq!(handle.registrations(), 0);
        job::close(tasks);
    });
}

/// As few packets as four operations by key take, whatever their length: requests,
/// replies, completions.
const FEW: u64 = 20;

/// Which pieces go by key: the packets of task 0 show it.
#[test]
fn long_pieces_go_by_key_and_the_rest_in_packets() {
    let mut rng = Rng::new(5);
    let (tasks, _) = two(job::KEYED, Preference::Auto);
    let long = vec![3 * MAX_BODY; 30];
    let total: usize = long.iter().sum();
    let all_packets = 4 * (total / MAX_BODY) as u64;
    let mut count = |here: &[usize], there: &[usize], hint| {
        exchange(&tasks, &mut Trial::new(3, here, there, &mut rng), hint, "counted")
    };
    assert!(count(&long, &long, Hint::None) <= FEW);
    assert!(count(&[total], &long, Hint::None) <= FEW);
    assert!(count(&long, &[total], Hint::None) <= FEW);
    assert!(count(&long, &long, Hint::Packets) >= all_packets);
    // Other boundaries: the pieces overlap by a third of their length or more.
    let shifted: Vec<_> =
        [MAX_BODY].into_iter().chain(vec![3 * MAX_BODY; 29]).chain([2 * MAX_BODY]).collect();
    assert!(count(&long, &shifted, Hint::None) <= FEW);
    // One byte in each place more than there is room for in a packet, and one less.
    let edge = [vec![MAX_BODY; 30], vec![MAX_BODY - 1; 30]];
    assert!(count(&edge[0], &edge[0], Hint::None) <= FEW);
    assert!(count(&edge[1], &edge[1], Hint::None) >= 4 * 29);
    // Too few bytes, unless the program wants bulk transfer.
    let few = [BULK_MINIMUM - 1];
    let halves = [MAX_BODY, BULK_MINIMUM - 1 - MAX_BODY];
    assert!(count(&halves, &few, Hint::None) >= 4 * (few[0] / MAX_BODY) as u64);
    assert!(count(&halves, &few, Hint::Bulk) <= FEW);
    // Short pieces between long ones: they alone go in packets, together.
    let mixed: Vec<_> = (0..30).flat_map(|_| [3 * MAX_BODY, 200]).collect();
    let rest = 4 * (30 * 200_usize).div_ceil(MAX_BODY) as u64;
    let packets = count(&mixed, &mixed, Hint::None);
    assert!((rest..rest + FEW).contains(&packets), "{packets}");
    // Pieces that are short at the target: the origin of a put and get knows it, the target of a
    // message refuses them.
    let short = vec![96; total / 96];
    assert!(count(&[total, 0, 0], &short, Hint::None) >= all_packets * 3 / 4);
    job::close(tasks);
}

/// At most this number of accesses of one message is under way.
#[test]
fn a_bounded_number_of_accesses_is_under_way() {
    let mut rng = Rng::new(9);
    let (tasks, handle) = two(MemOptions { capacity: 64, ..job::KEYED }, Preference::Auto);
    let long = vec![2 * MAX_BODY; 35];
    let mut trial = Trial::new(1, &long, &[70 * MAX_BODY], &mut rng);
    trial.start(&tasks[0], [(); 3].map(|()| counter()), Hint::None);
    // Messages expose no more parts than a packet has room for.
    assert_eq!(handle.registrations(), 4 * 35);
    let mut most = 0;
    for step in 0..200 {
        let mut held = enter(&tasks[1]);
        most = held.core().copies.iter().map(|copy| copy.waits.len()).max().unwrap_or(0).max(most);
        drop(held);
        tasks[(step + 1) % 2].step();
    }
    assert_eq!(most, ACCESSES);
    settle(&tasks);
    trial.check("bounded");
    assert_eq!(handle.registrations(), 0);
    job::close(tasks);
}

/// More parts than may be registered at a time, and than the packet of an active message has room
/// for: they are registered in batches, and all of them go by key.
#[test]
fn any_number_of_parts_goes_by_key_in_batches() {
    const ROOM: usize = (MAX_BODY - 16) / (Part::WORDS * 8);
    let mut rng = Rng::new(11);
    let (tasks, handle) = two(MemOptions { capacity: 64, ..job::KEYED }, Preference::Auto);
    for (count, short) in [(200, 0), (MOST + 1, 0), (2500, 0), (1500, 90)] {
        // Packets bring the short pieces, as few as they need.
        let pieces: Vec<_> = (0..count).flat_map(|_| [MAX_BODY, short]).collect();
        let total = pieces.iter().sum();
        let whole = if short == 0 { vec![total] } else { pieces.clone() };
        let mut trial = Trial::new(count, &pieces, &whole, &mut rng);
        let before = packets_of(&tasks[0]);
        trial.start(&tasks[0], [(); 3].map(|()| counter()), Hint::None);
        let first = [count.min(MOST), ROOM];
        assert_eq!(handle.registrations(), 2 * (first[0] + first[1]), "the first batches");
        while !enter(&tasks[0]).core().ops.is_empty() {
            assert!(handle.registrations() <= 4 * MOST, "of the four operations");
            tasks.iter().for_each(|task| _ = task.step());
        }
        settle(&tasks);
        trial.check("many parts");
        assert_eq!((handle.registrations(), refused(&tasks)), (0, 0));
        // Two packets of each batch, and those of the rest, of requests and of their ends.
        let most = 4 * (2 * (count / ROOM) + count * short / MAX_BODY + count * 40 / MAX_BODY) as u64;
        let packets = packets_of(&tasks[0]) - before;
        assert!(packets < most + FEW, "{packets} packets, {count} long pieces");
    }
    job::close(tasks);
}

/// After `steps` steps of a trial one task is given up, or dies: from then on neither task's
/// program memory is written for it, and nothing stays registered.
fn ends_after(steps: usize, end: End, pending: bool, batch: usize) {
    let mut rng = Rng::new(steps as u64);
    let (tasks, handle) = two_in_batches(MemOptions { pending, ..job::KEYED }, batch);
    let lens: Vec<_> = (0..20).flat_map(|_| [2 * MAX_BODY, 90]).collect();
    let mut trial = Trial::new(steps, &lens, &lens, &mut rng);
    trial.start(&tasks[0], [(); 3].map(|()| counter()), Hint::None);
    (0..steps).for_each(|step| _ = tasks[(step + 1) % 2].step());
    end.happens(&tasks, &handle);
    // The memory of the survivor is its program's again: the get's at the origin, the others
    // at the target.
    let mut own: Vec<&mut Area> = match end.survivor() {
        0 => vec![&mut trial.here[GET]],
        _ => trial
            .there
            .iter_mut()
            .enumerate()
            .filter(|(which, _)| *which != GET)
            .map(|(_, area)| area)
            .collect(),
    };
    own.iter_mut().for_each(|area| area.bytes.fill(BLANK));
    for step in 0..80 {
        tasks[step % 2].step();
    }
    assert!(own.iter().all(|area| area.is_blank()), "{end:?} after {steps}, {pending}, {batch}");
    if end.is_overcome(&tasks, &handle, &[1, 2, 3], &format!("after {steps}, {pending}, {batch}")) {
        exchange(&tasks, &mut Trial::new(3, &lens, &lens, &mut rng), Hint::None, "after the return");
    }
    assert_eq!(handle.registrations(), 0);
    job::close(tasks);
}

#[test]
fn no_memory_is_touched_after_the_end_of_a_peer() {
    for end in End::ALL {
        for (steps, batch) in (0..24).map(|steps| (steps, MOST)).chain((0..60).map(|steps| (steps, 3))) {
            [false, true].into_iter().for_each(|pending| ends_after(steps, end, pending, batch));
        }
    }
}

/// The target has read the parts of several messages, asks for the rest of each, and dies:
/// each send operation is reported once, also when an earlier one has found out that the
/// target has left.
#[test]
fn what_a_dead_target_has_asked_for_in_packets_is_reported() {
    let mut rng = Rng::new(13);
    let (tasks, handle) = two(MemOptions { capacity: 64, ..job::KEYED }, Preference::Auto);
    let lens: Vec<_> = (0..10).flat_map(|_| [2 * MAX_BODY, 90]).collect();
    let mut trial = Trial::new(1, &lens, &lens, &mut rng);
    trial.start(&tasks[0], [(); 3].map(|()| counter()), Hint::None);
    (0..200).for_each(|_| _ = tasks[1].step());
    handle.kill(1);
    (0..20).for_each(|_| _ = tasks[0].step());
    purge(&tasks[0], 1);
    (0..20).for_each(|_| _ = tasks[0].step());
    let mut reported = tasks[0].reported.lock().clone();
    reported.sort_unstable();
    let gone = LAPI_ERR_NO_CONNECTIVITY as u32;
    assert_eq!(reported, [(1, gone), (2, gone), (3, gone)]);
    assert_eq!(handle.registrations(), 0);
    job::close(tasks);
}
