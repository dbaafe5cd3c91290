//! LAPI_Util: the valid requests, and which of them use the handle.

mod ltest;

use ltest::run;

#[test]
fn what_is_no_request_is_refused() {
    for procs in [1, 2] {
        run("util/util", procs, "requests");
    }
}

#[test]
fn handles_are_looked_at_where_the_manual_says() {
    for procs in [1, 2] {
        run("util/util", procs, "handles");
    }
}
