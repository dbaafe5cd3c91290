//! Which part of a receive buffer messages have filled.
//!
//! The provider claims the next part of the buffer when the head of a message arrives, and reports
//! the message when all of it is there. So messages of several peers are reported in another order
//! than their places, the last place is reported as the end of the buffer while others are still
//! being written, and a place whose sender has died is never reported.

use crate::wire::network::FRAME;

/// What is known of one buffer since it was posted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Filled {
    /// The end of the furthest message that was reported.
    end: usize,
    /// Parts before it that no message was reported for.
    holes: Vec<(usize, usize)>,
    /// The provider has reported the end of the buffer. The last of its messages ends here, as far
    /// as that is known.
    ended: Option<usize>,
    failed: bool,
}

impl Filled {
    /// The filling of a buffer that was not posted yet.
    pub(super) const UNUSED: Self = Self { end: 0, holes: Vec::new(), ended: Some(0), failed: false };

    /// A message of `len` bytes at `offset` was reported.
    #[inline]
    pub(super) fn note(&mut self, offset: usize, len: usize) {
        if offset == self.end {
            self.end += len;
        } else {
            self.note_elsewhere(offset, offset + len);
        }
    }

    #[cold]
    fn note_elsewhere(&mut self, from: usize, to: usize) {
        if from > self.end {
            self.add_hole(self.end, from);
            self.end = to;
            return;
        }
        let Some(at) = self.holes.iter().position(|hole| hole.0 <= from && to <= hole.1) else { return };
        let (before, after) = self.holes.swap_remove(at);
        self.add_hole(before, from);
        self.add_hole(to, after);
    }

    /// What is shorter than any message is the provider's padding.
    fn add_hole(&mut self, from: usize, to: usize) {
        if to - from >= FRAME {
            self.holes.push((from, to));
        }
    }

    /// The end of the buffer of `size` bytes was reported, together with the message whose
    /// place ends at `with`, or alone. A buffer ends when there is no room for a message of
    /// `longest` bytes.
    #[inline]
    pub(super) fn note_end(&mut self, with: Option<usize>, size: usize, longest: usize) {
        self.ended = Some(with.unwrap_or((size + 1).saturating_sub(longest)));
    }

    /// An operation on the buffer has failed: whether it has ended is not known.
    pub(super) fn note_failure(&mut self) {
        self.failed = true;
    }

    /// Whether the provider writes to the buffer no more: its end was reported, and so was each
    /// message before that.
    #[inline]
    pub(super) fn is_complete(&self) -> bool {
        self.ended.is_some_and(|ended| ended <= self.end) && self.holes.is_empty() && !self.failed
    }
}

#[cfg(test)]
#[path = "filled_tests.rs"]
mod tests;
