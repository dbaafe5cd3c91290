//! Remote access: what it copies, what it reports, and which memory a key reaches.
//!
//! A transport without remote access passes. Where memory is reached by keys, task 1 registers it
//! for task 0, and is served while task 0 accesses it: a network may need that.

use super::support::{Deadline, catch_up, in_threads, pattern, sleep};
use crate::base::rng::Rng;
use crate::transport::conformance::Calls;
use crate::transport::{Access, AccessId, Copy, Exposure, Key, Piece, Reach, Started, Transport, Withdrawal};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) fn suite<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    reaches_across_address_spaces(make);
    copies_many_places_in_one_access(make);
    places_what_it_reports(make);
    reaches_memory_that_was_mapped_again(make);
}

/// What a key does not reach: other directions, other memory, memory whose registration was
/// withdrawn. For the transports whose network checks keys, and after a failure still works.
pub(crate) fn checks_keys<T: Transport>(make: impl Fn(u32) -> Vec<T>) {
    let mut ends = make(2);
    assert!(matches!(reach(&mut ends), Reach::Keyed(_)));
    let (mut there, mut here) = (vec![7_u8; 5_000], vec![0_u8; 5_000]);
    let place = |there: &mut [u8], here: &mut [u8], len| Copy {
        local: here.as_mut_ptr(),
        remote: there.as_mut_ptr().expose_provenance() as u64,
        len,
    };
    let whole = place(&mut there, &mut here, 4_000);
    let [read, withdrawn, recalled] =
        [(); 3].map(|()| register(&mut ends, &mut there[..4_000], Access::Read));
    // SAFETY: in all of these the local place is long enough.
    let access = |ends: &mut Vec<T>, access, key, copy: Copy| unsafe { finish(ends, access, key, &[copy]) };
    assert!(access(&mut ends, Access::Read, None, whole).is_err(), "no key");
    let wrong = read.map(|key| Key { key: !key.key, ..key });
    assert!(access(&mut ends, Access::Read, wrong, whole).is_err(), "a key that no task has made");
    assert!(access(&mut ends, Access::Write, read, whole).is_err(), "the other direction");
    assert!(access(&mut ends, Access::Read, read, Copy { len: 4_001, ..whole }).is_err(), "beyond the end");
    let before = Copy { remote: whole.remote.wrapping_sub(1), ..whole };
    assert!(access(&mut ends, Access::Read, read, before).is_err(), "before the start");
    access(&mut ends, Access::Read, read, whole).expect("the key of this memory");
    let gone = withdrawn.expect("memory is reached by keys");
    ends[1].withdraw(0, Withdrawal::Key(gone));
    ends[1].withdraw(0, Withdrawal::Key(gone));
    if read != withdrawn {
        assert!(
            access(&mut ends, Access::Read, withdrawn, whole).is_err(),
            "a registration that was withdrawn"
        );
    }
    access(&mut ends, Access::Read, read, whole).expect("another registration of the same memory");
    ends[1].recall(0);
    assert!(access(&mut ends, Access::Read, recalled, whole).is_err(), "a recalled registration");
    let again = register(&mut ends, &mut there[..4_000], Access::Read);
    access(&mut ends, Access::Read, again, whole).expect("memory registered after a recall");
    assert!(here[..4_000] == there[..4_000] && here[4_000..].iter().all(|&byte| byte == 0));
}

/// Whether all bytes are `byte`. Compared as a whole: one by one takes seconds without
/// optimisation.
fn holds_only(byte: u8, bytes: &[u8]) -> bool {
    bytes == vec![byte; bytes.len()]
}

fn reaches_across_address_spaces<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let mut ends = make(2);
    if reach(&mut ends) == Reach::None {
        return;
    }
    let mut rng = Rng::new(3);
    let mut there_all = vec![0u8; 1 << 20];
    let mut local = vec![0u8; 1 << 20];
    let source = pattern();
    for len in [0, 1, 2, 7, 8, 9, 63, 64, 4095, 4096, 4097, 65_536, 100_003, (1 << 20) - 16] {
        let [there, here, from] = [(); 3].map(|()| rng.below(9) as usize);
        there_all.fill(0xaa);
        local.fill(0xbb);
        there_all[there..there + len].copy_from_slice(&source[from..from + len]);
        let place = |there_all: &mut [u8], local: &mut [u8]| {
            [Copy {
                remote: there_all[there..].as_mut_ptr().expose_provenance() as u64,
                local: local[here..].as_mut_ptr(),
                len,
            }]
        };
        let key = register(&mut ends, &mut there_all, Access::Read);
        let one = place(&mut there_all, &mut local);
        // SAFETY: `local` is writable for `len` bytes after `here`.
        unsafe { finish(&mut ends, Access::Read, key, &one) }.expect("a read");
        deregister(&mut ends, key);
        assert!(local[here..here + len] == source[from..from + len], "read of {len} bytes");
        assert!(holds_only(0xbb, &local[..here]) && holds_only(0xbb, &local[here + len..]));

        there_all.fill(0xcc);
        let key = register(&mut ends, &mut there_all, Access::Write);
        let one = place(&mut there_all, &mut local);
        // SAFETY: `local` is readable for `len` bytes after `here`.
        unsafe { finish(&mut ends, Access::Write, key, &one) }.expect("a write");
        deregister(&mut ends, key);
        assert!(there_all[there..there + len] == source[from..from + len], "write of {len} bytes");
        assert!(holds_only(0xcc, &there_all[..there]) && holds_only(0xcc, &there_all[there + len..]));
    }
    if reach(&mut ends) == Reach::Open {
        let null = Copy { remote: 0, local: local.as_mut_ptr(), len: 8 };
        // SAFETY: `local` is long enough, if it were touched.
        let refused = unsafe { finish(&mut ends, Access::Read, None, &[null]) };
        assert!(refused.is_err(), "a null address is an error, not a crash");
    }
}

fn copies_many_places_in_one_access<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    const EACH: usize = 700;
    let mut ends = make(2);
    if reach(&mut ends) == Reach::None {
        return;
    }
    let (mut there, mut here) = (pattern()[..200 * EACH].to_vec(), vec![0_u8; 200 * EACH]);
    let key = register(&mut ends, &mut there, Access::Read);
    // The places here are in the opposite order; every other one is left out.
    let copies: Vec<_> = (0..200)
        .step_by(2)
        .map(|at| Copy {
            local: here[(199 - at) * EACH..].as_mut_ptr(),
            remote: there[at * EACH..].as_mut_ptr().expose_provenance() as u64,
            len: EACH - at,
        })
        .collect();
    // SAFETY: the local places are in `here`.
    unsafe { finish(&mut ends, Access::Read, key, &copies) }.expect("a read");
    for at in 0..200 {
        let len = if at % 2 == 0 { EACH - at } else { 0 };
        let (from, to) = (at * EACH, (199 - at) * EACH);
        assert!(here[to..to + len] == there[from..from + len], "place {at}");
        assert!(here[to + len..to + EACH].iter().all(|&byte| byte == 0), "behind place {at}");
    }
}

/// Accesses that are reported later are reported once, and their bytes are in place then.
fn places_what_it_reports<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    let mut ends = make(2);
    if reach(&mut ends) == Reach::None {
        return;
    }
    for access in [Access::Read, Access::Write] {
        let (mut there, mut here) = (vec![0_u8; 40_000], vec![0_u8; 40_000]);
        let from = if access == Access::Read { &mut there } else { &mut here };
        from.copy_from_slice(&pattern()[..40_000]);
        let key = register(&mut ends, &mut there, access);
        let [there_at, here_at] =
            [&mut there, &mut here].map(|memory| memory.as_mut_ptr().expose_provenance());
        let done = AtomicBool::new(false);
        in_threads(&mut ends, |task, end, failed| {
            if task == 1 {
                while !done.load(Ordering::Acquire) && !failed.load(Ordering::Relaxed) {
                    assert!(end.recv().is_none(), "nothing was sent");
                    catch_up(end);
                    std::thread::yield_now();
                }
                return;
            }
            start_and_await_all(end, access, key, there_at, here_at, failed);
            done.store(true, Ordering::Release);
        });
        deregister(&mut ends, key);
    }
}

fn start_and_await_all<T: Transport>(
    end: &mut T,
    access: Access,
    key: Option<Key>,
    there: usize,
    here: usize,
    failed: &AtomicBool,
) {
    let in_place = |at: usize, len: usize| {
        // SAFETY: both buffers live while the threads run, and nothing writes this part any more.
        let [there, here] = [there, here].map(|start| unsafe {
            std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(start + at), len)
        });
        there == here
    };
    let mut rng = Rng::new(8);
    let mut started: Vec<(AccessId, usize, usize)> = Vec::new();
    for at in (0..40_000).step_by(4_000) {
        let len = 1 + rng.below(4_000) as usize;
        let copy = Copy {
            local: std::ptr::with_exposed_provenance_mut(here + at),
            remote: (there + at) as u64,
            len,
        };
        // SAFETY: both buffers live until all accesses are reported.
        match unsafe { end.start(access, 1, key, &[copy]) }.expect("an access") {
            Started::Done => assert!(in_place(at, len)),
            Started::Pending(id) => {
                assert!(started.iter().all(|(other, ..)| *other != id), "{id:?} names two accesses");
                started.push((id, at, len));
            }
        }
    }
    let deadline = Deadline::new("reports of all remote accesses");
    while !started.is_empty() {
        deadline.check();
        sleep(end, "the report of a remote access", failed);
        assert!(end.recv().is_none(), "nothing was sent");
        while let Some((id, outcome)) = end.accessed() {
            outcome.expect("an access that works");
            let at = started.iter().position(|(started, ..)| *started == id);
            let (_, at, len) = started.remove(at.expect("an access that was started, and once"));
            assert!(in_place(at, len), "it is reported, but not in place");
        }
    }
    assert!(end.accessed().is_none());
}

/// Memory that is unmapped and mapped again at the same address is other memory.
fn reaches_memory_that_was_mapped_again<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    const LEN: usize = 3 * 4096;
    let mut ends = make(2);
    if reach(&mut ends) == Reach::None {
        return;
    }
    // SAFETY: a mapping of its own, which replaces nothing but itself.
    let map = |at: *mut libc::c_void| unsafe {
        let fixed = if at.is_null() { 0 } else { libc::MAP_FIXED };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | fixed;
        let start = libc::mmap(at, LEN, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        assert_ne!(start, libc::MAP_FAILED);
        start
    };
    let start = map(std::ptr::null_mut());
    let mut local = vec![0_u8; LEN];
    for round in 0..200_u8 {
        map(start);
        // SAFETY: the mapping, which nothing else uses until the end of the round.
        let there = unsafe { std::slice::from_raw_parts_mut(start.cast::<u8>(), LEN) };
        there.fill(round);
        let key = register(&mut ends, there, Access::Read);
        let copy = Copy { local: local.as_mut_ptr(), remote: start.expose_provenance() as u64, len: LEN };
        // SAFETY: `local` is as long as the mapping.
        unsafe { finish(&mut ends, Access::Read, key, &[copy]) }.expect("a read");
        deregister(&mut ends, key);
        assert!(local.iter().all(|&byte| byte == round), "what was there before round {round}");
    }
    // SAFETY: nothing uses it any more.
    unsafe { libc::munmap(start, LEN) };
}

/// Accesses that are under way when the peer leaves are reported once each: they were made,
/// or have failed.
pub(crate) fn reports_what_is_under_way_when_the_peer_leaves<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    const LEN: usize = 16 << 20;
    let mut ends = make(2);
    if reach(&mut ends) == Reach::None {
        return;
    }
    let (mut there, mut here) = (vec![7_u8; 3 * LEN], vec![0_u8; 3 * LEN]);
    let key = register(&mut ends, &mut there, Access::Read);
    let [there_at, here_at] = [&mut there, &mut here].map(|memory| memory.as_mut_ptr().expose_provenance());
    let mut started: Vec<(AccessId, usize)> = Vec::new();
    for at in (0..3 * LEN).step_by(LEN) {
        let local = std::ptr::with_exposed_provenance_mut(here_at + at);
        let copy = Copy { local, remote: (there_at + at) as u64, len: LEN };
        // SAFETY: both buffers live until the ends are gone.
        if let Started::Pending(id) = unsafe { ends[0].start(Access::Read, 1, key, &[copy]) }
            .expect("an access to a task that is there")
        {
            started.push((id, at));
        }
    }
    let mut peer = ends.pop().expect("two ends");
    let end = &mut ends[0];
    let deadline = Deadline::new("reports of accesses to a peer that has left");
    std::thread::scope(|scope| {
        scope.spawn(move || peer.close());
        while !started.is_empty() {
            deadline.check();
            sleep(end, "the report of an access to a peer that has left", &AtomicBool::new(false));
            assert!(end.recv().is_none(), "nothing was sent");
            while let Some((id, outcome)) = end.accessed() {
                let at = started.iter().position(|(started, _)| *started == id);
                let (_, at) = started.remove(at.expect("an access that was started, and once"));
                // SAFETY: inside of `here`, of which this part is not written any more.
                let read = unsafe { std::slice::from_raw_parts((here_at + at) as *const u8, LEN) };
                assert!(outcome.is_err() || read.iter().all(|&byte| byte == 7), "reported, and not in place");
            }
        }
    });
    for _ in 0..100 {
        end.serve();
        assert!(end.accessed().is_none(), "an access is reported twice");
    }
}

fn reach<T: Transport>(ends: &mut [T]) -> Reach {
    ends[0].reach(1)
}

/// What task 0 needs for accesses to this memory of task 1.
fn register<T: Transport>(ends: &mut [T], memory: &mut [u8], access: Access) -> Option<Key> {
    if !matches!(reach(ends), Reach::Keyed(_)) {
        return None;
    }
    let piece = Piece { ptr: memory.as_mut_ptr(), len: memory.len() };
    // SAFETY: the callers keep the memory until they withdraw the registration, or until the end of
    // the transport.
    Some(unsafe { ends[1].expose(0, piece, Exposure { access, one_rail: false }) }.expect("a registration"))
}

fn deregister<T: Transport>(ends: &mut [T], key: Option<Key>) {
    if let Some(key) = key {
        ends[1].withdraw(0, Withdrawal::Key(key));
    }
}

/// Makes copies between task 0 and task 1, and serves both until they are made.
///
/// # Safety
/// The conditions of [`crate::transport::RemoteAccess::access`] hold.
unsafe fn finish<T: Transport>(
    ends: &mut [T],
    access: Access,
    key: Option<Key>,
    copies: &[Copy],
) -> io::Result<()> {
    // SAFETY: the caller's promise; this waits until the access is reported.
    let Started::Pending(id) = (unsafe { ends[0].start(access, 1, key, copies) })? else {
        return Ok(());
    };
    let deadline = Deadline::new("the report of a remote access");
    loop {
        for end in &mut *ends {
            assert!(end.recv().is_none(), "nothing was sent");
        }
        if let Some((reported, outcome)) = ends[0].accessed() {
            assert_eq!(reported, id);
            return outcome;
        }
        deadline.check();
    }
}
