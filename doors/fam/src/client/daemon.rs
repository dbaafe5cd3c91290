//! A daemon of the pool, and the connection to it while there is one.

use super::connection::Connection;
use super::pending::Table;
use crate::error::{FamError, Result};
use crate::files::Address;
use crate::wire::{Answer, Ask, Role, Server, VERSION};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A daemon, which is connected at its first use, and again after its death.
pub struct Daemon {
    address: Address,
    connection: Mutex<Option<Arc<Connection>>>,
    /// Where a connection that is made is put, too.
    all: Arc<Connections>,
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
        Self { address, connection: Mutex::new(None), all }
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The connection; a new one where there is none. `named` gets the servers that it names.
    ///
    /// # Errors
    /// [`FamError::RpcClientNotFound`]: no daemon is there. [`FamError::Timeout`]: it does not
    /// answer. [`FamError::NoPerm`], [`FamError::Rpc`].
    pub fn connection(&self, named: impl FnOnce(Vec<Server>)) -> Result<Arc<Connection>> {
        let mut slot = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = slot.as_ref().filter(|connection| connection.holds()) {
            return Ok(connection.clone());
        }
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
        *slot = Some(connection.clone());
        Ok(connection)
    }

    /// Ends the connection.
    pub fn part(&self) {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// An answer to another question.
pub fn strange() -> crate::error::Failure {
    FamError::Rpc.because("the daemon has answered something else than what was asked")
}
