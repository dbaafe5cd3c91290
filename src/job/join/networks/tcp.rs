//! Questions and answers over TCP: a connection for each pair, from the one address to the other.

use super::outcomes::Pair;
use super::trial::{LENGTH, LOOK_AROUND, PATIENCE, Progress, REPEATED, Step, Trial};
use crate::config::Env;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{set_ipv6_v6only, set_socket_reuseaddr};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// Connections of this party at a time: the limit of open files is often 1,024.
const AT_A_TIME: usize = 200;
/// Connections of others at a time. Where there are more, the oldest one is closed.
const OTHERS: usize = 400;
/// Connections that the system keeps until they are accepted.
const BACKLOG: i32 = 1024;

/// A connection.
struct Connection {
    stream: TcpStream,
    since: Instant,
    /// What is to be written, and how much of it is.
    output: Vec<u8>,
    /// What was read.
    input: Vec<u8>,
    /// The pair that it tries; `None`: another party does.
    pair: Option<Pair>,
}

/// What a connection does next.
enum Next {
    Goes,
    Ends,
    Fails(io::Error),
}

/// All connections.
pub(super) struct Connections {
    listeners: Vec<TcpListener>,
    /// Until when nothing is accepted: no descriptor was free.
    is_full_until: Option<Instant>,
    queue: VecDeque<Pair>,
    connections: VecDeque<Connection>,
}

/// Listens at any port that libfabric's provider would use: a firewall may let only those pass.
pub(super) fn listen(at: IpAddr, env: &Env<'_>) -> io::Result<TcpListener> {
    let port = |name: &str| env(name).and_then(|text| text.trim().parse::<u16>().ok());
    let range = port("FI_TCP_PORT_LOW_RANGE").zip(port("FI_TCP_PORT_HIGH_RANGE"));
    let range = range.filter(|(low, high)| *low > 0 && low <= high);
    let (low, high) = range.unwrap_or_default();
    let mut last = ErrorKind::AddrInUse.into();
    for port in low..=high {
        match bound(SocketAddr::new(at, port)) {
            Ok(listener) => return Ok(listener),
            Err(why) => last = why,
        }
    }
    Err(last)
}

/// A listener at this address. One of IPv6 leaves the same port of IPv4 to another: a task takes
/// one number of the range.
fn bound(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket(at)?;
    set_socket_reuseaddr(&socket, true)?;
    if at.is_ipv6() {
        set_ipv6_v6only(&socket, true)?;
    }
    bind(&socket, &at)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// How long all pairs may take: each until it counts as silent where it keeps others waiting.
pub(super) fn limit(trial: &Trial) -> Duration {
    let others = trial.pairs().len().saturating_sub(1) / AT_A_TIME;
    (PATIENCE + REPEATED * others as u32).min(trial.longest.max(PATIENCE))
}

impl Connections {
    pub(super) fn new(trial: &Trial, listeners: [Option<TcpListener>; 2]) -> Self {
        Self {
            listeners: listeners.into_iter().flatten().collect(),
            is_full_until: None,
            queue: trial.queue().into(),
            connections: VecDeque::new(),
        }
    }

    /// Begins connections, as many as there may be.
    fn begin(&mut self, trial: &Trial, progress: &mut Progress) {
        let mut own = self.connections.iter().filter(|connection| connection.pair.is_some()).count();
        while own < AT_A_TIME {
            let Some(pair) = self.queue.pop_front() else { return };
            let Some((from, to)) = trial.own_address(&pair).zip(trial.place(pair.party, pair.other)) else {
                continue;
            };
            match start(from, to) {
                Ok(stream) => {
                    own += 1;
                    self.connections.push_back(Connection {
                        stream,
                        since: Instant::now(),
                        output: trial.question(&pair).to_vec(),
                        input: Vec::new(),
                        pair: Some(pair),
                    });
                }
                // The limit of open files: this one waits for those that are under way.
                Err(why)
                    if own > 0 && [libc::EMFILE, libc::ENFILE].map(Some).contains(&why.raw_os_error()) =>
                {
                    return self.queue.push_front(pair);
                }
                Err(why) => {
                    progress.refused(pair, &why);
                    progress.given_up();
                }
            }
        }
    }

    fn accept(&mut self) {
        if self.is_full() {
            return;
        }
        self.is_full_until = None;
        for listener in &self.listeners {
            for _ in 0..AT_A_TIME {
                let stream = match listener.accept() {
                    Ok((stream, _)) => stream,
                    Err(why) if why.kind() == ErrorKind::WouldBlock => break,
                    // No descriptor is free, and the listener stays readable: not at once again.
                    Err(_) => {
                        self.is_full_until = Some(Instant::now() + LOOK_AROUND);
                        break;
                    }
                };
                if stream.set_nonblocking(true).is_ok() {
                    let (output, input) = (Vec::new(), Vec::new());
                    self.connections.push_back(Connection {
                        stream,
                        since: Instant::now(),
                        output,
                        input,
                        pair: None,
                    });
                }
            }
        }
        let is_other = |connection: &Connection| connection.pair.is_none();
        while self.connections.iter().filter(|one| is_other(one)).count() > OTHERS {
            if let Some(oldest) = self.connections.iter().position(is_other) {
                self.connections.remove(oldest);
            }
        }
    }

    fn is_full(&self) -> bool {
        self.is_full_until.is_some_and(|end| Instant::now() < end)
    }

    fn wait(&self) {
        let listeners = if self.is_full() { &[] } else { self.listeners.as_slice() };
        let listeners = listeners.iter().map(|one| PollFd::from_borrowed_fd(one.as_fd(), PollFlags::IN));
        let wants = |one: &Connection| if one.output.is_empty() { PollFlags::IN } else { PollFlags::OUT };
        let connections = self.connections.iter();
        let connections = connections.map(|one| PollFd::from_borrowed_fd(one.stream.as_fd(), wants(one)));
        let mut all: Vec<PollFd<'_>> = listeners.chain(connections).collect();
        let time = Timespec { tv_sec: 0, tv_nsec: LOOK_AROUND.as_nanos() as i64 };
        // A wait that ended early: all are looked at anyway.
        let _ = poll(&mut all, Some(&time));
    }
}

impl Step for Connections {
    fn step(&mut self, trial: &Trial, progress: &mut Progress) {
        self.begin(trial, progress);
        self.wait();
        self.accept();
        let keeps_others_waiting = !self.queue.is_empty();
        self.connections.retain_mut(|connection| {
            let next = connection.serve(trial, progress);
            let is_short = keeps_others_waiting && connection.pair.is_some();
            let is_late = connection.since.elapsed() >= if is_short { REPEATED } else { PATIENCE };
            if let (Some(pair), Next::Fails(why)) = (connection.pair, &next) {
                progress.refused(pair, why);
                progress.given_up();
            } else if let (Some(_), Next::Goes, true) = (connection.pair, &next, is_late) {
                progress.given_up();
            }
            matches!(next, Next::Goes) && !is_late
        });
    }
}

impl Connection {
    fn serve(&mut self, trial: &Trial, progress: &mut Progress) -> Next {
        match self.try_serve(trial, progress) {
            Ok(next) => next,
            Err(why)
                if [ErrorKind::WouldBlock, ErrorKind::Interrupted, ErrorKind::NotConnected]
                    .contains(&why.kind()) =>
            {
                Next::Goes
            }
            Err(why) => Next::Fails(why),
        }
    }

    fn try_serve(&mut self, trial: &Trial, progress: &mut Progress) -> io::Result<Next> {
        if let Some(why) = self.stream.take_error()? {
            return Ok(Next::Fails(why));
        }
        while !self.output.is_empty() {
            let written = self.stream.write(&self.output)?;
            self.output.drain(..written);
            if self.output.is_empty() && self.pair.is_none() {
                return Ok(Next::Ends);
            }
        }
        while self.input.len() < LENGTH {
            let mut bytes = [0; LENGTH];
            let read = self.stream.read(&mut bytes[self.input.len()..])?;
            if read == 0 {
                return Ok(Next::Fails(io::Error::from_raw_os_error(libc::ECONNRESET)));
            }
            let len = self.input.len();
            self.input.extend_from_slice(&bytes[len..len + read]);
        }
        match self.pair {
            Some(pair) if trial.answered(&self.input) == Some(pair) => {
                progress.works(trial, pair);
                Ok(Next::Ends)
            }
            Some(_) => Ok(Next::Fails(io::Error::from_raw_os_error(libc::EPROTO))),
            None => match trial.answer(&self.input) {
                Some((answer, _)) => {
                    self.output = answer.to_vec();
                    let written = self.stream.write(&self.output)?;
                    self.output.drain(..written);
                    Ok(if self.output.is_empty() { Next::Ends } else { Next::Goes })
                }
                None => Ok(Next::Ends),
            },
        }
    }
}

fn socket(of: SocketAddr) -> io::Result<OwnedFd> {
    let family = if of.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(socket_with(family, SocketType::STREAM, flags, None)?)
}

/// Begins to connect.
fn start(from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = socket(to)?;
    bind(&socket, &SocketAddr::new(from, 0))?;
    match connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket.into()),
        Err(why) => Err(why.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn both_families_have_one_port() {
        let Ok(six) = bound((Ipv6Addr::UNSPECIFIED, 0).into()) else { return };
        let port = six.local_addr().expect("bound").port();
        match bound((Ipv4Addr::UNSPECIFIED, port).into()) {
            Ok(four) => {
                let reaches_four = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
                assert!(reaches_four && four.accept().is_ok() && six.accept().is_err());
            }
            // Another process may have taken it.
            Err(why) => assert_eq!(why.kind(), ErrorKind::AddrInUse),
        }
    }
}
