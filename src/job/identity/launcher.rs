//! What launchers put into the environment of their tasks.

use crate::config::{Env, given, number};
use crate::error::Result;

/// One launcher's variables.
#[derive(Debug)]
pub(super) struct Launcher {
    /// What holds the task's number.
    pub(super) rank: &'static str,
    /// For messages.
    pub(super) source: &'static str,
    /// What may hold the number of tasks. Without any, Slurm's variables do.
    sizes: &'static [&'static str],
    /// What else depends on the launcher.
    kind: LauncherKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LauncherKind {
    ByHand,
    OpenMpi,
    Hydra,
    Pmi,
    Pmix,
    Slurm,
}

/// A process's place according to its launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) task: u32,
    /// `None` when it leaves that open.
    pub(super) tasks: Option<u32>,
}

const PMI: &str = "PMI_RANK and PMI_SIZE";

/// The launchers in their order of precedence.
pub(super) const LAUNCHERS: [Launcher; 6] = [
    Launcher {
        rank: "MP_CHILD",
        source: "MP_CHILD and MP_PROCS",
        sizes: &["MP_PROCS"],
        kind: LauncherKind::ByHand,
    },
    Launcher {
        rank: "OMPI_COMM_WORLD_RANK",
        source: "OMPI_COMM_WORLD_RANK and _SIZE",
        sizes: &["OMPI_COMM_WORLD_SIZE"],
        kind: LauncherKind::OpenMpi,
    },
    Launcher { rank: "PMI_RANK", source: PMI, sizes: &["PMI_SIZE"], kind: LauncherKind::Hydra },
    Launcher { rank: "PMI_RANK", source: PMI, sizes: &["PMI_SIZE"], kind: LauncherKind::Pmi },
    Launcher {
        rank: "PMIX_RANK",
        source: "PMIX_RANK",
        sizes: &["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"],
        kind: LauncherKind::Pmix,
    },
    Launcher { rank: "SLURM_PROCID", source: "SLURM_PROCID", sizes: &[], kind: LauncherKind::Slurm },
];

impl Launcher {
    /// The place that this launcher gives in `env`, if it gives one.
    ///
    /// # Errors
    /// `LAPI_ERR_NO_ENV_VAR`: what should be a number is not one.
    pub(super) fn says(&self, env: &Env<'_>) -> Result<Option<Said>> {
        let may_be = match self.kind {
            LauncherKind::Hydra => given(env, "MPI_LOCALNRANKS").is_some(),
            LauncherKind::Slurm => slurm_step(env).is_some(),
            _ => true,
        };
        if !may_be {
            return Ok(None);
        }
        let Some(task) = read(env, self.rank)? else { return Ok(None) };
        for size in self.sizes {
            if let Some(tasks) = read(env, size)? {
                return Ok(Some(Said { task, tasks: Some(tasks) }));
            }
        }
        let tasks = match self.kind {
            LauncherKind::Pmix | LauncherKind::Slurm => slurm_tasks(env)?,
            _ => None,
        };
        Ok(Some(Said { task, tasks }))
    }

    /// Whether its variables in `env` may describe a job of `tasks` tasks.
    ///
    /// Only the number of tasks decides: it is the same in all tasks, so that all come to
    /// the same result.
    pub(super) fn may_mean(&self, env: &Env<'_>, tasks: u32) -> bool {
        match self.says(env) {
            Ok(Some(said)) => said.tasks.is_none_or(|said| said == tasks),
            _ => false,
        }
    }

    /// The job's key, where this launcher makes one.
    pub(super) fn key(&self, env: &Env<'_>) -> Option<String> {
        let name = match self.kind {
            LauncherKind::ByHand => {
                return given(env, "MP_PARTITION").map(|value| super::key_of_partition(&value));
            }
            LauncherKind::OpenMpi | LauncherKind::Pmix => "PMIX_NAMESPACE",
            // It makes none; a PMI_JOBID in its tasks is that of a Slurm step around it.
            LauncherKind::Hydra => return None,
            LauncherKind::Pmi => "PMI_JOBID",
            LauncherKind::Slurm => {
                let (job, step) = (given(env, "SLURM_JOB_ID")?, slurm_step(env)?);
                return Some(format!("SLURM_JOB_ID {job}, SLURM_STEP_ID {step}"));
            }
        };
        given(env, name).map(|value| format!("{name} {value}"))
    }

    /// How many of the job's `tasks` are on this machine, where the launcher gives that number.
    pub(super) fn local(&self, env: &Env<'_>, tasks: u32) -> Result<Option<u32>> {
        match self.kind {
            LauncherKind::ByHand => Ok(None),
            LauncherKind::OpenMpi => read(env, "OMPI_COMM_WORLD_LOCAL_SIZE"),
            LauncherKind::Hydra => read(env, "MPI_LOCALNRANKS"),
            LauncherKind::Pmi | LauncherKind::Pmix | LauncherKind::Slurm => {
                // A step of another number of tasks is not this job.
                let is_ours = slurm_tasks(env)? == Some(tasks);
                Ok(if is_ours { tasks_on_node(env) } else { None })
            }
        }
    }
}

fn read(env: &Env<'_>, name: &str) -> Result<Option<u32>> {
    Ok(number(env, name)?.map(|value| value as u32))
}

/// The Slurm step in which srun started this task. Batch scripts and interactive allocations have
/// none: Slurm leaves the variable out, or gives them one of the highest numbers.
fn slurm_step(env: &Env<'_>) -> Option<u32> {
    let step: u32 = given(env, "SLURM_STEP_ID")?.parse().ok()?;
    (step < 0xffff_fff0).then_some(step)
}

/// How many tasks the step has.
pub(in crate::job) fn slurm_tasks(env: &Env<'_>) -> Result<Option<u32>> {
    if slurm_step(env).is_none() {
        return Ok(None);
    }
    match read(env, "SLURM_STEP_NUM_TASKS")? {
        Some(tasks) => Ok(Some(tasks)),
        None => read(env, "SLURM_NTASKS"),
    }
}

/// How many tasks Slurm's step has on this machine: an entry of a list such as `2(x3),1`.
fn tasks_on_node(env: &Env<'_>) -> Option<u32> {
    let mut node: u32 = given(env, "SLURM_NODEID")?.parse().ok()?;
    for entry in given(env, "SLURM_STEP_TASKS_PER_NODE")?.split(',') {
        let (count, nodes) = match entry.split_once("(x") {
            Some((count, nodes)) => (count, nodes.strip_suffix(')')?.parse().ok()?),
            None => (entry, 1),
        };
        if node < nodes {
            return count.parse().ok();
        }
        node -= nodes;
    }
    None
}
