//! The limit of open files: what the tasks of a job need, and what `poe` needs for them.

use std::sync::OnceLock;

use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};

use super::error::Error;

/// Descriptors that LAPI takes in a task for each other task that it is connected with: a socket
/// and an event descriptor.
pub(crate) const DESCRIPTORS: rlim_t = 2;
/// Those that `poe` has open for each task while it starts: both ends of output, error and report
/// socket, and of a pipe for standard input.
const OF_POE: rlim_t = 8;
/// What a program has open besides.
const BESIDES: rlim_t = 64;
/// What is left to the program of a task whose limit is raised.
const FOR_THE_PROGRAM: rlim_t = 256;

/// Raises the limit of `poe` as far as it needs for a job of `tasks`, and returns the soft and the
/// hard limit that the tasks get: their own, unless that is too low for LAPI.
pub(super) fn open_files(tasks: usize) -> Result<(rlim_t, rlim_t), Error> {
    /// The soft limit that `poe` was started with: an earlier job may have raised it.
    static FIRST: OnceLock<rlim_t> = OnceLock::new();
    let refused = |errno| Error::system("cannot raise the limit of open files", errno);
    let (current, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(refused)?;
    let soft = *FIRST.get_or_init(|| current);
    let own = OF_POE * tasks as rlim_t + BESIDES;
    let theirs = of_task(tasks);
    if own.max(theirs) > hard {
        return Err(Error::failed(too_low(tasks, own.max(theirs), hard)));
    }
    if own > current {
        setrlimit(Resource::RLIMIT_NOFILE, own, hard).map_err(refused)?;
    }
    Ok((raised(soft, hard, theirs), hard))
}

/// The limits of a task of a job of `tasks` whose `poe` is on another machine.
pub(super) fn open_files_of_task(tasks: usize) -> Result<(rlim_t, rlim_t), Error> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)
        .map_err(|errno| Error::system("cannot read the limit of open files", errno))?;
    let needed = of_task(tasks);
    if needed > hard {
        return Err(Error::failed(too_low(tasks, needed, hard)));
    }
    Ok((raised(soft, hard, needed), hard))
}

/// What LAPI needs in one task.
fn of_task(tasks: usize) -> rlim_t {
    DESCRIPTORS * tasks as rlim_t + BESIDES
}

/// A soft limit that is enough. It stays as it is when LAPI leaves half of it to the program:
/// programs that close every descriptor up to the limit take long when it is high.
fn raised(soft: rlim_t, hard: rlim_t, needed: rlim_t) -> rlim_t {
    if needed <= soft / 2 { soft } else { soft.max(needed + FOR_THE_PROGRAM).min(hard) }
}

fn too_low(tasks: usize, needed: rlim_t, hard: rlim_t) -> String {
    format!(
        "{tasks} tasks need about {} open files; the limit is {} (ulimit -Hn)",
        grouped(needed),
        grouped(hard)
    )
}

/// `1,024`.
fn grouped(number: rlim_t) -> String {
    let digits = number.to_string();
    digits.char_indices().fold(String::new(), |mut text, (at, digit)| {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_only_where_it_is_too_low() {
        assert_eq!(raised(1024, 4096, of_task(4)), 1024);
        assert_eq!(raised(1024, 4096, of_task(500)), 500 * 2 + 64 + 256);
        assert_eq!(raised(1024, 4096, of_task(1024)), 1024 * 2 + 64 + 256);
        assert_eq!(raised(1024, 2200, of_task(1024)), 2200);
        assert_eq!(raised(1024, 4096, 600), 1024, "never lowered");
    }

    #[test]
    fn a_limit_that_is_too_low_is_named() {
        let text = too_low(1024, 8256, 999);
        assert_eq!(text, "1024 tasks need about 8,256 open files; the limit is 999 (ulimit -Hn)");
        assert_eq!([0, 12, 1024, 1_234_567].map(grouped), ["0", "12", "1,024", "1,234,567"]);
    }
}
