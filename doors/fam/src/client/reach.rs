//! How a daemon is reached: on this host by a Unix socket, whose other end the kernel names; on
//! another one by TCP, with the key.

use super::pending::{self, Table};
use crate::error::{Failure, FamError, Result};
use crate::files::Address;
use crate::meeting;
use crate::wire::Message;
use openlapi_runtime::{console, environment};
use openlapi_session::{
    Error, Place, Receiver, Session, Settings, connect_tcp, connect_unix_of_any_user, key_file,
};
use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::Arc;

/// Opens a session with the daemon that listens at an address; the table gets what it replies.
///
/// # Errors
/// [`FamError::RpcClientNotFound`]: no daemon listens there. [`FamError::NoPerm`]: the key is
/// another one, or there is none. [`FamError::Rpc`].
pub fn reach(address: &Address, table: &Arc<Table>) -> Result<Session> {
    let config = environment::config().map_err(|error| FamError::Invalid.because(error.to_string()))?;
    let settings = Settings {
        config,
        log: openlapi::error::Log::new(console::log),
        receiver: Some(Arc::new(Replies(table.clone()))),
        ..Settings::default()
    };
    let failed = |error: Error| failure(address, &error);
    let places = (address.host.as_str(), address.port).to_socket_addrs();
    let unknown = |error| FamError::RpcClientNotFound.because(format!("the host {}: {error}", address.host));
    let places: Vec<SocketAddr> = places.map_err(unknown)?.collect();
    // An address of this host is one that a socket can have.
    if places.iter().any(|place| UdpSocket::bind((place.ip(), 0)).is_ok()) {
        return connect_unix_of_any_user(&meeting::socket_name(address.port), &settings).map_err(failed);
    }
    let key = key_file(meeting::key_path()).map_err(failed)?;
    let mut last = FamError::RpcClientNotFound.because(format!("the host {} has no address", address.host));
    for place in places {
        match connect_tcp(place, key, &settings) {
            Ok(session) => return Ok(session),
            Err(error) => last = failed(error),
        }
    }
    Err(last)
}

fn failure(address: &Address, error: &Error) -> Failure {
    let code = match error {
        Error::WrongKey | Error::Key(_) | Error::OtherUser(_) => FamError::NoPerm,
        Error::System(_, system)
            if matches!(
                system.kind(),
                ErrorKind::ConnectionRefused
                    | ErrorKind::NotFound
                    | ErrorKind::TimedOut
                    | ErrorKind::HostUnreachable
                    | ErrorKind::NetworkUnreachable
            ) =>
        {
            FamError::RpcClientNotFound
        }
        _ => FamError::Rpc,
    };
    code.because(format!("the daemon at {address}: {error}"))
}

/// What daemons reply, as it arrives.
struct Replies(Arc<Table>);

// SAFETY: memory of the program is given by its calls until they are complete, and of the table's
// own each operation has its piece. Operations of the connection end with the session, before the
// program's calls return.
unsafe impl Receiver for Replies {
    fn begin(&self, header: &[u8], length: usize, _: Option<&[u8]>) -> Place {
        let Some(message) = Message::decode(header) else { return Place::Nowhere };
        match self.0.arriving(&message, length) {
            // The operation's number fits: a process has fewer bits of memory than operations.
            pending::Place::Memory(memory) => Place::At(memory.at, message.number() as usize),
            pending::Place::Nowhere | pending::Place::Refused => Place::Nowhere,
        }
    }

    fn end(&self, number: usize) {
        self.0.landed(number as u64);
    }
}
