//! Whether the host at the other end of a TCP connection still answers.
//!
//! The system asks after a second of silence. One packet may be lost, so this side then sends a
//! frame, which the system sends again until it is acknowledged, whatever the peer's process does.

use rustix::io::Errno;
use rustix::net::sockopt;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// The system asks after this silence, and again after as much. Whole seconds.
const ASKED: Duration = Duration::from_secs(1);
/// After this silence the answer to the system is missing, and this side asks.
const MISSING: Duration = Duration::from_millis(1100);
/// A host that has not answered this side for so long is gone.
const GONE: Duration = Duration::from_millis(600);
/// The time between two looks, at least.
const BETWEEN: Duration = Duration::from_millis(50);
/// Without a look the system ends the connection after this silence.
const FORGOTTEN: Duration = Duration::from_secs(5);

/// What a silence means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing.
    Alive,
    /// This side is to ask.
    Ask,
    /// This side has asked.
    Asked,
    /// The host is gone.
    Gone,
}

/// What it means that nothing has come for some time, when this side has asked, if it has, some
/// time ago.
pub fn meaning(silence: Duration, asked: Option<Duration>) -> Meaning {
    // The silence began well before the question, or ended after it; the system rounds.
    match asked.filter(|ago| silence > *ago + MISSING / 2) {
        Some(ago) if ago >= GONE => Meaning::Gone,
        Some(_) => Meaning::Asked,
        None if silence >= MISSING => Meaning::Ask,
        None => Meaning::Alive,
    }
}

/// When to look next, at the latest.
pub fn next(silence: Duration, asked: Option<Duration>) -> Duration {
    let left = match meaning(silence, asked) {
        Meaning::Asked => GONE.saturating_sub(asked.unwrap_or_default()),
        Meaning::Alive | Meaning::Ask | Meaning::Gone => MISSING.saturating_sub(silence),
    };
    left.max(BETWEEN)
}

/// Lets the system ask.
///
/// # Errors
/// The system's.
pub fn ask(connection: &impl AsFd) -> Result<(), Errno> {
    sockopt::set_socket_keepalive(connection, true)?;
    sockopt::set_tcp_keepidle(connection, ASKED)?;
    sockopt::set_tcp_keepintvl(connection, ASKED)?;
    sockopt::set_tcp_user_timeout(connection, FORGOTTEN.as_millis() as u32)
}

/// How long nothing has come on a TCP connection.
///
/// # Errors
/// The system's.
pub fn of(connection: &impl AsFd) -> io::Result<Duration> {
    let mut info = std::mem::MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    let descriptor = connection.as_fd().as_raw_fd();
    // SAFETY: the system writes at most `length` bytes, which the structure has.
    let result = unsafe {
        libc::getsockopt(descriptor, libc::IPPROTO_TCP, libc::TCP_INFO, info.as_mut_ptr().cast(), &mut length)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: plain numbers, all of which are 0 where the system has written none.
    let info = unsafe { info.assume_init() };
    Ok(Duration::from_millis(info.tcpi_last_ack_recv.min(info.tcpi_last_data_recv).into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    const FOUND: Duration = Duration::from_secs(2);

    /// Looks from `first` after the last sign of a host, until it is given up or answers: the frame
    /// of this side has its answer after this time, if at all.
    fn given_up(first: Duration, event_loop: bool, answer: Option<Duration>) -> Option<Duration> {
        let (mut now, mut sent, mut sign) = (first, None, Duration::ZERO);
        loop {
            if let Some(at) = sent.zip(answer).map(|(sent, answer)| sent + answer)
                && at <= now
            {
                sign = at;
            }
            let (silence, asked) = (now - sign, sent.map(|sent| now - sent));
            match meaning(silence, asked) {
                Meaning::Gone => return Some(now),
                Meaning::Ask => sent = Some(now),
                Meaning::Alive if sent.is_some() => return None,
                Meaning::Alive | Meaning::Asked => {}
            }
            let asked = sent.map(|sent| now - sent);
            now += if event_loop { next(silence, asked) } else { crate::session::LOOK };
        }
    }

    /// A host ends right after a sign. A thread that waits looks, or an event loop.
    #[test]
    fn a_host_that_vanishes_is_found_within_two_seconds() {
        for first in (0..1100).step_by(7).map(Duration::from_millis) {
            for event_loop in [false, true] {
                let found = given_up(first, event_loop, None).expect("it is gone");
                assert!(found <= FOUND, "{found:?} with a first look after {first:?}");
            }
        }
    }

    /// The system's question, or its answer, is lost, and the frame is sent more than once.
    #[test]
    fn a_lost_packet_is_no_lost_host() {
        for answer in (0..500).step_by(50).map(Duration::from_millis) {
            for (first, event_loop) in [(0, false), (33, true), (1099, false), (1500, true), (9000, true)] {
                let first = Duration::from_millis(first);
                assert_eq!(given_up(first, event_loop, Some(answer)), None, "{first:?}, {answer:?}");
            }
        }
        assert!(ASKED < MISSING && ASKED.subsec_nanos() == 0, "the system counts in whole seconds");
    }

    #[test]
    fn a_connection_that_has_just_begun_is_not_silent() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let connection =
            TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        ask(&connection).expect("a connection");
        assert_eq!(meaning(of(&connection).expect("a connection"), None), Meaning::Alive);
        let (pipe, _other) = io::pipe().expect("a pipe");
        assert!(of(&pipe).is_err(), "a pipe has no host");
    }
}
