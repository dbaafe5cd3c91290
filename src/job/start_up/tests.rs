//! Over the loopback: places where nothing listens, where somebody else does, and where nothing
//! answers; and connections of strangers.

use super::arrivals::{Arrivals, UNPROVED};
use super::greeting::{Answer, By, Called, Caller, Heard, Proofs, Subject, hash};
use super::reach::{SILENCE, reach, watch_over};
use crate::base::poll::await_readable;
use crate::base::rng::Rng;
use crate::job::derive::Secret;
use rustix::net::sockopt;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

const SECRET: Secret = *b"0123456789abcdef";
const SUBJECT: Subject = [3; 32];

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let place = listener.local_addr().expect("it is bound");
    (listener, place)
}

/// Replies to one greeting as a process that has this secret, or with other bytes.
fn replies(listener: TcpListener, secret: Option<Secret>) -> thread::JoinHandle<TcpStream> {
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody connects");
        let Some(secret) = secret else {
            stream.write_all(b"220 mail").expect("the other side reads");
            return stream;
        };
        let mut called = Called::new(secret);
        while called.wanted() > 0 {
            let mut bytes = vec![0; called.wanted()];
            stream.read_exact(&mut bytes).expect("it is greeted");
            match called.read(&bytes, |subject| *subject == SUBJECT) {
                Heard::Reply(reply) => stream.write_all(&reply).expect("the other side reads"),
                Heard::Proved(..) => assert_eq!(secret, SECRET),
                Heard::WrongSecret => assert_ne!(secret, SECRET),
                Heard::More | Heard::Stranger => panic!("a whole greeting of a task"),
            }
        }
        stream
    })
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

/// A port at which nothing listens.
fn closed() -> SocketAddr {
    listener().1
}

#[test]
fn the_one_that_proves_itself_wins() {
    // It accepts connections, and says nothing: as a server that waits for a request.
    let (_silent, silent) = listener();
    let (stranger, strange) = listener();
    let (right, place) = listener();
    let (stranger, right) = (replies(stranger, None), replies(right, Some(SECRET)));
    let places = [silent, closed(), strange, place];
    let mut found =
        reach(&places, SECRET, &SUBJECT, soon()).map_err(|missed| missed.to_string()).expect("the last one");
    assert_eq!(found.place, place);
    let mut other = right.join().expect("no panic");
    other.write_all(b"more").expect("it is connected");
    let mut more = [0; 4];
    found.stream.read_exact(&mut more).expect("the connection is the one that was greeted");
    assert_eq!(&more, b"more");
    drop(stranger.join());
}

#[test]
fn one_that_listens_later_is_found() {
    let place = closed();
    let late = thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        let listener = TcpListener::bind(place).expect("the port is free");
        replies(listener, Some(SECRET)).join().expect("no panic")
    });
    let found = reach(&[place], SECRET, &SUBJECT, soon()).map_err(|missed| missed.to_string());
    assert_eq!(found.map(|found| found.place), Ok(place));
    late.join().expect("no panic");
}

/// A machine that takes longer makes fewer attempts.
#[test]
fn a_place_that_refuses_is_tried_ever_more_seldom() {
    let (listener, place) = listener();
    let until = Instant::now() + Duration::from_millis(1500);
    listener.set_nonblocking(true).expect("a socket");
    let attempts = thread::spawn(move || {
        let mut attempts = 0;
        while Instant::now() < until {
            match listener.accept() {
                Ok(_) => attempts += 1,
                Err(_) => thread::sleep(Duration::from_millis(1)),
            }
        }
        attempts
    });
    assert!(reach(&[place], SECRET, &SUBJECT, until).is_err());
    let attempts = attempts.join().expect("no panic");
    assert!((1..10).contains(&attempts), "{attempts} attempts");
}

#[test]
fn each_place_is_named_with_what_became_of_it() {
    let (_silent, silent) = listener();
    let (wrong, other) = listener();
    let closed = closed();
    let wrong = replies(wrong, Some([7; 16]));
    let until = Instant::now() + Duration::from_millis(600);
    let missed = reach(&[silent, closed, other], SECRET, &SUBJECT, until).map(drop).unwrap_err();
    drop(wrong.join());
    let text = missed.to_string();
    assert!(missed.is_another_secret());
    assert!(text.contains(&format!("{silent}: no answer")), "{text}");
    assert!(text.contains(&format!("{closed}: Connection refused")), "{text}");
    assert!(text.contains(&format!("{other}: does not know the secret")), "{text}");
}

#[test]
fn a_connection_does_not_wait_longer_than_the_silence() {
    let (listener, place) = listener();
    let stream = TcpStream::connect(place).expect("it listens");
    watch_over(&stream);
    assert_eq!(sockopt::tcp_user_timeout(&stream), Ok(30_000), "with bytes in flight");
    assert_eq!(sockopt::socket_keepalive(&stream), Ok(true));
    let probes = sockopt::tcp_keepintvl(&stream).unwrap() * sockopt::tcp_keepcnt(&stream).unwrap();
    assert_eq!(sockopt::tcp_keepidle(&stream).unwrap() + probes, SILENCE, "without");
    drop(listener);
}

/// What the called side makes of a caller with another secret or not, and what has travelled.
/// `change` alters the messages, which arrive in pieces.
fn between(
    secrets: [Secret; 2],
    rng: &mut Rng,
    change: impl Fn(usize, &mut Vec<u8>),
) -> (Option<Heard>, Option<Proofs>, Vec<u8>) {
    let (mut caller, mut called) = (Caller::new(secrets[0], &SUBJECT), Called::new(secrets[1]));
    let mut sent = caller.hello().to_vec();
    change(0, &mut sent);
    let mut travelled = sent.clone();
    let mut hear = |called: &mut Called, mut bytes: &[u8]| loop {
        let len = bytes.len().min(called.wanted()).min(1 + rng.below(20) as usize);
        let (some, rest) = bytes.split_at(len);
        match called.read(some, |subject| *subject == SUBJECT) {
            Heard::More if !rest.is_empty() => bytes = rest,
            heard => return heard,
        }
    };
    let mut reply = match hear(&mut called, &sent) {
        Heard::Reply(reply) => reply.to_vec(),
        heard => return (Some(heard), None, travelled),
    };
    change(1, &mut reply);
    travelled.extend(&reply);
    let (first, last) = reply.split_at(reply.len() / 2);
    if !matches!(caller.read(first), Answer::More) {
        return (None, None, travelled);
    }
    let (mut last, proofs) = match caller.read(last) {
        Answer::Proved(last, proofs) => (last.to_vec(), Some(proofs)),
        Answer::WrongSecret(last) => (last.to_vec(), None),
        Answer::More | Answer::Stranger => return (None, None, travelled),
    };
    change(2, &mut last);
    travelled.extend(&last);
    (Some(hear(&mut called, &last)), proofs, travelled)
}

#[test]
fn each_side_proves_that_it_knows_the_secret() {
    let mut rng = Rng::new(7);
    for _ in 0..100 {
        let (heard, proofs, travelled) = between([SECRET; 2], &mut rng, |_, _| ());
        let (Some(Heard::Proved(SUBJECT, theirs)), Some(ours)) = (heard, proofs) else {
            panic!("both prove")
        };
        assert!(!travelled.windows(4).any(|part| part == &SECRET[..4]), "the secret does not travel");
        let sealed = ours.sealed(By::Caller, b"values");
        assert_eq!(theirs.opened(By::Caller, &sealed[4..]), Some(&b"values"[..]));
        assert_eq!(theirs.opened(By::Called, &sealed[4..]), None, "a frame that was sent back");
        let table = [theirs.before(By::Called, 5, &hash(b"table")), b"table".to_vec()].concat();
        assert_eq!(table, theirs.sealed(By::Called, b"table"));
        assert_eq!(ours.opened(By::Called, &table[4..]), Some(&b"table"[..]));
        for at in 4..table.len() {
            let mut changed = table.clone();
            changed[at] ^= 1;
            assert_eq!(ours.opened(By::Called, &changed[4..]), None, "byte {at}");
        }
    }
    let (heard, proofs, _) = between([SECRET, [7; 16]], &mut rng, |_, _| ());
    assert!(matches!(heard, Some(Heard::WrongSecret)) && proofs.is_none(), "both see it");
    for message in 0..3 {
        for at in 0..16 {
            let (heard, ..) =
                between([SECRET; 2], &mut rng, |which, bytes| bytes[at] ^= u8::from(which == message));
            assert!(!matches!(heard, Some(Heard::Proved(..))), "byte {at} of message {message}");
        }
    }
}

#[test]
fn a_recorded_connection_is_of_no_use() {
    let mut caller = Caller::new(SECRET, &SUBJECT);
    let [mut one, mut other] = [Called::new(SECRET), Called::new(SECRET)];
    let any = |_: &Subject| true;
    let (Heard::Reply(reply), Heard::Reply(_)) =
        (one.read(caller.hello(), any), other.read(caller.hello(), any))
    else {
        panic!("both reply")
    };
    let Answer::Proved(last, _) = caller.read(&reply) else { panic!("the other side has proved itself") };
    assert!(matches!(other.read(&last, any), Heard::WrongSecret));
    let mut later = Caller::new(SECRET, &SUBJECT);
    assert!(matches!(later.read(&reply), Answer::WrongSecret(_)));
}

/// More connections than any limit of this process, which say nothing, half of a greeting, a
/// false proof, or something else.
#[test]
fn strangers_do_not_keep_callers_out() {
    let (listener, place) = listener();
    let mut arrivals = Arrivals::new(listener, SECRET, 2).expect("a listener");
    let hello = Caller::new(SECRET, &SUBJECT).hello().to_vec();
    let wrong = [&hello[..], &[7; 16]].concat();
    let mut kept = Vec::new();
    let mut serve = || arrivals.serve(|subject| *subject == SUBJECT);
    for number in 0..600 {
        let mut stream = TcpStream::connect(place).expect("the port is open");
        let bytes = match number % 4 {
            0 => &wrong[..0],
            1 => &wrong[..hello.len() / 2],
            2 => &wrong[..],
            _ => &[b'x'; 100_000][..],
        };
        // It may be closed already.
        let _ = stream.set_nonblocking(true).and_then(|()| stream.write_all(bytes));
        kept.push(stream);
        assert!(serve().is_empty(), "a stranger has proved itself");
    }
    let caller = thread::spawn(move || reach(&[place], SECRET, &SUBJECT, soon()).map_err(|e| e.to_string()));
    let (mut found, until) = (Vec::new(), soon());
    while found.is_empty() {
        assert!(Instant::now() < until, "the caller is kept out");
        found = serve();
    }
    let mut reached = caller.join().expect("no panic").expect("it is reached");
    let sealed = reached.proofs.sealed(By::Caller, b"values");
    reached.stream.write_all(&sealed).expect("the other end is open");
    let one = found.pop().expect("a connection");
    assert_eq!((one.subject, found.len()), (SUBJECT, 0));
    let (mut stream, mut got) = (one.stream, vec![0; sealed.len()]);
    await_readable(&[std::os::fd::AsFd::as_fd(&stream)], Some(Duration::from_secs(60)));
    stream.set_nonblocking(false).and_then(|()| stream.read_exact(&mut got)).expect("bytes were written");
    assert_eq!(one.proofs.opened(By::Caller, &got[4..]), Some(&b"values"[..]));
    // Those that say nothing are closed but for the last ones.
    let open = kept.iter().filter(|stream| {
        let read = (&**stream).read(&mut [0]);
        read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    });
    let open = open.count();
    assert!(open <= UNPROVED + 2, "{open} strangers are connected");
    assert!(arrivals.seen.wrong_secret && !arrivals.seen.full, "{:?}", arrivals.seen);
}

/// A task whose proof is still on its way keeps its connection, however many others connect that
/// say nothing.
#[test]
fn silent_strangers_do_not_push_a_caller_out() {
    let (listener, place) = listener();
    let mut arrivals = Arrivals::new(listener, SECRET, 2).expect("a listener");
    let mut serve = || arrivals.serve(|subject| *subject == SUBJECT);
    let mut caller = Caller::new(SECRET, &SUBJECT);
    let mut stream = TcpStream::connect(place).expect("the port is open");
    stream.write_all(caller.hello()).expect("the port is open");
    let mut reply = [0; 40];
    stream.set_read_timeout(Some(Duration::from_millis(20))).expect("a socket");
    let until = soon();
    while let Err(error) = stream.peek(&mut reply) {
        assert!(error.kind() == ErrorKind::WouldBlock && Instant::now() < until, "{error}");
        assert!(serve().is_empty());
    }
    stream.read_exact(&mut reply).expect("a reply");
    let kept: Vec<TcpStream> = (0..2 * UNPROVED)
        .map(|_| {
            let silent = TcpStream::connect(place).expect("the port is open");
            assert!(serve().is_empty());
            silent
        })
        .collect();
    let Answer::Proved(proof, _) = caller.read(&reply) else { panic!("the other side knows the secret") };
    stream.write_all(&proof).expect("the connection is kept");
    let mut found = Vec::new();
    while found.is_empty() {
        assert!(Instant::now() < until, "the caller was pushed out");
        found = serve();
    }
    drop(kept);
}

/// A process that has proved nothing makes the other side keep no more than a greeting.
#[test]
fn what_is_kept_of_a_stranger() {
    let mut rng = Rng::new(21);
    for round in 0..2000 {
        let mut called = Called::new(SECRET);
        let mut caller = Caller::new(SECRET, &SUBJECT);
        if round % 2 == 0 {
            assert!(matches!(called.read(caller.hello(), |_| true), Heard::Reply(_)));
        }
        for _ in 0..20 {
            let wanted = called.wanted();
            assert!(wanted <= 56);
            let bytes: Vec<u8> =
                (0..wanted.min(1 + rng.below(30) as usize)).map(|_| rng.below(256) as u8).collect();
            match called.read(&bytes, |_| true) {
                Heard::More => {}
                Heard::Stranger | Heard::WrongSecret => break,
                Heard::Reply(_) | Heard::Proved(..) => panic!("of a stranger"),
            }
            assert!(!matches!(caller.read(&bytes), Answer::Proved(..)));
        }
    }
}
