//! LAPI_Qenv, LAPI_Senv, LAPI_Msg_string.

mod ltest;

use openlapi_tests::reaches_by_keys;

use ltest::{job, passed, run};

#[test]
fn defaults_of_every_attribute() {
    for procs in [1, 2, 5] {
        run("env/query", procs, "defaults");
    }
}

#[test]
fn environment_variables_set_attributes() {
    // Bulk transfer is asked for, and used where the memory of a peer is reached by keys:
    // on the network.
    let by_keys = i32::from(reaches_by_keys());
    for (name, value, attribute, expected) in [
        ("MP_REXMIT_BUF_SIZE", "4096", 18, 4096),
        ("MP_REXMIT_BUF_SIZE", "8K", 12, 8192),
        ("MP_REXMIT_BUF_CNT", "64", 11, 64),
        ("MP_ACK_THRESH", "31", 20, 31),
        ("MP_BULK_MIN_MSG_SIZE", "1M", 29, 1 << 20),
        ("MP_BULK_MIN_MSG_SIZE", "1K", 29, 4096),
        ("MP_BULK_MIN_MSG_SIZE", "-5", 29, 4096),
        ("MP_USE_BULK_XFER", "yes", 28, by_keys),
    ] {
        let outcome =
            job("env/query", 2, &format!("attribute {attribute} {expected}")).env(name, value).run();
        passed(&outcome, 2);
    }
}

#[test]
fn four_attributes_can_be_set() {
    run("env/query", 1, "settable");
    run("env/query", 2, "settable");
}

#[test]
fn statistics_add_up() {
    for bulk in ["auto", "pipeline", "attach"] {
        passed(&job("env/query", 2, "statistics").env("LAPI_SHM_BULK", bulk).run(), 2);
    }
    run("env/query", 3, "statistics");
}

#[test]
fn statistics_are_printed_to_standard_output() {
    let outcome = job("env/query", 1, "print").run();
    passed(&outcome, 1);
    let begin = outcome.stdout.find("BEGIN").expect("the program has begun");
    let end = outcome.stdout.find("END").expect("the program has ended");
    let printed = &outcome.stdout[begin + "BEGIN".len()..end];
    assert_eq!(printed.lines().filter(|line| line.contains("packets sent")).count(), 3, "{outcome}");
}

#[test]
fn every_code_has_its_message() {
    run("env/messages", 1, "");
}
