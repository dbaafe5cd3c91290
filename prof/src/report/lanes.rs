//! What each task did in the course of time, on the clock of all: the rows of the page's
//! "Tasks over time".

use crate::calls::Class;
use crate::part::Part;
use serde::Serialize;
use std::collections::BTreeMap;

/// How many rows and columns there are at most.
const ROWS: usize = 64;
const COLUMNS: u64 = 240;
/// The whole of a column.
const WHOLE: f64 = 1000.0;

/// All rows.
#[derive(Clone, Debug, Serialize)]
pub struct Lanes {
    /// The length of a column, in ns.
    pub stretch: u64,
    /// How many columns there are.
    pub columns: usize,
    /// Each task, or of many tasks several that follow each other.
    pub rows: Vec<Lane>,
}

/// One task, or the mean of several.
#[derive(Clone, Debug, Serialize)]
pub struct Lane {
    /// The first task.
    pub first: u32,
    /// The last task.
    pub last: u32,
    /// The part of each column in which they ran, in thousandths.
    pub ran: Vec<u16>,
    /// For each class with any time, its part of what they ran of each column, in thousandths. What
    /// is left was outside of LAPI.
    pub share: BTreeMap<&'static str, Vec<u16>>,
}

/// A column of a row, in ns.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    ran: f64,
    time: [f64; Class::COUNT],
}

impl Lanes {
    /// The rows of parts of one job, which are sorted by task.
    pub fn of(parts: &[Part], started: u64, wall: u64) -> Self {
        let longest = parts.iter().map(|part| part.stretch).max().unwrap_or(1);
        // At least as long as any task's stretches, so that one of those is in two columns at most.
        let stretch = longest.max(wall.div_ceil(COLUMNS)).max(1);
        let columns = wall.div_ceil(stretch).clamp(1, COLUMNS) as usize;
        let group = parts.len().div_ceil(ROWS).max(1);
        let rows = parts.chunks(group).map(|tasks| Lane::of(tasks, started, stretch, columns)).collect();
        Self { stretch, columns, rows }
    }
}

impl Lane {
    fn of(tasks: &[Part], started: u64, stretch: u64, columns: usize) -> Self {
        let mut cells = vec![Cell::default(); columns];
        for part in tasks {
            for (sum, cell) in cells.iter_mut().zip(of_task(part, started, stretch as f64, columns)) {
                sum.ran += cell.ran;
                sum.time.iter_mut().zip(cell.time).for_each(|(sum, time)| *sum += time);
            }
        }
        let thousandths =
            |part: f64, of: f64| if of > 0.0 { (part / of * WHOLE).round().min(WHOLE) as u16 } else { 0 };
        let line = |class: usize| -> Vec<u16> {
            cells.iter().map(|cell| thousandths(cell.time[class], cell.ran)).collect()
        };
        let lines = Class::NAMES.into_iter().enumerate().map(|(class, name)| (name, line(class)));
        let whole = stretch as f64 * tasks.len() as f64;
        Self {
            first: tasks.first().map_or(0, |part| part.task),
            last: tasks.last().map_or(0, |part| part.task),
            ran: cells.iter().map(|cell| thousandths(cell.ran, whole)).collect(),
            share: lines.filter(|(_, line)| line.iter().any(|share| *share > 0)).collect(),
        }
    }
}

/// The columns of one task. Several threads in LAPI at once share its time.
fn of_task(part: &Part, started: u64, stretch: f64, columns: usize) -> Vec<Cell> {
    let mut cells = vec![Cell::default(); columns];
    let begin = part.started.saturating_sub(started) as f64;
    let end = begin + part.wall as f64;
    for (at, cell) in cells.iter_mut().enumerate() {
        let column = (at as f64 * stretch, (at + 1) as f64 * stretch);
        cell.ran = common(column, (begin, end));
    }
    let length = part.stretch.max(1) as f64;
    for (at, bin) in part.timeline_time.iter().enumerate() {
        let bin_begin = begin + at as f64 * length;
        // The last stretch may reach beyond the end of the task.
        let bin_end = (bin_begin + length).min(end);
        if bin_end <= bin_begin {
            continue;
        }
        let first = ((bin_begin / stretch) as usize).min(columns - 1);
        for (at, cell) in cells.iter_mut().enumerate().skip(first).take(2) {
            let column = (at as f64 * stretch, (at + 1) as f64 * stretch);
            let within = common(column, (bin_begin, bin_end)) / (bin_end - bin_begin);
            cell.time.iter_mut().zip(bin).for_each(|(sum, time)| *sum += *time as f64 * within);
        }
    }
    for cell in &mut cells {
        let all: f64 = cell.time.iter().sum();
        if all > cell.ran {
            let part = if all > 0.0 { cell.ran / all } else { 0.0 };
            cell.time.iter_mut().for_each(|time| *time *= part);
        }
    }
    cells
}

/// How long two spans have in common.
fn common(a: (f64, f64), b: (f64, f64)) -> f64 {
    (a.1.min(b.1) - a.0.max(b.0)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::{Lanes, ROWS};
    use crate::calls::Class;
    use crate::part::Part;

    const PUT: usize = Class::Put as usize;
    const WAIT: usize = Class::Wait as usize;

    fn task(task: u32, (started, wall): (u64, u64), stretch: u64, time: &[[u64; Class::COUNT]]) -> Part {
        Part { started, wall, stretch, timeline_time: time.to_vec(), ..Part::empty(task) }
    }

    fn time(put: u64, wait: u64) -> [u64; Class::COUNT] {
        let mut time = [0; Class::COUNT];
        (time[PUT], time[WAIT]) = (put, wait);
        time
    }

    #[test]
    fn tasks_are_on_one_clock() {
        // The second task begins 1,000 later and has shorter stretches.
        let parts = [
            task(0, (5_000, 4_000), 1_000, &[time(0, 1_000), time(250, 500)]),
            task(1, (6_000, 1_500), 500, &[time(500, 0), time(0, 500), time(100, 0)]),
        ];
        let lanes = Lanes::of(&parts, 5_000, 4_000);
        assert_eq!((lanes.stretch, lanes.columns), (1_000, 4));
        let [first, second] = &lanes.rows[..] else { panic!("two rows") };
        assert_eq!(first.ran, [1000; 4]);
        assert_eq!(first.share["wait"], [1000, 500, 0, 0]);
        assert_eq!(first.share["put"], [0, 250, 0, 0]);
        assert_eq!(second.ran, [0, 1000, 500, 0]);
        assert_eq!(second.share["put"], [0, 500, 200, 0]);
        assert_eq!(second.share["wait"], [0, 500, 0, 0]);
        assert!(!first.share.contains_key("get"));
    }

    #[test]
    fn threads_share_the_time_of_their_task() {
        // Two threads wait all the time, and one of them puts.
        let lanes = Lanes::of(&[task(0, (0, 1_000), 1_000, &[time(500, 1_500)])], 0, 1_000);
        assert_eq!(
            (&lanes.rows[0].share["put"][..], &lanes.rows[0].share["wait"][..]),
            (&[250][..], &[750][..])
        );
    }

    #[test]
    fn many_tasks_are_few_rows() {
        let parts: Vec<Part> = (0..1000)
            .map(|at| task(at, (0, 100_000), 1_000, &[time(0, u64::from(at % 2) * 1_000)]))
            .collect();
        let lanes = Lanes::of(&parts, 0, 100_000);
        assert_eq!(lanes.rows.len(), 63);
        assert!(lanes.rows.len() <= ROWS);
        assert_eq!((lanes.rows[0].first, lanes.rows[0].last, lanes.rows[62].last), (0, 15, 999));
        assert!(lanes.rows.iter().all(|row| row.share["wait"][0] == 500), "the mean");
    }

    #[test]
    fn damaged_numbers_do_no_harm() {
        let most = u64::MAX;
        for (span, stretch) in [((most, most), most), ((0, 0), 0), ((most, 1), 0), ((0, most), 1)] {
            let lanes = Lanes::of(&[task(0, span, stretch, &[time(most, most); 300])], 0, span.1);
            let row = &lanes.rows[0];
            let sums =
                (0..lanes.columns).map(|at| row.share.values().map(|line| u32::from(line[at])).sum::<u32>());
            assert!(sums.max() <= Some(1001), "{row:?}");
        }
    }
}
