//! The report as data: DIR/report.json.

use super::lanes::Lanes;
use super::thin::thin;
use crate::calls::Class;
use crate::part::{Moved, Part, SiteRow, SizeCount, TaskPair};
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};

/// How many stretches of time are shown at most.
const STRETCHES: u64 = 400;

/// What the tasks of a job did. Times in ns.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// How many tasks the job has.
    pub tasks: u32,
    /// The tasks of which there is no part: they died before their first interim part.
    pub missing: Vec<u32>,
    /// The tasks of which there is an interim part only: they were interrupted, or still run.
    pub interim: Vec<u32>,
    /// The program of the first task.
    pub program: String,
    /// When the first task called LAPI_Init, in ns since 1970.
    pub started: u64,
    /// From then on until the last part was made.
    pub wall: u64,
    /// What the numbers mean, in sentences; empty until [`super::of`] has added them.
    pub findings: Vec<String>,
    /// The tasks.
    pub task: Vec<Task>,
    /// Each call and kind of handler, over all places.
    pub calls: Vec<SiteRow>,
    /// By the place that they were called from, over all tasks.
    pub sites: Vec<SiteRow>,
    /// Each handler, over all tasks.
    pub handlers: Vec<SiteRow>,
    /// The communication matrix: every pair of an origin and a target between which
    /// something was moved.
    pub links: Vec<TaskPair>,
    /// What was moved within hosts, by shared memory or within a task.
    pub local: Moved,
    /// What was moved between hosts, by the network.
    pub remote: Moved,
    /// Transfers by size, for each kind.
    pub sizes: BTreeMap<String, Vec<SizeCount>>,
    /// Calls in the course of time.
    pub timeline: Timeline,
    /// What each task did in the course of time.
    pub lanes: Lanes,
    /// How many events the trace has.
    pub events: u64,
    /// How many calls came later.
    pub events_left_out: u64,
    /// The files it was made of ([`crate::part::files_of`]); `None`: not all parts are final.
    pub made_of: Option<u64>,
}

/// One task.
#[derive(Clone, Debug, Serialize)]
pub struct Task {
    /// The task's number.
    pub task: u32,
    /// The host of the task.
    pub host: String,
    /// The task's process.
    pub pid: u32,
    /// Why its part was made before its end: a signal's name, or "running"; `None` when it was
    /// made at the end.
    pub interim: Option<String>,
    /// From its first LAPI_Init until its part was made.
    pub wall: u64,
    /// The processors that it may use.
    pub processors: String,
    /// How long it has used a processor.
    pub cpu: u64,
    /// The calls and handlers that it was in when an interim part was made.
    pub stands: Vec<Stand>,
    /// The task was in no call, and has made none shortly before.
    pub stands_outside: bool,
    /// How many threads it had that called LAPI or ran handlers.
    pub threads: u32,
    /// How many calls it has made.
    pub calls: u64,
    /// How long those have taken; nested calls (in a handler, inside a call) are each
    /// counted in full.
    pub inside: u64,
    /// How much of that in calls that wait or poll.
    pub waiting: u64,
    /// How much of that in calls that move data.
    pub moving: u64,
    /// How long its handlers have run, as far as they could be timed.
    pub handlers: u64,
    /// How many events it has kept, at most `events_limit`.
    pub events: u64,
    /// How many there was room for.
    pub events_limit: u64,
    /// How many calls came later.
    pub events_left_out: u64,
}

/// Where a task was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Stand {
    /// The call, or the kind of handler.
    pub call: String,
    /// Where the call stands in the program; the handler's name.
    pub place: String,
}

/// Calls and bytes by time.
#[derive(Clone, Debug, Serialize)]
pub struct Timeline {
    /// The length of a stretch.
    pub stretch: u64,
    /// For each class, how many calls began in each stretch.
    pub counts: BTreeMap<&'static str, Vec<u64>>,
    /// For each class that moves data, how many bytes the calls moved that began in each stretch.
    pub bytes: BTreeMap<&'static str, Vec<u64>>,
}

impl Report {
    /// The report of parts of one job, which are sorted by task.
    pub fn of(parts: &[Part]) -> Self {
        let tasks = parts.first().map_or(0, |part| part.tasks);
        let started = parts.iter().map(|part| part.started).min().unwrap_or(0);
        let wall =
            parts.iter().map(|part| part.started.saturating_add(part.wall)).max().unwrap_or(0) - started;
        let all = || parts.iter().flat_map(|part| &part.sites);
        let calls = || all().filter(|row| row.class != "handler");
        let present: HashSet<u32> = parts.iter().map(|part| part.task).collect();
        let mut sizes = BTreeMap::new();
        for kind in &Class::NAMES[..Class::MOVING] {
            let rows = all().filter(|row| row.class == *kind);
            sizes.insert((*kind).to_owned(), rows.fold(Vec::new(), |sum, row| with_sizes(sum, &row.sizes)));
        }
        Self {
            tasks,
            findings: Vec::new(),
            missing: (0..tasks).filter(|task| !present.contains(task)).collect(),
            interim: parts.iter().filter(|part| part.interim.is_some()).map(|part| part.task).collect(),
            program: parts.first().map_or_else(String::new, |part| part.program.clone()),
            started,
            wall,
            task: parts.iter().map(Task::of).collect(),
            calls: together(calls().map(|row| SiteRow {
                site: String::new(),
                line: String::new(),
                object: String::new(),
                address: String::new(),
                ..row.clone()
            })),
            sites: together(calls().cloned()),
            handlers: together(all().filter(|row| row.class == "handler").cloned()),
            local: moved(parts, false),
            remote: moved(parts, true),
            links: parts.iter().flat_map(|part| part.links.iter().cloned()).collect(),
            sizes,
            timeline: timeline(parts, started, wall),
            lanes: Lanes::of(parts, started, wall),
            events: thin(parts).iter().map(|thinned| thinned.events.len() as u64).sum(),
            events_left_out: total(parts.iter().map(|part| part.events_left_out)),
            made_of: None,
        }
    }

    /// `; no part of tasks 1, 2; interim parts of task 0`, or nothing.
    pub fn incomplete_in_words(&self) -> String {
        let mut words = String::new();
        for (what, tasks) in [("no part", &self.missing), ("only an interim part", &self.interim)] {
            if !tasks.is_empty() {
                let plural = if tasks.len() == 1 { "" } else { "s" };
                let tasks: Vec<String> = tasks.iter().map(u32::to_string).collect();
                words += &format!("; {what} of task{plural} {}", tasks.join(", "));
            }
        }
        words
    }
}

impl Task {
    fn of(part: &Part) -> Self {
        let (handlers, calls): (Vec<&SiteRow>, Vec<&SiteRow>) =
            part.sites.iter().partition(|row| row.class == "handler");
        let inside = |classes: &[&str]| {
            total(calls.iter().filter(|row| classes.contains(&row.class.as_str())).map(|row| row.time))
        };
        let stands: Vec<Stand> = part
            .sites
            .iter()
            .filter(|row| row.open != 0 && part.interim.is_some())
            .map(|row| Stand { call: row.call.clone(), place: place(row).to_owned() })
            .collect();
        Self {
            task: part.task,
            host: part.host.clone(),
            pid: part.pid,
            interim: part.interim.clone(),
            wall: part.wall,
            processors: part.processors.clone(),
            cpu: part.cpu,
            stands_outside: part.interim.is_some() && stands.is_empty() && is_silent(part),
            stands,
            threads: part.threads,
            calls: total(calls.iter().map(|row| row.count)),
            inside: total(calls.iter().map(|row| row.time)),
            waiting: inside(&["wait"]),
            moving: inside(&Class::NAMES[..Class::MOVING]),
            handlers: total(handlers.iter().map(|row| row.time)),
            events: part.events.len() as u64,
            events_limit: part.events_limit,
            events_left_out: part.events_left_out,
        }
    }

    /// How long the task was outside of LAPI; 0 when the calls of several threads, or nested calls,
    /// take longer than the task.
    pub fn outside(&self) -> u64 {
        self.wall.saturating_sub(self.inside)
    }
}

/// Whether no call began in the stretch in which the part was made, nor in the one before.
fn is_silent(part: &Part) -> bool {
    let now = (part.wall / part.stretch.max(1)) as usize;
    let last = part.timeline.iter().rposition(|bin| bin.iter().any(|count| *count != 0));
    last.is_none_or(|last| last + 1 < now)
}

/// The best name of a place: a source line, a function, an address.
pub(super) fn place(row: &SiteRow) -> &str {
    [&row.line, &row.site, &row.address].into_iter().find(|name| !name.is_empty()).map_or("", String::as_str)
}

/// A sum; the largest number where it has no room. What a task writes is far from that, but a
/// damaged file is not.
fn total(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

/// Everything that was moved by the network, or otherwise.
fn moved(parts: &[Part], network: bool) -> Moved {
    let links = parts.iter().flat_map(|part| &part.links).filter(|link| link.network == network);
    links.flat_map(TaskPair::moved).fold(Moved::default(), |sum, moved| Moved {
        count: sum.count.saturating_add(moved.count),
        bytes: sum.bytes.saturating_add(moved.bytes),
        time: sum.time.saturating_add(moved.time),
    })
}

/// Rows of the same call and place made one, the longest time first. An address without a name is
/// the same place in all tasks: they have one map.
fn together(rows: impl Iterator<Item = SiteRow>) -> Vec<SiteRow> {
    let mut sums: BTreeMap<[String; 4], SiteRow> = BTreeMap::new();
    for row in rows {
        let key = [&row.call, &row.site, &row.object, &row.line].map(Clone::clone);
        let Some(sum) = sums.get_mut(&key) else {
            sums.insert(key, row);
            continue;
        };
        for (sum, more) in [
            (&mut sum.count, row.count),
            (&mut sum.open, row.open),
            (&mut sum.errors, row.errors),
            (&mut sum.bytes, row.bytes),
            (&mut sum.time, row.time),
        ] {
            *sum = sum.saturating_add(more);
        }
        sum.longest = sum.longest.max(row.longest);
        sum.sizes = with_sizes(std::mem::take(&mut sum.sizes), &row.sizes);
    }
    let mut rows: Vec<SiteRow> = sums.into_values().collect();
    rows.sort_by_key(|row| u64::MAX - row.time);
    rows
}

fn with_sizes(mut sum: Vec<SizeCount>, more: &[SizeCount]) -> Vec<SizeCount> {
    for size in more {
        match sum.binary_search_by_key(&size.from, |known| known.from) {
            Ok(at) => sum[at].count = sum[at].count.saturating_add(size.count),
            Err(at) => sum.insert(at, *size),
        }
    }
    sum
}

/// One timeline of all, in stretches as long as the longest of any task; a stretch counts where
/// its middle lies.
fn timeline(parts: &[Part], started: u64, wall: u64) -> Timeline {
    let longest = parts.iter().map(|part| part.stretch).max().unwrap_or(1);
    let stretch = longest.max(wall / STRETCHES).max(1);
    let last = (wall / stretch) as usize;
    let lines = |classes: usize| vec![vec![0; last + 1]; classes];
    let (mut counts, mut bytes) = (lines(Class::COUNT), lines(Class::MOVING));
    for part in parts {
        let place = |at: usize| {
            let begin = (part.started - started).saturating_add((at as u64).saturating_mul(part.stretch));
            ((begin.saturating_add(part.stretch / 2) / stretch) as usize).min(last)
        };
        for (at, bin) in part.timeline.iter().enumerate() {
            add_stretch(&mut counts, place(at), bin);
        }
        for (at, bin) in part.timeline_bytes.iter().enumerate() {
            add_stretch(&mut bytes, place(at), bin);
        }
    }
    let named = |lines: Vec<Vec<u64>>| Class::NAMES.into_iter().zip(lines).collect();
    Timeline { stretch, counts: named(counts), bytes: named(bytes) }
}

/// Adds the numbers of a stretch, one for each class, to the classes' lines.
fn add_stretch(lines: &mut [Vec<u64>], at: usize, numbers: &[u64]) {
    for (line, number) in lines.iter_mut().zip(numbers) {
        line[at] = line[at].saturating_add(*number);
    }
}
