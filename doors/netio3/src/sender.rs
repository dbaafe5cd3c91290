//! A connection, and the messages that are under way on it.

use crate::frame::{self, BEFORE};
use crate::slots::{LENGTH, SLOTS, Slots};
use openlapi_session::{Error, Session, Settings, connect_tcp, connect_unix, key_file};
use std::collections::VecDeque;
use std::net::ToSocketAddrs;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What has become of a message that was to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Status {
    /// The message is under way.
    Ok = 0,
    /// All slots are in use, or as many messages have been sent after one that has not ended.
    NoResources = 1,
    /// The message cannot be sent: [`Connection::send`].
    Failed = 2,
}

/// A connection to a side that receives.
pub struct Connection {
    /// `None`: it is over.
    session: Option<Session>,
    /// Why.
    why: String,
    /// The messages that have not ended, in the order in which they were sent: number and slot.
    under_way: VecDeque<(u64, Arc<Slots>, usize)>,
    /// Keys of messages that do not end any more.
    lost: Vec<(Arc<Slots>, u64)>,
    number: u64,
    longest: u64,
    patience: Duration,
}

/// Opens the channel of an address: `unix:PATH`, or `tcp:HOST:PORT` with a key file.
fn open(address: &str, key: Option<&str>, settings: &Settings) -> Result<Session, String> {
    let failed = |error: Error| error.to_string();
    match address.split_once(':') {
        Some(("unix", path)) => connect_unix(path, settings).map_err(failed),
        Some(("tcp", place)) => {
            let key = key_file(key.ok_or("tcp: wants a key file")?).map_err(failed)?;
            let found = place.to_socket_addrs().map_err(|error| format!("{place}: {error}"))?;
            let mut last = format!("{place}: no address");
            for at in found {
                match connect_tcp(at, key, settings) {
                    Ok(session) => return Ok(session),
                    Err(error) => last = error.to_string(),
                }
            }
            Err(last)
        }
        _ => Err(format!("{address:?} is neither unix:PATH nor tcp:HOST:PORT")),
    }
}

impl Connection {
    /// Connects, and learns how long messages may be.
    ///
    /// # Errors
    /// Why there is no connection.
    pub fn open(address: &str, key: Option<&str>, settings: &Settings) -> Result<Self, String> {
        let until = Instant::now() + settings.patience;
        let session = open(address, key, settings)?;
        let hello = session.receive(Some(until)).map_err(|error| error.to_string())?;
        let longest = frame::read_hello(&hello.ok_or("the other side says nothing")?.data)?;
        let (under_way, lost, patience) = (VecDeque::new(), Vec::new(), settings.patience);
        let (session, why) = (Some(session), "this side has closed the connection".to_owned());
        Ok(Self { session, why, under_way, lost, number: 0, longest, patience })
    }

    /// Starts to send a header and pieces of data behind it.
    ///
    /// # Errors
    /// Why it failed: the header is longer than a slot, the message than the other side takes, or
    /// the connection is over.
    ///
    /// # Safety
    /// The pieces are readable, and do not change until the message has ended or the connection is
    /// over.
    pub unsafe fn send(
        &mut self,
        slots: &Arc<Slots>,
        pieces: &[(*const u8, usize)],
        header: &[u8],
        key: u64,
    ) -> Result<Status, String> {
        let Some(session) = &self.session else { return Err(self.why.clone()) };
        if header.len() > LENGTH {
            return Err(format!("a header of {} bytes; a slot has {LENGTH}", header.len()));
        }
        let length = pieces.iter().try_fold(header.len(), |sum, piece| sum.checked_add(piece.1));
        if length.is_none_or(|length| length as u64 > self.longest) {
            return Err(format!("the message is longer than the other side takes: {} bytes", self.longest));
        }
        // The other side keeps as many that have passed an earlier one.
        if self.under_way.front().is_some_and(|(oldest, ..)| self.number - oldest >= SLOTS as u64) {
            return Ok(Status::NoResources);
        }
        let Some((slot, at, ended)) = slots.take(key, header) else { return Ok(Status::NoResources) };
        let all: Vec<(*const u8, usize)> = [(at, header.len())].iter().chain(pieces).copied().collect();
        let before: [u8; BEFORE] = frame::before(self.number, header.len());
        // SAFETY: the caller's promise for the data; the slots live until the operation has ended:
        // `under_way` has a reference, and is dropped after the session.
        match unsafe { session.send_pieces(&before, &all, ended) } {
            Ok(()) => {
                self.under_way.push_back((self.number, slots.clone(), slot));
                self.number += 1;
                Ok(Status::Ok)
            }
            Err(error) => {
                slots.end(slot);
                slots.release(slot as u64);
                self.note(&error);
                Err(error.to_string())
            }
        }
    }

    /// Takes the slot of a message that has ended: the other side has all of it.
    pub fn completed(&mut self) -> Option<usize> {
        let at = self.under_way.iter().position(|(_, slots, slot)| slots.has_ended(*slot))?;
        let (_, slots, slot) = self.under_way.remove(at)?;
        slots.end(slot);
        Some(slot)
    }

    /// The keys of the messages that have not ended, in the order in which they were sent.
    pub fn pending(&self, of: &Arc<Slots>) -> Vec<u64> {
        let lost = self.lost.iter().filter(|(slots, _)| Arc::ptr_eq(slots, of)).map(|(_, key)| *key);
        let own = self
            .under_way
            .iter()
            .filter(|(_, slots, slot)| Arc::ptr_eq(slots, of) && !slots.has_ended(*slot));
        lost.chain(own.filter_map(|(_, slots, slot)| slots.key(*slot))).collect()
    }

    /// Makes progress.
    ///
    /// # Errors
    /// How the connection has ended.
    pub fn progress(&mut self) -> Result<(), String> {
        let session = self.session.as_ref().ok_or_else(|| self.why.clone())?;
        let mut moved = session.progress();
        while let Ok(true) = moved {
            moved = session.progress();
        }
        let foreign = session.take().map(|_| Error::Forged("the other side has sent a message"));
        match moved.err().or(foreign) {
            None => Ok(()),
            Some(error) => {
                self.note(&error);
                Err(error.to_string())
            }
        }
    }

    /// Whether the event loop may sleep on the descriptor.
    ///
    /// # Errors
    /// How the connection has ended.
    pub fn arm(&mut self) -> Result<bool, String> {
        let session = self.session.as_ref().ok_or_else(|| self.why.clone())?;
        session.arm().map_err(|error| {
            self.note(&error);
            error.to_string()
        })
    }

    /// The descriptor of an event loop, while the connection is open.
    pub fn descriptor(&self) -> Option<i32> {
        self.session.as_ref().map(|session| session.as_fd().as_raw_fd())
    }

    /// Waits until all messages have ended, and closes the connection in order.
    ///
    /// # Errors
    /// Why some have not.
    pub fn close(&mut self) -> Result<(), String> {
        let Some(session) = &self.session else { return Ok(()) };
        let ended = || self.under_way.iter().all(|(_, slots, slot)| slots.has_ended(*slot));
        let waited = session.wait(Some(Instant::now() + self.patience), ended);
        let closed = match waited {
            Ok(true) => self.session.take().map_or(Ok(()), Session::close).map_err(|error| error.to_string()),
            Ok(false) => Err("the other side has not taken all messages in time".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        self.over();
        closed
    }

    /// The memory of these slots' messages is not used any more: where some are under way, that
    /// ends the connection.
    pub fn abandon(&mut self, of: &Arc<Slots>) {
        if self.under_way.iter().any(|(_, slots, slot)| Arc::ptr_eq(slots, of) && !slots.has_ended(*slot)) {
            self.over();
        }
        self.under_way.retain(|(_, slots, slot)| {
            let stays = !Arc::ptr_eq(slots, of);
            if !stays {
                slots.end(*slot);
                slots.release(*slot as u64);
            }
            stays
        });
    }

    /// A session that has ended is over, and uses no memory any more.
    fn note(&mut self, error: &Error) {
        if !matches!(error, Error::Core(_)) {
            self.why = error.to_string();
            self.over();
        }
    }

    /// The connection ends. Messages that have not ended do not end any more: their slots are free.
    fn over(&mut self) {
        // The session reads the slots until it is dropped.
        self.session = None;
        let (ended, lost): (VecDeque<_>, VecDeque<_>) =
            self.under_way.drain(..).partition(|(_, slots, slot)| slots.has_ended(*slot));
        self.under_way = ended;
        for (_, slots, slot) in lost {
            slots.end(slot);
            if let Some(key) = slots.release(slot as u64) {
                self.lost.push((slots, key));
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.session = None;
        for (_, slots, slot) in self.under_way.drain(..) {
            slots.end(slot);
            slots.release(slot as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openlapi_session::Listener;

    /// Endpoints that share the slots may use one as soon as it is free.
    #[test]
    fn slots_are_free_when_the_session_is_over() {
        let path = std::env::temp_dir().join(format!("netio3-over-{}", std::process::id()));
        let settings = Settings { patience: Duration::from_secs(60), ..Settings::default() };
        let mut listener = Listener::unix(&path, &settings).expect("a listener");
        for _ in 0..8 {
            let (mut connection, peer) = std::thread::scope(|scope| {
                let address = format!("unix:{}", path.display());
                let settings = &settings;
                let caller = scope.spawn(move || Connection::open(&address, None, settings));
                let late = Some(Instant::now() + Duration::from_secs(300));
                let peer = listener.accept(late).expect("a session").expect("in time");
                peer.send(b"", &frame::hello(100)).and_then(|()| peer.fence()).expect("an open session");
                (caller.join().expect("a caller").expect("a connection"), peer)
            });
            let slots = Arc::new(Slots::new());
            for key in 0..SLOTS as u64 {
                // SAFETY: there is no data.
                let sent = unsafe { connection.send(&slots, &[], b"header", key) };
                assert_eq!(sent, Ok(Status::Ok));
            }
            connection.patience = Duration::from_millis(1);
            std::thread::scope(|scope| {
                let sharer = scope.spawn(|| {
                    while slots.take(0, b"other").is_none() {
                        std::hint::spin_loop();
                    }
                    peer.progress()
                });
                connection.close().expect_err("the peer takes nothing");
                let seen = sharer.join().expect("a sharer");
                assert!(matches!(seen, Err(Error::Lost(_))), "{seen:?}");
            });
        }
    }
}
