//! Limits of the system: which one a call has met, how high it is, and sizes that would
//! end the process.

use super::control_group;
use crate::abi::LAPI_ERR_MEMORY_EXHAUSTED;
use crate::error::Error;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

/// The limit that a call has met which failed for this reason, in words; `None`: no limit is known
/// to be the reason.
pub fn met(reason: Errno) -> Option<String> {
    let limit = |resource| getrlimit(resource).current;
    let number = |limit: Option<u64>| limit.map_or_else(String::new, |limit| format!(" {limit}"));
    Some(match reason {
        Errno::FBIG => format!("the file-size limit is{} bytes (ulimit -f)", number(limit(Resource::Fsize))),
        Errno::MFILE => format!("the open-file limit is{} (ulimit -n)", number(limit(Resource::Nofile))),
        Errno::NFILE => "the system's open-file limit is reached (sysctl fs.file-max)".to_owned(),
        Errno::AGAIN => {
            let (user, group) = (number(limit(Resource::Nproc)), number(control_group::processes()));
            // The stack of a thread that finds no room is reported by this, too.
            let space = limit(Resource::As).map(|limit| format!(", or {}", of_address_space(limit)));
            format!("process limit reached (ulimit -u{user}, pids.max{group}){}", space.unwrap_or_default())
        }
        Errno::NOMEM => match limit(Resource::As) {
            Some(limit) => of_address_space(limit),
            None => "not enough memory (memory.max, vm.overcommit_memory)".to_owned(),
        },
        _ => return None,
    })
}

fn of_address_space(limit: u64) -> String {
    format!("the limit of the address space is {limit} bytes (ulimit -v)")
}

/// Bytes of address space that a start takes at least: its tables, rings and buffers, without the
/// stacks of threads. Many of these pieces are small, and each that finds no room would end the
/// process.
const LEAST: u64 = 2 << 20;

/// The address space has room for a start.
///
/// # Errors
/// `LAPI_ERR_MEMORY_EXHAUSTED`, with the limit.
pub fn check_address_space() -> Result<(), Error> {
    scarce_address_space(LEAST).map_or(Ok(()), |limit| Err(Error::new(LAPI_ERR_MEMORY_EXHAUSTED, limit)))
}

/// The limit of the address space in words, when this process may have fewer bytes than `needed`
/// beside what it has.
pub fn scarce_address_space(needed: u64) -> Option<String> {
    let limit = getrlimit(Resource::As).current?;
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    let taken: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    let left = limit.saturating_sub(taken * 1024);
    (left < needed).then(|| format!("{}, {left} of them are left", of_address_space(limit)))
}

/// The reason with the limit that it has met.
pub fn explained(reason: Errno) -> String {
    met(reason).map_or_else(|| reason.to_string(), |limit| format!("{reason}: {limit}"))
}

/// The limit of file sizes, in words, when it is below this many bytes.
pub fn of_files_below(bytes: u64) -> Option<String> {
    getrlimit(Resource::Fsize).current.filter(|limit| bytes > *limit).and_then(|_| met(Errno::FBIG))
}

/// Gives a memory file its size.
///
/// # Errors
/// The system's; `FBIG` when the limit of file sizes is lower: the system would end the
/// process by SIGXFSZ.
pub fn set_size(file: impl AsFd, bytes: u64) -> Result<(), Errno> {
    if of_files_below(bytes).is_some() {
        return Err(Errno::FBIG);
    }
    rustix::fs::ftruncate(file, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_that_is_a_limit_is_named() {
        assert!(explained(Errno::MFILE).contains("(ulimit -n)"), "{}", explained(Errno::MFILE));
        let processes = met(Errno::AGAIN).expect("a limit");
        assert!(processes.starts_with("process limit reached (ulimit -u"), "{processes}");
        assert!(processes.contains(", pids.max"), "{processes}");
        assert_eq!(met(Errno::ACCESS), None);
        assert_eq!(explained(Errno::ACCESS), Errno::ACCESS.to_string());
    }
}
