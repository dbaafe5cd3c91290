//! Messages whose memory the link still reads: it has taken packets of theirs and reports each
//! of them later.
//!
//! A message is done with the program's memory when all of its packets were accepted and every
//! taken one was reported.

use super::send::SendDone;
use crate::wire::frame::{Task, Ticket};
use std::collections::BTreeMap;

/// The key of a message in [`Lent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u64);

struct Message {
    peer: Task,
    /// Taken packets that were not reported yet.
    left: usize,
    /// What follows when none is left; `None` until all packets were accepted.
    done: Option<SendDone>,
}

/// All of them.
#[derive(Default)]
pub(super) struct Lent {
    messages: BTreeMap<Key, Message>,
    packets: BTreeMap<Ticket, Key>,
    next: u64,
}

impl Lent {
    /// How many messages there are.
    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// The peers of the messages; a peer may be named several times.
    pub(super) fn peers(&self) -> impl Iterator<Item = Task> + '_ {
        self.messages.values().map(|message| message.peer)
    }

    /// The peers of messages that raise this counter.
    pub(super) fn raising(&self, counter: usize) -> impl Iterator<Item = Task> + '_ {
        let raises = move |message: &&Message| message.done.is_some_and(|done| done.org_cntr == counter);
        self.messages.values().filter(raises).map(|message| message.peer)
    }

    /// The link has taken a packet of a message to `peer`: `message`, or a new one, whose key
    /// it then becomes.
    pub(super) fn take(&mut self, message: &mut Option<Key>, peer: Task, ticket: Ticket) {
        let key = *message.get_or_insert_with(|| {
            self.next += 1;
            Key(self.next)
        });
        self.messages.entry(key).or_insert(Message { peer, left: 0, done: None }).left += 1;
        self.packets.insert(ticket, key);
    }

    /// All packets of the message were accepted. Returns `done` when none of them is left
    /// to be reported.
    pub(super) fn accepted(&mut self, key: Key, done: SendDone) -> Option<SendDone> {
        let message = self.messages.get_mut(&key)?;
        if message.left != 0 {
            message.done = Some(done);
            return None;
        }
        self.messages.remove(&key);
        Some(done)
    }

    /// The link has reported a packet. Returns what follows when it was the last one
    /// of its message.
    pub(super) fn report(&mut self, ticket: Ticket) -> Option<SendDone> {
        let key = self.packets.remove(&ticket)?;
        let message = self.messages.get_mut(&key)?;
        message.left -= 1;
        if message.left != 0 || message.done.is_none() {
            return None;
        }
        self.messages.remove(&key).and_then(|message| message.done)
    }

    /// Nothing of `peer` is read or reported any more: returns what was to follow.
    pub(super) fn abandon(&mut self, peer: Task) -> impl Iterator<Item = SendDone> {
        let messages = std::mem::take(&mut self.messages).into_iter();
        let (ended, kept): (BTreeMap<_, _>, _) = messages.partition(|(_, message)| message.peer == peer);
        self.messages = kept;
        self.packets.retain(|_, key| !ended.contains_key(key));
        ended.into_values().filter_map(|message| message.done)
    }
}
