//! Requests that no correct task sends.

use super::calls::{enter, forever};
use super::failure::never;
use super::job::{self, Habits, Report};
use super::recovery::{all_is_well, look, purge, resume, settle};
use crate::abi::*;
use crate::engine::transfer::vector_wire;
use crate::proto::outbox::Sent;
use crate::wire::key::{Exposed, Key, Part};
use crate::wire::packet::{Head, VECTOR_BY_KEYS, VECTOR_GET, VECTOR_PUT};

/// Makes a head, with the number of its message, and of the data's.
type Make = Box<dyn Fn(u32, u32) -> Head>;

/// What no correct task sends: it is dropped and reported, makes no access, and takes no memory.
#[test]
fn malformed_requests_are_dropped() {
    const END: u64 = u64::MAX;
    let tasks = job::open(job::asynchronous(2, job::KEYED), &Habits { copy_limit: 0, ..Habits::STEPPED });
    let here = forever(4096).as_ptr().expose_provenance() as u64;
    let exposed = |addr| Exposed { addr, key: Key { key: END, offset: 0 } };
    let body = |addr| {
        let words = exposed(addr).encode();
        words.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes"))).collect()
    };
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
    let put = |addr, total| -> Make {
        Box::new(move |id, _| Head::PutRequest { id, addr, total, cookie: 0, tgt_cntr: 0 })
    };
    let get = |addr, len| -> Make { Box::new(move |_, _| Head::Get { addr, len, cookie: 0, tgt_cntr: 0 }) };
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
    let cases: [(&str, (Make, Vec<u64>)); 12] = [
        ("a put from beyond the end of memory", (put(here, 4096), body(END - 100))),
        ("a put to beyond the end of memory", (put(END - 100, 4096), body(here))),
        ("a put of too many bytes", (put(here, END), body(here))),
        ("a get to beyond the end of memory", (get(here, 4096), body(END - 100))),
        ("a get from beyond the end of memory", (get(END - 100, 4096), body(here))),
        ("a message from beyond the end of memory", (message(END - 100, 4096), body(here))),
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
        assert!(enter(&tasks[1]).core().direct_copies.is_empty(), "{what}");
    }
    // More places than there is memory for a list of them. The key is refused, and packets are asked for.
    let (head, words) = vector(by_keys, requested(0, 1 << 50, here, &[1, here, 1, 2, 1 << 60]), 1 << 60);
    send(&*head, &words);
    (0..20).for_each(|step| _ = tasks[step % 2].step());
    assert_eq!(tasks[1].reports().len(), cases.len());
    assert!(enter(&tasks[1]).core().direct_copies.is_empty());
    let report = Report { code: LAPI_ERR_UNKNOWN, kind: INT_ERR, task: 0, src: 1 };
    assert_eq!(tasks[0].reports(), [report], "the target has asked for the data of no operation");
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
