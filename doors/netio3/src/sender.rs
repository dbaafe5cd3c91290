//! A connection, and the messages that are under way on it.

use crate::Result;
use crate::address::connect;
use crate::frame::{self, SLOTS};
use libc::iovec;
use openlapi_session::{Error, Session, Settings};
use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// By how much a message that has ended has raised its counter.
const ENDED: i32 = 2;

/// A connection to a side that receives.
pub struct Connection {
    /// The session, or why it is over. It is dropped before the counters.
    session: std::result::Result<Session, String>,
    /// The messages whose end was not reported, in the order in which they were sent.
    under_way: VecDeque<Sent>,
    number: u64,
    longest: u64,
    patience: Duration,
}

struct Sent {
    number: u64,
    slot: i64,
    /// Raised by the session.
    counter: Box<AtomicI32>,
}

impl Sent {
    /// Whether the other side has all of it.
    fn has_ended(&self) -> bool {
        self.counter.load(Ordering::Acquire) >= ENDED
    }
}

impl Connection {
    /// Connects, and waits for the hello.
    ///
    /// # Errors
    /// Why there is no connection.
    pub fn open(address: &str, key: &str, settings: &Settings) -> Result<Self> {
        let until = Instant::now() + settings.patience;
        let session = connect(address, key, settings)?;
        let hello = session.receive(Some(until))?.ok_or("the other side says nothing")?;
        let longest = frame::read_hello(&hello.data)?;
        let (session, under_way, patience) = (Ok(session), VecDeque::new(), settings.patience);
        Ok(Self { session, under_way, number: 0, longest, patience })
    }

    /// Starts to send a message, whose first piece is the header; [`Self::completed`] returns the
    /// slot. Returns whether it is under way; `false`: as many as may be have been sent after one
    /// that has not ended.
    ///
    /// # Errors
    /// Why it failed: the message is longer than the other side takes, or the connection is over.
    ///
    /// # Safety
    /// The pieces are readable, and do not change until the message has ended or the connection is
    /// over.
    pub unsafe fn send(&mut self, pieces: &[iovec], slot: i64) -> Result<bool> {
        let session = self.session.as_ref().map_err(String::clone)?;
        let length = pieces.iter().try_fold(0_usize, |sum, piece| sum.checked_add(piece.iov_len));
        if length.is_none_or(|length| length as u64 > self.longest) {
            return Err(format!("the other side takes messages of at most {} bytes", self.longest).into());
        }
        // The other side keeps as many that have passed an earlier one.
        if self.under_way.front().is_some_and(|oldest| self.number - oldest.number >= SLOTS as u64) {
            return Ok(false);
        }
        let before = frame::before(self.number, pieces.first().map_or(0, |header| header.iov_len));
        let pieces: Vec<_> =
            pieces.iter().map(|piece| (piece.iov_base.cast_const().cast(), piece.iov_len)).collect();
        let sent = Sent { number: self.number, slot, counter: Box::default() };
        // SAFETY: the caller's promise for the pieces; `under_way` has the counter until the
        // message has ended, or the session.
        match unsafe { session.send_pieces(&before, &pieces, &raw const *sent.counter) } {
            // It may be sent again.
            Err(error @ Error::Core(_)) => return Err(error.into()),
            sent => self.outcome(sent)?,
        }
        self.under_way.push_back(sent);
        self.number += 1;
        Ok(true)
    }

    /// Takes the slot of a message that has ended: the other side has all of it.
    pub fn completed(&mut self) -> Option<i64> {
        let at = self.under_way.iter().position(Sent::has_ended)?;
        self.under_way.remove(at).map(|sent| sent.slot)
    }

    /// Makes progress.
    ///
    /// # Errors
    /// How the connection has ended.
    pub fn progress(&mut self) -> Result<()> {
        let session = self.session.as_ref().map_err(String::clone)?;
        let mut moved = session.progress();
        while let Ok(true) = moved {
            moved = session.progress();
        }
        let foreign = session.take().map(|_| Error::Forged("the other side has sent a message"));
        let result = moved.and_then(|_| foreign.map_or(Ok(()), Err));
        self.outcome(result)
    }

    /// Whether the event loop may sleep on the descriptor.
    ///
    /// # Errors
    /// How the connection has ended.
    pub fn arm(&mut self) -> Result<bool> {
        let armed = self.session.as_ref().map_err(String::clone)?.arm();
        self.outcome(armed)
    }

    /// The descriptor of an event loop, while the connection is open.
    pub fn descriptor(&self) -> Option<i32> {
        self.session.as_ref().ok().map(|session| session.as_fd().as_raw_fd())
    }

    /// Waits until all messages have ended, and closes the connection in order.
    ///
    /// # Errors
    /// Why some have not.
    pub fn close(&mut self) -> Result<()> {
        let have_ended = || self.under_way.iter().all(Sent::has_ended);
        let own = Err("this side has closed the connection".to_owned());
        let session = match std::mem::replace(&mut self.session, own) {
            Ok(session) => session,
            Err(_) if have_ended() => return Ok(()),
            Err(why) => return Err(why.into()),
        };
        match session.wait(Some(Instant::now() + self.patience), have_ended)? {
            true => Ok(session.close()?),
            false => Err("the other side has not taken all messages in time".into()),
        }
    }

    /// Nothing is read of messages any more: where some are under way, that ends the connection.
    pub fn abandon(&mut self) {
        self.under_way.retain(|sent| !sent.has_ended());
        if self.session.is_ok() && !self.under_way.is_empty() {
            self.session = Err("this side has ended the connection".to_owned());
        }
    }

    /// The result of a call of the session, which ends when that has failed.
    fn outcome<T>(&mut self, result: std::result::Result<T, Error>) -> Result<T> {
        if let Err(error) = &result {
            self.session = Err(error.to_string());
        }
        Ok(result?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openlapi_session::Listener;

    /// Memory that was sent may be used again as soon as `close` has returned.
    #[test]
    fn a_connection_is_over_when_it_cannot_be_closed_in_time() {
        let path = std::env::temp_dir().join(format!("netio3-over-{}", std::process::id()));
        let settings = Settings { patience: Duration::from_secs(60), ..Settings::default() };
        let mut listener = Listener::unix(&path, &settings).expect("a listener");
        let (mut connection, peer) = std::thread::scope(|scope| {
            let address = format!("unix:{}", path.display());
            let open = move || Connection::open(&address, "", &settings).expect("a connection");
            let caller = scope.spawn(open);
            let late = Some(Instant::now() + Duration::from_secs(300));
            let peer = listener.accept(late).expect("a session").expect("in time");
            peer.send(b"", &frame::hello(100)).and_then(|()| peer.fence()).expect("an open session");
            (caller.join().expect("a caller"), peer)
        });
        let header = [iovec { iov_base: c"header".as_ptr().cast_mut().cast(), iov_len: 6 }];
        for slot in 0..=SLOTS {
            // SAFETY: the header is static.
            let sent = unsafe { connection.send(&header, slot as i64) }.expect("an open session");
            assert_eq!(sent, slot < SLOTS);
        }
        connection.patience = Duration::from_millis(1);
        connection.close().expect_err("the peer takes nothing");
        let seen = peer.progress();
        assert!(matches!(seen, Err(Error::Lost(_))), "{seen:?}");
        connection.close().expect_err("some have not ended");
    }
}
