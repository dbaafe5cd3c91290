//! One session of the daemon: what its peer may do, and what it is owed. As the receiver of the
//! session's messages it does what short ones ask at once.

use crate::opened::{Opened, Reading, Writing};
use fam::FamError;
use fam::wire::{LONGEST_BODY, MOST_VECTOR, Message, READ, Role, WRITE};
use openlapi_session::{Place, Receiver};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Who is at the other end, as [`fam::wire::Ask::Hello`] and the kernel say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    /// The user.
    pub user: u32,
    /// The user's group.
    pub group: u32,
    /// What it is.
    pub role: Role,
}

/// What a session is owed.
pub enum Reply {
    /// The end of an operation.
    Done(u64, i32),
    /// What a number was.
    Old(u64, u128),
    /// Bytes of an item.
    Data(u64, Reading),
    /// Bytes that were gathered.
    Gathered(u64, Vec<u8>),
    /// The answer to something that was asked.
    Answer(u64, Vec<u8>),
}

/// The most replies that a session is owed, those that wait to be sent included.
const MOST_OWED: usize = 1 << 16;
/// With as many questions that are not answered, and with more bytes of answers that are not sent,
/// a session's further questions wait.
pub const MOST_ASKED: usize = 1 << 10;
const MOST_UNSENT: usize = 1 << 20;
/// The most bytes of a session's vector messages and questions.
const MOST_HELD: usize = 256 << 20;
/// Bytes that a question takes beside its body, about.
const QUESTION: usize = 128;
/// The most pieces that a session has open.
const MOST_OPEN: usize = 1 << 20;

/// The state of a session.
#[derive(Default)]
pub struct Guest {
    /// The session is to be ended.
    pub is_doomed: Arc<AtomicBool>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    who: Option<Who>,
    /// By the number that the peer uses; 0 is none.
    items: Vec<Option<Arc<Opened>>>,
    unused: Vec<u32>,
    replies: VecDeque<Reply>,
    /// Puts whose data is on the way, with their operations.
    writing: HashMap<usize, (u64, Writing)>,
    last: usize,
    /// Questions that were passed on and not answered.
    asked: usize,
    /// Bytes of answers that are not sent.
    unsent: usize,
    /// Bytes of vector messages in the inbox, of questions that were not passed on, and of what was
    /// gathered and not sent.
    held: usize,
}

impl State {
    fn item(&self, number: u32) -> Result<&Arc<Opened>, FamError> {
        self.items.get(number as usize).and_then(Option::as_ref).ok_or(FamError::NotFound)
    }

    fn done(&mut self, number: u64, result: Result<(), FamError>) -> Place {
        let code = result.map_or_else(FamError::code, |()| 0);
        self.replies.push_back(Reply::Done(number, code));
        Place::Nowhere
    }

    fn reply(&mut self, number: u64, result: Result<Reply, FamError>) -> Place {
        match result {
            Ok(reply) => {
                self.replies.push_back(reply);
                Place::Nowhere
            }
            Err(error) => self.done(number, Err(error)),
        }
    }

    /// A vector message may wait for its data in the inbox, if it is allowed. It may be longer than
    /// the item: an index may come again.
    fn may_wait(&mut self, item: u32, writes: bool, length: usize) -> Result<(), FamError> {
        let item = self.item(item)?;
        item.may(if writes { WRITE } else { READ })?;
        if length > MOST_VECTOR {
            return Err(FamError::Resource);
        }
        self.hold(length)
    }

    /// There is room for as many bytes.
    fn hold(&mut self, length: usize) -> Result<(), FamError> {
        if self.held + length > MOST_HELD {
            return Err(FamError::Resource);
        }
        self.held += length;
        Ok(())
    }

    /// Does what a message asks whose data is here.
    fn vector(&mut self, message: &Message, data: &[u8]) -> Place {
        match *message {
            Message::Scatter { number, item, shape } => {
                let result = self.item(item).and_then(|item| item.scatter(shape, data));
                self.done(number, result)
            }
            Message::Gather { number, item, shape } => {
                let room = (MOST_HELD - self.held.min(MOST_HELD)) as u64;
                let result = self.item(item).and_then(|item| item.gather(shape, data, room));
                self.held += result.as_ref().map_or(0, Vec::len);
                self.reply(number, result.map(|data| Reply::Gathered(number, data)))
            }
            _ => Place::Nowhere,
        }
    }
}

impl Guest {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who it is; `None`: it has not said so yet.
    pub fn who(&self) -> Option<Who> {
        self.state().who
    }

    /// The peer has said who it is. `false`: it had before.
    pub fn set_who(&self, who: Who) -> bool {
        let mut state = self.state();
        let is_first = state.who.is_none();
        state.who.get_or_insert(who);
        is_first
    }

    /// Gives a piece a number. `None`: the session has too many.
    pub fn add(&self, opened: Arc<Opened>) -> Option<u32> {
        let mut state = self.state();
        if let Some(number) = state.unused.pop() {
            state.items[number as usize] = Some(opened);
            return Some(number);
        }
        if state.items.is_empty() {
            state.items.push(None);
        }
        let number = state.items.len();
        (number < MOST_OPEN).then(|| {
            state.items.push(Some(opened));
            number as u32
        })
    }

    /// The piece of a number.
    pub fn item(&self, number: u32) -> Option<Arc<Opened>> {
        self.state().item(number).ok().cloned()
    }

    /// Takes the number of a piece back. `false`: it is none.
    pub fn remove(&self, number: u32) -> bool {
        let mut state = self.state();
        let removed = state.items.get_mut(number as usize).and_then(Option::take);
        if removed.is_some() {
            state.unused.push(number);
        }
        removed.is_some()
    }

    /// Takes all that the session is owed, if those of before are sent. `false`: the peer takes no
    /// replies.
    pub fn take_replies(&self, sent: &mut VecDeque<Reply>) -> bool {
        let mut state = self.state();
        if state.replies.len() + sent.len() > MOST_OWED {
            return false;
        }
        if sent.is_empty() && !state.replies.is_empty() {
            std::mem::swap(sent, &mut state.replies);
        }
        true
    }

    /// A reply with this number of gathered bytes is sent.
    pub fn has_sent(&self, gathered: usize) {
        self.state().held -= gathered;
    }

    /// An answer of this length is sent.
    pub fn has_sent_answer(&self, length: usize) {
        self.state().unsent -= length;
    }

    /// Whether a question may be passed on: else the peer has to take answers first.
    pub fn may_ask(&self) -> bool {
        let state = self.state();
        state.asked < MOST_ASKED && state.unsent <= MOST_UNSENT
    }

    /// A question with a body of this length is passed on.
    pub fn has_asked(&self, length: usize) {
        let mut state = self.state();
        state.held -= QUESTION + length;
        state.asked += 1;
    }

    /// A question that was passed on has its answer.
    pub fn answer(&self, number: u64, body: Vec<u8>) {
        let mut state = self.state();
        state.asked -= 1;
        state.unsent += body.len();
        state.replies.push_back(Reply::Answer(number, body));
    }

    /// Does what a vector message asks that has come through the inbox.
    pub fn vector(&self, message: &Message, data: &[u8]) {
        let mut state = self.state();
        state.held -= data.len();
        state.vector(message, data);
    }

    /// The session is over: nothing of it is under way any more.
    pub fn clear(&self) {
        self.is_doomed.store(true, Ordering::SeqCst);
        let mut state = self.state();
        state.replies.clear();
        state.writing.clear();
        state.items.clear();
        state.unused.clear();
    }
}

// SAFETY: a place that is given is a range of a part's mapping, which the number's `Writing` keeps
// until `end`, or until `clear`, which is called when the session is over. That other accesses to
// the bytes are the programs' matter is what shared memory is.
unsafe impl Receiver for Guest {
    fn begin(&self, header: &[u8], length: usize, here: Option<&[u8]>) -> Place {
        let Some(message) = Message::decode(header) else {
            self.is_doomed.store(true, Ordering::SeqCst);
            return Place::Nowhere;
        };
        let mut state = self.state();
        match message {
            Message::Put { number, item, offset } => match (state.item(item), here) {
                (Err(error), _) => state.done(number, Err(error)),
                (Ok(item), Some(data)) => {
                    let result = item.put(offset, data);
                    state.done(number, result)
                }
                (Ok(item), None) => match item.begin_put(offset, length as u64) {
                    Err(error) => state.done(number, Err(error)),
                    Ok(writing) => {
                        let at = writing.at;
                        state.last = state.last.wrapping_add(1);
                        let place = state.last;
                        state.writing.insert(place, (number, writing));
                        Place::At(at, place)
                    }
                },
            },
            Message::Get { number, item, offset, length } => {
                let reading = state.item(item).and_then(|item| item.begin_get(offset, length));
                state.reply(number, reading.map(|reading| Reply::Data(number, reading)))
            }
            Message::Atomic { number, item, offset, change, kind, operand, comparand } => {
                let old =
                    state.item(item).and_then(|item| item.change(offset, (change, kind), operand, comparand));
                state.reply(number, old.map(|old| Reply::Old(number, old)))
            }
            Message::Scatter { number, item, .. } | Message::Gather { number, item, .. } => {
                if let Some(data) = here {
                    return state.vector(&message, data);
                }
                let writes = matches!(message, Message::Scatter { .. });
                match state.may_wait(item, writes, length) {
                    Ok(()) => Place::Inbox,
                    Err(error) => state.done(number, Err(error)),
                }
            }
            Message::Ask { number } => {
                let fits = if length > LONGEST_BODY { Err(FamError::Invalid) } else { Ok(()) };
                match fits.and_then(|()| state.hold(QUESTION + length)) {
                    Ok(()) => Place::Inbox,
                    Err(error) => state.done(number, Err(error)),
                }
            }
            Message::Answer { .. } | Message::Done { .. } | Message::Data { .. } | Message::Old { .. } => {
                Place::Nowhere
            }
        }
    }

    fn end(&self, place: usize) {
        let mut state = self.state();
        if let Some((number, writing)) = state.writing.remove(&place) {
            writing.end_whole();
            state.done(number, Ok(()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_gathered_counts_until_it_is_sent() {
        let guest = Guest::default();
        let mut sent = VecDeque::new();
        {
            let mut state = guest.state();
            state.replies.push_back(Reply::Gathered(1, vec![0; 10]));
            state.held = 10;
        }
        assert!(guest.take_replies(&mut sent) && sent.len() == 1);
        assert_eq!(guest.state().held, 10);
        guest.has_sent(10);
        assert_eq!(guest.state().held, 0);
    }

    #[test]
    fn questions_that_are_not_passed_on_have_so_many_bytes() {
        let guest = Guest::default();
        let header = Message::Ask { number: 1 }.encode();
        let most = MOST_HELD / (LONGEST_BODY + QUESTION);
        for _ in 0..most {
            assert_eq!(guest.begin(&header, LONGEST_BODY, None), Place::Inbox);
        }
        assert_eq!(guest.begin(&header, LONGEST_BODY, None), Place::Nowhere);
        let refused = guest.state().replies.pop_back();
        assert!(matches!(refused, Some(Reply::Done(1, code)) if code == FamError::Resource.code()));
        guest.has_asked(LONGEST_BODY);
        assert_eq!(guest.begin(&header, LONGEST_BODY, None), Place::Inbox);
    }

    #[test]
    fn a_session_is_owed_so_many_replies_wherever_they_wait() {
        let guest = Guest::default();
        let done = |count: usize| (0..count as u64).map(|number| Reply::Done(number, 0));
        let mut sent: VecDeque<Reply> = done(MOST_OWED / 2).collect();
        guest.state().replies.extend(done(MOST_OWED / 2));
        assert!(guest.take_replies(&mut sent));
        guest.state().replies.extend(done(1));
        assert!(!guest.take_replies(&mut sent));
    }
}
