//! The messages by which two tasks connect: a [`Hello`] in an envelope whose tag every task of the
//! job can make, before there are keys of a connection. Its number is 0, which no datagram of a
//! connection has.
//!
//! The tag covers the receiver, too. A hello may have been recorded and sent again, so that it
//! alone is only a claim (docs/design/0017-udp.md).

use super::ENVELOPE;
use super::key::JobKey;
use crate::wire::datagram::{HELLO, Hello};
use crate::wire::frame::Task;

/// How many bytes such a message has.
pub const GREETING: usize = ENVELOPE + HELLO;

impl JobKey {
    /// A hello as a datagram.
    pub fn greet(&self, from: Task, to: Task, hello: &Hello) -> [u8; GREETING] {
        let mut datagram = [0; GREETING];
        datagram[ENVELOPE..].copy_from_slice(&hello.encode());
        self.enclose(b"", from, to, &mut datagram);
        datagram
    }

    /// The hello in a datagram for task `to`; `None` when no task of the job has made it.
    pub fn greeting(&self, to: Task, datagram: &[u8]) -> Option<Hello> {
        let datagram: &[u8; GREETING] = datagram.try_into().ok()?;
        Hello::decode(self.enclosed(b"", to, datagram)?)
    }
}
