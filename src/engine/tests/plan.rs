//! Operations from a seed, and their expected results.

use super::memory::{Division, Memory};
use crate::abi::*;
use crate::base::rng::Rng;
use crate::engine::context::request::Hint;
use crate::transport::Task;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

/// What a plan is made for.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// How many tasks there are.
    pub tasks: u32,
    /// How many threads of each start operations.
    pub threads: usize,
    /// How many operations each thread starts.
    pub operations: usize,
    /// How much header and data go in one packet: MAX_PKT_SZ.
    pub packet: usize,
    /// Whether there are threads for completion handlers.
    pub completion_threads: bool,
    /// Messages up to this many bytes, header included, are copied at once.
    pub copy_limit: usize,
}

/// One operation.
pub struct Op {
    /// The operation's index in the plan.
    pub number: usize,
    /// The task that starts it.
    pub from: Task,
    /// The operation's target.
    pub to: Task,
    /// The thread that starts it, or whose operation led to it: its counters are those of that
    /// thread's number.
    pub thread: usize,
    /// What it is.
    pub what: What,
    /// Memory at its origin: the data, or the place for the reply.
    pub origin: Memory,
    /// Memory at its target.
    pub target: Memory,
    /// Which counters it has.
    pub tgt_cntr: bool,
    pub org_cntr: bool,
    pub cmpl_cntr: bool,
    /// Whether the origin has a handler: for what was sent, or for what a get has brought.
    pub reported: bool,
    /// What the program has set.
    pub hint: Hint,
    /// What handlers of this operation start, and which of them.
    pub children: Vec<(When, usize)>,
    /// What has happened to it, and how often.
    pub started: AtomicU32,
    pub offered: AtomicU32,
    pub accepted: AtomicU32,
    pub completed: AtomicU32,
    pub reported_times: AtomicU32,
}

/// The kinds of operation.
pub enum What {
    Put,
    Get,
    Am {
        /// The user header; its first word is the operation's number.
        header: Memory,
        /// What the header handler returns when it accepts the message.
        ctl: lapi_ctl_flags_t,
        ret: lapi_ret_flags_t,
        /// The header handler gives no buffer.
        null: bool,
        /// The header handler names a completion handler.
        handler: bool,
        /// How many times it refuses the message.
        drops: u32,
        /// Header and data are free when the call returns.
        copied: bool,
        /// The header handler is named by an index.
        by_index: bool,
    },
    Rmw {
        op: RMW_ops_t,
        wide: bool,
        /// The value, and the one to swap in.
        values: [u64; 2],
    },
}

/// Which handler starts a further operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Header,
    Completion,
    Sent,
}

/// A job's operations and everything that they touch.
pub struct Plan {
    pub shape: Shape,
    pub ops: Vec<Op>,
    /// What each thread of each task starts by itself, in order.
    pub own: Vec<Vec<Vec<usize>>>,
    /// By task and thread.
    pub counters: Vec<Vec<Counters>>,
    /// By task: one variable for each operation, narrow and wide.
    pub variables: Vec<[[AtomicU64; 2]; 4]>,
    /// What handlers have found wrong: they must not panic.
    pub faults: Mutex<Vec<String>>,
}

/// The counters of one thread.
#[derive(Default)]
pub struct Counters {
    pub tgt: AtomicI32,
    pub org: AtomicI32,
    pub cmpl: AtomicI32,
}

impl Plan {
    /// The plan of a seed.
    pub fn new(seed: u64, shape: Shape) -> Arc<Self> {
        let mut plan = Self {
            shape,
            ops: Vec::new(),
            own: Vec::new(),
            counters: Vec::new(),
            variables: Vec::new(),
            faults: Mutex::default(),
        };
        let mut rng = Rng::new(seed);
        for from in 0..shape.tasks {
            let start =
                |thread| (0..shape.operations).map(|_| plan.draw(&mut rng, from, thread, 0)).collect();
            let own = (0..shape.threads).map(start).collect();
            plan.own.push(own);
            plan.counters.push((0..shape.threads).map(|_| Counters::default()).collect());
            plan.variables.push(Default::default());
        }
        Arc::new(plan)
    }

    /// Draws an operation, and those that its handlers start.
    fn draw(&mut self, rng: &mut Rng, from: Task, thread: usize, depth: u32) -> usize {
        let to = rng.below(self.shape.tasks.into()) as Task;
        self.draw_to(rng, from, to, thread, depth)
    }

    fn draw_to(&mut self, rng: &mut Rng, from: Task, to: Task, thread: usize, depth: u32) -> usize {
        let number = self.ops.len();
        let mut len = self.length(rng);
        let what = match rng.below(8) {
            0 | 1 => What::Put,
            2 => What::Get,
            3 => {
                len = 8;
                self.rmw(rng, number)
            }
            _ => self.active_message(rng),
        };
        let handlers = self.shape.completion_threads || !matches!(what, What::Get);
        let division = match what {
            What::Put | What::Get | What::Am { .. } if rng.chance(0.3) => Division::draw(rng, len),
            _ => Division::Row(len),
        };
        let (origin, target) = (Memory::divided(&division, rng), Memory::divided(&division, rng));
        match &what {
            What::Get => target.fill(number),
            What::Rmw { .. } => {}
            What::Put => origin.fill(number),
            What::Am { header, .. } => {
                origin.fill(number);
                header.fill_header(number);
            }
        }
        self.ops.push(Op {
            number,
            from,
            to,
            thread,
            origin,
            target,
            tgt_cntr: rng.chance(0.5),
            org_cntr: rng.chance(0.5),
            cmpl_cntr: rng.chance(0.5),
            reported: handlers && rng.chance(0.3),
            hint: [Hint::None, Hint::Bulk, Hint::Packets, Hint::BulkOneRail][rng.below(4) as usize],
            what,
            children: Vec::new(),
            started: AtomicU32::new(0),
            offered: AtomicU32::new(0),
            accepted: AtomicU32::new(0),
            completed: AtomicU32::new(0),
            reported_times: AtomicU32::new(0),
        });
        if depth < 2 {
            self.ops[number].children = self.draw_children(rng, number, depth);
        }
        number
    }

    fn draw_children(&mut self, rng: &mut Rng, parent: usize, depth: u32) -> Vec<(When, usize)> {
        let Op { from, to, thread, reported, ref what, .. } = self.ops[parent];
        let (when, who) = match *what {
            What::Am { handler: true, .. } if rng.chance(0.3) => (When::Completion, to),
            What::Am { .. } if rng.chance(0.3) => (When::Header, to),
            _ if reported && rng.chance(0.3) => (When::Sent, from),
            _ => return Vec::new(),
        };
        let everybody = rng.chance(0.1);
        let targets = if everybody { 0..self.shape.tasks } else { 0..1 };
        let child = |target| match everybody {
            true => (when, self.draw_to(rng, who, target, thread, depth + 1)),
            false => (when, self.draw(rng, who, thread, depth + 1)),
        };
        targets.map(child).collect()
    }

    fn length(&self, rng: &mut Rng) -> usize {
        let body = self.shape.packet as u64;
        let len = match rng.below(16) {
            0..=1 => 0,
            2..=6 => rng.below(64),
            7..=9 => rng.below(body),
            10 => body - 8 + rng.below(16),
            11..=14 => body + rng.below(4 * body),
            _ => 20 * body + rng.below(20 * body),
        };
        len as usize
    }

    fn active_message(&self, rng: &mut Rng) -> What {
        let uhdr_len = match rng.below(4) {
            0 => 1024,
            1 => 8 + rng.below(1016) as usize,
            _ => 8 + rng.below(56) as usize,
        };
        let ret = match rng.below(3) {
            0 if self.shape.completion_threads => LAPI_NORMAL,
            1 => LAPI_LOCAL_STATE,
            _ => LAPI_SEND_REPLY,
        };
        What::Am {
            header: Memory::new(uhdr_len, rng),
            ctl: if rng.chance(0.15) { LAPI_BURY_MSG } else { LAPI_DELIVER_MSG },
            ret,
            null: rng.chance(0.1),
            handler: rng.chance(0.5),
            drops: if rng.chance(0.15) { 1 + rng.below(3) as u32 } else { 0 },
            copied: rng.chance(0.1),
            by_index: rng.chance(0.5),
        }
    }

    fn rmw(&self, rng: &mut Rng, number: usize) -> What {
        let (op, wide) = (rng.below(4) as RMW_ops_t, rng.chance(0.5));
        let values = match op {
            FETCH_AND_ADD => [1 + rng.below(100), 0],
            FETCH_AND_OR => [1 << (number % if wide { 64 } else { 32 }), 0],
            SWAP => [number as u64 + 1, 0],
            _ => {
                let count = rng.below(3);
                [count, count + 1]
            }
        };
        What::Rmw { op, wide, values }
    }

    /// Notes what a handler has found wrong.
    pub fn expect(&self, right: bool, what: impl FnOnce() -> String) {
        if !right {
            self.faults.lock().push(what());
        }
    }

    /// What the counters of a thread must have reached in the end: target, origin, completion.
    pub fn expected(&self, task: Task, thread: usize) -> [i32; 3] {
        let count = |counted: &dyn Fn(&Op) -> bool| {
            self.ops.iter().filter(|op| op.thread == thread && counted(op)).count() as i32
        };
        [
            count(&|op| op.to == task && op.tgt_cntr && !matches!(op.what, What::Rmw { .. })),
            count(&|op| op.from == task && op.org_cntr),
            count(&|op| op.from == task && op.cmpl_cntr && matches!(op.what, What::Put | What::Am { .. })),
        ]
    }

    /// Whether every operation was started, and everything has happened that a handler can see.
    pub fn over(&self) -> bool {
        self.ops.iter().all(|op| {
            let times = |count: &AtomicU32, wanted: bool| count.load(Ordering::Acquire) >= u32::from(wanted);
            let (message, handler) = match op.what {
                What::Am { handler, .. } => (true, handler),
                _ => (false, false),
            };
            times(&op.started, true)
                && times(&op.accepted, message)
                && times(&op.completed, handler)
                && times(&op.reported_times, op.reported)
        })
    }

    /// Panics unless all results are as expected. The program has set the counters back to zero.
    pub fn verify(&self) {
        let faults = self.faults.lock();
        assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
        drop(faults);
        for op in &self.ops {
            op.verify();
        }
        for task in 0..self.shape.tasks {
            for (code, width) in (0..4).flat_map(|code| [(code, false), (code, true)]) {
                self.verify_variable(task, code, width);
            }
        }
    }

    /// The previous values must form one sequence of operations, in any order.
    fn verify_variable(&self, task: Task, code: RMW_ops_t, width: bool) {
        let last = self.variables[task as usize][code as usize][usize::from(width)].load(Ordering::SeqCst);
        let done = |op: &Op| match op.what {
            What::Rmw { op: kind, wide, values } if op.to == task && kind == code && wide == width => {
                Some((op.origin.number(width), values[0]))
            }
            _ => None,
        };
        let mut seen: Vec<(u64, u64)> = self.ops.iter().filter_map(done).collect();
        seen.sort_unstable();
        match code {
            FETCH_AND_ADD => {
                let sum = seen.iter().fold(0, |sum, &(previous, value)| {
                    assert_eq!(previous, sum, "additions at task {task}");
                    sum + value
                });
                assert_eq!(sum, last, "additions at task {task}");
            }
            FETCH_AND_OR => {
                assert_eq!(seen.iter().fold(0, |all, (_, value)| all | value), last, "bits at task {task}");
                assert!(seen.iter().all(|(previous, _)| previous & !last == 0), "bits at task {task}");
            }
            SWAP => {
                let mut taken: Vec<_> = seen.iter().map(|(previous, _)| *previous).chain([last]).collect();
                let mut given: Vec<_> = seen.iter().map(|(_, value)| *value).chain([0]).collect();
                taken.sort_unstable();
                given.sort_unstable();
                assert_eq!(taken, given, "swaps at task {task}");
            }
            _ => {
                let mut done: Vec<_> =
                    seen.iter().filter(|(done, _)| *done == 1).map(|(_, from)| *from).collect();
                done.sort_unstable();
                assert_eq!(done, (0..last).collect::<Vec<_>>(), "conditional swaps at task {task}");
            }
        }
    }
}

impl Op {
    /// Whether its data ends up at the target.
    pub fn delivers(&self) -> bool {
        match self.what {
            What::Put => true,
            What::Am { ctl, null, .. } => ctl == LAPI_DELIVER_MSG && !null,
            What::Get | What::Rmw { .. } => false,
        }
    }

    /// Whether the data is where it belongs.
    pub fn arrived(&self) -> bool {
        match self.what {
            What::Get => self.origin.holds(self.number),
            What::Rmw { .. } => true,
            _ => !self.delivers() || self.target.holds(self.number),
        }
    }

    /// Whether the origin's memory is free when the call returns.
    pub fn free_at_once(&self, copy_limit: usize) -> bool {
        match &self.what {
            // A vector's description is sent with it.
            What::Put => self.origin.len <= copy_limit && self.origin.vector().is_none(),
            What::Am { header, copied, .. } => *copied || header.len + self.origin.len <= copy_limit,
            What::Get | What::Rmw { .. } => false,
        }
    }

    fn verify(&self) {
        let name = self.name();
        assert!(self.arrived(), "{name}: the data is not there");
        if matches!(self.what, What::Put | What::Am { .. }) && !self.delivers() {
            assert!(self.target.untouched(), "{name}: data of a refused message was written");
        }
        assert!(self.origin.whole() && self.target.whole(), "{name}: written beyond the end");
        let count = |count: &AtomicU32| count.load(Ordering::Acquire);
        let (drops, messages, completed) = match self.what {
            What::Am { drops, handler, .. } => (drops, 1, u32::from(handler)),
            _ => (0, 0, 0),
        };
        assert_eq!(count(&self.started), 1, "{name} was started");
        assert_eq!(count(&self.offered), drops + messages, "{name}: calls of the header handler");
        assert_eq!(count(&self.completed), completed, "{name}: calls of the completion handler");
        assert_eq!(
            count(&self.reported_times),
            u32::from(self.reported),
            "{name}: calls of the origin's handler"
        );
    }

    /// For messages to people.
    pub fn name(&self) -> String {
        let what = match &self.what {
            What::Put => "put".to_owned(),
            What::Get => "get".to_owned(),
            What::Am { header, ctl, ret, null, handler, drops, copied, .. } => format!(
                "message (header {}, ctl {ctl}, ret {ret}, null {null}, handler {handler}, {drops} drops, copied {copied})",
                header.len
            ),
            What::Rmw { op, wide, values } => format!("rmw {op} (wide {wide}, {values:?})"),
        };
        let vector = if self.origin.vector().is_some() { " in a vector" } else { "" };
        format!(
            "operation {}, {what} of {} bytes{vector} from {} to {}",
            self.number, self.origin.len, self.from, self.to
        )
    }
}
