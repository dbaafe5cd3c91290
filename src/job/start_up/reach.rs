//! Reaches a process that listens at one of several places, of which others may be behind a filter,
//! belong to somebody else, or be another machine with the same address. The places are tried side
//! by side, and the first one where a process listens that proves what it is wins: an address that
//! does not answer costs [`STAGGER`], once.

use super::greeting::{Answer, Caller, Proofs, Subject};
use crate::job::derive::Secret;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, ipproto, socket_with, sockopt};
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// How long a place is tried alone before the next one is tried beside it.
pub const STAGGER: Duration = Duration::from_millis(100);
/// How long a place may take, from the attempt to the proof, before it is tried anew.
const ATTEMPT: Duration = Duration::from_secs(5);
/// Between two attempts at one place, at first and at most. Each pause is twice the one before: all
/// tasks of a job may try all places of one host, until the task that they look for is there.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// After how long without any sign of the other machine a connection has failed: with bytes in
/// flight or without.
pub const SILENCE: Duration = Duration::from_secs(30);

/// A connection with the process that was looked for.
pub struct Reached {
    /// The connection. It blocks.
    pub stream: TcpStream,
    /// Where the process is.
    pub place: SocketAddr,
    /// What can be proved on it.
    pub proofs: Proofs,
}

/// What became of the places at which the process was not found.
#[derive(Debug)]
pub struct Missed(Vec<(SocketAddr, Miss)>);

/// What became of one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Miss {
    /// The place was not tried.
    Untried,
    /// Nothing has come from the place in time.
    NoAnswer,
    /// The system says why, by a number and a text.
    Failed(Option<i32>, String),
    /// Something else is there.
    Stranger,
    /// A process that has another secret.
    WrongSecret,
}

impl Missed {
    /// Whether a process that speaks the protocol had another secret.
    pub fn is_another_secret(&self) -> bool {
        self.0.iter().any(|(_, miss)| *miss == Miss::WrongSecret)
    }
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Places that differ in their ports alone are named together.
        let mut alike: Vec<(&SocketAddr, &Miss, usize)> = Vec::new();
        for (place, miss) in &self.0 {
            let known = alike.iter_mut().find(|(other, what, _)| other.ip() == place.ip() && *what == miss);
            match known {
                Some((_, _, count)) => *count += 1,
                None => alike.push((place, miss, 1)),
            }
        }
        for (at, (place, miss, count)) in alike.into_iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            let what = match miss {
                Miss::Untried => "not tried",
                Miss::NoAnswer => "no answer",
                Miss::Failed(_, why) => why,
                Miss::Stranger => "another program answers",
                Miss::WrongSecret => "does not know the secret",
            };
            match count {
                1 => write!(f, "{comma}{place}: {what}")?,
                _ => write!(f, "{comma}{} at {count} ports: {what}", place.ip())?,
            }
        }
        Ok(())
    }
}

/// Looks for the process that knows the secret at these places, the likeliest first, until
/// `until`. The greeting says what the connection is for.
///
/// # Errors
/// What became of each place.
pub fn reach(
    places: &[SocketAddr],
    secret: Secret,
    subject: &Subject,
    until: Instant,
) -> Result<Reached, Missed> {
    let mut candidates: Vec<Candidate> = places.iter().copied().map(Candidate::new).collect();
    let mut start_at = Instant::now();
    loop {
        let now = Instant::now();
        if now >= until {
            return Err(Missed(candidates.into_iter().map(Candidate::missed).collect()));
        }
        for one in &mut candidates {
            one.give_up(now);
        }
        while start_at <= now
            && let Some(next) = candidates.iter_mut().find(|one| one.may_start(now))
        {
            if next.start(|place| Attempt::begin(None, place, secret, subject)) {
                start_at = now + STAGGER;
            }
        }
        wait(&candidates, start_at, until);
        for one in &mut candidates {
            match one.serve() {
                Some(Ok(reached)) => return Ok(reached),
                // It does not stand in the way of the next one.
                Some(Err(())) => start_at = Instant::now(),
                None => {}
            }
        }
    }
}

/// The end of the other machine, or of the way to it, ends the connection: keepalive finds it while
/// nothing is in flight, and the timeout while something is.
pub fn watch_over(stream: &TcpStream) {
    let _ = sockopt::set_socket_keepalive(stream, true);
    let _ = sockopt::set_tcp_keepidle(stream, SILENCE / 3);
    let _ = sockopt::set_tcp_keepintvl(stream, SILENCE / 6);
    let _ = sockopt::set_tcp_keepcnt(stream, 4);
    let _ = sockopt::set_tcp_user_timeout(stream, SILENCE.as_millis() as u32);
}

/// One place.
struct Candidate {
    place: SocketAddr,
    /// Why the last attempt has failed.
    miss: Miss,
    attempt: Option<Attempt>,
    /// When the attempt has taken too long.
    until: Instant,
    /// When the next attempt may begin.
    from: Instant,
    /// Between the next attempt that fails and the one after it.
    pause: Duration,
}

/// A connection from its beginning until both sides have proved what they are.
pub struct Attempt {
    stream: TcpStream,
    connected: bool,
    greeting: Caller,
    /// What remains to be sent of the first bytes.
    output: Vec<u8>,
}

impl Candidate {
    fn new(place: SocketAddr) -> Self {
        let now = Instant::now();
        Self { place, miss: Miss::Untried, attempt: None, until: now, from: now, pause: PAUSE.0 }
    }

    fn may_start(&self, now: Instant) -> bool {
        self.attempt.is_none() && self.from <= now
    }

    /// Begins an attempt; `false` when it has failed at once.
    fn start(&mut self, begin: impl FnOnce(SocketAddr) -> io::Result<Attempt>) -> bool {
        self.until = Instant::now() + ATTEMPT;
        match begin(self.place) {
            Ok(attempt) => self.attempt = Some(attempt),
            Err(error) => self.fail(failed(&error)),
        }
        self.attempt.is_some()
    }

    fn fail(&mut self, miss: Miss) {
        self.attempt = None;
        // A process with another secret may be this job's, which is more than whatever follows.
        if self.miss != Miss::WrongSecret {
            self.miss = miss;
        }
        self.from = Instant::now() + self.pause;
        self.pause = (self.pause * 2).min(PAUSE.1);
    }

    /// Ends an attempt that takes too long.
    fn give_up(&mut self, now: Instant) {
        if self.attempt.is_some() && self.until <= now {
            self.fail(Miss::NoAnswer);
        }
    }

    fn missed(self) -> (SocketAddr, Miss) {
        let waits = self.attempt.is_some() && self.miss == Miss::Untried;
        (self.place, if waits { Miss::NoAnswer } else { self.miss })
    }

    /// Does what goes without waiting. An error: the attempt has failed.
    fn serve(&mut self) -> Option<Result<Reached, ()>> {
        let attempt = self.attempt.as_mut()?;
        let miss = match attempt.serve() {
            Ok(None) => return None,
            Ok(Some(proofs)) => {
                let Attempt { stream, .. } = self.attempt.take()?;
                match stream.set_nonblocking(false) {
                    Ok(()) => return Some(Ok(Reached { stream, place: self.place, proofs })),
                    Err(error) => failed(&error),
                }
            }
            Err(miss) => miss,
        };
        self.fail(miss);
        Some(Err(()))
    }
}

impl Attempt {
    /// Begins to connect with a place, from this address or any.
    ///
    /// # Errors
    /// The system's.
    pub fn begin(
        from: Option<IpAddr>,
        place: SocketAddr,
        secret: Secret,
        subject: &Subject,
    ) -> io::Result<Self> {
        let family = if place.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        if let Some(from) = from {
            bind(&socket, &SocketAddr::new(from, 0))?;
        }
        match connect(&socket, &place) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(errno) => return Err(errno.into()),
        }
        let stream = TcpStream::from(socket);
        let _ = stream.set_nodelay(true);
        let greeting = Caller::new(secret, subject);
        let output = greeting.hello().to_vec();
        Ok(Self { stream, connected: false, greeting, output })
    }

    /// What [`Self::serve`] waits for.
    pub fn polled(&self) -> PollFd<'_> {
        let writes = !self.connected || !self.output.is_empty();
        PollFd::new(&self.stream, if writes { PollFlags::OUT } else { PollFlags::IN })
    }

    /// Does what goes without waiting. When both sides have proved what they are: what can be
    /// proved on the connection from now on.
    ///
    /// # Errors
    /// Why the attempt has failed.
    pub fn serve(&mut self) -> Result<Option<Proofs>, Miss> {
        let failed = |error: io::Error| failed(&error);
        if !self.connected {
            let mut polled = [PollFd::new(&self.stream, PollFlags::OUT)];
            if !matches!(poll(&mut polled, Some(&Timespec::default())), Ok(1..)) {
                return Ok(None);
            }
            if let Some(error) = self.stream.take_error().map_err(failed)? {
                return Err(failed(error));
            }
            self.connected = true;
        }
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(written) => drop(self.output.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
        // What has been read of the proof is short, and nothing follows before this side replies.
        let mut bytes = [0; 512];
        match self.stream.read(&mut bytes) {
            Ok(0) => Err(Miss::Failed(Some(libc::ECONNRESET), "it has closed the connection".to_owned())),
            Ok(got) => match self.greeting.read(&bytes[..got]) {
                Answer::More => Ok(None),
                // A connection that is new has room for it.
                Answer::Proved(last, proofs) => {
                    self.stream.write_all(&last).map_err(failed)?;
                    Ok(Some(proofs))
                }
                Answer::WrongSecret(last) => {
                    let _ = self.stream.write(&last);
                    Err(Miss::WrongSecret)
                }
                Answer::Stranger => Err(Miss::Stranger),
            },
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }
}

/// Waits until an attempt can go on, or another one may begin.
fn wait(candidates: &[Candidate], start_at: Instant, until: Instant) {
    let starts = candidates.iter().filter(|one| one.attempt.is_none()).map(|one| one.from.max(start_at));
    let ends = candidates.iter().filter(|one| one.attempt.is_some()).map(|one| one.until);
    let next = starts.chain(ends).fold(until, Instant::min);
    // Rounded up: a sleep that is too short would be one of many.
    let left = next.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
    let left = left.try_into().ok();
    let attempts = candidates.iter().filter_map(|one| one.attempt.as_ref());
    let mut polled: Vec<PollFd<'_>> = attempts.map(Attempt::polled).collect();
    // An interrupted wait is a wait that ended early.
    let _ = poll(&mut polled, left.as_ref());
}

fn failed(error: &io::Error) -> Miss {
    Miss::Failed(error.raw_os_error(), without_number(error))
}

/// The system's text for an error, without its number.
pub(in crate::job) fn without_number(error: &io::Error) -> String {
    error.to_string().split(" (os error").next().unwrap_or_default().to_owned()
}
