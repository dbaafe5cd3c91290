//! What no correct task sends: packets of a peer that is broken, and requests for memory that
//! cannot exist. It is reported, takes no memory, and keeps nothing.

use super::calls::{enter, forever};
use super::failure::never;
use super::job::{self, Habits, Report, Task};
use super::recovery::{all_is_well, look, purge, resume, settle};
use crate::abi::{FETCH_AND_ADD, INT_ERR, LAPI_ERR_UNKNOWN, compl_hndlr_p, lapi_handle_t};
use crate::base::machine::page;
use crate::engine::transfer::vector_wire;
use crate::memory::bytes::Piece;
use crate::proto::outbox::Sent;
use crate::transport::testing::mem::MemOptions;
use crate::transport::{Access, Exposure, Outgoing, SendOutcome, Withdrawal};
use crate::wire::key::{Exposed, Key, Part};
use crate::wire::packet::{
    Head, PARTING_ASKED, RMW_WIDE, VECTOR_ALONE, VECTOR_BY_KEYS, VECTOR_GET, VECTOR_MORE, VECTOR_PUT,
};
use std::ffi::{c_uint, c_ulong, c_void};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const REPORT: Report = Report { code: LAPI_ERR_UNKNOWN, kind: INT_ERR, task: 0, src: 1 };

fn open() -> Vec<Arc<Task>> {
    job::open(job::mem(2, 8, false), &Habits::STEPPED)
}

/// Task 1 sends this packet to task 0, which handles it.
pub(super) fn inject(tasks: &[Arc<Task>], head: &Head, body: &[u8]) {
    let head = head.encode();
    let packet = Outgoing {
        head: head.as_bytes(),
        first: Piece::of(body),
        second: Piece::EMPTY.into(),
        copy_limit: usize::MAX,
    };
    // SAFETY: the pieces live during the call, and a copy is made.
    let outcome = unsafe { enter(&tasks[1]).core().transport.try_send(0, &packet) };
    assert_eq!(outcome, SendOutcome::Sent);
    assert!(tasks[0].step());
}

/// What follows the malformed first packet of a message would wait for ever for the
/// message to begin.
#[test]
fn data_of_a_message_that_was_refused_is_not_kept() {
    let tasks = open();
    let (tgt_cntr, cookie) = (0, 0);
    let am = Head::Am { id: 5, uhdr_len: 64, handler: 1, tgt_cntr, cookie, total: 100, atoms: false };
    let amv = Head::Amv { id: 6, uhdr_len: 64, handler: 1, shape: 0, tgt_cntr, cookie, total: 100 };
    for (number, (first, id)) in [(am, 5), (amv, 6)].into_iter().enumerate() {
        // The user header is said to be longer than the packet.
        inject(&tasks, &first, &[1; 8]);
        assert_eq!(tasks[0].reports(), vec![REPORT; number + 1]);
        inject(&tasks, &Head::Data { id, offset: 8 }, &[2; 40]);
        assert_eq!(enter(&tasks[0]).core().inbox.early_bytes(1), 0, "data of message {id}");
    }
    inject(&tasks, &Head::Data { id: 7, offset: 8 }, &[2; 40]);
    assert_ne!(enter(&tasks[0]).core().inbox.early_bytes(1), 0, "message 7 may still begin");
    job::close(tasks);
}

/// How often [`counted`] has run.
static COUNTED: AtomicU32 = AtomicU32::new(0);

/// A header handler, or one that returns a vector, which counts its runs.
unsafe extern "C" fn counted(
    _: *mut lapi_handle_t,
    _: *mut c_void,
    _: *mut c_uint,
    _: *mut c_ulong,
    _: *mut compl_hndlr_p,
    _: *mut *mut c_void,
) -> *mut c_void {
    COUNTED.fetch_add(1, Ordering::Relaxed);
    ptr::null_mut()
}

/// A guarded task takes messages for handlers with an index, nothing that names an address, and
/// nothing of what the tasks of a job do together.
#[test]
fn a_guarded_task_uses_no_address_of_its_peers() {
    let tasks = open();
    enter(&tasks[0]).core().options.guarded = true;
    enter(&tasks[0]).register_function(1, counted as *const () as usize).expect("a valid index");
    let memory = Box::new([5_u64; 4]);
    let at = memory.as_ptr().expose_provenance() as u64;
    let (cookie, total, uhdr_len, len) = (0, 0, 0, 8);
    let am = |handler, tgt_cntr| Head::Am { id: 0, uhdr_len, handler, tgt_cntr, cookie, total, atoms: false };
    let words = 4;
    let parts = |handler, shape| {
        let (id, uhdr_len, total, tgt_cntr) = (0, 8, 8, 0);
        Head::PartsToSend { id, uhdr_len, handler, shape, total, cookie, tgt_cntr, atoms: false, more: true }
    };
    let heads = [
        am(at, 0),
        am(1, at),
        Head::Amv { id: 0, uhdr_len, handler: 1, shape: 0, tgt_cntr: 0, cookie, total },
        Head::Put { id: 0, addr: at, tgt_cntr: 0, cookie, total },
        Head::Get { addr: at, len, cookie, tgt_cntr: 0 },
        Head::Rmw { op: FETCH_AND_ADD as u16, var: at, value: 1, swap: 0, cookie },
        Head::Vector { id: 0, op: VECTOR_PUT, words, data: 1, total: 8, cookie, tgt_cntr: 0 },
        Head::Placed { id: 0, bytes: 8, tgt_cntr: at, cookie },
        Head::Accessed { id: 0, written: 8 },
        Head::RequestToSend { id: 0, uhdr_len, handler: at, addr: at, total: 8, cookie, tgt_cntr: 0 },
        parts(at, None),
        parts(1, Some(0)),
        Head::Collective { round: 0, sequence: 7, offset: 0, other: 0 },
        Head::CollectiveAt { sequence: 7 },
        Head::CollectiveFailed { sequence: 7, task: 1, code: 434 },
        Head::Parting { count: 0, position: 0, step: PARTING_ASKED },
        Head::PartingReply { granted: true },
    ];
    for (number, head) in heads.iter().enumerate() {
        inject(&tasks, head, &[1; 8]);
        assert_eq!(tasks[0].reports(), vec![REPORT; number + 1], "{head:?}");
    }
    assert_eq!((*memory, COUNTED.load(Ordering::Relaxed)), ([5; 4], 0));
    inject(&tasks, &am(1, 0), &[1; 8]);
    assert_eq!((tasks[0].reports().len(), COUNTED.load(Ordering::Relaxed)), (heads.len(), 1));
    job::close(tasks);
}

/// This process's memory that is in use, in bytes.
fn resident() -> usize {
    let numbers = std::fs::read_to_string("/proc/self/statm").expect("/proc");
    let pages: usize = numbers.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
    pages * page()
}

/// The first packet of a vector's description says how long the description is.
#[test]
fn a_description_takes_memory_only_as_it_arrives() {
    let tasks = open();
    let before = resident();
    let (data, total, cookie, tgt_cntr) = (2, 8, 0, 0);
    for (id, words) in [(1, 100 << 20), (3, u32::MAX)] {
        inject(&tasks, &Head::Vector { id, op: VECTOR_PUT, words, data, total, cookie, tgt_cntr }, &[0; 64]);
    }
    // The other tests of this process use some memory, too.
    assert!(resident() < before + (700 << 20), "{} MiB more are in use", (resident() - before) >> 20);
    assert!(tasks[0].reports().iter().all(|report| *report == REPORT), "there may be no room of that length");
    job::close(tasks);
}

/// The origin's call has refused such an address; should it come nevertheless, the origin must not
/// wait for ever.
#[test]
fn a_read_modify_write_that_is_refused_gets_a_reply() {
    let tasks = open();
    let words = [7_u64; 2];
    let var = words.as_ptr().addr() as u64 + 3;
    let head = Head::Rmw { op: FETCH_AND_ADD as u16 | RMW_WIDE, var, value: 1, swap: 0, cookie: 9 };
    inject(&tasks, &head, &[]);
    let mut held = enter(&tasks[1]);
    let packet = held.core().transport.recv().expect("a reply");
    // SAFETY: the packet is not released yet.
    let head = unsafe { std::slice::from_raw_parts(packet.head, packet.head_len) };
    assert_eq!(Head::decode(head), Some(Head::RmwReply { cookie: 9, value: 0 }));
    held.core().transport.release(packet);
    drop(held);
    assert_eq!((words, tasks[0].reports()), ([7; 2], vec![]));
    job::close(tasks);
}

/// Makes a head, with the number of its message, and of the data's.
type Make = Box<dyn Fn(u32, u32) -> Head>;

/// What no correct task sends: it is dropped and reported, makes no access, and takes no memory.
#[test]
fn malformed_requests_are_dropped() {
    const END: u64 = u64::MAX;
    let tasks = job::open(job::asynchronous(2, job::KEYED), &Habits { copy_limit: 0, ..Habits::STEPPED });
    let here = forever(4096).as_ptr().expose_provenance() as u64;
    let exposed = |addr| Exposed { addr, key: Key { key: END, offset: 0 } };
    let requested = |from, len, addr, description: &[u64]| {
        let mut words = vec![1];
        Part { from, len, exposed: exposed(addr) }.append_to(&mut words);
        words.extend(description);
        words
    };
    let vector = |op, words: Vec<u64>, total| {
        let count = words.len() as u32;
        let head = move |id, data| Head::Vector { id, op, words: count, data, total, cookie: 0, tgt_cntr: 0 };
        (Box::new(head) as Make, words)
    };
    let message = |addr, total| -> Make {
        let handler = never as *const () as u64;
        Box::new(move |id, _| Head::RequestToSend {
            id,
            uhdr_len: 0,
            handler,
            addr,
            total,
            cookie: 0,
            tgt_cntr: 0,
        })
    };
    let by_keys = VECTOR_PUT | VECTOR_BY_KEYS;
    // Contiguous at both tasks.
    let whole = |op, origin, target, len| {
        vector(op | VECTOR_BY_KEYS, requested(0, len, origin, &[0, target, len]), len)
    };
    let cases: [(&str, (Make, Vec<u64>)); 13] = [
        ("a put from beyond the end of memory", whole(VECTOR_PUT, END - 100, here, 4096)),
        ("a put to beyond the end of memory", whole(VECTOR_PUT, here, END - 100, 4096)),
        ("a put of too many bytes", whole(VECTOR_PUT, here, here, END)),
        ("a get to beyond the end of memory", whole(VECTOR_GET, END - 100, here, 4096)),
        ("a get from beyond the end of memory", whole(VECTOR_GET, here, END - 100, 4096)),
        ("a message from beyond the end of memory", (message(END - 100, 4096), Vec::new())),
        (
            "a part beyond the end of memory",
            vector(by_keys, requested(0, 8, END - 4, &[1, here, 8, 16, 2]), 16),
        ),
        (
            "a part beyond the end of the message",
            vector(by_keys, requested(9, 8, here, &[1, here, 8, 16, 2]), 16),
        ),
        (
            "blocks beyond the end of memory",
            vector(by_keys, requested(0, 8, here, &[1, END - 20, 8, 16, 2]), 16),
        ),
        (
            "more bytes than there are",
            vector(by_keys, requested(0, 8, here, &[1, here, 1 << 40, 1 << 41, 1 << 40]), END),
        ),
        ("pieces beyond the end of memory", vector(VECTOR_PUT, vec![0, END - 3, 8], 8)),
        ("a get of pieces beyond the end of memory", vector(VECTOR_GET, vec![0, here, 8, END - 3, 8], 16)),
        ("a put without a number", vector(VECTOR_PUT | VECTOR_ALONE, vec![0, here, 8], 8)),
    ];
    let send = |head: &dyn Fn(u32, u32) -> Head, words: &[u64]| {
        let mut held = enter(&tasks[0]);
        let [id, data] = [(); 2].map(|()| held.core().outbox.number(1));
        // SAFETY: the words live until the call is over.
        let sent = unsafe { vector_wire::send_words(&mut held, 1, id, &head(id, data), words) };
        assert!(matches!(sent, Sent::Free | Sent::Queued));
    };
    for (count, (what, (head, words))) in (1..).zip(&cases) {
        send(&**head, words);
        (0..20).for_each(|step| _ = tasks[step % 2].step());
        let report = Report { code: LAPI_ERR_UNKNOWN, kind: INT_ERR, task: 1, src: 0 };
        assert_eq!(tasks[1].reports(), vec![report; count], "{what}");
        assert!(enter(&tasks[1]).core().copies.is_empty(), "{what}");
    }
    // What may come from a task that can have more memory is answered, so that its operation ends:
    // here there is none. These are all but the message, the put in packets and the one without a
    // number.
    let report = Report { code: LAPI_ERR_UNKNOWN, kind: INT_ERR, task: 0, src: 1 };
    assert_eq!(tasks[0].reports(), vec![report; 10]);
    // More places than there is memory for a list of them. The key is refused, and packets
    // are asked for.
    let (head, words) = vector(by_keys, requested(0, 1 << 50, here, &[1, here, 1, 2, 1 << 54]), 1 << 54);
    send(&*head, &words);
    (0..20).for_each(|step| _ = tasks[step % 2].step());
    assert_eq!(tasks[1].reports().len(), cases.len());
    assert!(enter(&tasks[1]).core().copies.is_empty());
    assert_eq!(tasks[0].reports(), vec![report; 11], "the target has asked for the data of no operation");
    for from in [0, 1] {
        purge(&tasks[from], 1 - from as u32);
    }
    tasks.iter().for_each(|task| resume(task, 1 - task.me));
    look(&tasks);
    look(&tasks);
    settle(&tasks);
    all_is_well(&tasks, 0, 1);
    all_is_well(&tasks, 1, 0);
    job::close(tasks);
}

/// Parts that follow others: malformed ones are dropped, and the message goes on with
/// those that are not.
#[test]
fn malformed_parts_that_follow_are_dropped() {
    const COOKIE: u64 = 77;
    let options = MemOptions { pending: false, ..job::KEYED };
    let tasks = job::open(job::asynchronous(2, options), &Habits { copy_limit: 0, ..Habits::STEPPED });
    let (here, there) = (forever(32), forever(32));
    here.copy_from_slice(&[7; 32]);
    let (from, to) =
        (here.as_ptr().expose_provenance() as u64, there.as_mut_ptr().expose_provenance() as u64);
    let mut held = enter(&tasks[0]);
    let core = held.core();
    // SAFETY: the memory lives for ever.
    let key = unsafe {
        core.transport.expose(1, Piece::of(here), Exposure { access: Access::Read, one_rail: false })
    }
    .expect("a key");
    let numbers = [(); 2].map(|()| core.outbox.number(1));
    drop(held);
    let send = |head: &Head, words: &[u64]| {
        // SAFETY: the words live until the call is over.
        let sent = unsafe { vector_wire::send_words(&mut enter(&tasks[0]), 1, numbers[0], head, words) };
        assert!(matches!(sent, Sent::Free | Sent::Queued));
        (0..20).for_each(|step| _ = tasks[step % 2].step());
    };
    let parts = |parts: &[(u64, u64)]| {
        let mut words = Vec::new();
        for &(at, len) in parts {
            Part { from: at, len, exposed: Exposed { addr: from + at, key } }.append_to(&mut words);
        }
        words
    };
    let reports = |task: usize| tasks[task].reports().len();
    let copies = || {
        let mut held = enter(&tasks[1]);
        let core = held.core();
        core.copies.iter().count() + core.copies.awaiting_parts().count()
    };
    let mut words = vec![1];
    words.extend(parts(&[(0, 8)]));
    words.extend([1, to, 16, 16, 2]);
    let (op, count) = (VECTOR_PUT | VECTOR_BY_KEYS | VECTOR_MORE, words.len() as u32);
    let [id, data] = numbers;
    send(&Head::Vector { id, op, words: count, data, total: 32, cookie: COOKIE, tgt_cntr: 0 }, &words);
    assert_eq!(
        (reports(0), reports(1), copies()),
        (1, 0, 1),
        "it asks the operation, which is none, for more"
    );
    let wrong: [(&str, u64, bool, Vec<u64>); 7] = [
        ("of no operation", COOKIE + 1, false, parts(&[(8, 8)])),
        ("what is known", COOKIE, false, parts(&[(7, 8)])),
        ("beyond the end", COOKIE, false, parts(&[(8, 8), (16, 17)])),
        ("not in order", COOKIE, true, parts(&[(16, 8), (8, 8)])),
        ("of no bytes", COOKIE, true, parts(&[(8, 0)])),
        ("half of one", COOKIE, false, vec![8, 8]),
        ("none, and more", COOKIE, true, Vec::new()),
    ];
    for (before, (what, cookie, more, words)) in wrong.into_iter().enumerate() {
        send(&Head::MoreParts { cookie, more }, &words);
        assert_eq!((reports(0), reports(1), copies()), (1, before + 1, 1), "{what}");
    }
    let mut wanted = [0; 32];
    wanted[..8].fill(7);
    assert_eq!(there, wanted, "what the request has");
    send(&Head::MoreParts { cookie: COOKIE, more: true }, &parts(&[(8, 4), (20, 4)]));
    wanted[8..12].fill(7);
    wanted[20..24].fill(7);
    assert_eq!((&*there, reports(0), reports(1), copies()), (&wanted[..], 2, 7, 1));
    // The origin could not register others: the rest is to come in packets, of which this
    // origin has no data.
    send(&Head::MoreParts { cookie: COOKIE, more: false }, &[]);
    assert_eq!((&*there, reports(0), reports(1), copies()), (&wanted[..], 3, 7, 0));
    // No batch follows these any more.
    send(&Head::MoreParts { cookie: COOKIE, more: false }, &parts(&[(24, 4)]));
    assert_eq!((reports(1), copies()), (8, 0));
    enter(&tasks[0]).core().transport.withdraw(1, Withdrawal::Key(key));
    purge(&tasks[0], 1);
    purge(&tasks[1], 0);
    job::close(tasks);
}
