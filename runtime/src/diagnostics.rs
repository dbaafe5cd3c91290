//! What a task reports about itself with MP_INFOLEVEL 3 and above: where it runs and how it waits,
//! when it opens a context, and what it has moved and how, when it closes the context.

use crate::console::log;
use openlapi::api::Context;
use openlapi::base::machine::processors;
use openlapi::base::ranges::ranges;
use openlapi::config::{Config, ShmBulk};
use rustix::process::{Resource, getpid, getrlimit};
use rustix::thread::{CpuSet, sched_getaffinity};

/// From this level on.
const LEVEL: i32 = 3;

/// A context is open.
pub fn opened(context: &Context, config: &Config) {
    if context.info_level() < LEVEL {
        return;
    }
    let Ok(mut held) = context.enter() else { return };
    let packet = held.packet_size();
    let (tasks, hosts, policy) = (held.tasks(), held.hosts(), held.wait_policy());
    drop(held);
    let (here, shares) = (hosts.here().len(), hosts.sharing().len() > 1);
    let host = rustix::system::uname();
    log(format_args!(
        "process {} on {} uses processors {} of {}; {here} of {tasks} tasks on this machine",
        getpid().as_raw_nonzero(),
        host.nodename().to_string_lossy(),
        allowed_processors(),
        processors(),
    ));
    log(format_args!(
        "a wait polls {} times, yields the processor {} times, then sleeps; packets hold {packet} bytes{}",
        policy.spin,
        policy.yields,
        match config.shm_bulk {
            _ if !shares => "",
            ShmBulk::Auto =>
                "; in shared memory longer data is copied by the kernel, or in packets where that is faster",
            ShmBulk::Packets => "; in shared memory all data is copied in packets (LAPI_SHM_BULK)",
            ShmBulk::Attach => "; in shared memory longer data is copied by the kernel (LAPI_SHM_BULK)",
        }
    ));
    log(format_args!(
        "limits: {} open files (ulimit -n), {} of locked memory (-l), {} of memory (-v), {} of stack (-s)",
        Limit(Resource::Nofile, ""),
        Limit(Resource::Memlock, " bytes"),
        Limit(Resource::As, " bytes"),
        Limit(Resource::Stack, " bytes"),
    ));
}

/// A context is about to close.
pub fn closing(context: &Context) {
    if context.info_level() < LEVEL {
        return;
    }
    let Ok(mut held) = context.enter() else { return };
    let moved = held.statistics();
    drop(held);
    let paths =
        [("by shared memory", moved.peers), ("over the network", moved.network), ("to itself", moved.local)];
    for (name, path) in paths {
        if path.bytes_sent + path.bytes_received + path.packets_sent + path.packets_received == 0 {
            continue;
        }
        let refused = match path.refused {
            0 => String::new(),
            copies => format!("; the kernel refused {copies} copies"),
        };
        log(format_args!(
            "{name}: {} bytes sent and {} received, in {} and {} packets{refused}",
            path.bytes_sent, path.bytes_received, path.packets_sent, path.packets_received
        ));
    }
}

/// The processors that this thread may use, as a list of ranges.
fn allowed_processors() -> String {
    let Ok(set) = sched_getaffinity(None) else { return "(unknown)".to_owned() };
    let allowed: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&processor| set.is_set(processor)).collect();
    ranges(&allowed)
}

/// The soft limit of a resource, and its unit.
struct Limit(Resource, &'static str);

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match getrlimit(self.0).current {
            Some(limit) => write!(f, "{limit}{}", self.1),
            None => f
                .write_str("any number")
                .and_then(|()| f.write_str(if self.1.is_empty() { "" } else { " of bytes" })),
        }
    }
}
