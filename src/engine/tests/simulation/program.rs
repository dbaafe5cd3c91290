//! What the tasks of a simulation do: a program drawn from the seed, and how it acts upon peers
//! that have left.

use super::super::job::{BULK_MINIMUM, SLEEPY};
use super::model::Model;
use super::network::SimulatedDevice;
use super::op::{Op, What};
use super::operations::{Reports, draw_and_start};
use super::scenario::Scenario;
use crate::abi::*;
use crate::api::{fence, progress, recovery};
use crate::base::clock;
use crate::base::process::Process;
use crate::base::rng::Rng;
use crate::base::thread::ThreadConfig;
use crate::engine::context::request::{Policy, Preference};
use crate::engine::context::settings::{LOOK_AROUND, Options};
use crate::engine::context::{Context, Held};
use crate::engine::progress::{closing, completion_threads, interrupt_thread};
use crate::error::Log;
use crate::job::Hosts;
use crate::job::ended::Ends;
use crate::transport::coalescing::Coalescing;
use crate::transport::udp::{UdpSettings, UdpTransport};
use crate::transport::{AnyTransport, Task};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The state of a program.
struct Program {
    model: Arc<Model>,
    me: Task,
    context: Arc<Context>,
    rng: Rng,
    phase: u32,
}

/// The program of one process of a task, from LAPI_Init to LAPI_Term.
pub fn run(model: &Arc<Model>, me: Task, device: SimulatedDevice) {
    let context = Arc::new(Context::new());
    let life = model.begin(me, &context);
    open(model, me, life, device, &context);
    let rng = Rng::stream(model.scenario.seed, 1000 + u64::from(me) + 100 * u64::from(life));
    let mut program = Program { model: model.clone(), me, context, rng, phase: 0 };
    program.play();
    if model.scenario.processes_end {
        for _ in 0..program.rng.below(8) {
            program.sleep(100_000_000);
            progress::probe(&mut program.enter());
        }
    }
    let begun = clock::now();
    closing::close(&program.context, program.context.handle()).expect("an open context");
    if let Some(world) = model.world.upgrade().filter(|_| model.scenario.processes_end) {
        let time = clock::elapsed(begun);
        model.expect(time < Duration::from_millis(400), || {
            format!("task {me} has taken {time:?} to end LAPI")
        });
        world.note_process(Process { pid: me + 1, started: life.into() }, false);
    }
}

fn open(model: &Arc<Model>, me: Task, life: u32, device: SimulatedDevice, context: &Arc<Context>) {
    let Scenario { tasks, security, datagram, acknowledge_every, longest_interval, .. } = model.scenario;
    let settings = UdpSettings {
        me,
        tasks,
        secret: [7; 16],
        security,
        datagram,
        acknowledge_every,
        longest_interval: Duration::from_nanos(longest_interval),
        opening: 0,
        patience: None,
    };
    let directory = Box::new(model.network.directory());
    let mut end = UdpTransport::new(&settings, Box::new(device), directory).expect("an end");
    end.acts_as(Process { pid: me + 1, started: life.into() });
    if life > 1 {
        end.replaces_another();
    }
    let host_of = |task| task % model.scenario.hosts;
    end.watch_others((0..tasks).map(host_of).collect(), model.network.processes(), Box::default());
    let mut rng = Rng::stream(model.scenario.seed, 2000 + u64::from(me) + 100 * u64::from(life));
    let end = Coalescing::new(end, rng.chance(model.scenario.coalesces), usize::MAX);
    let options = Options {
        me,
        tasks,
        hosts: Hosts::new(me, (0..tasks).map(host_of)),
        copy_limit: model.scenario.copy_limit,
        buffers: usize::MAX,
        rdma_contexts: 4,
        lane_bytes: model.scenario.lane_bytes,
        bulk: Policy {
            by_key: true,
            minimum: BULK_MINIMUM,
            batch: 3,
            preference: Preference::Auto,
            crowded: false,
        },
        wait_policy: SLEEPY,
        level: LAST_LIB,
        replaces: life > 1,
        opening: None,
        give_up: true,
        stall: Duration::ZERO,
        look_around: LOOK_AROUND,
        guarded: false,
        ends: Arc::new(Ends::of_none()),
        log: Log::none(),
        events: Arc::new(Reports),
        rexmit_buffers: 128,
        rexmit_size: 16384,
        bulk_minimum: 0,
        addresses: None,
        networks: Vec::new(),
    };
    context.settings.timeout.store(model.scenario.timeout, Ordering::Relaxed);
    context.settings.interrupts.store(model.scenario.notifier, Ordering::Relaxed);
    context.open(me + 1, options, AnyTransport::Other(Box::new(end))).expect("a context that is not open");
    let threads = model.scenario.completion_threads;
    completion_threads::start(context, threads, ThreadConfig::PLAIN).expect("threads");
    if model.scenario.service {
        interrupt_thread::start(context, ThreadConfig::PLAIN).expect("a thread");
    }
}

impl Program {
    fn play(&mut self) {
        let (phases, actions) = (self.model.scenario.phases, self.model.scenario.actions);
        for phase in 0..phases {
            self.phase = phase;
            for _ in 0..actions {
                self.act();
                self.look();
            }
            if !self.model.scenario.has_partings() {
                self.fence_of_all(phase);
            }
        }
        self.settle();
        if self.model.scenario.has_partings() {
            // All are together again.
            (0..2).for_each(|_| self.fence_of_all_again());
        }
    }

    fn enter(&self) -> Held<'_> {
        self.context.enter().expect("an open context")
    }

    fn sleep(&mut self, most: u64) {
        clock::sleep(Duration::from_nanos(self.rng.below(most) + 1));
    }

    fn act(&mut self) {
        match self.rng.below(20) {
            0..=11 => {
                let to = self.rng.below(self.model.scenario.tasks.into()) as Task;
                let mut held = self.context.enter().expect("an open context");
                draw_and_start(&self.model, &mut self.rng, &mut held, (self.me, to), Some(self.phase));
            }
            12..=13 => self.fence(),
            14..=15 => self.await_one(),
            16 => self.sleep(20_000_000),
            17 if self.rng.chance(0.1) => self.sleep(2_000_000_000),
            _ => {
                let times = self.rng.below(20);
                for _ in 0..times {
                    progress::probe(&mut self.enter());
                    self.sleep(500_000);
                }
            }
        }
    }

    /// Between two calls of the program: peers that have left, and what the library keeps.
    fn look(&mut self) {
        let me = self.me;
        for peer in (0..self.model.scenario.tasks).filter(|peer| *peer != me) {
            let mut held = self.context.enter().expect("an open context");
            let core = held.core();
            let incarnation = core.incarnation(peer);
            let wanted = self.model.of(self.me, |own| {
                let before = own.wishes.len();
                own.wishes.retain(|wish| *wish != peer);
                own.wishes.len() != before
            });
            let parted = core.transport.standing(peer).has_parted && !core.membership.connects_again(peer);
            let kept = core.inbox.early_bytes(peer);
            let view = core.transport.view(peer).connection;
            drop(held);
            self.model.note_incarnation(self.me, peer, incarnation);
            self.model
                .expect(kept <= 8 << 20, || format!("task {} keeps {kept} bytes of task {peer}", self.me));
            let full = view.filter(|view| view.in_flight > view.window);
            self.model.expect(full.is_none(), || format!("task {} to task {peer}: {full:?}", self.me));
            let behind = self.model.of(self.me, |own| {
                own.reports[peer as usize] > 0 || own.partings[peer as usize] != own.handled[peer as usize]
            });
            let reported = self.model.of(self.me, |own| own.reports[peer as usize] > 0);
            if wanted || reported || parted || behind && self.rng.chance(0.1) {
                self.purge(peer);
            }
        }
    }

    /// Gives a peer up and lets it rejoin.
    fn purge(&mut self, peer: Task) {
        self.model.log(|| format!("task {} purges task {peer}", self.me));
        self.model.purges(self.me, peer);
        self.model.of(self.me, |own| own.reports[peer as usize] = 0);
        recovery::purge(&mut self.enter(), peer).expect("a purge");
        self.model.has_purged(self.me, peer);
        if self.rng.chance(0.3) {
            self.sleep(3_000_000_000);
        }
        self.model.log(|| format!("task {} resumes task {peer}", self.me));
        recovery::resume(&mut self.enter(), peer).expect("a task that may rejoin");
    }

    fn own(&self) -> Vec<Arc<Op>> {
        let life = self.model.of(self.me, |own| own.life);
        self.model.open(|op| (op.from, op.from_life) == (self.me, life) && !op.void.load(Ordering::Relaxed))
    }

    /// LAPI_Fence: the data of all operations that this task has started is in place.
    fn fence(&mut self) {
        let own = self.own();
        let own: Vec<_> = own.into_iter().filter(|op| op.phase.is_some()).collect();
        fence::fence(&mut self.enter()).expect("a fence");
        for op in own {
            // The end of a peer ends the fence.
            let void = op.void.load(Ordering::Relaxed) || self.model.may_be_gone(self.me, op.to);
            self.model.expect(void || op.arrived(), || format!("after a fence, {} is under way", op.name()));
        }
    }

    /// Whether the peer has purged this task while it may not have known.
    fn was_warned(&self, peer: Task) -> bool {
        self.model.of(self.me, |own| own.warned[peer as usize])
    }

    /// LAPI_Gfence: the same for all tasks.
    fn fence_of_all(&mut self, phase: u32) {
        self.model.of(self.me, |own| own.entered += 1);
        fence::gfence(&mut self.enter()).expect("a global fence");
        for task in 0..self.model.scenario.tasks {
            let entered = self.model.of(task, |own| own.entered);
            self.model.expect(entered > phase, || {
                format!("task {} was through fence {phase} before task {task} had called", self.me)
            });
        }
        let late = self.model.all(|op| {
            op.phase.is_some_and(|of| of <= phase) && !op.void.load(Ordering::Relaxed) && !op.arrived()
        });
        self.model
            .expect(late.is_empty(), || format!("after a global fence, {} is under way", late[0].name()));
    }

    /// A fence of all tasks when nothing is under way, and tasks have died or parted before.
    fn fence_of_all_again(&mut self) {
        self.model.of(self.me, |own| own.entered += 1);
        let own = self.model.of(self.me, |own| own.entered);
        let outcome = fence::gfence(&mut self.enter());
        // A task that was purged before there was contact may learn of it only now, and end.
        let tasks = 0..self.model.scenario.tasks;
        let surprised =
            tasks.clone().any(|task| self.model.of(task, |own| own.gave_up || own.warned.contains(&true)));
        if let Err(error) = outcome {
            self.model.of(self.me, |own| own.gave_up = true);
            return self.model.expect(surprised, || format!("task {} in a global fence: {error}", self.me));
        }
        for task in tasks {
            let entered = self.model.of(task, |own| own.entered);
            self.model.expect(surprised || entered >= own, || {
                format!("task {} was through fence {own} before task {task} had called", self.me)
            });
        }
    }

    /// Waits for one operation: in the call, where nothing can part the tasks; by looking
    /// again and again.
    fn await_one(&mut self) {
        let own = self.own();
        if own.is_empty() {
            return;
        }
        let op = &own[self.rng.below(own.len() as u64) as usize];
        let waits = op.has[2] && matches!(op.what, What::Put | What::Am { .. });
        if waits && !self.model.scenario.has_partings() && op.await_completion() {
            let counter = op.counters[2].as_ptr().addr();
            // SAFETY: a counter of the model, which is there until the simulation is over.
            let left = unsafe { progress::waitcntr(&mut self.enter(), counter, 1) }.expect("an open context");
            op.note_awaited();
            self.model.expect(left == 0, || format!("{left} is left of the completion of {}", op.name()));
            return;
        }
        for _ in 0..200 {
            if op.arrived() {
                return;
            }
            self.poll(op);
            self.look();
        }
    }

    fn poll(&mut self, op: &Op) {
        // SAFETY: a counter of the model, which is there until the simulation is over.
        unsafe { progress::getcntr(&mut self.enter(), op.counters[1].as_ptr().addr()) };
        self.sleep(2_000_000);
    }

    /// Until everything is over everywhere.
    fn settle(&mut self) {
        let over = |program: &Self| program.own().is_empty();
        let (mut longest, mut before) = (0, (false, 0, false));
        loop {
            progress::probe(&mut self.enter());
            self.look();
            let finished = over(self);
            let calm = self.model.unrest.load(Ordering::Relaxed) == 0;
            self.model.of(self.me, |own| own.finished = finished && own.handled == own.partings && calm);
            let all = (0..self.model.scenario.tasks).all(|task| self.model.of(task, |own| own.finished));
            let left = self.model.open(|op| !op.void.load(Ordering::Relaxed));
            if all && left.is_empty() {
                return;
            }
            let changes = (finished, left.len(), calm);
            longest = if before == changes { (longest * 2).min(500_000_000) } else { 2_000_000 };
            before = changes;
            self.sleep(longest);
            // What has no completion counter is lost without a word where the target has purged
            // this task: a fence reports it.
            if longest == 500_000_000 && self.own().iter().any(|op| self.was_warned(op.to)) {
                self.fence();
            }
        }
    }
}
