//! The side that receives: a listener, and its connections.

use crate::frame::{self, Order, Whole};
use openlapi_session::{Error, Listener, Session, Settings, key_file};
use std::net::ToSocketAddrs;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Instant;

/// A listener at an address: `unix:PATH`, or `tcp:HOST:PORT` with a key file.
///
/// # Errors
/// Why there is none.
pub fn listen(address: &str, key: Option<&str>, settings: &Settings) -> Result<Listener, String> {
    let failed = |error: Error| error.to_string();
    match address.split_once(':') {
        Some(("unix", path)) => Listener::unix(path, settings).map_err(failed),
        Some(("tcp", place)) => {
            let key = key_file(key.ok_or("tcp: wants a key file")?).map_err(failed)?;
            let mut found = place.to_socket_addrs().map_err(|error| format!("{place}: {error}"))?;
            let at = found.next().ok_or_else(|| format!("{place}: no address"))?;
            Listener::tcp(at, key, settings).map_err(failed)
        }
        _ => Err(format!("{address:?} is neither unix:PATH nor tcp:HOST:PORT")),
    }
}

/// A connection of a side that sends.
pub struct Receiver {
    session: Session,
    order: Order,
    /// The message that was handed out last.
    out: Option<Whole>,
}

/// What a wait for a message has found.
#[derive(Debug)]
pub enum Received<'a> {
    /// A message.
    Message(&'a Whole),
    /// None by the deadline.
    None,
    /// The other side has closed the connection, and all was taken.
    Closed,
}

impl Receiver {
    /// Begins with the hello, which the other side waits for. What that has not taken until this
    /// time it gets with the next calls.
    ///
    /// # Errors
    /// Why there is no connection.
    pub fn new(session: Session, longest: usize, until: Instant) -> Result<Self, Error> {
        session.send(b"", &frame::hello(longest as u64))?;
        session.fence_until(Some(until))?;
        Ok(Self { session, order: Order::default(), out: None })
    }

    /// Waits for the next message, which is the program's until the next call.
    ///
    /// # Errors
    /// How the connection has ended.
    pub fn receive(&mut self, deadline: Option<Instant>) -> Result<Received<'_>, Error> {
        // Ends the sleep of an event loop; how the session has ended is said below.
        let _ = self.session.progress();
        loop {
            if let Some(whole) = self.order.pop() {
                return Ok(Received::Message(self.out.insert(whole)));
            }
            match self.session.receive(deadline) {
                Ok(Some(message)) => {
                    self.order.push(&message.header, message.data).map_err(Error::Forged)?;
                }
                Ok(None) => return Ok(Received::None),
                Err(Error::Closed) => return Ok(Received::Closed),
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether the event loop may sleep on the descriptor.
    ///
    /// # Errors
    /// How the connection has ended.
    pub fn arm(&self) -> Result<bool, Error> {
        Ok(self.session.arm()? && !self.order.has_next())
    }

    /// The descriptor of an event loop.
    pub fn descriptor(&self) -> i32 {
        self.session.as_fd().as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openlapi_session::connect_unix;
    use std::time::Duration;

    fn late() -> Option<Instant> {
        Some(Instant::now() + Duration::from_secs(300))
    }

    /// What waited for an earlier message is there, and nothing wakes for it any more.
    #[test]
    fn an_event_loop_does_not_sleep_beside_the_next_message() {
        let path = std::env::temp_dir().join(format!("netio3-order-{}", std::process::id()));
        let settings = Settings { patience: Duration::from_secs(100), ..Settings::default() };
        let mut listener = listen(&format!("unix:{}", path.display()), None, &settings).expect("a listener");
        std::thread::scope(|scope| {
            let caller = scope.spawn(|| {
                let caller = connect_unix(&path, &settings)?;
                for number in [1, 2, 0] {
                    caller.send(&frame::before(number, 0), &[number as u8])?;
                }
                caller.fence().map(|()| caller)
            });
            let session = listener.accept(late()).expect("a session").expect("in time");
            let mut receiver = Receiver::new(session, 100, Instant::now()).expect("a connection");
            while !caller.is_finished() {
                let _ = receiver.session.progress().expect("an open session");
            }
            let _caller = caller.join().expect("a caller").expect("a session");
            while receiver.session.progress().expect("an open session") {}
            for number in 0..3 {
                assert!(!receiver.arm().expect("an open session"), "it would sleep");
                match receiver.receive(late()) {
                    Ok(Received::Message(whole)) => assert_eq!(whole.bytes, [number]),
                    other => panic!("{other:?}"),
                }
            }
            while !receiver.arm().expect("an open session") {
                assert!(matches!(receiver.receive(Some(Instant::now())), Ok(Received::None)));
            }
        });
    }
}
