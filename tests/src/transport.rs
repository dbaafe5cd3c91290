//! The transport of the jobs under `poe`: shared memory, or what `TEST_TRANSPORT` in the
//! environment names.

use crate::installed::{is_library, skipped};

/// What carries packets between the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// The network alone, on this machine.
    Fabric,
    /// The network between two hosts, and shared memory between the tasks of each.
    Hybrid,
}

/// The provider of libfabric that jobs use: what `TEST_PROVIDER` names, or one that every machine
/// has. `udp`: LAPI's own transport.
fn provider() -> String {
    std::env::var("TEST_PROVIDER").unwrap_or_else(|_| "tcp;ofi_rxm".to_owned())
}

/// What `TEST_LOSS` says: the percentage of datagrams between hosts that are lost.
pub fn loss() -> Option<u32> {
    let loss = std::env::var("TEST_LOSS").ok()?;
    Some(loss.parse().unwrap_or_else(|_| panic!("TEST_LOSS={loss} is no number")))
}

/// What `TEST_TRANSPORT` names; `None` for shared memory.
pub fn wanted() -> Option<Transport> {
    match std::env::var("TEST_TRANSPORT").as_deref() {
        Err(_) | Ok("" | "shm") => None,
        Ok("fabric") => Some(Transport::Fabric),
        Ok("hybrid") => Some(Transport::Hybrid),
        Ok(other) => panic!("TEST_TRANSPORT={other} is not shm, fabric or hybrid"),
    }
}

/// Whether jobs use the network now.
pub fn is_on_network() -> bool {
    wanted().is_some()
}

/// Whether the memory of peers is reached by keys now: over libfabric.
pub fn reaches_by_keys() -> bool {
    is_on_network() && provider() != "udp"
}

/// Whether jobs use the network now; then the test, whose expectation `why` explains, is skipped.
pub fn on_network(what: &str, why: &str) -> bool {
    if is_on_network() {
        skipped(&format!("{what} on the network"), why);
    }
    is_on_network()
}

/// Whether jobs use libfabric's shared memory now, which copies long messages across address spaces
/// itself, and fails when the kernel refuses that after it was allowed; then the test is skipped.
pub fn needs_copies(what: &str) -> bool {
    let used = is_on_network() && provider() == "shm";
    if used {
        skipped(&format!("{what} with shm"), "it has no other way once the kernel has allowed such copies");
    }
    used
}

/// On how many hosts the jobs of two or more tasks run.
pub fn hosts() -> usize {
    if wanted() == Some(Transport::Hybrid) { 2 } else { 1 }
}

/// Whether jobs run on two hosts now; then the test, whose expectation `why` explains, is skipped.
pub fn on_hosts(what: &str, why: &str) -> bool {
    if hosts() > 1 {
        skipped(&format!("{what} on two hosts"), why);
    }
    hosts() > 1
}

/// Whether libfabric is installed.
pub fn has_fabric() -> bool {
    is_library(c"libfabric.so.1")
}

/// The variables that jobs under `poe` get for it, before those of the test.
pub fn variables() -> Vec<(&'static str, String)> {
    let Some(transport) = wanted() else { return Vec::new() };
    let mut variables = vec![match provider().as_str() {
        "udp" => ("MP_EUILIB", "ip".to_owned()),
        _ => ("LAPI_FABRIC_PROVIDER", provider()),
    }];
    if transport == Transport::Fabric {
        variables.push(("LAPI_USE_SHM", "no".to_owned()));
    }
    variables
}

/// With how many of `tasks` tasks under `poe` task 0 shares memory, itself included.
pub fn sharing(tasks: usize) -> usize {
    match wanted() {
        None => tasks,
        Some(Transport::Fabric) => 1,
        Some(Transport::Hybrid) => tasks.div_ceil(2),
    }
}

/// The factor by which deadlines are extended: a round trip by sockets takes a hundred times as
/// long as one by shared memory, and needs the processors that all tasks share.
pub fn time_factor() -> u32 {
    if wanted().is_some() { 4 } else { 1 }
}
