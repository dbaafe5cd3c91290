//! The connections to `poe`'s port: those whose other side proves that it knows the token are
//! passed on, the others are closed. Any process that reaches the machine can connect. So one
//! thread serves all of them, waits for none, and keeps a bounded number.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use openlapi::job::secret::Secret;

use super::super::error::Error;
use super::greeting::{Called, ConnectionKind, HELLO, Heard, KINDS};
use super::link::{Connection, Listener, prepare};

/// How long a connection may take to prove that it is a task's.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// Connections that have not proved it yet, at a time, beside those of the tasks. Where there are
/// more, the oldest one is closed: a task replies at once.
const STRANGERS: usize = 128;
/// Connections that are accepted before the others are served again.
const AT_A_TIME: usize = 32;
/// The longest sleep.
const LOOK: Duration = Duration::from_millis(200);

/// The connections of tasks, in the order in which they are made. The port is closed when
/// this is dropped.
pub(super) struct Arrivals {
    pub connections: Receiver<(usize, ConnectionKind, Connection)>,
    _open: Arc<()>,
}

impl Listener {
    /// Accepts the connections of `tasks` tasks, in a thread that ends when the result is dropped.
    pub(super) fn listen(self, tasks: usize) -> Result<Arrivals, Error> {
        let (send, connections) = channel();
        let open = Arc::new(());
        let is_open = Arc::downgrade(&open);
        let accept = move || serve(&self.socket, &self.token, tasks, &send, &is_open);
        thread::Builder::new()
            .name("poe-listener".into())
            .spawn(accept)
            .map_err(|error| Error::system("cannot start the thread that listens for the tasks", error))?;
        Ok(Arrivals { connections, _open: open })
    }
}

/// A connection whose greeting is not complete.
struct Stranger {
    stream: TcpStream,
    greeting: Called,
    until: Instant,
}

/// Whose a connection is.
enum Whose {
    NotKnown,
    Task(usize, ConnectionKind),
    Nobodys,
}

/// Passes on the connections of `tasks` tasks, until `open` has no owner any more.
fn serve(
    socket: &TcpListener,
    token: &Secret,
    tasks: usize,
    admit: &Sender<(usize, ConnectionKind, Connection)>,
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
                    prepare(&one.stream, kind);
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
                    strangers.push_back(Stranger { stream, greeting: Called::default(), until });
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(error) if [ErrorKind::Interrupted, ErrorKind::ConnectionAborted].contains(&error.kind()) => {}
            Err(_) => {
                // No descriptor is free: the oldest one gives its own back. Not at once, or this
                // would be a busy loop.
                strangers.pop_front();
                std::thread::sleep(Duration::from_millis(10));
                return;
            }
        }
    }
}

impl Stranger {
    /// Reads what is there, and replies to it.
    fn look(&mut self, token: &Secret) -> Whose {
        let mut bytes = [0; HELLO];
        loop {
            let wanted = self.greeting.wanted().min(bytes.len());
            let read = match self.stream.read(&mut bytes[..wanted]) {
                Ok(0) => return Whose::Nobodys,
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Whose::NotKnown,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Whose::Nobodys,
            };
            match self.greeting.read(token, &bytes[..read]) {
                Heard::More => {}
                // A connection that is new has room for it.
                Heard::Reply(reply) if self.stream.write_all(&reply).is_ok() => {}
                Heard::Reply(_) | Heard::Stranger => return Whose::Nobodys,
                Heard::Task(task, kind) => return Whose::Task(task, kind),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::greeting::hello;
    use super::super::link::{read_list, write_list};
    use super::*;
    use std::io;
    use std::net::Ipv4Addr;

    #[test]
    fn connections_arrive_by_task_and_kind() {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let listener = Listener { socket, token: [7; 16] };
        let mut link = listener.link("X");
        // At the first address another program listens, and says nothing.
        let silent = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 2), link.port)).expect("it is free");
        link.addresses = vec![Ipv4Addr::new(127, 0, 0, 2).into(), Ipv4Addr::LOCALHOST.into()];
        let arrived = listener.listen(2).expect("a thread can be started");
        let mut streams = link.connect(1).expect("the port is open");
        drop(silent);
        let mut others = Vec::new();
        for expected in KINDS {
            let (task, kind, other) = arrived.connections.recv_timeout(HELLO_TIMEOUT).expect("it arrives");
            assert_eq!((task, kind), (1, expected));
            others.push(other);
        }
        let list = vec![b"".to_vec(), b"two words".to_vec(), vec![0, 255]];
        write_list(&mut others[0], &list).expect("the other end is open");
        assert_eq!(read_list(&mut streams[0]).expect("a list was written"), list);
    }

    /// More connections than any limit of this process, which say nothing, half of a greeting, a
    /// false proof, or something else.
    #[test]
    fn strangers_do_not_keep_tasks_out() {
        let listener = Listener::open().expect("a port is free");
        let mut link = listener.link("X");
        link.addresses = vec![Ipv4Addr::LOCALHOST.into()];
        let port = link.port;
        let arrived = listener.listen(1).expect("a thread can be started");
        let wrong = [&hello(0, ConnectionKind::Control, [7; 16])[..], &[7; 16]].concat();
        let mut kept = Vec::new();
        for number in 0..600 {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the port is open");
            let bytes = match number % 4 {
                0 => &wrong[..0],
                1 => &wrong[..HELLO / 2],
                2 => &wrong[..],
                _ => &[b'x'; 100_000][..],
            };
            // It may be closed already.
            let _ = stream.set_nonblocking(true).and_then(|()| stream.write_all(bytes));
            kept.push(stream);
        }
        let mut streams = link.connect(0).expect("the port is open");
        for _ in KINDS {
            let (task, kind, mut other) =
                arrived.connections.recv_timeout(HELLO_TIMEOUT).expect("a task's connection");
            assert_eq!(task, 0);
            other.write_all(&[kind as u8]).expect("the other end is open");
        }
        for (stream, kind) in streams.iter_mut().zip(KINDS) {
            let mut byte = [0];
            stream.read_exact(&mut byte).expect("a byte was written");
            assert_eq!(byte[0], kind as u8);
        }
        // Those that say nothing are closed but for the last ones.
        let open = kept.iter().filter(|stream| {
            let read = (&**stream).read(&mut [0]);
            read.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
        });
        let open = open.count();
        assert!(open <= 128 + KINDS.len(), "{open} strangers are connected");
        drop(arrived);
        let until = Instant::now() + HELLO_TIMEOUT;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
            assert!(Instant::now() < until, "the port stays open");
            thread::sleep(Duration::from_millis(50));
        }
    }
}
