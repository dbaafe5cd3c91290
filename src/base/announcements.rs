//! The peers that have sent something to a task that does not poll their rings.
//!
//! A bit for each peer, in words of 64, and a summary of one bit for each word: however many peers
//! there are, a task that finds nothing reads the summary alone. A sender sets its bit and then the
//! summary's; the receiver takes the summary and then the words that it names. So a bit that was
//! set is found, at the latest, by way of the summary bit that follows it.
//!
//! Orderings: each sender's summary bit is a Release of what it has written before, and continues
//! the release sequence of the senders before it; the receiver takes the summary with Acquire. An
//! announcement carries no data: the ring publishes it.

use super::line::Line;
use super::sync::{AtomicU64, Ordering};

/// Bits of a word.
const WORD: u32 = u64::BITS;
/// Words that one summary can name.
const WORDS: usize = 16;

/// The most peers that can announce themselves.
pub const MOST: u32 = WORD * WORDS as u32;

/// The announcements to one task. Zeroed memory holds none.
#[repr(C)]
pub struct Announcements {
    /// A bit for each word that may not be 0: read with every poll that finds nothing.
    summary: Line<AtomicU64>,
    words: Line<[AtomicU64; WORDS]>,
}

impl Announcements {
    /// The peer with this number, below [`MOST`], has sent something.
    pub fn announce(&self, peer: u32) {
        let (word, bit) = (peer / WORD, peer % WORD);
        self.words[word as usize].fetch_or(1 << bit, Ordering::Relaxed);
        self.summary.fetch_or(1 << word, Ordering::AcqRel);
    }

    /// Whether there may be an announcement that was not taken.
    #[inline]
    pub fn any(&self) -> bool {
        self.summary.load(Ordering::Relaxed) != 0
    }

    /// Takes all announcements, and calls `found` with the number of each peer.
    pub fn take(&self, mut found: impl FnMut(u32)) {
        let summary = self.summary.swap(0, Ordering::AcqRel);
        for word in (0..WORDS as u32).filter(|word| summary >> word & 1 != 0) {
            let mut bits = self.words[word as usize].swap(0, Ordering::Relaxed);
            while bits != 0 {
                found(word * WORD + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }
}

#[cfg(all(test, loom))]
impl Announcements {
    /// Without any.
    pub(super) fn new() -> Self {
        let words = std::array::from_fn(|_| AtomicU64::new(0));
        Self { summary: Line::new(AtomicU64::new(0)), words: Line::new(words) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn none() -> Announcements {
        // SAFETY: it consists of atomics, which may be zero.
        unsafe { std::mem::zeroed() }
    }

    #[test]
    fn each_peer_is_found_once_in_order() {
        let all = none();
        for peer in [1023, 0, 64, 63, 0, 500] {
            all.announce(peer);
        }
        assert!(all.any());
        let mut found = Vec::new();
        all.take(|peer| found.push(peer));
        assert_eq!(found, [0, 63, 64, 500, 1023]);
        assert!(!all.any());
        all.take(|peer| panic!("peer {peer} was taken before"));
        all.announce(64);
        all.take(|peer| assert_eq!(peer, 64));
    }
}
