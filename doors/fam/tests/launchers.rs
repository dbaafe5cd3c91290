//! Programs of several PEs under the launchers of others, where they are installed, and what a PE
//! has of its job.

mod support;

use openlapi_tests::{Job, Marked, Start, under_hydra, under_slurm};
use support::pool::{PLAIN, Pool};
use support::program;

/// What must hold under a launcher, which starts this many PEs of a program: their numbers, their
/// count, barriers between them and the data of all.
fn holds(start: &Start<'_>) {
    let pool = Pool::new("launched", PLAIN);
    let mixed = program("mixed");
    let job = || pool.reached_by(start(3, &mixed).arg("200").arg("7"));
    // Barriers over shared memory, and over a network whose addresses the launcher carries.
    for job in [job(), job().env("LAPI_USE_SHM", "no").env("MP_EUILIB", "ip")] {
        let outcome = Marked::start(job).over();
        let said = &outcome.ok().stdout;
        assert!((0..3).all(|pe| said.contains(&format!("OK {pe} of 3\n"))), "{outcome}");
    }
}

#[test]
fn hydra() {
    under_hydra("OpenFAM", holds);
}

#[test]
fn slurm() {
    under_slurm("OpenFAM", holds);
}

/// With runtime NONE each process is PE 0 of 1, whatever has started it.
#[test]
fn none_inside_of_a_job() {
    let pool = Pool::new("none", PLAIN);
    let outcome = pool.reached_by(Job::new(program("launched")).procs(3).arg("alone")).run();
    assert_eq!(outcome.ok().stdout, "OK alone\n".repeat(3));
}

/// Of PEs that make no call. A shell stands between each and poe, which would end them itself once
/// one of its tasks has failed.
#[test]
fn fam_abort_ends_all_pes_with_its_status() {
    let pool = Pool::new("abort", PLAIN);
    let launched = program("launched");
    for network in [false, true] {
        let job = Job::new("sh").procs(3).arg("-c").arg("\"$0\" abort 7; echo \"ended by $?\"");
        let mut job = pool.reached_by(job.arg(&launched));
        if network {
            job = job.env("LAPI_USE_SHM", "no").env("MP_EUILIB", "ip");
        }
        let outcome = Marked::start(job).over();
        assert_eq!(outcome.ok().stdout, "ended by 7\n".repeat(3), "{outcome}");
    }
    let job = pool.reached_by(Job::new(&launched).procs(3).arg("abort").arg("7"));
    let outcome = Marked::start(job).over();
    assert_eq!(outcome.status, Some(7), "{outcome}");
}
