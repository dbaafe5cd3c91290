//! Which task of which job this is.
//!
//! The task's number and the number of tasks come from the first of these that has both:
//!
//! 1. `MP_CHILD`, `MP_PROCS` (set by poe, or by hand; one without the other is an error),
//! 2. `OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE` (Open MPI),
//! 3. `PMI_RANK`, `PMI_SIZE` (MPICH's Hydra and its relatives, Slurm's pmi2),
//! 4. `PMIX_RANK`, with the size from `PMI_SIZE` or Slurm (PMIx itself puts no size into the environment),
//! 5. `SLURM_PROCID`, and `SLURM_STEP_NUM_TASKS` or `SLURM_NTASKS`, inside a step that srun started (a batch
//!    script has such variables too, but is not a task).
//!
//! Without any of them it is a job of one task. A rank whose size nobody knows is an error: to take such a task
//! for a job of its own would give wrong results in silence.
//!
//! The job's key tells jobs of one user apart. It is `MP_PARTITION`, else `PMIX_NAMESPACE`, else `PMI_JOBID`, else
//! `SLURM_JOB_ID` with `SLURM_STEP_ID`, else it is derived from the process that started the tasks (see
//! `ancestor`): programs started by hand from one shell, and the tasks of one `mpiexec`, have it in common.
//! Tasks started by hand need an `MP_PARTITION` where two jobs run at the same time from the same shell, or where
//! the shell ends before the tasks have called `LAPI_Init`.

mod ancestor;
#[cfg(test)]
mod tests;

use crate::abi::{LAPI_ERR_NO_ENV_VAR, LAPI_ERR_SHM_SETUP};
use crate::config::{Env, MAX_TASKS, common_tasks, given, number};
use crate::error::{Error, Result};

/// A task's place in its job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// This task: 0 up to `tasks`.
    pub task: u32,
    /// How many tasks the job has; at least 1.
    pub tasks: u32,
    /// The job's key: the same in all its tasks, and different in other jobs of this user on this machine.
    pub key: String,
    /// Which tasks are on this machine.
    pub common: Common,
    /// Which variables said so; for messages.
    pub source: &'static str,
}

/// Which tasks of the job are on this machine, as far as the environment says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Common {
    /// All of them, or nothing says otherwise.
    All,
    /// These, this task included, in ascending order; at least one task is elsewhere.
    Listed(Vec<u32>),
    /// This many, this task included, and the others elsewhere; the launcher does not say which.
    Counted(u32),
}

impl Identity {
    /// Reads the environment.
    ///
    /// # Errors
    /// `LAPI_ERR_NO_ENV_VAR`: one of two variables that belong together is missing, or a number is out of range.
    /// `LAPI_ERR_SHM_SETUP`: `MP_COMMON_TASKS` contradicts the rest.
    pub fn from_env(env: &Env<'_>) -> Result<Self> {
        Self::from_env_or(env, ancestor::key)
    }

    /// The only task of its job.
    pub fn alone() -> Self {
        let key = format!("process {}", std::process::id());
        Self { task: 0, tasks: 1, key, common: Common::All, source: "no launcher" }
    }

    /// The tasks on this machine in ascending order, this one included; `None` when the launcher does not say
    /// which they are.
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

    /// [`Self::from_env`], with `ancestor` to be asked for a key when no variable has one.
    fn from_env_or(env: &Env<'_>, ancestor: impl FnOnce() -> String) -> Result<Self> {
        let Some(place) = place(env)? else {
            return Ok(Self::alone());
        };
        let Place { task, tasks, source, local } = place;
        if tasks == 0 || tasks > MAX_TASKS || task >= tasks {
            return Err(missing(format!(
                "{source} say task {task} of {tasks}; a job has 1 to {MAX_TASKS} tasks, numbered from 0"
            )));
        }
        let common = match given(env, "MP_COMMON_TASKS") {
            Some(list) => listed(task, tasks, &list)?,
            None => match local {
                Some(count) if (1..tasks).contains(&count) => Common::Counted(count),
                _ => Common::All,
            },
        };
        Ok(Self { task, tasks, key: key(env).unwrap_or_else(ancestor), common, source })
    }
}

/// What one launcher says.
struct Place {
    task: u32,
    tasks: u32,
    source: &'static str,
    /// How many of the tasks are on this machine, where the launcher says so.
    local: Option<u32>,
}

fn place(env: &Env<'_>) -> Result<Option<Place>> {
    let read = |name: &str| -> Result<Option<u32>> { Ok(number(env, name)?.map(|value| value as u32)) };

    match (read("MP_CHILD")?, read("MP_PROCS")?) {
        (Some(task), Some(tasks)) => {
            return Ok(Some(Place { task, tasks, source: "MP_CHILD and MP_PROCS", local: None }));
        }
        (None, None) => {}
        (Some(task), None) => return Err(missing(format!("MP_CHILD is {task}, but MP_PROCS is not set"))),
        (None, Some(tasks)) => return Err(missing(format!("MP_PROCS is {tasks}, but MP_CHILD is not set"))),
    }

    let mut sizeless = None;
    let mut pair = |rank: &'static str, sizes: &[&'static str]| -> Result<Option<(u32, u32)>> {
        let Some(task) = read(rank)? else { return Ok(None) };
        for size in sizes {
            if let Some(tasks) = read(size)? {
                return Ok(Some((task, tasks)));
            }
        }
        sizeless = sizeless.or(Some(rank));
        Ok(None)
    };

    if let Some((task, tasks)) = pair("OMPI_COMM_WORLD_RANK", &["OMPI_COMM_WORLD_SIZE"])? {
        let local = read("OMPI_COMM_WORLD_LOCAL_SIZE")?;
        return Ok(Some(Place { task, tasks, source: "OMPI_COMM_WORLD_RANK and _SIZE", local }));
    }
    if let Some((task, tasks)) = pair("PMI_RANK", &["PMI_SIZE"])? {
        let local = read("MPI_LOCALNRANKS")?.or_else(|| tasks_on_node(env));
        return Ok(Some(Place { task, tasks, source: "PMI_RANK and PMI_SIZE", local }));
    }
    let slurm_sizes: &[&str] =
        if slurm_step(env).is_some() { &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"] } else { &[] };
    let pmix_sizes = [&["PMI_SIZE"], slurm_sizes].concat();
    if let Some((task, tasks)) = pair("PMIX_RANK", &pmix_sizes)? {
        return Ok(Some(Place { task, tasks, source: "PMIX_RANK", local: tasks_on_node(env) }));
    }
    if slurm_step(env).is_some() {
        if let Some((task, tasks)) = pair("SLURM_PROCID", slurm_sizes)? {
            return Ok(Some(Place { task, tasks, source: "SLURM_PROCID", local: tasks_on_node(env) }));
        }
    }
    match sizeless {
        None => Ok(None),
        Some(rank) => Err(missing(format!(
            "{rank} is set, but nothing says how many tasks the job has; set MP_CHILD and MP_PROCS"
        ))),
    }
}

fn key(env: &Env<'_>) -> Option<String> {
    for name in ["MP_PARTITION", "PMIX_NAMESPACE", "PMI_JOBID"] {
        if let Some(value) = given(env, name) {
            return Some(format!("{name} {value}"));
        }
    }
    let (job, step) = (given(env, "SLURM_JOB_ID")?, slurm_step(env)?);
    Some(format!("SLURM_JOB_ID {job}, SLURM_STEP_ID {step}"))
}

/// The Slurm step in which srun started this task. Batch scripts and interactive allocations have none: Slurm
/// leaves the variable out, or gives them one of the highest numbers.
fn slurm_step(env: &Env<'_>) -> Option<u32> {
    let step: u32 = given(env, "SLURM_STEP_ID")?.parse().ok()?;
    (step < 0xffff_fff0).then_some(step)
}

/// How many tasks Slurm's step has on this machine: an entry of a list such as `2(x3),1`.
fn tasks_on_node(env: &Env<'_>) -> Option<u32> {
    slurm_step(env)?;
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

fn listed(task: u32, tasks: u32, list: &str) -> Result<Common> {
    let wrong = |why: &str| {
        let of = format!("task {task} of {tasks}");
        Error::new(LAPI_ERR_SHM_SETUP, format!("MP_COMMON_TASKS is \"{list}\" in {of}: {why}"))
    };
    let mut common = common_tasks(list).ok_or_else(|| wrong("not COUNT[:TASK...]"))?;
    if common.contains(&task) {
        return Err(wrong("it lists the task itself, not only the others"));
    }
    if common.iter().any(|other| *other >= tasks) {
        return Err(wrong("it lists a task that the job does not have"));
    }
    common.push(task);
    common.sort_unstable();
    Ok(if common.len() == tasks as usize { Common::All } else { Common::Listed(common) })
}

fn missing(detail: String) -> Error {
    Error::new(LAPI_ERR_NO_ENV_VAR, detail)
}
