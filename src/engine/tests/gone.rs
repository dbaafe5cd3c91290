//! What must not be done, and not be kept, when a peer has died.

use super::calls::{Extras, counter, enter, forever, get, put, send};
use super::failure::{LONG, code, lost};
use super::job::{self, Habits};
use super::recovery::later;
use crate::abi::LAPI_ERR_NO_CONNECTIVITY;
use crate::engine::context::request::Preference;
use crate::engine::progress::lost_peers;
use crate::proto::Transmit;
use crate::transport::shm::in_process;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of its process may mean another process by now: neither is anything copied from
/// there, nor to it.
#[test]
fn nothing_is_copied_to_or_from_the_process_number_of_a_task_that_has_died() {
    let mut ends = job::shm(2);
    in_process::end_process(&mut ends[0], 1);
    let preference = Preference::Attach;
    let tasks = job::open(job::boxed(ends), &Habits { preference, ..Habits::STEPPED });
    let (data, there, buffer) = (forever(200_000), forever(200_000), forever(200_000));
    let came = counter();
    data.fill(7);
    put(&tasks[0], 1, there.as_mut_ptr(), data, Extras::default()).expect("a put");
    for len in [8, 200_000] {
        let extras = Extras { org_cntr: Some(came), ..Extras::default() };
        get(&tasks[0], 1, &data[..len], buffer.as_mut_ptr(), extras).expect("a get");
    }
    for _ in 0..20 {
        tasks[0].step();
    }
    assert!(there.iter().all(|&byte| byte == 0), "the memory of a stranger was written");
    assert!(buffer.iter().all(|&byte| byte == 0), "the memory of a stranger was read");
    assert_eq!(came.load(Ordering::SeqCst), 0);
    lost_peers::look_after_peers(&mut enter(&tasks[0]));
    assert_eq!(tasks[0].reports(), [lost(0, 1)]);
    job::close(tasks);
}

/// Nothing would offer them to their header handlers but this task, again and again.
#[test]
fn refused_messages_of_a_task_that_has_died_are_forgotten() {
    let (ends, fabric) = job::mortal_mem(2, 8, false);
    let tasks = job::open(ends, &Habits::STEPPED);
    for _ in 0..3 {
        send(&tasks[1], 0, later, &[0; 8], &[1; 8], Extras::default()).expect("a message that is refused");
    }
    tasks[0].step();
    assert_eq!(enter(&tasks[0]).core().membership.kept(1).0, 3);
    get(&tasks[0], 1, &[0; 8], forever(8).as_mut_ptr(), Extras::default()).expect("a get");
    fabric.kill(1);
    lost_peers::look_after_peers(&mut enter(&tasks[0]));
    assert_eq!(tasks[0].reports(), [lost(0, 1)]);
    tasks[0].step();
    let mut held = enter(&tasks[0]);
    let core = held.core();
    assert!(!core.keeps_messages() && !core.has_deferred());
    assert_eq!(core.membership.kept(1).0, 0);
    drop(held);
    job::close(tasks);
}

/// The call returns an error, and no operation waits: the program may need nothing of that task any
/// more, but its error handler runs as soon as a thread may run it.
#[test]
fn a_death_that_a_call_finds_first_is_reported_at_once() {
    let (ends, fabric) = job::mortal_mem(2, 8, false);
    let tasks = job::open(ends, &Habits::STEPPED);
    lost_peers::look_after_peers(&mut enter(&tasks[0]));
    fabric.kill(1);
    let there = forever(8).as_mut_ptr();
    assert_eq!(code(put(&tasks[0], 1, there, &[0; 8], Extras::default())), LAPI_ERR_NO_CONNECTIVITY);
    lost_peers::look_when_due(&mut enter(&tasks[0]));
    assert_eq!(tasks[0].reports(), [lost(0, 1)]);
    assert_eq!(code(put(&tasks[0], 1, there, &[0; 8], Extras::default())), LAPI_ERR_NO_CONNECTIVITY);
    lost_peers::look_after_peers(&mut enter(&tasks[0]));
    assert_eq!(tasks[0].reports(), [lost(0, 1)], "once");
    job::close(tasks);
}

/// The ring of a peer that has been quiet is not polled until the peer announces a packet. One that
/// is killed after its reply, and before it announces that, has replied nevertheless.
#[test]
fn a_reply_that_was_not_announced_before_a_death_is_taken() {
    let mut ends = in_process::selective_ends(2);
    in_process::end_process(&mut ends[0], 1);
    let habits = Habits { preference: Preference::Packets, ..Habits::STEPPED };
    let tasks = job::open(job::boxed(ends), &habits);
    let (data, buffer, came) = (forever(8), forever(8), counter());
    data.fill(7);
    let extras = Extras { org_cntr: Some(came), ..Extras::default() };
    get(&tasks[0], 1, data, buffer.as_mut_ptr(), extras).expect("a get");
    tasks[0].step();
    let mut held = enter(&tasks[1]);
    let door = held.core().transport.door(0).expect("a connection");
    assert!(in_process::die_before_announcing(door), "the peer is quiet");
    drop(held);
    tasks[1].step();
    assert!(!tasks[0].step() && came.load(Ordering::SeqCst) == 0, "nothing tells of the reply");
    lost_peers::look_after_peers(&mut enter(&tasks[0]));
    assert_eq!((&*buffer, came.load(Ordering::SeqCst)), (&[7; 8][..], 1));
    assert_eq!(tasks[0].reports(), []);
    job::close(tasks);
}

/// In a barrier, signals take the place of packets: those of such a task count no more, and it is
/// given none.
#[test]
fn a_task_that_was_given_up_takes_no_part_in_signals() {
    let tasks = job::open(job::boxed(job::shm(2)), &Habits::STEPPED);
    let signal = |from: usize, number| enter(&tasks[from]).core().out().1.signal(1 - from as u32, number);
    let signalled = |at: usize, number| enter(&tasks[at]).core().out().1.signalled(1 - at as u32, number);
    assert!(signal(0, 4) && signal(1, 4));
    assert!(signalled(0, 4) && signalled(1, 4));
    enter(&tasks[1]).core().membership.quarantine(0);
    assert!(!signalled(1, 4) && signal(1, 5), "it is not lost yet");
    enter(&tasks[1]).core().membership.lose(0);
    assert!(!signal(1, 6) && !signalled(0, 6));
    job::close(tasks);
}

/// A program may free the memory of its operations with a task when its error handler has learnt of
/// that task's death. A message without room is the first to find the death here, while the
/// beginning of a reply has arrived, and more of it is in the ring.
#[test]
fn nothing_of_a_dead_task_is_under_way_when_its_death_is_reported() {
    static PENDING: AtomicUsize = AtomicUsize::new(usize::MAX);
    let (ends, fabric) = job::mortal_mem(2, 8, false);
    let habits = Habits { preference: Preference::Packets, ..Habits::STEPPED };
    let tasks = job::open(ends, &habits);
    let count = |task: &job::Task| {
        PENDING.store(enter(task).core().ops.of(1).count(), Ordering::SeqCst);
    };
    assert!(tasks[0].on_report.set(count).is_ok());
    get(&tasks[0], 1, forever(LONG), forever(LONG).as_mut_ptr(), Extras::default()).expect("a get");
    tasks[1].step();
    put(&tasks[0], 1, forever(LONG).as_mut_ptr(), forever(LONG), Extras::default()).expect("a put");
    fabric.kill(1);
    while tasks[0].reports().is_empty() {
        tasks[0].step();
        lost_peers::look_when_due(&mut enter(&tasks[0]));
    }
    assert_eq!((tasks[0].reports(), PENDING.load(Ordering::SeqCst)), (vec![lost(0, 1)], 0));
    job::close(tasks);
}
