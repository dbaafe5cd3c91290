//! When words on delivered messages go: with what is sent to the same port anyway, or by
//! themselves.

use super::Port;
use crate::abi::SEND_TOKENS;
use crate::protocol::types::{Data, Output};
use crate::protocol::words::Owed;
use crate::wire::{Header, Kind};

/// With this number of messages that a sender does not know of, words go by themselves: it may
/// have no token left.
const MOST: u32 = SEND_TOKENS as u32 / 4;
/// After this number of looks of the program in a row that have found nothing, words go by
/// themselves.
const PATIENT: u32 = 16;
/// After this number of them, and again after twice as many each, targets that may owe a word are
/// asked for it: a program that looks again and again learns of a delivery sooner than by the
/// timers of its connections.
const ASKS: u32 = 64;

impl Port {
    /// The next message for the network, with a word if one is owed to its target.
    pub fn next_output(&mut self) -> Option<Output> {
        let mut output = self.outputs.pop_front()?;
        if output.header.word.is_none() {
            output.header.word = self.words.take(output.task, output.header.to_port);
        }
        Some(output)
    }

    /// [`Self::next_output`] for the thread that gives messages to the network: others leave that
    /// to it until there is none.
    #[inline]
    pub fn post(&mut self) -> Option<Output> {
        let output = self.next_output();
        self.posting = output.is_some();
        output
    }

    /// Takes the word of a message that has come, if there is one. To be called for every message.
    #[inline]
    pub fn hear(&mut self, now: u64, message: &Header) {
        let Some(word) = message.word else { return };
        if (word.index as usize) < self.outgoing.len() {
            let (connection, mut around) = self.out(word.index, now);
            connection.delivered(&mut around, word);
        }
    }

    /// Words go by themselves from now on: a message had to wait before the port was open, or the
    /// process ends.
    pub fn tell_at_once(&mut self) {
        self.words.go_at_once = true;
    }

    /// Whether words go by themselves in any case.
    #[inline]
    pub fn must_tell(&self) -> bool {
        self.words.go_at_once
    }

    /// Sends all words that are owed, by themselves.
    pub fn tell(&mut self) {
        while let Some(Owed { task, port, word }) = self.words.pop() {
            let header = Header { word: Some(word), ..Header::of(Kind::Delivered, self.number, port) };
            self.outputs.push_back(Output { task, header, data: Data::None });
        }
    }

    /// Sends the words that are owed, if they are about many messages.
    pub fn tell_of_many(&mut self) {
        if self.words.messages() >= MOST || self.closing {
            self.tell();
        }
    }

    /// The program has looked for an event, and there was none.
    #[inline]
    pub fn found_nothing(&mut self) {
        self.idle = self.idle.saturating_add(1);
        if self.idle >= PATIENT && !self.words.are_none() {
            self.tell();
        }
        if self.idle >= ASKS && self.idle.is_power_of_two() {
            for at in 0..self.outgoing.len() as u32 {
                // A question is not timed.
                let (connection, mut around) = self.out(at, 0);
                connection.ask(&mut around);
            }
        }
    }
}
