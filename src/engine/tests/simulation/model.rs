//! What each program may have seen: every operation, its memory at both ends, its counters, the
//! calls of its handlers.

use super::super::job::describe;
use super::network::Network;
use super::op::{Op, Start, What};
use super::scenario::Scenario;
use crate::base::rng::Rng;
use crate::base::simulation::World;
use crate::engine::context::Context;
use crate::transport::{PeerStanding, PeerState, Task};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

/// A task of the job.
pub struct TaskState {
    /// 1 for its first process.
    pub life: u32,
    pub alive: bool,
    pub context: Weak<Context>,
    /// Global fences that it has entered.
    pub entered: u32,
    pub finished: bool,
    /// The task's program has ended after an error in a global fence: others may still
    /// wait for it there.
    pub gave_up: bool,
    /// Peers that it is to purge without a reason.
    pub wishes: Vec<Task>,
    /// For each peer, how often it has died or parted from this task, and how much of that this
    /// task's program has acted upon.
    pub partings: Vec<u32>,
    pub handled: Vec<u32>,
    /// The peers that have purged this task before there was contact: the task may learn of it at
    /// first contact.
    pub warned: Vec<bool>,
    /// The life of each peer for which messages are meant from now on, at least.
    pub known: Vec<u32>,
    /// Errors that were reported to the program, by peer.
    pub reports: Vec<u32>,
    /// What others add to, by life.
    variables: BTreeMap<u32, Arc<AtomicU64>>,
}

struct State {
    ops: Vec<Arc<Op>>,
    open: Vec<usize>,
    tasks: Vec<TaskState>,
}

/// The model of one simulation.
pub struct Model {
    pub scenario: Scenario,
    pub network: Arc<Network>,
    pub world: Weak<World>,
    /// Events that have not begun, or are not over.
    pub unrest: AtomicU32,
    state: Mutex<State>,
}

impl Model {
    pub fn new(scenario: Scenario, network: Arc<Network>, world: &Arc<World>) -> Arc<Self> {
        let tasks = scenario.tasks as usize;
        let task = || TaskState {
            life: 0,
            alive: false,
            context: Weak::new(),
            entered: 0,
            finished: false,
            gave_up: false,
            wishes: Vec::new(),
            partings: vec![0; tasks],
            handled: vec![0; tasks],
            warned: vec![false; tasks],
            known: vec![1; tasks],
            reports: vec![0; tasks],
            variables: BTreeMap::new(),
        };
        let state = State {
            ops: Vec::new(),
            open: Vec::new(),
            tasks: std::iter::repeat_with(task).take(tasks).collect(),
        };
        let world = Arc::downgrade(world);
        Arc::new(Self { scenario, network, world, unrest: AtomicU32::new(0), state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads or changes what is known of a task.
    pub fn of<T>(&self, task: Task, with: impl FnOnce(&mut TaskState) -> T) -> T {
        with(&mut self.state().tasks[task as usize])
    }

    /// Notes that something is wrong, unless `right`.
    pub fn expect(&self, right: bool, what: impl FnOnce() -> String) {
        if !right && let Some(world) = self.world.upgrade() {
            let what = what();
            if !world.has_failed() {
                println!("seed {}: {what}", self.scenario.seed);
            }
            world.fail(what);
        }
    }

    pub fn op(&self, number: usize) -> Option<Arc<Op>> {
        self.state().ops.get(number).cloned()
    }

    /// A process of the task begins. Returns its life.
    pub fn begin(&self, task: Task, context: &Arc<Context>) -> u32 {
        let state = &mut *self.state();
        let dead = |peer: &TaskState| peer.life > 0 && !peer.alive;
        let lives: Vec<u32> =
            state.tasks.iter().map(|peer| peer.life.max(1) + u32::from(dead(peer))).collect();
        let dead: Vec<u32> = state.tasks.iter().map(|peer| u32::from(dead(peer))).collect();
        let own = &mut state.tasks[task as usize];
        own.life += 1;
        (own.alive, own.finished, own.gave_up) = (true, false, false);
        own.context = Arc::downgrade(context);
        // It acts upon those that are dead now.
        own.handled = own.partings.iter().zip(dead).map(|(count, dead)| count.saturating_sub(dead)).collect();
        own.handled[task as usize] = own.partings[task as usize];
        (own.known, own.reports) = (lives, vec![0; own.reports.len()]);
        own.wishes.clear();
        own.life
    }

    /// The variable of a task's life that others add to.
    pub fn variable(&self, task: Task, life: u32) -> Arc<AtomicU64> {
        self.of(task, |own| own.variables.entry(life).or_default().clone())
    }

    /// Whether it is no wonder that a task finds a peer gone.
    pub fn may_be_gone(&self, task: Task, peer: Task) -> bool {
        let gave_up = self.of(peer, |own| own.gave_up);
        let peer = peer as usize;
        self.of(task, |own| {
            gave_up || own.warned[peer] || own.reports[peer] > 0 || own.partings[peer] != own.handled[peer]
        })
    }

    /// Prints what happens, if SIMULATION_LOG is set.
    pub fn log(&self, what: impl FnOnce() -> String) {
        static WANTED: OnceLock<bool> = OnceLock::new();
        if *WANTED.get_or_init(|| std::env::var_os("SIMULATION_LOG").is_some())
            && let Some(world) = self.world.upgrade()
        {
            println!("{:.6} {}", world.now() as f64 / 1e9, what());
        }
    }

    /// Draws an operation of `from` and enters it.
    pub fn draw(&self, rng: &mut Rng, from: Task, to: Task, incarnation: u32, phase: Option<u32>) -> Arc<Op> {
        let state = &mut *self.state();
        let own = &state.tasks[from as usize];
        let lives = (own.life, if to == from { own.life } else { own.known[to as usize] });
        let start = Start { number: state.ops.len().max(1), from, to, lives, phase, incarnation };
        let op = Arc::new(Op::draw(rng, &self.scenario, start));
        if state.ops.is_empty() {
            state.ops.push(op.clone());
        }
        state.ops.push(op.clone());
        state.open.push(op.number);
        op
    }

    /// The operation was not started after all.
    pub fn withdraw(&self, op: &Op) {
        op.withdraw();
        self.state().open.retain(|open| *open != op.number);
    }

    /// After a step of a task: what it and others may have seen.
    pub fn check(&self, task: Task) {
        let mut wrong = None;
        let mut state = self.state();
        let State { ops, open, .. } = &mut *state;
        open.retain(|&number| {
            let op = &ops[number];
            if op.from != task && op.to != task {
                return true;
            }
            if let Err(what) = op.check() {
                wrong.get_or_insert(format!("{}: {what}", op.name()));
            }
            !op.is_settled()
        });
        drop(state);
        self.expect(wrong.is_none(), || wrong.unwrap_or_default());
    }

    /// The operations that `wanted` finds, of those that are not over.
    pub fn open(&self, wanted: impl Fn(&Op) -> bool) -> Vec<Arc<Op>> {
        let state = self.state();
        state.open.iter().map(|&number| &state.ops[number]).filter(|op| wanted(op)).cloned().collect()
    }

    /// All operations that `wanted` finds.
    pub fn all(&self, wanted: impl Fn(&Op) -> bool) -> Vec<Arc<Op>> {
        self.state().ops.iter().skip(1).filter(|op| wanted(op)).cloned().collect()
    }

    /// Whether a task is connected with a peer, and whether it awaits it, as it knows itself.
    fn connection(&self, task: Task, peer: Task) -> (bool, bool) {
        let context = self.of(task, |own| own.alive.then(|| own.context.clone()));
        let Some(context) = context.and_then(|context| context.upgrade()) else { return (true, false) };
        let Some(mut held) = context.try_enter() else { return (true, false) };
        let transport = &held.core().transport;
        let PeerStanding { state, absence, .. } = transport.standing(peer);
        let connected = state == PeerState::Up && absence.is_none();
        let has_met = transport.view(peer).connection.is_some();
        (connected && has_met, !has_met || absence.is_some_and(|absence| absence.contains("not rejoined")))
    }

    /// Whether the end of a connection by `task` ends what `peer` has begun: what it sends waits
    /// where it awaits the task itself.
    fn is_lost_by(&self, peer: Task, task: Task, dies: bool) -> bool {
        let (connected, awaits) = self.connection(peer, task);
        // Where the connection is not made yet, what was accepted goes to the successor of a
        // task that dies.
        connected || !awaits && !dies
    }

    /// `task` has parted from `peer`, in this incarnation until now, or has died.
    fn void_between(&self, task: Task, peer: Task, dies: bool) {
        let (connected, may_be_lost) = (self.connection(peer, task).0, self.is_lost_by(peer, task, dies));
        let state = self.state();
        for op in state.open.iter().map(|&number| &state.ops[number]) {
            let (own, theirs) = ((op.from, op.to) == (task, peer), (op.from, op.to) == (peer, task));
            op.void.fetch_or(own || theirs && may_be_lost, Ordering::Relaxed);
            op.lost.fetch_or(own || theirs && connected, Ordering::Relaxed);
        }
    }

    /// The process of a task ends here.
    pub fn die(&self, task: Task) {
        for peer in (0..self.scenario.tasks).filter(|peer| *peer != task) {
            let connected = self.connection(peer, task).0;
            self.void_between(task, peer, true);
            if !connected {
                continue;
            }
            let state = self.state();
            let life = state.tasks[task as usize].life;
            for op in state.open.iter().map(|&number| &state.ops[number]) {
                if (op.from, op.to) == (peer, task) {
                    op.last_life.fetch_min(life, Ordering::Relaxed);
                }
            }
        }
        let state = &mut *self.state();
        for op in state.open.iter().map(|&number| &state.ops[number]) {
            if op.from == task && op.to == task {
                op.void.store(true, Ordering::Relaxed);
            }
        }
        for peer in (0..state.tasks.len()).filter(|peer| *peer != task as usize) {
            state.tasks[peer].partings[task as usize] += 1;
        }
        state.tasks[task as usize].alive = false;
    }

    /// A program is about to purge a peer.
    pub fn purges(&self, task: Task, peer: Task) {
        self.void_between(task, peer, false);
        let was_connected = self.is_lost_by(peer, task, false);
        let state = &mut *self.state();
        state.tasks[peer as usize].warned[task as usize] = true;
        if was_connected {
            state.tasks[peer as usize].partings[task as usize] += 1;
        }
        let life = state.tasks[peer as usize].life + u32::from(!state.tasks[peer as usize].alive);
        let own = &mut state.tasks[task as usize];
        own.handled[peer as usize] = own.partings[peer as usize];
        own.known[peer as usize] = life;
    }

    /// The task has purged the peer: what is void does not change here any more.
    pub fn has_purged(&self, task: Task, peer: Task) {
        let state = self.state();
        for op in state.open.iter().map(|&number| &state.ops[number]) {
            if op.lost.load(Ordering::Relaxed) {
                match (op.from, op.to) {
                    (from, to) if (from, to) == (task, peer) => op.freeze(0),
                    (from, to) if (from, to) == (peer, task) => op.freeze(1),
                    _ => {}
                }
            }
        }
    }

    /// The origin's library has begun a new incarnation of the connection by itself.
    pub fn note_incarnation(&self, task: Task, peer: Task, incarnation: u32) {
        let state = self.state();
        for op in state.open.iter().map(|&number| &state.ops[number]) {
            if (op.from, op.to) == (task, peer) && op.incarnation != incarnation {
                op.void.store(true, Ordering::Relaxed);
                op.lost.store(true, Ordering::Relaxed);
            }
        }
    }

    /// What is checked when everything is over.
    pub fn verify(&self) {
        let ops = self.all(|_| true);
        for op in &ops {
            let void = op.void.load(Ordering::Relaxed);
            let outcome = op.check().and_then(|()| op.verify(void));
            self.expect(outcome.is_ok(), || format!("in the end {}: {outcome:?}", op.name()));
        }
        let variables = (0..self.scenario.tasks).flat_map(|task| {
            let read =
                |(life, variable): (&u32, &Arc<AtomicU64>)| (task, *life, variable.load(Ordering::Relaxed));
            self.of(task, |own| own.variables.iter().map(read).collect::<Vec<_>>())
        });
        for (task, life, variable) in variables {
            let here = |op: &&Arc<Op>| (op.to, op.to_life, op.what) == (task, life, What::Rmw);
            let sure = |op: &&Arc<Op>| here(op) && !op.void.load(Ordering::Relaxed);
            let count = |of: &dyn Fn(&&Arc<Op>) -> bool| ops.iter().filter(|op| of(op)).count() as u64;
            let (done, started) = (count(&sure), count(&here));
            self.expect((done..=started).contains(&variable), || {
                format!("task {task}: {variable} additions of {done} to {started}")
            });
            let mut seen: Vec<u64> = ops.iter().filter(sure).map(|op| op.origin.number(true)).collect();
            seen.sort_unstable();
            let count = seen.len();
            seen.dedup();
            self.expect(seen.len() == count && seen.last().is_none_or(|last| *last < variable), || {
                format!("task {task}: additions have found {seen:?}, and there were {variable}")
            });
        }
    }

    /// What is under way, for the message of a simulation that hangs.
    pub fn describe(&self) -> String {
        let state = self.state();
        let tasks = state.tasks.iter().enumerate().map(|(task, own)| {
            let context = own.context.upgrade();
            let core = context.as_ref().and_then(|context| context.try_enter()).map(|mut held| {
                let peers = (0..state.tasks.len() as Task).filter(|peer| *peer != task as Task);
                let core = held.core();
                let seen = peers.map(|peer| format!("{peer}: {:?}, {:?}", core.transport.standing(peer), core.transport.view(peer)));
                let seen = seen.collect::<Vec<_>>().join("; ");
                format!("{}; due {:?}; {seen}", describe(core), core.transport.due())
            });
            format!(
                "task {task}: life {}, alive {}, {} global fences, finished {}, partings {:?}, handled {:?}; {core:?}",
                own.life, own.alive, own.entered, own.finished, own.partings, own.handled
            )
        });
        let ops = state.open.iter().map(|&number| &state.ops[number]).map(|op| {
            let [tgt, org, cmpl] = &op.counters;
            format!(
                "{}, void {}, counters {tgt:?} {org:?} {cmpl:?} of {:?}, arrived {}",
                op.name(),
                op.void.load(Ordering::Relaxed),
                op.has,
                op.arrived()
            )
        });
        tasks.chain(ops).collect::<Vec<_>>().join("\n  ")
    }
}
