//! Failures that the core reports in the middle of a session.

use super::{Session, Settings};
use crate::messages::HANDLER;
use crate::{Error, Routes, accept, connect};
use openlapi::api::request::{Hint, Message as Request};
use openlapi::api::{Content, Piece, SendDone, active_message};
use openlapi::config::Config;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn pair(route: Routes) -> [Session; 2] {
    pair_with(&Settings { routes: route, patience: Duration::from_secs(100), ..Settings::default() })
}

fn pair_with(settings: &Settings) -> [Session; 2] {
    try_pair(settings).map(|session| session.expect("a session"))
}

fn try_pair(settings: &Settings) -> [Result<Session, Error>; 2] {
    let (one, other) = UnixStream::pair().expect("sockets");
    let [here, there] =
        [one, other].map(|end| -> [OwnedFd; 2] { [end.try_clone().expect("a socket").into(), end.into()] });
    std::thread::scope(|scope| {
        let [read, write] = there;
        let connecting = scope.spawn(move || connect(read, write, settings));
        let [read, write] = here;
        [accept(read, write, settings), connecting.join().expect("a thread")]
    })
}

/// A message that no session sends: no handler has its number.
fn send_nonsense(session: &Session) {
    let peer = session.peer();
    let message = Request {
        tgt: peer,
        handler: HANDLER + 1,
        header: Piece { ptr: std::ptr::null(), len: 0 },
        data: Content::Piece(Piece { ptr: std::ptr::null(), len: 0 }),
        shape: None,
        atom: 0,
        tgt_cntr: 0,
        cmpl_cntr: 0,
        done: SendDone::nothing(peer),
        hint: Hint::None,
        copied: true,
    };
    let mut held = session.core.enter().expect("an open session");
    // SAFETY: it has neither header nor data.
    unsafe { active_message::amsend(&mut held, &message) }.expect("a message");
}

/// What a setting names is missing: no network was tried.
#[test]
fn a_side_that_cannot_take_part_is_no_missing_way() {
    let config = Config { euidevice: Some("missing0".to_owned()), ..Config::default() };
    let patience = Duration::from_secs(100);
    let settings = Settings { routes: Routes::UDP, patience, config, ..Settings::default() };
    for error in try_pair(&settings).map(|session| session.expect_err("no such interface")) {
        assert!(matches!(error, Error::Core(_)) && error.to_string().contains("missing0"), "{error:?}");
    }
}

/// The program may free its memory once a call says that the session is over.
#[test]
fn a_failure_that_the_core_reports_ends_all_operations_before_a_call_says_so() {
    // By shared memory a get needs no help of the peer, and is complete at once.
    {
        let route = Routes::UDP;
        let [own, peer] = pair(route);
        // From now on they are connected, and what is sent arrives though the peer is idle.
        std::thread::scope(|scope| {
            scope.spawn(|| peer.send(b"", b"").and_then(|()| peer.fence()).expect("a message"));
            own.receive(None).expect("an open session");
            own.send(b"", b"").expect("an open session");
            while peer.take().is_none() {
                let _ = own.progress().expect("an open session");
                let _ = peer.progress().expect("an open session");
            }
        });
        send_nonsense(&peer);
        let theirs = vec![7_u8; 1 << 16];
        let mut ours = vec![1_u8; 1 << 16];
        let at = theirs.as_ptr().expose_provenance() as u64;
        // SAFETY: both live until the end of the turn, and are read after the end of the session.
        unsafe { own.get(ours.as_mut_ptr(), ours.len(), at) }.expect("an open session");
        // The peer makes no progress meanwhile.
        let error = own.fence().expect_err("the peer has sent nonsense");
        assert!(matches!(&error, Error::Lost(why) if why.contains("handler 2")), "{route}: {error}");
        for _ in 0..1000 {
            let _ = (peer.core.poll(), own.core.poll());
        }
        // SAFETY: nothing else uses it any more.
        let found = unsafe { (&raw const ours[0]).read_volatile() };
        assert!(found == 1 && ours.iter().all(|byte| *byte == 1), "{route}: the get goes on");
        assert!(matches!(own.send(b"", b""), Err(Error::Lost(_))));
        assert!(matches!(own.close(), Err(Error::Lost(_))));
    }
}

/// What a guarded session has taken of a peer that puts is what came with the put.
#[test]
fn nothing_more_is_taken_of_a_peer_that_has_sent_what_it_must_not() {
    let [own, peer] = pair_with(&Settings {
        routes: Routes::SHARED_MEMORY,
        patience: Duration::from_secs(100),
        guarded: true,
        ..Settings::default()
    });
    let [floods, is_over] = [const { AtomicBool::new(false) }; 2];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            peer.send(b"", b"first").and_then(|()| peer.fence()).expect("a message");
            let (data, place) = ([1_u8; 8], [0_u8; 8]);
            // SAFETY: the guarded session does not write there; the data lives until the end.
            unsafe { peer.put(data.as_ptr(), 8, place.as_ptr().expose_provenance() as u64) }.expect("a put");
            (0..1000).for_each(|_| peer.send(b"", b"flood").expect("an open session"));
            floods.store(true, Ordering::Release);
            while !is_over.load(Ordering::Acquire) {
                let _ = peer.core.poll().expect("an open core");
            }
        });
        assert_eq!(own.receive(None).expect("an open session").expect("a message").data, b"first");
        while !floods.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        let mut taken = 0;
        let error = loop {
            let progress = own.progress();
            taken += std::iter::from_fn(|| own.take()).count();
            if let Err(error) = progress {
                break error;
            }
        };
        is_over.store(true, Ordering::Release);
        assert!(matches!(&error, Error::Lost(why) if why.contains("malformed")), "{error}");
        // Two rounds of progress take that many.
        assert!(taken < 32, "{taken} messages were taken");
    });
}

/// One round of progress may bring several messages, and none of them wakes the loop twice.
#[test]
fn an_event_loop_does_not_sleep_beside_messages_in_the_inbox() {
    let [own, peer] = pair(Routes::SHARED_MEMORY);
    std::thread::scope(|scope| {
        let send = || (0..3).try_for_each(|_| peer.send(b"", b"")).and_then(|()| peer.fence());
        let sender = scope.spawn(send);
        while !sender.is_finished() {
            let _ = own.progress().expect("an open session");
        }
        sender.join().expect("a sender").expect("an open session");
    });
    // Nothing is left to be done but to take them.
    while own.progress().expect("an open session") {}
    for _ in 0..3 {
        assert!(!own.arm().expect("an open session"), "it would sleep");
        let _ = own.progress().expect("an open session");
        assert!(own.take().is_some());
    }
    while !own.arm().expect("an open session") {
        let _ = own.progress().expect("an open session");
        assert!(own.take().is_none());
    }
}

/// The core of such a session takes no call any more, so nothing can be purged.
#[test]
fn the_core_is_closed_when_it_cannot_go_on() {
    let [own, _peer] = pair(Routes::SHARED_MEMORY);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| own.receive(None));
        own.watch.note_fatal();
        own.core.close().expect("an open core");
        assert!(matches!(own.fence(), Err(Error::Lost(_))));
        assert!(matches!(waiting.join().expect("a thread"), Err(Error::Lost(_))));
    });
    assert!(matches!(own.close(), Err(Error::Lost(why)) if why.contains("cannot go on")));
}
