//! The frame before each packet on a network, and the transport's own messages.
//!
//! A packet is a frame of 16 bytes, the head, and the body, padded to a multiple of 8 bytes, so
//! that the next one in the same buffer is aligned. The transport's own messages end in a tag of 16
//! bytes, which is not among the bytes that the frame counts. All numbers are little-endian.

use super::frame::{HEAD_MAX, Task};
use super::rails::NOTE;
use crate::base::process::Process;

/// The length in bytes of the tag behind each of the transport's own messages
/// ([`FrameKind::has_tag`]).
pub const TAG: usize = 16;

/// The length of a frame in bytes.
pub const FRAME: usize = 16;

/// What follows a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// A head and a body.
    Packet = 1,
    /// Nothing: the frame returns credits.
    Credits = 2,
    /// Nothing: the sender wants to know when the receiver departs.
    Hello = 3,
    /// A [`Rejoin`] and the sender's address.
    Rejoin = 4,
    /// Nothing: the sender ends LAPI. `body_len` is the number of packets that it has
    /// sent, modulo 2^32.
    Departure = 5,
    /// Nothing: the departure and all packets before it have arrived.
    DepartureSeen = 6,
    /// Nothing: the receiver is to look for packets.
    Kick = 7,
    /// A [`Notice`].
    Notice = 8,
    /// A note about rails ([`super::rails::Note`]).
    RailNote = 9,
}

impl FrameKind {
    /// Whether a tag of [`TAG`] bytes is the end of the message: of the transport's own messages
    /// all but credits, which packets carry, too.
    #[inline]
    pub fn has_tag(self) -> bool {
        !matches!(self, Self::Packet | Self::Credits)
    }

    fn of(number: u8) -> Option<Self> {
        use FrameKind::{Credits, Departure, DepartureSeen, Hello, Kick, Notice, Packet, RailNote, Rejoin};
        [Packet, Credits, Hello, Rejoin, Departure, DepartureSeen, Kick, Notice, RailNote]
            .into_iter()
            .find(|kind| *kind as u8 == number)
    }
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// What follows.
    pub kind: FrameKind,
    /// The sender.
    pub src: Task,
    /// The receiver's number of this connection: what has another one belongs to a
    /// former connection.
    pub tag: u32,
    /// The number of packets that the sender has given back to its transport since it last said so.
    pub credits: u16,
    /// The length of the head in bytes.
    pub head_len: usize,
    /// The length of the body in bytes.
    pub body_len: u32,
}

impl Frame {
    /// As bytes.
    #[inline]
    pub fn encode(&self) -> [u8; FRAME] {
        let lens = u64::from(self.body_len)
            | u64::from(self.credits) << 32
            | (self.head_len as u64 / 8) << 48
            | (self.kind as u64) << 56;
        let from = u64::from(self.src) | u64::from(self.tag) << 32;
        bytemuck::cast([from, lens].map(u64::to_le))
    }

    /// The frame at the start of a message; `None` when it is not one, or when what follows has
    /// another length.
    #[inline]
    pub fn decode(message: &[u8]) -> Option<Self> {
        let (bytes, after) = message.split_first_chunk::<FRAME>()?;
        let words: [u64; 2] = bytemuck::pod_read_unaligned(bytes);
        let [from, lens] = words.map(u64::from_le);
        let frame = Self {
            kind: FrameKind::of((lens >> 56) as u8)?,
            src: from as u32,
            tag: (from >> 32) as u32,
            credits: (lens >> 32) as u16,
            head_len: (lens >> 48 & 0xff) as usize * 8,
            body_len: lens as u32,
        };
        // The padded length of a body may have no place in 32 bits.
        let (len, body) = (after.len() as u64, u64::from(frame.body_len).next_multiple_of(8));
        let (notice, note, tag) = (NOTICE as u64, NOTE as u64, TAG as u64);
        let fits = match frame.kind {
            FrameKind::Packet => frame.head_len <= HEAD_MAX && len == frame.head_len as u64 + body,
            FrameKind::Rejoin => len >= REJOIN as u64 + tag && len == body + tag,
            FrameKind::Notice => len == notice + tag && u64::from(frame.body_len) == notice,
            FrameKind::RailNote => len == note + tag && u64::from(frame.body_len) == note,
            FrameKind::Credits => len == 0,
            FrameKind::Hello | FrameKind::Departure | FrameKind::DepartureSeen | FrameKind::Kick => {
                len == tag
            }
        };
        fits.then_some(frame)
    }
}

/// The length of a [`Rejoin`].
pub const REJOIN: usize = 32;

/// One side of a connection that is made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejoin {
    /// What the sender wants as tag of all frames to it.
    pub tag: u32,
    /// The tag that the receiver has asked for, as far as the sender knows; 0 otherwise.
    pub echo: u32,
    /// The sender's epoch.
    pub epoch: u64,
    /// The sender's process.
    pub process: Process,
    /// The sender is not connected yet: the receiver, if it is, is to send its side again.
    pub waits: bool,
}

impl Rejoin {
    /// As bytes.
    pub fn encode(&self) -> [u8; REJOIN] {
        let tags = u64::from(self.tag) | u64::from(self.echo) << 32;
        let pid = u64::from(self.process.pid) | u64::from(self.waits) << 32;
        bytemuck::cast([tags, self.epoch, pid, self.process.started].map(u64::to_le))
    }

    /// What follows a frame of the kind [`FrameKind::Rejoin`], and the address after it.
    pub fn decode(after: &[u8]) -> Option<(Self, &[u8])> {
        let (bytes, address) = after.split_first_chunk::<REJOIN>()?;
        let words: [u64; 4] = bytemuck::pod_read_unaligned(bytes);
        let [tags, epoch, pid, started] = words.map(u64::from_le);
        let (tag, echo, waits) = (tags as u32, (tags >> 32) as u32, (pid >> 32) as u8 != 0);
        let process = Process { pid: pid as u32, started };
        Some((Self { tag, echo, epoch, process, waits }, address))
    }
}

/// The length of a [`Notice`].
pub const NOTICE: usize = 16;

/// What a [`Notice`] says of its task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Content {
    /// The task has died.
    Died = 1,
    /// The task has died, and the receiver is to confirm the notice.
    DiedConfirm = 2,
    /// The notice of its death has arrived.
    Confirmed = 3,
    /// The receiver is this task, and the sender watches it.
    Watches = 4,
    /// The sender is this task, and knows that the receiver watches it.
    Watched = 5,
    /// The sender is this task, and has ended LAPI. Over UDP only: other networks have
    /// [`FrameKind::Departure`].
    Closed = 6,
}

/// What tasks are sent about the life of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Notice {
    /// What it says.
    pub content: Content,
    /// Of which task.
    pub task: Task,
    /// Distinguishes the process from others that had the task's number.
    pub life: u32,
}

impl Notice {
    /// As bytes.
    pub fn encode(&self) -> [u8; NOTICE] {
        bytemuck::cast([self.content as u32, self.task, self.life, 0].map(u32::to_le))
    }

    /// What follows a frame of the kind [`FrameKind::Notice`].
    pub fn decode(after: &[u8]) -> Option<Self> {
        use Content::{Closed, Confirmed, Died, DiedConfirm, Watched, Watches};
        let words: [u32; NOTICE / 4] = bytemuck::pod_read_unaligned(after.get(..NOTICE)?);
        let [number, task, life, _] = words.map(u32::from_le);
        let content = [Died, DiedConfirm, Confirmed, Watches, Watched, Closed];
        let content = content.into_iter().find(|content| *content as u32 == number)?;
        Some(Self { content, task, life })
    }
}

#[cfg(test)]
#[path = "network_tests.rs"]
mod tests;
