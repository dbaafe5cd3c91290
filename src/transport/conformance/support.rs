//! Packets whose bytes follow from a number, records of what has arrived, deadlines.

use std::cell::Cell;
use std::io;
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use crate::base::clock::test_deadline;
use crate::base::rng::Rng;
use crate::transport::{
    Access, AccessId, Copy, EndedWrite, HEAD_MAX, Inbound, Key, Outgoing, Piece, Reach, Report, SendError,
    Started, Task, Ticket, Transfer, Transport, Want, Withdrawal, pad8,
};

/// All lengths that a head may have.
pub(super) const HEAD_LENS: [usize; HEAD_MAX / 8] = [8, 16, 24, 32, 40, 48];

/// The end of a wait, and what was waited for.
pub(super) struct Deadline {
    end: Instant,
    what: &'static str,
    checks: Cell<u32>,
}

/// Checks in a row before a nap, unless something has arrived: what one thread does for both ends
/// comes within a few, and a crowded machine takes milliseconds to come back to it.
const SPINS: u32 = 16;
/// A yield instead takes a fourth more of the processors.
const NAP: Duration = Duration::from_micros(20);

impl Deadline {
    pub(super) fn new(what: &'static str) -> Self {
        Self { end: Instant::now() + test_deadline(), what, checks: Cell::new(0) }
    }

    /// Panics when the time is over. Lets others run otherwise, after some checks.
    pub(super) fn check(&self) {
        assert!(Instant::now() < self.end, "waited {:?} without success for {}", test_deadline(), self.what);
        self.checks.set(self.checks.get() + 1);
        if self.checks.get() > SPINS {
            self.checks.set(0);
            std::thread::sleep(NAP);
        }
    }

    /// Something that is waited for has come, and there is more.
    pub(super) fn has_moved(&self) {
        self.checks.set(0);
    }
}

/// A megabyte and a little more of bytes without a pattern that a mistake could repeat.
pub(super) fn pattern() -> &'static [u8] {
    static PATTERN: OnceLock<Vec<u8>> = OnceLock::new();
    PATTERN.get_or_init(|| {
        let mut rng = Rng::new(0x70_61_74);
        (0..(1 << 17) + 64).flat_map(|_| rng.next_u64().to_ne_bytes()).collect()
    })
}

/// A packet all of whose bytes follow from a few numbers. The first word of its head is its `id`.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) id: u64,
    head: [u8; HEAD_MAX],
    head_len: usize,
    first: &'static [u8],
    second: &'static [u8],
}

impl Sample {
    /// Pieces of these lengths at these addresses modulo 8.
    pub(super) fn pieces(id: u64, head_len: usize, lens: [usize; 2], misaligned: [usize; 2]) -> Self {
        let source = pattern();
        let mut rng = Rng::stream(0x73_61_6d, id);
        let mut head = [0; HEAD_MAX];
        for (at, word) in head.chunks_exact_mut(8).enumerate() {
            word.copy_from_slice(&if at == 0 { id } else { rng.next_u64() }.to_ne_bytes());
        }
        let skew = source.as_ptr().align_offset(8);
        let [first, second] = [0, 1].map(|which| {
            let words = (source.len() - lens[which] - 24) / 8;
            let start = skew + rng.below(words as u64) as usize * 8 + misaligned[which];
            &source[start..start + lens[which]]
        });
        assert!(second.is_empty() || second.as_ptr().addr() % 8 == misaligned[1]);
        Self { id, head, head_len, first, second }
    }

    /// A body of exactly `len` bytes: one piece, or two with about `cut` words in the first.
    pub(super) fn exact(id: u64, head_len: usize, len: usize, cut: Option<usize>) -> Self {
        let mut rng = Rng::stream(0x65_78_61, id);
        let misaligned = [(); 2].map(|()| rng.below(8) as usize);
        let words = cut.unwrap_or(0) * 8;
        // The first piece ends somewhere in its last word; the padding fills that up.
        let lens = match cut {
            Some(_) if words > 0 && words < len => [words - rng.below(8) as usize, len - words],
            Some(_) => [0, len],
            None => [len, 0],
        };
        Self::pieces(id, head_len, lens, misaligned)
    }

    /// Lengths by chance, short ones more often, from `id` alone.
    pub(super) fn random(id: u64, max_body: usize) -> Self {
        let mut rng = Rng::stream(0x72_61_6e, id);
        let most = match rng.below(10) {
            0 => max_body,
            1 => 0,
            2..=4 => max_body / 8,
            _ => 64,
        };
        let len = if rng.chance(0.05) { max_body } else { rng.below(most.min(max_body) as u64 + 1) as usize };
        let head_len = HEAD_LENS[rng.below(HEAD_LENS.len() as u64) as usize];
        let cut = rng.chance(0.5).then(|| rng.below(len as u64 / 8 + 1) as usize);
        Self::exact(id, head_len, len, cut)
    }

    /// Packet `seq` from `src` to `dst`.
    pub(super) fn numbered(src: Task, dst: Task, seq: u64, max_body: usize) -> Self {
        Self::random(u64::from(src) << 48 | u64::from(dst) << 32 | seq, max_body)
    }

    pub(super) fn outgoing(&self) -> Outgoing<'_> {
        let [first, second] = [self.first, self.second].map(|piece| match piece {
            [] => Piece::EMPTY,
            bytes => Piece::of(bytes),
        });
        Outgoing { head: &self.head[..self.head_len], first, second: second.into(), copy_limit: usize::MAX }
    }

    /// Which sample has arrived.
    pub(super) fn id_of(packet: &Inbound) -> u64 {
        assert!(packet.head_len >= 8 && packet.head.addr().is_multiple_of(8), "{packet:?}");
        // SAFETY: a head of 8 bytes or more, readable until the packet is released,
        // aligned as just seen.
        unsafe { packet.head.cast::<u64>().read() }
    }

    /// Panics unless `packet` is this sample, byte for byte, from `src`, and aligned as promised.
    pub(super) fn check(&self, packet: &Inbound, src: Task) {
        assert_eq!(packet.src, src);
        assert_eq!(
            (packet.head_len, packet.body_len),
            (self.head_len, self.outgoing().body_len()),
            "{self:?}"
        );
        assert!(packet.head.addr().is_multiple_of(8), "the head of {packet:?} is not aligned");
        assert!(
            packet.body_len == 0 || packet.body.addr().is_multiple_of(8),
            "the body of {packet:?} is not aligned"
        );
        // SAFETY: the packet has not been released, so its head is readable.
        let head = unsafe { std::slice::from_raw_parts(packet.head, packet.head_len) };
        assert_eq!(head, &self.head[..self.head_len], "the head of packet {}", self.id);
        if packet.body_len == 0 {
            return;
        }
        // SAFETY: likewise its body.
        let body = unsafe { std::slice::from_raw_parts(packet.body, packet.body_len) };
        same(&body[..self.first.len()], self.first, self.id);
        if !self.second.is_empty() {
            same(&body[pad8(self.first.len())..], self.second, self.id);
        }
    }
}

fn same(got: &[u8], wanted: &[u8], id: u64) {
    if got != wanted {
        let at = got.iter().zip(wanted).position(|(a, b)| a != b);
        panic!(
            "packet {id}: {} bytes arrived, {} were sent, first difference at {at:?}",
            got.len(),
            wanted.len()
        );
    }
}

/// What one task has got from each of the others, of packets made by [`Sample::numbered`].
pub(super) struct Ledger {
    task: Task,
    each: u64,
    missing: u64,
    seen: Vec<Vec<bool>>,
    next: Vec<u64>,
}

impl Ledger {
    /// For `task`, which gets `each` packets from each of the others.
    pub(super) fn new(task: Task, tasks: u32, each: u64) -> Self {
        let seen = vec![vec![false; each as usize]; tasks as usize];
        Self { task, each, missing: u64::from(tasks - 1) * each, seen, next: vec![0; tasks as usize] }
    }

    /// How many packets are still to come.
    pub(super) fn missing(&self) -> u64 {
        self.missing
    }

    /// Checks a packet that has arrived at `end`, and enters it.
    pub(super) fn enter<T: Transport>(&mut self, packet: &Inbound, end: &T) {
        let id = Sample::id_of(packet);
        let (src, dst, seq) = ((id >> 48) as Task, (id >> 32) as u16 as Task, id & 0xffff_ffff);
        assert_eq!(
            (packet.src, self.task),
            (src, dst),
            "packet {seq} of task {src} arrived at the wrong task"
        );
        assert!(src != self.task && seq < self.each, "packet {seq} of task {src} was never sent");
        Sample::numbered(src, dst, seq, end.limits(src).max_body).check(packet, src);
        let seen = &mut self.seen[src as usize][seq as usize];
        assert!(!std::mem::replace(seen, true), "packet {seq} of task {src} came twice");
        if end.limits(src).ordered {
            assert_eq!(seq, self.next[src as usize], "order of the packets of task {src}");
        }
        self.next[src as usize] += 1;
        self.missing -= 1;
    }
}

/// Serves an endpoint until what it has sent is with its peers, or has no room, or it
/// has no deadline.
pub(super) fn catch_up<T: Transport>(end: &mut T) {
    while let Some(due) = end.due().filter(|_| !end.settled()) {
        // An endpoint may be served earlier; most then have nothing left to do.
        std::thread::sleep(due.saturating_duration_since(Instant::now()).min(Duration::from_micros(50)));
        end.serve();
    }
}

/// Sends a packet whose pieces are borrowed from slices, and serves the endpoint until the
/// packet is out.
pub(super) fn try_send<T: Transport>(end: &mut T, to: Task, packet: &Outgoing<'_>) -> Result<(), SendError> {
    // SAFETY: all pieces in these tests are empty or parts of `pattern()`, which is never freed.
    let outcome = unsafe { end.try_send(to, packet) };
    catch_up(end);
    outcome.accepted().map(drop)
}

/// The next packet, which must come.
pub(super) fn next<T: Transport>(end: &mut T, deadline: &Deadline) -> Inbound {
    loop {
        if let Some(packet) = end.recv() {
            return packet;
        }
        deadline.check();
    }
}

/// Takes the next packet, shows it to `look`, and releases it.
pub(super) fn expect<T: Transport>(end: &mut T, what: &'static str, look: impl FnOnce(&Inbound)) {
    let packet = next(end, &Deadline::new(what));
    look(&packet);
    end.release(packet);
}

/// Whether the event descriptor is readable right now.
pub(crate) fn readable<T: Transport>(end: &T) -> bool {
    wait_readable(end, Duration::ZERO)
}

/// Sleeps until something happens, or until the endpoint must be served; a sleep that nothing ends
/// is a lost wake-up. `other_failed` ends it early.
pub(super) fn sleep<T: Transport>(end: &mut T, why: &str, other_failed: &AtomicBool) {
    if !end.arm() {
        return;
    }
    let start = Instant::now();
    let slice = Duration::from_millis(200);
    let until_due = |end: &T| end.due().map_or(slice, |due| due.saturating_duration_since(Instant::now()));
    while !wait_readable(end, until_due(end).min(slice)) {
        assert!(!other_failed.load(Ordering::Relaxed), "another task has failed");
        end.serve();
        if start.elapsed() > test_deadline() {
            end.disarm();
            let found = end.recv();
            panic!("lost wake-up: slept {:?} for {why}; a poll then found {found:?}", start.elapsed());
        }
    }
    end.disarm();
}

fn wait_readable<T: Transport>(end: &T, limit: Duration) -> bool {
    let descriptor = end.event_fd();
    let mut fds = [PollFd::from_borrowed_fd(descriptor.as_fd(), PollFlags::IN)];
    match poll(&mut fds, limit.try_into().ok().as_ref()) {
        Ok(ready) => ready > 0,
        Err(rustix::io::Errno::INTR) => false,
        Err(error) => panic!("poll on the event descriptor: {error}"),
    }
}

/// Runs `body` for each end in a thread of its own, and returns when all have returned. When
/// one panics, `failed` is set for the others, and the first panic (by number of task) is
/// raised again here.
pub(super) fn in_threads<T: Transport>(ends: &mut [T], body: impl Fn(Task, &mut T, &AtomicBool) + Sync) {
    let failed = AtomicBool::new(false);
    let (failed, body) = (&failed, &body);
    let results: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = ends
            .iter_mut()
            .zip(0..)
            .map(|(end, task)| {
                scope.spawn(move || {
                    let guard = TellFailure(failed);
                    body(task, end, failed);
                    drop(guard);
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    for result in results {
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    }
}

struct TellFailure<'a>(&'a AtomicBool);

impl Drop for TellFailure<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// The calls of the contract one by one, as tests name them. A report of another kind than the one
/// that a test asks for is a failure.
pub(crate) trait Calls: Transport {
    /// The next packet whose memory is free.
    fn completed(&mut self) -> Option<Ticket> {
        self.report().map(|report| match report {
            Report::Free(ticket) => ticket,
            other => panic!("the memory of a packet is awaited: {other:?}"),
        })
    }

    /// The next access that is over.
    fn accessed(&mut self) -> Option<(AccessId, io::Result<()>)> {
        self.report().map(|report| match report {
            Report::Accessed(id, outcome) => (id, outcome),
            other => panic!("an access is awaited: {other:?}"),
        })
    }

    /// The next write by the standing key that is over.
    fn written(&mut self) -> Option<EndedWrite> {
        self.report().map(|report| match report {
            Report::Written(ended) => ended,
            other => panic!("a write is awaited: {other:?}"),
        })
    }

    /// The next peer that has rejoined, with its epoch.
    fn rejoined(&mut self) -> Option<(Task, u64)> {
        self.report().map(|report| match report {
            Report::Joined(task, epoch) => (task, epoch),
            other => panic!("a peer is awaited: {other:?}"),
        })
    }

    fn serve(&mut self) {
        self.want(Want::Serve);
    }

    /// Whether the peers have everything that was sent to them.
    fn settled(&self) -> bool {
        self.tally().outstanding == 0
    }

    fn polls(&self, peer: Task) -> bool {
        self.view(peer).polls
    }

    fn recall(&mut self, peer: Task) {
        self.withdraw(peer, Withdrawal::Traffic);
    }

    fn part(&mut self, peer: Task) {
        self.withdraw(peer, Withdrawal::Connection);
    }

    /// The key of all memory of the peer.
    fn standing_key(&mut self, peer: Task) -> Option<Key> {
        match self.reach(peer) {
            Reach::Keyed(all) => all,
            Reach::None | Reach::Open => None,
        }
    }

    /// Starts copies.
    ///
    /// # Safety
    /// The conditions of [`crate::transport::RemoteAccess::access`] hold.
    unsafe fn start(
        &mut self,
        access: Access,
        peer: Task,
        key: Option<Key>,
        copies: &[Copy],
    ) -> io::Result<Started> {
        // SAFETY: the caller's promise.
        unsafe { self.access(peer, Transfer::Copies { access, key, copies }) }
    }

    /// Starts a write by the key of all memory of the peer: whether it was started.
    ///
    /// # Safety
    /// The conditions of [`crate::transport::RemoteAccess::access`] hold.
    unsafe fn write(&mut self, peer: Task, copy: Copy, cookie: u64, copied: bool) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.access(peer, Transfer::Write { copy, cookie, copied }) }.is_ok()
    }
}

impl<T: Transport + ?Sized> Calls for T {}
