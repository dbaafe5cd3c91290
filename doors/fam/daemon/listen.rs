//! Where sessions begin: at a Unix socket for the users of this host, and at a TCP port for others,
//! who know the key. Each has a thread, since opening a session waits for the peer.

use crate::data::{Bell, Newcomers};
use crate::guest::Guest;
use crate::log;
use fam::files::Address;
use fam::meeting::{key_path, socket_name};
use fam::{Failure, FamError, Result};
use openlapi_session::{Error, Listener, Routes, Settings, key_file};
use std::net::ToSocketAddrs;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// After a failure of the listener itself.
const PAUSE: Duration = Duration::from_millis(100);

/// How sessions with programs are opened: these may send messages and nothing else.
fn settings() -> Settings {
    Settings {
        routes: Routes(Routes::SHARED_MEMORY.0 | Routes::UDP.0),
        patience: Duration::from_secs(5),
        guarded: true,
        ..Settings::default()
    }
}

fn failed(address: &Address) -> impl Fn(Error) -> Failure {
    move |error| FamError::Rpc.because(format!("cannot listen at {address}: {error}"))
}

/// Listens at an address.
///
/// # Errors
/// [`FamError::Rpc`]: another daemon listens there, for example.
pub fn listen(address: &Address) -> Result<Vec<Listener>> {
    let name = socket_name(address.port);
    let mut all = vec![Listener::unix_of_any_user(&name, &settings()).map_err(failed(address))?];
    match key_file(key_path()) {
        Ok(key) => {
            let resolved = (address.host.as_str(), address.port).to_socket_addrs();
            let at = resolved.ok().and_then(|mut all| all.next());
            let at = at.ok_or_else(|| FamError::Rpc.because(format!("{address} has no address")))?;
            all.push(Listener::tcp(at, key, &settings()).map_err(failed(address))?);
        }
        Err(error) => log::line(&format!("for programs of this host alone: {error}")),
    }
    Ok(all)
}

/// Accepts sessions for ever.
pub fn accept(mut listener: Listener, newcomers: &Newcomers, bell: &Bell) {
    loop {
        // A session has its own receiver.
        let guest = Arc::new(Guest::default());
        listener.set_receiver(guest.clone());
        match listener.accept(None) {
            Ok(Some(session)) => {
                newcomers.lock().unwrap_or_else(PoisonError::into_inner).push((session, guest));
                bell.ring();
            }
            Ok(None) => {}
            Err(error) => {
                log::line(&format!("no session: {error}"));
                if matches!(error, Error::Limit(_) | Error::System(..)) {
                    std::thread::sleep(PAUSE);
                }
            }
        }
    }
}
