//! The transport of the jobs under `poe`: shared memory, or what `TEST_TRANSPORT` in the environment names.

use crate::installed::skipped;

/// What carries packets between the tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// The network alone, on this machine.
    Fabric,
    /// The network between two hosts, and shared memory between the tasks of each.
    Hybrid,
}

/// The provider that the tests use: every machine has it.
pub const PROVIDER: &str = "tcp;ofi_rxm";

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

/// Whether jobs use the network now; then the test, whose expectation `why` explains, is skipped.
pub fn on_network(what: &str, why: &str) -> bool {
    if is_on_network() {
        skipped(&format!("{what} on the network"), why);
    }
    is_on_network()
}

/// Whether jobs run on two hosts now; then the test, whose expectation `why` explains, is skipped.
pub fn on_hosts(what: &str, why: &str) -> bool {
    let are = wanted() == Some(Transport::Hybrid);
    if are {
        skipped(&format!("{what} on two hosts"), why);
    }
    are
}

/// Whether libfabric is installed.
pub fn has_fabric() -> bool {
    // SAFETY: it is loaded and unloaded; its constructors need nothing of this process.
    unsafe {
        let library = libc::dlopen(c"libfabric.so.1".as_ptr(), libc::RTLD_LAZY | libc::RTLD_LOCAL);
        !library.is_null() && libc::dlclose(library) == 0
    }
}

/// The variables that jobs under `poe` get for it, before those of the test.
pub fn variables() -> Vec<(&'static str, &'static str)> {
    match wanted() {
        None => Vec::new(),
        Some(Transport::Fabric) => vec![("LAPI_USE_SHM", "no"), ("LAPI_FABRIC_PROVIDER", PROVIDER)],
        Some(Transport::Hybrid) => vec![("LAPI_FABRIC_PROVIDER", PROVIDER)],
    }
}

/// The factor by which deadlines are extended: a round trip by sockets takes a hundred times as long as one by shared memory, and
/// needs the processors that all tasks share.
pub fn patience() -> u32 {
    if wanted().is_some() { 4 } else { 1 }
}
