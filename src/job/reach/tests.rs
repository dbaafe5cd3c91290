//! Over the loopback: places where nothing listens, where somebody else does, and where
//! nothing answers.

use super::*;
use std::net::{Ipv4Addr, TcpListener};
use std::thread;

/// The other side proves what it is by one byte.
struct Byte;

impl Greeting for Byte {
    fn read(&mut self, bytes: &[u8]) -> Answer {
        match bytes {
            b"p" => Answer::Proved(b"next".to_vec()),
            b"w" => Answer::WrongSecret(b"no".to_vec()),
            _ => Answer::Stranger,
        }
    }
}

fn greet() -> (Byte, Vec<u8>) {
    (Byte, b"hello".to_vec())
}

fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    let place = listener.local_addr().expect("it is bound");
    (listener, place)
}

/// Replies to one greeting with this.
fn replies(listener: TcpListener, reply: &'static [u8]) -> thread::JoinHandle<TcpStream> {
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody connects");
        let mut hello = [0; 5];
        stream.read_exact(&mut hello).expect("it is greeted");
        assert_eq!(&hello, b"hello");
        stream.write_all(reply).expect("the other side reads");
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
    let (stranger, right) = (replies(stranger, b"220 mail"), replies(right, b"p"));
    let places = [silent, closed(), strange, place];
    let mut found = reach(&places, greet, soon()).expect("the last one is right");
    assert_eq!((found.place, &found.next[..]), (place, &b"next"[..]));
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
        replies(TcpListener::bind(place).expect("the port is free"), b"p").join().expect("no panic")
    });
    let found = reach(&[place], greet, soon()).expect("it listens");
    assert_eq!(found.place, place);
    late.join().expect("no panic");
}

#[test]
fn each_place_is_named_with_what_became_of_it() {
    let (_silent, silent) = listener();
    let (wrong, other) = listener();
    let closed = closed();
    let wrong = replies(wrong, b"w");
    let until = Instant::now() + Duration::from_millis(600);
    let missed = reach(&[silent, closed, other], greet, until).map(drop).unwrap_err();
    drop(wrong.join());
    let text = missed.to_string();
    assert!(text.contains(&format!("{silent}: no answer")), "{text}");
    assert!(text.contains(&format!("{closed}: Connection refused")), "{text}");
    assert!(text.contains(&other.to_string()), "{text}");
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
