//! Keys, and what is made with them.

use super::cipher::Cipher;
use super::replay::Window;
use super::{Claim, ENVELOPE, Refused, Security, TAG};
use crate::base::mac::MacKey;
use crate::wire::VERSION;
use crate::wire::frame::Task;

/// What is derived from the job's secret: makes and checks the messages by which two tasks connect,
/// and the keys of their connection.
#[derive(Clone)]
pub struct JobKey {
    security: Security,
    tags: MacKey,
    keys: MacKey,
}

/// One end of a connection, as both tasks know it. It reveals nothing of the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Which task.
    pub task: Task,
    /// The task's incarnation.
    pub epoch: u64,
    /// Random bytes that this end has drawn for this connection.
    pub nonce: [u8; 16],
}

impl End {
    fn bytes(&self) -> [u8; 28] {
        let mut bytes = [0; 28];
        bytes[..4].copy_from_slice(&self.task.to_le_bytes());
        bytes[4..12].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[12..].copy_from_slice(&self.nonce);
        bytes
    }

    fn connection(&self) -> u32 {
        self.epoch as u32
    }
}

impl JobKey {
    /// The key of a job with this secret. Tasks of different versions have none in common, and
    /// refuse each other's hellos.
    pub fn new(secret: &[u8; 16], security: Security) -> Self {
        // The lower byte tells all apart that could meet.
        Self::of_version(VERSION as u8, secret, security)
    }

    pub(super) fn of_version(version: u8, secret: &[u8; 16], security: Security) -> Self {
        // Tasks with different modes have different keys: they do not connect.
        let mode = [security as u8];
        let derive =
            |purpose: &[u8]| MacKey::new(secret).derive(&[b"OpenLAPI udp\0", &[version], purpose, &mode]);
        Self { security, tags: derive(b"connect\0"), keys: derive(b"data\0") }
    }

    /// The tag of a message by which tasks connect: that of its parts, one after another. Equal
    /// messages have equal tags: the message must carry what makes a recorded one useless, such as
    /// the random bytes of the other end. In every mode.
    pub fn tag(&self, parts: &[&[u8]]) -> [u8; TAG] {
        self.tags.tag(parts)
    }

    /// Whether `tag` is that of the message, in a time that does not depend on where it differs.
    pub fn is_tag(&self, parts: &[&[u8]], tag: &[u8; TAG]) -> bool {
        self.tags.is_tag(parts, tag)
    }

    /// Puts the envelope of a message outside of any connection before its content, which stands in
    /// `datagram` behind it.
    pub(super) fn enclose(&self, purpose: &[u8], from: Task, to: Task, datagram: &mut [u8]) {
        let (envelope, content) = datagram.split_at_mut(ENVELOPE);
        let claim = Claim { from, connection: 0, number: 0 }.bytes();
        let (before, tag) = envelope.split_at_mut(claim.len());
        before.copy_from_slice(&claim);
        tag.copy_from_slice(&self.tag(&[purpose, &claim, &to.to_le_bytes(), content]));
    }

    /// The content of such a message for task `to`; `None` when no task of the job has made it.
    pub(super) fn enclosed<'a>(&self, purpose: &[u8], to: Task, datagram: &'a [u8]) -> Option<&'a [u8]> {
        let (envelope, content) = datagram.split_at_checked(ENVELOPE)?;
        let (claim, tag) = envelope.split_last_chunk()?;
        self.is_tag(&[purpose, claim, &to.to_le_bytes(), content], tag).then_some(content)
    }

    /// Both directions of the connection between the end of this task and that of its peer, which
    /// the tasks have exchanged in messages with tags. The two tasks get what belongs together; two
    /// connections have no key in common, because each end has new random bytes.
    pub fn connect(&self, own: &End, peer: &End) -> (Sealer, Opener) {
        let direction = |from: &End, to: &End| self.keys.tag(&[&from.bytes(), &to.bytes()]);
        let sealer = Sealer {
            cipher: Cipher::new(self.security, &direction(own, peer)),
            from: own.task,
            connection: own.connection(),
            last: 0,
        };
        let opener = Opener {
            cipher: Cipher::new(self.security, &direction(peer, own)),
            from: peer.task,
            connection: peer.connection(),
            window: Window::new(),
        };
        (sealer, opener)
    }
}

/// Seals what this task sends in one connection.
pub struct Sealer {
    cipher: Cipher,
    from: Task,
    connection: u32,
    /// The number of the last datagram.
    last: u64,
}

impl Sealer {
    /// The number that the next datagram gets. Every call of [`Self::seal`] uses one, also for
    /// content that is sent again.
    pub fn next_number(&self) -> u64 {
        self.last.wrapping_add(1)
    }

    /// Lets the next datagram have this number, which is not below [`Self::next_number`].
    #[cfg(test)]
    pub(super) fn skip_to(&mut self, number: u64) {
        assert!(number > self.last);
        self.last = number - 1;
    }

    /// Seals one datagram, whose content is that of both pieces, at the start of `place`; returns
    /// how long it is.
    ///
    /// # Panics
    /// `place` is shorter than [`ENVELOPE`] and the pieces; or 2^64 - 1 datagrams were sealed,
    /// after which no number is new.
    #[inline]
    pub fn seal(&mut self, [first, second]: [&[u8]; 2], place: &mut [u8]) -> usize {
        self.last = self.last.checked_add(1).expect("no number is used twice");
        let claim = Claim { from: self.from, connection: self.connection, number: self.last }.bytes();
        let len = ENVELOPE + first.len() + second.len();
        let (envelope, content) = place[..len].split_at_mut(ENVELOPE);
        let (before, tag) = envelope.split_at_mut(claim.len());
        before.copy_from_slice(&claim);
        let (start, end) = content.split_at_mut(first.len());
        start.copy_from_slice(first);
        end.copy_from_slice(second);
        tag.copy_from_slice(&self.cipher.seal(self.last, &claim, content));
        len
    }
}

/// Opens what a peer has sealed in one connection.
pub struct Opener {
    cipher: Cipher,
    from: Task,
    /// The number of the connection in the envelopes of the peer.
    pub(super) connection: u32,
    window: Window,
}

impl Opener {
    /// The content of a datagram, decrypted in its place.
    ///
    /// # Errors
    /// The datagram is not the peer's, or was opened before: nothing has changed, except bytes
    /// of the datagram.
    #[inline]
    pub fn open<'a>(&mut self, datagram: &'a mut [u8]) -> Result<&'a [u8], Refused> {
        let claim = Claim::of(datagram).ok_or(Refused::Forged)?;
        if claim.from != self.from || claim.connection != self.connection {
            return Err(Refused::Forged);
        }
        if !self.window.is_new(claim.number) {
            return Err(Refused::Replayed);
        }
        let (envelope, content) = datagram.split_at_mut(ENVELOPE);
        let (before, tag) = envelope.split_at(ENVELOPE - TAG);
        let tag: &[u8; TAG] = tag.try_into().expect("the rest of the envelope");
        if !self.cipher.open(claim.number, before, content, tag) {
            return Err(Refused::Forged);
        }
        self.window.accept(claim.number);
        Ok(content)
    }
}
