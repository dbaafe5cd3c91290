//! One client, by standard input and output.

use crate::log;
use crate::pool::Pool;
use openlapi::wire::bytes::cut;
use openlapi_session::{Error, Message, Session, Settings, accept};
use rpmem::wire::{Answer, MOST_LANES, NO_LANE, Request, VERSION, WHOLE};
use rpmem::{Attributes, Failure, Result};
use std::fs::OpenOptions;
use std::num::NonZero;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{PoisonError, RwLock};
use std::thread::Builder;
use std::time::Duration;

/// How long opening the session may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many threads at least serve a pool that msync makes durable: they wait for the disk, which
/// serves several at once sooner than one after the other.
const WAITING: usize = 16;

/// The longest text of a failure that a client gets, in bytes. A set file may have any words.
const LONGEST_TEXT: usize = 4096;

/// Opens a session by standard input and output, and the pool that the client asks for; serves
/// until the client closes it or is lost.
///
/// # Errors
/// ECONNABORTED: there is no session. EPROTO: the client asks for something else. What fails at the
/// end of the pool.
pub fn serve(folder: &Path, threads: Option<usize>) -> Result<()> {
    let (read, write) = channel()?;
    let settings = Settings { patience: PATIENCE, longest: WHOLE, ..Settings::default() };
    let session = accept(read, write, &settings)
        .map_err(|error| Failure::new(libc::ECONNABORTED, format!("no session: {error}")))?;
    let request = match session.receive(None) {
        Ok(Some(message)) => message,
        Ok(None) | Err(_) => {
            return Err(Failure::new(libc::ECONNABORTED, "the client has asked for nothing"));
        }
    };
    let Some(Request::Start { version, size, lanes, create }) = Request::decode(&request.header) else {
        return Err(Failure::new(libc::EPROTO, "the client does not start as one of librpmem"));
    };
    let opened = match version == VERSION {
        true => open(folder, &request.data, size, lanes, create),
        false => {
            let text = format!("the client has version {version} of the protocol, and the daemon {VERSION}");
            Err(Failure::new(libc::EPROTONOSUPPORT, text))
        }
    };
    let (pool, answer, text) = match opened {
        Ok(pool) => {
            let (base, has_header, attributes) = (pool.base(), pool.has_header(), pool.attributes());
            (
                Some(pool),
                Answer::Started { version: VERSION, errno: 0, base, has_header, attributes },
                String::new(),
            )
        }
        Err(Failure { errno, text }) => {
            log::error(&text);
            let attributes = Attributes::default();
            (None, Answer::Started { version: VERSION, errno, base: 0, has_header: false, attributes }, text)
        }
    };
    let waits = pool.as_ref().is_some_and(Pool::waits_for_disk);
    let pool = RwLock::new(pool);
    if session.send(&answer.encode(), cut(&text, LONGEST_TEXT).as_bytes()).is_ok() {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        let usual = if waits { WAITING.max(processors) } else { processors };
        let threads = threads.unwrap_or(usual).min(lanes.max(1) as usize);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let serving = Builder::new().name("serve".to_owned());
                if let Err(error) = serving.spawn_scoped(scope, || work(&session, &pool)) {
                    log::error(&format!("a thread cannot be started: {error}"));
                }
            }
        });
    }
    let _ = session.close();
    // A client that is lost leaves a pool that is whole: all that it was answered is durable.
    match pool.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(pool) => {
            log::notice("the client is lost; its pool is closed");
            pool.close()
        }
        None => Ok(()),
    }
}

fn open(folder: &Path, name: &[u8], size: u64, lanes: u32, create: Option<Attributes>) -> Result<Pool> {
    let name = str::from_utf8(name).map_err(|_| Failure::invalid("the name of the set is not UTF-8"))?;
    if lanes == 0 || lanes > MOST_LANES {
        return Err(Failure::invalid(format!("{lanes} lanes")));
    }
    match create {
        Some(attributes) => Pool::create(folder, name, size, lanes, attributes),
        None => Pool::open(folder, name, size, lanes),
    }
}

/// Serves until the session is over.
fn work(session: &Session, pool: &RwLock<Option<Pool>>) {
    loop {
        let message = match session.receive(None) {
            Ok(Some(message)) => message,
            Ok(None) => continue,
            Err(Error::Closed) => return,
            Err(error) => return log::notice(&error.to_string()),
        };
        if let Some((lane, done)) = handle(&message, pool) {
            let (errno, text) = match done {
                Ok(()) => (0, String::new()),
                Err(failure) => (failure.errno, failure.text),
            };
            if errno != 0 {
                log::error(&text);
            }
            let text = cut(&text, LONGEST_TEXT).as_bytes();
            let answer = Answer::Done { lane, errno }.encode();
            // The end of the session waits for what was sent, and not for what was posted: after
            // the answer to a close the client ends it. One that is gone is seen by the next
            // receive.
            let _ = match lane {
                NO_LANE => session.send(&answer, text),
                _ => session.post(&answer, text),
            };
        }
    }
}

/// Does what a message asks for. Returns what is to be answered, and to which lane.
fn handle(message: &Message, pool: &RwLock<Option<Pool>>) -> Option<(u32, Result<()>)> {
    let request = Request::decode(&message.header);
    if request == Some(Request::Close) {
        let pool = pool.write().unwrap_or_else(PoisonError::into_inner).take();
        return Some((NO_LANE, pool.map_or_else(|| Err(no_pool()), Pool::close)));
    }
    let pool = pool.read().unwrap_or_else(PoisonError::into_inner);
    let Some(pool) = pool.as_ref() else {
        // No flush has an answer.
        let is_flush = matches!(request, Some(Request::Flush { .. }));
        return (!is_flush).then(|| (NO_LANE, Err(no_pool())));
    };
    match request {
        Some(Request::Persist { lane, range, depth }) => {
            Some((lane, pool.persist(range, &message.data, depth)))
        }
        Some(Request::Flush { lane, range }) => {
            pool.flush(lane, range, &message.data).map(|done| (lane, done))
        }
        Some(Request::Drain { lane, flushes }) => pool.drain(lane, flushes).map(|done| (lane, done)),
        Some(Request::SetAttributes(attributes)) => Some((NO_LANE, pool.set_attributes(attributes))),
        _ => Some((NO_LANE, Err(Failure::new(libc::EPROTO, "a message that is none of librpmem's")))),
    }
}

fn no_pool() -> Failure {
    Failure::new(libc::EBADF, "the pool is closed")
}

/// Standard input and output, for the session alone: what else writes there writes to nothing.
fn channel() -> Result<(OwnedFd, OwnedFd)> {
    let failed = |what: &'static str| move |error: std::io::Error| Failure::system(what)(error);
    let read = std::io::stdin().as_fd().try_clone_to_owned().map_err(failed("standard input"))?;
    let write = std::io::stdout().as_fd().try_clone_to_owned().map_err(failed("standard output"))?;
    let null = OpenOptions::new().read(true).write(true).open("/dev/null").map_err(failed("/dev/null"))?;
    rustix::stdio::dup2_stdin(&null)
        .and_then(|()| rustix::stdio::dup2_stdout(&null))
        .map_err(|error| Failure::system("/dev/null")(error.into()))?;
    Ok((read, write))
}

#[cfg(test)]
mod tests;
