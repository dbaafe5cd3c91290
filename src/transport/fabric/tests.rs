//! The endpoints of libfabric, tested against the contract of transports. The tasks are in this process, and reach each other by
//! the loopback interface or, with the provider `shm`, by shared memory.

mod network;

use crate::transport::conformance;
use crate::transport::fabric::Wishes;
use crate::transport::faults::{FaultPlan, Faulty};
use network::{network, network_as, wish};

/// Whether the provider is there; says so loudly when it is not.
fn is_there(provider: &str) -> bool {
    let found = network::open(1, provider);
    if let Err(why) = &found {
        eprintln!("SKIPPED: no tests of libfabric's provider {provider}: {why}");
    }
    found.is_ok()
}

fn conforms_on(provider: &str) {
    if is_there(provider) {
        conformance::suite(|tasks| network(tasks, provider));
    }
}

#[test]
fn conforms_on_tcp() {
    conforms_on("tcp;ofi_rxm");
}

#[test]
fn conforms_where_nothing_wakes_a_sleeper() {
    if is_there("tcp;ofi_rxm") {
        let wishes = Wishes { polls: true, ..wish("tcp;ofi_rxm") };
        conformance::suite(|tasks| network_as(tasks, &wishes));
    }
}

#[test]
fn conforms_on_udp() {
    conforms_on("udp;ofi_rxd");
}

/// Two endpoints of this provider in one process share a mapping that ends with the first of them: a task that does not know
/// that its peer has parted from it, and left, writes into it. Processes have mappings of their own.
#[test]
fn conforms_on_shm() {
    if is_there("shm") {
        conformance::connected(|tasks| network(tasks, "shm"));
    }
}

/// `TEST_FABRIC_PROVIDER=verbs;ofi_rxm` tests another one.
#[test]
fn conforms_on_the_provider_that_is_named() {
    if let Ok(provider) = std::env::var("TEST_FABRIC_PROVIDER") {
        assert!(is_there(&provider), "no provider {provider}");
        conforms_on(&provider);
    }
}

#[test]
fn conforms_under_faults() {
    if !is_there("tcp;ofi_rxm") {
        return;
    }
    let plan = FaultPlan::rough(1);
    println!("{plan}");
    conformance::suite(|tasks| Faulty::join(network(tasks, "tcp;ofi_rxm"), &plan));
}

/// Latency of 8 bytes and bandwidth of long accesses, of this transport and of libfabric alone: `MEASURE_FABRIC=tcp;ofi_rxm`.
#[test]
fn measure() {
    if let Ok(provider) = std::env::var("MEASURE_FABRIC") {
        measure::all(&provider);
    }
}

mod measure;
