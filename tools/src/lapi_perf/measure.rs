//! One row: what each task does, and how long it takes.

use std::cell::Cell;
use std::time::Instant;

use openlapi::base::clock::ticks;

use super::catalog::{Operation, Pattern, Rmw, Test};
use super::error::Result;
use super::histogram;
use super::lapi::{Blocks, Counter, Counters, Prepared, Shape, Task, Word};
use super::options::Mode;
use super::plan::{Plan, Row};
use super::report::{Latency, Measured};
use crate::said::say;

/// Rounds whose data is compared before a row is timed.
const CHECKED: u64 = 3;
/// What lies where nothing has arrived.
const EMPTY: u8 = 0xee;

/// What a task does in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The task starts operations to a task, and to a slot of its memory.
    Origin { peer: u32, slot: u64 },
    /// The number of origins that have it as their target; the first of them.
    Target { origin: u32, origins: u64 },
    /// The task waits for the others.
    Idle,
}

impl Role {
    /// Of a task.
    pub(super) fn of(task: u32, tasks: u32, mode: Mode, pairs: u32) -> Self {
        let origin = |peer| Self::Origin { peer, slot: 0 };
        let target = |origin| Self::Target { origin, origins: 1 };
        let half = tasks / 2;
        match mode {
            Mode::Far if task < pairs => origin(task + half),
            Mode::Far if (half..half + pairs).contains(&task) => target(task - half),
            Mode::Near if task / 2 < pairs && task.is_multiple_of(2) => origin(task + 1),
            Mode::Near if task / 2 < pairs => target(task - 1),
            Mode::Incast if task == 0 => Self::Target { origin: 1, origins: u64::from(pairs) },
            Mode::Incast if task <= pairs => Self::Origin { peer: 0, slot: u64::from(task - 1) },
            _ => Self::Idle,
        }
    }
}

/// A row in this task.
struct Running<'task> {
    task: &'task Task,
    test: &'static Test,
    role: Role,
    size: u64,
    blocks: Blocks,
    window: u64,
    operation: Prepared<'task>,
    /// The numbers in the last words that were sent and seen.
    sent: Cell<u64>,
    seen: Cell<u64>,
}

/// Measures a row. Collective; the result is in task 0.
pub(super) fn row(task: &Task, plan: &Plan, row: &Row) -> Result<Option<Measured>> {
    let test = row.test()?;
    let role = Role::of(task.me, task.tasks, plan.mode, plan.pairs);
    let (peer, slot) = match role {
        Role::Origin { peer, slot } => (peer, slot),
        Role::Target { origin, .. } => (origin, 0),
        Role::Idle => (task.me, 0),
    };
    let blocks = Blocks::new(row.size, if test.is_scattered() { plan.block } else { row.size });
    let header = if test.operation == Operation::AmHeader { plan.header } else { 0 };
    let shape = Shape { operation: test.operation, size: row.size, blocks, header };
    let operation = Prepared::new(task, shape, (peer, slot), counters(test))?;
    let (sent, seen) = (Cell::new(0), Cell::new(0));
    let running =
        Running { task, test, role, size: row.size, blocks, window: row.window, operation, sent, seen };
    running.reset_words(plan.mode);
    if test.operation == Operation::PutSeen {
        // No number of an earlier row is left.
        task.memory.fill_data(0, row.size, |_| EMPTY);
    }
    task.meet()?;

    let mut wrong = 0;
    if plan.check {
        for seed in 1..=CHECKED {
            wrong += running.checked(seed, plan.mode, |running| running.rounds(1, &mut Vec::new()))?;
        }
    }
    running.rounds(row.warmup / row.window, &mut Vec::new())?;
    task.meet()?;
    let mut times = Vec::with_capacity((row.iterations / row.window) as usize);
    let timed = |running: &Running<'_>| {
        let (start, first) = (Instant::now(), ticks());
        running.rounds(row.iterations / row.window, &mut times)?;
        let seconds = start.elapsed().as_secs_f64();
        Ok(seconds / ticks().wrapping_sub(first).max(1) as f64)
    };
    let seconds_per_tick = if plan.check {
        let mut rate = 0.0;
        let mut timed = timed;
        wrong += running.checked(CHECKED + 1, plan.mode, |running| {
            rate = timed(running)?;
            Ok(())
        })?;
        rate
    } else {
        let mut timed = timed;
        let rate = timed(&running)?;
        task.meet()?;
        rate
    };
    let operations = running.operations_in_sample();
    let times: Vec<u64> =
        times.iter().map(|ticks| (*ticks as f64 * seconds_per_tick * 1e6 / operations).to_bits()).collect();
    let result = collect(task, test, row, &times)?;
    let wrong = task.exchange(wrong)?.iter().sum::<u64>();
    // Nothing is under way any more, in any task.
    drop(running);
    Ok(result.map(|mut result| {
        result.right = plan.check.then_some(wrong == 0);
        result
    }))
}

/// Task 0 gets the times of all tasks.
fn collect(task: &Task, test: &Test, row: &Row, times: &[u64]) -> Result<Option<Measured>> {
    let counts = task.exchange(times.len() as u64)?;
    let addresses = task.exchange(times.as_ptr() as u64)?;
    let mut all: Vec<u64> = Vec::new();
    if task.me == 0 {
        for (other, (count, address)) in counts.iter().zip(addresses).enumerate() {
            let from = all.len();
            all.resize(from + *count as usize, 0);
            match other {
                0 => all[from..].copy_from_slice(times),
                _ => task.fetch(other as u32, address, &mut all[from..])?,
            }
        }
    }
    task.meet()?;
    if task.me != 0 {
        return Ok(None);
    }
    let mut times: Vec<f64> = all.into_iter().map(f64::from_bits).collect();
    let latency_us = Latency::of(&mut times);
    // One barrier of many tasks is one operation.
    let at_once = match test.pattern {
        Pattern::Collective => 1.0,
        _ => counts.iter().filter(|count| **count > 0).count() as f64,
    };
    let messages_per_s = latency_us.messages_per_s(at_once);
    Ok(Some(Measured {
        test: test.name.to_owned(),
        size: row.size,
        window: row.window,
        samples: times.len() as u64,
        latency_us,
        histogram: histogram::ranges(&times),
        mb_per_s: (row.size > 0).then(|| messages_per_s * row.size as f64 / 1e6),
        messages_per_s,
        cache_line_ns: None,
        unsteady: false,
        right: None,
    }))
}

/// What an operation of a test increments.
fn counters(test: &Test) -> Counters {
    let moves_to_target =
        !matches!(test.operation, Operation::Get | Operation::GetStrided | Operation::Rmw(_));
    match test.pattern {
        Pattern::Collective => Counters::default(),
        _ if test.operation == Operation::Fence => Counters::default(),
        _ if !moves_to_target => Counters { origin: true, ..Counters::default() },
        _ if test.operation == Operation::PutSeen || test.operation == Operation::AmRead => {
            Counters::default()
        }
        // The reply shows that the source may be used again.
        Pattern::PingPong => Counters { target: true, ..Counters::default() },
        Pattern::Alone | Pattern::Window => Counters { completion: true, ..Counters::default() },
        Pattern::Acknowledged | Pattern::Both => Counters { target: true, origin: true, completion: false },
    }
}

impl Running<'_> {
    /// Operations whose time is one sample, both ways counted where both are waited for.
    fn operations_in_sample(&self) -> f64 {
        match self.test.pattern {
            Pattern::PingPong => 2.0,
            Pattern::Alone | Pattern::Collective => 1.0,
            Pattern::Acknowledged | Pattern::Window | Pattern::Both => self.window as f64,
        }
    }

    /// This task's part of some rounds. The times are those of a task that measures, in ticks.
    fn rounds(&self, count: u64, times: &mut Vec<u64>) -> Result<()> {
        let task = self.task;
        match (self.test.pattern, self.role) {
            (Pattern::Collective, _) => self.timed(count, times, || self.operation.start()),
            (_, Role::Idle) => Ok(()),
            (Pattern::PingPong, Role::Origin { .. }) => self.timed(count, times, || {
                self.send()?;
                self.arrived()
            }),
            (Pattern::PingPong, Role::Target { .. }) => (0..count).try_for_each(|_| {
                self.arrived()?;
                self.send()
            }),
            (Pattern::Alone, Role::Origin { peer, .. }) => {
                if self.test.operation == Operation::Fence {
                    self.timed(count, times, || self.operation.start())?;
                } else {
                    self.timed(count, times, || {
                        self.operation.start()?;
                        task.wait(Counter::Own, 1)
                    })?;
                }
                task.signal(peer, Counter::Arrived)
            }
            (Pattern::Window, Role::Origin { peer, .. }) => {
                self.timed(count, times, || self.own_window())?;
                task.signal(peer, Counter::Arrived)
            }
            // It serves the origins until the last of them says that it is done.
            (Pattern::Alone | Pattern::Window, Role::Target { origins, .. }) => {
                task.wait(Counter::Arrived, origins)
            }
            (Pattern::Acknowledged, Role::Origin { .. }) => self.timed(count, times, || {
                self.own_window()?;
                task.wait(Counter::Replied, 1)
            }),
            (Pattern::Acknowledged, Role::Target { origin, .. }) => (0..count).try_for_each(|_| {
                task.wait(Counter::Arrived, self.window)?;
                task.signal(origin, Counter::Replied)
            }),
            (Pattern::Both, Role::Origin { .. } | Role::Target { .. }) => self.timed(count, times, || {
                self.own_window()?;
                // Of a get, the data has arrived here.
                if self.test.operation == Operation::Get {
                    Ok(())
                } else {
                    task.wait(Counter::Arrived, self.window)
                }
            }),
        }
    }

    /// Sends the next message of a ping-pong.
    #[inline]
    fn send(&self) -> Result<()> {
        if self.test.operation == Operation::PutSeen {
            // Free again: the other side has seen the one before.
            self.sent.set(self.sent.get() + 1);
            self.task.memory.set_last_word(self.size, self.sent.get());
        }
        self.operation.start()
    }

    /// Waits for the next message of a ping-pong.
    #[inline]
    fn arrived(&self) -> Result<()> {
        match self.test.operation {
            Operation::AmLight | Operation::AmRead => self.task.wait_dropped(1),
            Operation::PutSeen => {
                self.seen.set(self.seen.get() + 1);
                self.task.wait_seen(self.size, self.seen.get())
            }
            _ => self.task.wait(Counter::Arrived, 1),
        }
    }

    /// A window of operations, until the counter of all of them is incremented.
    #[inline]
    fn own_window(&self) -> Result<()> {
        for _ in 0..self.window {
            self.operation.start()?;
        }
        self.task.wait(Counter::Own, self.window)
    }

    /// The end of a round is the beginning of the next one, so that the clock is read
    /// once for each.
    #[inline]
    fn timed(&self, count: u64, times: &mut Vec<u64>, mut round: impl FnMut() -> Result<()>) -> Result<()> {
        let mut last = ticks();
        for _ in 0..count {
            round()?;
            let now = ticks();
            times.push(now.wrapping_sub(last));
            last = now;
        }
        Ok(())
    }

    /// Lets all tasks do something after they have written new data, and compares what has arrived;
    /// returns the number of errors in this task.
    fn checked(&self, seed: u64, mode: Mode, run: impl FnOnce(&Self) -> Result<()>) -> Result<u64> {
        let (task, operation) = (self.task, self.test.operation);
        let gets = matches!(operation, Operation::Get | Operation::GetStrided);
        let byte = |source: u32| {
            // Several origins have the same data in one place: active messages have no slots.
            let from = if mode == Mode::Incast { 0 } else { u64::from(source) };
            move |offset: u64| match self.blocks.index(offset) {
                Some(index) => (index * 7 + index / 251 + seed * 13 + from * 5) as u8,
                None => EMPTY,
            }
        };
        let extent = self.blocks.extent();
        task.memory.fill_source(extent, byte(task.me));
        let slots = match self.role {
            Role::Target { origins, .. } if mode == Mode::Incast => origins,
            _ => 1,
        };
        (0..slots).for_each(|slot| task.memory.fill_data(slot, extent, |_| EMPTY));
        self.reset_words(mode);
        task.meet()?;
        run(self)?;
        task.meet()?;
        let both = matches!(self.test.pattern, Pattern::PingPong | Pattern::Both);
        let (receives, from) = match self.role {
            Role::Idle => (false, 0),
            Role::Origin { peer, .. } => (gets || both, peer),
            Role::Target { origin, .. } => (!gets || both, origin),
        };
        let difference = match operation {
            _ if !receives => None,
            Operation::Rmw(rmw) => self.word_difference(rmw),
            // The message is dropped where it is counted.
            Operation::Gfence | Operation::AmLight | Operation::AmRead => None,
            // The last word was polled.
            Operation::PutSeen => self.data_difference(0, extent - 8, byte(from)),
            Operation::Am | Operation::AmHeader | Operation::AmStrided | Operation::Dgsp => {
                self.data_difference(0, extent, byte(from))
            }
            _ => {
                let slots = if gets { 1 } else { slots };
                (0..slots).find_map(|slot| self.data_difference(slot, extent, byte(from)))
            }
        };
        if let Some(difference) = &difference {
            let (me, test, size) = (task.me, self.test.name, self.size);
            say(
                "lapi_perf",
                format_args!("task {me}: {test} of {size} bytes from task {from}: wrong data: {difference}"),
            );
        }
        Ok(u64::from(difference.is_some()))
    }

    fn data_difference(&self, slot: u64, extent: u64, byte: impl Fn(u64) -> u8) -> Option<String> {
        let (at, found, wanted) = self.task.memory.difference(slot, extent, byte)?;
        Some(format!("byte {at} is {found:#04x}, not {wanted:#04x}"))
    }

    /// The variable of LAPI_Rmw is 0, and its input what the check expects.
    fn reset_words(&self, mode: Mode) {
        let Operation::Rmw(rmw) = self.test.operation else { return };
        // The tasks have met: none of them uses these words now.
        let _ = mode;
        self.task.memory.set_word(Word::Variable, [0, 0]);
        self.task.memory.set_word(Word::Before, [u64::MAX, 0]);
        self.task.memory.set_word(Word::Input, self.input(rmw));
    }

    /// What the operation takes: one value, or for COMPARE_AND_SWAP two, which lie behind each
    /// other in their size.
    fn input(&self, rmw: Rmw) -> [u64; 2] {
        match (rmw, self.size) {
            (Rmw::Add, _) => [1, 0],
            (Rmw::Or | Rmw::Swap, _) => [FLAGS, 0],
            (Rmw::CompareAndSwap, 4) => [FLAGS << 32, 0],
            (Rmw::CompareAndSwap, _) => [0, FLAGS],
        }
    }

    /// Whether the variable has become what the operations make of it. (Of FETCH_AND_ADD: a number
    /// that the origins have reached.)
    fn word_difference(&self, rmw: Rmw) -> Option<String> {
        let mask = if self.size == 4 { u64::from(u32::MAX) } else { u64::MAX };
        let found = self.task.memory.word(Word::Variable);
        let right = match rmw {
            Rmw::Add => found & mask != 0 && found <= mask,
            _ => found == FLAGS,
        };
        (!right).then(|| format!("the variable is {found:#x}"))
    }
}

/// What FETCH_AND_OR, SWAP and COMPARE_AND_SWAP write.
const FLAGS: u64 = 0x5a5a_1234;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_origin_has_its_target() {
        for (mode, pairs, tasks) in [
            (Mode::Far, 2, 5),
            (Mode::Far, 1, 2),
            (Mode::Near, 2, 4),
            (Mode::Near, 1, 4),
            (Mode::Incast, 3, 4),
        ] {
            let role = |task| Role::of(task, tasks, mode, pairs);
            let mut origins = 0;
            for task in 0..tasks {
                let Role::Origin { peer, slot } = role(task) else { continue };
                origins += 1;
                match role(peer) {
                    Role::Target { origin, origins } if mode == Mode::Incast => {
                        assert!(origin == 1 && slot < origins, "{task}");
                    }
                    Role::Target { origin, origins } => assert_eq!((origin, origins, slot), (task, 1, 0)),
                    other => panic!("{task} to {peer}, which is {other:?}"),
                }
            }
            assert_eq!(origins, pairs, "{mode:?}");
        }
    }
}
