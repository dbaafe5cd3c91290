//! Which task of which job this is.
//!
//! The task's number and the number of tasks come from the first of these that has both:
//!
//! 1. `MP_CHILD`, `MP_PROCS` (set by poe, or by hand; one without the other is an error),
//! 2. `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE` (Open MPI),
//! 3. `PMI_RANK`, `PMI_SIZE` (MPICH's Hydra and its relatives, Slurm's pmi2),
//! 4. `PMIX_RANK`, with the size from Open MPI, `PMI_SIZE` or Slurm (PMIx itself puts none into
//!    the environment),
//! 5. `SLURM_PROCID`, and `SLURM_STEP_NUM_TASKS` or `SLURM_NTASKS`, inside a step that srun started
//!    (a batch script has such variables too, but is not a task).
//!
//! Without any of them it is a job of one task. A rank without a known size is an error: to take
//! such a task for a job of its own would give wrong results without an error.
//!
//! The job's key distinguishes the jobs of one user. It is `MP_PARTITION`; else the key of the
//! first of the launchers 2 to 5 that describes a job of this number of tasks (`PMIX_NAMESPACE` for
//! Open MPI and PMIx, `PMI_JOBID` for Slurm's pmi2, `SLURM_JOB_ID` with `SLURM_STEP_ID` for Slurm
//! itself); else, as for Hydra, it is derived from the process that started the tasks (see
//! `ancestor`): programs started by hand from one shell, and the tasks of one `mpiexec`, have it in
//! common. Keys of launchers that give another number of tasks do not count: a launcher may itself
//! run inside of a Slurm step or another launcher's job, and so may several at a time.
//!
//! Tasks started by hand need an `MP_PARTITION` where two jobs run at the same time from the same
//! shell, or where the shell ends before the tasks have called `LAPI_Init`.
//!
//! An MPI library that finds no launcher makes itself a PMIx server and sets PMIx variables in its
//! own process. Those describe no job: the environment that is given here has `PMIX_RANK` and
//! `PMIX_NAMESPACE` only as the process was started with them.

mod ancestor;
mod environ;
mod launcher;
#[cfg(test)]
mod tests;

use crate::abi::{LAPI_ERR_NO_ENV_VAR, LAPI_ERR_SET_VAL, LAPI_ERR_SHM_SETUP};
use crate::config::{Env, MAX_TASKS, common_tasks, given, number};
use crate::error::{Error, Result};

pub(in crate::job) use launcher::slurm_tasks;
use launcher::{LAUNCHERS, Launcher, Said};

/// A task's place in its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// This task: 0 up to `tasks`.
    pub task: u32,
    /// How many tasks the job has; at least 1.
    pub tasks: u32,
    /// The job's key: the same in all its tasks, and different in other jobs of this user
    /// on this machine.
    pub key: String,
    /// Which tasks are on this machine.
    pub common: Common,
    /// Which variables gave this; for messages.
    pub source: &'static str,
}

/// Which tasks of the job are on this machine, as far as the environment gives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Common {
    /// All of them, or nothing contradicts that.
    All,
    /// These, this task included, in ascending order; at least one task is elsewhere.
    Listed(Vec<u32>),
    /// A number of tasks, this one included, and the others elsewhere; the launcher does
    /// not name them.
    Counted(u32),
}

/// The job's key where `MP_PARTITION` has this value.
pub fn key_of_partition(partition: &str) -> String {
    format!("MP_PARTITION {partition}")
}

impl Identity {
    /// The task that these variables describe.
    ///
    /// # Errors
    /// `LAPI_ERR_NO_ENV_VAR`: one of two variables that belong together is missing, or a number is
    /// out of range. `LAPI_ERR_SHM_SETUP`: `MP_COMMON_TASKS` contradicts the rest.
    pub fn from_env(env: &Env<'_>) -> Result<Self> {
        Self::from_env_and(env, ancestor::key)
    }

    /// [`Self::from_env`] of a process that has no launcher which could be found without the
    /// environment.
    ///
    /// # Errors
    /// The errors of [`Self::from_env`].
    #[cfg(feature = "fuzz")]
    pub fn from_env_alone(env: &Env<'_>) -> Result<Self> {
        Self::from_env_and(env, |launcher, tasks| format!("{} of {tasks}", launcher.rank))
    }

    /// The only task of its job.
    pub fn alone() -> Self {
        let key = format!("process {}", std::process::id());
        Self { task: 0, tasks: 1, key, common: Common::All, source: "no launcher" }
    }

    /// Whether its numbers fit together.
    ///
    /// # Errors
    /// `LAPI_ERR_SET_VAL`: they do not; the detail names them.
    pub(crate) fn check(&self) -> Result<()> {
        let Self { task, tasks, .. } = *self;
        let wrong = |detail| Err(Error::new(LAPI_ERR_SET_VAL, detail));
        if tasks > MAX_TASKS || task >= tasks {
            return wrong(format!(
                "task {task} of {tasks}; a job has 1 to {MAX_TASKS} tasks, numbered from 0"
            ));
        }
        let possible = match &self.common {
            Common::All => true,
            Common::Listed(list) => {
                list.is_sorted_by(|one, next| one < next)
                    && list.contains(&task)
                    && (list.len() as u32) < tasks
                    && list.last().is_none_or(|last| *last < tasks)
            }
            Common::Counted(count) => (1..tasks).contains(count),
        };
        if possible {
            return Ok(());
        }
        wrong(format!("task {task} of {tasks} shares its machine with {:?}", self.common))
    }

    /// The tasks on this machine in ascending order, this one included; `None` when the launcher
    /// does not name them.
    pub fn common_tasks(&self) -> Option<Vec<u32>> {
        match &self.common {
            Common::All => Some((0..self.tasks).collect()),
            Common::Listed(tasks) => Some(tasks.clone()),
            Common::Counted(1) => Some(vec![self.task]),
            Common::Counted(_) => None,
        }
    }

    /// Whether every task of the job is on this machine.
    pub fn is_on_one_machine(&self) -> bool {
        self.common == Common::All
    }

    /// How many tasks of the job are on this machine, this one included.
    pub fn common_count(&self) -> u32 {
        match &self.common {
            Common::All => self.tasks,
            Common::Listed(tasks) => tasks.len() as u32,
            Common::Counted(count) => *count,
        }
    }

    /// [`Self::from_env`] with `ancestor`, which gives the key of a launcher's job of that number
    /// of tasks when no variable has one.
    fn from_env_and(env: &Env<'_>, ancestor: impl FnOnce(&Launcher, u32) -> String) -> Result<Self> {
        let Some(Rank { launcher, task, tasks }) = place(env)? else {
            return Ok(Self::alone());
        };
        let source = launcher.source;
        if tasks == 0 || tasks > MAX_TASKS || task >= tasks {
            return Err(missing(format!(
                "{source} say task {task} of {tasks}; a job has 1 to {MAX_TASKS} tasks, numbered from 0"
            )));
        }
        let common = match given(env, "MP_COMMON_TASKS") {
            Some(list) => listed(task, tasks, &list)?,
            None => match launcher.local(env, tasks)? {
                Some(count) if (1..tasks).contains(&count) => Common::Counted(count),
                _ => Common::All,
            },
        };
        let [by_hand, others @ ..] = &LAUNCHERS;
        let key = by_hand.key(env).unwrap_or_else(|| {
            // When this one makes no key, no other key counts.
            let source = others.iter().find(|other| other.may_mean(env, tasks)).unwrap_or(launcher);
            source.key(env).unwrap_or_else(|| ancestor(source, tasks))
        });
        Ok(Self { task, tasks, key, common, source })
    }
}

/// Which launcher gives this task's place, and that place.
struct Rank {
    launcher: &'static Launcher,
    task: u32,
    tasks: u32,
}

fn place(env: &Env<'_>) -> Result<Option<Rank>> {
    let [by_hand, others @ ..] = &LAUNCHERS;
    match (by_hand.says(env)?, number(env, "MP_PROCS")?) {
        (Some(Said { task, .. }), Some(tasks)) => {
            return Ok(Some(Rank { launcher: by_hand, task, tasks: tasks as u32 }));
        }
        (Some(Said { task, .. }), None) => {
            return Err(missing(format!("MP_CHILD is {task}, but MP_PROCS is not set")));
        }
        (None, Some(tasks)) => return Err(missing(format!("MP_PROCS is {tasks}, but MP_CHILD is not set"))),
        (None, None) => {}
    }
    let mut sizeless = None;
    for launcher in others {
        match launcher.says(env)? {
            Some(Said { task, tasks: Some(tasks) }) => return Ok(Some(Rank { launcher, task, tasks })),
            Some(_) => sizeless = sizeless.or(Some(launcher.rank)),
            None => {}
        }
    }
    match sizeless {
        None => Ok(None),
        Some(rank) => Err(missing(format!(
            "{rank} is set, but nothing says how many tasks the job has; set MP_CHILD and MP_PROCS"
        ))),
    }
}

fn listed(task: u32, tasks: u32, list: &str) -> Result<Common> {
    let wrong = |why: &str| {
        let of = format!("task {task} of {tasks}");
        Error::new(LAPI_ERR_SHM_SETUP, format!("MP_COMMON_TASKS is \"{list}\" in {of}: {why}"))
    };
    let mut common = common_tasks(list).ok_or_else(|| wrong("not COUNT[:TASK...]"))?;
    let Err(place) = common.binary_search(&task) else {
        return Err(wrong("it lists the task itself, not only the others"));
    };
    if common.last().is_some_and(|other| *other >= tasks) {
        return Err(wrong("it lists a task that the job does not have"));
    }
    common.insert(place, task);
    Ok(if common.len() == tasks as usize { Common::All } else { Common::Listed(common) })
}

fn missing(detail: String) -> Error {
    Error::new(LAPI_ERR_NO_ENV_VAR, detail)
}
