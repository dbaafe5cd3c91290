//! Slurm itself, where it is installed: a cluster of one machine that exists only for the test.

use std::fs;
use std::net::Ipv4Addr;

use nix::unistd::gethostname;
use openlapi_tests::{Cluster, Marked, Node, compile, is_installed, skipped};

use super::installed::{Installed, env_of_open_mpi, mpicc_of_mpich, mpicc_of_open_mpi};
use super::{Folder, numbered, program};

/// `srun` with one of its ways to pass the tasks their numbers.
pub(super) fn srun(cluster: &Cluster, mpi: &str) -> Installed {
    let command = ["srun", "--quiet", &format!("--mpi={mpi}")].map(str::to_owned).to_vec();
    let mut env = env_of_open_mpi();
    env.push(("SLURM_CONF".to_owned(), cluster.configuration().display().to_string()));
    Installed { command, env, folder: Folder::new() }
}

/// Two jobs under Hydra at the same time in one step, as from the shell of an interactive session,
/// and a program without a launcher in a batch script, which is not a task.
fn launchers_inside(cluster: &Cluster) {
    let folder = Folder::new();
    let apart = program("launchers/apart");
    let (apart, dir) = (apart.display(), folder.text());
    let jobs = format!(
        "mpiexec.hydra -launcher fork -n 2 '{apart}' 20 left '{dir}' right & left=$!\n\
         mpiexec.hydra -launcher fork -n 2 '{apart}' 20 right '{dir}' left & right=$!\n\
         wait $left && wait $right"
    );
    if is_installed("mpiexec.hydra") {
        for tasks in ["1", "2"] {
            // In every task but the first nothing has to be done.
            let script = format!("test $SLURM_PROCID = 0 || exit 0\n{jobs}");
            let job = cluster.client("srun").arg("--quiet").arg("-n").arg(tasks).arg("--mpi=none").arg("sh");
            let outcome = Marked::start(job.arg("-c").arg(script)).over();
            numbered(&outcome, 2, "left");
            numbered(&outcome, 2, "right");
            for name in ["left", "right"] {
                fs::remove_file(folder.0.join(name)).expect("each job has left its name");
            }
        }
    } else {
        skipped("Hydra inside of a Slurm step", "mpiexec.hydra is not installed");
    }
    let job = cluster.client("sbatch").arg("--quiet").arg("--wait").arg("-n").arg("4");
    let output = folder.0.join("output");
    let job = job.arg("-o").arg(&output).arg("--wrap").arg(format!("'{apart}' 2 alone"));
    let mut outcome = Marked::start(job).over();
    outcome.stdout = fs::read_to_string(&output).unwrap_or_default();
    numbered(&outcome, 1, "alone");
}

/// Task 0 has a connection of every task: it raises the soft limit of open files, and names a hard
/// one.
fn a_low_limit_of_open_files(cluster: &Cluster) {
    let limited = |limits: &str| {
        let script = format!(r#"ulimit {limits} && exec "$0" "$@""#);
        let job = cluster.srun("none", 24, "sh").arg("-c").arg(script);
        let job = job.arg(program("launchers/apart")).arg("1").arg("crowd");
        job.env("LAPI_USE_SHM", "no").env("MP_EUILIB", "ip")
    };
    numbered(&Marked::start(limited("-S -n 24")).over(), 24, "crowd");
    let outcome = Marked::start(limited("-n 24").env("LAPI_INIT_TIMEOUT", "10")).over();
    outcome.says("task 0 needs about 216 open files, its limit is 24 (ulimit -Hn)");
}

/// A task ends after LAPI_Init, before another one has met it: what is said of it is true.
fn an_end_after_lapi_init_is_named(cluster: &Cluster) {
    let program = compile("field-first_cause", &["tests/field/first_cause.c"], &[]);
    let ends = |words: &[&str], variables: &[(&str, &str)]| {
        let job = cluster.srun("none", 3, &program).arg("early").env("SLURM_KILL_BAD_EXIT", "0");
        let job = variables.iter().fold(job, |job, (name, value)| job.env(name, value));
        let outcome = Marked::start(job.deadline(120)).over();
        assert!(!outcome.timed_out && outcome.status != Some(0), "{outcome}");
        let is_said = |words: &&str| outcome.stderr.contains(&format!("task 2 {words}"));
        assert!(words.iter().any(is_said), "{words:?}\n{outcome}");
    };
    let died = "has ended without calling LAPI_Term";
    // On one machine tasks meet when they send: it cannot be known that there was one, unless it
    // has accepted a connection before it ended.
    let late = [("LAPI_INIT_TIMEOUT", "10")];
    ends(&["has not called LAPI_Init within 10 s (LAPI_INIT_TIMEOUT), or has died since", died], &late);
    // Over a network all have met in LAPI_Init.
    ends(&[died], &[("LAPI_USE_SHM", "no"), ("MP_EUILIB", "ip")]);
}

/// The node of this machine.
pub(super) fn this_machine() -> Node<'static> {
    let name = gethostname().expect("this machine has a name");
    let name = name.to_string_lossy().split('.').next().unwrap_or("localhost").to_owned();
    Node { name, address: Ipv4Addr::LOCALHOST, hosts: None }
}

#[test]
fn slurm() {
    let cluster = match Cluster::start(vec![this_machine()]) {
        Ok(cluster) => cluster,
        Err(why) => return skipped("jobs under Slurm", &why),
    };
    srun(&cluster, "none").serves();
    a_low_limit_of_open_files(&cluster);
    an_end_after_lapi_init_is_named(&cluster);
    for (way, mpicc) in [("pmi2", mpicc_of_mpich as fn() -> Option<String>), ("pmix", mpicc_of_open_mpi)] {
        if cluster.knows(way) {
            let srun = srun(&cluster, way);
            srun.serves();
            srun.serves_mpi(mpicc());
        } else {
            skipped(&format!("srun --mpi={way}"), "this Slurm does not have it");
        }
    }
    launchers_inside(&cluster);
    cluster.stop();
}
