//! Programs of GM under the launchers of others, where they are installed, and such that also use
//! LAPI.

mod program;

use openlapi_tests::{Job, Marked, Outcome, Start, stage, under_hydra, under_slurm};
use program::{compile, compile_by, poe};
use std::path::{Path, PathBuf};

/// The program that has both libraries.
fn both() -> PathBuf {
    compile_by(&stage().join("bin/mpcc_r"), "gm_both", &["both.c"], &["-Wextra", "-Werror"])
}

/// All tasks have said that they are through.
#[track_caller]
fn ended(outcome: &Outcome, what: &str, tasks: usize) {
    let said = outcome.ok().stdout.matches(&format!("OK {what} ")).count();
    assert_eq!(said, tasks, "{what}\n{outcome}");
}

/// What must hold under a launcher, which starts this many tasks of a program.
fn holds(start: &Start<'_>) {
    let nodes = compile("gm_nodes", "cc", &["nodes.c"], &["-Wextra", "-Werror"]);
    let both = both();
    let of_tasks = |program: &Path| start(3, program).env("LAPI_GM_NODES", "task");
    ended(&Marked::start(of_tasks(&nodes)).over(), "nodes", 3);
    // Over a network, whose addresses the launcher carries.
    let job = of_tasks(&nodes).env("LAPI_USE_SHM", "no").env("MP_EUILIB", "ip");
    ended(&Marked::start(job).over(), "nodes", 3);
    for (first, last) in [("gm", "lapi"), ("lapi", "gm")] {
        ended(&Marked::start(of_tasks(&both).arg(first).arg(last)).over(), "both", 3);
    }
}

#[test]
fn a_program_has_gm_and_lapi() {
    let both = both();
    for (first, last) in [("gm", "gm"), ("gm", "lapi"), ("lapi", "gm"), ("lapi", "lapi")] {
        ended(&Job::direct(&both).without_launchers().arg(first).arg(last).run(), "both", 1);
        let job = || poe(&both, 3).arg(first).arg(last).env("LAPI_GM_NODES", "task");
        ended(&job().run(), "both", 3);
        ended(&job().env("LAPI_USE_SHM", "no").env("MP_EUILIB", "ip").run(), "both", 3);
    }
}

#[test]
fn hydra() {
    under_hydra("gm", holds);
}

#[test]
fn slurm() {
    under_slurm("gm", holds);
}
