//! The sink that only passes the runs on.

use super::walk::Sink;

/// Passes runs on, those that touch as one.
pub(super) struct Merger<F> {
    each: F,
    at: isize,
    len: usize,
}

impl<F: FnMut(isize, usize)> Merger<F> {
    pub(super) fn new(each: F) -> Self {
        Self { each, at: 0, len: 0 }
    }

    /// Passes the last run on.
    pub(super) fn finish(mut self) {
        if self.len != 0 {
            (self.each)(self.at, self.len);
        }
    }
}

impl<F: FnMut(isize, usize)> Sink for Merger<F> {
    #[inline]
    fn run(&mut self, at: isize, len: usize) {
        if self.at.wrapping_add(self.len as isize) == at && self.len != 0 {
            self.len += len;
            return;
        }
        if self.len != 0 {
            (self.each)(self.at, self.len);
        }
        (self.at, self.len) = (at, len);
    }
}
