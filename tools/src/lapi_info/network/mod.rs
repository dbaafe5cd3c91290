//! `lapi_info --network`: latency and bandwidth between the hosts of a job, which is started as any
//! other: `poe -procs 4 lapi_info --network -hostfile hosts`.
//!
//! One task of each host takes part, the first one. The hosts take turns: each puts 8 bytes, then
//! messages of 1 MiB, to each of the others, while all other tasks wait, so that no two
//! measurements meet. Task 0 collects the results and prints them.

mod lapi;
mod text;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use openlapi::config::Euilib;
use openlapi::error::Result;
use openlapi::job::host::Host;
use openlapi::job::network_preferences;
use openlapi::transport::fabric;
use serde::Serialize;

use lapi::Lapi;

/// Messages of 8 bytes before those that count: they make contact.
const WARM_UP: u32 = 16;
/// Messages of 8 bytes, and how long they may take.
const ROUND_TRIPS: usize = 1000;
const LATENCY_TIME: Duration = Duration::from_millis(50);
/// The words of a long message: 1 MiB.
const WORDS: usize = (1 << 20) / 8;
/// Long messages that are under way at a time, how often, and how long this may take.
const WINDOW: u32 = 4;
const WINDOWS: usize = 16;
const BANDWIDTH_TIME: Duration = Duration::from_millis(100);
/// The length of a host's name, in words that are exchanged.
const NAME: usize = 4;

/// What the check has found.
#[derive(Debug, Serialize)]
struct Findings {
    tasks: u32,
    /// What this task would use for other hosts.
    provider: Option<String>,
    /// The addresses of all hosts, and what has become of each.
    networks: Vec<String>,
    hosts: Vec<HostTask>,
    pairs: Vec<Pair>,
}

/// A host, and the task that took part for it.
#[derive(Clone, Debug, Serialize)]
struct HostTask {
    name: String,
    task: u32,
}

/// One direction between two hosts.
#[derive(Clone, Debug, Serialize)]
struct Pair {
    from: u32,
    to: u32,
    /// Microseconds from the call of an 8-byte LAPI_Put until it is complete: there and back.
    round_trip: f64,
    /// Millions of bytes in a second, in puts of 1 MiB.
    bandwidth: f64,
    /// What has arrived is what was sent.
    right: bool,
}

/// Runs the check, and prints the findings if this is task 0.
pub(super) fn main(json: bool) -> ExitCode {
    match check() {
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(findings)) => {
            let right = findings.pairs.iter().all(|pair| pair.right);
            let status = ExitCode::from(u8::from(!right || findings.pairs.is_empty()));
            if json {
                super::print_json(&findings, status)
            } else {
                super::print(&text::write(&findings), status)
            }
        }
        Err(error) => {
            super::say(error);
            ExitCode::FAILURE
        }
    }
}

/// The findings in task 0, nothing in the others.
fn check() -> Result<Option<Findings>> {
    let mut lapi = Lapi::open()?;
    let hosts = hosts(&lapi)?;
    let pairs = if hosts.len() > 1 { measure_all(&mut lapi, &hosts)? } else { Vec::new() };
    let (me, tasks, networks) = (lapi.me, lapi.tasks, lapi.networks()?);
    lapi.close()?;
    let provider = || {
        let config = openlapi_runtime::environment::config().ok()?;
        if config.euilib == Some(Euilib::Ip) {
            return Some("udp".to_owned());
        }
        fabric::preview(&network_preferences(&config, true)).ok().map(|choice| choice.provider)
    };
    Ok((me == 0).then(|| Findings { tasks, provider: provider(), networks, hosts, pairs }))
}

/// The hosts of the job, in the order of their first tasks; where all tasks are on one, the tasks
/// that use the network with each other.
fn hosts(lapi: &Lapi) -> Result<Vec<HostTask>> {
    let host = Host::of_this_task();
    let ids = lapi.exchange(host.id as u64)?;
    let mut names = vec![Vec::new(); ids.len()];
    let mut bytes = host.name.into_bytes();
    bytes.resize(NAME * 8, 0);
    for word in bytes.chunks_exact(8) {
        let word = word.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        for (name, word) in names.iter_mut().zip(lapi.exchange(word)?) {
            name.extend(word.to_le_bytes());
        }
    }
    let sharing = lapi.exchange(lapi.first_sharing()?.into())?;
    let groups = if ids.iter().all(|id| *id == ids[0]) { sharing } else { ids };
    let names = names.iter().map(|name: &Vec<u8>| {
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        String::from_utf8_lossy(&name[..end]).into_owned()
    });
    Ok(first_of_each(&groups, names))
}

/// The first task of each group, with its name.
fn first_of_each(groups: &[u64], names: impl Iterator<Item = String>) -> Vec<HostTask> {
    let firsts = groups.iter().zip(names).enumerate();
    firsts
        .filter(|(task, (group, _))| !groups[..*task].contains(group))
        .map(|(task, (_, name))| HostTask { name, task: task as u32 })
        .collect()
}

/// Every pair, in task 0. Each task must call it.
fn measure_all(lapi: &mut Lapi, hosts: &[HostTask]) -> Result<Vec<Pair>> {
    let count = hosts.len();
    let target = vec![0_u64; WORDS].into_boxed_slice();
    let results = vec![0_u64; if lapi.me == 0 { count * count * 3 } else { 0 }].into_boxed_slice();
    let targets = lapi.exchange(target.as_ptr() as u64)?;
    let all_results = lapi.exchange(results.as_ptr() as u64)?[0];
    for (turn, host) in hosts.iter().enumerate() {
        if host.task == lapi.me {
            for (at, other) in hosts.iter().enumerate().filter(|(at, _)| *at != turn) {
                let found = measure(lapi, other.task, targets[other.task as usize])?;
                let place = all_results + ((turn * count + at) * 3 * 8) as u64;
                lapi.put(0, place, &found, 1)?;
            }
        }
        lapi.meet()?;
    }
    // What other tasks have written is read as if it were changing.
    // SAFETY: of the box above.
    let result = |at: usize| unsafe { results.as_ptr().add(at).read_volatile() };
    if lapi.me != 0 {
        return Ok(Vec::new());
    }
    let places = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
    Ok(places
        .filter(|(from, to)| from != to)
        .map(|(from, to)| {
            let at = (from * count + to) * 3;
            Pair {
                from: hosts[from].task,
                to: hosts[to].task,
                round_trip: f64::from_bits(result(at)),
                bandwidth: f64::from_bits(result(at + 1)),
                right: result(at + 2) == 1,
            }
        })
        .collect())
}

/// Round trip, bandwidth, and whether the data was right.
fn measure(lapi: &mut Lapi, task: u32, target: u64) -> Result<[u64; 3]> {
    let data: Vec<u64> =
        (0..WORDS as u64).map(|at| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(lapi.me)).collect();
    for _ in 0..WARM_UP {
        lapi.put(task, target, &data[..1], 1)?;
    }
    let trips = repeat(ROUND_TRIPS, LATENCY_TIME, || lapi.put(task, target, &data[..1], 1))?;
    lapi.put(task, target, &data, 1)?;
    let windows = repeat(WINDOWS, BANDWIDTH_TIME, || lapi.put(task, target, &data, WINDOW))?;
    let mut back = vec![0; WORDS];
    lapi.get(task, target, &mut back)?;
    let bytes = f64::from(WINDOW) * (WORDS * 8) as f64;
    Ok([(trips * 1e6).to_bits(), (bytes / windows / 1e6).to_bits(), u64::from(back == data)])
}

/// The median time of `run` in seconds, over `times` calls or as many as fit in `time`, at least 3.
fn repeat(times: usize, time: Duration, mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    let mut taken = Vec::with_capacity(times);
    while taken.len() < times && (taken.len() < 3 || start.elapsed() < time) {
        let before = Instant::now();
        run()?;
        taken.push(before.elapsed().as_secs_f64());
    }
    taken.sort_unstable_by(f64::total_cmp);
    Ok(taken[taken.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_task_of_each_host_takes_part() {
        let names = ["a", "b", "a", "c"].map(str::to_owned);
        let hosts = first_of_each(&[7, 3, 7, 1], names.into_iter());
        let found: Vec<(&str, u32)> = hosts.iter().map(|host| (host.name.as_str(), host.task)).collect();
        assert_eq!(found, [("a", 0), ("b", 1), ("c", 3)]);
    }
}
