//! Questions and answers over TCP: a connection for each pair, from the one address to the other.

use super::outcomes::Pair;
use super::trial::{LENGTH, LOOK_AROUND, PATIENCE, Progress, Step, Trial};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Instant;

/// Connections of this party at a time: the limit of open files is often 1,024.
const AT_A_TIME: usize = 200;
/// Connections of others at a time. Where there are more, the oldest one is closed.
const OTHERS: usize = 400;

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
    queue: VecDeque<Pair>,
    connections: VecDeque<Connection>,
}

/// Listens at any port that libfabric's provider would use: a firewall may let only those pass.
pub(super) fn listen(at: IpAddr) -> io::Result<TcpListener> {
    let port = |name: &str| std::env::var(name).ok().and_then(|text| text.trim().parse::<u16>().ok());
    let range = port("FI_TCP_PORT_LOW_RANGE").zip(port("FI_TCP_PORT_HIGH_RANGE"));
    let range = range.filter(|(low, high)| *low > 0 && low <= high);
    let (low, high) = range.unwrap_or_default();
    let mut last = ErrorKind::AddrInUse.into();
    for port in low..=high {
        match TcpListener::bind(SocketAddr::new(at, port)) {
            Ok(listener) => {
                listener.set_nonblocking(true)?;
                return Ok(listener);
            }
            Err(why) => last = why,
        }
    }
    Err(last)
}

impl Connections {
    pub(super) fn new(trial: &Trial, listeners: [Option<TcpListener>; 2]) -> Self {
        Self {
            listeners: listeners.into_iter().flatten().collect(),
            queue: trial.pairs().into(),
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
        for listener in &self.listeners {
            for _ in 0..AT_A_TIME {
                let Ok((stream, _)) = listener.accept() else { break };
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

    fn wait(&self) {
        let listeners = self.listeners.iter().map(|one| PollFd::from_borrowed_fd(one.as_fd(), PollFlags::IN));
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
        self.connections.retain_mut(|connection| {
            let next = connection.serve(trial, progress);
            let is_late = connection.since.elapsed() >= PATIENCE;
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
                progress.works(pair);
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

/// Begins to connect.
fn start(from: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    bind(&socket, &SocketAddr::new(from, 0))?;
    match connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(socket.into()),
        Err(why) => Err(why.into()),
    }
}
