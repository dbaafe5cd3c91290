//! The form of a part: the content of DIR/part-N.json.

use crate::calls::Class;
use serde::{Deserialize, Serialize};

/// The number of this form.
pub const FORMAT: u32 = 7;

/// All that a task has seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The number of this form.
    pub format: u32,
    /// What distinguishes the job from others that have used the folder; empty when nothing does.
    pub job: String,
    /// The task.
    pub task: u32,
    /// How many tasks the job has.
    pub tasks: u32,
    /// The machine.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// The program.
    pub program: String,
    /// `None`: the task wrote this at its end. Otherwise why it was written before: a signal's
    /// name, or "running" for one of the parts that a task writes every few seconds.
    pub interim: Option<String>,
    /// When the task called LAPI_Init first, in ns since 1970.
    pub started: u64,
    /// From then on until the part was made, in ns.
    pub wall: u64,
    /// The processors that the process may use, as the system lists them: `0-3,8`.
    pub processors: String,
    /// How long the process has used a processor in that time, in ns.
    pub cpu: u64,
    /// How many threads have called LAPI or run handlers, those at the same time counted.
    pub threads: u32,
    /// Calls and handlers by the place they were called from.
    pub sites: Vec<SiteRow>,
    /// What was moved, by peer.
    pub links: Vec<TaskPair>,
    /// The length of a stretch of the timeline, in ns.
    pub stretch: u64,
    /// How many calls of each class began in which stretch.
    pub timeline: Vec<[u64; Class::COUNT]>,
    /// How many bytes the calls of each class have moved that began in which stretch.
    pub timeline_bytes: Vec<[u64; Class::MOVING]>,
    /// How long threads were in calls and handlers of each class in which stretch, in ns, less what
    /// ran inside of them; the sum over all threads, which may be longer than the stretch.
    pub timeline_time: Vec<[u64; Class::COUNT]>,
    /// How many events there was room for.
    pub events_limit: u64,
    /// How many calls those stand for that did not find room.
    pub events_left_out: u64,
    /// How many calls came after the last event of their place, so that none stands for them.
    pub events_to_come: u64,
    /// The events, by thread and time.
    pub events: Vec<Event>,
    /// The names of the threads, by their number in the events.
    pub thread_names: Vec<String>,
}

/// The calls of one kind from one place; or the runs of one handler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteRow {
    /// The name of the call, or the kind of handler.
    pub call: String,
    /// What it counts as.
    pub class: String,
    /// `function+0x12`; the handler's name.
    pub site: String,
    /// The file that holds it.
    pub object: String,
    /// The source line, `stencil.c:120`; empty when it is not known.
    pub line: String,
    /// The address, `0x…`.
    pub address: String,
    /// How many.
    pub count: u64,
    /// How many of them had not ended when the part was made. Their time until then is counted.
    pub open: u64,
    /// How many of them have failed.
    pub errors: u64,
    /// What they have moved; of header handlers, what has come.
    pub bytes: u64,
    /// How long they have taken, in ns.
    pub time: u64,
    /// How long the longest has taken, in ns.
    pub longest: u64,
    /// By size; empty for what moves nothing.
    pub sizes: Vec<SizeCount>,
}

/// Transfers between `from` bytes and less than twice as many; of no bytes when `from` is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SizeCount {
    /// The least size: 0 or a power of two.
    pub from: u64,
    /// How many.
    pub count: u64,
}

/// What was moved between this task, the origin, and another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskPair {
    /// The task that has called.
    pub origin: u32,
    /// The task that it has named.
    pub target: u32,
    /// The two use the network; otherwise shared memory, or they are one task.
    pub network: bool,
    /// Puts of every kind.
    pub put: Moved,
    /// Gets of every kind.
    pub get: Moved,
    /// Active messages of every kind.
    pub am: Moved,
    /// Read-modify-write.
    pub rmw: Moved,
    /// By size.
    pub sizes: Vec<SizeCount>,
}

impl TaskPair {
    /// Each kind.
    pub fn moved(&self) -> [&Moved; 4] {
        [&self.put, &self.get, &self.am, &self.rmw]
    }
}

/// Transfers of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// How many.
    pub count: u64,
    /// How many bytes: data, and user headers.
    pub bytes: u64,
    /// How long the calls have taken, in ns.
    pub time: u64,
}

/// One call or handler of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The index of the site in the list of sites.
    pub row: u32,
    /// The thread.
    pub thread: u16,
    /// When it began, in ns after the task did.
    pub start: u64,
    /// How long it took, in ns.
    pub time: u64,
    /// The other task, if there is one.
    pub peer: Option<u32>,
    /// How many bytes it has moved.
    pub bytes: u64,
    /// How many calls of the place it stands for: itself, and those before it that have no event.
    pub calls: u32,
}

#[cfg(test)]
impl Part {
    /// What a task of two has seen that did nothing.
    pub fn empty(task: u32) -> Self {
        let part = serde_json::json!({"format": FORMAT, "job": "", "task": task, "tasks": 2, "host": "", "pid": 1, "program": "",
            "interim": null, "started": 0, "wall": 0, "processors": "", "cpu": 0, "threads": 1, "thread_names": ["main"], "sites": [], "links": [], "stretch": 1,
            "timeline": [], "timeline_bytes": [], "timeline_time": [], "events_limit": 0, "events_left_out": 0,
            "events_to_come": 0, "events": []});
        serde_json::from_value(part).expect("a part")
    }
}
