//! Two measurements beside each other.

use std::fmt::Write as _;

use super::error::{Failure, Result};
use super::options::Options;
use super::report::{Measured, Report};
use super::sizes;
use super::table::number;

/// Differences up to it are not marked when no percentage is given: times of one machine differ so
/// much from run to run.
const NOISE: f64 = 10.0;

/// The rows that both have.
pub(super) struct Comparison {
    head: String,
    rows: Vec<Row>,
    /// Rows that one of them has alone.
    alone: [Vec<String>; 2],
    noise: f64,
    fail_above: Option<f64>,
}

struct Row {
    name: String,
    size: u64,
    unit: &'static str,
    old: f64,
    new: f64,
    /// By how many percent the new one takes longer; negative: it is faster.
    slower: f64,
    unsteady: bool,
}

impl Comparison {
    pub(super) fn of(old: &Report, new: &Report, options: &Options) -> Self {
        let rows = new.results.iter().filter_map(|row| Some(Row::of(same(old, row)?, row))).collect();
        let alone = [(old, new), (new, old)].map(|(one, other)| {
            let alone = one.results.iter().filter(|row| same(other, row).is_none());
            alone.map(|row| format!("{} {}", row.test, sizes::text(row.size))).collect()
        });
        let mut head = String::new();
        for (name, report) in [("old", old), ("new", new)] {
            let _ = writeln!(
                head,
                "# {name}: lapi_perf {}, {} tasks, {}, task 0 on {}, {}",
                report.version, report.tasks, report.transport, report.host, report.library
            );
        }
        let how = |report: &Report| (report.tasks, report.plan.mode, report.plan.pairs);
        if how(old) != how(new) || (&old.transport, &old.host) != (&new.transport, &new.host) {
            head += "# they were not measured alike\n";
        }
        Self { head, rows, alone, noise: options.noise.unwrap_or(NOISE), fail_above: options.fail_above }
    }

    /// Whether a row is slower than `--fail-above` allows; a failure when there is none to judge.
    pub(super) fn is_slower(&self) -> Result<bool> {
        let Some(most) = self.fail_above else { return Ok(false) };
        if self.rows.is_empty() {
            return Err(Failure::failed("--fail-above: nothing to compare: no row is in both"));
        }
        Ok(self.rows.iter().any(|row| row.slower > most && !row.unsteady))
    }

    pub(super) fn table(&self) -> String {
        let mut text = self.head.clone();
        let _ = writeln!(
            text,
            "{:<11} {:>7} {:>10} {:>10} {:>6} {:>9}",
            "test", "size", "old", "new", "", "time"
        );
        for row in &self.rows {
            let mark = if row.unsteady {
                "  unsteady"
            } else if row.slower > self.noise {
                "  slower"
            } else if row.slower < -self.noise {
                "  faster"
            } else {
                ""
            };
            let _ = writeln!(
                text,
                "{:<11} {:>7} {:>10} {:>10} {:>6} {:>+8.1}%{mark}",
                row.name,
                sizes::text(row.size),
                number(row.old),
                number(row.new),
                row.unit,
                row.slower
            );
        }
        for (rows, which) in self.alone.iter().zip(["old", "new"]).filter(|(rows, _)| !rows.is_empty()) {
            let _ = writeln!(text, "# only in the {which} one: {}", rows.join(", "));
        }
        text
    }
}

/// Whether a row differs from the same of an older report by more than noise.
pub(super) fn differs(old: &Report, row: &Measured, options: &Options) -> bool {
    same(old, row).is_some_and(|old| Row::of(old, row).slower.abs() > options.noise.unwrap_or(NOISE))
}

/// Of two measurements of a row the one that differs less from the older report; wrong data is
/// kept. When one is slower than noise allows and the other faster, the row is unsteady, whichever
/// is nearer: a pause of a machine that others use makes it so.
pub(super) fn nearer(old: &Report, one: Measured, other: Measured, options: &Options) -> Measured {
    let right = one.right.zip(other.right).map(|(one, other)| one && other);
    let noise = options.noise.unwrap_or(NOISE);
    let slower = |row: &Measured| same(old, row).map_or(0.0, |old| Row::of(old, row).slower);
    let (first, second) = (slower(&one), slower(&other));
    let differ = first.min(second) < -noise && first.max(second) > noise;
    let is_near = first.abs().min(second.abs()) <= noise;
    let unsteady = !is_near && (differ || one.unsteady || other.unsteady);
    let nearest = if second.abs() < first.abs() { other } else { one };
    Measured { right, unsteady, ..nearest }
}

fn same<'a>(report: &'a Report, row: &Measured) -> Option<&'a Measured> {
    let alike =
        |other: &&Measured| (&other.test, other.size, other.window) == (&row.test, row.size, row.window);
    report.results.iter().find(alike)
}

impl Row {
    /// The medians count: a pause of a whole task, which is long beside a window, would
    /// decide the mean.
    fn of(old: &Measured, new: &Measured) -> Self {
        let times = [old, new].map(|row| row.latency_us.median.max(1e-6));
        let slower = (times[1] / times[0] - 1.0) * 100.0;
        let is_rate = new.window > 1 && new.size > 0;
        let [old, new_value] = times.map(|time| if is_rate { new.size as f64 / time } else { time });
        let unit = if is_rate { "MB/s" } else { "µs" };
        let unsteady = new.unsteady;
        Self { name: new.test.clone(), size: new.size, unit, old, new: new_value, slower, unsteady }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lapi_perf::report::Latency;
    use crate::lapi_perf::{catalog, plan::Plan};
    use std::path::Path;

    fn report(rows: &[(&str, u64, u64, f64)]) -> Report {
        let options = Options { tests: Some(catalog::choose("put").expect("a test")), ..Options::default() };
        let plan = Plan::of(&options, 2).expect("a plan");
        let mut report = Report::new(Path::new("lib"), 2, "shared memory".to_owned(), plan);
        report.results = rows
            .iter()
            .map(|(test, size, window, time)| Measured {
                test: (*test).to_owned(),
                size: *size,
                window: *window,
                samples: 1,
                latency_us: Latency::of(&mut [*time]),
                histogram: Vec::new(),
                mb_per_s: Some(*size as f64 / time),
                messages_per_s: 1e6 / time,
                cache_line_ns: None,
                unsteady: false,
                right: None,
            })
            .collect();
        report
    }

    #[test]
    fn of_several_measurements_the_one_without_noise_counts() {
        let old = report(&[("put_lat", 8, 1, 1.0)]);
        let row = |time| report(&[("put_lat", 8, 1, time)]).results.remove(0);
        let options = Options::default();
        assert!(differs(&old, &row(1.2), &options) && differs(&old, &row(0.8), &options));
        assert!(!differs(&old, &row(1.05), &options));
        for (one, other, kept) in [(1.5, 1.02, 1.02), (1.02, 1.5, 1.02), (0.5, 1.4, 1.4), (3.0, 2.0, 2.0)] {
            assert_eq!(nearer(&old, row(one), row(other), &options).latency_us.median, kept);
        }
        // Slower once and faster once is noise, until one of them is as before.
        let both = nearer(&old, row(1.5), row(0.5), &options);
        assert!(both.unsteady && nearer(&old, both.clone(), row(1.4), &options).unsteady);
        assert!(!nearer(&old, both.clone(), row(1.05), &options).unsteady);
        assert!(!nearer(&old, row(1.5), row(1.6), &options).unsteady);
        let mut new = old.clone();
        new.results = vec![both];
        let judged = Comparison::of(&old, &new, &Options { fail_above: Some(1.0), ..Options::default() });
        assert!(
            judged.table().contains("%  unsteady") && judged.is_slower() == Ok(false),
            "{}",
            judged.table()
        );
        let wrong = Measured { right: Some(false), ..row(5.0) };
        let right = Measured { right: Some(true), ..row(1.0) };
        assert_eq!(nearer(&old, wrong, right, &options).right, Some(false));
    }

    #[test]
    fn rows_are_found_again_and_judged() {
        let old = report(&[("put_lat", 8, 1, 1.0), ("put_bw", 8, 64, 1.0), ("get_lat", 8, 1, 1.0)]);
        let new = report(&[("put_lat", 8, 1, 1.5), ("put_bw", 8, 64, 0.5), ("add_lat", 8, 1, 1.0)]);
        let judge = |fail_above| Comparison::of(&old, &new, &Options { fail_above, ..Options::default() });
        let table = judge(None).table();
        for line in [
            "+50.0%  slower",
            "-50.0%  faster",
            "only in the old one: get_lat 8",
            "only in the new one: add_lat 8",
        ] {
            assert!(table.contains(line), "{table}");
        }
        for (fail_above, slower) in [(None, false), (Some(49.0), true), (Some(51.0), false)] {
            assert_eq!(judge(fail_above).is_slower(), Ok(slower), "{fail_above:?}");
        }
        // No row is in both.
        let other = report(&[("add_lat", 8, 1, 1.0)]);
        let judge = |fail_above| Comparison::of(&old, &other, &Options { fail_above, ..Options::default() });
        assert_eq!(judge(None).is_slower(), Ok(false));
        let why = judge(Some(5.0)).is_slower().expect_err("nothing to judge").to_string();
        assert!(why.contains("nothing to compare"), "{why}");
    }
}
