//! LAPI_Address_init and its kin.

mod ltest;

use ltest::run;

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
