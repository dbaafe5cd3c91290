//! One operation of a simulation: what there is of it at both ends, and what may be.
//!
//! An operation is *void* once one of its two tasks has died, or has parted from the other one,
//! while it could have been under way between them: then it may have happened in part, but at most
//! once. All others happen, once. What belongs to a void operation does not change any more where
//! the program has purged the other task.

use super::super::memory::{Division, Memory};
use super::scenario::Scenario;
use crate::base::rng::Rng;
use crate::transport::Task;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The kinds of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Put,
    Get,
    Am {
        /// The message has a completion handler, which runs so (LAPI_NORMAL, …).
        handler: Option<u32>,
        /// How many times its header handler refuses it.
        drops: u32,
        /// The completion handler starts another operation.
        goes_on: bool,
    },
    Rmw,
}

/// Where an operation begins and ends.
pub struct Start {
    pub number: usize,
    pub from: Task,
    pub to: Task,
    /// The life of its origin, and the first life of the target that may see it.
    pub lives: (u32, u32),
    pub phase: Option<u32>,
    pub incarnation: u32,
}

/// One operation.
pub struct Op {
    pub number: usize,
    pub what: What,
    pub from: Task,
    pub to: Task,
    /// The life of its origin, and the first life of the target that may see it.
    pub from_life: u32,
    pub to_life: u32,
    /// The last life of the target that may see it.
    pub last_life: AtomicU32,
    /// The part of the program that has started it; none for what a handler has started.
    pub phase: Option<u32>,
    /// How often the origin had parted from the target when it was started.
    pub incarnation: u32,
    pub header: Memory,
    pub origin: Memory,
    pub target: Memory,
    pub has: [bool; 3],
    /// Target, origin, completion.
    pub counters: [AtomicI32; 3],
    pub offered: AtomicU32,
    pub accepted: AtomicU32,
    pub completed: AtomicU32,
    pub void: AtomicBool,
    /// The operation was under way in a connection that has ended.
    pub lost: AtomicBool,
    /// The call of the operation has failed: nothing of it happens.
    withdrawn: AtomicBool,
    /// What was seen last of it.
    seen: Mutex<Seen>,
}

/// What there is of an operation at one of its ends: counts, and whether its memory is written.
type Side = [u64; 5];

#[derive(Default)]
struct Seen {
    counters: [i32; 3],
    /// The data was compared.
    data: bool,
    /// The memory at the origin was changed by the program, which it may.
    spoilt: bool,
    /// A call has waited for the completion counter, and subtracted one.
    awaited: bool,
    taken: bool,
    /// What does not change any more: at the origin, at the target.
    frozen: [Option<Side>; 2],
    settled: bool,
}

impl Op {
    /// Any operation.
    pub fn draw(rng: &mut Rng, scenario: &Scenario, start: Start) -> Self {
        let what = match rng.below(8) {
            0..=2 => What::Put,
            3 => What::Get,
            4 => What::Rmw,
            _ => {
                let handlers = if scenario.completion_threads > 0 { 3 } else { 2 };
                What::Am {
                    handler: rng.chance(0.6).then(|| rng.below(handlers) as u32),
                    drops: if rng.chance(0.1) { 1 + rng.below(2) as u32 } else { 0 },
                    goes_on: start.phase.is_some() && rng.chance(0.2),
                }
            }
        };
        let len = match (what, rng.below(16)) {
            (What::Rmw, _) => 8,
            (_, 0) => 0,
            (_, 1..=7) => rng.below(64),
            (_, 8..=13) => rng.below(scenario.longest.min(3000)),
            _ => rng.below(scenario.longest),
        } as usize;
        let division = match what {
            What::Rmw => Division::Row(len),
            _ if rng.chance(0.15) => Division::draw(rng, len),
            _ => Division::Row(len),
        };
        let header = Memory::new(8 + if rng.chance(0.1) { 1016 } else { rng.below(50) as usize }, rng);
        let (origin, target) = (Memory::divided(&division, rng), Memory::divided(&division, rng));
        let replied = matches!(what, What::Get | What::Rmw);
        let has = [rng.chance(0.6), replied || rng.chance(0.6), rng.chance(0.7)];
        let Start { number, from, to, lives: (from_life, to_life), phase, incarnation } = start;
        match what {
            What::Put | What::Am { .. } => origin.fill(number),
            What::Get => target.fill(number),
            What::Rmw => {}
        }
        header.fill_header(number);
        Self {
            number,
            what,
            from,
            to,
            from_life,
            to_life,
            last_life: AtomicU32::new(u32::MAX),
            phase,
            incarnation,
            header,
            origin,
            target,
            has,
            counters: Default::default(),
            offered: AtomicU32::new(0),
            accepted: AtomicU32::new(0),
            completed: AtomicU32::new(0),
            void: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            withdrawn: AtomicBool::new(false),
            seen: Mutex::default(),
        }
    }

    /// The call of the operation has failed.
    pub fn withdraw(&self) {
        self.void.store(true, Ordering::Relaxed);
        self.withdrawn.store(true, Ordering::Relaxed);
        self.seen().settled = true;
    }

    /// Whether all of it has happened.
    pub fn is_settled(&self) -> bool {
        self.seen().settled
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the data is where it belongs.
    pub fn arrived(&self) -> bool {
        match self.what {
            What::Put | What::Am { .. } => self.target.holds(self.number),
            What::Get => self.origin.holds(self.number),
            What::Rmw => self.counters[1].load(Ordering::Relaxed) == 1,
        }
    }

    /// A call waits for the completion counter: it takes what the counter counts. Whether it is
    /// the first one.
    pub fn await_completion(&self) -> bool {
        !std::mem::replace(&mut self.seen().awaited, true)
    }

    /// The call has returned.
    pub fn note_awaited(&self) {
        self.seen().taken = true;
    }

    fn counted(&self, seen: &Seen) -> [i32; 3] {
        let counters = self.counters.each_ref().map(|counter| counter.load(Ordering::Relaxed));
        let [tgt, org, cmpl] = counters;
        let cmpl = match (seen.awaited, seen.taken) {
            (true, true) => cmpl + 1,
            // It may have been counted, and not taken yet.
            (true, false) => cmpl.max(1),
            _ => cmpl,
        };
        [tgt, org, cmpl]
    }

    /// Compares it with what it may be now.
    pub fn check(&self) -> Result<(), String> {
        let seen = &mut *self.seen();
        let counters = self.counted(seen);
        let awaited = seen.awaited;
        for at in 0..3 {
            let (now, before) = (counters[at], seen.counters[at]);
            if now < before || now > i32::from(self.has[at]) {
                return Err(format!("counters {counters:?} after {:?}, of {:?}", seen.counters, self.has));
            }
        }
        let [tgt, org, cmpl] = counters.map(|count| count == 1);
        let completion = cmpl && !awaited;
        let accepted = self.accepted.load(Ordering::Relaxed);
        let completed = self.completed.load(Ordering::Relaxed);
        let moves = match self.what {
            What::Put | What::Am { .. } => tgt || completion || completed != 0,
            What::Get | What::Rmw => org,
        };
        if moves && !seen.data {
            if !self.arrived() {
                return Err(format!("the counters {counters:?} say that the data is there, and it is not"));
            }
            seen.data = true;
        }
        if let What::Am { handler, .. } = self.what
            && (tgt || completion)
            && (accepted != 1 || completed != u32::from(handler.is_some()))
        {
            return Err(format!("complete after {accepted} and {completed} calls of its handlers"));
        }
        if completion && self.has[0] && !tgt && !matches!(self.what, What::Get | What::Rmw) {
            return Err("its completion was counted before its arrival".to_owned());
        }
        if org && matches!(self.what, What::Put | What::Am { .. }) && !seen.spoilt {
            // What is read from here from now on is wrong.
            self.origin.fill(self.number + 1);
            seen.spoilt = true;
        }
        for side in 0..2 {
            if let Some(frozen) = &seen.frozen[side]
                && *frozen != self.side(side)
            {
                return Err(format!("changed after its task was purged: {frozen:?}, {:?}", self.side(side)));
            }
        }
        seen.counters = counters;
        let all = (0..3).all(|at| !self.has[at] || !self.counts(at) || counters[at] == 1);
        let handled = match self.what {
            What::Am { handler, .. } => accepted == 1 && completed == u32::from(handler.is_some()),
            _ => true,
        };
        let void = self.void.load(Ordering::Relaxed);
        seen.settled = !void && all && handled && (seen.data || awaited || self.arrived());
        Ok(())
    }

    /// Whether an operation of this kind raises this counter.
    fn counts(&self, at: usize) -> bool {
        match self.what {
            What::Put | What::Am { .. } => true,
            What::Get => at < 2,
            What::Rmw => at == 1,
        }
    }

    /// What there is of it at the origin (0) or the target.
    fn side(&self, side: usize) -> Side {
        let count = |at: usize| self.counters[at].load(Ordering::Relaxed) as u64;
        let calls = |count: &AtomicU32| u64::from(count.load(Ordering::Relaxed));
        let there = |memory: &Memory| (u64::from(memory.holds(self.number)), u64::from(memory.untouched()));
        let (counts, memory) = match (side, self.what) {
            (0, What::Get) => ([count(1), count(2), 0], Some(&self.origin)),
            (0, _) => ([count(1), count(2), 0], None),
            // The data had arrived, and its completion handler waits for a thread.
            (_, What::Am { handler: Some(2), .. }) => ([calls(&self.offered), 0, 0], Some(&self.target)),
            (_, What::Put | What::Am { .. }) => {
                ([count(0), calls(&self.offered), calls(&self.completed)], Some(&self.target))
            }
            (_, _) => ([count(0), 0, 0], None),
        };
        let (holds, untouched) = memory.map_or((0, 0), there);
        [counts[0], counts[1], counts[2], holds, untouched]
    }

    /// What there is of it on one side does not change any more.
    pub fn freeze(&self, side: usize) {
        let now = self.side(side);
        self.seen().frozen[side].get_or_insert(now);
    }

    /// What must be so when everything is over.
    pub fn verify(&self, void: bool) -> Result<(), String> {
        let calls =
            [&self.offered, &self.accepted, &self.completed].map(|count| count.load(Ordering::Relaxed));
        let (most, handlers) = match self.what {
            What::Am { handler, drops, .. } => ([drops + 1, 1, u32::from(handler.is_some())], true),
            _ => ([0; 3], false),
        };
        if (0..3).any(|at| calls[at] > most[at]) || handlers && !void && calls != most {
            return Err(format!("its handlers were called {calls:?} times, of {most:?}"));
        }
        if !self.origin.whole() || !self.target.whole() {
            return Err("written beyond its end".to_owned());
        }
        let nothing =
            calls == [0; 3] && self.counters.iter().all(|counter| counter.load(Ordering::Relaxed) == 0);
        let at_target = matches!(self.what, What::Put | What::Am { .. });
        if self.withdrawn.load(Ordering::Relaxed) && !(nothing && (!at_target || self.target.untouched())) {
            return Err("its call has failed, and something of it has happened".to_owned());
        }
        if void {
            return Ok(());
        }
        if !self.seen().settled {
            return Err("is not complete".to_owned());
        }
        let moved = match self.what {
            What::Put | What::Am { .. } => self.target.holds(self.number),
            What::Get => self.origin.holds(self.number),
            What::Rmw => true,
        };
        if moved { Ok(()) } else { Err("its data has changed".to_owned()) }
    }

    /// For messages to people.
    pub fn name(&self) -> String {
        let vector = if self.origin.vector().is_some() { " in a vector" } else { "" };
        format!(
            "operation {}, {:?} of {} bytes{vector} from {} (life {}) to {} (life {})",
            self.number, self.what, self.origin.len, self.from, self.from_life, self.to, self.to_life
        )
    }
}
