//! What every door needs of a session, whatever opens it and whatever carries it: [`all`] gets what
//! opens two ends in one process. What needs processes, a kill and a fork, is in `processes.rs`.

use openlapi_session::{Change, Error, Message, Session, Settings};
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Opens a session, and returns both ends: the settings are those of the two.
pub type Open<'a> = &'a (dyn Fn([&Settings; 2]) -> [Session; 2] + Sync);

/// Everything, one after the other.
pub fn all(open: Open<'_>, settings: &Settings) {
    let pair = || open([settings, settings]);
    puts_and_gets_are_in_place_after_a_fence(pair());
    messages_land_where_the_program_says(open, settings);
    what_was_fenced_comes_first(pair());
    a_fence_is_for_all_that_was_started(pair());
    a_closed_session_gives_what_was_sent_and_then_says_so(pair());
    an_end_without_a_word_is_a_loss(pair());
    sessions_of_one_process_end_alone(&pair);
    a_message_ends_a_sleep(pair());
    too_long_a_message_ends_the_session(open, settings);
}

fn late() -> Option<Instant> {
    Some(Instant::now() + Duration::from_secs(300))
}

fn message(of: &Session) -> Message {
    of.receive(late()).expect("an open session").expect("in time")
}

/// Runs something in a thread beside what the other end does, which then makes progress until the
/// thread has ended: an end makes progress in its calls alone.
fn against(run: impl FnOnce() + Send, there: &Session, other: impl FnOnce()) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(run);
        other();
        while !thread.is_finished() {
            let _ = there.progress();
        }
    });
}

/// Runs one end in a thread, where it makes progress until the other one is done.
fn beside<T>(there: &Session, run: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| there.wait(late(), || done.load(Ordering::Acquire)));
        let result = run();
        done.store(true, Ordering::Release);
        there.wake();
        result
    })
}

fn puts_and_gets_are_in_place_after_a_fence([here, there]: [Session; 2]) {
    let mut theirs = vec![0_u8; 1 << 20];
    let number = Box::new(AtomicU64::new(5));
    let at = theirs.as_mut_ptr().expose_provenance() as u64;
    beside(&there, || {
        for length in [1, 7, 4096, 40_000, 1 << 20] {
            let data: Vec<u8> = (0..length).map(|at| (at * 7 + length) as u8).collect();
            let mut back = vec![0_u8; length];
            // SAFETY: all of it lives until the fences; nothing else uses the memory meanwhile.
            unsafe {
                here.put(data.as_ptr(), length, at).expect("a put");
                here.fence().expect("a fence");
                assert!(std::slice::from_raw_parts(theirs.as_ptr(), length) == data, "{length} bytes put");
                here.get(back.as_mut_ptr(), length, at).expect("a get");
            }
            here.fence().expect("a fence");
            assert!(back == data, "{length} bytes got");
        }
        let at = number.as_ptr().expose_provenance() as u64;
        // SAFETY: the number lives as long, and is changed by this alone.
        let before = unsafe { here.fetch(at, Change::Add(3)) }.expect("a number");
        assert_eq!((before, number.load(Ordering::Acquire)), (5, 8));
    });
}

fn messages_land_where_the_program_says(open: Open<'_>, settings: &Settings) {
    let given = Arc::new(Mutex::new(Vec::new()));
    let noted = given.clone();
    let landing = move |header: &[u8], length: usize| {
        let memory = Vec::<u8>::with_capacity(length.max(1));
        noted.lock().expect("a lock").push((header.to_vec(), length, memory.as_ptr().addr()));
        memory
    };
    let landed = Settings { landing: Some(Arc::new(landing)), ..settings.clone() };
    let [here, there] = open([settings, &landed]);
    let send = || {
        for length in [0_usize, 1, 5000, 300_000] {
            here.send(&length.to_le_bytes(), &vec![length as u8; length]).expect("a message");
        }
        here.fence().expect("a fence");
    };
    against(send, &there, || {
        let mut found: Vec<Message> = (0..4).map(|_| message(&there)).collect();
        found.sort_by_key(|message| message.data.len());
        for (message, length) in found.iter().zip([0_usize, 1, 5000, 300_000]) {
            assert!(message.data == vec![length as u8; length], "{length} bytes");
            let place = (length.to_le_bytes().to_vec(), length, message.data.as_ptr().addr());
            assert!(given.lock().expect("a lock").contains(&place), "{length} bytes landed elsewhere");
        }
    });
}

fn what_was_fenced_comes_first([here, there]: [Session; 2]) {
    let send = || {
        for number in 0..50_u64 {
            // A long one, which a short one could pass.
            here.send(&number.to_le_bytes(), &vec![0; (49 - number as usize) * 2000]).expect("a message");
            here.fence().expect("a fence");
        }
    };
    against(send, &there, || {
        for number in 0..50_u64 {
            assert_eq!(message(&there).header, number.to_le_bytes());
        }
    });
}

fn a_fence_is_for_all_that_was_started([here, there]: [Session; 2]) {
    beside(&there, || {
        for number in 0..100_usize {
            here.send(b"", &vec![0; number * 300]).expect("a message");
        }
        here.fence().expect("a fence");
    });
    let lengths: u64 = std::iter::from_fn(|| there.take()).map(|message| message.data.len() as u64).sum();
    assert_eq!(lengths, (0..100).map(|number| number * 300).sum::<u64>(), "all are in the inbox");
}

fn a_closed_session_gives_what_was_sent_and_then_says_so([here, there]: [Session; 2]) {
    std::thread::scope(|scope| {
        scope.spawn(move || {
            here.send(b"last", &[1; 9000]).expect("a message");
            here.close().expect("an orderly end");
        });
        assert_eq!(message(&there).header, b"last");
        assert!(matches!(there.receive(late()), Err(Error::Closed)));
        assert!(matches!(there.send(b"", b""), Err(Error::Closed)));
        there.close().expect("an orderly end");
    });
}

fn an_end_without_a_word_is_a_loss([here, there]: [Session; 2]) {
    drop(here);
    assert!(matches!(there.receive(late()), Err(Error::Lost(_))));
    assert!(matches!(there.fence(), Err(Error::Lost(_))));
    assert!(matches!(there.close(), Err(Error::Lost(_))));
}

fn sessions_of_one_process_end_alone(pair: &dyn Fn() -> [Session; 2]) {
    let [first, second, third] = [pair(), pair(), pair()];
    drop(second);
    for [here, there] in [first, third] {
        let send = || {
            here.send(b"still", b"here").expect("a message");
            here.fence().expect("a fence");
        };
        against(send, &there, || assert_eq!(message(&there).data, b"here"));
    }
}

fn a_message_ends_a_sleep([here, there]: [Session; 2]) {
    let all = epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll descriptor");
    epoll::add(&all, &there, epoll::EventData::new_u64(0), epoll::EventFlags::IN).expect("room");
    let sent = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (here, sent) = (&here, &sent);
        let sender = scope.spawn(move || {
            here.wait(late(), || sent.load(Ordering::Acquire)).expect("an open session");
            here.send(b"", b"awake").expect("a message");
            here.fence().expect("a fence");
        });
        let mut found = None;
        while found.is_none() {
            if there.progress().expect("an open session") || !there.arm().expect("an open session") {
                found = there.take();
                continue;
            }
            // It may sleep now, and whatever comes wakes it.
            sent.store(true, Ordering::Release);
            here.wake();
            let limit = Timespec { tv_sec: 300, tv_nsec: 0 };
            let ready = poll(&mut [PollFd::new(&all, PollFlags::IN)], Some(&limit)).expect("a descriptor");
            assert!(ready != 0, "nothing has ended the sleep");
        }
        assert_eq!(found.expect("a message").data, b"awake");
        while !sender.is_finished() {
            let _ = there.progress().expect("an open session");
        }
    });
}

fn too_long_a_message_ends_the_session(open: Open<'_>, settings: &Settings) {
    let [here, there] = open([settings, &Settings { longest: 10_000, ..settings.clone() }]);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            here.send(b"", &[1; 10_000]).expect("a message");
            here.send(b"", &[1; 10_001]).expect("a message");
            let _ = here.receive(late());
        });
        assert_eq!(message(&there).data.len(), 10_000);
        let error = there.receive(late()).expect_err("it is too long");
        assert!(matches!(&error, Error::Limit(why) if why.contains("10001")), "{error}");
        drop(there);
    });
}
