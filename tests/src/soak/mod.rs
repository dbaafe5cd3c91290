//! The soak's driver: starts the tasks of `tests/c/soak`, kills some of them at moments that follow
//! from a seed, restarts them, and checks that they continue.

mod board;
mod places;

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::compile::compile;
use crate::deadline::Deadline;
use crate::processes::standing;
use crate::stage::build_dir;
use board::{Board, word};
use places::Places;

/// The maximum number of tasks.
pub const MOST_TASKS: usize = 16;
/// After this time without progress of any task they hang; on a crowded machine, later.
const TIMEOUT: Duration = Duration::from_secs(45);

const KINDS: [&str; 22] = [
    "put",
    "get",
    "am",
    "am_lw",
    "putv",
    "getv",
    "amv",
    "dgsp",
    "rmw",
    "rmw64",
    "by LAPI_Xfer",
    "burst",
    "fence",
    "interrupts switched",
    "with the lock",
    "packed",
    "queries",
    "nopoll_wait",
    "get in a completion handler",
    "gfence",
    "exchange",
    "given up",
];
const SUMS: [&str; 8] = ["bytes", "rounds", "purges", "resumes", "reports", "stragglers", "replies", "drops"];
const PHASES: [&str; 10] = [
    "starting",
    "working",
    "in LAPI_Gfence",
    "in LAPI_Address_init",
    "comparing claims",
    "purging",
    "counting",
    "waiting for the others",
    "beginning an era",
    "ending",
];

/// What carries packets between the hosts of a soak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// What LAPI chooses: libfabric.
    Fabric,
    /// LAPI over UDP.
    Udp {
        /// The part of the datagrams that is lost on arrival, in percent.
        loss: u32,
    },
}

/// The parameters of a soak.
#[derive(Clone, Copy, Debug)]
pub struct Soak {
    /// Which one. The same number means the same operations and the same kills, as far as the
    /// machine's timing is the same.
    pub seed: u64,
    /// How long, in seconds.
    pub seconds: u64,
    /// How many tasks, 2 to [`MOST_TASKS`].
    pub tasks: usize,
    /// On how many hosts: 1 is this machine; more are network namespaces of it.
    pub hosts: usize,
    /// How many links, and rails of each task, there are between hosts.
    pub rails: usize,
    /// What carries packets between the hosts.
    pub network: Network,
}

impl Soak {
    /// Runs it. Returns its line of totals.
    ///
    /// # Errors
    /// The failure, and the command that repeats it.
    pub fn run(self) -> Result<String, String> {
        let mut driver =
            Driver::start(self).map_err(|error| format!("the soak cannot be started: {error}"))?;
        let Self { seed, seconds, tasks, hosts, rails, network } = self;
        let over = match network {
            Network::Fabric => String::new(),
            Network::Udp { loss } => format!(" NETWORK=udp LOSS={loss}"),
        };
        driver.go().map_err(|what| {
            let said = driver.board.said();
            // All of it: the end does not always show the beginning of what has gone wrong.
            let kept = build_dir().join("soak").join(&driver.key);
            let _ = fs::create_dir_all(kept.parent().unwrap_or(&kept)).and_then(|()| fs::write(&kept, &said));
            let end: Vec<&str> = said.lines().rev().take(60).collect();
            let end: String = end.iter().rev().map(|line| format!("{line}\n")).collect();
            format!(
                "{what}\n{end}the tasks have written {}\nto repeat: make soak SEED={seed} SECONDS={seconds} TASKS={tasks} HOSTS={hosts} RAILS={rails}{over}",
                kept.display()
            )
        })
    }
}

struct Driver {
    soak: Soak,
    /// Which tasks die, and when.
    random: u64,
    /// Which tasks are stopped briefly. Separate, since their number depends on the
    /// machine's speed.
    pauses: u64,
    /// Names the job.
    key: String,
    board: Board,
    program: PathBuf,
    places: Option<Places>,
    children: Vec<Option<Child>>,
    /// The task that is never killed, so that slow growth is found.
    witness: usize,
    began: Instant,
    /// Of each task: its steps, and when the last one was seen.
    progress: Vec<(u64, Instant)>,
    /// The deadline of the next step of any task.
    next_step: Deadline,
    /// The deadline of the end, when it is time to end.
    end: Option<Deadline>,
    deaths: u64,
}

impl Driver {
    fn start(soak: Soak) -> io::Result<Self> {
        assert!((2..=MOST_TASKS).contains(&soak.tasks), "2 to {MOST_TASKS} tasks");
        let sources = ["soak", "operations", "pieces", "waiting", "handlers", "board"]
            .map(|name| format!("tests/c/soak/{name}.c"));
        let mut sources: Vec<&str> = sources.iter().map(String::as_str).collect();
        sources.push("tests/c/common/ltest.c");
        let program = compile("soak", &sources, &[]);
        // Several soaks of one process may run at the same time.
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let key = format!("soak{}.{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let places = (soak.hosts > 1).then(|| Places::new(&soak)).transpose()?;
        let now = Instant::now();
        let mut driver = Self {
            soak,
            random: soak.seed,
            pauses: !soak.seed,
            key,
            board: Board::new()?,
            program,
            places,
            children: (0..soak.tasks).map(|_| None).collect(),
            witness: soak.seed as usize % soak.tasks,
            began: now,
            progress: vec![(0, now); soak.tasks],
            next_step: Deadline::after(TIMEOUT),
            end: None,
            deaths: 0,
        };
        driver.set(word::SEED, soak.seed);
        driver.set(word::ERA, 1);
        for task in 0..soak.tasks {
            driver.spawn(task)?;
        }
        Ok(driver)
    }

    fn spawn(&mut self, task: usize) -> io::Result<()> {
        let way = ["auto", "auto", "pipeline", "attach"][self.soak.seed as usize % 4];
        let mut command = match &self.places {
            Some(places) => places.command(task, &self.program, &self.key)?,
            None => Command::new(&self.program),
        };
        let own = ["MP_COMMON_TASKS", "LAPI_JOB_FD"];
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if (text.starts_with("MP_") || text.starts_with("LAPI_")) && !own.contains(&&*text) {
                command.env_remove(&name);
            }
        }
        command
            .arg(self.soak.seed.to_string())
            .env("MP_CHILD", task.to_string())
            .env("MP_PROCS", self.soak.tasks.to_string())
            .env("MP_PARTITION", &self.key)
            .env("LAPI_JOB_SECRET", format!("{:032x}", self.soak.seed))
            .env("LAPI_SHM_BULK", way)
            .stdin(Stdio::null());
        self.board.pass_to(&mut command)?;
        // SAFETY: the closure makes one system call.
        unsafe { command.pre_exec(|| set_pdeathsig(Signal::SIGKILL).map_err(io::Error::from)) };
        self.children[task] = Some(command.spawn()?);
        Ok(())
    }

    fn go(&mut self) -> Result<String, String> {
        let end = Duration::from_secs(self.soak.seconds);
        self.wait_for("the beginning of all tasks", |driver| driver.all(word::READY))?;
        self.set(word::GO, 1);
        loop {
            self.wait_for("an era's beginning", |driver| driver.all(word::RUNNING))?;
            if self.began.elapsed() >= end {
                break;
            }
            self.let_run()?;
            self.kill_some("running")?;
            self.wait_for("the survivors' purge", Self::survivors_have_purged)?;
            // Sometimes one more dies while they reconnect.
            while self.below(4) == 0 {
                self.sleep_up_to(20)?;
                self.kill_in_between()?;
            }
            self.wait_for("the return of all tasks", |driver| driver.all(word::READY))?;
            self.set(word::GO, self.get(word::ERA));
        }
        self.set(word::STOP, 1);
        self.wait_for("the end", |driver| driver.children.iter().all(Option::is_none))?;
        Ok(self.totals())
    }

    /// A period in which tasks work, and are sometimes stopped briefly.
    fn let_run(&mut self) -> Result<(), String> {
        let until = Instant::now() + Duration::from_millis(100 + self.below(1500));
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let task = below(&mut self.pauses, 4 * self.soak.tasks as u64) as usize;
            let moment = Duration::from_millis(1 + below(&mut self.pauses, 100)).min(left);
            if task < self.soak.tasks {
                self.signal(task, Signal::SIGSTOP);
            }
            sleep(moment);
            if task < self.soak.tasks {
                self.signal(task, Signal::SIGCONT);
            }
            self.look("nothing")?;
        }
    }

    /// One task dies, sometimes two at once; new processes take their places a moment later.
    fn kill_some(&mut self, when: &str) -> Result<(), String> {
        let count = if self.soak.tasks > 3 && self.below(5) == 0 { 2 } else { 1 };
        let mut victims = Vec::new();
        while victims.len() < count {
            let task = self.below(self.soak.tasks as u64) as usize;
            if task != self.witness && !victims.contains(&task) {
                victims.push(task);
            }
        }
        self.end(&victims, when);
        for task in victims {
            self.sleep_up_to(30)?;
            self.replace(task)?;
        }
        Ok(())
    }

    /// Another process takes the place of a task that was killed.
    fn replace(&mut self, task: usize) -> Result<(), String> {
        let marked = self.places.as_ref().map_or(Ok(()), |places| places.replace(task));
        marked
            .and_then(|()| self.spawn(task))
            .map_err(|error| format!("task {task} cannot be restarted: {error}"))
    }

    /// One more dies, perhaps one that has just been restarted. Its successor starts when all
    /// others have detected the death: otherwise one of them that is new itself could not
    /// distinguish the former process from the next.
    fn kill_in_between(&mut self) -> Result<(), String> {
        let task = self.below(self.soak.tasks as u64) as usize;
        if task == self.witness {
            return Ok(());
        }
        self.end(&[task], "coming together");
        self.wait_for("the others' purge", Self::survivors_have_purged_all)?;
        self.replace(task)
    }

    fn end(&mut self, victims: &[usize], when: &str) {
        for &task in victims {
            self.signal(task, Signal::SIGSTOP);
        }
        for &task in victims {
            // Before it dies: a task to which LAPI reports the death verifies it here.
            self.set(word::LIFE + task, self.get(word::LIFE + task) + 1);
        }
        for &task in victims {
            if let Some(mut child) = self.children[task].take() {
                let _ = child.kill();
                let _ = child.wait();
            }
            // The new process sets this itself.
            self.set(word::PURGED + task, 0);
            self.deaths += 1;
            println!(
                "{:9.3} s: task {task} is killed, {when}, {}",
                self.began.elapsed().as_secs_f64(),
                PHASES.get(self.get(word::PHASE + task) as usize).unwrap_or(&"nowhere"),
            );
        }
        self.set(word::ERA, self.get(word::ERA) + 1);
    }

    /// All tasks are in the present era.
    fn all(&self, what: usize) -> bool {
        let era = self.get(word::ERA);
        (0..self.soak.tasks).all(|task| self.get(what + task) == era)
    }

    /// All except those that were started in this era, which must initialise first.
    fn survivors_have_purged(&self) -> bool {
        let era = self.get(word::ERA);
        (0..self.soak.tasks)
            .all(|task| self.get(word::PURGED + task) == era || self.get(word::PURGED + task) == 0)
    }

    fn survivors_have_purged_all(&self) -> bool {
        let era = self.get(word::ERA);
        (0..self.soak.tasks).all(|task| self.get(word::PURGED + task) == era || self.children[task].is_none())
    }

    fn wait_for(&mut self, what: &str, fact: impl Fn(&Self) -> bool) -> Result<(), String> {
        while !fact(self) {
            self.look(what)?;
            sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn sleep_up_to(&mut self, millis: u64) -> Result<(), String> {
        sleep(Duration::from_micros(self.below(millis * 1000)));
        self.look("nothing")
    }

    /// Fails when a task has failed, or no task has made progress for long.
    fn look(&mut self, what: &str) -> Result<(), String> {
        for (task, place) in self.children.iter_mut().enumerate() {
            let Some(child) = place else { continue };
            match child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) if status.success() => *place = None,
                Ok(Some(status)) => return Err(format!("task {task} has ended with {status}")),
                Err(error) => return Err(format!("task {task} cannot be waited for: {error}")),
            }
        }
        for task in 0..self.soak.tasks {
            let steps = self.get(word::PROGRESS + task);
            if self.progress[task].0 != steps {
                self.progress[task] = (steps, Instant::now());
                self.next_step = Deadline::after(TIMEOUT);
            }
        }
        if self.began.elapsed().as_secs() >= self.soak.seconds {
            self.end.get_or_insert_with(|| Deadline::after(4 * TIMEOUT));
        }
        let late = self.next_step.has_passed() || self.end.as_mut().is_some_and(Deadline::has_passed);
        if late { Err(self.hang(what)) } else { Ok(()) }
    }

    /// For how long no task has made progress.
    fn idle(&self) -> Duration {
        self.progress.iter().map(|(_, last)| last.elapsed()).min().unwrap_or_default()
    }

    fn hang(&self, what: &str) -> String {
        let mut text = format!(
            "no task has made progress for {:?}, after {:?}; the driver waits for {what}\n",
            self.idle(),
            self.began.elapsed(),
        );
        for task in 0..self.soak.tasks {
            let at = |part: usize| self.get(part + task);
            let _ = writeln!(
                text,
                "task {task}: {}, the last step {:.1} s ago; life {}, ready for era {}, got going in era {}, knows of deaths by LAPI up to era {}, \
                 has purged up to era {}; era {}, go {}",
                PHASES.get(at(word::PHASE) as usize).unwrap_or(&"nowhere"),
                self.progress[task].1.elapsed().as_secs_f64(),
                at(word::LIFE),
                at(word::READY),
                at(word::RUNNING),
                at(word::KNOWS),
                at(word::PURGED),
                self.get(word::ERA),
                self.get(word::GO),
            );
        }
        let pids: Vec<i32> = self.children.iter().flatten().map(|child| child.id() as i32).collect();
        text + &standing(&pids)
    }

    fn totals(&self) -> String {
        let named = |names: &[&str], from: usize| -> String {
            names.iter().enumerate().fold(String::new(), |mut text, (i, name)| {
                let _ = write!(text, "{name} {}, ", self.get(from + i));
                text
            })
        };
        let most = |kind: usize| {
            (0..self.soak.tasks).map(|task| self.get(word::MOST + 4 * task + kind)).max().unwrap_or(0)
        };
        let Soak { seed, seconds, tasks, hosts, rails, .. } = self.soak;
        format!(
            "soak: seed {seed}, {seconds} s, {tasks} tasks, {hosts} hosts, {rails} rails, eras {}, deaths {}: {}{}at most in one task: {} \
             descriptors, {} mappings, {} threads, {} KiB",
            self.get(word::ERA),
            self.deaths,
            named(&KINDS, word::DONE),
            named(&SUMS, word::SUMS),
            most(0),
            most(1),
            most(2),
            most(3),
        )
    }

    fn signal(&self, task: usize, signal: Signal) {
        if let Some(child) = &self.children[task] {
            let _ = kill(Pid::from_raw(child.id() as i32), signal);
        }
    }

    fn get(&self, at: usize) -> u64 {
        self.board.get(at)
    }

    fn set(&self, at: usize, value: u64) {
        self.board.set(at, value);
    }

    fn below(&mut self, limit: u64) -> u64 {
        below(&mut self.random, limit)
    }
}

/// A number below `limit` (splitmix64).
fn below(state: &mut u64, limit: u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut x = *state;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (x ^ (x >> 31)) % limit.max(1)
}

impl Drop for Driver {
    fn drop(&mut self) {
        for child in self.children.iter_mut().flatten() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
