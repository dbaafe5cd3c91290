//! Numbers that are given back, and room for operations.

use super::super::replies::Replies;
use super::*;
use crate::wire::encode_answer;
use openlapi_session::{Routes, Settings, accept, connect};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::thread;

const LATE: Duration = Duration::from_secs(100);

/// A connection, and the session of its daemon.
fn pair() -> (Arc<Connection>, Session) {
    let table = Arc::new(Table::default());
    let other = Settings { routes: Routes::SHARED_MEMORY, patience: LATE, ..Settings::default() };
    let own = Settings { receiver: Some(Arc::new(Replies(table.clone()))), ..other.clone() };
    let (here, there) = UnixStream::pair().expect("sockets");
    let ends = |end: UnixStream| -> [OwnedFd; 2] { [end.try_clone().expect("a socket").into(), end.into()] };
    let ([read, write], there) = (ends(here), ends(there));
    let daemon = thread::spawn(move || {
        let [read, write] = there;
        accept(read, write, &other).expect("a session")
    });
    let session = connect(read, write, &own).expect("a session");
    (Arc::new(Connection::new(session, table)), daemon.join().expect("a session"))
}

/// Answers what is asked, and replies to a put when the next one has come. Returns how many
/// numbers were given back.
fn serve(daemon: &Session) -> usize {
    let (mut held, mut closed) = (None, 0);
    while let Ok(Some(message)) = daemon.receive(None) {
        let (header, body) = match Message::decode(&message.header) {
            Some(Message::Put { number, .. }) => match held.replace(number) {
                Some(number) => (Message::Done { number, code: 0 }, Vec::new()),
                None => continue,
            },
            Some(Message::Ask { number }) => {
                closed += 1;
                (Message::Answer { number }, encode_answer(&Ok(Answer::Done)))
            }
            other => panic!("{other:?}"),
        };
        daemon.post(&header.encode(), &body).expect("a connection");
    }
    closed
}

/// An operation is under way at every moment, as with a thread that overlaps its calls.
#[test]
fn numbers_are_given_back_while_later_operations_go_on() {
    let (connection, daemon) = pair();
    let served = thread::spawn(move || serve(&daemon));
    let owner = Arc::new(Owner::default());
    let put = || {
        let message = |number| Message::Put { number, item: 1, offset: 0 };
        // SAFETY: there is no data.
        unsafe { connection.post(&owner, Class::Changes, Expected::Done, (0, Vec::new(), &[]), message) };
    };
    put();
    (0..MOST_RETIRED as u32).for_each(|number| connection.retire(number));
    put();
    let (give, has_room) = mpsc::channel();
    let waits = connection.clone();
    thread::spawn(move || {
        waits.make_room_for_number();
        let _ = give.send(());
    });
    has_room.recv_timeout(LATE).expect("it waits for all operations");
    assert_eq!(owner.pending(), 1);
    let none_is_left = || owner.pending() == 1 && connection.open() == 1;
    put();
    assert!(connection.wait_until(Some(Instant::now() + LATE), none_is_left));
    connection.make_room_for_number();
    assert!(connection.wait_until(Some(Instant::now() + LATE), none_is_left));
    drop(connection);
    assert_eq!(served.join().expect("a daemon"), MOST_RETIRED);
}

#[test]
fn bytes_under_way_have_a_limit_and_are_given_back() {
    let (table, owner) = (Table::default(), Arc::default());
    let begin = |held| {
        let begun = table.begin_from(&owner, Class::Changes, Expected::Done, None, held);
        begun.map(|(number, _)| number)
    };
    let failure = FamError::Rpc.because("a test");
    // The first one may be longer.
    assert!(table.hold(11, 10) && !table.hold(1, 10));
    let one = begin(11).expect("an operation");
    table.arriving(&Message::Done { number: one, code: 0 }, 0);
    assert!(table.hold(4, 10) && table.hold(6, 10) && !table.hold(1, 10));
    let [two, _] = [4, 6].map(|held| begin(held).expect("an operation"));
    table.unsent(two, failure.clone());
    assert!(!table.hold(5, 10) && table.hold(4, 10));
    begin(4).expect("an operation");
    table.close(&failure);
    for _ in 0..2 {
        assert!(table.hold(11, 10), "bytes are not given back");
        assert_eq!(begin(11), Err(failure.clone()));
    }
}

#[test]
fn an_operation_waits_for_room_in_the_daemon() {
    let (connection, daemon) = pair();
    let owner = Arc::new(Owner::default());
    let message = |number| Message::Put { number, item: 1, offset: 0 };
    let what = (MOST_HELD, Vec::new(), &[][..]);
    // SAFETY: there is no data.
    unsafe { connection.post(&owner, Class::Changes, Expected::Done, what, message) };
    let (give, room) = mpsc::channel();
    let waits = connection.clone();
    let waiter = thread::spawn(move || {
        let _ = give.send(waits.make_room(1));
        // It is over before there is room.
        let _ = give.send(waits.make_room(MOST_HELD));
    });
    let put = daemon.receive(Some(Instant::now() + LATE)).expect("a connection").expect("a put");
    let number = Message::decode(&put.header).expect("a message").number();
    assert_eq!(room.try_recv(), Err(mpsc::TryRecvError::Empty), "it has not waited");
    daemon.post(&Message::Done { number, code: 0 }.encode(), &[]).expect("a connection");
    assert_eq!(room.recv_timeout(LATE), Ok(1));
    drop(daemon);
    assert_eq!(room.recv_timeout(LATE), Ok(0));
    waiter.join().expect("its end");
}
