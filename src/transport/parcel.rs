//! Packets in ordinary memory.

use super::{HEAD_MAX, Inbound, Outgoing, Task, pad8};
use crate::memory::bytes;

/// A packet that is stored apart from its sender's memory, 8-byte aligned.
#[derive(Debug)]
pub(super) struct Parcel {
    /// The task that sent it.
    pub(super) src: Task,
    head_len: usize,
    body_len: usize,
    /// The head, then the body, each from a word of its own.
    words: Vec<u64>,
}

impl Parcel {
    /// Copies a packet into `words`, which is grown as needed.
    ///
    /// # Safety
    /// The pieces of `packet` must be readable during the call.
    pub(super) unsafe fn gather(src: Task, packet: &Outgoing<'_>, mut words: Vec<u64>) -> Self {
        let (head_len, body_len) = (packet.head.len(), packet.body_len());
        assert!(head_len <= HEAD_MAX, "a head of {head_len} bytes");
        words.clear();
        words.resize((head_len + pad8(body_len)) / 8, 0);
        // SAFETY: the caller's promise.
        unsafe { write(&mut words, packet, false) };
        Self { src, head_len, body_len, words }
    }

    /// The packet as a receiver sees it: valid while the parcel lives, also when it is moved.
    pub(super) fn inbound(&self, token: u64) -> Inbound {
        let (head, body) = self.words.split_at(self.head_len / 8);
        Inbound {
            src: self.src,
            head: head.as_ptr().cast(),
            head_len: self.head_len,
            body: body.as_ptr().cast(),
            body_len: self.body_len,
            token,
        }
    }

    /// The memory, to be used again. In debug builds it is overwritten, so that a reader who kept a
    /// pointer into a released packet is found out.
    pub(super) fn into_words(mut self) -> Vec<u64> {
        if cfg!(debug_assertions) {
            self.words.fill(0xdbdb_dbdb_dbdb_dbdb);
        }
        self.words
    }
}

/// Writes a packet's head, and its body from the next byte on, without its second piece when that
/// is `lent`: the number of bytes. What fills the last word is 0, and so is the padding between the
/// pieces: no byte of memory that the program did not send leaves this task.
///
/// # Safety
/// The pieces of `packet` are readable.
#[inline]
pub(super) unsafe fn write(to: &mut [u64], packet: &Outgoing<'_>, lent: bool) -> usize {
    let head = packet.head.len();
    let body = if lent { pad8(packet.first.len) } else { packet.body_len() };
    assert!(
        head.is_multiple_of(8) && head + pad8(body) <= size_of_val(to),
        "a packet of {body} bytes is beyond the limit"
    );
    let at = to.as_mut_ptr().cast::<u8>();
    // SAFETY: there is room, as just seen; the pieces are readable by the caller's promise.
    unsafe {
        at.copy_from_nonoverlapping(packet.head.as_ptr(), head);
        bytes::copy(packet.first, at.add(head));
        if !lent && !packet.second.is_empty() {
            clear_padding(to, head + packet.first.len);
            packet.second.copy_to(at.add(head + pad8(packet.first.len)));
        }
    }
    clear_padding(to, if lent { head + packet.first.len } else { head + body });
    head + body
}

/// The words of a message as the bytes that are sent.
pub(super) fn bytes_of(words: &[u64]) -> &[u8] {
    // SAFETY: bytes have no alignment and every value.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

/// Sets the bytes from `len` up to the next multiple of 8 to 0.
#[inline]
pub(super) fn clear_padding(buffer: &mut [u64], len: usize) {
    if !len.is_multiple_of(8) {
        let word = &mut buffer[len / 8];
        let mask = (1_u64 << (len % 8 * 8)) - 1;
        *word = u64::from_le(*word) & mask;
        *word = word.to_le();
    }
}
