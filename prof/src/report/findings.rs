//! What the report's numbers mean, in sentences.

use super::crowd::{self, Crowd};
use super::summary::{Report, Stand, Task, place};
use openlapi::base::ranges::tasks_named;
use std::collections::BTreeMap;

/// A task stands out when it spends this many times the median outside of LAPI, and
const TIMES: f64 = 1.5;
/// when this share of the job's time is at stake.
const SHARE: f64 = 0.05;
/// At most as many places are named at which tasks were stopped.
const STOPS: usize = 4;

/// The sentences, the most important one first; none when the tasks have made no calls.
pub fn findings(report: &Report) -> Vec<String> {
    let crowd = crowd::largest(&report.task);
    let mut sentences = stopped(&report.task);
    sentences.extend(crowd.as_ref().map(Crowd::sentence));
    let rest = [most_time(report), waiting(report, crowd.is_some()), slowest(report), errors(report)];
    sentences.extend(rest.into_iter().flatten());
    sentences
}

/// Where tasks were that have not ended by themselves, those that waited first.
fn stopped(tasks: &[Task]) -> Vec<String> {
    let mut groups: BTreeMap<(Option<&[Stand]>, &str), Vec<usize>> = BTreeMap::new();
    for task in tasks {
        let Some(why) = &task.interim else { continue };
        let stands = Some(&task.stands[..]).filter(|stands| !stands.is_empty());
        if stands.is_some() || task.stands_outside {
            groups.entry((stands, why)).or_default().push(task.task as usize);
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    // Tasks outside LAPI last, and the largest group first.
    groups.sort_by_key(|((stands, _), tasks)| (stands.is_none(), usize::MAX - tasks.len()));
    let sentence = |((stands, why), tasks): &((Option<&[Stand]>, &str), Vec<usize>)| {
        let were = if tasks.len() == 1 { "was" } else { "were" };
        let place = stands.map_or_else(|| "outside LAPI".to_owned(), stands_in_words);
        let when = match *why {
            "running" => "when the part was written".to_owned(),
            "_exit" => "at _exit".to_owned(),
            "SIGSEGV" | "SIGBUS" | "SIGFPE" | "SIGILL" | "SIGABRT" => format!("at the fault ({why})"),
            _ => "when the job was stopped".to_owned(),
        };
        format!("{} {were} {place} {when}.", capital(&tasks_named(tasks)))
    };
    let mut sentences: Vec<String> = groups.iter().take(STOPS).map(sentence).collect();
    if groups.len() > STOPS {
        let left: usize = groups[STOPS..].iter().map(|(_, tasks)| tasks.len()).sum();
        sentences.push(format!("{left} more tasks were stopped at other places (tables below)."));
    }
    sentences
}

/// `in LAPI_Gfence at dead.c:12`, `in the header handler count`.
fn stands_in_words(stands: &[Stand]) -> String {
    let one = |stand: &Stand| match stand.call.strip_suffix("handler") {
        Some(_) => format!("in the {} {}", stand.call, stand.place),
        None => format!("in {} at {}", stand.call, stand.place),
    };
    stands.iter().map(one).collect::<Vec<_>>().join(" and ")
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The place at which most of the time in LAPI is spent.
fn most_time(report: &Report) -> Option<String> {
    let all = sum(report.sites.iter().map(|row| row.time));
    let row = report.sites.first().filter(|row| row.time != 0)?;
    Some(format!("{} of the time in LAPI is {} at {}.", percent(row.time, all), row.call, place(row)))
}

/// How much of their time the tasks wait.
fn waiting(report: &Report, crowded: bool) -> Option<String> {
    let all = sum(report.task.iter().map(|task| task.wall));
    // Of a task with several threads as long as it ran, at most.
    let share = percent(sum(report.task.iter().map(|task| task.waiting.min(task.wall))), all);
    let also = if crowded { ", some of it for a processor" } else { "" };
    (all != 0).then(|| format!("The tasks spend {share} of their time in calls that wait or poll{also}."))
}

/// The task that the others wait for: it computes longer than they do. Where tasks wait for
/// processors, no more counts than they have had.
fn slowest(report: &Report) -> Option<String> {
    let crowded = crowd::hosts(&report.task);
    let outside = report.task.iter().map(|task| {
        let is_crowded = crowded.iter().any(|crowd| crowd.host == task.host);
        (if is_crowded { task.outside().min(task.cpu) } else { task.outside() }, task.task)
    });
    longest_outside(outside.collect(), report.wall)
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

fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

fn percent(part: u64, all: u64) -> String {
    format!("{:.0} %", 100.0 * part as f64 / all.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::{findings, longest_outside};
    use crate::part::{Part, SiteRow};
    use crate::report::Report;

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

    /// Of 64 tasks on two processors one has long been outside LAPI, without a processor.
    #[test]
    fn on_a_crowded_machine_that_is_the_first_finding_and_waiting_for_a_processor_no_computing() {
        let task = |task: u32, cpu: u64, inside: u64| Part {
            tasks: 64,
            processors: "0-1".into(),
            wall: 1000,
            cpu,
            sites: vec![SiteRow {
                call: "LAPI_Gfence".into(),
                class: "wait".into(),
                line: "a.c:7".into(),
                count: 1,
                time: inside,
                ..SiteRow::default()
            }],
            ..Part::empty(task)
        };
        let mut parts: Vec<Part> = (0..64).map(|number| task(number, 30, 960)).collect();
        parts[36] = task(36, 31, 100);
        let said = |parts: &[Part]| findings(&Report::of(parts));
        let found = said(&parts);
        assert_eq!(found[0], "64 tasks on 2 processors: their times include waiting for a processor.");
        assert!(!found.iter().any(|sentence| sentence.starts_with("Task 36")), "{found:?}");
        parts[36] = task(36, 900, 100);
        assert!(said(&parts).iter().any(|sentence| sentence.starts_with("Task 36 computes")));
    }

    #[test]
    fn the_threads_of_a_task_wait_no_longer_than_it_runs() {
        let row = SiteRow { class: "wait".into(), count: 4, time: 4000, ..SiteRow::default() };
        let part = Part { tasks: 1, wall: 1000, sites: vec![row], ..Part::empty(0) };
        let found = findings(&Report::of(&[part]));
        assert!(found.iter().any(|said| said.starts_with("The tasks spend 100 % of")), "{found:?}");
    }

    #[test]
    fn where_the_tasks_of_a_hung_job_were_is_the_first_finding() {
        let row = |call: &str, class: &str, line: &str| SiteRow {
            call: call.into(),
            class: class.into(),
            line: line.into(),
            count: 1,
            open: 1,
            time: 900,
            ..SiteRow::default()
        };
        let of = |task: u32, rows: &[SiteRow]| Part {
            tasks: 4,
            interim: Some("SIGINT".into()),
            wall: 1000,
            sites: rows.to_vec(),
            ..Part::empty(task)
        };
        let fence = row("LAPI_Gfence", "wait", "dead.c:12");
        let parts = [
            of(0, std::slice::from_ref(&fence)),
            of(1, &[]),
            of(2, &[fence]),
            of(3, &[row("header handler", "handler", "dead.c:5")]),
        ];
        let report = Report::of(&parts);
        let found = findings(&report);
        assert_eq!(
            found[..3],
            [
                "Tasks 0, 2 were in LAPI_Gfence at dead.c:12 when the job was stopped.",
                "Task 3 was in the header handler dead.c:5 when the job was stopped.",
                "Task 1 was outside LAPI when the job was stopped.",
            ]
        );
        assert!(found.contains(&"The tasks spend 45 % of their time in calls that wait or poll.".to_owned()));
    }
}
