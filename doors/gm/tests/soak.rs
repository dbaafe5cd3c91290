//! Processes of a map send to each other all the time, while some of them are killed, or stopped
//! for good, and others take their places: nothing is lost, comes twice, or in another order.
//!
//! `GM_SOAK=60` sets the seconds, and `GM_SEED` the seed, which a failure names: `make soak-gm`.
//! With `GM_HOSTS=2` they are on two hosts, whose link fails at times.

mod program;

use nix::sys::signal::Signal;
use openlapi_tests::{Hosts, Job, Marked, skipped};
use program::compile;
use program::places::{Folder, node};
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

const NODES: usize = 4;
/// So long all run undisturbed before they stop: each connection delivers again.
const CALM: Duration = Duration::from_secs(3);

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// What the processes run on.
struct Soak {
    program: PathBuf,
    places: Places,
    random: Random,
}

/// Where the nodes are.
enum Places {
    /// On one host, which they reach by Unix sockets.
    One(Folder),
    /// On hosts in turn, by ports and with a key.
    Several(Hosts),
}

impl Places {
    /// Those that `GM_HOSTS` asks for.
    fn new() -> Result<Self, String> {
        let hosts = number("GM_HOSTS", 1) as usize;
        if hosts == 1 {
            let folder = Folder::new("soak");
            folder.map(NODES);
            return Ok(Self::One(folder));
        }
        let hosts = Hosts::new(hosts)?;
        let key = hosts.folder().join("key");
        fs::write(&key, "7".repeat(32)).expect("a file");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("a mode");
        let address = |at: usize| hosts.address(at % hosts.count(), 0);
        let line = |at| format!("{at} host{at} tcp:{}:{}\n", address(at), 7400 + at);
        fs::write(hosts.folder().join("map"), (1..=NODES).map(line).collect::<String>()).expect("a file");
        Ok(Self::Several(hosts))
    }

    /// A process in the place of a node.
    fn job(&self, program: &Path, at: usize) -> Job {
        match self {
            Self::One(folder) => node(program, &folder.path().join("map"), at),
            Self::Several(hosts) => {
                let job = node(program, &hosts.folder().join("map"), at);
                let job = job.env("LAPI_GM_KEY", hosts.folder().join("key"));
                hosts.inside(at % hosts.count(), job)
            }
        }
    }
}

impl Soak {
    /// A process in the place of a node, which it has taken.
    fn start(&mut self, at: usize) -> Marked {
        let job = self.places.job(&self.program, at).arg(self.random.below(1 << 30).to_string());
        let mut process = Marked::start(job.deadline(3600));
        assert_eq!(process.running().lines(1), ["runs"]);
        process
    }
}

/// The lines that begin with a word: by its node and priority, what stands behind them.
fn said(text: &str, word: &str) -> HashMap<(usize, usize), Vec<String>> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(word));
    let parsed = lines.map(|line| {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let number = |at: usize| words[at].parse().expect("a number");
        ((number(0), number(1)), words[2..].to_vec())
    });
    parsed.collect()
}

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |value| value.parse().expect("a number"))
}

#[test]
fn nothing_is_lost_while_processes_die_and_return() {
    let (seconds, seed) = (number("GM_SOAK", 6), number("GM_SEED", u64::from(std::process::id())));
    println!("GM_SEED={seed}");
    let program = compile("gm_soak", "cc", &["soak.c"], &["-Wextra", "-Werror", "-O2"]);
    let places = match Places::new() {
        Ok(places) => places,
        Err(why) => return skipped("a soak of gm on several hosts", &why),
    };
    let mut soak = Soak { program, places, random: Random(seed) };
    let mut processes: Vec<Marked> = (1..=NODES).map(|at| soak.start(at)).collect();
    let (mut silent, mut killed, mut stopped) = (Vec::new(), 0, 0);
    let until = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < until {
        sleep(Duration::from_millis(100 + soak.random.below(900)));
        let at = 1 + soak.random.below(NODES as u64) as usize;
        if soak.random.below(4) == 0 {
            // Some say nothing any more, and their peers cannot see whether they are gone.
            match &soak.places {
                // A host without power.
                Places::One(folder) => {
                    processes[at - 1].running().signal(Signal::SIGSTOP);
                    fs::remove_file(folder.path().join(at.to_string())).expect("its place");
                    let next = soak.start(at);
                    silent.push(std::mem::replace(&mut processes[at - 1], next));
                }
                // For longer than it takes to lose them, or not.
                Places::Several(hosts) => {
                    let host = at % hosts.count();
                    hosts.set_link(host, 0, false);
                    sleep(Duration::from_millis(soak.random.below(6000)));
                    hosts.set_link(host, 0, true);
                }
            }
            stopped += 1;
        } else {
            processes[at - 1].running().signal(Signal::SIGKILL);
            assert_eq!(processes[at - 1].over().signal, Some(9), "it was killed, and had not ended before");
            sleep(Duration::from_millis(soak.random.below(300)));
            processes[at - 1] = soak.start(at);
            killed += 1;
        }
        if silent.len() > 2 {
            silent.remove(0);
        }
    }
    silent.clear();
    sleep(CALM);
    for process in &mut processes {
        process.running().signal(Signal::SIGUSR1);
    }
    let lines = 1 + 2 * NODES + 1;
    for process in &mut processes {
        assert_eq!(process.running().lines(lines).last().map(String::as_str), Some("quiet"));
    }
    for process in &mut processes {
        process.running().signal(Signal::SIGTERM);
    }
    let outputs: Vec<String> =
        processes.iter_mut().map(|process| process.over().ok().stdout.clone()).collect();
    let (mut messages, mut puts) = (0, 0);
    for from in 1..=NODES {
        let to = said(&outputs[from - 1], "to ");
        for at in (1..=NODES).filter(|at| *at != from) {
            let came = said(&outputs[at - 1], "from ");
            for priority in 0..2 {
                let (sent, received) = (&to[&(at, priority)], &came[&(from, priority)]);
                assert_eq!(sent[..2], received[..2], "from {from} to {at}, priority {priority}");
                messages += received[2].parse::<u64>().expect("a number");
                puts += received[3].parse::<u64>().expect("a number");
                assert_ne!(sent[2], "0", "from {from} to {at}, priority {priority}: nothing");
            }
        }
    }
    println!(
        "{killed} processes were killed and {stopped} silent in {seconds} s; the last ones have received {messages} messages and {puts} puts"
    );
    assert_ne!(puts, 0, "no put has come");
}
