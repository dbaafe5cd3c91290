//! What the report's numbers mean, in sentences.

use super::summary::Report;
use crate::part::SiteRow;

/// A task stands out when it spends this many times the median outside of LAPI, and
const TIMES: f64 = 1.5;
/// when this share of the job's time is at stake.
const SHARE: f64 = 0.05;

/// The sentences, the most important one first; none when the tasks have made no calls.
pub fn findings(report: &Report) -> Vec<String> {
    [most_time(report), waiting(report), slowest(report), errors(report)].into_iter().flatten().collect()
}

/// The place at which most of the time in LAPI is spent.
fn most_time(report: &Report) -> Option<String> {
    let all = sum(report.sites.iter().map(|row| row.time));
    let row = report.sites.first().filter(|row| row.time != 0)?;
    Some(format!("{} of the time in LAPI is {} at {}.", percent(row.time, all), row.call, place(row)))
}

/// How much of their time the tasks wait.
fn waiting(report: &Report) -> Option<String> {
    let all = sum(report.task.iter().map(|task| task.wall));
    let share = percent(sum(report.task.iter().map(|task| task.waiting)), all);
    (all != 0).then(|| format!("The tasks spend {share} of their time in calls that wait or poll."))
}

/// The task that the others wait for: it computes longer than they do.
fn slowest(report: &Report) -> Option<String> {
    let outside: Vec<(u64, u32)> = report.task.iter().map(|task| (task.outside(), task.task)).collect();
    longest_outside(outside, report.wall)
}

/// The task that stands out among these, with how long each was outside LAPI.
fn longest_outside(mut outside: Vec<(u64, u32)>, wall: u64) -> Option<String> {
    outside.sort_unstable();
    // Of two tasks the shorter one.
    let median = outside.get(outside.len().checked_sub(1)? / 2)?.0;
    let (longest, task) = *outside.last()?;
    let times = longest as f64 / median.max(1) as f64;
    let stands_out = times >= TIMES && (longest - median) as f64 >= SHARE * wall as f64;
    // A ratio to nearly nothing means nothing.
    let compared =
        if times < 100.0 { format!("{times:.1} times as long as") } else { "far longer than".into() };
    stands_out.then(|| format!("Task {task} computes (spends time outside LAPI) {compared} the median task."))
}

/// Calls that have failed.
fn errors(report: &Report) -> Option<String> {
    let failed = sum(report.sites.iter().map(|row| row.errors));
    let row = report.sites.iter().max_by_key(|row| row.errors).filter(|row| row.errors != 0)?;
    let calls = if failed == 1 { "1 call has failed".into() } else { format!("{failed} calls have failed") };
    Some(format!("{calls}; most often {} at {}.", row.call, place(row)))
}

fn place(row: &SiteRow) -> &str {
    [&row.line, &row.site, &row.address].into_iter().find(|name| !name.is_empty()).map_or("", String::as_str)
}

fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

fn percent(part: u64, all: u64) -> String {
    format!("{:.0} %", 100.0 * part as f64 / all.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::longest_outside;

    #[test]
    fn a_task_that_computes_longer_than_the_median_is_named() {
        let of = |times: &[u64]| longest_outside(times.iter().copied().zip(0..).collect(), 1000);
        let said = |task, how| {
            Some(format!("Task {task} computes (spends time outside LAPI) {how} the median task."))
        };
        assert_eq!(of(&[100, 300, 90, 110]), said(1, "3.0 times as long as"));
        assert_eq!(of(&[100, 200]), said(1, "2.0 times as long as"));
        assert_eq!(of(&[0, 500]), said(1, "far longer than"));
        // Less than half as long again; of no weight in the job; alone; none.
        for even in [&[100, 140, 100][..], &[1, 3, 1], &[500], &[]] {
            assert_eq!(of(even), None, "{even:?}");
        }
    }
}
