//! What passes between the daemon's threads.

use crate::guest::Guest;
use crate::store::Backup;
use fam::Result;
use fam::wire::{Answer, Sealed, Ticket, encode_answer};
use openlapi_session::Session;
use std::sync::{Arc, mpsc};

/// Something that a session asks.
pub struct Asked {
    /// The session.
    pub session: Arc<Session>,
    /// The session's state.
    pub guest: Arc<Guest>,
    /// The operation.
    pub number: u64,
    /// The body.
    pub body: Vec<u8>,
}

/// Whom to answer.
pub struct Asker {
    /// The session.
    pub session: Arc<Session>,
    /// The session's state.
    pub guest: Arc<Guest>,
    /// The operation.
    pub number: u64,
}

/// How the moving of bytes has ended.
pub enum Ready {
    /// Nothing else is to be done.
    Done(Result<Answer>),
    /// A backup of this name was written.
    Backup(String, Result<Backup>),
}

/// What the thread does next.
pub enum Work {
    /// Something is asked.
    Asked(Asked),
    /// The thread that moves bytes wants a ticket sealed.
    Seal(Ticket, mpsc::Sender<Result<Sealed>>),
    /// Bytes were moved.
    Moved(Ready, Asker),
    /// A thread has connected to a server of memory, or has not reached it.
    Connected,
}

impl Asker {
    /// Has the thread for data send the answer, when the peer has room for it. Nobody waits for
    /// that of a session that is over.
    pub fn answer(&self, answer: &Result<Answer>) {
        self.guest.answer(self.number, encode_answer(answer));
        self.session.wake();
    }
}
