//! The states of a job as text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use openlapi::base::ranges::tasks_named;
use openlapi_runtime::report::lines::with_lines;

use super::job::{Source, shown};
use crate::poe::state::{Job, Task};

/// What is shown, with the state before for rates.
pub(super) struct View {
    name: String,
    before: Option<Vec<Task>>,
    /// Whether source lines are looked for.
    has_lines: bool,
    /// Clauses with the source lines that were found for them.
    named: BTreeMap<String, String>,
}

/// What a task did between two states, in a second.
#[derive(Clone, Copy, Default)]
struct Rates {
    /// `None`: no process has replied both times.
    moved: Option<Moved>,
    /// Of a processor, in percent.
    cpu: Option<f64>,
}

/// What a task sent and received in a second.
#[derive(Clone, Copy)]
struct Moved {
    packets: (f64, f64),
    bytes: (f64, f64),
}

impl View {
    pub(super) fn new(source: &Source) -> Self {
        Self { name: source.name(), before: None, has_lines: source.is_own(), named: BTreeMap::new() }
    }

    /// The next state as text, cut to lines and columns. Rates are those since the one before, none
    /// the first time.
    pub(super) fn next(&mut self, job: Job, size: Option<(usize, usize)>) -> String {
        let rates: Option<Vec<Rates>> = self.before.as_ref().map(|tasks| {
            let pairs = job.tasks.iter().zip(tasks);
            pairs.map(|(task, before)| Rates::of(task, before)).collect()
        });
        let text = self.text(&job.tasks, rates.as_deref(), size);
        self.before = Some(job.tasks);
        text
    }

    fn text(&mut self, tasks: &[Task], rates: Option<&[Rates]>, size: Option<(usize, usize)>) -> String {
        let mut lines = vec![self.name.clone(), summary(tasks), String::new()];
        // Where poe has started all tasks itself, their machine is not named.
        let hosts = tasks.iter().filter_map(|task| task.host.as_ref()).map(|host| host.chars().count());
        let hosts = hosts.max().map(|longest| longest.max("host".len()));
        lines.push(format!(
            "{:>5} {}{:>8} {:1} {:>5} {:>9} {:>9} {:>9} {:>9}  doing",
            "task",
            host("host", hosts),
            "pid",
            "S",
            "%cpu",
            "pkt out/s",
            "pkt in/s",
            "B out/s",
            "B in/s"
        ));
        let room = size.map_or(usize::MAX, |(rows, _)| rows.saturating_sub(lines.len() + 1));
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        if tasks.len() > room {
            // Those that wait for no other task are the ones to look at.
            order.sort_by_key(|at| !tasks[*at].waits_for.is_empty());
        }
        for at in order.iter().take(room) {
            let rates = rates.and_then(|rates| rates.get(*at));
            lines.push(self.line(&tasks[*at], rates, hosts));
        }
        if tasks.len() > room {
            lines.push(format!("and {} more tasks", tasks.len() - room));
        }
        let width = size.map_or(usize::MAX, |(_, columns)| columns);
        lines.iter().fold(String::new(), |mut text, line| {
            text.extend(shown(line).chars().take(width));
            text + "\n"
        })
    }

    fn line(&mut self, task: &Task, rates: Option<&Rates>, hosts: Option<usize>) -> String {
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short);
        let cpu = rates.and_then(|rates| rates.cpu).map_or_else(|| "-".to_owned(), |cpu| format!("{cpu:.0}"));
        let moved = rates.and_then(|rates| rates.moved);
        let mut line = format!(
            "{:>5} {}{:>8} {:1} {cpu:>5} {:>9} {:>9} {:>9} {:>9}  ",
            task.task,
            host(task.host.as_deref().unwrap_or_default(), hosts),
            task.pid,
            task.state.unwrap_or('-'),
            number(moved.map(|moved| moved.packets.0)),
            number(moved.map(|moved| moved.packets.1)),
            number(moved.map(|moved| moved.bytes.0)),
            number(moved.map(|moved| moved.bytes.1)),
        );
        line += &match (task.pid, task.replied) {
            (0, _) if task.ended => "has ended".to_owned(),
            (0, _) => "has not begun".to_owned(),
            (_, false) if task.host.is_some() && task.state.is_none() => "no reply from its host".to_owned(),
            (_, false) => "does not reply: not in LAPI, or stopped".to_owned(),
            _ => task.doing.iter().map(|clause| self.named(clause)).collect::<Vec<_>>().join("; "),
        };
        line
    }

    /// A clause with its source lines. Each is looked up once.
    fn named(&mut self, clause: &str) -> String {
        if !self.has_lines {
            return clause.to_owned();
        }
        // Times differ, and places do not.
        if self.named.len() > 4096 {
            self.named.clear();
        }
        self.named.entry(clause.to_owned()).or_insert_with(|| with_lines(clause)).clone()
    }
}

impl Rates {
    fn of(task: &Task, before: &Task) -> Self {
        // A process that has called LAPI_Init again counts from 0. States come at other times than
        // their tasks were looked at: one that does not reply holds the others up.
        let seconds = task.looked_at.saturating_sub(before.looked_at) as f64 / 1e9;
        let rate = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
        let both = |now: (u64, u64), then: (u64, u64)| (rate(now.0, then.0), rate(now.1, then.1));
        // Another process has other counts, and those of one that has not replied are not known.
        let is_same = task.pid == before.pid && seconds > 0.0;
        let cpu = task.cpu.zip(before.cpu).filter(|_| is_same).map(|(now, then)| rate(now, then) / 1e7);
        let moved = (is_same && task.replied && before.replied).then(|| Moved {
            packets: both(task.packets, before.packets),
            bytes: both(task.bytes, before.bytes),
        });
        Self { moved, cpu }
    }
}

/// The column of a host, and the space behind it, where there is one.
fn host(name: &str, width: Option<usize>) -> String {
    width.map_or_else(String::new, |width| format!("{name:<width$} "))
}

/// `4 tasks: 1 waits for others, 3 do not; task 1 is waited for most, by 3`.
fn summary(tasks: &[Task]) -> String {
    let mut text = format!("{} task{}", tasks.len(), if tasks.len() == 1 { "" } else { "s" });
    let ended = tasks.iter().filter(|task| task.pid == 0 && task.ended).count();
    let absent = tasks.iter().filter(|task| task.pid == 0 && !task.ended).count();
    let waiting: Vec<usize> =
        tasks.iter().filter(|task| !task.waits_for.is_empty()).map(|task| task.task).collect();
    if ended > 0 {
        let _ = write!(text, ", {ended} ended");
    }
    if absent > 0 {
        let _ = write!(text, ", {absent} not begun");
    }
    let _ = write!(text, ", {} wait for others", waiting.len());
    let mut awaited: BTreeMap<usize, usize> = BTreeMap::new();
    for task in tasks.iter().flat_map(|task| &task.waits_for) {
        *awaited.entry(*task).or_default() += 1;
    }
    if let Some(most) = awaited.values().max() {
        let these: Vec<usize> = awaited.iter().filter(|(_, by)| *by == most).map(|(task, _)| *task).collect();
        let _ = write!(text, "; waited for most: {}, by {most}", tasks_named(&these));
    }
    text
}

/// `950`, `12.3k`, `4.56M`.
fn short(value: f64) -> String {
    match value {
        value if value < 1e3 => format!("{value:.0}"),
        value if value < 1e6 => format!("{:.1}k", value / 1e3),
        value if value < 1e9 => format!("{:.1}M", value / 1e6),
        value => format!("{:.1}G", value / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second, in ns.
    const SECOND: u64 = 1_000_000_000;

    fn task(number: usize, waits_for: &[usize]) -> Task {
        let doing =
            vec![if waits_for.is_empty() { "is not inside LAPI" } else { "waits in LAPI_Gfence" }.to_owned()];
        let (packets, bytes) = ((10, 20), (0, 0));
        Task {
            task: number,
            host: None,
            pid: std::process::id() as i32,
            ended: false,
            state: Some('S'),
            cpu: Some(0),
            looked_at: SECOND,
            replied: true,
            doing,
            waits_for: waits_for.to_vec(),
            packets,
            bytes,
        }
    }

    #[test]
    fn the_heading_says_who_waits_for_whom_and_few_lines_show_the_cause() {
        let mut view =
            View { name: "poe 7: ./a".into(), before: None, has_lines: true, named: BTreeMap::new() };
        let tasks: Vec<Task> =
            (0..64).map(|number| task(number, if number == 37 { &[] } else { &[37] })).collect();
        let text = view.next(Job { tasks: tasks.clone() }, Some((10, 70)));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..2],
            ["poe 7: ./a", "64 tasks, 63 wait for others; waited for most: task 37, by 63"]
        );
        assert!(lines.len() == 10 && lines.iter().all(|line| line.chars().count() <= 70), "{text}");
        assert!(lines[4].trim_start().starts_with("37 ") && lines[4].contains(" - "), "{text}");
        assert_eq!(lines[9], "and 59 more tasks");
        let mut later = tasks;
        let cpu = Some(SECOND);
        later[37] = Task { cpu, looked_at: 3 * SECOND, packets: (5_010, 20), ..later[37].clone() };
        let text = view.next(Job { tasks: later }, None);
        let rates: Vec<&str> = text.lines().nth(4 + 37).expect("all tasks").split_whitespace().collect();
        assert_eq!(rates[3..8], ["50", "2.5k", "0", "0", "0"], "in two seconds: {text}");
    }

    #[test]
    fn a_task_without_a_process_has_ended_or_has_not_begun() {
        let mut view = View { name: "poe 7".into(), before: None, has_lines: false, named: BTreeMap::new() };
        let absent = |number, ended| Task { pid: 0, ended, replied: false, ..task(number, &[]) };
        let text = view.next(Job { tasks: vec![absent(0, true), absent(1, false)] }, None);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[1], "2 tasks, 1 ended, 1 not begun, 0 wait for others");
        assert!(lines[4].ends_with(" has ended") && lines[5].ends_with(" has not begun"), "{text}");
    }

    #[test]
    fn hosts_are_named_and_what_did_not_reply_has_no_rates() {
        let mut view = View { name: "poe 7".into(), before: None, has_lines: false, named: BTreeMap::new() };
        let on = |host: &str, task: Task| Task { host: Some(host.into()), ..task };
        let silent = Task { replied: false, state: None, cpu: None, packets: (0, 0), ..task(1, &[]) };
        let tasks = [on("node-12", task(0, &[1])), on("n", silent)];
        let text = view.next(Job { tasks: tasks.to_vec() }, None);
        let words = |line: usize| -> Vec<String> {
            let line = text.lines().nth(line).unwrap_or_default();
            line.split_whitespace().map(str::to_owned).collect()
        };
        assert_eq!(words(3)[..4], ["task", "host", "pid", "S"], "{text}");
        assert_eq!((&*words(4)[1], &*words(5)[1]), ("node-12", "n"), "{text}");
        assert!(text.ends_with("  no reply from its host\n"), "{text}");
        // It replies now, and has counted since LAPI_Init.
        let later = |task: Task| Task { looked_at: 2 * SECOND, ..task };
        let replies = Task { packets: (1 << 40, 1 << 40), ..task(1, &[]) };
        let later = [later(tasks[0].clone()), later(on("n", replies))];
        let text = view.next(Job { tasks: later.to_vec() }, None);
        let line = text.lines().nth(5).expect("task 1");
        assert_eq!(line.split_whitespace().skip(4).take(5).collect::<String>(), "-----", "{text}");
        assert!(text.lines().nth(4).is_some_and(|line| line.contains(" 0 ")), "{text}");
    }

    /// A first process that has not replied, and then one that has called LAPI after another.
    #[test]
    fn another_process_of_a_task_has_no_rates_at_first() {
        let mut view = View { name: "poe 7".into(), before: None, has_lines: false, named: BTreeMap::new() };
        let one = |pid, replied, count| Task {
            pid,
            replied,
            cpu: Some(count),
            packets: (count, count),
            bytes: (count, count),
            ..task(0, &[])
        };
        let mut now = 0;
        let mut rates = |task: Task| {
            now += SECOND;
            let text = view.next(Job { tasks: vec![Task { looked_at: now, ..task }] }, None);
            let words = text.lines().nth(4).unwrap_or_default().split_whitespace().skip(3).take(5);
            words.map(|word| if word == "-" { '-' } else { 'n' }).collect::<String>()
        };
        assert_eq!(rates(one(70, false, 0)), "-----");
        assert_eq!(rates(one(71, true, 1 << 40)), "-----");
        assert_eq!(rates(one(71, true, 2 << 40)), "nnnnn");
        assert_eq!(rates(one(72, true, 3 << 40)), "-----");
    }

    #[test]
    fn what_a_task_says_moves_no_cursor() {
        let mut view = View { name: "poe 7".into(), before: None, has_lines: false, named: BTreeMap::new() };
        let mut task = task(0, &[]);
        task.doing = vec!["waits\x1b[2J\nfor nothing".into()];
        task.state = Some('\x07');
        let text = view.next(Job { tasks: vec![task] }, None);
        assert!(text.ends_with("waits?[2J?for nothing\n"), "{text}");
        assert!(text.chars().all(|char| char == '\n' || !char.is_control()), "{text:?}");
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.0, 999.4, 12_345.0, 4.56e6, 7.0e10].map(short), ["0", "999", "12.3k", "4.6M", "70.0G"]);
    }
}
