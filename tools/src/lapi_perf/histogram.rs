//! How the times of a row are distributed.

use serde::{Deserialize, Serialize};

/// Ranges of equal width for each doubling of the time.
const STEPS: f64 = 4.0;

/// The times in one range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Range {
    /// Where it begins, in microseconds.
    pub(super) from: f64,
    /// Where the next one begins.
    pub(super) to: f64,
    /// How many times are in it, of which none is `to`.
    pub(super) count: u64,
}

/// The ranges that have times, of times that are sorted.
pub(super) fn ranges(times: &[f64]) -> Vec<Range> {
    let mut ranges: Vec<Range> = Vec::new();
    for time in times {
        match ranges.last_mut() {
            Some(last) if *time < last.to => last.count += 1,
            _ => {
                let (from, to) = around(*time);
                ranges.push(Range { from, to, count: 1 });
            }
        }
    }
    ranges
}

/// The range of a time. Its limits are sums of few powers of two, and so exact.
fn around(time: f64) -> (f64, f64) {
    // What no clock distinguishes is one range.
    const LEAST: f64 = 1.0 / 1024.0;
    if time < LEAST {
        return (0.0, LEAST);
    }
    let octave = time.log2().floor().exp2();
    // The logarithm of what is just below a power of two may be that of the power.
    let octave = if octave > time { octave / 2.0 } else { octave };
    let step = octave / STEPS;
    let from = (time / step).floor() * step;
    (from, from + step)
}

/// The ranges, of which those behind 99 of 100 samples are joined to doublings: what is there
/// differs from run to run.
pub(super) fn with_short_end(ranges: &[Range], samples: u64) -> Vec<Range> {
    let mut until = 0;
    let usual = ranges.iter().take_while(|range| {
        let is_usual = until * 100 < samples * 99;
        until += range.count;
        is_usual
    });
    let mut shown: Vec<Range> = usual.copied().collect();
    let first = shown.len();
    for range in &ranges[first..] {
        match shown[first..].last_mut() {
            Some(last) if range.to.log2().ceil() == last.to.log2().ceil() => {
                (last.to, last.count) = (range.to, last.count + range.count);
            }
            _ => shown.push(*range),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_in_one_range() {
        assert_eq!(around(1.0), (1.0, 1.25));
        assert_eq!(around(1.9999), (1.75, 2.0));
        assert_eq!(around(0.31), (0.25, 0.3125));
        assert_eq!(around(0.0), (0.0, 1.0 / 1024.0));
        let below = f64::from_bits(2.0_f64.to_bits() - 1);
        assert_eq!(around(below), (1.75, 2.0));
        let mut times: Vec<f64> = (0..5000).map(|at| (f64::from(at * at % 4999) + 0.5) / 97.0).collect();
        times.extend([0.0, below, 2.0, 1e9]);
        times.sort_unstable_by(f64::total_cmp);
        let found = ranges(&times);
        assert_eq!(found.iter().map(|range| range.count).sum::<u64>(), times.len() as u64);
        for range in &found {
            let inside = times.iter().filter(|time| (range.from..range.to).contains(*time)).count();
            assert_eq!(inside as u64, range.count, "{range:?}");
        }
        assert!(found.windows(2).all(|two| two[0].to <= two[1].from), "{found:?}");
        // Ninety-nine are alone, the rest is joined up to 2, up to 4 and up to 1024.
        let mut times = vec![1.0; 99];
        times.extend([1.3, 1.8, 2.0, 3.9, 900.0]);
        let shown = with_short_end(&ranges(&times[..]), 100);
        let shown: Vec<_> = shown.iter().map(|range| (range.from, range.to, range.count)).collect();
        let wanted = [(1.0, 1.25, 99), (1.25, 2.0, 2), (2.0, 4.0, 2), (896.0, 1024.0, 1)];
        assert_eq!(shown, wanted);
    }
}
