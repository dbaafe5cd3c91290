//! The words on delivered messages that a port owes to senders.

use crate::wire::{Header, Word};

/// A word that is owed.
#[derive(Clone, Copy, Debug)]
pub struct Owed {
    /// The sender's task.
    pub task: u32,
    /// The sender's port.
    pub port: u8,
    /// The word.
    pub word: Word,
}

/// The words of a port that no message has taken with it.
#[derive(Debug, Default)]
pub struct Words {
    owed: Vec<Owed>,
    /// How many messages they are about, at most.
    messages: u32,
    /// Words go by themselves: a message had to wait. Its sender sends one at a time from then on,
    /// each after the word on the one before; it may not look, and the program here neither. Or the
    /// process ends, and will say nothing later.
    pub go_at_once: bool,
}

impl Words {
    /// All messages of a connection up to this one are delivered.
    pub fn note(&mut self, task: u32, message: &Header) {
        let Header { epoch, seq, index, from_port: port, .. } = *message;
        let word = Word { epoch, seq, index };
        self.messages += 1;
        let is_same = |owed: &&mut Owed| {
            (owed.task, owed.port, owed.word.index, owed.word.epoch) == (task, port, index, epoch)
        };
        match self.owed.iter_mut().find(is_same) {
            Some(owed) => owed.word = word,
            None => self.owed.push(Owed { task, port, word }),
        }
    }

    /// A word for a message to that port of the task.
    #[inline]
    pub fn take(&mut self, task: u32, port: u8) -> Option<Word> {
        let place = self.owed.iter().position(|owed| owed.task == task && owed.port == port)?;
        let Owed { word, .. } = self.owed.swap_remove(place);
        if self.owed.is_empty() {
            self.messages = 0;
        }
        Some(word)
    }

    /// The task is gone.
    pub fn forget(&mut self, task: u32) {
        self.owed.retain(|owed| owed.task != task);
    }

    /// Takes one of them.
    pub fn pop(&mut self) -> Option<Owed> {
        let owed = self.owed.pop();
        if self.owed.is_empty() {
            self.messages = 0;
        }
        owed
    }

    /// Whether there are none.
    #[inline]
    pub fn are_none(&self) -> bool {
        self.owed.is_empty()
    }

    /// How many messages they are about, at most.
    pub fn messages(&self) -> u32 {
        self.messages
    }
}
