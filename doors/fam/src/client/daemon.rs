//! A daemon of the pool, and the connection to it while there is one.

use super::connection::Connection;
use super::pending::Table;
use crate::error::{Failure, FamError, Result};
use crate::files::Address;
use crate::wire::{Answer, Ask, Role, Server, VERSION};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

/// A daemon, which is connected at its first use, and again after its death.
pub struct Daemon {
    address: Address,
    state: Mutex<State>,
    /// Where a connection that is made is put, too.
    all: Arc<Connections>,
}

#[derive(Default)]
struct State {
    connection: Option<Arc<Connection>>,
    /// When the last attempt to connect has failed, and why.
    failed: Option<(Instant, Failure)>,
}

/// The connections of a process's object, as long as something uses them. A thread that waits for
/// operations looks here, and not at the daemons: one may be connecting, or have been replaced.
#[derive(Default)]
pub struct Connections(Mutex<Vec<Weak<Connection>>>);

impl Connections {
    /// Those that there are.
    pub fn all(&self) -> Vec<Arc<Connection>> {
        self.list().iter().filter_map(Weak::upgrade).collect()
    }

    fn add(&self, connection: &Arc<Connection>) {
        let mut list = self.list();
        list.retain(|one| one.strong_count() != 0);
        list.push(Arc::downgrade(connection));
    }

    fn list(&self) -> MutexGuard<'_, Vec<Weak<Connection>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Daemon {
    /// The daemon at an address.
    pub fn new(address: Address, all: Arc<Connections>) -> Self {
        Self { address, state: Mutex::default(), all }
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The connection; a new one where there is none. `named` gets the servers that it names. A
    /// thread that waits while another one connects gets what that one gets, a failure too.
    ///
    /// # Errors
    /// [`FamError::RpcClientNotFound`]: no daemon is there. [`FamError::Timeout`]: it does not
    /// answer. [`FamError::NoPerm`], [`FamError::Rpc`].
    pub fn connection(&self, named: impl FnOnce(Vec<Server>)) -> Result<Arc<Connection>> {
        let called = Instant::now();
        let mut state = self.state();
        if let Some(connection) = state.connection.as_ref().filter(|connection| connection.holds()) {
            return Ok(connection.clone());
        }
        if let Some((_, failure)) = state.failed.as_ref().filter(|(when, _)| *when > called) {
            return Err(failure.clone());
        }
        let connected = self.connect(named);
        match &connected {
            Ok(connection) => *state = State { connection: Some(connection.clone()), failed: None },
            Err(failure) => state.failed = Some((Instant::now(), failure.clone())),
        }
        connected
    }

    fn connect(&self, named: impl FnOnce(Vec<Server>)) -> Result<Arc<Connection>> {
        let table = Arc::new(Table::default());
        let session = super::replies::session(&self.address, &table)?;
        let connection = Arc::new(Connection::new(session, table));
        let hello = Ask::Hello {
            version: VERSION,
            role: Role::Program,
            user: rustix::process::geteuid().as_raw(),
            group: rustix::process::getegid().as_raw(),
        };
        match connection.ask_first(&hello)? {
            Answer::Hello { version: VERSION, servers, .. } => named(servers),
            Answer::Hello { version, .. } => {
                let why = format!("the daemon at {} has version {version} of the messages", self.address);
                return Err(FamError::Rpc.because(why));
            }
            _ => return Err(strange()),
        }
        self.all.add(&connection);
        Ok(connection)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the connection.
    pub fn part(&self) {
        self.state().connection = None;
    }
}

/// An answer to another question.
pub fn strange() -> Failure {
    FamError::Rpc.because("the daemon has answered something else than what was asked")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meeting::socket_name;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};
    use std::sync::Barrier;

    #[test]
    fn threads_wait_together_for_a_daemon_that_does_not_answer() {
        // No daemon is tried there by other tests, which may run beside this one.
        let port = 9;
        let name = SocketAddr::from_abstract_name(socket_name(port)).expect("a name");
        let listener = UnixListener::bind_addr(&name).expect("a listener");
        let daemon = Daemon::new(Address { host: "127.0.0.1".to_owned(), port }, Arc::default());
        let barrier = Barrier::new(4);
        let failures: Vec<FamError> = std::thread::scope(|scope| {
            let call = || {
                barrier.wait();
                daemon.connection(drop).err().expect("no daemon answers").error
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(call)).collect();
            threads.into_iter().map(|thread| thread.join().expect("a failure")).collect()
        });
        assert_eq!(failures, [FamError::Timeout; 4]);
        listener.set_nonblocking(true).expect("a listener");
        assert_eq!(listener.incoming().take_while(std::io::Result::is_ok).count(), 1, "one has tried");
    }
}
