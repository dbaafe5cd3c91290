//! The results for people: a line for each row, as it is measured.

use std::fmt::Write as _;

use super::histogram;
use super::report::{Measured, Report};
use super::sizes;

/// The widest bar of a distribution.
const BAR: f64 = 40.0;

/// What stands above the rows.
pub(super) fn head(report: &Report) -> String {
    let plan = &report.plan;
    let pairs = if plan.pairs == 1 { "1 pair" } else { &format!("{} pairs", plan.pairs) };
    let checked = if plan.check { ", data compared" } else { "" };
    let mode = plan.mode.name();
    format!(
        "# lapi_perf {}: {} tasks, {pairs} ({mode}), {}, task 0 on {}{checked}\n\
         # {}\n\
         # times of one operation in µs; MB: 10^6 bytes\n\
         {:<11} {:>7} {:>7} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}{}\n",
        report.version,
        report.tasks,
        report.transport,
        report.host,
        report.library,
        "test",
        "size",
        "window",
        "median",
        "mean",
        "p99",
        "max",
        "MB/s",
        "Mmsg/s",
        if plan.cache_line { "     line, ns" } else { "" }
    )
}

pub(super) fn row(row: &Measured) -> String {
    let latency = &row.latency_us;
    let rate = row.mb_per_s.map_or("-".to_owned(), number);
    let times = [latency.median, latency.mean, latency.p99, latency.max].map(number);
    let line =
        row.cache_line_ns.map_or(String::new(), |[before, after]| format!(" {before:>6.0}{after:>6.0}"));
    let wrong = if row.right == Some(false) { "  WRONG DATA" } else { "" };
    format!(
        "{:<11} {:>7} {:>7} {:>10} {:>10} {:>10} {:>10} {rate:>10} {:>10}{line}{wrong}\n",
        row.test,
        sizes::text(row.size),
        row.window,
        times[0],
        times[1],
        times[2],
        times[3],
        number(row.messages_per_s / 1e6)
    )
}

/// How the times of a row are distributed, in lines that a reader of the table passes over.
pub(super) fn distribution(row: &Measured) -> String {
    let latency = &row.latency_us;
    let mut text = format!(
        "#   µs of {} samples: 50 % {}, 90 % {}, 99 % {}, 99.9 % {}, longest {}\n",
        row.samples,
        number(latency.median),
        number(latency.p90),
        number(latency.p99),
        number(latency.p999),
        number(latency.max)
    );
    let shown = histogram::with_short_end(&row.histogram, row.samples);
    let most = shown.iter().map(|range| range.count).max().unwrap_or(1) as f64;
    let mut until = 0;
    for range in &shown {
        until += range.count;
        // The longest bar is that of the largest range; each has one.
        let bar = "*".repeat((range.count as f64 / most * BAR).ceil() as usize);
        let part = until as f64 * 100.0 / row.samples.max(1) as f64;
        let _ = writeln!(
            text,
            "#   {:>8} to {:>8} {:>10} {:>6}% {bar}",
            number(range.from),
            number(range.to),
            range.count,
            // So many are below the end of the range: 100 only where all are.
            format!("{:.2}", (part * 100.0).floor() / 100.0)
        );
    }
    text
}

/// A number with three digits that count, and more only before the point.
pub(super) fn number(value: f64) -> String {
    match value.abs() {
        0.0..1.0 => format!("{value:.3}"),
        1.0..10.0 => format!("{value:.2}"),
        10.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_that_count() {
        for (value, text) in
            [(0.1234, "0.123"), (1.234, "1.23"), (12.34, "12.3"), (123.4, "123"), (12345.0, "12345")]
        {
            assert_eq!(number(value), text);
        }
    }
}
