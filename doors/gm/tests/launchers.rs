//! Programs of GM under the launchers of others, where they are installed, and such that also use
//! LAPI.

mod program;

use openlapi_tests::{Cluster, Job, Marked, Node, Outcome, is_installed, skipped, stage};
use program::{compile, compile_by, poe};
use std::net::Ipv4Addr;
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
fn holds(start: &dyn Fn(usize, &Path) -> Job) {
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
    if !is_installed("mpiexec.hydra") {
        return skipped("gm under Hydra", "mpiexec.hydra is not installed");
    }
    holds(&|tasks, program| {
        // It may end by SIGPIPE when its input ends.
        let job = Job::direct("mpiexec.hydra").without_launchers().stdin_stays_open();
        job.arg("-launcher").arg("fork").arg("-n").arg(tasks.to_string()).arg(program)
    });
}

#[test]
fn slurm() {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name = name.split('.').next().unwrap_or("localhost").to_owned();
    let cluster = match Cluster::start(vec![Node { name, address: Ipv4Addr::LOCALHOST, hosts: None }]) {
        Ok(cluster) => cluster,
        Err(why) => return skipped("gm under Slurm", &why),
    };
    for way in ["none", "pmi2", "pmix"] {
        match cluster.knows(way) {
            true => holds(&|tasks, program| cluster.srun(way, tasks, program)),
            false => skipped(&format!("gm under srun --mpi={way}"), "this Slurm does not have it"),
        }
    }
    cluster.stop();
}
