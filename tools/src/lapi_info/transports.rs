//! The transports: shared memory, each part of it tried out, and those that are not built.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use openlapi::base::asymmetric_barrier;
use openlapi::config::{Config, ShmAttach, UseShm, process_env};
use openlapi::transport::shm::Own;
use openlapi::transport::shm::segment::Segment;
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use super::probe::{self, Outcome};
use super::refusal::explain;
use super::report::{Check, Place, Transport};

/// All of them. A job of one task needs none.
pub(super) fn all(place: Option<&Place>, problems: &mut Vec<String>) -> Vec<Transport> {
    let shared = shared_memory();
    let tasks = place.map_or(1, |place| place.tasks);
    if !shared.usable && tasks > 1 {
        problems.push(format!("shared memory, which this job of {tasks} tasks needs: {}", shared.reason));
    }
    vec![
        shared,
        unbuilt("UDP (MP_EUILIB=ip)", "UDP between machines"),
        unbuilt("libfabric (MP_EUILIB=us)", "remote memory access by network adapters"),
    ]
}

fn unbuilt(name: &'static str, what: &str) -> Transport {
    let reason = format!("{what}: not in this version");
    Transport { name, built: false, usable: false, reason, checks: Vec::new() }
}

fn shared_memory() -> Transport {
    let asked = Config::from_env(&process_env).ok();
    let checks = vec![
        memory(),
        events(),
        sockets(),
        processes(),
        barriers(),
        copies(asked.as_ref().map(|config| config.shm_attach)),
    ];
    let missing: Vec<&str> =
        checks.iter().filter(|check| check.needed && !check.works).map(|check| check.name).collect();
    let lacking: Vec<&str> =
        checks.iter().filter(|check| !check.needed && !check.works).map(|check| check.name).collect();
    let refused = asked.is_some_and(|config| config.use_shm == UseShm::No);
    let reason = if refused {
        "LAPI_USE_SHM is no".to_owned()
    } else if !missing.is_empty() {
        // All their names are plurals.
        format!("{} are not available", missing.join(", "))
    } else if lacking.is_empty() {
        "all that it uses works here".to_owned()
    } else {
        format!("works without: {}", lacking.join(", "))
    };
    Transport { name: "shared memory", built: true, usable: !refused && missing.is_empty(), reason, checks }
}

/// The library's own memory files.
fn memory() -> Check {
    let made = Segment::create(2).map(|_| "made, sealed and mapped".to_owned());
    check("memory files with seals", true, made.map_err(|error| error.detail))
}

fn events() -> Check {
    let made = Own::create(0, 2).map(|_| "made".to_owned());
    check("event descriptors", true, made.map_err(|error| error.detail))
}

/// Where a task listens: a socket whose name is in no file system.
fn sockets() -> Check {
    let name = format!("openlapi-info-{}", std::process::id());
    let made = SocketAddr::from_abstract_name(name).and_then(|at| UnixListener::bind_addr(&at));
    check("sockets without a file", true, made.map(|_| "bound".to_owned()).map_err(|error| explain(&error)))
}

fn processes() -> Check {
    let opened = pidfd_open(getpid(), PidfdFlags::empty());
    let result = opened.map(|_| "opened".to_owned()).map_err(|error| {
        format!(
            "{}; the death of a task is noticed only when it stops responding",
            explain(&io::Error::from(error))
        )
    });
    check("process descriptors", false, result)
}

fn barriers() -> Check {
    let result = match asymmetric_barrier::registered() {
        true => Ok("registered (membarrier, global expedited)".to_owned()),
        false => {
            // This is the first time, so the call was made just now.
            let error = io::Error::last_os_error();
            Err(format!("membarrier: {}; every send makes a full barrier", explain(&error)))
        }
    };
    check("asymmetric barriers", false, result)
}

fn copies(asked: Option<ShmAttach>) -> Check {
    let without = "long messages go through buffers";
    let result = match (probe::run(), asked) {
        (Outcome::Works, Some(ShmAttach::No)) => {
            Err(format!("it works, but LAPI_SHM_ATTACH is no; {without}"))
        }
        (Outcome::Works, Some(ShmAttach::Deny)) => {
            Err(format!("it works, but LAPI_SHM_ATTACH is deny; {without}"))
        }
        (Outcome::Works, _) => Ok("8 KiB copied to and from a child process, both ways".to_owned()),
        (Outcome::Refused { copy, error }, _) => {
            Err(format!("{copy} was refused: {}; {without}", explain(&error)))
        }
        (Outcome::Untried(error), _) => Err(format!("it could not be tried: {error}")),
    };
    check("cross-memory attach", false, result)
}

fn check(name: &'static str, needed: bool, result: Result<String, String>) -> Check {
    let works = result.is_ok();
    let detail = result.unwrap_or_else(|why| why);
    Check { name, works, needed, detail }
}
