//! The connections of the tasks to `poe`'s port ([`openlapi::job::start_up::arrivals`]), which a
//! thread accepts.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use openlapi::base::poll::await_readable;
use openlapi::job::start_up::arrivals::Arrivals;

use super::super::error::Error;
use super::link::{Connection, ConnectionKind, KINDS, Listener, claimed, prepare};

/// The longest sleep.
const LOOK: Duration = Duration::from_millis(200);

/// The connections of tasks, in the order in which they are made. The port is closed when
/// this is dropped.
pub(super) struct Admitted {
    pub connections: Receiver<(usize, ConnectionKind, Connection)>,
    _open: Arc<()>,
}

impl Listener {
    /// Accepts the connections of `tasks` tasks, in a thread that ends when the result is dropped.
    pub(super) fn listen(self, tasks: usize) -> Result<Admitted, Error> {
        let (send, connections) = channel();
        let open = Arc::new(());
        let is_open = Arc::downgrade(&open);
        let arrivals = Arrivals::new(self.socket, self.token, KINDS.len() * tasks)
            .map_err(|error| Error::system("cannot listen for the tasks", error))?;
        thread::Builder::new()
            .name("poe-listener".into())
            .spawn(move || serve(arrivals, &send, &is_open))
            .map_err(|error| Error::system("cannot start the thread that listens for the tasks", error))?;
        Ok(Admitted { connections, _open: open })
    }
}

/// Passes on the connections of tasks, until `open` has no owner any more.
fn serve(mut arrivals: Arrivals, admit: &Sender<(usize, ConnectionKind, Connection)>, open: &Weak<()>) {
    while open.strong_count() > 0 {
        await_readable(&arrivals.descriptors().collect::<Vec<_>>(), Some(LOOK));
        for arrived in arrivals.serve(|subject| claimed(subject).is_some()) {
            let Some((task, kind)) = claimed(&arrived.subject) else { continue };
            prepare(&arrived.stream, kind);
            if arrived.stream.set_nonblocking(false).is_ok() {
                let _ = admit.send((task, kind, arrived.stream));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::link::{read_list, write_list};
    use super::*;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::time::Instant;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[test]
    fn connections_arrive_by_task_and_kind() {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let listener = Listener { socket, token: [7; 16] };
        let mut link = listener.link("X");
        // At the first address another program listens, and says nothing.
        let silent = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 2), link.port)).expect("it is free");
        link.addresses = vec![Ipv4Addr::new(127, 0, 0, 2).into(), Ipv4Addr::LOCALHOST.into()];
        let admitted = listener.listen(2).expect("a thread can be started");
        let mut streams = link.connect(1).expect("the port is open");
        drop(silent);
        let mut others = Vec::new();
        for expected in KINDS {
            let (task, kind, other) = admitted.connections.recv_timeout(PATIENCE).expect("it arrives");
            assert_eq!((task, kind), (1, expected));
            others.push(other);
        }
        let list = vec![b"".to_vec(), b"two words".to_vec(), vec![0, 255]];
        write_list(&mut others[0], &list).expect("the other end is open");
        assert_eq!(read_list(&mut streams[0]).expect("a list was written"), list);
        drop(admitted);
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, link.port)).is_ok() {
            assert!(Instant::now() < until, "the port stays open");
            thread::sleep(Duration::from_millis(50));
        }
    }
}
