//! The connections to `poe`'s port: those that begin with the token are passed on, the others are closed. Any process that reaches the machine
//! can connect. So one thread serves all of them, waits for none, and keeps a bounded number.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Weak;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::link::{Connection, HEAD, KINDS, Kind, admitted, prepare};

/// How long a connection may take to send its first bytes.
pub(super) const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections that have not sent them yet, at a time, beside those of the tasks. Where there are more, the oldest one is closed: a
/// task sends the bytes as soon as it is connected.
const STRANGERS: usize = 128;
/// Connections that are accepted before the others are served again.
const AT_A_TIME: usize = 32;
/// The longest sleep.
const LOOK: Duration = Duration::from_millis(200);

/// A connection whose first bytes are not complete.
struct Stranger {
    stream: TcpStream,
    head: [u8; HEAD],
    read: usize,
    until: Instant,
}

/// Whose a connection is.
enum Whose {
    NotKnown,
    Task(usize, Kind),
    Nobodys,
}

/// Passes on the connections of `tasks` tasks, until `open` has no owner any more.
pub(super) fn serve(
    socket: &TcpListener,
    token: &str,
    tasks: usize,
    admit: &Sender<(usize, Kind, Connection)>,
    open: &Weak<()>,
) {
    if socket.set_nonblocking(true).is_err() {
        return;
    }
    let most = STRANGERS + KINDS.len() * tasks;
    let mut strangers: VecDeque<Stranger> = VecDeque::new();
    while open.strong_count() > 0 {
        let mut polled = vec![PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        polled.extend(strangers.iter().map(|one| PollFd::new(one.stream.as_fd(), PollFlags::POLLIN)));
        let _ = poll(&mut polled, PollTimeout::try_from(LOOK).unwrap_or(PollTimeout::MAX));
        drop(polled);
        accept(socket, &mut strangers);
        let now = Instant::now();
        for mut one in std::mem::take(&mut strangers) {
            match one.look(token) {
                Whose::NotKnown if now < one.until => strangers.push_back(one),
                Whose::NotKnown | Whose::Nobodys => {}
                Whose::Task(task, kind) => {
                    prepare(&one.stream);
                    if one.stream.set_nonblocking(false).is_ok() {
                        let _ = admit.send((task, kind, one.stream));
                    }
                }
            }
        }
        strangers.drain(..strangers.len().saturating_sub(most));
    }
}

/// Takes some of the connections that wait.
fn accept(socket: &TcpListener, strangers: &mut VecDeque<Stranger>) {
    for _ in 0..AT_A_TIME {
        match socket.accept() {
            Ok((stream, _)) => {
                if stream.set_nonblocking(true).is_ok() {
                    let until = Instant::now() + HELLO_TIMEOUT;
                    strangers.push_back(Stranger { stream, head: [0; HEAD], read: 0, until });
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) if [ErrorKind::Interrupted, ErrorKind::ConnectionAborted].contains(&error.kind()) => {}
            Err(_) => {
                // No descriptor is free: the oldest one gives its own back. Not at once, or this would be a busy loop.
                strangers.pop_front();
                std::thread::sleep(Duration::from_millis(10));
                return;
            }
        }
    }
}

impl Stranger {
    /// Reads what is there.
    fn look(&mut self, token: &str) -> Whose {
        loop {
            match self.stream.read(&mut self.head[self.read..]) {
                Ok(0) => return Whose::Nobodys,
                Ok(read) => self.read += read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Whose::NotKnown,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Whose::Nobodys,
            }
            if self.read == HEAD {
                return match admitted(&self.head, token) {
                    Some((task, kind)) => Whose::Task(task, kind),
                    None => Whose::Nobodys,
                };
            }
        }
    }
}
