//! Shared memory whose tasks find each other by real lobbies.

use super::*;
use crate::job::{Common, Identity, Lobby};
use crate::transport::HEAD_MAX;

fn lobby(task: Task, tasks: u32, key: &str) -> Option<Box<dyn Reunion>> {
    let key = format!("shm {} {key}", std::process::id());
    let me = Identity { task, tasks, key, common: Common::All, source: "a test" };
    Some(Box::new(Lobby::new(&me, 0, None)))
}

fn begin(task: Task, tasks: u32, key: &str) -> ShmTransport {
    let own = Own::create(tasks).expect("shared memory");
    ShmTransport::new(task, tasks, own, asymmetric_barrier::registered(), lobby(task, tasks, key))
}

/// A packet of nothing but a head, from one to the other.
fn pass(from: &mut ShmTransport, to: &mut ShmTransport, word: u64) {
    let head = word.to_ne_bytes();
    assert!(head.len() <= HEAD_MAX);
    let packet =
        Outgoing { head: &head, first: Piece::EMPTY, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
    // SAFETY: the head lives during the call.
    assert_eq!(unsafe { from.try_send(to.me, &packet) }, SendOutcome::Sent);
    let packet = to.recv().expect("a packet");
    // SAFETY: the packet is not released yet, and its head is 8-byte aligned.
    assert_eq!((packet.src, unsafe { packet.head.cast::<u64>().read() }), (from.me, word));
    to.release(packet);
}

/// The two have let each other come back: they look until they have met.
fn meet(one: &mut ShmTransport, other: &mut ShmTransport) {
    let mut met = [false; 2];
    for _ in 0..100 {
        met[0] |= one.rejoined().is_some();
        met[1] |= other.rejoined().is_some();
        if met == [true; 2] {
            return;
        }
        // Memory of before is kept until a packet is asked for.
        assert!(one.recv().is_none() && other.recv().is_none());
    }
    panic!("they do not meet: {met:?}");
}

fn come_back(task: Task, other: &mut ShmTransport, key: &str) -> ShmTransport {
    let mut new = begin(task, 2, key);
    for _ in 0..100 {
        let back = new.come_back(|| None);
        let _ = other.rejoined();
        assert!(other.recv().is_none());
        if back == Search::Back {
            assert_eq!(new.rejoined(), Some((other.me, 7)));
            return new;
        }
    }
    panic!("nobody lets it come back");
}

#[test]
fn tasks_of_a_job_that_begins_slowly_do_not_take_each_other_for_one_that_runs() {
    let mut ends: Vec<_> = (0..3).map(|task| begin(task, 3, "slow")).collect();
    for _ in 0..20 {
        for end in &mut ends[1..] {
            assert_ne!(end.come_back(|| None), Search::Back, "task {} has come back to no job", end.me);
        }
    }
    // The job begins, and nothing of this is left.
    for end in &mut ends {
        let parts = std::iter::repeat_with(|| None).take(3).collect();
        end.join(parts, false, None).expect("a transport");
        assert!(!end.away.awaits_any());
    }
    let mut late = begin(1, 3, "slow");
    assert_eq!(late.come_back(|| None), Search::Nowhere, "a lobby is open in a job that has lost nobody");
}

#[test]
fn a_call_that_was_lost_is_made_again() {
    let mut ends = [begin(0, 3, "lost"), begin(1, 3, "lost")];
    for end in &mut ends {
        let parts = std::iter::repeat_with(|| None).take(3).collect();
        end.join(parts, false, None).expect("a transport");
    }
    let [one, other] = &mut ends;
    // The other looks into its lobby because of a third task, and does not want the call that lies there.
    other.rejoin(2, 0).expect("a lobby");
    one.rejoin(1, 1).expect("a lobby");
    assert!(other.rejoined().is_none());
    other.part(0);
    assert!(one.rejoined().is_none());
    // It wants the caller now, and cannot call: for want of descriptors, say.
    other.away.expect(0, 2).expect("a lobby");
    meet(one, other);
    pass(one, other, 5);
    pass(other, one, 6);
}

fn in_use() -> (usize, usize) {
    let descriptors = std::fs::read_dir("/proc/self/fd").expect("/proc").count();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("/proc");
    (descriptors, maps.lines().filter(|line| line.contains("memfd")).count())
}

/// Other tests of this process open descriptors too: this one is run again in a process of its own.
#[test]
fn two_hundred_restarts_leave_nothing_behind() {
    const NAME: &str = "transport::shm::tests::lobbies::two_hundred_restarts_leave_nothing_behind";
    const ALONE: &str = "TWO_HUNDRED_RESTARTS";
    if std::env::var_os(ALONE).is_none() {
        let program = std::env::current_exe().expect("this program");
        let run = std::process::Command::new(program).args([NAME, "--exact"]).env(ALONE, "1").output();
        let run = run.expect("a process");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
        return;
    }
    let mut one = begin(0, 2, "restarts");
    one.join(vec![None, None], false, None).expect("a transport");
    let mut before = None;
    for round in 0..200 {
        one.rejoin(1, 7).expect("a lobby");
        let mut other = come_back(1, &mut one, "restarts");
        pass(&mut one, &mut other, round);
        pass(&mut other, &mut one, round + 1);
        // Every third time the two part and come together again before the other one is gone.
        if round % 3 == 0 {
            one.part(1);
            other.part(0);
            assert!(one.recv().is_none() && other.recv().is_none());
            one.rejoin(1, 8).expect("a lobby");
            other.rejoin(0, 9).expect("a lobby");
            meet(&mut one, &mut other);
            pass(&mut one, &mut other, round);
        }
        drop(other);
        one.part(1);
        assert!(one.recv().is_none());
        match before {
            Some(before) => assert_eq!(in_use(), before, "descriptors and mappings after round {round}"),
            None => before = Some(in_use()),
        }
    }
}
