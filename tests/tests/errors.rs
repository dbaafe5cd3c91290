//! Wrong parameters.

mod ltest;

use ltest::{job, run};

#[test]
fn every_wrong_parameter_has_its_code() {
    run("errors/params", 1, "checked");
    run("errors/params", 2, "checked");
}

#[test]
fn unchecked_errors_harm_nothing() {
    run("errors/params", 1, "unchecked");
    run("errors/params", 2, "unchecked");
}

#[test]
fn wrong_handles_are_refused() {
    run("errors/params", 2, "handles");
}

#[test]
fn calls_of_later_levels_do_not_pretend() {
    run("errors/params", 2, "later");
}

#[test]
fn a_message_names_call_and_values() {
    for level in ["1", "2"] {
        let outcome = job("errors/params", 2, "message").env("MP_INFOLEVEL", level).run();
        outcome.ok().says("LAPI_Put").says("4321").says("LAPI_ERR_TGT");
    }
}

#[test]
fn a_missing_header_handler_is_reported_where_it_is_missing() {
    run("errors/async", 2, "handler");
    let outcome = job("errors/async", 2, "default").run();
    assert!(
        !outcome.timed_out && outcome.status != Some(0),
        "without an error handler the job ends\n{outcome}"
    );
    outcome.says("409").says("task 1");
}
