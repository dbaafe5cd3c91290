//! Whether a look that found nothing has done something: providers without a card move the data of remote accesses in it, and report
//! nothing to the task whose memory is accessed. Such a look takes longer than others.

/// A look of fewer ticks than this, about a microsecond, has found nothing to do.
const SHORT: u64 = 3000;

/// A look that takes this many times as long as the shortest ones has done something.
const TIMES: u64 = 4;

/// A look this many ticks after the one before, 10 to 50 microseconds, takes longer than others, because another thread has used the
/// processor: that is no work. A thread that waits alone looks again at once.
const PAUSE: u64 = 50_000;

#[derive(Debug)]
pub(super) struct Effort {
    /// The ticks of the shortest looks, of late: with more connections a look takes longer.
    least: u64,
    /// When the look before ended, in ticks.
    last: u64,
    worked: bool,
}

impl Default for Effort {
    fn default() -> Self {
        Self { least: u64::MAX >> 8, last: 0, worked: false }
    }
}

impl Effort {
    /// A look that has found nothing has begun and ended at these ticks.
    #[inline]
    pub(super) fn note(&mut self, begun: u64, ended: u64) {
        let (ticks, pause) = (ended.wrapping_sub(begun), begun.wrapping_sub(self.last));
        self.last = ended;
        if pause < PAUSE {
            self.least = ticks.min(self.least + (self.least >> 6));
            self.worked |= ticks > SHORT && ticks / TIMES > self.least;
        }
    }

    /// Whether a look since the last call has done something.
    #[inline]
    pub(super) fn take(&mut self) -> bool {
        std::mem::take(&mut self.worked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks of this many ticks, one after the other, with `pause` ticks between them: for each, whether it has done something.
    fn looks(effort: &mut Effort, count: u64, ticks: u64, pause: u64) -> Vec<bool> {
        let begin = effort.last;
        let look = |round: u64| {
            let begun = begin + (round + 1) * pause + round * ticks;
            effort.note(begun, begun + ticks);
            effort.take()
        };
        (0..count).map(look).collect()
    }

    #[test]
    fn a_look_that_takes_longer_than_others_has_done_something() {
        let mut effort = Effort::default();
        for ticks in [800, 1200, 900, 1400, 800] {
            assert!(!looks(&mut effort, 2000, ticks, 300).contains(&true), "{ticks}");
        }
        assert_eq!(looks(&mut effort, 1, 11_000, 300), [true]);
        assert!(!effort.take(), "once");
        assert!(looks(&mut effort, 1000, 100_000, 300).contains(&true), "long ones only");
    }

    /// A thread that waits must come to sleep: looks that always take long are not work for ever.
    #[test]
    fn more_connections_are_no_work() {
        let mut effort = Effort::default();
        looks(&mut effort, 10, 800, 300);
        let worked = looks(&mut effort, 2000, 13_000, 300);
        let last = worked.iter().rposition(|worked| *worked).map_or(0, |last| last + 1);
        assert!((1..200).contains(&last), "{last} looks");
    }

    /// Where there are more tasks than processors, others run between the looks.
    #[test]
    fn a_look_after_a_pause_is_no_work() {
        let mut effort = Effort::default();
        looks(&mut effort, 10, 800, 300);
        assert!(!looks(&mut effort, 100, 20_000, PAUSE).contains(&true));
        assert_eq!(looks(&mut effort, 1, 20_000, 300), [true], "the next one at once");
    }
}
