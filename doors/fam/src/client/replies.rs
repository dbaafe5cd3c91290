//! What daemons reply, as it arrives.

use super::pending::{self, Table};
use crate::error::{FamError, Result};
use crate::files::Address;
use crate::reach::reach;
use crate::wire::Message;
use openlapi_runtime::{console, environment};
use openlapi_session::{Place, Receiver, Session, Settings};
use std::sync::Arc;

/// Opens a session with the daemon that listens at an address; the table gets what it replies.
///
/// # Errors
/// Those of [`reach`]; [`FamError::Invalid`]: a variable of OpenLAPI is not valid.
pub fn session(address: &Address, table: &Arc<Table>) -> Result<Session> {
    let config = environment::config().map_err(|error| FamError::Invalid.because(error.to_string()))?;
    let settings = Settings {
        config,
        log: openlapi::error::Log::new(console::log),
        receiver: Some(Arc::new(Replies(table.clone()))),
        // Another user may have taken the name of the daemon.
        guarded: true,
        ..Settings::default()
    };
    reach(address, &settings)
}

/// The receiver of a session with a daemon.
pub struct Replies(pub Arc<Table>);

// SAFETY: memory of the program is given by its calls until they are complete, and of the table's
// own each operation has its piece. Operations of the connection end with the session, before the
// program's calls return.
unsafe impl Receiver for Replies {
    fn begin(&self, header: &[u8], length: usize, _: Option<&[u8]>) -> Place {
        let Some(message) = Message::decode(header) else {
            self.0.break_off();
            return Place::Nowhere;
        };
        match self.0.arriving(&message, length) {
            // A process is of 64 bits, and so is the number.
            pending::Place::Memory(memory) => Place::At(memory.at, message.number() as usize),
            pending::Place::Nowhere | pending::Place::Refused => Place::Nowhere,
        }
    }

    fn end(&self, number: usize) {
        self.0.landed(number as u64);
    }
}
