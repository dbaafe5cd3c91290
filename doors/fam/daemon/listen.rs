//! Where sessions begin: at a Unix socket for the users of this host, and at a TCP port for others,
//! who know the key. Each has a thread.

use crate::data::{Bell, Newcomers};
use crate::guest::Guest;
use crate::log;
use fam::files::Address;
use fam::meeting::{key_path, socket_name};
use fam::{Failure, FamError, Result};
use openlapi_session::{Arrived, Error, Listener, Routes, Settings, key_file};
use std::collections::HashMap;
use std::net::ToSocketAddrs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The most sessions that are opened at a time, of a user of this host, and of other hosts.
const MOST_OF_USER: usize = 32;
const MOST_OF_HOSTS: usize = 128;
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

/// Sessions that are being opened, by user; programs of other hosts are one user here.
#[derive(Clone, Default)]
pub struct Opening(Arc<Mutex<HashMap<Option<u32>, usize>>>);

impl Opening {
    /// One more of a user; `false`: there are too many.
    fn begin(&self, user: Option<u32>) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = all.entry(user).or_default();
        let may = *count < if user.is_some() { MOST_OF_USER } else { MOST_OF_HOSTS };
        *count += usize::from(may);
        may
    }

    fn end(&self, user: Option<u32>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = all.get_mut(&user) {
            *count -= 1;
            if *count == 0 {
                all.remove(&user);
            }
        }
    }
}

/// Accepts sessions for ever. Each is opened in a thread of its own: opening waits for the peer.
pub fn accept(mut listener: Listener, newcomers: &Newcomers, bell: &Bell, opening: &Opening) {
    loop {
        match listener.next(None) {
            Ok(Some(arrived)) => {
                let user = arrived.user().map(|user| user.uid);
                if !opening.begin(user) {
                    log::line(&format!("too many programs of user {user:?} connect at a time"));
                    continue;
                }
                let (newcomers, bell, all) = (newcomers.clone(), bell.clone(), opening.clone());
                let begun = std::thread::Builder::new().name("open".to_owned()).spawn(move || {
                    open(arrived, &newcomers, &bell);
                    all.end(user);
                });
                if let Err(error) = begun {
                    log::line(&format!("no session: {error}"));
                    opening.end(user);
                    std::thread::sleep(PAUSE);
                }
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

fn open(mut arrived: Arrived, newcomers: &Newcomers, bell: &Bell) {
    // A session has its own receiver.
    let guest = Arc::new(Guest::default());
    arrived.set_receiver(guest.clone());
    match arrived.open() {
        Ok(session) => {
            newcomers.lock().unwrap_or_else(PoisonError::into_inner).push((session, guest));
            bell.ring();
        }
        Err(error) => log::line(&format!("no session: {error}")),
    }
}
