//! What tasks learn about the life of a task: a [`Notice`] in an envelope whose tag every task of
//! the job can make, as that of a hello. It is outside of any connection: tasks that have parted,
//! or have had no contact, send it, too.
//!
//! What a notice says stays true within an opening of LAPI, so that one that was recorded and is
//! sent again does no harm there; in another opening the job has another key. A receipt holds for
//! the process that has sent it, which it names.

use super::ENVELOPE;
use super::key::JobKey;
use crate::wire::frame::Task;
use crate::wire::network::{NOTICE, Notice};

/// How many bytes such a message has.
pub const ANNOUNCEMENT: usize = ENVELOPE + NOTICE + 8;

/// What distinguishes it from a hello.
const PURPOSE: &[u8] = b"notice\0";

/// Where the sender's life is.
const LIFE: usize = ANNOUNCEMENT - ENVELOPE - 4;

/// A notice, or the receipt for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// What is announced.
    pub notice: Notice,
    /// The sender has got this notice from the receiver.
    pub is_receipt: bool,
    /// Distinguishes the process that sends it from others that have its number as a task.
    pub life: u32,
}

impl JobKey {
    /// An announcement as a datagram.
    pub fn announce(&self, from: Task, to: Task, announcement: &Announcement) -> [u8; ANNOUNCEMENT] {
        let mut datagram = [0; ANNOUNCEMENT];
        datagram[ENVELOPE..][..NOTICE].copy_from_slice(&announcement.notice.encode());
        datagram[ENVELOPE + NOTICE] = announcement.is_receipt.into();
        datagram[ENVELOPE + LIFE..].copy_from_slice(&announcement.life.to_le_bytes());
        self.enclose(PURPOSE, from, to, &mut datagram);
        datagram
    }

    /// The announcement in a datagram for task `to`; `None` when no task of the job has made it.
    pub fn announcement(&self, to: Task, datagram: &[u8]) -> Option<Announcement> {
        let datagram: &[u8; ANNOUNCEMENT] = datagram.try_into().ok()?;
        let content = self.enclosed(PURPOSE, to, datagram)?;
        let life = u32::from_le_bytes(*content.last_chunk()?);
        Some(Announcement { notice: Notice::decode(content)?, is_receipt: content[NOTICE] != 0, life })
    }
}
