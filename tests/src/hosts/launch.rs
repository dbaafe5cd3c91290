//! Jobs on several hosts, under each launcher.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use super::Hosts;
use crate::installed::{is_installed, skipped};
use crate::job::Job;

/// Which launcher starts a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// MPICH's mpiexec.hydra.
    Hydra,
    /// Open MPI's mpirun.
    OpenMpi,
}

impl Launcher {
    /// The command; `None` when it is not installed.
    pub fn command(self) -> Option<&'static str> {
        let names: &[&str] = match self {
            Self::Hydra => &["mpiexec.hydra"],
            Self::OpenMpi => &["mpirun.openmpi", "mpirun"],
        };
        names.iter().copied().find(|name| is_installed(name))
    }

    /// As poe's flag -launcher has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hydra => "hydra",
            Self::OpenMpi => "mpirun",
        }
    }

    /// The launchers that are installed. For the others the test `what` is skipped.
    pub fn installed(what: &str) -> impl Iterator<Item = Self> {
        [Self::Hydra, Self::OpenMpi].into_iter().filter(move |launcher| {
            let is_installed = launcher.command().is_some();
            if is_installed {
                eprintln!("{what}: {}", launcher.name());
            } else {
                skipped(&format!("{what} by {}", launcher.name()), "it is not installed");
            }
            is_installed
        })
    }
}

impl Hosts {
    /// A job of `tasks` tasks under a launcher that is installed. Each host has a block of them;
    /// the launcher itself runs on the first host.
    pub fn launch(&self, launcher: Launcher, tasks: usize, program: impl AsRef<Path>) -> Job {
        self.launch_with(launcher, &[], tasks, program)
    }

    /// Starts a job as [`Self::launch`] does, with flags of the launcher.
    pub fn launch_with(
        &self,
        launcher: Launcher,
        flags: &[&str],
        tasks: usize,
        program: impl AsRef<Path>,
    ) -> Job {
        let command = launcher.command().expect("the test looks whether the launcher is installed");
        let job = flags.iter().fold(Job::direct(command).without_launchers(), |job, flag| job.arg(flag));
        let blocks = self.blocks(tasks);
        let hosts: Vec<String> =
            blocks.iter().map(|(host, count)| format!("{}:{count}", self.name(*host))).collect();
        let hosts = hosts.join(",");
        let job = match launcher {
            Launcher::Hydra => {
                let job = job.arg("-launcher").arg("ssh").arg("-launcher-exec").arg(self.ssh());
                // It ends by SIGPIPE if its input ends after the tasks, and before it has
                // noticed their end.
                job.stdin_stays_open().arg("-hosts").arg(hosts)
            }
            Launcher::OpenMpi => {
                let job = self.for_open_mpi(job).arg("--bind-to").arg("none");
                job.arg("--map-by").arg("slot").arg("--host").arg(hosts)
            }
        };
        self.inside(0, job.arg("-n").arg(tasks.to_string()).arg(program.as_ref()))
    }

    /// The variables that Open MPI needs here: the hosts are reached by a script, and the
    /// user may be root.
    pub fn for_open_mpi(&self, job: Job) -> Job {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Two of Open MPI 4.1's mpirun that start at once fail in a folder that both create.
        let folder = self.folder().join(format!("tmp{}", NEXT.fetch_add(1, Ordering::Relaxed)));
        fs::create_dir(&folder).expect("a folder can be made");
        let job = job.env("OMPI_MCA_orte_tmpdir_base", folder).env("OMPI_MCA_plm_rsh_agent", self.ssh());
        ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_mpi_yield_when_idle"]
            .iter()
            .fold(job, |job, name| job.env(name, "1"))
    }

    /// A job under the staged `poe`, with a line of the host file for each task, in blocks. With
    /// Hydra and Open MPI it reaches the hosts by [`Hosts::ssh`].
    pub fn poe(&self, tasks: usize, program: impl AsRef<Path>) -> Job {
        self.place(tasks, Job::new(program).procs(tasks))
    }

    /// The job of `tasks` tasks under `poe`, which has no host file yet, on these hosts: each has a
    /// block of tasks.
    pub fn place(&self, tasks: usize, job: Job) -> Job {
        let mut text = String::new();
        for (host, count) in self.blocks(tasks) {
            for _ in 0..count {
                writeln!(text, "{}", self.name(host)).expect("a string takes everything");
            }
        }
        self.poe_on(&self.host_file(&text), job)
    }

    /// The job under `poe` with this host file.
    pub fn poe_on(&self, hosts: &Path, job: Job) -> Job {
        let job = self.for_open_mpi(job.without_launchers()).env("MP_HOSTFILE", hosts);
        let job = job.env("HYDRA_LAUNCHER", "ssh").env("HYDRA_LAUNCHER_EXEC", self.ssh());
        self.inside(0, job)
    }

    /// A file in the folder of these hosts, with this in it.
    pub fn host_file(&self, text: &str) -> std::path::PathBuf {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let path = self.folder().join(format!("hosts{}", NEXT.fetch_add(1, Ordering::Relaxed)));
        fs::write(&path, text).expect("a file can be written");
        path
    }

    /// How many of `tasks` tasks each host has: consecutive ones.
    fn blocks(&self, tasks: usize) -> Vec<(usize, usize)> {
        let count = self.count();
        let share = |host| tasks / count + usize::from(host < tasks % count);
        (0..count).map(|host| (host, share(host))).filter(|(_, share)| *share > 0).collect()
    }
}
