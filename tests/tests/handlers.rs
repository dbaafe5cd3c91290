//! Header handlers, completion handlers, send completion handlers, light-weight active messages.

mod ltest;

use ltest::{job, passed, run};

#[test]
fn header_handlers_by_address_and_index_old_and_enhanced() {
    run("handlers/header", 1, "ways");
    run("handlers/header", 2, "ways");
    passed(&job("handlers/header", 2, "ways").env("LAPI_SHM_BULK", "pipeline").run(), 2);
}

#[test]
fn data_of_one_packet_in_place() {
    run("handlers/headers", 1, "packet");
    run("handlers/headers", 2, "packet");
    run("handlers/header", 1, "one-packet");
    run("handlers/header", 2, "one-packet");
}

#[test]
fn unwanted_data_is_dropped() {
    for procs in [1, 2, 3] {
        run("handlers/header", procs, "unwanted");
    }
    passed(&job("handlers/header", 2, "unwanted").env("LAPI_SHM_ATTACH", "deny").run(), 2);
}

#[test]
fn dropped_messages_come_again() {
    for procs in [1, 2, 4] {
        run("handlers/header", procs, "drop");
    }
    passed(&job("handlers/header", 2, "drop").env("LAPI_SHM_BULK", "pipeline").run(), 2);
}

#[test]
fn counters_inside_header_handlers() {
    for procs in [1, 2] {
        run("handlers/header", procs, "counters");
    }
}

#[test]
fn user_headers_of_every_length() {
    for procs in [1, 2] {
        run("handlers/headers", procs, "words");
        run("handlers/headers", procs, "bytes");
    }
}

#[test]
fn light_weight_active_messages() {
    for procs in [1, 2, 3] {
        run("handlers/headers", procs, "light");
        run("handlers/headers", procs, "limit");
    }
}

#[test]
fn threads_of_completion_handlers() {
    for procs in [1, 2] {
        run("handlers/completion", procs, "threads");
        run("handlers/completion", procs, "parallel");
    }
}

#[test]
fn completion_handlers_run_in_order() {
    for procs in [1, 2, 3] {
        run("handlers/completion", procs, "order");
    }
}

#[test]
fn completion_handlers_may_block() {
    for procs in [1, 2, 3] {
        run("handlers/completion", procs, "blocking");
    }
}

#[test]
fn replies_from_handlers() {
    for procs in [1, 2] {
        run("handlers/completion", procs, "replies");
    }
    // With 7, what the program's calls send to all others together is more than what
    // header handlers may.
    for procs in [1, 2, 4, 7] {
        run("handlers/completion", procs, "flood");
    }
}

#[test]
fn read_modify_write_from_handlers() {
    for procs in [1, 2, 4] {
        run("handlers/completion", procs, "rmw");
    }
}

#[test]
fn send_completion_handlers() {
    for procs in [1, 2, 3] {
        for case in ["put", "am", "rmw", "get"] {
            run("handlers/sent", procs, case);
        }
    }
    for case in ["put", "am", "get"] {
        passed(&job("handlers/sent", 2, case).env("LAPI_SHM_BULK", "pipeline").run(), 2);
    }
}

#[test]
fn chains_of_send_completion_handlers() {
    for distance in ["0", "1"] {
        for case in ["put", "am", "rmw", "vector", "get", "thread"] {
            run("handlers/chain", 2, &format!("{case} {distance}"));
        }
    }
    for case in ["put", "am", "rmw"] {
        run("handlers/chain", 1, &format!("{case} 0"));
    }
}

#[test]
fn what_send_completion_handlers_may_call() {
    for case in ["waits", "alone", "ended"] {
        run("handlers/chain", 1, &format!("{case} 0"));
        run("handlers/chain", 2, &format!("{case} 0"));
        run("handlers/chain", 2, &format!("{case} 1"));
    }
}

#[test]
fn handlers_of_two_handles_call_each_other() {
    for case in ["header", "sent", "inline", "calls"] {
        run("handlers/handles", 1, case);
        run("handlers/handles", 2, case);
    }
}
