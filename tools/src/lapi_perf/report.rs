//! The results, as plain values. Their names are those of the JSON.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::{Failure, Result};
use super::histogram::Range;
use super::plan::Plan;

/// What the JSON says it is.
const PROGRAM: &str = "lapi_perf";
/// Raised when a field changes its meaning, or there is one more in every row.
const FORMAT: u32 = 2;

/// Everything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Report {
    /// `lapi_perf`.
    program: String,
    format: u32,
    pub(super) version: String,
    /// The file that was measured.
    pub(super) library: String,
    /// The host of task 0.
    pub(super) host: String,
    /// When it was measured: seconds since 1970.
    pub(super) time: u64,
    pub(super) tasks: u32,
    /// What carried the messages of the pairs.
    pub(super) transport: String,
    pub(super) plan: Plan,
    pub(super) results: Vec<Measured>,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) test: String,
    /// The data of an operation, in bytes; 0 where there is none.
    pub(super) size: u64,
    pub(super) window: u64,
    /// How many times there are: operations, or windows, of all pairs.
    pub(super) samples: u64,
    /// Microseconds for an operation.
    pub(super) latency_us: Latency,
    /// How these times are distributed: the ranges that have any.
    pub(super) histogram: Vec<Range>,
    /// Millions of bytes in a second, of all pairs; none where there is no data.
    pub(super) mb_per_s: Option<f64>,
    /// Operations in a second, of all pairs.
    pub(super) messages_per_s: f64,
    /// Nanoseconds that a cache line took from one task to the other, before and after the row;
    /// none without --cache-line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cache_line_ns: Option<[f64; 2]>,
    /// Measured several times for a comparison, it was slower than before and faster: neither is
    /// true.
    #[serde(default, skip_serializing_if = "is_steady")]
    pub(super) unsteady: bool,
    /// Whether the data was right; none when it was not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) right: Option<bool>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_steady(unsteady: &bool) -> bool {
    !unsteady
}

/// Of the times of a row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Latency {
    pub(super) min: f64,
    pub(super) median: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
    pub(super) p999: f64,
    pub(super) max: f64,
    pub(super) mean: f64,
}

impl Latency {
    /// Of times, which are sorted by it; there has to be one.
    pub(super) fn of(times: &mut [f64]) -> Self {
        times.sort_unstable_by(f64::total_cmp);
        let last = times.len() - 1;
        // The smallest time that `of_thousand` of 1000 do not exceed.
        let rank = |of_thousand: usize| times[(times.len() * of_thousand).div_ceil(1000) - 1];
        Self {
            min: times[0],
            median: times[last / 2],
            p90: rank(900),
            p99: rank(990),
            p999: rank(999),
            max: times[last],
            mean: times.iter().sum::<f64>() / times.len() as f64,
        }
    }

    /// Messages per second of `at_once` tasks: of the median too, since a pause of one task, which
    /// is long beside a window, says nothing about the others.
    pub(super) fn messages_per_s(&self, at_once: f64) -> f64 {
        at_once * 1e6 / self.median.max(1e-6)
    }
}

impl Report {
    /// Without results yet.
    pub(super) fn new(library: &Path, tasks: u32, transport: String, plan: Plan) -> Self {
        let host = nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned());
        let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self {
            program: PROGRAM.to_owned(),
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            library: library.display().to_string(),
            host: host.unwrap_or_default(),
            time: time.map_or(0, |time| time.as_secs()),
            tasks,
            transport,
            plan,
            results: Vec::new(),
        }
    }

    /// Reads a file that `--json` has written.
    pub(super) fn read(file: &Path) -> Result<Self> {
        let wrong = |why: String| Failure::usage(format!("{}: {why}", file.display()));
        let text = crate::named_file::read(file).map_err(|why| wrong(why.to_string()))?;
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|why| wrong(format!("this is no JSON: {why}")))?;
        if value["program"] != PROGRAM {
            return Err(wrong(String::from("this is JSON, but not of lapi_perf --json")));
        }
        if value["format"] != FORMAT {
            return Err(wrong(format!(
                "its format is {}, and this lapi_perf reads {FORMAT}",
                value["format"]
            )));
        }
        let report: Self = serde_json::from_value(value).map_err(|why| wrong(why.to_string()))?;
        match report.results.is_empty() {
            true => Err(wrong(String::from("it has no results"))),
            false => Ok(report),
        }
    }

    /// As JSON.
    pub(super) fn json(&self) -> Result<String> {
        let text = serde_json::to_string_pretty(self);
        text.map(|text| text + "\n").map_err(|why| Failure::failed(format!("JSON: {why}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_of_times() {
        let mut times: Vec<f64> = (1..=1000).rev().map(f64::from).collect();
        let found = Latency::of(&mut times);
        assert_eq!((found.min, found.median, found.p99, found.max), (1.0, 500.0, 990.0, 1000.0));
        assert_eq!((found.p90, found.p999), (900.0, 999.0));
        assert!((found.mean - 500.5).abs() < 1e-9);
        let one = Latency::of(&mut [7.0]);
        assert_eq!([one.min, one.median, one.p90, one.p99, one.p999, one.max, one.mean], [7.0; 7]);
        // Of two times, 99 in 100 are both.
        assert_eq!(Latency::of(&mut [2.0, 1.0]).p99, 2.0);
        // One pause does not change the rate.
        assert_eq!(Latency::of(&mut [1.0, 1.0, 1000.0, 1.0, 1.0]).messages_per_s(2.0), 2e6);
    }
}
