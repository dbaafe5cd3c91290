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
        let order = Order::default();
        Ok(Some(Receiver { session, order, out: None, is_armed: false, fault: None }))
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
    /// The event loop may have slept since the last round of progress.
    is_armed: bool,
    /// What the other side has sent that no sender sends. Nothing is taken behind it.
    fault: Option<&'static str>,
}

/// With this many messages in the inbox, [`Receiver::receive`] makes no progress. A round of
/// progress brings about as many.
const ENOUGH: usize = 16;

impl Receiver {
    /// Waits for the next message, which is the program's until the next call.
    ///
    /// # Errors
    /// How the connection has ended.
    pub fn receive(&mut self, deadline: Option<Instant>) -> Result<Option<&Whole>, Error> {
        // Each round brings several messages: with one for each call, a side that sends faster than
        // this one receives would fill the memory. With none while messages are here, the other
        // side would have no answers, and its end would not be seen.
        if std::mem::take(&mut self.is_armed) || self.session.arrived() < ENOUGH {
            // How the session has ended is said below.
            let _ = self.session.progress();
        }
        while !self.order.has_next() {
            self.fault.map_or(Ok(()), |fault| Err(Error::Forged(fault)))?;
            let Some(message) = self.session.receive(deadline)? else { return Ok(None) };
            self.fault = self.order.push(&message.header, message.data).err();
        }
        self.out = self.order.pop();
        Ok(self.out.as_ref())
    }

    /// Whether the event loop may sleep on the descriptor.
    ///
    /// # Errors
    /// How the connection has ended.
    pub fn arm(&mut self) -> Result<bool, Error> {
        while !self.order.has_next() && self.fault.is_none() {
            let Some(message) = self.session.take() else {
                self.is_armed = true;
                return self.session.arm();
            };
            self.fault = self.order.push(&message.header, message.data).err();
        }
        Ok(false)
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

    fn send(caller: &Session, number: u8) {
        caller.send(&frame::before(number.into(), 0), &[number]).expect("an open session");
    }

    /// A connection of which messages with these numbers are here, and its other side.
    fn with_messages(name: &str, numbers: &[u8]) -> (Receiver, Session) {
        let (mut passive, path) = listener(name);
        scope(|scope| {
            let caller = scope.spawn(|| {
                let caller = caller(&path);
                numbers.iter().for_each(|number| send(&caller, *number));
                caller.fence().map(|()| caller)
            });
            let receiver = passive.accept(after(300_000)).expect("a session").expect("in time");
            while receiver.session.progress().expect("an open session") || !caller.is_finished() {}
            (receiver, caller.join().expect("a caller").expect("an open session"))
        })
    }

    fn next(receiver: &mut Receiver) -> Result<u8, Error> {
        receiver.receive(after(300_000)).map(|whole| whole.expect("in time").bytes[0])
    }

    #[test]
    fn a_side_that_receives_slowly_has_few_messages() {
        let (mut receiver, caller) = with_messages("slow", &[0]);
        (1..=255).for_each(|number| send(&caller, number));
        for number in 0..=255 {
            assert_eq!(next(&mut receiver).expect("an open session"), number);
            assert!(caller.progress().is_ok() && receiver.session.arrived() < 2 * ENOUGH);
        }
    }

    #[test]
    fn nothing_comes_after_a_message_that_no_sender_sends() {
        let (mut receiver, caller) = with_messages("fault", &[0, 0]);
        assert_eq!(next(&mut receiver).expect("an open session"), 0);
        send(&caller, 1);
        for _ in 0..2 {
            assert!(!receiver.arm().expect("an open session"), "it would sleep");
            assert!(matches!(next(&mut receiver), Err(Error::Forged(_))));
        }
    }

    /// What waited for an earlier message is there, and nothing wakes for it any more. Without
    /// progress beside it the other side would get no answers.
    #[test]
    fn beside_the_next_message_no_event_loop_sleeps_and_others_arrive() {
        let (mut receiver, caller) = with_messages("order", &[1, 2, 0]);
        send(&caller, 3);
        for number in 0..4 {
            assert!(!receiver.arm().expect("an open session"), "it would sleep");
            assert_eq!(next(&mut receiver).expect("an open session"), number);
            assert_eq!(receiver.session.arrived(), usize::from(number < 3));
        }
        while !receiver.arm().expect("an open session") {
            assert_eq!(receiver.receive(after(0)).expect("an open session"), None);
        }
    }
}
