//! The limit of open files of this process.

use rustix::process::{Resource, getrlimit, setrlimit};

/// Raises the soft limit if it is below `needed`. A program that uses select(2) is left the limit
/// that it knows as long as that is enough. Returns the limit when it cannot be raised as far.
pub fn allow(needed: u64) -> Option<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|soft| soft >= needed) {
        return None;
    }
    limit.current = limit.maximum;
    // The limit that is found afterwards says whether it has worked.
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current.filter(|soft| *soft < needed)
}
