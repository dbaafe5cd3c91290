//! What a seed stands for: the tasks, their settings, what the network does, and what
//! happens to whom.

use super::network::Faults;
use crate::base::rng::Rng;
use crate::base::simulation::Nanos;
use crate::transport::udp::seal::Security;

const MILLISECOND: Nanos = 1_000_000;
const SECOND: Nanos = 1_000_000_000;

/// What happens at a moment.
#[derive(Clone, Debug)]
pub enum Event {
    /// Some ways between tasks carry nothing for a time.
    Cut { ways: Vec<(u32, u32)>, time: Nanos },
    /// Links take no longer datagrams from now on.
    Narrow { takes: usize },
    /// No thread of the task runs for a time.
    Pause { task: u32, time: Nanos },
    /// The process of the task ends; another one begins later. The launcher says so or not.
    Death { task: u32, until_return: Nanos, reported: bool },
    /// The task gives a peer up that lives, and lets it rejoin.
    Purge { task: u32, peer: u32 },
}

/// Everything that follows from a seed.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub seed: u64,
    pub tasks: u32,
    /// Parts of the program, each of which ends with a global fence, if tasks neither die nor part.
    pub phases: u32,
    /// Actions in each of them.
    pub actions: u32,
    pub faults: Faults,
    pub events: Vec<(Nanos, Event)>,
    pub security: Security,
    pub datagram: usize,
    pub acknowledge_every: u16,
    pub longest_interval: Nanos,
    pub copy_limit: usize,
    pub lane_bytes: usize,
    /// TIMEOUT, in seconds.
    pub timeout: i32,
    /// There is a thread that serves messages while the program computes.
    pub notifier: bool,
    /// There is a thread that serves the network at least.
    pub service: bool,
    pub completion_threads: usize,
    /// The longest message, in bytes.
    pub longest: u64,
    pub hosts: u32,
    /// The process of a task ends with its program. Otherwise it goes on.
    pub processes_end: bool,
    /// How often there is no memory for a message that must wait.
    pub shortage: f64,
    /// How often the process of a task sends small packets together.
    pub coalesces: f64,
}

impl Scenario {
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::stream(seed, 4);
        let tasks = 2 + rng.below(3) as u32 + if rng.chance(0.1) { rng.below(6) as u32 } else { 0 };
        let security = [Security::Auth, Security::Auth, Security::None][rng.below(3) as usize];
        let faults = faults(&mut rng, security);
        let datagram = [512, 1024, 1472, 8972, 65_000][rng.below(5) as usize];
        let mut scenario = Self {
            seed,
            tasks,
            phases: 1 + rng.below(3) as u32,
            actions: 4 + rng.below(24) as u32,
            faults,
            events: Vec::new(),
            security,
            datagram,
            acknowledge_every: [1, 2, 30][rng.below(3) as usize],
            longest_interval: [100, 400, 2000][rng.below(3) as usize] * MILLISECOND,
            copy_limit: [0, 128, 4096][rng.below(3) as usize],
            lane_bytes: [4 << 10, 64 << 10, 1 << 20][rng.below(3) as usize],
            timeout: 900,
            notifier: rng.chance(0.5),
            service: rng.chance(0.2),
            completion_threads: rng.below(3) as usize,
            longest: [200, 5_000, 100_000][rng.below(3) as usize],
            hosts: 1 + rng.below(tasks.into()) as u32,
            processes_end: false,
            shortage: if rng.chance(0.2) { rng.below(100) as f64 / 200.0 } else { 0.0 },
            coalesces: 0.0,
        };
        scenario.draw_events(&mut rng);
        scenario
    }

    /// Tasks of one host that do nothing but meet each other, on a network without faults. Their
    /// processes end when they have ended LAPI.
    pub fn calm(seed: u64, tasks: u32) -> Self {
        let drawn = Self::new(seed);
        let faults = Faults {
            lose: 0.0,
            duplicate: 0.0,
            corrupt: 0.0,
            replay: 0.0,
            late: 0.0,
            delay: 10_000,
            jitter: drawn.faults.jitter / 10,
            full: 0.0,
            queue: 1024,
        };
        let (phases, actions, shortage) = (1, 0, 0.0);
        Self {
            tasks,
            hosts: 1,
            phases,
            actions,
            shortage,
            faults,
            events: Vec::new(),
            processes_end: true,
            timeout: 900,
            ..drawn
        }
    }

    /// Tasks most of which send small packets together, on networks that fail in every
    /// third scenario.
    pub fn coalescing(seed: u64) -> Self {
        let scenario = if seed.is_multiple_of(3) { Self::on_failing_links(seed) } else { Self::new(seed) };
        Self { coalesces: 0.8, ..scenario }
    }

    /// Interfaces and switches fail and return again and again; in some, links take less than the
    /// tasks believe.
    pub fn on_failing_links(seed: u64) -> Self {
        let mut scenario = Self::new(seed);
        let mut rng = Rng::stream(seed, 6);
        let tasks = u64::from(scenario.tasks);
        for _ in 0..rng.below(8) {
            let longest = [20 * MILLISECOND, 500 * MILLISECOND, 5 * SECOND][rng.below(3) as usize];
            let moment = rng.below(longest);
            let (one, other) = (rng.below(tasks) as u32, rng.below(tasks) as u32);
            let ways = match rng.below(4) {
                0 => vec![(one, other)],
                1 => vec![(one, other), (other, one)],
                // The interface of a task.
                2 => (0..scenario.tasks).flat_map(|peer| [(one, peer), (peer, one)]).collect(),
                // A switch.
                _ => (0..scenario.tasks)
                    .flat_map(|from| (0..scenario.tasks).map(move |to| (from, to)))
                    .collect(),
            };
            if rng.chance(0.3) {
                // What every path takes, and what most datagrams have.
                let takes = 1200 + rng.below(scenario.datagram as u64) as usize;
                scenario.events.push((moment, Event::Narrow { takes }));
            }
            scenario.events.push((moment, Event::Cut { ways, time: rng.below(3 * SECOND) }));
        }
        scenario
    }

    fn draw_events(&mut self, rng: &mut Rng) {
        let tasks = u64::from(self.tasks);
        let mut events = Vec::new();
        let moment = |rng: &mut Rng| match rng.below(3) {
            0 => rng.below(20 * MILLISECOND),
            1 => rng.below(500 * MILLISECOND),
            _ => rng.below(10 * SECOND),
        };
        for _ in 0..rng.below(4).saturating_sub(1) {
            let (one, other) = (rng.below(tasks) as u32, rng.below(tasks) as u32);
            let ways = match rng.below(3) {
                0 => vec![(one, other)],
                1 => vec![(one, other), (other, one)],
                // A task that no other reaches.
                _ => (0..self.tasks).flat_map(|peer| [(one, peer), (peer, one)]).collect(),
            };
            events.push((moment(rng), Event::Cut { ways, time: rng.below(5 * SECOND) }));
        }
        for _ in 0..rng.below(4).saturating_sub(1) {
            let time = if rng.chance(0.5) { rng.below(50 * MILLISECOND) } else { rng.below(4 * SECOND) };
            events.push((moment(rng), Event::Pause { task: rng.below(tasks) as u32, time }));
        }
        if rng.chance(0.5) {
            for _ in 0..1 + rng.below(3) {
                let task = rng.below(tasks) as u32;
                let until_return =
                    if rng.chance(0.5) { rng.below(20 * MILLISECOND) } else { rng.below(6 * SECOND) };
                events.push((moment(rng), Event::Death { task, until_return, reported: rng.chance(0.6) }));
            }
        }
        if rng.chance(0.3) {
            for _ in 0..1 + rng.below(3) {
                let task = rng.below(tasks) as u32;
                let peer = (task + 1 + rng.below(tasks - 1) as u32) % self.tasks;
                events.push((moment(rng), Event::Purge { task, peer }));
            }
        }
        if rng.chance(0.15) {
            // Longer than TIMEOUT: the peers give each other up, one of them or both.
            let task = rng.below(tasks) as u32;
            let peer = (task + 1 + rng.below(tasks - 1) as u32) % self.tasks;
            let ways = [vec![(task, peer)], vec![(task, peer), (peer, task)]][rng.below(2) as usize].clone();
            let time = 20 * SECOND + rng.below(20 * SECOND);
            events.push((moment(rng), Event::Cut { ways, time }));
        }
        self.events = events;
        self.timeout = match () {
            () if self.has_long_cut() => 15,
            () if self.has_silence() || rng.chance(0.5) => 60,
            () => 900,
        };
    }

    /// Whether tasks give others up after TIMEOUT: a task dies without a report, or cannot be
    /// reached for long.
    pub fn has_silence(&self) -> bool {
        let untold = |(_, event): &(Nanos, Event)| matches!(event, Event::Death { reported: false, .. });
        self.has_long_cut() || self.events.iter().any(untold)
    }

    fn has_long_cut(&self) -> bool {
        self.events.iter().any(|(_, event)| matches!(event, Event::Cut { time, .. } if *time >= 20 * SECOND))
    }

    /// Whether tasks die or part.
    pub fn has_partings(&self) -> bool {
        let parts = |event: &Event| matches!(event, Event::Death { .. } | Event::Purge { .. });
        self.has_long_cut() || self.events.iter().any(|(_, event)| parts(event))
    }
}

/// Up to 30 % of losses, and everything else.
fn faults(rng: &mut Rng, security: Security) -> Faults {
    let mut rate = |most: f64| if rng.chance(0.4) { 0.0 } else { most * rng.below(1000) as f64 / 1000.0 };
    Faults {
        lose: rate(0.3),
        duplicate: rate(0.2),
        // Without a tag the checksum of IP is all there is.
        corrupt: if security == Security::None { 0.0 } else { rate(0.1) },
        replay: rate(0.02),
        late: rate(0.1),
        delay: 10_000 + rate(5.0) as Nanos * MILLISECOND,
        jitter: rate(3e6) as Nanos,
        full: rate(0.1),
        queue: [16, 64, 1024][rng.below(3) as usize],
    }
}
