//! A context: the operations that `quiet` and `fence` wait for.

use super::connection::{Connection, of_parent};
use super::owner::Owner;
use super::{Client, waiting};
use crate::error::{FamError, Result};
use std::sync::Arc;

/// A context of a process: the first one, by which everything can be done, or one for data alone.
pub struct Context {
    client: Arc<Client>,
    owner: Arc<Owner>,
    is_first: bool,
}

impl Context {
    /// The first context of a process.
    pub fn first(client: Arc<Client>) -> Self {
        Self { client, owner: Arc::default(), is_first: true }
    }

    /// One for data alone.
    ///
    /// # Errors
    /// [`FamError::NoPerm`]: this one is such a context itself.
    pub fn open(&self) -> Result<Self> {
        let client = self.control()?.clone();
        Ok(Self { client, owner: Arc::default(), is_first: false })
    }

    /// The process, for what is not data.
    ///
    /// # Errors
    /// [`FamError::NoPerm`]: the context is for data alone.
    pub fn control(&self) -> Result<&Arc<Client>> {
        match self.is_first {
            true => Ok(&self.client),
            false => Err(FamError::NoPerm.because("a context is for data alone")),
        }
    }

    /// The process, for data.
    pub fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Whose the operations of calls are that do not wait.
    pub fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    /// Waits until all operations are complete.
    ///
    /// # Errors
    /// The first failure since the last call.
    pub fn quiet(&self) -> Result<()> {
        if self.is_of_parent() {
            return Err(of_parent());
        }
        self.wait(|| self.owner.pending() == 0);
        self.owner.take_failure()
    }

    /// Waits until all operations that change memory are complete. Failures stay for
    /// [`Self::quiet`].
    pub fn fence(&self) {
        self.wait(|| self.owner.changing() == 0);
    }

    /// How many operations are not complete.
    pub fn progress(&self) -> u64 {
        for connection in self.connections().iter().filter(|connection| !connection.is_over()) {
            connection.progress();
        }
        self.owner.pending().into()
    }

    /// Waits until operations that are under way have made a condition true.
    pub fn wait(&self, condition: impl Fn() -> bool) {
        while !condition() {
            if self.is_of_parent() {
                return;
            }
            waiting::until(&self.connections(), &condition);
        }
    }

    /// Whether this process is a child of the one that has made it.
    pub fn is_of_parent(&self) -> bool {
        self.client.shared.check().is_err()
    }

    fn connections(&self) -> Vec<Arc<Connection>> {
        self.client.shared.connections().all()
    }
}
