//! LAPI_Address_init and related calls.

mod ltest;

use ltest::run;
use openlapi_tests::on_network;

#[test]
fn every_value_is_exchanged() {
    for procs in [1, 2, 3, 5, 8, 16] {
        run("address/address", procs, "exchange");
    }
}

#[test]
fn exchanges_between_other_work() {
    for procs in [2, 7] {
        run("address/address", procs, "uneven");
    }
}

#[test]
fn the_table_of_addresses() {
    run("address/address", 1, "table");
    run("address/address", 2, "table");
}

#[test]
fn addresses_mean_the_same_in_every_task() {
    run("address/address", 3, "sameness");
}

/// The order in which threads of the library run for the first time differs from run to run, so
/// there are many. `ADDRESS_RUNS` says how many; a few hundred unless set.
#[test]
fn memory_attached_later_lies_at_the_same_address_in_every_task() {
    if on_network("memory attached later", "libfabric maps memory when tasks connect") {
        return;
    }
    let runs = std::env::var("ADDRESS_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(200);
    let program = ltest::program("address/attached");
    for run in 0..runs {
        let procs = 2 + run % 3;
        ltest::passed(&openlapi_tests::Job::new(&program).procs(procs).run(), procs);
    }
}
