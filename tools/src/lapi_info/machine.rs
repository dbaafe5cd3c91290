//! The machine: its processors, which of them this process may use, and its memory.

use std::fs;
use std::path::Path;

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use openlapi::base::machine::processors;

use super::report::{Domain, Machine};

/// What the kernel says.
pub(super) fn look() -> Machine {
    Machine {
        processors: processors(),
        allowed: allowed(),
        memory: memory_of("/proc/meminfo"),
        domains: domains(Path::new("/sys/devices/system/node")),
    }
}

/// The processors that this process may use.
fn allowed() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    (0..CpuSet::count()).filter(|processor| set.is_set(*processor).unwrap_or(false)).collect()
}

/// The memory domains (NUMA nodes), in ascending order; none when the kernel does not say.
fn domains(folder: &Path) -> Vec<Domain> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut domains: Vec<Domain> = entries
        .flatten()
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.strip_prefix("node")?.parse().ok()?;
            let processors = fs::read_to_string(entry.path().join("cpulist")).ok()?.trim().to_owned();
            Some(Domain { number, processors, memory: memory_of(entry.path().join("meminfo")) })
        })
        .collect();
    domains.sort_by_key(|domain| domain.number);
    domains
}

/// All memory, in bytes, from the kernel's list: `[Node 0 ]MemTotal:   1234 kB`.
fn memory_of(file: impl AsRef<Path>) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let (_, rest) = text.split_once("MemTotal:")?;
    let kibibytes: u64 = rest.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}
