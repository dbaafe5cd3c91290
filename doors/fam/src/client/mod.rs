//! The library's side: what a program's calls do.

mod connection;
mod context;
mod copies;
mod daemon;
mod data;
mod elements;
mod fork;
mod item;
mod mapping;
pub mod options;
mod owner;
mod pending;
#[cfg(test)]
mod pending_tests;
mod pes;
mod replies;
mod waiting;

pub use context::Context;
pub use copies::{Purpose, Wait};
pub use data::Atomic;
pub use elements::{Elements, Places};
pub use item::Item;
pub use pending::Memory;

use crate::error::{FamError, Result};
use crate::files::{self, Address, Pe};
use crate::wire::{Answer, Ask, Server};
use connection::Connection;
use daemon::{Connections, Daemon};
use options::{Options, Texts, Value};
use pes::Pes;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A process that has called fam_initialize.
pub struct Client {
    /// What holds.
    pub options: Options,
    /// Memory that the program has named in its options, and its size.
    buffer: (usize, u64),
    pes: Pes,
    /// The pool.
    pub shared: Shared,
}

/// The daemons of a pool.
pub struct Shared {
    /// Of the process that has made it.
    forks: u32,
    connections: Arc<Connections>,
    keeper: Arc<Daemon>,
    /// The servers of memory, as the keeper has named them.
    servers: Mutex<BTreeMap<u64, Arc<Daemon>>>,
}

impl Client {
    /// Joins the job and finds the keeper.
    ///
    /// # Errors
    /// [`FamError::Invalid`]: an option; [`FamError::Pmi`]: the job;
    /// [`FamError::RpcClientNotFound`]: no daemon listens there; [`FamError::Rpc`].
    pub fn open(texts: Texts, buffer: (usize, u64)) -> Result<Arc<Self>> {
        let root = openlapi_runtime::environment::process_env("OPENFAM_ROOT").map(PathBuf::from);
        let file = Pe::read(&files::folder(root.as_deref()))?.unwrap_or_default();
        for ignored in &file.ignored {
            openlapi_runtime::console::log(format_args!("fam: {ignored} has no meaning here"));
        }
        let options = Options::new(texts, &file)?;
        let pes = Pes::join(options.runtime)?;
        let connections = Arc::<Connections>::default();
        let keeper = Arc::new(Daemon::new(options.keeper.clone(), connections.clone()));
        fork::watch();
        let shared = Shared { forks: fork::forks(), connections, keeper, servers: Mutex::default() };
        shared.keeper()?;
        Ok(Arc::new(Self { options, buffer, pes, shared }))
    }

    /// The value of an option.
    ///
    /// # Errors
    /// [`FamError::Invalid`]: there is no such option.
    pub fn option(&self, name: &str) -> Result<Value> {
        self.options.value(name, self.pes.own, self.pes.count, self.buffer)
    }

    /// The other PEs.
    pub fn pes(&self) -> &Pes {
        &self.pes
    }

    /// Asks the keeper.
    ///
    /// # Errors
    /// What it refuses; [`FamError::Rpc`], [`FamError::RpcClientNotFound`]: it is not there.
    pub fn ask(&self, ask: &Ask) -> Result<Answer> {
        self.shared.keeper()?.ask(ask)
    }

    /// Asks the keeper for something that has no answer of its own.
    ///
    /// # Errors
    /// Those of [`Self::ask`].
    pub fn order(&self, ask: &Ask) -> Result<()> {
        match self.ask(ask)? {
            Answer::Done => Ok(()),
            _ => Err(daemon::strange()),
        }
    }
}

impl Shared {
    /// The connections of this object, which no other one has.
    #[inline]
    pub fn connections(&self) -> &Arc<Connections> {
        &self.connections
    }

    /// Fails in a child of fork: the connections are its parent's.
    ///
    /// # Errors
    /// [`FamError::Rpc`].
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.forks == fork::forks() { Ok(()) } else { Err(connection::of_parent()) }
    }

    /// The connection to the keeper.
    ///
    /// # Errors
    /// [`FamError::RpcClientNotFound`], [`FamError::Rpc`], [`FamError::NoPerm`].
    pub fn keeper(&self) -> Result<Arc<Connection>> {
        self.check()?;
        self.keeper.connection(|servers| self.learn(servers))
    }

    /// The connection to a server of memory.
    ///
    /// # Errors
    /// Those of [`Self::keeper`]; [`FamError::Rpc`]: the keeper has named no such server.
    pub fn server(&self, number: u64) -> Result<Arc<Connection>> {
        self.check()?;
        let known = self.servers().get(&number).cloned();
        let daemon = match known {
            Some(daemon) => daemon,
            None => {
                self.keeper()?;
                let why = || FamError::Rpc.because(format!("the pool has no server {number}"));
                self.servers().get(&number).cloned().ok_or_else(why)?
            }
        };
        match Arc::ptr_eq(&daemon, &self.keeper) {
            true => self.keeper(),
            false => daemon.connection(|_| {}),
        }
    }

    /// The keeper has named its servers; those at the same place keep their connections.
    fn learn(&self, named: Vec<Server>) {
        let mut servers = self.servers();
        let mut fresh = BTreeMap::new();
        for Server { server, address } in named {
            let daemon = match Address::parse(&address) {
                Some(address) if address != *self.keeper.address() => {
                    let known = servers.get(&server).filter(|known| *known.address() == address);
                    known.cloned().unwrap_or_else(|| Arc::new(Daemon::new(address, self.connections.clone())))
                }
                // It is the keeper itself.
                _ => self.keeper.clone(),
            };
            fresh.insert(server, daemon);
        }
        *servers = fresh;
    }

    fn servers(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Daemon>>> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.shared.check().is_err() {
            return;
        }
        self.shared.keeper.part();
        for daemon in self.shared.servers().values() {
            daemon.part();
        }
    }
}
