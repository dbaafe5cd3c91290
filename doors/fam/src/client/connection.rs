//! A session with one daemon, and the operations that are under way on it.

use super::owner::{Class, Owner};
use super::pending::{Expected, Memory, Table};
use crate::error::{Failure, FamError, Result};
use crate::wire::{self, Answer, Ask, Message};
use openlapi_session::Session;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Data up to this many bytes is copied as it is sent; longer data is read from where it is.
pub const COPIED: usize = 2048;
/// With this many operations under way, one that begins waits until half of them have ended.
const MOST: usize = 4096;

/// A connection to a daemon. It is over when the daemon or the way to it is lost, and a new one
/// takes its place.
pub struct Connection {
    /// Another one for each connection of this process, from 1 on.
    serial: u64,
    session: Session,
    table: Arc<Table>,
    is_over: AtomicBool,
    /// Locked while a thread ends the operations.
    ending: Mutex<()>,
}

impl Connection {
    /// A connection by a session whose messages this table gets.
    pub fn new(session: Session, table: Arc<Table>) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let serial = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        Self { serial, session, table, is_over: AtomicBool::new(false), ending: Mutex::new(()) }
    }

    /// The number of the connection in this process.
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// Whether it is over.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// How many operations are under way.
    pub fn open(&self) -> usize {
        self.table.open()
    }

    /// Begins an operation: sends the message of its number, with these bytes and the program's
    /// data behind them. Its owner learns of every end, also when it is not sent.
    ///
    /// # Safety
    /// Until the operation has ended, the data can be read and does not change, and memory that is
    /// expected to be filled is written by nothing else.
    pub unsafe fn post(
        &self,
        owner: &Arc<Owner>,
        class: Class,
        expected: Expected,
        (first, data): (Vec<u8>, &[Memory]),
        message: impl FnOnce(u64) -> Message,
    ) {
        self.make_room();
        let length = data.iter().fold(first.len(), |sum, piece| sum + piece.length);
        let begun = if length <= COPIED {
            let begun = self.table.begin(owner, class, expected);
            // SAFETY: the caller's promise.
            begun.map(|number| (number, unsafe { self.send(&message(number), &first, data) }))
        } else {
            let front = (first.as_ptr(), first.len());
            let behind = data.iter().map(|piece| (piece.at.cast_const(), piece.length));
            let pieces: Vec<_> =
                std::iter::once(front).chain(behind).filter(|(_, length)| *length != 0).collect();
            let begun = self.table.begin_from(owner, class, expected, Some(first));
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
            [] => self.session.send(&header, first),
            // SAFETY: the caller's promise.
            [piece] if first.is_empty() => self.session.send(&header, unsafe { bytes(piece) }),
            _ => {
                let mut all = first.to_vec();
                // SAFETY: the caller's promise.
                data.iter().for_each(|piece| all.extend_from_slice(unsafe { bytes(piece) }));
                self.session.send(&header, &all)
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

    /// Asks; the answer comes later.
    ///
    /// # Errors
    /// [`FamError::Rpc`]: the connection is over.
    pub fn ask_for(&self, owner: &Arc<Owner>, ask: &Ask) -> Result<u64> {
        let body = wire::encode(ask);
        let number = self.table.begin(owner, Class::Changes, Expected::Answer)?;
        if let Err(error) = self.session.send(&Message::Ask { number }.encode(), &body) {
            self.note(&error);
            self.table.unsent(number, lost(&error));
        }
        Ok(number)
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
        self.wait(|| self.table.is_answered(number));
        self.answer(number)
    }

    /// Waits until a condition holds that operations of this connection make true; their end by a
    /// loss of the daemon does, too.
    pub fn wait(&self, condition: impl Fn() -> bool) {
        let is_true = || {
            self.table.sweep();
            condition()
        };
        while !is_true() {
            if let Err(error) = self.session.wait(None, is_true) {
                self.note(&error);
                if !is_true() && !self.is_over() {
                    // The core refuses to make progress: the session cannot go on.
                    self.end(&lost(&error));
                }
            }
        }
    }

    /// Makes progress; whether anything moved.
    pub fn progress(&self) -> bool {
        let moved = self.session.progress();
        self.table.sweep();
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

    /// What a thread sleeps on.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.session.as_fd()
    }

    fn make_room(&self) {
        if self.open() >= MOST {
            self.wait(|| self.open() <= MOST / 2);
        }
    }

    /// Looks whether an error is the end.
    fn note(&self, error: &openlapi_session::Error) {
        use openlapi_session::Error::{Closed, Lost};
        if matches!(error, Closed | Lost(_)) {
            self.end(&lost(error));
        }
    }

    /// Ends the operations; the session uses no memory of theirs any more.
    fn end(&self, failure: &Failure) {
        let _one = self.ending.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_over.store(true, Ordering::Release);
        self.table.close(failure);
        self.session.wake();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
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

fn lost(error: &openlapi_session::Error) -> Failure {
    FamError::Rpc.because(format!("the daemon is lost: {error}"))
}
