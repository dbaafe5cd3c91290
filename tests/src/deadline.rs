//! Deadlines that hold at any load of the machine.

use std::fs;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// A time after which something counts as hung. Where more processes want to run than there are processors, it is later by
/// that factor: the job gets only its share of them.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    start: Instant,
    span: Duration,
    /// The most that was seen.
    crowding: f64,
}

impl Deadline {
    /// As much time from now on, on a machine that is not crowded. `TEST_PATIENCE` multiplies it.
    pub fn after(span: Duration) -> Self {
        Self { start: Instant::now(), span: span * time_factor(), crowding: 1.0 }
    }

    /// How much time is left at the load that the machine has had.
    pub fn left(&mut self) -> Duration {
        let gone = self.start.elapsed();
        let uncrowded = self.span.saturating_sub(gone);
        if !uncrowded.is_zero() {
            return uncrowded;
        }
        self.crowding = self.crowding.max(crowding());
        self.span.mul_f64(self.crowding).saturating_sub(gone)
    }

    /// Whether no time is left.
    pub fn has_passed(&mut self) -> bool {
        self.left().is_zero()
    }
}

/// The factor by which deadlines are extended: an instrumented library is slower.
pub(crate) fn time_factor() -> u32 {
    std::env::var("TEST_PATIENCE").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// How many processes wanted each processor in the last minute; at least 1, and no more than 32.
fn crowding() -> f64 {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(1.0);
    let processors = available_parallelism().map_or(1, usize::from) as f64;
    (load / processors).clamp(1.0, 32.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_passes_only_after_its_time() {
        let mut deadline = Deadline::after(Duration::from_secs(3600));
        assert!(!deadline.has_passed());
        let mut past = Deadline { span: Duration::ZERO, ..deadline };
        assert!(past.has_passed());
        // Seen once, a crowd counts.
        let start = Instant::now() - Duration::from_secs(2);
        let mut crowded = Deadline { start, span: Duration::from_secs(1), crowding: 1000.0 };
        assert!(crowded.left() > Duration::from_secs(900));
    }
}
