//! Programs of several PEs against a model, daemons that die, and other users.

mod support;

use nix::sys::signal::Signal;
use openlapi_session::{Listener, Settings};
use openlapi_tests::{Job, Marked, skipped};
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use support::pool::{Kind, PLAIN, Pool};
use support::{compiled, program};

/// How many operations of a model end in a second at least, of all PEs together.
const SLOWEST: u64 = 100;

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |value| value.parse().expect("a number"))
}

/// `make soak-fam` is the long form: 64 PEs and 1,000,000 operations. `FAM_SEED` is the seed.
#[test]
fn several_pes_against_a_model() {
    let pes = number("FAM_TEST_PES", 4) as usize;
    let operations = number("FAM_TEST_OPERATIONS", 1200);
    let seed = number("FAM_SEED", u64::from(std::process::id()));
    println!("FAM_SEED={seed}");
    for daemons in [1, 3] {
        let pool = Pool::new("mixed", Kind { daemons, block: 1 << 14, ..PLAIN });
        let each = operations / pes as u64;
        let job = Job::new(program("mixed")).procs(pes).arg(each.to_string()).arg(seed.to_string());
        let begun = Instant::now();
        let outcome = pool.reached_by(job.deadline(60 + operations / SLOWEST)).run();
        assert_eq!(outcome.ok().stdout.matches("OK ").count(), pes, "{outcome}");
        println!("{pes} PEs, {operations} operations, {daemons} daemons: {} s", begun.elapsed().as_secs());
    }
}

#[test]
fn a_daemon_that_is_killed_loses_what_is_volatile_and_nothing_hangs() {
    for daemons in [1, 3] {
        killed("killed", Kind { daemons, ..PLAIN }, 0..daemons);
    }
}

#[test]
fn one_daemon_of_several_that_is_killed_ends_its_items_and_no_region() {
    killed("part", Kind { daemons: 3, ..PLAIN }, 1..2);
}

#[test]
fn a_daemon_that_is_killed_comes_back_with_what_is_persistent() {
    for daemons in [1, 2] {
        killed("kept", Kind { daemons, persistent: true, ..PLAIN }, 0..daemons);
    }
}

#[test]
fn a_daemon_that_comes_back_takes_no_right_of_a_descriptor() {
    killed("rights", Kind { daemons: 2, persistent: true, ..PLAIN }, 1..2);
}

/// Kills these daemons of a pool between two stages of a case; they begin again before the last.
fn killed(case: &str, kind: Kind, daemons: Range<usize>) {
    let mut pool = Pool::new(case, kind);
    let mut running = Marked::start(pool.job(&program("ends")).arg(case).arg("r"));
    running.running().until_it_says("written\n");
    daemons.clone().for_each(|number| pool.kill(number));
    running.running().signal(Signal::SIGUSR1);
    running.running().until_it_says("lost\n");
    daemons.rev().for_each(|number| pool.start(number));
    running.running().signal(Signal::SIGUSR1);
    let outcome = running.over();
    assert!(outcome.ok().stdout.ends_with(&format!("OK {case}\n")), "{outcome}");
}

#[test]
fn a_daemon_that_comes_back_unnoticed_is_met_again() {
    let mut pool = Pool::new("again", Kind { persistent: true, ..PLAIN });
    let mut running = Marked::start(pool.job(&program("ends")).arg("again").arg("r"));
    for stage in ["written\n", "put\n", "got\n", "added\n"] {
        running.running().until_it_says(stage);
        pool.kill(0);
        pool.start(0);
        running.running().signal(Signal::SIGUSR1);
    }
    let outcome = running.over();
    assert!(outcome.ok().stdout.ends_with("OK again\n"), "{outcome}");
}

#[test]
fn a_daemon_that_does_not_answer_at_the_start_is_an_error() {
    let pool = Pool::of_nobody("deaf", PLAIN);
    let mut listener =
        Listener::unix_of_any_user(&pool.socket_name(0), &Settings::default()).expect("a name");
    let program = pool.job(&program("ends")).arg("deaf").arg("r").start();
    let session = listener.accept(None).expect("a session");
    assert_eq!(program.wait().ok().stdout, "OK deaf\n");
    drop(session);
}

/// ThreadSanitizer looks at the classes alone: it does not see the locks of the library below them.
#[test]
fn threads_read_a_descriptor_while_others_learn_of_it() {
    let archive = Command::new("c++").arg("-print-file-name=libtsan.so").output().expect("a compiler");
    if archive.stdout == b"libtsan.so\n" {
        return skipped("threads with one descriptor", "the compiler has no ThreadSanitizer");
    }
    let sources = ["tests/c/getters.cpp", "shim/fam.cpp", "shim/data.cpp", "shim/descriptors.cpp"];
    let flags = ["-std=c++14", "-g", "-O1", "-fsanitize=thread", "-ldl", "-lm"];
    let sources = [&sources[..], &["shim/exception.cpp"]].concat();
    let program = compiled("c++", "fam_getters", &sources, "libfam.a", &flags);
    let pool = Pool::new("getters", PLAIN);
    // It needs addresses where it expects them.
    let job = pool.job(Path::new("setarch")).arg("-R").arg(program);
    let outcome = job.env("TSAN_OPTIONS", "exitcode=0").run();
    assert_eq!(outcome.ok().stdout, "OK getters\n");
    let races = outcome.stderr.split("==================\n").filter(|report| report.contains("shim/"));
    assert_eq!(races.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn a_child_that_exits_takes_nothing_of_its_parent() {
    let pool = Pool::new("forked", PLAIN);
    assert_eq!(pool.job(&program("ends")).arg("forked").arg("r").run().ok().stdout, "OK forked\n");
}

#[test]
fn destructors_of_static_objects_make_calls() {
    let pool = Pool::new("late", PLAIN);
    assert_eq!(pool.job(&program("ends")).arg("late").arg("r").run().ok().stdout, "OK late\nOK late\n");
}

#[test]
fn descriptors_come_and_go() {
    let pool = Pool::new("descriptors", PLAIN);
    let outcome = pool.job(&program("ends")).arg("descriptors").arg("r").run();
    assert_eq!(outcome.ok().stdout, "OK descriptors\n");
}

#[test]
fn vectors_wait_while_the_daemon_keeps_much() {
    let pool = Pool::new("vectors", PLAIN);
    assert_eq!(pool.job(&program("ends")).arg("vectors").arg("r").run().ok().stdout, "OK vectors\n");
}

#[test]
fn a_thread_waits_while_others_begin_at_other_servers() {
    let pool = Pool::new("threads", Kind { daemons: 3, ..PLAIN });
    assert_eq!(pool.job(&program("ends")).arg("threads").arg("r").run().ok().stdout, "OK threads\n");
}

#[test]
fn another_user_may_do_what_was_granted() {
    if !rustix::process::geteuid().is_root() {
        return skipped("OpenFAM by two users", "only root can be another user");
    }
    let pool = Pool::new("users", PLAIN);
    let mut owner = Marked::start(pool.job(&program("users")).arg("owner"));
    owner.running().until_it_says("made\n");
    let stranger = pool.job(&program("users")).arg("stranger").run();
    assert_eq!(stranger.ok().stdout, "OK stranger\n");
    owner.running().signal(Signal::SIGUSR1);
    let outcome = owner.over();
    assert!(outcome.ok().stdout.ends_with("OK owner\n"), "{outcome}");
}

#[test]
fn who_may_write_also_makes_and_ends_and_changes_no_rights() {
    if !rustix::process::geteuid().is_root() {
        return skipped("OpenFAM by users of two groups", "only root can be another user");
    }
    let pool = Pool::new("lent", Kind { daemons: 2, ..PLAIN });
    let mut lender = Marked::start(pool.job(&program("users")).arg("lender"));
    lender.running().until_it_says("lent\n");
    for who in ["member", "other"] {
        assert_eq!(pool.job(&program("users")).arg(who).run().ok().stdout, format!("OK {who}\n"));
    }
    lender.running().signal(Signal::SIGUSR1);
    let outcome = lender.over();
    assert!(outcome.ok().stdout.ends_with("OK lender\n"), "{outcome}");
}
