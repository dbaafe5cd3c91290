//! The launcher's file that the tasks of a job share (`LAPI_JOB_FD`, [`crate::wire::board`]).

use crate::base::descriptor::Foreign;
use crate::config::Env;
use crate::job::identity;
use crate::wire::board::{CARD, CARD_HEAD, Word, card_at, size};
use crate::wire::frame::Task;
use rustix::io::{pread, pwrite};
use rustix::net::{SendFlags, send};
use std::os::fd::BorrowedFd;

/// The file, and on several machines the socket by which the launcher learns of changes.
#[derive(Clone, Copy, Debug)]
pub(in crate::job) struct Board {
    file: Foreign,
    bell: Option<Foreign>,
    tasks: u32,
}

impl Board {
    /// The file that the environment names, if it is that of the job with this key.
    pub(in crate::job) fn from_env(env: &Env<'_>, key: &str, tasks: u32) -> Option<Self> {
        let value = env("LAPI_JOB_FD")?;
        let (place, partition) = value.trim().split_once('@')?;
        // A program may have given its children a job of their own.
        if key != identity::key_of_partition(partition) {
            return None;
        }
        let mut fields = place.split(':');
        let mut next = || Foreign::parse(fields.next()?, fields.next()?);
        let board = Self { file: next()?, bell: next(), tasks };
        board.read(Word::Opened(0), 0).map(|_| board)
    }

    /// A word of a task's record; `None` when the file is gone.
    pub(in crate::job) fn read(&self, word: Word, task: Task) -> Option<u32> {
        let mut bytes = [0; 4];
        let read = pread(self.fd()?, &mut bytes, word.at(task)).ok()?;
        (read == bytes.len()).then(|| u32::from_le_bytes(bytes))
    }

    /// Writes a word of this task's record.
    pub(in crate::job) fn write(&self, word: Word, task: Task, value: u32) {
        if let Some(fd) = self.fd() {
            // A memory file of this size takes it.
            let _ = pwrite(fd, &value.to_le_bytes(), word.at(task));
            self.ring();
        }
    }

    /// Publishes the card of this task for one opening of an instance. `false`: it is too long, or
    /// the file is gone.
    pub(in crate::job) fn publish(&self, task: Task, instance: u32, opening: u32, card: &[u8]) -> bool {
        let at = card_at(self.tasks, task, instance, opening);
        let fits = card.len() as u64 <= CARD - CARD_HEAD;
        let Some(fd) = self.fd().filter(|_| fits) else { return false };
        let write = |bytes: &[u8], at| pwrite(fd, bytes, at).is_ok_and(|written| written == bytes.len());
        // The card first: a task that reads the opening finds the card. A task that takes the place
        // of another one writes over its card.
        let head = [opening.to_le_bytes(), (card.len() as u32).to_le_bytes()].concat();
        let written = write(&[0; CARD_HEAD as usize], at) && write(card, at + CARD_HEAD) && write(&head, at);
        self.ring();
        written
    }

    /// Takes back what this task has published for an opening of an instance.
    pub(in crate::job) fn withdraw(&self, task: Task, instance: u32, opening: u32) {
        // The place may have the card of another opening, which others still read.
        if self.card(task, instance, opening).is_some()
            && let Some(fd) = self.fd()
        {
            let _ = pwrite(fd, &[0; CARD_HEAD as usize], card_at(self.tasks, task, instance, opening));
            self.ring();
        }
    }

    /// The launcher looks at the file.
    fn ring(&self) {
        if let Some(fd) = self.bell.and_then(Foreign::socket) {
            // A message that was not read yet serves for this change, too.
            let _ = send(fd, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
        }
    }

    /// The card of a task for this opening of an instance, once it is there.
    pub(in crate::job) fn card(&self, task: Task, instance: u32, opening: u32) -> Option<Vec<u8>> {
        let (at, fd) = (card_at(self.tasks, task, instance, opening), self.fd()?);
        let head = || {
            let mut head = [0; 8];
            let read = pread(fd, &mut head, at).ok()?;
            let (of, len) = head.split_at(4);
            let word = |bytes: &[u8]| bytes.try_into().map(u32::from_le_bytes).ok();
            (read == head.len() && word(of)? == opening).then_some(u64::from(word(len)?))
        };
        let len = head().filter(|len| *len <= CARD - CARD_HEAD)?;
        let mut card = vec![0; len as usize];
        let read = pread(fd, &mut card, at + CARD_HEAD).ok()?;
        // Not overwritten by a later opening meanwhile.
        (read == card.len() && head() == Some(len)).then_some(card)
    }

    fn fd(&self) -> Option<BorrowedFd<'static>> {
        let (fd, found) = self.file.get()?;
        (found.st_size as u64 == size(self.tasks)).then_some(fd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, fstat, ftruncate, memfd_create};
    use std::os::fd::AsRawFd;

    #[test]
    fn a_card_is_read_for_its_own_opening_only() {
        let file = memfd_create("board", MemfdFlags::CLOEXEC).expect("a memory file");
        ftruncate(&file, size(2)).expect("room");
        let value = format!("{}:{}@9", file.as_raw_fd(), fstat(&file).expect("a file").st_ino);
        let env = |name: &str| (name == "LAPI_JOB_FD").then(|| value.clone());
        let board = Board::from_env(&env, "MP_PARTITION 9", 2).expect("the board of this job");
        assert!(Board::from_env(&env, "MP_PARTITION 8", 2).is_none());
        assert_eq!(board.card(1, 3, 1), None);
        assert!(board.publish(1, 3, 1, b"the first"));
        assert!(board.publish(1, 4, 1, b"of another instance"));
        assert_eq!(board.card(1, 3, 1).as_deref(), Some(&b"the first"[..]));
        assert!(board.publish(1, 3, 2, b"the second one"));
        // A task that is slower may still need the first.
        assert_eq!(board.card(1, 3, 1).as_deref(), Some(&b"the first"[..]));
        assert!(board.publish(1, 3, 3, b"the third"));
        assert_eq!((board.card(1, 3, 1), board.card(0, 3, 2)), (None, None));
        assert_eq!(board.card(1, 3, 2).as_deref(), Some(&b"the second one"[..]));
        assert!(!board.publish(1, 3, 4, &[0; CARD as usize]), "too long");
    }
}
