//! The threads of a simulation, its time, and its events.

use super::baton::Baton;
use crate::base::clock;
use crate::base::process::Process;
use crate::base::rng::Rng;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::RawFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

thread_local! {
    /// The world of the calling thread, its number there, and its group.
    pub(super) static SEAT: RefCell<Option<(Arc<World>, usize, u32)>> = const { RefCell::new(None) };
    /// How far the clock of a thread that has been ended is ahead: it waits for nothing.
    pub(super) static AHEAD: Cell<Nanos> = const { Cell::new(0) };
    pub(super) static DEAD: Cell<bool> = const { Cell::new(false) };
}

/// Time since the beginning of the simulation, in nanoseconds.
pub(crate) type Nanos = u64;

/// Each look at the clock takes this long, so that a loop which waits for a moment ends.
const LOOK: Nanos = 20;

/// What happens at a moment.
type Event = Box<dyn FnOnce(&Arc<World>) + Send>;

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// A moment only.
    Time,
    /// A word or condition with this address.
    Address(usize),
    /// Descriptors: it looks at them again when another thread of its group has run, or when
    /// something has arrived.
    Descriptors,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Ready { woken: bool },
    Waiting { on: On, until: Option<Nanos> },
    Ended,
}

struct Seat {
    group: u32,
    name: String,
    status: Status,
    baton: Arc<Baton>,
    /// The thread leaves as soon as it runs again.
    dying: bool,
}

struct State {
    rng: Rng,
    seats: Vec<Seat>,
    events: BTreeMap<(Nanos, u64), Event>,
    event_count: u64,
    /// Groups that do not run until a moment.
    paused: BTreeMap<u32, Nanos>,
    /// When which timer is due, by its descriptor.
    timers: BTreeMap<RawFd, Nanos>,
    /// Threads that have not ended.
    living: usize,
    /// The processes that run: their numbers and starts.
    processes: BTreeSet<(u32, u64)>,
    failure: Option<String>,
    /// How often memory is refused.
    shortage: f64,
    /// A number that differs when two runs differ.
    trace: u64,
    switches: u64,
}

/// A simulation.
pub(crate) struct World {
    now: AtomicU64,
    begun: Instant,
    /// Nothing may last longer.
    end: Nanos,
    state: Mutex<State>,
    secrets: Mutex<Rng>,
    over: Condvar,
    /// The processor time of the threads that have ended, in nanoseconds.
    used: AtomicU64,
    /// Called by a thread of this group when it would wait: it has made a step.
    on_step: OnceLock<Box<dyn Fn(u32) + Send + Sync>>,
    explain: OnceLock<Box<dyn Fn() -> String + Send + Sync>>,
    /// What the user of the simulation keeps with it.
    pub(super) model: OnceLock<Arc<dyn Any + Send + Sync>>,
}

/// Says that a thread has been ended.
pub(super) struct Killed;

impl World {
    /// A world of this seed without threads, in which nothing lasts longer than until `end`.
    pub(crate) fn new(seed: u64, end: Nanos) -> Arc<Self> {
        let state = State {
            rng: Rng::stream(seed, 1),
            seats: Vec::new(),
            events: BTreeMap::new(),
            event_count: 0,
            paused: BTreeMap::new(),
            timers: BTreeMap::new(),
            living: 0,
            processes: BTreeSet::new(),
            failure: None,
            shortage: 0.0,
            trace: 0,
            switches: 0,
        };
        Arc::new(Self {
            // No clock begins with 0.
            now: AtomicU64::new(1_000_000_000),
            begun: Instant::now(),
            end,
            state: Mutex::new(state),
            secrets: Mutex::new(Rng::stream(seed, 2)),
            over: Condvar::new(),
            used: AtomicU64::new(0),
            on_step: OnceLock::new(),
            explain: OnceLock::new(),
            model: OnceLock::new(),
        })
    }

    /// Calls `step` with the group of each thread that has made a step.
    pub(crate) fn on_step(&self, step: impl Fn(u32) + Send + Sync + 'static) {
        assert!(self.on_step.set(Box::new(step)).is_ok(), "once");
    }

    /// Adds what `explain` returns to the message when something goes wrong.
    pub(crate) fn on_failure(&self, explain: impl Fn() -> String + Send + Sync + 'static) {
        assert!(self.explain.set(Box::new(explain)).is_ok(), "once");
    }

    /// Keeps something for [`super::here`].
    pub(crate) fn keep(&self, model: Arc<dyn Any + Send + Sync>) {
        assert!(self.model.set(model).is_ok(), "once");
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time.
    pub(crate) fn now(&self) -> Nanos {
        self.now.load(Ordering::Relaxed)
    }

    pub(super) fn look(&self) -> Nanos {
        self.now.fetch_add(LOOK, Ordering::Relaxed) + LOOK
    }

    pub(super) fn instant(&self, at: Nanos) -> Instant {
        self.begun + Duration::from_nanos(at)
    }

    pub(super) fn secret(&self) -> u64 {
        self.secrets.lock().unwrap_or_else(PoisonError::into_inner).next_u64()
    }

    /// From now on memory is refused this often ([`super::is_short`]).
    pub(crate) fn refuse_memory(&self, chance: f64) {
        self.state().shortage = chance;
    }

    pub(super) fn is_short(&self) -> bool {
        let state = &mut *self.state();
        state.shortage > 0.0 && state.rng.chance(state.shortage)
    }

    /// Lets something happen this much later.
    pub(crate) fn after(&self, time: Nanos, event: impl FnOnce(&Arc<Self>) + Send + 'static) {
        let at = self.now() + time;
        let state = &mut *self.state();
        state.event_count += 1;
        state.events.insert((at, state.event_count), Box::new(event));
    }

    /// Adds something to what must be equal in two runs of a seed.
    pub(crate) fn note(&self, what: u64) {
        self.state().note(what);
    }

    /// A thread of a group, which begins when it is its turn.
    pub(crate) fn spawn(self: &Arc<Self>, group: u32, name: &str, run: impl FnOnce() + Send + 'static) {
        let baton = Arc::new(Baton::default());
        let number = {
            let state = &mut *self.state();
            state.living += 1;
            state.seats.push(Seat {
                group,
                name: name.to_owned(),
                status: Status::Ready { woken: true },
                baton: baton.clone(),
                dying: false,
            });
            state.seats.len() - 1
        };
        let (world, own) = (self.clone(), baton.clone());
        let body = move || {
            own.take();
            SEAT.set(Some((world.clone(), number, group)));
            let outcome = if world.is_dying(number) { Ok(()) } else { catch_unwind(AssertUnwindSafe(run)) };
            if let Err(reason) = outcome
                && !reason.is::<Killed>()
            {
                let said = reason.downcast_ref::<&str>().map(|text| (*text).to_owned());
                let said = said.or_else(|| reason.downcast_ref::<String>().cloned());
                world.fail(said.unwrap_or_else(|| "a panic".to_owned()));
            }
            SEAT.set(None);
            world.used.fetch_add(clock::thread_time().as_nanos() as u64, Ordering::Relaxed);
            world.leave(number);
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).stack_size(512 << 10).spawn(body);
        let thread = thread.expect("a thread").thread().clone();
        baton.belongs_to(thread);
    }

    /// Runs all threads until they have ended. Returns the number that two runs of a seed share,
    /// and how often another thread was chosen.
    ///
    /// # Errors
    /// A thread has failed, or has not ended in time.
    pub(crate) fn run(self: &Arc<Self>) -> Result<(u64, u64), String> {
        if let Some(next) = self.next(None) {
            self.state().seats[next].baton.clone().pass();
        }
        let mut state = self.state();
        while state.living != 0 {
            state = self.over.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.events.clear();
        match state.failure.take() {
            Some(failure) => Err(failure),
            None => Ok((state.trace, state.switches)),
        }
    }

    /// The processor time of the threads that have ended.
    pub(crate) fn used(&self) -> Duration {
        Duration::from_nanos(self.used.load(Ordering::Relaxed))
    }

    /// Something is wrong: all threads end, and [`Self::run`] returns this, if it is the first.
    pub(crate) fn fail(&self, what: String) {
        if self.has_failed() {
            return;
        }
        self.state().failure = Some(what.clone());
        // What it would look at may be what is wrong.
        let explain = || self.explain.get().map(|explain| explain()).unwrap_or_default();
        let more = catch_unwind(AssertUnwindSafe(explain)).unwrap_or_default();
        let state = &mut *self.state();
        state.failure = Some(format!("at {:.6} s: {what}\n  {more}", self.now() as f64 / 1e9));
        state.end(|_| true);
    }

    /// Whether something has gone wrong.
    pub(crate) fn has_failed(&self) -> bool {
        self.state().failure.is_some()
    }

    /// Ends the threads of a group where they wait. The caller is not one of them.
    pub(crate) fn kill(&self, group: u32) {
        self.state().end(|seat| seat.group == group);
    }

    /// Whether a group has threads that have not ended.
    pub(crate) fn runs(&self, group: u32) -> bool {
        self.state().seats.iter().any(|seat| seat.group == group && seat.status != Status::Ended)
    }

    /// A process begins or ends, as others of its machine see it.
    pub(crate) fn note_process(&self, process: Process, runs: bool) {
        let (processes, own) = (&mut self.state().processes, (process.pid, process.started));
        if runs {
            processes.insert(own)
        } else {
            processes.remove(&own)
        };
    }

    pub(super) fn runs_process(&self, process: Process) -> bool {
        self.state().processes.contains(&(process.pid, process.started))
    }

    /// Lets no thread of a group run for a time.
    pub(crate) fn pause(&self, group: u32, time: Nanos) {
        let until = self.now() + time;
        self.state().paused.insert(group, until);
    }

    /// Something has arrived for the threads of a group that wait for descriptors.
    pub(crate) fn rouse(&self, group: u32) {
        self.state().rouse(group, None);
    }

    pub(super) fn set_timer(&self, timer: RawFd, group: u32, after: Nanos) {
        self.after(after, move |world| world.rouse(group));
        let until = self.now() + after;
        self.state().timers.insert(timer, until);
    }

    pub(super) fn timer_is_due(&self, timer: RawFd) -> bool {
        let now = self.now();
        let timers = &mut self.state().timers;
        timers.get(&timer).is_some_and(|until| *until <= now) && timers.remove(&timer).is_some()
    }

    pub(super) fn forget_timer(&self, timer: RawFd) {
        self.state().timers.remove(&timer);
    }

    /// Wakes at most `count` threads that wait for an address. Whether there was one.
    pub(super) fn wake(&self, address: usize, count: u32) -> bool {
        let state = &mut *self.state();
        let waits = |seat: &&mut Seat| matches!(seat.status, Status::Waiting { on: On::Address(at), .. } if at == address);
        let mut some = false;
        for seat in state.seats.iter_mut().filter(waits).take(count as usize) {
            seat.status = Status::Ready { woken: true };
            some = true;
        }
        some
    }

    /// The calling thread, with this number, waits. Returns whether it was woken before the time
    /// was over. A thread that only looks again at its descriptors has not made a step.
    pub(super) fn wait(
        self: &Arc<Self>,
        number: usize,
        group: u32,
        on: On,
        until: Option<Nanos>,
        step: bool,
    ) -> bool {
        if step && let Some(check) = self.on_step.get() {
            check(group);
        }
        let own = {
            let state = &mut *self.state();
            if step {
                state.rouse(group, Some(number));
            }
            let seat = &mut state.seats[number];
            if !seat.dying {
                seat.status = Status::Waiting { on, until };
            }
            seat.baton.clone()
        };
        match self.next(Some(number)) {
            Some(next) if next == number => {}
            Some(next) => {
                let baton = self.state().seats[next].baton.clone();
                baton.pass();
                own.take();
            }
            None => unreachable!("this thread can run at last"),
        }
        if self.is_dying(number) {
            DEAD.set(true);
            resume_unwind(Box::new(Killed));
        }
        let seat = &mut self.state().seats[number];
        let woken = matches!(seat.status, Status::Ready { woken: true });
        seat.status = Status::Ready { woken: false };
        woken
    }

    fn is_dying(&self, number: usize) -> bool {
        self.state().seats[number].dying
    }

    fn leave(self: &Arc<Self>, number: usize) {
        {
            let state = &mut *self.state();
            state.seats[number].status = Status::Ended;
            state.living -= 1;
            let group = state.seats[number].group;
            state.rouse(group, None);
        }
        if let Some(next) = self.next(None) {
            let baton = self.state().seats[next].baton.clone();
            baton.pass();
        }
        self.over.notify_all();
    }

    /// The thread that runs next; `None` when all have ended. Lets time pass and events happen
    /// until there is one.
    fn next(self: &Arc<Self>, mut own: Option<usize>) -> Option<usize> {
        loop {
            let mut stuck = None;
            let event = {
                let state = &mut *self.state();
                if state.living == 0 {
                    return None;
                }
                if let Some(next) = state.choose(self.now()) {
                    state.switches += u64::from(own.take() != Some(next));
                    state.note(self.now() ^ (next as u64) << 48);
                    return Some(next);
                }
                let moments = state.seats.iter().filter_map(|seat| match seat.status {
                    Status::Waiting { until, .. } => until,
                    _ => None,
                });
                let event = state.events.first_key_value().map(|((at, _), _)| *at);
                let next = moments.chain(state.paused.values().copied()).chain(event).min();
                match next {
                    Some(at) if at <= self.end => {
                        self.now.fetch_max(at, Ordering::Relaxed);
                    }
                    _ => {
                        let what =
                            if next.is_some() { "the time is over" } else { "no thread can run any more" };
                        stuck = Some(format!("{what}: {}", state.describe()));
                    }
                }
                state.pass_time(self.now());
                let due = event.is_some_and(|at| at <= self.now());
                if due && stuck.is_none() { state.events.pop_first() } else { None }
            };
            match (event, stuck) {
                (_, Some(stuck)) => self.fail(stuck),
                (Some((_, event)), None) => event(self),
                (None, None) => {}
            }
        }
    }
}

impl State {
    fn note(&mut self, what: u64) {
        self.trace = (self.trace.rotate_left(5) ^ what).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    /// One of the threads that can run.
    fn choose(&mut self, now: Nanos) -> Option<usize> {
        self.pass_time(now);
        let paused = &self.paused;
        let can = |seat: &Seat| {
            matches!(seat.status, Status::Ready { .. }) && (seat.dying || !paused.contains_key(&seat.group))
        };
        let count = self.seats.iter().filter(|seat| can(seat)).count();
        let chosen = if count > 1 { self.rng.below(count as u64) as usize } else { 0 };
        let mut able = self.seats.iter().enumerate().filter(|(_, seat)| can(seat)).map(|(number, _)| number);
        able.nth(chosen)
    }

    /// Waits whose time is over end.
    fn pass_time(&mut self, now: Nanos) {
        self.paused.retain(|_, until| *until > now);
        for seat in &mut self.seats {
            if matches!(seat.status, Status::Waiting { until: Some(until), .. } if until <= now) {
                seat.status = Status::Ready { woken: false };
            }
        }
    }

    fn rouse(&mut self, group: u32, but: Option<usize>) {
        for (number, seat) in self.seats.iter_mut().enumerate() {
            let waits = matches!(seat.status, Status::Waiting { on: On::Descriptors, .. });
            if seat.group == group && waits && Some(number) != but {
                seat.status = Status::Ready { woken: true };
            }
        }
    }

    fn end(&mut self, of: impl Fn(&Seat) -> bool) {
        for seat in self.seats.iter_mut().filter(|seat| of(seat) && seat.status != Status::Ended) {
            seat.dying = true;
            seat.status = Status::Ready { woken: true };
        }
    }

    fn describe(&self) -> String {
        let waits = self.seats.iter().filter(|seat| seat.status != Status::Ended);
        waits.map(|seat| format!("{}: {:?}", seat.name, seat.status)).collect::<Vec<_>>().join(", ")
    }
}
