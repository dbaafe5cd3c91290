//! The hub with connections whose other ends are here.

use super::*;
use openlapi::wire::board::Word;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;

/// The ends of a connection.
fn connection() -> (Connection, Connection) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let here = TcpStream::connect(address).expect("it listens");
    here.set_nonblocking(true).expect("it is a socket");
    let there = listener.accept().expect("it has connected").0;
    there.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
    (here, there)
}

/// A hub with these connections, which runs, and `poe`'s end of its socket.
fn hub(connected: Vec<Connected>) -> (UnixStream, thread::JoinHandle<()>) {
    let (poe, _, thread) = hub_that_looks(connected);
    (poe, thread)
}

/// A hub as that of [`hub`], its two ends, of which the second is that of those who look on.
fn hub_that_looks(connected: Vec<Connected>) -> (UnixStream, UnixStream, thread::JoinHandle<()>) {
    let socket = || {
        let (here, there) = UnixStream::pair().expect("sockets");
        here.set_read_timeout(Some(Duration::from_secs(60))).expect("a time");
        there.set_nonblocking(true).expect("it is a socket");
        (here, there)
    };
    let ((poe, notes), (looks, looked)) = (socket(), socket());
    let thread = thread::spawn(move || {
        Hub::new(connected, (notes, looked), nix::unistd::getpid(), None).run(Vec::new());
    });
    (poe, looks, thread)
}

#[test]
fn the_loss_of_a_task_is_passed_on_to_the_others() {
    let (first, second) = (connection(), connection());
    let (mut poe, thread) = hub(vec![(first.0, Vec::new()), (second.0, Vec::new())]);
    drop(first.1);
    let mut other = second.1;
    let mut expected = Word::Ended.at(0).to_le_bytes().to_vec();
    expected.extend([4_u32, 1].map(u32::to_le_bytes).concat());
    let note = Note::read(&mut other).expect("a note comes");
    assert_eq!(note, Note::Changes { length: expected.len() });
    let mut changes = vec![0; expected.len()];
    other.read_exact(&mut changes).expect("it follows");
    assert_eq!(changes, expected);
    drop(other);
    assert_eq!(Note::read(&mut poe).expect("a note"), Note::Lost { task: 0 });
    assert_eq!(Note::read(&mut poe).expect("a note"), Note::Lost { task: 1 });
    assert_eq!(Note::read(&mut poe).expect("a note"), Note::Done);
    thread.join().expect("nothing fails");
}

/// One machine does not read, and has sent half a note: as one that has vanished. More is sent
/// to it than the sockets take.
#[test]
fn a_machine_that_does_not_read_delays_no_other_one() {
    const LENGTH: usize = 16 << 20;
    let (silent, talker, listener) = (connection(), connection(), connection());
    let data = connection();
    let output = Arc::new(File::from(OwnedFd::from(data.0)));
    let (mut poe, thread) = hub(vec![
        (silent.0, vec![Arc::downgrade(&output)]),
        (talker.0, Vec::new()),
        (listener.0, Vec::new()),
    ]);
    let (mut silent, mut talker, mut listener) = (silent.1, talker.1, listener.1);
    silent.write_all(&[0; 5]).expect("it is connected");
    let reader = talker.try_clone().expect("a descriptor");
    let drain = thread::spawn(move || io::copy(&mut { reader }, &mut io::sink()));
    Note::Changes { length: LENGTH }.write(&mut talker).expect("it is connected");
    talker.write_all(&vec![7; LENGTH]).expect("the hub reads");
    assert_eq!(Note::read(&mut listener).expect("a note"), Note::Changes { length: LENGTH });
    let mut changes = vec![0; LENGTH];
    listener.read_exact(&mut changes).expect("they follow");
    assert!(changes.iter().all(|byte| *byte == 7));
    Note::Signal { signal: Signal::SIGTERM as i32 }.write(&mut poe).expect("the hub reads");
    assert_eq!(Note::read(&mut listener).expect("a note"), Note::Signal { signal: Signal::SIGTERM as i32 });
    for mut task in [talker, listener] {
        Note::Killed { task: 0, signal: 15 }.write(&mut task).expect("it is connected");
        Note::Done.write(&mut task).expect("it is connected");
    }
    assert!(matches!(Note::read(&mut poe), Ok(Note::Killed { signal: 15, .. })));
    assert!(matches!(Note::read(&mut poe), Ok(Note::Killed { signal: 15, .. })));
    // What a second signal of the user leads to.
    Note::Signal { signal: Signal::SIGKILL as i32 }.write(&mut poe).expect("the hub reads");
    assert_eq!(Note::read(&mut poe).expect("a note"), Note::Lost { task: 0 });
    assert_eq!(Note::read(&mut poe).expect("a note"), Note::Done);
    assert_eq!((&*output).read(&mut [0]).expect("it is at its end"), 0, "its output is not waited for");
    thread.join().expect("nothing fails");
    drop(drain.join().expect("nothing fails"));
    drop((silent, data.1));
}

/// `poe` does not read, as while it writes itself: what it says reaches the tasks all the same.
#[test]
fn notes_that_poe_does_not_read_delay_no_task() {
    const NOTES: usize = 20_000;
    let (talker, listener) = (connection(), connection());
    let (mut poe, thread) = hub(vec![(talker.0, Vec::new()), (listener.0, Vec::new())]);
    let (mut talker, listener) = (talker.1, listener.1);
    for pid in 0..NOTES as i32 {
        Note::Started { task: 0, pid }.write(&mut talker).expect("the hub reads");
    }
    let order = Note::Signal { signal: Signal::SIGTERM as i32 };
    order.write(&mut poe).expect("the hub reads");
    // A connection that is closed with something unread loses what it has sent.
    for mut task in [talker, listener] {
        assert_eq!(Note::read(&mut task).expect("a note"), order);
        Note::Killed { task: 0, signal: 15 }.write(&mut task).expect("it is connected");
        Note::Done.write(&mut task).expect("it is connected");
    }
    let mut read = 0;
    while Note::read(&mut poe).expect("a note") != Note::Done {
        read += 1;
    }
    assert_eq!(read, NOTES + 2);
    thread.join().expect("nothing fails");
}

/// The reply to a look, as a task sends it: its number for itself is 0.
fn reply(number: u32, text: &[u8]) -> Vec<u8> {
    [&Note::Reply { task: 0, number, length: text.len() }.bytes()[..], text].concat()
}

/// The next reply: of which task, to which look, and what it is.
fn next_reply(looks: &mut UnixStream) -> (usize, u32, Vec<u8>) {
    let Ok(Note::Reply { task, number, length }) = Note::read(looks) else { panic!("a reply comes") };
    let mut bytes = vec![0; length];
    looks.read_exact(&mut bytes).expect("it follows");
    (task, number, bytes)
}

/// Of a task with another one's number, and then a note that no task sends.
#[test]
fn a_machine_that_says_what_no_task_says_is_lost() {
    for wrong in
        [Note::Lost { task: 99_999 }, Note::SignalTask { task: 1, signal: 9 }, Note::Look { number: 1 }]
    {
        let mut task = connection();
        let (mut poe, thread) = hub(vec![(task.0, Vec::new())]);
        Note::Started { task: 99_999, pid: 7 }.write(&mut task.1).expect("it is connected");
        wrong.write(&mut task.1).expect("it is connected");
        assert_eq!(Note::read(&mut poe).expect("a note"), Note::Started { task: 0, pid: 7 });
        assert_eq!(Note::read(&mut poe).expect("a note"), Note::Lost { task: 0 }, "{wrong:?}");
        assert_eq!(Note::read(&mut poe).expect("a note"), Note::Done);
        thread.join().expect("nothing fails");
    }
}

/// One that has not replied is not asked again: it may be stopped, and what it does not read
/// would end its connection at last.
#[test]
fn a_task_has_one_look_to_reply_to() {
    let (silent, talker) = (connection(), connection());
    let (poe, mut looks, thread) = hub_that_looks(vec![(silent.0, Vec::new()), (talker.0, Vec::new())]);
    let (mut silent, mut talker) = (silent.1, talker.1);
    for number in 1..=3 {
        Note::Look { number }.write(&mut looks).expect("the hub reads");
        assert_eq!(Note::read(&mut talker).expect("a note"), Note::Look { number });
        talker.write_all(&reply(number, b"here")).expect("it is connected");
        assert_eq!(next_reply(&mut looks), (1, number, b"here".to_vec()));
    }
    assert_eq!(Note::read(&mut silent).expect("a note"), Note::Look { number: 1 });
    silent.set_nonblocking(true).expect("it is a socket");
    assert!(Note::read(&mut silent).is_err(), "that one alone");
    silent.set_nonblocking(false).expect("it is a socket");
    // Late, and nothing: it is asked what others were asked meanwhile, and then as they are.
    silent.write_all(&reply(1, b"")).expect("it is connected");
    assert_eq!(Note::read(&mut silent).expect("a note"), Note::Look { number: 3 });
    silent.write_all(&reply(3, b"there")).expect("it is connected");
    assert_eq!(next_reply(&mut looks), (0, 3, b"there".to_vec()));
    Note::Look { number: 4 }.write(&mut looks).expect("the hub reads");
    assert_eq!(Note::read(&mut silent).expect("a note"), Note::Look { number: 4 });
    drop((silent, talker, poe));
    thread.join().expect("nothing fails");
}

/// Of what a task says unasked nothing arrives: the first of two looks is over,
/// and of the second each of its replies comes once.
#[test]
fn those_who_look_on_get_what_they_have_asked_for() {
    let (silent, talker) = (connection(), connection());
    let (mut poe, mut looks, thread) = hub_that_looks(vec![(silent.0, Vec::new()), (talker.0, Vec::new())]);
    let (silent, mut talker) = (silent.1, talker.1);
    talker.write_all(&reply(0, b"unasked")).expect("it is connected");
    for number in [7, 8] {
        Note::Look { number }.write(&mut looks).expect("the hub reads");
        assert_eq!(Note::read(&mut talker).expect("a note"), Note::Look { number });
        if number == 7 {
            talker.write_all(&reply(7, b"state")).expect("it is connected");
            assert_eq!(next_reply(&mut looks), (1, 7, b"state".to_vec()));
        }
    }
    for (number, text) in [(7, "late"), (8, "one"), (9, "early"), (8, "two"), (8, "three")] {
        talker.write_all(&reply(number, text.as_bytes())).expect("it is connected");
    }
    assert_eq!(next_reply(&mut looks), (1, 8, b"one".to_vec()));
    assert_eq!(next_reply(&mut looks), (1, 8, b"two".to_vec()));
    Note::Look { number: 9 }.write(&mut looks).expect("the hub reads");
    assert_eq!(Note::read(&mut talker).expect("a note"), Note::Look { number: 9 });
    talker.write_all(&reply(9, b"")).expect("it is connected");
    assert_eq!(next_reply(&mut looks), (1, 9, Vec::new()), "not the third, and not the one from before");
    // A length that no reply has.
    talker.write_all(&Note::Reply { task: 0, number: 9, length: 1 << 30 }.bytes()).expect("it is connected");
    assert_eq!(Note::read(&mut poe).expect("a note"), Note::Lost { task: 1 });
    drop(silent);
    assert_eq!(Note::read(&mut poe).expect("a note"), Note::Lost { task: 0 });
    assert_eq!(Note::read(&mut poe).expect("a note"), Note::Done);
    thread.join().expect("nothing fails");
}

/// One machine does not read, and who looks on does not either, or has gone: notes pass.
#[test]
fn who_looks_on_delays_no_note() {
    let (silent, talker) = (connection(), connection());
    let (mut poe, mut looks, thread) = hub_that_looks(vec![(silent.0, Vec::new()), (talker.0, Vec::new())]);
    let (silent, mut talker) = (silent.1, talker.1);
    let text = vec![b'x'; 400_000];
    for number in 1..=20 {
        Note::Look { number }.write(&mut looks).expect("the hub reads");
        assert_eq!(Note::read(&mut talker).expect("a note"), Note::Look { number });
        talker.write_all(&reply(number, &text)).expect("the hub reads");
        // A note passes what waits for the viewer; the next look makes a reply a late one.
        Note::Started { task: 0, pid: 7 }.write(&mut talker).expect("the hub reads");
        assert_eq!(Note::read(&mut poe).expect("a note"), Note::Started { task: 1, pid: 7 });
    }
    let order = Note::Signal { signal: Signal::SIGTERM as i32 };
    order.write(&mut poe).expect("the hub reads");
    assert_eq!(Note::read(&mut talker).expect("a note"), order);
    for number in 1..=20 {
        let (task, of, bytes) = next_reply(&mut looks);
        assert_eq!((task, of, bytes.len()), (1, number, text.len()));
    }
    drop(looks);
    order.write(&mut poe).expect("the hub reads");
    assert_eq!(Note::read(&mut talker).expect("a note"), order);
    for mut task in [silent, talker] {
        Note::Killed { task: 0, signal: 15 }.write(&mut task).expect("it is connected");
        Note::Done.write(&mut task).expect("it is connected");
        // What it has not read, it reads before it closes the connection.
        let _ = io::copy(&mut task, &mut io::sink());
    }
    while Note::read(&mut poe).expect("a note") != Note::Done {}
    thread.join().expect("nothing fails");
}
