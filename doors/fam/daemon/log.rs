//! The log: lines on standard error, which the one that starts the daemon keeps.

use std::io::Write;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many [`Few`] lines are written in this time.
const MOST: u32 = 8;
const TIME: Duration = Duration::from_secs(60);

/// Writes a line. Where it cannot be written, the daemon goes on: its memory is worth more.
pub fn line(text: &str) {
    let _ = writeln!(std::io::stderr(), "openfamd: {text}");
}

/// Lines that programs cause as fast as they like, of which some are written.
#[derive(Default)]
pub struct Few(Mutex<Option<(Instant, u32)>>);

impl Few {
    /// Writes a line, or, after [`MOST`] in a while, once that there are more.
    pub fn line(&self, text: &str, more: &str) {
        match self.before(Instant::now()) {
            ..MOST => line(text),
            MOST => line(more),
            _ => {}
        }
    }

    /// How many there were before in this while.
    fn before(&self, now: Instant) -> u32 {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, count) = said.filter(|(since, _)| now < *since + TIME).unwrap_or((now, 0));
        *said = Some((since, count.saturating_add(1)));
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_while_lines_are_written_again() {
        let (few, begin) = (Few::default(), Instant::now());
        for count in 0..2 * MOST {
            assert_eq!(few.before(begin + count * TIME / (2 * MOST)), count);
        }
        assert_eq!(few.before(begin + TIME), 0);
        assert_eq!(few.before(begin + TIME), 1);
    }
}
