//! Which rails make the accesses, and what becomes of those to a peer that leaves.

use super::*;
use crate::transport::conformance::Calls;
use crate::transport::{Access, AccessId, Copy, Exposure, Started};
use crate::wire::rails::{Keys, RAILS, RailFrameKind};

/// Task 0 reads this memory of a peer over all rails: none of it was read yet.
fn begin_reading(ends: &mut [Rails<TestRail>], peer: Task, there: &[u8], here: &mut [u8]) -> AccessId {
    let memory = Piece { ptr: there.as_ptr(), len: there.len() };
    let exposure = Exposure { access: Access::Read, one_rail: false };
    // SAFETY: the callers keep the memory until the end of the rails.
    let key = unsafe { ends[peer as usize].expose(0, memory, exposure) }.expect("a registration");
    ends[0].serve();
    let copy = Copy {
        local: here.as_mut_ptr(),
        remote: there.as_ptr().expose_provenance() as u64,
        len: there.len().min(here.len()),
    };
    // SAFETY: the callers keep both memories until the end of the rails.
    match unsafe { ends[0].start(Access::Read, peer, Some(key), &[copy]) } {
        Ok(Started::Pending(id)) => id,
        other => panic!("{other:?}"),
    }
}

/// The number comes from the network.
#[test]
fn a_registration_of_a_peer_may_have_any_number() {
    let (mut ends, _network) = unserved(2, 2, MemOptions::default());
    let keys = Keys { id: u64::MAX, rails: [None; RAILS] };
    ends[0].meet(1);
    ends[0].note_control(1, RailFrameKind::Keys, &keys.encode());
    assert!(ends[0].peer(1).is_some_and(|peer| peer.is_up()));
}

/// The peer closes, or its end is reported, with links that work or have failed.
#[test]
fn accesses_to_a_peer_that_has_left_are_reported_once_and_load_no_rail() {
    const LEN: usize = 4 << 20;
    let (there, mut here) = (vec![7_u8; LEN], vec![0_u8; LEN]);
    for (closes, links_fail) in [(false, true), (false, false), (true, false)] {
        let (mut ends, network) = unserved(3, 2, keyed());
        let id = begin_reading(&mut ends, 1, &there, &mut here);
        assert_eq!(ends[0].striping.load(), [8, 8]);
        if links_fail {
            network.set(0);
            ends[0].sleeper.armed = true;
            ends[0].advance();
            ends[0].sleeper.armed = false;
            assert_eq!(ends[0].striping.load(), [0, 0], "the stripes are to be made again");
        }
        match closes {
            true => ends[1].close(),
            false => network.ended.store(1 << 1, Ordering::Release),
        }
        ends[0].advance();
        let deadline = Instant::now() + test_deadline();
        let mut reported = None;
        while reported.is_none() {
            assert!(Instant::now() < deadline, "no report; closes: {closes}, links fail: {links_fail}");
            ends[0].advance();
            reported = ends[0].accessed();
        }
        let (reported, outcome) = reported.expect("a report");
        assert!(reported == id && outcome.is_err(), "closes: {closes}, links fail: {links_fail}");
        assert_eq!(ends[0].striping.load(), [0, 0], "closes: {closes}, links fail: {links_fail}");
        network.set(u8::MAX);
        ends[0].serve();
        assert!(ends[0].accessed().is_none(), "a second report");
        assert!(here.iter().all(|&byte| byte == 0), "it reads after its report");
        // Later accesses use all rails.
        if !links_fail {
            begin_reading(&mut ends, 2, &there, &mut here);
            assert_eq!(ends[0].striping.load(), [8, 8]);
        }
    }
}

/// Memory that is registered for one rail is read over that of the packets between the two tasks,
/// other memory over all.
#[test]
fn accesses_to_memory_that_is_registered_for_one_rail_are_not_striped() {
    const LEN: usize = 4 << 20;
    for (one_rail, tasks, loads) in [(false, 2, [8, 8]), (true, 2, [0, 8]), (true, 3, [8, 0])] {
        let (mut ends, network) = unserved(tasks, 2, keyed());
        let (peer, there, mut here) = (tasks as usize - 1, vec![7_u8; LEN], vec![0_u8; LEN]);
        let memory = Piece { ptr: there.as_ptr(), len: LEN };
        let exposure = Exposure { access: Access::Read, one_rail };
        // SAFETY: the memory lives until the end of the rails.
        let key = unsafe { ends[peer].expose(0, memory, exposure) };
        let key = key.expect("a registration");
        ends[0].serve();
        let mut read = |ends: &mut [Rails<TestRail>], links: Option<u8>| {
            here.fill(0);
            let copy =
                Copy { local: here.as_mut_ptr(), remote: memory.ptr.expose_provenance() as u64, len: LEN };
            // SAFETY: both memories live until the end of the rails.
            let started = unsafe { ends[0].start(Access::Read, peer as Task, Some(key), &[copy]) };
            assert!(matches!(started, Ok(Started::Pending(_))), "{started:?}");
            assert_eq!(ends[0].striping.load(), loads, "of {tasks} tasks");
            links.into_iter().for_each(|up| network.set(up));
            let deadline = Instant::now() + Duration::from_secs(20);
            loop {
                assert!(Instant::now() < deadline, "no report");
                assert!(ends.iter_mut().all(|end| end.recv().is_none()));
                if let Some((_, outcome)) = ends[0].accessed() {
                    return outcome.map(|()| here.iter().all(|&byte| byte == 7));
                }
            }
        };
        assert!(read(&mut ends, None).expect("an access"), "not in place");
        // Without its rail the access fails, and the data can go in packets. Over all rails it is
        // made on those that are left.
        let home = loads.iter().position(|&load| load != 0).expect("a rail");
        assert_eq!(read(&mut ends, Some(!(1 << home))).is_ok(), !one_rail);
    }
}
