//! The transports: shared memory, each part of it tried out; UDP, with the interfaces that would be
//! used; libfabric, with the provider.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use openlapi::base::asymmetric_barrier;
use openlapi::config::{Config, Euilib, ShmAttach, UseShm};
use openlapi::job::{network_preferences, udp_interfaces};
use openlapi::transport::fabric;
use openlapi::transport::shm::segment::Segment;
use openlapi::transport::shm::{Group, Own};
use openlapi::transport::udp::interfaces::{Interface, interfaces};
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use super::probe::{self, Outcome};
use super::refusal::explain;
use super::report::{Check, PassedOver, Rank, Transport};

/// All of them. A job of one task needs none.
pub(super) fn all(place: Option<&Rank>, problems: &mut Vec<String>) -> Vec<Transport> {
    let config = openlapi_runtime::environment::config().ok();
    let shared = shared_memory(config.as_ref());
    let one_machine =
        place.is_some_and(|place| place.tasks > 1 && place.tasks_on_this_machine == place.tasks);
    let euilib = config.as_ref().and_then(|config| config.euilib);
    let udp = udp(config.as_ref(), one_machine);
    let fabric = fabric(config.as_ref(), one_machine);
    if let Some(place) = place.filter(|place| place.tasks > 1) {
        let uses_network = place.tasks_on_this_machine < place.tasks
            || config.as_ref().is_some_and(|config| config.use_shm == UseShm::No);
        let network = if euilib == Some(Euilib::Ip) { &udp } else { &fabric };
        let (needed, what) = if uses_network { (network, "the network") } else { (&shared, "shared memory") };
        let why = match needed.usable {
            false => Some(needed.reason.as_str()),
            true if uses_network && !place.exchange => Some("no launcher offers PMI, PMIx or Slurm"),
            true => None,
        };
        let tasks = place.tasks;
        problems.extend(why.map(|why| format!("{what}, which this job of {tasks} tasks needs: {why}")));
    }
    vec![shared, udp, fabric]
}

/// UDP, and the interfaces on which a task would receive here. Without a job on this machine alone,
/// they reach other machines.
fn udp(config: Option<&Config>, one_machine: bool) -> Transport {
    let unset = |_: &str| None;
    let chosen = match config {
        Some(config) => udp_interfaces(config, one_machine),
        // The environment is wrong: what would be used without it.
        None => Config::from_env(&unset).and_then(|config| udp_interfaces(&config, one_machine)),
    };
    let by_fabric = config.is_some_and(|config| config.euilib == Some(Euilib::Us));
    let (usable, reason) = match &chosen {
        Ok(_) if by_fabric => (false, "MP_EUILIB is us".to_owned()),
        Ok(used) => (true, format!("receives on {}", one_of(used))),
        Err(error) => (false, error.detail.clone()),
    };
    let used = chosen.unwrap_or_default();
    let mut checks: Vec<Check> = used.iter().map(interface).collect();
    if checks.is_empty() {
        checks.push(check("interface", true, Err(reason.clone())));
    }
    let all = interfaces().unwrap_or_default().into_iter();
    let passed_over = all.filter(|other| !used.contains(other)).map(|other| PassedOver {
        name: format!("{}, {}", other.name, other.address),
        reason: why_not(&other, &used, one_machine),
    });
    Transport {
        name: "UDP (MP_EUILIB=ip)",
        built: true,
        usable,
        reason,
        checks,
        chosen: if used.is_empty() { None } else { Some(names(&used)) },
        passed_over: passed_over.collect(),
    }
}

/// Which of these interfaces UDP uses: one, and which one a job decides.
fn one_of(interfaces: &[Interface]) -> String {
    let names = names(interfaces);
    if names.contains(',') { format!("one of {names}") } else { names }
}

/// The names of interfaces, each once.
fn names(interfaces: &[Interface]) -> String {
    let mut names: Vec<&str> = interfaces.iter().map(|interface| interface.name.as_str()).collect();
    names.dedup();
    names.join(", ")
}

fn interface(interface: &Interface) -> Check {
    let Interface { name, address, network, longest, .. } = interface;
    let detail = format!("{name}, {address}, network {network}, datagrams of up to {longest} bytes");
    check("interface", true, Ok(detail))
}

fn why_not(other: &Interface, used: &[Interface], one_machine: bool) -> &'static str {
    let same = |used: &Interface| used.address.is_ipv4() == other.address.is_ipv4();
    match used {
        _ if other.is_loopback && !one_machine => "reaches this machine only",
        [_, ..] if !used.iter().any(same) => "addresses of the other family are used",
        _ => "another interface is used",
    }
}

/// libfabric and the provider that a task would use here. Without a job on this machine alone, the
/// provider is one that reaches other machines.
fn fabric(config: Option<&Config>, one_machine: bool) -> Transport {
    let version = fabric::version();
    let preview = version.clone().and_then(|_| {
        let preferences =
            config.map_or_else(Default::default, |config| network_preferences(config, one_machine));
        fabric::preview(&preferences)
    });
    let mut checks = vec![check("libfabric", true, version.map(|(major, minor)| format!("{major}.{minor}")))];
    if checks[0].works {
        let chosen = preview.as_ref().map(|choice| choice.chosen.clone()).map_err(Clone::clone);
        checks.push(check("provider", true, chosen));
    }
    let by_udp = config.is_some_and(|config| config.euilib == Some(Euilib::Ip));
    let reason = match &preview {
        Ok(_) if by_udp => "MP_EUILIB is ip".to_owned(),
        Ok(choice) => format!("provider {}", choice.provider),
        Err(why) => why.clone(),
    };
    let usable = preview.is_ok() && !by_udp;
    let choice = preview.ok();
    Transport {
        name: "libfabric (MP_EUILIB=us)",
        built: true,
        usable,
        reason,
        checks,
        chosen: choice.as_ref().map(|choice| choice.chosen.clone()),
        passed_over: choice
            .into_iter()
            .flat_map(|choice| choice.passed_over)
            .map(|(name, reason)| PassedOver { name, reason })
            .collect(),
    }
}

fn shared_memory(asked: Option<&Config>) -> Transport {
    let checks = vec![
        memory(),
        events(),
        sockets(),
        processes(),
        barriers(),
        copies(asked.map(|config| config.shm_attach)),
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
    Transport {
        name: "shared memory",
        built: true,
        usable: !refused && missing.is_empty(),
        reason,
        checks,
        chosen: None,
        passed_over: Vec::new(),
    }
}

/// The library's own memory files.
fn memory() -> Check {
    let made = Segment::create(2).map(|_| "made, sealed and mapped".to_owned());
    check("memory files with seals", true, made.map_err(|error| error.detail))
}

fn events() -> Check {
    let made = Own::create(0, Group::all(2)).map(|_| "made".to_owned());
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
