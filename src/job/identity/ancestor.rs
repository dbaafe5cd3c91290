//! A job key for tasks whose launcher gives none: the process that started them all.
//!
//! That is this process's nearest ancestor that is not itself a part of a task of this job: the
//! shell in which the tasks were started by hand, or the daemon that the launcher keeps on each
//! machine. A script around a task is not it: it has the variables of the task's launcher in its
//! environment, and is passed over. Variables of other launchers, or of a job of another size, do
//! not count: a launcher may itself run in a task of another job, and so may several at a time. The
//! process's start time goes into the key beside its number, because numbers are used again.
//!
//! Where the tasks outlived the process that started them, their session is used instead.

use nix::unistd::{Pid, getsid};
use rustix::process::{getpid, getppid, getuid};

use super::environ::Environ;
use super::launcher::Launcher;
use crate::base::process::Stat;

/// How many ancestors to look at: more than any real chain of scripts.
const MOST: u32 = 64;

/// The key of a job of `tasks` tasks that `launcher` started.
pub(super) fn key(launcher: &Launcher, tasks: u32) -> String {
    let uid = getuid().as_raw();
    let mut ancestor = getppid().map_or(0, |pid| pid.as_raw_pid());
    for _ in 0..MOST {
        // A process that cannot be read belongs to another user, so it is not part of a task.
        if ancestor <= 1
            || !Environ::of(ancestor).is_some_and(|environ| is_part_of_a_task(&environ, launcher, tasks))
        {
            break;
        }
        ancestor = stat(ancestor).map_or(0, |stat| stat.parent as i32);
    }
    if ancestor <= 1 {
        // 0 where the session's leader is in another namespace of processes: rustix has no such
        // process. Tasks that are each in a namespace of their own need one key.
        let session = getsid(None).map_or(getpid().as_raw_pid(), Pid::as_raw);
        return format!("user {uid}, session {session}");
    }
    let start = stat(ancestor).map_or(0, |stat| stat.started);
    format!("user {uid}, started by process {ancestor} of {start}")
}

fn stat(of: i32) -> Option<Stat> {
    Stat::of(u32::try_from(of).ok()?)
}

/// Whether a process with this environment is a part of a task of this job.
fn is_part_of_a_task(environ: &Environ, launcher: &Launcher, tasks: u32) -> bool {
    launcher.may_mean(&|name: &str| environ.get(name), tasks)
}

#[cfg(test)]
mod tests {
    use super::super::launcher::LAUNCHERS;
    use super::*;

    #[test]
    fn the_key_is_the_same_each_time() {
        assert_eq!(key(&LAUNCHERS[0], 2), key(&LAUNCHERS[0], 2));
    }

    /// The launchers that a process with this environment is passed over for, in a job of 4 tasks.
    fn passed_over_for(environ: &str) -> Vec<usize> {
        let environ = Environ::from(environ.replace(' ', "\0").into_bytes());
        (0..LAUNCHERS.len()).filter(|i| is_part_of_a_task(&environ, &LAUNCHERS[*i], 4)).collect()
    }

    #[test]
    fn scripts_around_a_task() {
        assert_eq!(passed_over_for("MP_CHILD=0 MP_PROCS=4"), [0]);
        assert_eq!(passed_over_for("MP_CHILD=0"), [0]);
        assert_eq!(passed_over_for("OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4"), [1]);
        assert_eq!(passed_over_for("PMI_RANK=1 PMI_SIZE=4 MPI_LOCALNRANKS=4"), [2, 3]);
        assert_eq!(passed_over_for("PMI_RANK=1 PMI_SIZE=4"), [3]);
        assert_eq!(passed_over_for("PMIX_RANK=2"), [4]);
        assert_eq!(passed_over_for("SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_NTASKS=4"), [5]);
        assert_eq!(passed_over_for("PMI_RANK=0 PMI_SIZE=1 MP_CHILD=3 MP_PROCS=4"), [0]);
    }

    #[test]
    fn launchers_inside_of_another_job() {
        for environ in [
            "",
            "HOME=/ MP_PROCS=4",
            "PMI_RANK=0 PMI_SIZE=1 PMI_JOBID=7.0",
            "SLURM_PROCID=0 SLURM_STEP_ID=0 SLURM_NTASKS=1",
            "SLURM_PROCID=0 SLURM_NTASKS=4",
            "SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_STEP_ID=4294967290",
            "MP_CHILD=x MP_PROCS=4",
        ] {
            assert_eq!(passed_over_for(environ), [0; 0], "{environ}");
        }
    }
}
