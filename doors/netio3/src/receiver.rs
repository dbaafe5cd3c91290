//! The side that receives: a listener, and its connections.

use crate::address::listen;
use crate::frame::{self, Order, Whole};
use openlapi_session::{Error, Listener, Session, Settings};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Instant;

/// A listener for sides that send.
pub struct Passive {
    listener: Listener,
    settings: Settings,
}

impl Passive {
    /// Listens at an address.
    ///
    /// # Errors
    /// Why that is not possible.
    pub fn listen(address: &str, key: &str, settings: Settings) -> crate::Result<Self> {
        Ok(Self { listener: listen(address, key, &settings)?, settings })
    }

    /// The address of the TCP port at which it listens, if it does.
    pub fn tcp_address(&self) -> Option<String> {
        self.listener.address().map(|at| format!("tcp:{at}"))
    }

    /// Waits for the next connection, which begins with the hello. What the other side has not
    /// taken of that in time it gets with the next calls.
    ///
    /// # Errors
    /// Why one could not be opened.
    pub fn accept(&mut self, deadline: Option<Instant>) -> Result<Option<Receiver>, Error> {
        let Some(session) = self.listener.accept(deadline)? else { return Ok(None) };
        session.send(b"", &frame::hello(self.settings.longest as u64))?;
        session.fence_until(deadline.or_else(|| Some(Instant::now() + self.settings.patience)))?;
        Ok(Some(Receiver { session, order: Order::default(), out: None }))
    }

    /// The descriptor of an event loop.
    pub fn descriptor(&self) -> i32 {
        self.listener.as_fd().as_raw_fd()
    }
}

/// A connection of a side that sends.
pub struct Receiver {
    session: Session,
    order: Order,
    /// The message that was handed out last.
    out: Option<Whole>,
}

impl Receiver {
    /// Waits for the next message, which is the program's until the next call.
    ///
    /// # Errors
    /// How the connection has ended.
    pub fn receive(&mut self, deadline: Option<Instant>) -> Result<Option<&Whole>, Error> {
        // Ends the sleep of an event loop; how the session has ended is said below.
        let _ = self.session.progress();
        while !self.order.has_next() {
            let Some(message) = self.session.receive(deadline)? else { return Ok(None) };
            self.order.push(&message.header, message.data).map_err(Error::Forged)?;
        }
        self.out = self.order.pop();
        Ok(self.out.as_ref())
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
    use std::path::{Path, PathBuf};
    use std::thread::scope;
    use std::time::Duration;

    fn after(milliseconds: u64) -> Option<Instant> {
        Some(Instant::now() + Duration::from_millis(milliseconds))
    }

    fn settings() -> Settings {
        Settings { patience: Duration::from_secs(100), longest: 100, ..Settings::default() }
    }

    fn listener(name: &str) -> (Passive, PathBuf) {
        let path = std::env::temp_dir().join(format!("netio3-{name}-{}", std::process::id()));
        let passive = Passive::listen(&format!("unix:{}", path.display()), "", settings());
        (passive.expect("a listener"), path)
    }

    fn caller(path: &Path) -> Session {
        connect_unix(path, &settings()).expect("a session")
    }

    /// The first message goes with the calls after that.
    #[test]
    fn accept_does_not_wait_longer_than_it_may_for_a_side_that_makes_no_call() {
        let (mut passive, path) = listener("accept");
        scope(|scope| {
            let caller = scope.spawn(|| caller(&path));
            let mut receiver = loop {
                if let Some(receiver) = passive.accept(after(100)).expect("no wait for the other side") {
                    break receiver;
                }
            };
            let caller = caller.join().expect("a caller");
            let hello = scope.spawn(move || caller.receive(after(300_000)));
            while !hello.is_finished() {
                let _ = receiver.receive(after(10));
            }
            let hello = hello.join().expect("a caller").expect("a session").expect("in time");
            assert_eq!(frame::read_hello(&hello.data), Ok(100));
        });
    }

    /// What waited for an earlier message is there, and nothing wakes for it any more.
    #[test]
    fn an_event_loop_does_not_sleep_beside_the_next_message() {
        let (mut passive, path) = listener("order");
        scope(|scope| {
            let caller = scope.spawn(|| {
                let caller = caller(&path);
                for number in [1, 2, 0] {
                    caller.send(&frame::before(number, 0), &[number as u8]).expect("an open session");
                }
                caller.fence().map(|()| caller)
            });
            let mut receiver = passive.accept(after(300_000)).expect("a session").expect("in time");
            while !caller.is_finished() {
                let _ = receiver.session.progress().expect("an open session");
            }
            let _caller = caller.join().expect("a caller").expect("a session");
            while receiver.session.progress().expect("an open session") {}
            for number in 0..3 {
                assert!(!receiver.arm().expect("an open session"), "it would sleep");
                let whole = receiver.receive(after(300_000)).expect("an open session").expect("in time");
                assert_eq!(whole.bytes, [number]);
            }
            while !receiver.arm().expect("an open session") {
                assert_eq!(receiver.receive(after(0)).expect("an open session"), None);
            }
        });
    }
}
