//! How a daemon is reached: on this host by a Unix socket of an abstract name, elsewhere by TCP and
//! the key file.

use crate::error::{Failure, FamError, Result};
use crate::files::Address;
use crate::meeting::{check_user, key_path, socket_name};
use openlapi_session::{Error, Session, Settings, connect_tcp, connect_unix_of_any_user, key_file};
use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};

/// Opens a session with the daemon at an address.
///
/// # Errors
/// [`FamError::RpcClientNotFound`]: there is no daemon. [`FamError::NoPerm`]: it does not know this
/// user's key, or there is none; or it is a user's who is not expected ([`check_user`]).
/// [`FamError::Rpc`].
pub fn reach(address: &Address, settings: &Settings) -> Result<Session> {
    let failed = |error: &dyn std::fmt::Display| {
        FamError::RpcClientNotFound.because(format!("no daemon at {address}: {error}"))
    };
    let resolved = (address.host.as_str(), address.port).to_socket_addrs();
    let all: Vec<SocketAddr> = resolved.map_err(|error| failed(&error))?.collect();
    // Only an address of this host can be bound.
    let is_here = all.iter().any(|one| UdpSocket::bind((one.ip(), 0)).is_ok());
    if is_here {
        match connect_unix_of_any_user(&socket_name(address.port), settings) {
            // One of another network namespace, by a port that was forwarded.
            Err(Error::System(_, error)) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(error) => return Err(failure(address, &error)),
            Ok(session) => {
                session.user().map_or(Ok(()), |user| check_user(user.uid))?;
                return Ok(session);
            }
        }
    }
    let key = match key_file(key_path()) {
        Ok(key) => key,
        Err(error) if is_here => return Err(failed(&error)),
        Err(error) => return Err(FamError::NoPerm.because(format!("the daemon at {address}: {error}"))),
    };
    let mut last = failed(&"the name has no address");
    for one in all {
        match connect_tcp(one, key, settings) {
            Ok(session) => return Ok(session),
            Err(error) => last = failure(address, &error),
        }
    }
    Err(last)
}

/// What a program learns of a session that does not begin, or has ended.
pub fn failure(address: &Address, error: &Error) -> Failure {
    let code = match error {
        Error::System(..) | Error::Stranger => FamError::RpcClientNotFound,
        Error::WrongKey | Error::OtherUser(_) | Error::Key(_) => FamError::NoPerm,
        Error::Late(_) => FamError::Timeout,
        Error::Limit(_) => FamError::Resource,
        _ => FamError::Rpc,
    };
    code.because(format!("the daemon at {address}: {error}"))
}
