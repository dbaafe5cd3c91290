//! Deadlines that hold at any load of the machine.

use std::fs;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// A time after which something counts as hung. Where more processes want to run than there are
/// processors, it is later by that factor: the job gets only its share of them.
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

    /// Receives something before it passes.
    pub(crate) fn receive<T>(&mut self, from: &Receiver<T>) -> Result<T, RecvTimeoutError> {
        loop {
            let left = self.left();
            match from.recv_timeout(left) {
                // Meanwhile it may have become a later one.
                Err(RecvTimeoutError::Timeout) if !left.is_zero() => {}
                received => return received,
            }
        }
    }
}

/// The factor by which deadlines are extended: an instrumented library is slower.
fn time_factor() -> u32 {
    std::env::var("TEST_PATIENCE").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// The most by which a crowd extends a deadline: what really hangs ends in minutes.
const MOST: f64 = 4.0;

/// How many processes wanted each processor in the last minute; at least 1, and no
/// more than `MOST`.
fn crowding() -> f64 {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(1.0);
    let processors = available_parallelism().map_or(1, usize::from) as f64;
    (load / processors).clamp(1.0, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_an_extension_is_received() {
        let start = Instant::now() - Duration::from_millis(900);
        let mut deadline = Deadline { start, span: Duration::from_secs(1), crowding: 1000.0 };
        let (sender, receiver) = std::sync::mpsc::channel();
        let late = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            sender.send(7)
        });
        assert_eq!(deadline.receive(&receiver), Ok(7));
        assert_eq!(late.join().expect("it sends"), Ok(()));
        let mut past = Deadline { start, span: Duration::ZERO, crowding: 1.0 };
        assert_eq!(past.receive(&receiver), Err(RecvTimeoutError::Disconnected));
    }

    #[test]
    fn a_deadline_passes_only_after_its_time() {
        let mut deadline = Deadline::after(Duration::from_secs(3600));
        assert!(!deadline.has_passed());
        let mut past = Deadline { span: Duration::ZERO, ..deadline };
        assert!(past.has_passed());
        // No crowd extends it for ever.
        let start = Instant::now() - Duration::from_secs(5);
        let mut hung = Deadline { start, span: Duration::from_secs(1), crowding: 1.0 };
        assert!(hung.has_passed() && (1.0..=MOST).contains(&crowding()));
        // Seen once, a crowd counts.
        let start = Instant::now() - Duration::from_secs(2);
        let mut crowded = Deadline { start, span: Duration::from_secs(1), crowding: 1000.0 };
        assert!(crowded.left() > Duration::from_secs(900));
    }
}
