//! Long messages to peers whose memory is reached by keys: which go that way, what happens when a
//! registration is refused or an access fails, and that the program's memory is left alone when a
//! peer dies or is given up.

use super::calls::{Extras, as_the_header_says, counter, enter, forever, get, put, send};
use super::failure::{LONG, never, start_everything};
use super::job::{self, BULK_MINIMUM, MAX_BODY, Task};
use super::keyed::{End, packets_of, two};
use super::recovery::{all_is_well, look, purge, resume, settle};
use crate::engine::context::request::{Hint, Preference};
use crate::transport::testing::mem::MemOptions;
use libc::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// The memory of one put, one get and one message, of the same length.
struct Places {
    data: &'static [u8],
    /// Where the put goes, where the get goes, where the message goes.
    to: [&'static mut [u8]; 3],
    header: &'static [u8],
}

impl Places {
    fn new(len: usize, seed: usize, header: usize) -> Self {
        let data = forever(len);
        data.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at ^ (at >> 8) ^ (seed * 37)) as u8 | 1);
        let to = [(); 3].map(|()| forever(len));
        let words = forever(header.max(8));
        words[..8].copy_from_slice(&to[2].as_mut_ptr().expose_provenance().to_ne_bytes());
        Self { data, to, header: words }
    }

    /// Starts the three operations from task 0 to task 1.
    fn start(&mut self, task: &Task, counters: [&'static AtomicI32; 3], hint: Hint) {
        let [tgt, org, cmpl] = counters.map(Some);
        let extras = |reported| Extras { tgt_cntr: tgt, org_cntr: org, cmpl_cntr: cmpl, reported, hint };
        put(task, 1, self.to[0].as_mut_ptr(), self.data, extras(1)).expect("a put");
        get(task, 1, self.data, self.to[1].as_mut_ptr(), extras(0)).expect("a get");
        send(task, 1, as_the_header_says, self.header, self.data, extras(2)).expect("a message");
    }

    fn arrived(&self) -> bool {
        self.to.iter().all(|to| *to == self.data)
    }
}

/// Makes the three operations. Returns how many packets task 0 has sent and received for them.
fn exchange(tasks: &[Arc<Task>], len: usize, header: usize, hint: Hint) -> u64 {
    let (before, counters) = (packets_of(&tasks[0]), [(); 3].map(|()| counter()));
    tasks[0].reported.lock().clear();
    let mut places = Places::new(len, before as usize, header);
    places.start(&tasks[0], counters, hint);
    settle(tasks);
    assert!(places.arrived(), "{len} bytes with a header of {header}, {hint:?}");
    let reached = counters.map(|counter| counter.load(Ordering::SeqCst));
    assert_eq!(reached, [3, 3, 2], "target, origin and completion counters; {len} bytes, {hint:?}");
    let mut reported = tasks[0].reported.lock().clone();
    reported.sort_unstable();
    assert_eq!(reported, [(1, 0), (2, 0)], "send completion handlers");
    assert!(enter(&tasks[0]).core().ops.is_empty());
    packets_of(&tasks[0]) - before
}

/// As few packets as three operations by key take, whatever their length: requests,
/// replies, completions.
const FEW: u64 = 12;

#[test]
fn which_messages_go_by_key() {
    // Preference::Packets stands for MP_USE_BULK_XFER=no in these tests.
    for preference in [Preference::Packets, Preference::Auto] {
        for pending in [false, true] {
            let (tasks, handle) = two(MemOptions { pending, ..job::KEYED }, preference);
            let enabled = preference == Preference::Auto;
            for (len, hint, by_key) in [
                (MAX_BODY, Hint::Bulk, false),
                (MAX_BODY + 1, Hint::None, false),
                (BULK_MINIMUM - 1, Hint::None, false),
                (BULK_MINIMUM, Hint::None, enabled),
                (LONG, Hint::None, enabled),
                (LONG, Hint::Packets, false),
                (LONG, Hint::Bulk, true),
                (1 << 22, Hint::Bulk, true),
            ] {
                let packets = exchange(&tasks, len, 16, hint);
                let least = 3 * (len.div_ceil(MAX_BODY)) as u64;
                if len >= LONG {
                    assert_eq!(packets <= FEW, by_key, "{packets} packets for {len} bytes, {hint:?}");
                }
                assert!(by_key || packets >= least, "{packets} packets for {len} bytes, {hint:?}");
                assert!(!by_key || packets <= FEW, "{packets} packets for {len} bytes, {hint:?}");
                assert_eq!(handle.registrations(), 0, "{len} bytes, {hint:?}");
            }
            let refused = tasks.iter().map(|task| enter(task).core().stats.peers.refused).sum::<u64>();
            assert_eq!(refused, 0);
            job::close(tasks);
        }
    }
}

/// The data of a get has come when it is done, whichever way it goes: a fence does not wait until
/// the target serves it.
#[test]
fn a_get_leaves_a_fence_nothing_to_ask_about() {
    for preference in [Preference::Packets, Preference::Auto] {
        let (tasks, _) = two(job::KEYED, preference);
        let (from, to) = (forever(LONG), forever(LONG));
        from.fill(7);
        let done = counter();
        let extras =
            Extras { tgt_cntr: None, org_cntr: Some(done), cmpl_cntr: None, reported: 0, hint: Hint::None };
        get(&tasks[0], 1, from, to.as_mut_ptr(), extras).expect("a get");
        settle(&tasks);
        assert!(to == from && done.load(Ordering::SeqCst) == 1, "{preference:?}");
        assert!(enter(&tasks[0]).core().has_nothing_under_way(), "{preference:?}");
        job::close(tasks);
    }
}

/// A user header that leaves no room for the key in a packet: the key comes in a packet of its own.
#[test]
fn a_long_user_header_leaves_no_room_for_the_key() {
    let (tasks, _) = two(MemOptions { max_body: 1024, ..job::KEYED }, Preference::Auto);
    for header in [8, 1000, 1008, 1016, 1024] {
        let packets = exchange(&tasks, LONG, header, Hint::None);
        assert!(packets <= FEW, "{packets} packets with a header of {header} bytes");
        let packets = exchange(&tasks, LONG, header, Hint::Packets);
        assert!(packets > FEW, "{packets} packets with a header of {header} bytes");
    }
    job::close(tasks);
}

/// Registrations are refused, or accesses fail, from any moment on: every counter and handler is
/// exact, and the data is there.
#[test]
fn data_arrives_when_registrations_are_refused_and_accesses_fail() {
    for (registrations, accesses) in (0..8).flat_map(|at| [(at, u64::MAX), (u64::MAX, at), (at + 2, at)]) {
        for pending in [false, true] {
            let options = MemOptions { registrations, accesses, pending, ..job::KEYED };
            let (tasks, handle) = two(options, Preference::Auto);
            (0..3).for_each(|_| _ = exchange(&tasks, LONG, 16, Hint::None));
            let refused = tasks.iter().map(|task| enter(task).core().stats.peers.refused).sum::<u64>();
            assert!(refused > 0, "nine registrations and accesses, of which {options:?} allows fewer");
            assert_eq!(handle.registrations(), 0);
            job::close(tasks);
        }
    }
}

/// Many long messages are under way at a time, in both directions.
#[test]
fn many_accesses_are_under_way() {
    let (tasks, handle) = two(MemOptions { capacity: 64, ..job::KEYED }, Preference::Auto);
    let counters = [(); 3].map(|()| counter());
    let mut all: Vec<_> = (0..20).map(|at| Places::new(LONG + at, at, 16)).collect();
    all.iter_mut().for_each(|places| places.start(&tasks[0], counters, Hint::None));
    let mut most = 0;
    for _ in 0..40 {
        tasks[1].step();
        most = most.max(enter(&tasks[1]).core().copies.waiting());
    }
    assert!(most > 20, "at most {most} of 60 accesses at a time");
    assert!(handle.registrations() > 20);
    settle(&tasks);
    assert!(all.iter().all(Places::arrived));
    assert_eq!(counters.map(|counter| counter.load(Ordering::SeqCst)), [60, 60, 40]);
    assert_eq!(handle.registrations(), 0);
    job::close(tasks);
}

/// After `steps` steps of long operations one task is given up, or dies: from then on neither
/// task's program memory is written for them, and nothing stays registered.
fn ends_after(steps: usize, end: End, pending: bool) {
    let (tasks, handle) = two(MemOptions { pending, ..job::KEYED }, Preference::Auto);
    let counters = [(); 3].map(|()| counter());
    let mut places = Places::new(LONG, steps, 16);
    places.start(&tasks[0], counters, Hint::None);
    (0..steps).for_each(|step| _ = tasks[(step + 1) % 2].step());
    end.happens(&tasks, &handle);
    // The memory of the survivor is its program's again: the get's at the origin, the others
    // at the target.
    let own: &[usize] = if end.survivor() == 0 { &[1] } else { &[0, 2] };
    own.iter().for_each(|&at| places.to[at].fill(0x99));
    for step in 0..60 {
        tasks[step % 2].step();
    }
    for &at in own {
        assert!(places.to[at].iter().all(|&byte| byte == 0x99), "{end:?} after {steps}, {pending}: {at}");
    }
    end.is_overcome(&tasks, &handle, &[1, 2], &format!("after {steps}, {pending}"));
    assert_eq!(handle.registrations(), 0);
    job::close(tasks);
}

#[test]
fn no_memory_is_touched_after_the_end_of_a_peer() {
    for end in End::ALL {
        for steps in 0..14 {
            [false, true].into_iter().for_each(|pending| ends_after(steps, end, pending));
        }
    }
}

/// A message that its header handler refuses stays registered until it is accepted, or until its
/// sender is given up.
#[test]
fn a_refused_message_is_read_when_it_is_accepted() {
    let (tasks, handle) = two(job::KEYED, Preference::Auto);
    let data = &*forever(LONG);
    send(&tasks[0], 1, super::recovery::later, &[1; 8], data, Extras::default()).expect("a message");
    (0..40).for_each(|step| _ = tasks[step % 2].step());
    assert_eq!((enter(&tasks[1]).core().senders_of_kept().count(), handle.registrations()), (1, 1));
    purge(&tasks[0], 1);
    assert_eq!(handle.registrations(), 0);
    purge(&tasks[1], 0);
    tasks.iter().for_each(|task| resume(task, 1 - task.me));
    look(&tasks);
    look(&tasks);
    all_is_well(&tasks, 0, 1);
    job::close(tasks);
}

/// LAPI ends with everything under way: what was registered is withdrawn.
#[test]
fn the_end_of_a_context_withdraws_everything() {
    let (tasks, handle) = two(job::KEYED, Preference::Auto);
    for task in &tasks {
        start_everything(task, 1 - task.me, Hint::None);
    }
    assert_eq!(handle.registrations(), 6);
    enter(&tasks[0]).core().transport.close();
    assert_eq!(handle.registrations(), 3);
    job::close(tasks);
    assert_eq!(handle.registrations(), 0);
}

/// Memory is unmapped and mapped again at the same place between transfers, thousands of
/// times: each access finds the registration of its own transfer, and nothing is registered
/// when the memory goes.
#[test]
fn memory_is_unmapped_and_mapped_again() {
    const LEN: usize = 2 * 4096;
    // In one step, so that no other thread's mapping takes the place in between.
    let map = |at: *mut c_void| {
        let fixed = if at.is_null() { 0 } else { libc::MAP_FIXED };
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | fixed;
        // SAFETY: a new mapping, which replaces none but that of the round before, which no
        // operation uses any more.
        let start = unsafe { libc::mmap(at, 2 * LEN, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        start
    };
    let (tasks, handle) = two(job::KEYED, Preference::Auto);
    let (there, done) = (forever(LEN), counter());
    let extras = Extras { org_cntr: Some(done), ..Extras::default() };
    let mut start = ptr::null_mut();
    for round in 0..4_000_usize {
        start = map(start);
        // SAFETY: the mapping, which nothing else uses until the end of the round.
        let memory = unsafe { std::slice::from_raw_parts_mut(start.cast::<u8>(), 2 * LEN) };
        let (from, to) = memory.split_at_mut(LEN);
        from.iter_mut().enumerate().for_each(|(at, byte)| *byte = (at * 7 + round * 13) as u8);
        put(&tasks[0], 1, there.as_mut_ptr(), from, extras).expect("a put");
        send(&tasks[0], 1, never, &[0; 8], from, extras).expect("a message");
        while done.load(Ordering::SeqCst) != 3 * round as i32 + 2 {
            tasks.iter().for_each(|task| _ = task.step());
        }
        assert!(there == from, "the put of round {round}");
        get(&tasks[0], 1, there, to.as_mut_ptr(), extras).expect("a get");
        while done.load(Ordering::SeqCst) != 3 * round as i32 + 3 {
            tasks.iter().for_each(|task| _ = task.step());
        }
        assert!(to == from, "the get of round {round}");
        assert_eq!(handle.registrations(), 0, "round {round}: the memory is the program's again");
    }
    // SAFETY: no operation uses it any more.
    assert_eq!(unsafe { libc::munmap(start, 2 * LEN) }, 0);
    let refused = tasks.iter().map(|task| enter(task).core().stats.peers.refused).sum::<u64>();
    assert_eq!(refused, 0, "every transfer went by key");
    job::close(tasks);
}

/// LAPI_NOT_STRIPE: the memory of each message is registered for one rail.
#[test]
fn messages_that_are_not_to_be_striped_are_registered_for_one_rail() {
    for (hint, one_rail) in [(Hint::None, 0), (Hint::Bulk, 0), (Hint::OneRail, 3), (Hint::BulkOneRail, 3)] {
        let (tasks, handle) = two(job::KEYED, Preference::Auto);
        let counters = [(); 3].map(|()| counter());
        let mut places = Places::new(LONG, 1, 16);
        places.start(&tasks[0], counters, hint);
        assert_eq!((handle.registrations(), handle.registrations_for_one_rail()), (3, one_rail), "{hint:?}");
        settle(&tasks);
        assert!(places.arrived(), "{hint:?}");
        assert_eq!(handle.registrations(), 0, "{hint:?}");
        job::close(tasks);
    }
}
