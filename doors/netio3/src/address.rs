//! Where the two sides meet: at `unix:PATH`, or at `tcp:HOST:PORT` with a key file.

use crate::Result;
use openlapi_session::{Listener, Session, Settings, connect_tcp, connect_unix, key_file};
use std::net::{SocketAddr, ToSocketAddrs};

enum Place<'a> {
    Unix(&'a str),
    /// The addresses of the host, and the key.
    Tcp(Vec<SocketAddr>, [u8; 16]),
}

fn place<'a>(address: &'a str, key: &str) -> Result<Place<'a>> {
    match address.split_once(':') {
        Some(("unix", path)) => Ok(Place::Unix(path)),
        Some(("tcp", _)) if key.is_empty() => Err("tcp: wants a key file".into()),
        Some(("tcp", place)) => {
            let key = key_file(key)?;
            let found = place.to_socket_addrs().map_err(|error| format!("{place}: {error}"))?;
            Ok(Place::Tcp(found.collect(), key))
        }
        _ => Err(format!("{address:?} is neither unix:PATH nor tcp:HOST:PORT").into()),
    }
}

/// Opens a session with a side that listens at this address.
///
/// # Errors
/// Why there is none.
pub fn connect(address: &str, key: &str, settings: &Settings) -> Result<Session> {
    match place(address, key)? {
        Place::Unix(path) => Ok(connect_unix(path, settings)?),
        Place::Tcp(found, key) => {
            let (last, others) = found.split_last().ok_or("the host has no address")?;
            let opened = others.iter().find_map(|at| connect_tcp(*at, key, settings).ok());
            Ok(opened.map_or_else(|| connect_tcp(*last, key, settings), Ok)?)
        }
    }
}

/// Listens at this address: of a host at the first one of its addresses.
///
/// # Errors
/// Why that is not possible.
pub fn listen(address: &str, key: &str, settings: &Settings) -> Result<Listener> {
    match place(address, key)? {
        Place::Unix(path) => Ok(Listener::unix(path, settings)?),
        Place::Tcp(found, key) => {
            let at = found.first().ok_or("the host has no address")?;
            Ok(Listener::tcp(*at, key, settings)?)
        }
    }
}
