//! What moves bytes of items: copies, backups and restoring.

use super::{Keeper, Outcome, check_name, no_perm};
use crate::backup::{Job, file_name};
use crate::guest::Who;
use crate::rights::rights;
use crate::store::{Backup, Change};
use fam::wire::{Answer, BackupFacts, READ, Sealed, Ticket, WRITE};
use fam::{FamError, Result};

impl Keeper {
    /// A ticket that a user shows, and that has one of these rights.
    fn shown(&self, who: Who, ticket: &Sealed, rights: u8) -> Result<Ticket> {
        let ticket = self.servers.unsealed(ticket);
        let ticket = ticket.ok_or_else(|| FamError::Metadata.because("the ticket is not valid any more"))?;
        if ticket.user != who.user || ticket.rights & rights == 0 {
            return Err(no_perm("the item"));
        }
        if !self.items.contains_key(&ticket.item) {
            return Err(FamError::NotFound.because("the item is gone"));
        }
        Ok(ticket)
    }

    /// A ticket that a user shows, with a seal of now: what it allows stays allowed when a server
    /// joins.
    pub(super) fn seal_anew(&self, who: Who, ticket: &Sealed) -> Result<Answer> {
        let ticket = self.shown(who, ticket, READ | WRITE)?;
        let none = || FamError::NotFound.because("the item is gone");
        let (facts, _) = self.facts(self.items.get(&ticket.item).ok_or_else(none)?, who)?;
        Ok(Answer::Ticket { ticket: self.sealed(&ticket)?, facts })
    }

    /// What this daemon reads or writes itself, on behalf of a user.
    fn content(ticket: Ticket) -> Ticket {
        Ticket { user: rustix::process::geteuid().as_raw(), ..ticket }
    }

    pub(super) fn copy(
        &self,
        who: Who,
        (from, from_offset): (&Sealed, u64),
        (to, to_offset): (&Sealed, u64),
        length: u64,
    ) -> Result<Job> {
        let (from, to) = (self.shown(who, from, READ)?, self.shown(who, to, WRITE)?);
        if !from.has(from_offset, length) || !to.has(to_offset, length) {
            return Err(FamError::OutOfRange.because("a range beyond the item"));
        }
        let (from, to) = ((Self::content(from), from_offset), (Self::content(to), to_offset));
        Ok(Job::Copy { from, to, length })
    }

    pub(super) fn backup(&mut self, who: Who, region: u64, item: u64, name: String) -> Result<Job> {
        let is_printable = name.chars().all(|letter| !letter.is_control());
        check_name("the backup", &name)?;
        if name.is_empty() || !is_printable || name == "*" {
            return Err(FamError::Invalid.because("a backup has a printable name, which is not *"));
        }
        if self.backups.contains_key(&name) || self.coming.contains(&name) {
            return Err(FamError::AlreadyExist.because("there is a backup of this name"));
        }
        let found = self.item(region, item)?;
        let (facts, rights) = self.facts(found, who)?;
        if rights & READ == 0 {
            return Err(no_perm("the item"));
        }
        let facts = BackupFacts {
            name: name.clone(),
            size: facts.size,
            mode: facts.mode,
            user: who.user,
            group: who.group,
            made: 0,
        };
        let from = Self::content(self.ticket_of(found, who.user, READ));
        let file = file_name(self.store.pool, &format!("{:016x}", self.number()));
        self.coming.insert(name);
        Ok(Job::Backup { from, facts, file })
    }

    /// A backup was written, or not. Where the metadata do not take it, its file goes.
    pub fn backed_up(&mut self, name: &str, made: Result<Backup>) -> Outcome {
        self.coming.remove(name);
        let backup = match made {
            Ok(backup) => backup,
            Err(failure) => return Outcome::Now(Err(failure)),
        };
        if let Err(failure) = self.store.change(&[Change::Backup(&backup)]) {
            return Outcome::Later(Job::Delete { file: backup.file, answer: Err(failure) });
        }
        self.backups.insert(name.to_owned(), backup);
        Outcome::Now(Ok(Answer::Done))
    }

    pub(super) fn backup_of(&self, who: Who, name: &str, right: u8) -> Result<&Backup> {
        let backup = self.backups.get(name);
        let backup = backup.ok_or_else(|| FamError::BackupNotFound.because("there is no such backup"))?;
        let facts = &backup.facts;
        if facts.user != who.user && rights(facts.mode, (facts.user, facts.group), who) & right == 0 {
            return Err(no_perm("the backup"));
        }
        Ok(backup)
    }

    pub(super) fn restore(&self, who: Who, name: &str, to: &Sealed) -> Result<Job> {
        let backup = self.backup_of(who, name, READ)?.clone();
        let ticket = self.shown(who, to, WRITE)?;
        if ticket.size < backup.facts.size {
            return Err(FamError::OutOfRange.because("the item is shorter than the backup"));
        }
        Ok(Job::Restore { backup, to: Self::content(ticket) })
    }

    pub(super) fn delete_backup(&mut self, who: Who, name: &str) -> Result<Job> {
        let backup = self.backup_of(who, name, WRITE)?.clone();
        self.store.change(&[Change::NoBackup(name)])?;
        self.backups.remove(name);
        Ok(Job::Delete { file: backup.file, answer: Ok(Answer::Done) })
    }

    pub(super) fn list_backups(&self, who: Who, name: &str) -> Result<Answer> {
        if !["", "*"].contains(&name) {
            let backup = self.backup_of(who, name, READ)?;
            return Ok(Answer::Backups(vec![backup.facts.clone()]));
        }
        let all = self.backups.keys().filter_map(|name| self.backup_of(who, name, READ).ok());
        Ok(Answer::Backups(all.map(|backup| backup.facts.clone()).collect()))
    }
}
