//! Jobs in which a task dies or becomes silent and the others continue.

mod ltest;

use ltest::{job, passed, run};
use openlapi_tests::{Job, Outcome, on_hosts};

/// A job in which task `victim` dies, and all others must print PASS.
fn survive(case: &str, procs: usize, victim: usize, delay: u32, bulk: &str) {
    let outcome = dying(case, procs, victim, delay).env("LAPI_SHM_BULK", bulk).run();
    survived(&outcome, procs, victim);
}

fn dying(case: &str, procs: usize, victim: usize, delay: u32) -> Job {
    job("failure/survive", procs, &format!("{case} {victim} {delay}"))
        .poe_arg("-on_death")
        .poe_arg("continue")
        .poe_arg("-infolevel")
        .poe_arg("0")
}

#[track_caller]
fn survived(outcome: &Outcome, procs: usize, victim: usize) {
    outcome.exited(137).says(&format!("task {victim} (")).says("was ended by signal 9 (SIGKILL)");
    all_but_one_pass(outcome, procs);
}

#[track_caller]
fn all_but_one_pass(outcome: &Outcome, procs: usize) {
    let said = outcome.stdout.lines().filter(|line| line.contains("PASS")).count();
    assert_eq!(said, procs - 1, "every survivor prints one PASS\n{outcome}");
}

#[test]
fn a_death_while_idle() {
    survive("idle", 2, 1, 0, "auto");
    survive("idle", 4, 0, 20_000, "auto");
    // Nothing of these jobs affects the next one.
    run("data/sizes", 4, "put 4096");
}

#[test]
fn a_death_in_large_transfers() {
    for (at, bulk) in ["pipeline", "attach", "auto"].into_iter().enumerate() {
        for (case, delay) in [("origin", 3_000), ("origin", 17_100), ("target", 5_300), ("target", 20_000)] {
            survive(case, 2 + at, at, delay, bulk);
        }
    }
}

#[test]
fn a_death_while_others_wait_for_a_counter() {
    survive("counter", 2, 1, 20_000, "auto");
    survive("counter", 3, 0, 400_000, "auto");
}

#[test]
fn a_death_with_messages_that_find_no_room() {
    survive("deaf", 3, 1, 30_000, "auto");
    survive("flush", 3, 2, 30_000, "auto");
}

#[test]
fn a_death_in_a_handler() {
    for case in ["header", "completion"] {
        survive(case, 2, 0, 0, "auto");
        survive(case, 4, 3, 0, "auto");
    }
}

#[test]
fn a_death_in_collective_calls() {
    for (at, delay) in [0, 1_300, 4_100, 9_700, 23_000].into_iter().enumerate() {
        survive("gfence", 2 + at % 4, at % 2, delay, "auto");
        survive("exchange", 5 - at % 4, at % 2, delay, "auto");
    }
}

#[test]
fn a_death_around_lapi_term() {
    for delay in [0, 2_000, 10_000, 20_000, 40_000] {
        survive("term", 3, 1, delay, "auto");
    }
}

#[test]
fn fences_that_a_death_ends_return_after_the_error_handler() {
    task_0_survives("failure/handled", 7);
}

#[test]
fn an_error_handler_that_waits_for_a_thread_in_a_fence_does_not_hold_it() {
    task_0_survives("failure/mutex", 2);
}

/// A job in which task 0 kills the others.
#[track_caller]
fn task_0_survives(program: &str, procs: usize) {
    if on_hosts("deaths by a signal of task 0", "it reaches no process of another host") {
        return;
    }
    let arguments = ["-on_death", "continue", "-infolevel", "0"];
    let job = arguments.into_iter().fold(job(program, procs, ""), Job::poe_arg);
    let outcome = job.deadline(60).run();
    let said = outcome.exited(137).stdout.lines().filter(|line| line.contains("PASS")).count();
    assert_eq!(said, 1, "the survivor prints PASS\n{outcome}");
}

#[test]
fn a_task_that_exits_without_lapi_term_harms_no_other_task() {
    for (procs, victim) in [(3, 0), (4, 2)] {
        let outcome = dying("exit", procs, victim, 0).run();
        all_but_one_pass(outcome.ok(), procs);
    }
}

/// LAPI_Init waits for no task; what needs the one that has died fails, whether others ever
/// connected with it or not.
#[test]
fn a_death_around_lapi_init() {
    for (procs, victim, delay) in [(3, 0, 300_000), (4, 1, 300_000), (4, 3, 1)] {
        survive("init", procs, victim, delay, "auto");
    }
}

/// Of three tasks that do not reply, one is stopped, one does not poll, and one is only slow.
#[test]
fn a_silent_task_is_given_up_and_a_slow_one_is_not() {
    let outcome = job("failure/silence", 4, "roles").poe_arg("-infolevel").poe_arg("0").run();
    println!("{}", outcome.stdout);
    let said = outcome.ok().stdout.lines().filter(|line| line.contains("PASS")).count();
    assert_eq!(said, 2, "tasks 0 and 2 pass\n{outcome}");
}

/// Barriers need no packets: a task that makes them is alive, and takes what asks it that.
#[test]
fn a_task_that_only_fences_is_not_given_up() {
    let outcome = job("failure/silence", 2, "fences").run();
    let passed = outcome.ok().stdout.lines().filter(|line| line.contains("PASS")).count();
    assert_eq!(passed, 2, "{outcome}");
}

#[test]
fn without_an_error_handler_the_task_says_what_it_waited_for() {
    let outcome = job("failure/silence", 2, "computes").run();
    outcome
        .exited(134)
        .says("LAPI_ERR_TIMEOUT (413)")
        .says("task 1 has not replied for")
        .says("TIMEOUT is 10");
    outcome
        .says("1 unfinished read-modify-write for it; giving up")
        .says("no error handler is registered: this task ends");
}

#[test]
fn a_program_that_polls_seldom_gives_up_too() {
    let outcome = job("failure/silence", 2, "probes").poe_arg("-on_death").poe_arg("continue").run();
    all_but_one_pass(outcome.exited(137), 2);
}

#[test]
fn mp_debug_notimeout_waits() {
    passed(&job("failure/silence", 2, "patient").env("MP_DEBUG_NOTIMEOUT", "yes").run(), 2);
}

/// The program prints how long the report takes; only the deadline of the job is asserted.
#[test]
fn a_death_is_reported_to_a_program_that_computes() {
    let outcome = job("failure/silence", 2, "killed").poe_arg("-on_death").poe_arg("continue").run();
    all_but_one_pass(outcome.exited(137), 2);
    let at =
        |word: &str| outcome.stdout.lines().find_map(|line| line.strip_prefix(word)?.parse::<i64>().ok());
    println!(
        "reported {:?} ms later",
        at("REPORTED ").zip(at("DIES ")).map(|(reported, dies)| reported - dies)
    );
}
