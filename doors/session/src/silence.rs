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
/// The answer to the system may come so much later where the way is short.
const MARGIN: Duration = Duration::from_millis(100);
/// A host that has not answered this side for so long is gone, where the way is short.
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
    /// This side is to ask, or to wait for the receipt of what is under way.
    Ask,
    /// This side has asked.
    Asked,
    /// The host is gone.
    Gone,
}

/// What the system knows of the other host.
#[derive(Clone, Copy, Debug)]
pub struct Signs {
    /// How long nothing has come.
    pub silence: Duration,
    /// How long an answer takes, on average, and by how much that varies.
    pub trip: Duration,
    pub variation: Duration,
    /// Whether something was sent, and its receipt is not confirmed.
    pub is_under_way: bool,
    /// How many of the system's last questions have no answer: whether it lives, or has room.
    pub unanswered: u8,
}

impl Signs {
    /// After this silence the answer to the system is missing, and this side asks.
    fn missing(&self) -> Duration {
        ASKED + MARGIN.max(2 * self.trip + 4 * self.variation)
    }

    /// A host that has not answered this side for so long is gone.
    fn gone(&self) -> Duration {
        GONE.max(4 * self.trip)
    }

    /// What they mean when this side has asked, if it has, some time ago.
    pub fn meaning(&self, asked: Option<Duration>) -> Meaning {
        // The silence began well before the question, or ended after it; the system rounds.
        match asked.filter(|ago| self.silence > *ago + self.missing() / 2) {
            // The host has no room for the question, and says so.
            Some(_) if !self.is_under_way && self.unanswered <= 1 => Meaning::Alive,
            Some(ago) if ago >= self.gone() => Meaning::Gone,
            Some(_) => Meaning::Asked,
            None if self.silence >= self.missing() => Meaning::Ask,
            None => Meaning::Alive,
        }
    }

    /// When to look next, at the latest.
    pub fn next(&self, asked: Option<Duration>) -> Duration {
        let left = match self.meaning(asked) {
            Meaning::Asked => self.gone().saturating_sub(asked.unwrap_or_default()),
            Meaning::Alive | Meaning::Ask | Meaning::Gone => self.missing().saturating_sub(self.silence),
        };
        left.max(BETWEEN)
    }
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

/// The signs of the host at the other end of a TCP connection.
///
/// # Errors
/// The system's.
pub fn of(connection: &impl AsFd) -> io::Result<Signs> {
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
    Ok(Signs {
        silence: Duration::from_millis(info.tcpi_last_ack_recv.min(info.tcpi_last_data_recv).into()),
        trip: Duration::from_micros(info.tcpi_rtt.into()),
        variation: Duration::from_micros(info.tcpi_rttvar.into()),
        is_under_way: info.tcpi_unacked != 0,
        unanswered: info.tcpi_probes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    const FOUND: Duration = Duration::from_secs(2);

    fn signs(silence: Duration, trip: Duration, is_under_way: bool) -> Signs {
        Signs { silence, trip, variation: trip / 4, is_under_way, unanswered: 0 }
    }

    /// Looks from `first` after the last sign of a host, until it is given up or answers: the frame
    /// of this side has its answer after this time, if at all.
    fn given_up(
        first: Duration,
        event_loop: bool,
        trip: Duration,
        answer: Option<Duration>,
    ) -> Option<Duration> {
        given_up_with(first, event_loop, trip, answer, false)
    }

    /// The time of [`given_up`], also for a host that has not confirmed what was sent before.
    fn given_up_with(
        first: Duration,
        event_loop: bool,
        trip: Duration,
        answer: Option<Duration>,
        unconfirmed: bool,
    ) -> Option<Duration> {
        let (mut now, mut sent, mut sign) = (first, None, Duration::ZERO);
        while now < Duration::from_secs(60) {
            let mut is_under_way = unconfirmed || sent.is_some();
            if let Some(at) = sent.zip(answer).map(|(sent, answer)| sent + answer)
                && at <= now
            {
                (sign, is_under_way) = (at, false);
            }
            let look = signs(now - sign, trip, is_under_way);
            match look.meaning(sent.map(|sent| now - sent)) {
                Meaning::Gone => return Some(now),
                Meaning::Ask => sent = Some(now),
                Meaning::Alive if sent.is_some() => return None,
                Meaning::Alive | Meaning::Asked => {}
            }
            let look = signs(now - sign, trip, unconfirmed || sent.is_some());
            now += if event_loop { look.next(sent.map(|sent| now - sent)) } else { crate::session::LOOK };
        }
        None
    }

    /// A host ends right after a sign. A thread that waits looks, or an event loop.
    #[test]
    fn a_host_that_vanishes_is_found_within_two_seconds() {
        for first in (0..1100).step_by(7).map(Duration::from_millis) {
            for (event_loop, unconfirmed) in [(false, false), (false, true), (true, false), (true, true)] {
                let found = given_up_with(first, event_loop, Duration::ZERO, None, unconfirmed);
                let found = found.expect("it is gone");
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
                let found = given_up(first, event_loop, Duration::ZERO, Some(answer));
                assert_eq!(found, None, "{first:?}, {answer:?}");
            }
        }
        assert!(ASKED.subsec_nanos() == 0, "the system counts in whole seconds");
    }

    /// The answers of a living host take as long as the way is, and some of them half as long
    /// again.
    #[test]
    fn a_host_that_is_far_away_is_alive() {
        for trip in (0..3000).step_by(50).map(Duration::from_millis) {
            let answer = trip + trip / 2;
            assert_eq!(signs(ASKED + answer, trip, false).meaning(None), Meaning::Alive, "{trip:?}");
            for (first, event_loop) in [(0, false), (33, true), (9000, true)] {
                let first = Duration::from_millis(first);
                assert_eq!(given_up(first, event_loop, trip, Some(answer)), None, "{first:?}, {trip:?}");
            }
            assert!(given_up(Duration::ZERO, true, trip, None).is_some(), "{trip:?}");
        }
    }

    /// A host without room for a question has confirmed all that it had room for; what is under way
    /// is not asked again.
    #[test]
    fn a_host_without_room_is_alive_and_a_question_under_way_is_asked_once() {
        let (silence, ago) = (Duration::from_secs(9), Duration::from_secs(3));
        assert_eq!(signs(silence, Duration::ZERO, false).meaning(Some(ago)), Meaning::Alive);
        assert_eq!(signs(silence, Duration::ZERO, true).meaning(Some(ago)), Meaning::Gone);
        // This host has no way to the other one, and has sent nothing.
        let unsent = Signs { unanswered: 2, ..signs(silence, Duration::ZERO, false) };
        assert_eq!(unsent.meaning(Some(ago)), Meaning::Gone);
        let asked = signs(silence, Duration::ZERO, true).meaning(Some(Duration::ZERO));
        assert_eq!(asked, Meaning::Asked);
    }

    #[test]
    fn a_connection_that_has_just_begun_is_not_silent() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let connection =
            TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        ask(&connection).expect("a connection");
        assert_eq!(of(&connection).expect("a connection").meaning(None), Meaning::Alive);
        let (pipe, _other) = io::pipe().expect("a pipe");
        assert!(of(&pipe).is_err(), "a pipe has no host");
    }
}
