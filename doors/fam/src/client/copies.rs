//! Copies inside of the pool, and backups: the keeper does them, and the program waits.

use super::connection::Connection;
use super::context::Context;
use super::daemon::strange;
use super::item::Item;
use super::owner::Owner;
use crate::error::{FamError, Result};
use crate::wire::{Answer, Ask, BackupFacts, READ, WRITE};
use std::fmt::Write;
use std::sync::Arc;

/// What a program waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A copy.
    Copy,
    /// A backup.
    Backup,
    /// A backup that is written into an item.
    Restore,
    /// The end of a backup.
    Delete,
}

/// Something that was begun.
pub struct Wait {
    connection: Arc<Connection>,
    number: u64,
    purpose: Purpose,
}

impl Wait {
    /// Fails if it is something else.
    ///
    /// # Errors
    /// [`FamError::Invalid`].
    pub fn check(&self, purpose: Purpose) -> Result<()> {
        match self.purpose == purpose {
            true => Ok(()),
            false => Err(FamError::Invalid.because("the call waits for something else")),
        }
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// Why it has failed.
    pub fn finish(self) -> Result<()> {
        match self.connection.answered(self.number)? {
            Answer::Done => Ok(()),
            _ => Err(strange()),
        }
    }
}

impl Context {
    /// Begins to copy bytes of an item into another one, or to another place of the same.
    ///
    /// # Errors
    /// [`FamError::Invalid`]: no byte. [`FamError::OutOfRange`], [`FamError::NoPerm`],
    /// [`FamError::NotFound`], [`FamError::Rpc`].
    pub fn copy(&self, from: (&Item, u64), to: (&Item, u64), length: u64) -> Result<Wait> {
        if length == 0 {
            return Err(FamError::Invalid.because("a copy of no bytes"));
        }
        let shared = &self.client().shared;
        let (source, source_opened) = from.0.sealed(shared)?;
        let (target, target_opened) = to.0.sealed(shared)?;
        for (opened, offset, right) in [(source_opened, from.1, READ), (target_opened, to.1, WRITE)] {
            if opened.ticket.rights & right == 0 {
                return Err(FamError::NoPerm.because("the descriptor has not the right"));
            }
            if !opened.ticket.has(offset, length) {
                return Err(FamError::OutOfRange.because("the range is not within the item"));
            }
        }
        let ask = Ask::Copy { from: source, from_offset: from.1, to: target, to_offset: to.1, length };
        self.begin(self.owner(), &ask, Purpose::Copy)
    }

    /// Begins a backup of an item.
    ///
    /// # Errors
    /// [`FamError::Rpc`]; other failures come at the end.
    pub fn backup(&self, item: &Item, name: String) -> Result<Wait> {
        self.control()?;
        let (region, item) = item.name();
        self.begin(&Arc::default(), &Ask::Backup { region, item, name }, Purpose::Backup)
    }

    /// Begins to write a backup into an item.
    ///
    /// # Errors
    /// [`FamError::NoPerm`], [`FamError::NotFound`], [`FamError::Rpc`]; other failures come at the
    /// end.
    pub fn restore(&self, name: String, item: &Item) -> Result<Wait> {
        let client = self.control()?;
        let (to, opened) = item.sealed(&client.shared)?;
        if opened.ticket.rights & WRITE == 0 {
            return Err(FamError::NoPerm.because("the descriptor has not the right"));
        }
        self.begin(&Arc::default(), &Ask::Restore { name, to }, Purpose::Restore)
    }

    /// Begins to remove a backup.
    ///
    /// # Errors
    /// [`FamError::Rpc`]; other failures come at the end.
    pub fn delete_backup(&self, name: String) -> Result<Wait> {
        self.control()?;
        self.begin(&Arc::default(), &Ask::DeleteBackup { name }, Purpose::Delete)
    }

    /// Bytes of the item that a backup was made of.
    ///
    /// # Errors
    /// [`FamError::BackupNotFound`], [`FamError::NoPerm`], [`FamError::Rpc`].
    pub fn backup_size(&self, name: String) -> Result<u64> {
        match self.control()?.ask(&Ask::StatBackup { name })? {
            Answer::Backup(facts) => Ok(facts.size),
            _ => Err(strange()),
        }
    }

    /// The backups of a name, or all, one a line.
    ///
    /// # Errors
    /// [`FamError::BackupNotFound`], [`FamError::Rpc`].
    pub fn list_backups(&self, name: String) -> Result<String> {
        let Answer::Backups(all) = self.control()?.ask(&Ask::ListBackups { name })? else {
            return Err(strange());
        };
        let mut text = String::new();
        for BackupFacts { name, size, mode, user, group, made } in all {
            let _ = writeln!(text, "{name} size={size} perm={mode:o} uid={user} gid={group} time={made}");
        }
        Ok(text)
    }

    /// `owner`: whose `quiet` waits for it, as for a copy.
    fn begin(&self, owner: &Arc<Owner>, ask: &Ask, purpose: Purpose) -> Result<Wait> {
        let connection = self.client().shared.keeper()?;
        let number = connection.ask_for(owner, ask)?;
        Ok(Wait { connection, number, purpose })
    }
}
