//! The state of a job as those who look on get it.

use openlapi::base::clock::since_boot;
use openlapi::wire::launcher::Report;
use serde::{Deserialize, Serialize};

/// The state of a job.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Job {
    /// The job's tasks.
    pub tasks: Vec<Task>,
}

/// The state of a task. What its number, its host and its end are is for `poe` to say, which sets
/// them last.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Task {
    pub task: usize,
    /// The host on which it runs; `None`: all tasks run on `poe`'s.
    pub host: Option<String>,
    /// The process that uses LAPI, or the task's first one; 0: it has ended, or has not begun.
    pub pid: i32,
    /// The task has ended.
    pub ended: bool,
    /// The state of the process, as `/proc` has it.
    pub state: Option<char>,
    /// How long the process has used a processor, in ns.
    pub cpu: Option<u64>,
    /// When the process was looked at, in ns of its machine's clock.
    pub looked_at: u64,
    /// The process has replied.
    pub replied: bool,
    /// What it does, as clauses that follow its name.
    pub doing: Vec<String>,
    /// The tasks that it waits for.
    pub waits_for: Vec<usize>,
    /// Sent and received since LAPI_Init.
    pub packets: (u64, u64),
    /// Bytes of data sent and received.
    pub bytes: (u64, u64),
}

impl Task {
    /// A task whose process is on this machine; with its reply, that which has replied.
    pub(in super::super) fn of(pid: i32, reply: Option<&Report>) -> Self {
        let pid = reply.map_or(pid, |reply| reply.pid);
        let (state, cpu) = process(pid).unzip();
        let looked_at = since_boot().as_nanos() as u64;
        let known = Self { pid, state, cpu, looked_at, ..Self::default() };
        let Some(reply) = reply else { return known };
        Self {
            replied: true,
            doing: reply.clauses.clone(),
            waits_for: reply.awaited.clone(),
            packets: reply.traffic.packets,
            bytes: reply.traffic.bytes,
            ..known
        }
    }
}

/// The state of a process, and how long it has used a processor, in ns. The state is that of its
/// first thread, or, when only that one has ended, of another one.
pub(super) fn process(pid: i32) -> Option<(char, u64)> {
    let read = |path: String| {
        let stat = std::fs::read_to_string(path).ok()?;
        // The name may hold anything and ends at the last bracket; the state is the first
        // field behind it.
        let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
        let ticks = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
        // In hundredths of a second, on every Linux that this runs on.
        Some((fields[0].chars().next()?, ticks * 10_000_000))
    };
    let (first, time) = read(format!("/proc/{pid}/stat"))?;
    if first != 'Z' {
        return Some((first, time));
    }
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let states = threads.filter_map(|thread| read(format!("{}/stat", thread.path().display())));
    let living = states.map(|(state, _)| state).find(|state| *state != 'Z');
    Some((living.unwrap_or(first), time))
}
