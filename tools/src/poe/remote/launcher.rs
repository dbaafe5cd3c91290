//! The launchers that can start tasks on other machines, and how each of them is given the
//! host of each task.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::NamedTempFile;

use super::super::error::Error;
use super::super::settings::Settings;

/// A launcher that is installed.
pub(super) struct Launcher {
    kind: LauncherKind,
    program: PathBuf,
    /// The hosts, one a line, for those that want a file. It is removed at the end.
    file: NamedTempFile,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LauncherKind {
    Srun,
    Hydra,
    OpenMpi,
}

use LauncherKind::{Hydra, OpenMpi, Srun};

impl LauncherKind {
    /// As MP_LAUNCHER has it, and its commands.
    fn names(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Srun => ("srun", &["srun"]),
            Hydra => ("hydra", &["mpiexec.hydra"]),
            OpenMpi => ("mpirun", &["mpirun.openmpi", "mpirun"]),
        }
    }

    fn find(self) -> Option<PathBuf> {
        self.names().1.iter().find_map(|name| on_path(name))
    }
}

impl Launcher {
    /// The one that is asked for (MP_LAUNCHER), or else srun inside of a Slurm allocation, Hydra,
    /// or Open MPI's mpirun.
    pub(super) fn choose(settings: &Settings) -> Result<Self, Error> {
        let asked = settings.text("MP_LAUNCHER")?;
        let chosen = match asked {
            Some(word) => [Srun, Hydra, OpenMpi]
                .into_iter()
                .find(|kind| kind.names().0.eq_ignore_ascii_case(word))
                .and_then(|kind| Some((kind, kind.find()?)))
                .ok_or_else(|| Error::failed(format!("-launcher {word}: it is not installed")))?,
            None => [Srun, Hydra, OpenMpi]
                .into_iter()
                .filter(|kind| *kind != Srun || std::env::var_os("SLURM_JOB_ID").is_some())
                .find_map(|kind| Some((kind, kind.find()?)))
                .ok_or_else(|| {
                    Error::failed(
                        "tasks on other machines need mpiexec.hydra (mpich), mpirun (Open MPI) or srun",
                    )
                })?,
        };
        let file =
            NamedTempFile::new().map_err(|error| Error::system("cannot make the file of hosts", error))?;
        Ok(Self { kind: chosen.0, program: chosen.1, file })
    }

    /// The name of its command.
    pub(super) fn name(&self) -> &str {
        self.program.file_name().and_then(|name| name.to_str()).unwrap_or("the launcher")
    }

    /// Whether a job may have to wait for machines that are in use.
    pub(super) fn queues(&self) -> bool {
        self.kind == Srun
    }

    /// The variable in which it passes a task its number.
    pub(super) fn rank_variable(&self) -> &'static str {
        match self.kind {
            Srun => "SLURM_PROCID",
            Hydra => "PMI_RANK",
            OpenMpi => "OMPI_COMM_WORLD_RANK",
        }
    }

    /// The command that starts `poe --task` for each task, task i on `hosts[i]`.
    pub(super) fn command(&self, hosts: &[String]) -> Result<Command, Error> {
        let poe = std::env::current_exe().map_err(|error| Error::system("/proc/self/exe", error))?;
        let text: String = hosts.iter().map(|host| format!("{host}\n")).collect();
        fs::write(self.file.path(), text)
            .map_err(|error| Error::system("cannot write the file of hosts", error))?;
        let tasks = hosts.len().to_string();
        let mut command = Command::new(&self.program);
        command.stdin(Stdio::null());
        match self.kind {
            Srun => {
                let mut distinct: Vec<&String> = hosts.iter().collect();
                distinct.sort_unstable();
                distinct.dedup();
                command
                    .env("SLURM_HOSTFILE", self.file.path())
                    // Of the allocation: they contradict the file.
                    .env_remove("SLURM_NTASKS_PER_NODE")
                    .env_remove("SLURM_TASKS_PER_NODE")
                    .env_remove("SLURM_DISTRIBUTION")
                    .args(["--quiet", "--distribution=arbitrary", "--export=ALL", "--input=none"])
                    .args(["--kill-on-bad-exit=0", "--cpu-bind=none", "--overcommit"])
                    .args(["-N", &distinct.len().to_string(), "-n", &tasks]);
            }
            // Hosts that occur again are new entries: the order is kept. Hydra passes the end of
            // its input on to its daemons, and ends by SIGPIPE when they have ended before.
            Hydra => {
                command.stdin(Stdio::piped()).arg("-f").arg(self.file.path()).args(["-n", &tasks]);
            }
            OpenMpi => {
                command
                    .arg("--hostfile")
                    .arg(self.file.path())
                    .args(["--map-by", "seq", "--bind-to", "none", "--oversubscribe", "--stdin", "none"])
                    .args(["-x", super::link::VARIABLE, "-n", &tasks]);
            }
        }
        command.arg(poe).arg("--task");
        Ok(command)
    }
}

/// Where a command is.
fn on_path(name: &str) -> Option<PathBuf> {
    let is_program = |path: &Path| {
        fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|path| is_program(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_launcher_gets_the_hosts_in_the_order_of_the_tasks() {
        for kind in [Srun, Hydra, OpenMpi] {
            let file = NamedTempFile::new().expect("a file can be made");
            let launcher = Launcher { kind, program: PathBuf::from("/x/launch"), file };
            let hosts = ["b", "a", "b"].map(str::to_owned);
            let command = launcher.command(&hosts).expect("the file can be written");
            assert_eq!(fs::read_to_string(launcher.file.path()).expect("it was written"), "b\na\nb\n");
            let words: Vec<&str> = command.get_args().filter_map(|word| word.to_str()).collect();
            assert!(words.windows(2).any(|pair| pair == ["-n", "3"]), "{words:?}");
            assert_eq!(words.last(), Some(&"--task"));
        }
    }
}
