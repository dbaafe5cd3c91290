//! Where sessions begin: at a Unix socket for the users of this host, and at a TCP port for others,
//! who know the key. Each has a thread.

use crate::data::{Bell, Newcomers};
use crate::guest::Guest;
use crate::log;
use fam::files::Address;
use fam::meeting::{key_path, socket_name};
use fam::{Failure, FamError, Result};
use openlapi::base::open_files;
use openlapi_session::{Arrived, Error, Listener, Routes, Settings, key_file};
use rustix::process::{Resource, getrlimit};
use std::collections::{HashMap, VecDeque};
use std::net::ToSocketAddrs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The most sessions that are opened at a time, of a user of this host, and of other hosts.
const MOST_OF_USER: usize = 32;
const MOST_OF_HOSTS: usize = 128;
/// The most of a user that wait for one of these to be open: all programs of a job begin at a time.
/// Fewer where that would be more than a quarter of the files that the daemon may open.
const MOST_WAITING: usize = 4096;
/// How many open files the daemon wants. Each session takes some.
const FILES: u64 = 1 << 16;
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
    // Where the system allows fewer, fewer programs are served at a time.
    let _ = open_files::allow(FILES);
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
pub struct Opening(Arc<Mutex<HashMap<Option<u32>, OfUser>>>);

#[derive(Default)]
struct OfUser {
    /// How many threads open sessions.
    threads: usize,
    waiting: VecDeque<Arrived>,
}

impl Opening {
    /// One more of a user, who gets it back where it is to be opened at once; otherwise it waits
    /// until [`Self::next`] gives it.
    fn begin(&self, user: Option<u32>, arrived: Arrived) -> Option<Arrived> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_user = all.entry(user).or_default();
        if of_user.threads < if user.is_some() { MOST_OF_USER } else { MOST_OF_HOSTS } {
            of_user.threads += 1;
            return Some(arrived);
        }
        let files = getrlimit(Resource::Nofile).current.map_or(usize::MAX, |files| files as usize);
        if of_user.waiting.len() < MOST_WAITING.min(files / 4) {
            of_user.waiting.push_back(arrived);
        } else {
            log::line(&format!("too many programs of user {user:?} connect at a time"));
        }
        None
    }

    /// A thread could not begin. Where the user has no other one, what waits is refused.
    fn give_up(&self, user: Option<u32>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(of_user) = all.get_mut(&user) else { return };
        of_user.threads -= 1;
        if of_user.threads == 0 {
            let count = of_user.waiting.len();
            all.remove(&user);
            if count != 0 {
                log::line(&format!("{count} programs of user {user:?} are refused: there is no thread"));
            }
        }
    }

    /// The next one of a user, in the place of one that is open. `None`: a thread ends.
    fn next(&self, user: Option<u32>) -> Option<Arrived> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_user = all.get_mut(&user)?;
        let next = of_user.waiting.pop_front();
        if next.is_none() {
            of_user.threads -= 1;
            if of_user.threads == 0 {
                all.remove(&user);
            }
        }
        next
    }
}

/// Accepts sessions for ever. Threads open them: opening waits for the peer. After the bell's end
/// who arrives learns at once that there is no session.
pub fn accept(mut listener: Listener, newcomers: &Newcomers, bell: &Bell, opening: &Opening) {
    loop {
        match listener.next(None) {
            Ok(Some(_)) if bell.has_ended() => {}
            Ok(Some(arrived)) => {
                let user = arrived.user().map(|user| user.uid);
                let Some(arrived) = opening.begin(user, arrived) else { continue };
                let (newcomers, bell, all) = (newcomers.clone(), bell.clone(), opening.clone());
                let begun = std::thread::Builder::new().name("open".to_owned()).spawn(move || {
                    let mut next = Some(arrived);
                    while let Some(arrived) = next {
                        open(arrived, &newcomers, &bell);
                        next = all.next(user);
                    }
                });
                if let Err(error) = begun {
                    log::line(&format!("no session: {error}"));
                    opening.give_up(user);
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
    if bell.has_ended() {
        return;
    }
    // A session has its own receiver.
    let guest = Arc::new(Guest::default());
    arrived.set_receiver(guest.clone());
    match arrived.open() {
        Ok(session) => {
            let mut newcomers = newcomers.lock().unwrap_or_else(PoisonError::into_inner);
            // The loop takes them for the last time after that.
            if !bell.has_ended() {
                newcomers.push((session, guest));
                bell.ring();
            }
        }
        Err(error) => log::line(&format!("no session: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openlapi_session::connect_unix_of_any_user;

    #[test]
    fn who_comes_after_the_end_does_not_wait() {
        let name = format!("openfamd-listen-{}", std::process::id());
        let settings = Settings { patience: Duration::from_secs(100), ..settings() };
        let listener = Listener::unix_of_any_user(&name, &settings).expect("a listener");
        let bell = Bell::new().expect("a bell");
        bell.end();
        std::thread::spawn(move || accept(listener, &Newcomers::default(), &bell, &Opening::default()));
        let refused = connect_unix_of_any_user(&name, &settings).expect_err("no session");
        assert!(!matches!(refused, Error::Late(_)), "{refused}");
    }
}
