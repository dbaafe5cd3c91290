use super::*;
use crate::base::rng::Rng;
use crate::job::Common;
use rustix::fs::{MemfdFlags, memfd_create};
use std::os::fd::AsFd;

fn lobby(task: u32, key: &str, secret: Option<&[u8]>) -> Lobby {
    let job = format!("lobby {} {key}", std::process::id());
    let me = Identity { task, tasks: 4, key: job, common: Common::All, source: "a test" };
    Lobby::new(&me, 0, secret)
}

fn offer() -> OwnedFd {
    memfd_create("test", MemfdFlags::CLOEXEC).unwrap()
}

fn call(from: &mut Lobby, task: u32) -> bool {
    let fd = offer();
    from.reach(task).unwrap() && from.call(task, b"call", &[fd.as_fd()]).unwrap()
}

#[test]
fn a_call_waits_until_somebody_looks() {
    let (mut low, mut high) = (lobby(0, "waits", None), lobby(3, "waits", None));
    assert!(!call(&mut low, 3), "nobody is there");
    assert!(high.open().unwrap());
    assert!(call(&mut low, 3));
    assert!(low.has_called(3) && low.poll().unwrap().is_none());
    let Some(Event::Called(offer)) = high.poll().unwrap() else { panic!("no call") };
    assert_eq!((offer.task, offer.blob.as_slice(), offer.fds.len()), (0, b"call".as_slice(), 1));
    assert_eq!(offer.pid, std::process::id() as i32);
    assert!(high.answer(0, b"answer", &[]).unwrap());
    let Some(Event::Answered(offer)) = low.poll().unwrap() else { panic!("no answer") };
    assert_eq!((offer.task, offer.blob.as_slice(), offer.fds.len()), (3, b"answer".as_slice(), 0));
    assert!(low.poll().unwrap().is_none() && high.poll().unwrap().is_none());
}

#[test]
fn a_closed_lobby_hangs_up() {
    let (mut low, mut high) = (lobby(0, "hangs up", None), lobby(1, "hangs up", None));
    assert!(high.open().unwrap() && call(&mut low, 1));
    drop(high);
    assert!(matches!(low.poll().unwrap(), Some(Event::HungUp(1))));
    assert!(!low.has_called(1));
    // The name is free again.
    let mut next = lobby(1, "hangs up", None);
    assert!(next.open().unwrap() && call(&mut low, 1));
    assert!(matches!(next.poll().unwrap(), Some(Event::Called(_))));
}

#[test]
fn a_caller_that_has_hung_up_is_not_heard() {
    let (mut low, mut high) = (lobby(0, "caller", None), lobby(1, "caller", None));
    assert!(high.open().unwrap() && call(&mut low, 1));
    low.forget(1);
    assert!(high.poll().unwrap().is_none());
    assert!(call(&mut low, 1));
    assert!(matches!(high.poll().unwrap(), Some(Event::Called(_))));
    low.forget(1);
    assert!(!high.answer(0, b"", &[]).unwrap());
}

/// Two tasks that call at each other in any order find each other exactly once.
#[test]
fn simultaneous_calls_meet_once() {
    for seed in 0..200 {
        println!("seed {seed}");
        let mut rng = Rng::new(seed);
        let key = format!("both {seed}");
        let mut ends = [lobby(1, &key, None), lobby(2, &key, None)];
        let (mut met, mut called) = ([0; 2], [false; 2]);
        assert!(ends.iter_mut().all(|end| end.open().unwrap()));
        for step in 0..1000 {
            let at = if rng.below(2) == 0 { 0 } else { 1 };
            let peer = 2 - at as u32;
            if !called[at] {
                called[at] = true;
                assert!(met[at] > 0 || call(&mut ends[at], peer));
            }
            match ends[at].poll().unwrap() {
                Some(Event::Called(_)) => met[at] += u32::from(ends[at].answer(peer, b"", &[]).unwrap()),
                Some(Event::Answered(_)) => met[at] += 1,
                // The lower one does not hear the higher one's call.
                Some(Event::HungUp(task)) => assert_eq!((at, task), (1, 1)),
                None => {}
            }
            if met == [1, 1] && step > 200 {
                break;
            }
        }
        assert_eq!(met, [1, 1]);
    }
}

#[test]
fn strangers_are_not_believed() {
    let (mut low, mut high) = (lobby(0, "strangers", Some(b"one")), lobby(1, "strangers", Some(b"one")));
    assert!(high.open().unwrap());
    // With another secret the name is another one.
    assert!(!call(&mut lobby(2, "strangers", Some(b"two")), 1));
    // Noise, a task that is not of this job, and a task that says it is us.
    let name = high.key.name(Room::Lobby, 1);
    let say = |bytes: &[u8]| {
        let channel = Channel::connect(&name).unwrap().expect("a lobby");
        channel.try_send(bytes, &[]).unwrap();
        channel
    };
    let hello = |task, tasks, secret: &[u8]| {
        let hello = Hello { task, tasks, secret: secret.to_vec(), blob: Vec::new(), fds: 0 };
        ToRoot::Hello(hello).encode()
    };
    let _open = [
        say(b"noise"),
        say(&hello(9, 4, b"one")),
        say(&hello(1, 4, b"one")),
        say(&hello(0, 5, b"one")),
        say(&hello(0, 4, b"two")),
    ];
    let _silent = Channel::connect(&name).unwrap();
    assert!(high.poll().unwrap().is_none());
    assert!(call(&mut low, 1));
    assert!(matches!(high.poll().unwrap(), Some(Event::Called(Offer { task: 0, .. }))));
}
