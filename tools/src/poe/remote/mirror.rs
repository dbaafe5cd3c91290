//! The file of a task on another machine (`LAPI_JOB_FD`), kept equal to those of all other
//! tasks of the job: `poe --task` sends what its task has written to `poe`, which passes it on
//! to the others.
//!
//! Changes are pieces of the file: position (8 bytes), length (4 bytes), and the bytes. They are
//! applied in order, and the head of a card comes after the card, as the task writes them.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixDatagram;

use openlapi::wire::board::{CARD, CARD_HEAD, INSTANCES, RECORD, Word, cards_of, size};

/// Position and length of a piece.
const PIECE: usize = 12;

/// One task's file.
pub(super) struct Mirror {
    file: File,
    /// Has a message when the task has written something.
    bell: UnixDatagram,
    tasks: u32,
    task: u32,
    /// The record and the cards of the task, with their heads, as they were sent last. A process
    /// that takes the place of another one may write a card that differs from the one before in
    /// its bytes alone.
    record: Vec<u8>,
    cards: Vec<([u8; CARD_HEAD as usize], Vec<u8>)>,
}

impl Mirror {
    /// The file of `task`, which is full of zeros.
    pub(super) fn new(file: File, bell: UnixDatagram, tasks: usize, task: usize) -> Self {
        let (tasks, task) = (tasks as u32, task as u32);
        let cards = cards_of(tasks, task).map(|_| Default::default()).collect();
        Self { file, bell, tasks, task, record: vec![0; RECORD as usize], cards }
    }

    /// What the task has written since the last call.
    pub(super) fn news(&mut self) -> io::Result<Vec<u8>> {
        // First the messages: what is written from now on has one of its own.
        while self.bell.recv(&mut [0; 8]).is_ok() {}
        let mut changes = Vec::new();
        for (at, known) in cards_of(self.tasks, self.task).zip(&mut self.cards) {
            if let Some(found) = card(&self.file, at)?
                && found != *known
            {
                let (head, card) = &found;
                put(&mut changes, at, &[0; CARD_HEAD as usize]);
                put(&mut changes, at + CARD_HEAD, card);
                put(&mut changes, at, head);
                *known = found;
            }
        }
        let at = Word::Opened(0).at(self.task);
        let mut record = vec![0; RECORD as usize];
        self.file.read_exact_at(&mut record, at)?;
        if record != self.record {
            put(&mut changes, at, &record);
            self.record = record;
        }
        Ok(changes)
    }

    /// Whether the task has an opening of LAPI that it has not closed.
    pub(super) fn is_open(&self) -> io::Result<bool> {
        let word = |word: Word| {
            let mut bytes = [0; 4];
            self.file.read_exact_at(&mut bytes, word.at(self.task)).map(|()| u32::from_le_bytes(bytes))
        };
        for instance in 0..INSTANCES {
            if word(Word::Opened(instance))? > word(Word::Closed(instance))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes a word of the task's record that is the launcher's.
    pub(super) fn set(&self, word: Word, value: u32) -> io::Result<()> {
        self.file.write_all_at(&value.to_le_bytes(), word.at(self.task))
    }

    /// Applies what the other tasks have written.
    pub(super) fn apply(&self, mut changes: &[u8]) -> io::Result<()> {
        let record = Word::Opened(0).at(self.task);
        let cards = cards_of(self.tasks, self.task).min().unwrap_or(u64::MAX);
        let cards_end = cards + cards_of(self.tasks, self.task).count() as u64 * CARD;
        let own = [record..record + RECORD, cards..cards_end];
        while let Some((head, rest)) = changes.split_first_chunk::<PIECE>() {
            let (at, len) = head.split_at(8);
            let at = u64::from_le_bytes(at.try_into().unwrap_or_default());
            let len = u32::from_le_bytes(len.try_into().unwrap_or_default()) as usize;
            let (bytes, rest) = rest.split_at_checked(len).ok_or(io::ErrorKind::InvalidData)?;
            let end = at.checked_add(len as u64).ok_or(io::ErrorKind::InvalidData)?;
            if end > size(self.tasks) {
                return Err(io::ErrorKind::InvalidData.into());
            }
            // The file itself is newer.
            let is_own = own.iter().any(|own| own.start <= at && end <= own.end);
            let meets_own = own.iter().any(|own| at < own.end && own.start < end);
            match (is_own, meets_own) {
                (true, _) => {}
                // No task writes parts of two tasks at a time.
                (false, true) => return Err(io::ErrorKind::InvalidData.into()),
                (false, false) => self.file.write_all_at(bytes, at)?,
            }
            changes = rest;
        }
        Ok(())
    }
}

impl AsFd for Mirror {
    /// Readable when there are news.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }
}

/// The card at this position and its head; `None` while it is being written. Its bell
/// rings after that.
fn card(file: &File, at: u64) -> io::Result<Option<([u8; CARD_HEAD as usize], Vec<u8>)>> {
    let head = || {
        let mut head = [0; CARD_HEAD as usize];
        file.read_exact_at(&mut head, at).map(|()| head)
    };
    let before = head()?;
    let [.., a, b, c, d] = before;
    let len = u64::from(u32::from_le_bytes([a, b, c, d]));
    if len > CARD - CARD_HEAD {
        return Ok(None);
    }
    let mut card = vec![0; len as usize];
    file.read_exact_at(&mut card, at + CARD_HEAD)?;
    Ok((head()? == before).then_some((before, card)))
}

/// Adds that the process of this task has ended: no other one will write it.
pub(super) fn put_end(changes: &mut Vec<u8>, task: usize) {
    put(changes, Word::Ended.at(task as u32), &1_u32.to_le_bytes());
}

fn put(changes: &mut Vec<u8>, at: u64, bytes: &[u8]) {
    changes.extend(at.to_le_bytes());
    changes.extend((bytes.len() as u32).to_le_bytes());
    changes.extend(bytes);
}

#[cfg(test)]
mod tests {
    use super::super::super::openings::Openings;
    use super::*;
    use openlapi::wire::board::card_at;

    fn mirror(task: usize) -> (Openings, Mirror) {
        let mut openings = Openings::create(3, "7").expect("a memory file");
        let (file, bell) = openings.share().expect("a socket");
        (openings, Mirror::new(file, bell, 3, task))
    }

    fn word(mirror: &Mirror, word: Word, task: u32) -> u32 {
        let mut bytes = [0; 4];
        mirror.file.read_exact_at(&mut bytes, word.at(task)).expect("in the file");
        u32::from_le_bytes(bytes)
    }

    #[test]
    fn what_a_task_writes_is_read_by_the_others() {
        let ((_one, mut one), (_two, two)) = (mirror(1), mirror(2));
        assert!(one.news().expect("its file").is_empty());
        let at = card_at(3, 1, 4, 1);
        let head: Vec<u8> = [1_u32.to_le_bytes(), 5_u32.to_le_bytes()].concat();
        one.file.write_all_at(b"hello", at + CARD_HEAD).expect("room");
        one.file.write_all_at(&head, at).expect("room");
        one.set(Word::Opened(4), 1).expect("room");
        let news = one.news().expect("its file");
        two.apply(&news).expect("changes");
        assert_eq!(word(&two, Word::Opened(4), 1), 1);
        assert_eq!(card(&two.file, at).expect("its file").expect("a card").1, b"hello");
        assert!(one.news().expect("its file").is_empty(), "that was sent");
        // Its own part is what the task has written, and not what it had.
        one.set(Word::Opened(4), 2).expect("room");
        one.apply(&news).expect("changes");
        assert_eq!(word(&one, Word::Opened(4), 1), 2);
        assert!(!one.news().expect("its file").is_empty());
    }

    #[test]
    fn the_card_of_a_process_that_takes_the_place_of_another_one_is_sent_though_it_is_as_long() {
        let ((_one, mut one), (_two, two)) = (mirror(1), mirror(2));
        let at = card_at(3, 1, 4, 1);
        let head: Vec<u8> = [1_u32.to_le_bytes(), 5_u32.to_le_bytes()].concat();
        for text in [b"first", b"other"] {
            one.file.write_all_at(text, at + CARD_HEAD).expect("room");
            one.file.write_all_at(&head, at).expect("room");
            two.apply(&one.news().expect("its file")).expect("changes");
            assert_eq!(card(&two.file, at).expect("its file").expect("a card").1, text);
        }
    }

    #[test]
    fn changes_that_do_not_fit_are_refused() {
        let (_openings, mirror) = mirror(0);
        let mut beyond = Vec::new();
        put(&mut beyond, size(3) - 2, b"abc");
        let mut short = Vec::new();
        put(&mut short, 8, b"abc");
        short.pop();
        let mut far = Vec::new();
        put(&mut far, u64::MAX, b"abc");
        for wrong in [beyond, short, far] {
            assert!(mirror.apply(&wrong).is_err());
        }
    }

    #[test]
    fn what_a_task_has_opened_and_not_closed() {
        let (_openings, mirror) = mirror(1);
        for (word, value, open) in [
            (Word::Closed(2), 0, false),
            (Word::Opened(2), 1, true),
            (Word::Closed(2), 1, false),
            (Word::Opened(2), 2, true),
        ] {
            mirror.set(word, value).expect("room");
            assert_eq!(mirror.is_open().expect("in the file"), open, "{word:?} {value}");
        }
    }

    /// Each task writes its own parts alone.
    #[test]
    fn a_change_that_begins_before_the_own_part_and_ends_in_it_leaves_the_own_part() {
        let (_openings, mirror) = mirror(1);
        mirror.set(Word::Opened(0), 7).expect("room");
        let at = card_at(3, 1, 0, 0);
        mirror.file.write_all_at(b"own", at).expect("room");
        for (from, len) in
            [(Word::Opened(0).at(1) - 4, 8), (0, 3 * RECORD as usize), (at - 1, 4), (at - 1, 1 << 20)]
        {
            let mut changes = Vec::new();
            put(&mut changes, from, &vec![0xee; len.min((size(3) - from) as usize)]);
            assert!(mirror.apply(&changes).is_err());
        }
        assert_eq!(word(&mirror, Word::Opened(0), 1), 7);
        let mut own = [0; 3];
        mirror.file.read_exact_at(&mut own, at).expect("in the file");
        assert_eq!(&own, b"own");
    }
}
