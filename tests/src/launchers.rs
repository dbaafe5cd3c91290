//! Programs under the launchers of others, where they are installed.

use std::net::Ipv4Addr;
use std::path::Path;

use crate::installed::{is_installed, skipped};
use crate::job::Job;
use crate::slurm::{Cluster, Node};

/// Makes the job in which a launcher starts this many tasks of a program.
pub type Start<'a> = dyn Fn(usize, &Path) -> Job + 'a;

/// What must hold, under Hydra. `what` is for the message of a test that is skipped.
pub fn under_hydra(what: &str, holds: impl Fn(&Start<'_>)) {
    if !is_installed("mpiexec.hydra") {
        return skipped(&format!("{what} under Hydra"), "mpiexec.hydra is not installed");
    }
    holds(&|tasks, program| {
        // It may end by SIGPIPE when its input ends.
        let job = Job::direct("mpiexec.hydra").without_launchers().stdin_stays_open();
        job.arg("-launcher").arg("fork").arg("-n").arg(tasks.to_string()).arg(program)
    });
}

/// [`under_hydra`], under Slurm, by each of its ways that tell a task of its job.
pub fn under_slurm(what: &str, holds: impl Fn(&Start<'_>)) {
    let name = nix::unistd::gethostname().expect("a name").to_string_lossy().into_owned();
    let name = name.split('.').next().unwrap_or("localhost").to_owned();
    let cluster = match Cluster::start(vec![Node { name, address: Ipv4Addr::LOCALHOST, hosts: None }]) {
        Ok(cluster) => cluster,
        Err(why) => return skipped(&format!("{what} under Slurm"), &why),
    };
    for way in ["none", "pmi2", "pmix"] {
        match cluster.knows(way) {
            true => holds(&|tasks, program| cluster.srun(way, tasks, program)),
            false => skipped(&format!("{what} under srun --mpi={way}"), "this Slurm does not have it"),
        }
    }
    cluster.stop();
}
