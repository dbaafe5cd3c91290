//! Limits: the library's own, and those of the system that restrict it.

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use openlapi::abi::{LAPI_MAX_ERR_STRING, LAPI_MAX_MSG_SZ};
use openlapi::api::{MAX_UHDR, env};
use openlapi::base::control_group;
use openlapi::base::thread::{LEAST_STACK, MOST_STACK};
use openlapi::config::MAX_TASKS;
use openlapi::engine::context::ADDRESS_TABLE;
use openlapi::transport::shm::segment;

use super::report::Limit;
use crate::poe::limits::DESCRIPTORS;

/// What a program has open besides, roughly.
const OPEN_ANYWAY: u64 = 32;

/// All of them.
pub(super) fn all() -> Vec<Limit> {
    let own = |name, value: u64, unit, meaning: &str| Limit {
        name,
        value: Some(value),
        unit,
        meaning: meaning.to_owned(),
    };
    let sizes: Vec<String> = [2, 8, 64, segment::MAX_TASKS]
        .map(|tasks| format!("{} for {tasks} tasks", mebibytes(segment::bytes(tasks) as u64)))
        .into();
    vec![
        own("tasks of a job", MAX_TASKS.into(), "tasks", "on several machines"),
        own("tasks on one machine", segment::MAX_TASKS.into(), "tasks", "by shared memory"),
        own("instances", env::INSTANCES as u64, "contexts", "that a task may have at a time (MAX_PORTS)"),
        own("message", LAPI_MAX_MSG_SZ, "bytes", "LAPI_MAX_MSG_SZ"),
        own("user header", MAX_UHDR as u64, "bytes", "MAX_UHDR_SZ"),
        own("address table", ADDRESS_TABLE as u64, "entries", "of LAPI_Addr_set (LOC_ADDRTBL_SZ)"),
        own("message text", LAPI_MAX_ERR_STRING as u64, "bytes", "LAPI_MAX_ERR_STRING"),
        own("TIMEOUT, least", *env::TIMEOUTS.start() as u64, "seconds", "LAPI_Senv"),
        own("TIMEOUT, most", *env::TIMEOUTS.end() as u64, "seconds", "LAPI_Senv"),
        own(
            "shared memory of a task",
            segment::bytes(segment::MAX_TASKS) as u64,
            "bytes",
            &format!("reserved, used as far as tasks write to each other: {}", sizes.join(", ")),
        ),
        of_system(Resource::RLIMIT_NOFILE, "open files (ulimit -n)", "descriptors", |soft| {
            let tasks = soft.saturating_sub(OPEN_ANYWAY) / DESCRIPTORS + 1;
            if tasks >= u64::from(segment::MAX_TASKS) {
                "enough for the highest number of tasks on one machine".to_owned()
            } else {
                format!(
                    "an instance takes up to {DESCRIPTORS} for each other task: enough for about {tasks} tasks"
                )
            }
        }),
        of_system(Resource::RLIMIT_MEMLOCK, "locked memory (ulimit -l)", "bytes", |_| {
            "irrelevant to shared memory; cards that register memory (verbs, efa) need it".to_owned()
        }),
        of_system(Resource::RLIMIT_AS, "address space (ulimit -v)", "bytes", |soft| {
            let fits = |tasks: &u32| segment::bytes(*tasks) as u64 * u64::from(*tasks) <= soft;
            match (2..=segment::MAX_TASKS).rev().find(fits) {
                Some(tasks) => format!("a task maps the memory of all: room for {tasks} tasks at most"),
                None => "too little for any shared memory".to_owned(),
            }
        }),
        of_system(Resource::RLIMIT_NPROC, "threads (ulimit -u)", "threads", |soft| {
            format!("of all processes of this user; a task has at least {THREADS}: {} tasks", soft / THREADS)
        }),
        of_system(Resource::RLIMIT_FSIZE, "files (ulimit -f)", "bytes", |soft| {
            let fits = |tasks: &u32| segment::bytes(*tasks) as u64 <= soft;
            let memory = match (2..=segment::MAX_TASKS).rev().find(fits) {
                Some(tasks) => format!("the shared memory of a task of a host with {tasks} tasks at most"),
                None => "too little for any shared memory".to_owned(),
            };
            format!("the longest file: {memory}; profiles, and the output of poe -output_dir")
        }),
        of_system(Resource::RLIMIT_STACK, "stack (ulimit -s)", "bytes", |soft| {
            let stack = soft.clamp(LEAST_STACK as u64, MOST_STACK as u64);
            format!("handlers that run on LAPI's threads have {}", mebibytes(stack))
        }),
        of_group(
            "processes of the control group (pids.max)",
            "threads",
            control_group::processes(),
            |most| format!("processes and threads; a task has at least {THREADS}: {} tasks", most / THREADS),
        ),
        of_group("memory of the control group (memory.max)", "bytes", control_group::memory(), |_| {
            "a process that takes more is ended by signal 9".to_owned()
        }),
    ]
}

/// The lowest limit of the control groups around this process, with what it means.
fn of_group(
    name: &'static str,
    unit: &'static str,
    value: Option<u64>,
    meaning: impl Fn(u64) -> String,
) -> Limit {
    Limit { name, value, unit, meaning: value.map(meaning).unwrap_or_default() }
}

/// How many threads a task has at least: its own, and those that LAPI_Init starts.
const THREADS: u64 = 4;

/// The soft limit, with what it means when there is one.
fn of_system(
    resource: Resource,
    name: &'static str,
    unit: &'static str,
    meaning: impl Fn(u64) -> String,
) -> Limit {
    match getrlimit(resource) {
        Ok((RLIM_INFINITY, _)) => Limit { name, value: None, unit, meaning: String::new() },
        Ok((soft, _)) => Limit { name, value: Some(soft), unit, meaning: meaning(soft) },
        Err(error) => Limit { name, value: None, unit, meaning: format!("unknown: {error}") },
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
