//! A session with one daemon, and the operations that are under way on it.

use super::fork::forks;
use super::owner::{Class, Owner};
use super::pending::{Expected, Memory, Table};
use crate::error::{Failure, FamError, Result};
use crate::wire::{self, Answer, Ask, Message};
use openlapi::base::clock::ticks;
use openlapi_session::Session;
use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Data up to this many bytes is copied as it is sent; longer data is read from where it is.
pub const COPIED: usize = 2048;
/// With this many operations under way, one that begins waits until half of them have ended.
const MOST: usize = 4096;
/// With more bytes of vector messages under way, one that begins waits. A daemon refuses what is
/// beyond twice as many, with a session's questions.
const MOST_HELD: usize = 128 << 20;
/// With this many numbers of items to be given back, the next item waits until they are.
const MOST_RETIRED: usize = 1024;
/// After a pause of this many ticks, 2 to 10 ms, the next operation looks first whether the daemon
/// is there: it may have ended, and begun again, unnoticed.
const PAUSE: u64 = 10_000_000;
/// How long a daemon may take to answer the first question.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection to a daemon. It is over when the daemon or the way to it is lost, and a new one
/// takes its place.
pub struct Connection {
    /// Another one for each connection of this process, from 1 on.
    serial: u64,
    /// Of the process that has opened it.
    forks: u32,
    session: Session,
    table: Arc<Table>,
    is_over: AtomicBool,
    /// When something was heard of the daemon last, in [`ticks`].
    heard: AtomicU64,
    /// Numbers of items that nothing uses any more.
    retired: Mutex<Retired>,
    /// Locked while a thread ends the operations.
    ending: Mutex<()>,
}

/// Numbers that wait until the operations have ended that may use them.
#[derive(Default)]
struct Retired {
    /// Those that were there when the table's turn began: they wait for operations of before.
    of_turn: Vec<u32>,
    /// Later ones.
    later: Vec<u32>,
}

impl Connection {
    /// A connection by a session whose messages this table gets.
    pub fn new(session: Session, table: Arc<Table>) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let serial = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        super::fork::watch();
        Self {
            serial,
            forks: forks(),
            session,
            table,
            is_over: AtomicBool::new(false),
            heard: AtomicU64::new(ticks()),
            retired: Mutex::default(),
            ending: Mutex::new(()),
        }
    }

    /// The number of the connection in this process.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Whether it is over. In a child of fork it is.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire) || self.is_of_parent()
    }

    fn is_of_parent(&self) -> bool {
        self.forks != forks()
    }

    /// How many operations are under way.
    pub fn open(&self) -> usize {
        self.table.open()
    }

    /// Begins an operation: sends the message of its number, with these bytes and the program's
    /// data behind them. Its owner learns of every end, also when it is not sent.
    ///
    /// `held`: bytes that the daemon keeps for it, as for a vector message.
    ///
    /// # Safety
    /// Until the operation has ended, the data can be read and does not change, and memory that is
    /// expected to be filled is written by nothing else.
    pub unsafe fn post(
        &self,
        owner: &Arc<Owner>,
        class: Class,
        expected: Expected,
        (held, first, data): (usize, Vec<u8>, &[Memory]),
        message: impl FnOnce(u64) -> Message,
    ) {
        let held = self.make_room(held);
        let length = data.iter().fold(first.len(), |sum, piece| sum + piece.length);
        let begun = if length <= COPIED {
            let begun = self.table.begin_from(owner, class, expected, None, held);
            // SAFETY: the caller's promise.
            begun.map(|(number, _)| (number, unsafe { self.send(&message(number), &first, data) }))
        } else {
            let front = (first.as_ptr(), first.len());
            let behind = data.iter().map(|piece| (piece.at.cast_const(), piece.length));
            let pieces: Vec<_> =
                std::iter::once(front).chain(behind).filter(|(_, length)| *length != 0).collect();
            let begun = self.table.begin_from(owner, class, expected, Some(first), held);
            begun.map(|(number, counter)| {
                // SAFETY: the caller's promise; the first bytes and the counter live in the table
                // until it has risen, or the session is over.
                (number, unsafe { self.session.send_pieces(&message(number).encode(), &pieces, counter) })
            })
        };
        match begun {
            Ok((_, Ok(()))) => {}
            Ok((number, Err(error))) => {
                self.note(&error);
                self.table.unsent(number, lost(&error));
            }
            Err(failure) => {
                owner.begin(class);
                owner.end(class, Err(failure));
            }
        }
    }

    /// Sends a message whose data is short, and copied.
    ///
    /// # Safety
    /// The data can be read.
    #[inline]
    unsafe fn send(&self, message: &Message, first: &[u8], data: &[Memory]) -> openlapi_session::Result<()> {
        let header = message.encode();
        match data {
            [] => self.session.post(&header, first),
            // SAFETY: the caller's promise.
            [piece] if first.is_empty() => self.session.post(&header, unsafe { bytes(piece) }),
            _ => {
                let mut all = first.to_vec();
                // SAFETY: the caller's promise.
                data.iter().for_each(|piece| all.extend_from_slice(unsafe { bytes(piece) }));
                self.session.post(&header, &all)
            }
        }
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// What the daemon refuses; [`FamError::Rpc`]: the connection is over.
    pub fn ask(&self, ask: &Ask) -> Result<Answer> {
        let owner = Arc::new(Owner::default());
        let number = self.ask_for(&owner, ask)?;
        self.answered(number)
    }

    /// Asks the first question.
    ///
    /// # Errors
    /// Those of [`Self::ask`]; [`FamError::Timeout`]: the daemon does not answer, and the
    /// connection is over.
    pub fn ask_first(&self, ask: &Ask) -> Result<Answer> {
        let owner = Arc::new(Owner::default());
        let number = self.ask_for(&owner, ask)?;
        let until = Instant::now() + PATIENCE;
        if !self.wait_until(Some(until), || self.table.is_answered(number)) {
            self.end(&FamError::Timeout.because("the daemon does not answer"));
        }
        self.answer(number)
    }

    /// Asks; the answer comes later.
    ///
    /// # Errors
    /// [`FamError::Rpc`]: the connection is over.
    pub fn ask_for(&self, owner: &Arc<Owner>, ask: &Ask) -> Result<u64> {
        self.ask_and(owner, ask, Expected::Answer)
    }

    fn ask_and(&self, owner: &Arc<Owner>, ask: &Ask, expected: Expected) -> Result<u64> {
        if self.is_of_parent() {
            return Err(of_parent());
        }
        let body = wire::encode(ask);
        let number = self.table.begin(owner, Class::Changes, expected)?;
        if let Err(error) = self.session.post(&Message::Ask { number }.encode(), &body) {
            self.note(&error);
            self.table.unsent(number, lost(&error));
        }
        Ok(number)
    }

    /// Nothing will use the number of an item any more. The server forgets it when the operations
    /// have ended that are under way now, and may use it.
    pub fn retire(&self, number: u32) {
        if self.is_over() {
            return;
        }
        self.retired().later.push(number);
        self.give_back();
    }

    /// Has numbers that nothing uses forgotten before there is one more.
    pub fn make_room_for_number(&self) {
        while self.give_back() >= MOST_RETIRED && !self.is_over() {
            self.wait(|| self.table.has_turned());
        }
    }

    /// Gives back the numbers that no operation uses any more. Returns how many are left.
    fn give_back(&self) -> usize {
        let mut free = Vec::new();
        let mut retired = self.retired();
        while self.table.has_turned() {
            free.append(&mut retired.of_turn);
            if retired.later.is_empty() {
                break;
            }
            retired.of_turn = std::mem::take(&mut retired.later);
            self.table.turn();
        }
        let left = retired.of_turn.len() + retired.later.len();
        drop(retired);
        let owner = Arc::default();
        for number in free {
            // A connection that is over has no numbers.
            let _ = self.ask_and(&owner, &Ask::Close { number }, Expected::Anything);
        }
        left
    }

    fn retired(&self) -> MutexGuard<'_, Retired> {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, number: u64) -> Result<Answer> {
        let none = || FamError::Rpc.because("the daemon has not answered");
        self.table.take(number).unwrap_or_else(|| Err(none()))
    }

    /// Waits for the answer to an operation.
    ///
    /// # Errors
    /// What the daemon refuses; [`FamError::Rpc`]: the connection is over.
    pub fn answered(&self, number: u64) -> Result<Answer> {
        if self.is_of_parent() {
            return Err(of_parent());
        }
        self.wait(|| self.table.is_answered(number));
        self.answer(number)
    }

    /// Waits until a condition holds that operations of this connection make true, or none is under
    /// way after the end of the connection.
    pub fn wait(&self, condition: impl Fn() -> bool) {
        self.wait_until(None, condition);
    }

    /// Waits as [`Self::wait`] does; `false`: the time has passed before.
    fn wait_until(&self, until: Option<Instant>, condition: impl Fn() -> bool) -> bool {
        let is_true = || {
            self.table.sweep();
            condition() || self.is_to_end()
        };
        loop {
            let waited = if is_true() { Ok(true) } else { self.session.wait(until, is_true) };
            let is_late = matches!(waited, Ok(false));
            waited.map_or_else(|error| self.note(&error), |_| self.end_if_broken());
            if condition() || self.is_over() && self.open() == 0 {
                self.hear();
                return true;
            }
            if is_late {
                return false;
            }
        }
    }

    /// Makes progress; whether anything moved.
    pub fn progress(&self) -> bool {
        let moved = self.session.progress();
        self.table.sweep();
        self.end_if_broken();
        match moved {
            Ok(moved) => moved,
            Err(error) => {
                self.note(&error);
                true
            }
        }
    }

    /// Gets ready for a sleep on [`Self::descriptor`]; whether it may sleep. [`Self::progress`]
    /// follows in both cases.
    pub fn arm(&self) -> bool {
        self.session.arm().unwrap_or_else(|error| {
            self.note(&error);
            false
        })
    }

    /// Whether the daemon holds the connection, as a look tells that is made now; but where
    /// operations are under way the thread that waits for them looks.
    pub fn holds(&self) -> bool {
        if !self.is_over() && self.open() == 0 {
            self.progress();
            self.hear();
        }
        !self.is_over()
    }

    /// Whether an operation may begin: after a pause as [`Self::holds`] has it.
    #[inline]
    pub fn is_usable(&self) -> bool {
        let heard = self.heard.load(Ordering::Relaxed);
        if ticks().wrapping_sub(heard) < PAUSE { !self.is_over() } else { self.holds() }
    }

    fn hear(&self) {
        self.heard.store(ticks(), Ordering::Relaxed);
    }

    /// Whether the peer is of this host, and the kernel has said who it is.
    pub fn is_of_host(&self) -> bool {
        self.session.user().is_some()
    }

    /// What a thread sleeps on.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.session.as_fd()
    }

    /// Waits while too much is under way for another operation. Returns how many bytes the table
    /// holds for it: none where the connection is over.
    fn make_room(&self, held: usize) -> usize {
        if self.open() >= MOST {
            self.wait(|| self.open() <= MOST / 2);
        }
        let has_room = Cell::new(held == 0);
        let hold = || {
            has_room.set(has_room.get() || self.table.hold(held, MOST_HELD));
            has_room.get()
        };
        if !hold() {
            self.wait(hold);
        }
        if has_room.get() { held } else { 0 }
    }

    /// An error of the session is the end: also where the core refuses to go on.
    fn note(&self, error: &openlapi_session::Error) {
        if !matches!(error, openlapi_session::Error::Late(_)) {
            self.end(&lost(error));
        }
    }

    /// The daemon says what is no message.
    fn is_to_end(&self) -> bool {
        self.table.is_broken() && !self.is_over()
    }

    fn end_if_broken(&self) {
        if self.is_to_end() {
            self.end(&FamError::Rpc.because("the daemon is lost: it has sent what is no message"));
        }
    }

    /// Ends the operations, after the session, which then uses no memory of theirs any more.
    fn end(&self, failure: &Failure) {
        if self.is_of_parent() {
            return;
        }
        self.session.end();
        let _one = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_over.store(true, Ordering::Release);
        self.table.close(failure);
        self.session.wake();
    }
}

impl Drop for Connection {
    /// Operations whose descriptors are gone end, too: their owners wait for them.
    fn drop(&mut self) {
        if self.is_over() {
            return;
        }
        self.end(&FamError::Rpc.because("the connection to the daemon was given up"));
    }
}

/// # Safety
/// The memory can be read.
unsafe fn bytes(memory: &Memory) -> &[u8] {
    if memory.length == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(memory.at, memory.length) }
}

/// The error of a child of fork.
pub fn of_parent() -> Failure {
    FamError::Rpc.because("the connections are the parent's of this child of fork")
}

fn lost(error: &openlapi_session::Error) -> Failure {
    FamError::Rpc.because(format!("the daemon is lost: {error}"))
}

#[cfg(test)]
mod tests;
