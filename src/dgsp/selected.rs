//! Ranges of a layout, one after the other. They take no memory for the pieces in them, however
//! many these are.

/// Ranges of the bytes of a layout. A position is the number of a byte in all of the ranges.
#[derive(Debug)]
pub(super) struct Selected {
    /// The last entry is the position after the last range.
    list: Box<[Range]>,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    /// The range's position in all of the ranges.
    start: u64,
    /// The number of its first byte in the layout.
    from: u64,
}

impl Selected {
    /// These ranges, each given by its first byte and its length, of a layout of `bytes` bytes.
    /// What lies behind the end of that is left out.
    pub(super) fn new(bytes: u64, ranges: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let (mut list, mut total) = (Vec::new(), 0_u64);
        for (from, len) in ranges {
            let len = len.min(bytes.saturating_sub(from)).min(u64::MAX - total);
            if len != 0 {
                list.push(Range { start: total, from });
                total += len;
            }
        }
        list.push(Range { start: total, from: 0 });
        Self { list: list.into() }
    }

    /// How many bytes.
    pub(super) fn len(&self) -> u64 {
        self.list[self.list.len() - 1].start
    }

    /// How many ranges.
    pub(super) fn count(&self) -> u64 {
        self.list.len() as u64 - 1
    }

    /// The first byte of the only range, if there are no others.
    pub(super) fn only(&self) -> Option<u64> {
        if self.list.len() == 2 { Some(self.list[0].from) } else { None }
    }

    /// Passes on where the bytes `from..from + len` lie in the layout: for each range the number of
    /// the first byte there, how many bytes, and how many were passed on before. All of these bytes
    /// must be there.
    pub(super) fn visit(&self, from: u64, len: u64, mut each: impl FnMut(u64, usize, usize)) {
        let mut at = self.list.partition_point(|range| range.start <= from).saturating_sub(1);
        let mut done = 0;
        while done < len {
            let (range, next) = (self.list[at], self.list[at + 1]);
            let skip = from + done - range.start;
            let here = (next.start - range.start - skip).min(len - done);
            each(range.from + skip, here as usize, done as usize);
            done += here;
            at += 1;
        }
    }
}
