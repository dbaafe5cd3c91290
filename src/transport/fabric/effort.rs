//! Whether a look that found nothing has done something: providers without a card move the data of remote accesses in it, and report
//! nothing to the task whose memory is accessed. Such a look takes longer than others.

/// A look of fewer ticks than this, about a microsecond, has found nothing to do.
const SHORT: u64 = 3000;

/// A look that takes this many times as long as the shortest ones has done something.
const TIMES: u64 = 4;

#[derive(Debug)]
pub(super) struct Effort {
    /// The ticks of the shortest looks, of late: with more connections a look takes longer.
    least: u64,
    worked: bool,
}

impl Default for Effort {
    fn default() -> Self {
        Self { least: u64::MAX >> 8, worked: false }
    }
}

impl Effort {
    /// A look that has found nothing has taken this many ticks.
    #[inline]
    pub(super) fn note(&mut self, ticks: u64) {
        self.least = ticks.min(self.least + (self.least >> 6));
        self.worked |= ticks > SHORT && ticks / TIMES > self.least;
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

    #[test]
    fn a_look_that_takes_longer_than_others_has_done_something() {
        let mut effort = Effort::default();
        for round in 0..10_000 {
            effort.note(800 + round % 7 * 100);
            assert!(!effort.take(), "round {round}");
        }
        effort.note(11_000);
        assert!(effort.take());
        assert!(!effort.take(), "once");
        (0..1000).for_each(|_| effort.note(100_000));
        assert!(effort.take(), "long ones only");
    }

    /// A thread that waits must come to sleep: looks that always take long are not work for ever.
    #[test]
    fn more_connections_are_no_work() {
        let mut effort = Effort::default();
        effort.note(800);
        let worked = (0..2000).map(|_| {
            effort.note(13_000);
            effort.take()
        });
        let worked = worked.collect::<Vec<_>>();
        let last = worked.iter().rposition(|worked| *worked).map_or(0, |last| last + 1);
        assert!((1..200).contains(&last), "{last} looks");
    }
}
