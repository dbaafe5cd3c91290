//! The exchange at start-up: every task of a job publishes a few values, its addresses in the
//! networks for example, and reads those of the others. Jobs on several machines need it; the
//! launcher carries the values.
//!
//! | exchange | launcher |
//! |---|---|
//! | [`mpi`] | any: MPI is initialised in this process, and its collectives carry the values |
//! | [`pmix`] | Open MPI's mpirun, PRRTE, `srun --mpi=pmix`: libpmix, opened at run time |
//! | [`pmi1`] | MPICH's Hydra and its relatives, `srun --mpi=pmi2`: a conversation on the descriptor `PMI_FD` |
//! | [`slurm`] | `srun --mpi=none`: TCP to task 0 |
//! | [`poe`] | poe, whatever it uses to start tasks on other machines: the file that its tasks share |
//!
//! The choice depends on the environment and on whether MPI is initialised; both must be the same
//! in all tasks. A launcher that describes a job of another number of tasks is passed over, as in
//! [`identity`]: it may be one around the job's own.
//!
//! All tasks open exchanges in the same order, and their fences too: a launcher knows one barrier
//! per job, and counts.

mod dynamic;
#[cfg(test)]
#[path = "tests/memory.rs"]
pub(in crate::job) mod memory;
mod mpi;
pub(crate) mod pieces;
pub(crate) mod pmi1;
mod pmix;
mod poe;
pub(crate) mod slurm;

use crate::abi::{LAPI_ERR_CSS_LOAD_FAILED, LAPI_ERR_NO_CONNECTIVITY};
use crate::config::{Env, given};
use crate::error::{Error, Result};
use crate::job::board::Board;
use crate::job::derive::Secret;
use crate::job::ended::Ends;
use crate::job::identity::{self, Identity};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// Published values of the tasks of a job.
pub trait Exchange: Send {
    /// What carries the values; for messages.
    fn name(&self) -> &'static str;

    /// Gives a value of this task a key; the other tasks see it after the next fence. A key
    /// is given once.
    ///
    /// # Errors
    /// `LAPI_ERR_CSS_LOAD_FAILED`: the launcher does not take it.
    fn publish(&mut self, key: &str, value: &[u8]) -> Result<()>;

    /// Waits for all tasks to call it, too. After it, every task's published values are visible.
    ///
    /// # Errors
    /// `LAPI_ERR_NO_CONNECTIVITY`: not all tasks have come by `deadline`.
    /// `LAPI_ERR_CSS_LOAD_FAILED`: the launcher has failed.
    fn fence(&mut self, deadline: Instant) -> Result<()>;

    /// The value that `task`, which may be this one, has published under this key before a fence.
    ///
    /// # Errors
    /// `LAPI_ERR_CSS_LOAD_FAILED`: there is none, or the launcher has failed.
    fn lookup(&mut self, task: u32, key: &str) -> Result<Vec<u8>>;

    /// A secret of the job that follows from a number that was published. Where processes outside
    /// of the job may see what is published, and the tasks know something that these do not, the
    /// number alone does not reveal it.
    fn conceal(&self, published: Secret) -> Secret {
        published
    }

    /// Looks up a value that every task has published before the fence.
    ///
    /// # Errors
    /// The errors of [`Self::lookup`].
    fn lookup_published(&mut self, task: u32, key: &str) -> Result<Vec<u8>> {
        self.lookup(task, key)
    }

    /// Whether [`Self::lookup`] finds what a process publishes later that takes the place of one
    /// that has died.
    fn follows(&self) -> bool {
        false
    }

    /// Whether the launcher has seen the end of the task's process, and the task had not
    /// closed this opening.
    fn has_died(&self, _task: u32) -> bool {
        false
    }

    /// Takes note that no network carries packets between all hosts of the job, and what was tried:
    /// the opening fails by that, with the code that other failures have, too.
    fn note_no_network(&mut self, _what: &str) {}
}

/// Which exchange of a job this is: of which instance of LAPI, and of which of its openings.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// The instance.
    pub instance: u32,
    /// How often the tasks have opened it.
    pub opening: u32,
}

/// The conversations of this process, as one task, with its launcher: one each, for all exchanges.
#[derive(Default)]
pub(in crate::job) struct Conversations {
    pmi1: Arc<pmi1::Conversation>,
    pmix: pmix::Conversation,
    /// How many exchanges of launchers were opened: a part of each key.
    openings: AtomicU32,
}

impl Conversations {
    /// Ends them, in the process that has begun them.
    pub(in crate::job) fn end(&self) {
        self.pmi1.end();
        self.pmix.end();
    }
}

/// What an exchange goes by.
#[derive(Clone, Copy)]
pub(in crate::job) struct Means<'a> {
    /// The variables that describe the launcher.
    pub(in crate::job) env: &'a Env<'a>,
    /// The tasks that have ended.
    pub(in crate::job) ends: &'a Arc<Ends>,
    pub(in crate::job) conversations: &'a Conversations,
}

/// Opens the exchange that the launcher of this job offers; `None` when it offers none.
///
/// # Errors
/// `LAPI_ERR_CSS_LOAD_FAILED`: the launcher's exchange cannot be used. `LAPI_ERR_NO_CONNECTIVITY`:
/// the launcher has not replied by `deadline`.
pub(in crate::job) fn open(
    identity: &Identity,
    turn: Turn,
    means: Means<'_>,
    deadline: Instant,
) -> Result<Option<Box<dyn Exchange>>> {
    let Means { env, ends, conversations } = means;
    if identity.tasks == 1 {
        return Ok(None);
    }
    if let Some(board) = Board::from_env(env, &identity.key, identity.tasks) {
        return Ok(Some(Box::new(poe::Poe::new(board, identity.task, identity.tasks, turn, ends.clone()))));
    }
    let mpi = mpi::State::of_this_process();
    if mpi == mpi::State::Initialized
        && let Some(exchange) = mpi::open(identity)?
    {
        return Ok(Some(Box::new(exchange)));
    }
    let Some(launcher) = offered(identity.tasks, mpi, env) else { return Ok(None) };
    let opening = conversations.openings.fetch_add(1, Ordering::Relaxed) + 1;
    Ok(Some(match launcher {
        Launcher::Pmi1 => Box::new(pmi1::open(identity, opening, env, &conversations.pmi1, deadline)?),
        Launcher::Pmix => Box::new(pmix::open(identity, opening, &conversations.pmix)?),
        Launcher::Slurm => Box::new(slurm::open(identity, opening, env)?),
    }))
}

/// Whether the launcher of this job offers an exchange: a job on several machines needs one.
pub fn is_offered(identity: &Identity, env: &Env<'_>) -> bool {
    let mpi = mpi::State::of_this_process();
    Board::from_env(env, &identity.key, identity.tasks).is_some()
        || mpi == mpi::State::Initialized
        || offered(identity.tasks, mpi, env).is_some()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Launcher {
    Pmi1,
    Pmix,
    Slurm,
}

/// The launcher that offers an exchange to a job of this number of tasks.
fn offered(tasks: u32, mpi: mpi::State, env: &Env<'_>) -> Option<Launcher> {
    let sizes = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"];
    let is = |name: &str| read(env, name) == Some(tasks);
    let of_slurm = identity::slurm_tasks(env);
    let is_slurms = of_slurm == Ok(Some(tasks));
    let has_pmix = ["PMIX_RANK", "PMIX_NAMESPACE"].iter().all(|name| given(env, name).is_some());
    if has_pmix && is("OMPI_COMM_WORLD_SIZE") {
        return Some(Launcher::Pmix);
    }
    if given(env, "PMI_FD").is_some() && is("PMI_SIZE") {
        // Slurm lets one library of a task say "init". An MPI library in this process, initialised
        // later or finalised already, is that library.
        let is_for_mpi = is_slurms && given(env, "MPI_LOCALNRANKS").is_none() && mpi != mpi::State::Absent;
        return Some(if is_for_mpi { Launcher::Slurm } else { Launcher::Pmi1 });
    }
    // PRRTE gives no size: the user has, in MP_PROCS.
    let is_sizeless = of_slurm == Ok(None) && sizes.iter().all(|name| given(env, name).is_none());
    if has_pmix && (is("PMI_SIZE") || is_slurms || is_sizeless) {
        return Some(Launcher::Pmix);
    }
    is_slurms.then_some(Launcher::Slurm)
}

fn read(env: &Env<'_>, name: &str) -> Option<u32> {
    given(env, name)?.parse().ok()
}

/// The error of an exchange that cannot be used.
#[cold]
pub(in crate::job) fn failed(detail: impl Into<String>) -> Error {
    Error::new(LAPI_ERR_CSS_LOAD_FAILED, detail)
}

/// The error of an exchange that has taken too long.
#[cold]
fn late(detail: impl Into<String>) -> Error {
    Error::new(LAPI_ERR_NO_CONNECTIVITY, detail)
}

/// The error of a lookup that finds nothing.
#[cold]
fn unpublished(name: &str, task: u32, key: &str) -> Error {
    failed(format!("{name}: task {task} has not published \"{key}\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpi::State::{Absent, Finalized, Loaded};

    fn chosen(mpi: mpi::State, vars: &str) -> Option<Launcher> {
        let env = |name: &str| {
            assert!(crate::config::variable(name).is_some(), "{name} is read but not in the table");
            vars.split(' ').find_map(|var| var.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
        };
        offered(4, mpi, &env)
    }

    const STEP: &str = "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=4";
    const HYDRA: &str = "PMI_FD=999999 PMI_RANK=1 PMI_SIZE=4 MPI_LOCALNRANKS=2";

    #[test]
    fn the_choice() {
        assert_eq!(chosen(Absent, "MP_CHILD=1 MP_PROCS=4 MP_PARTITION=3"), None);
        assert_eq!(chosen(Absent, HYDRA), Some(Launcher::Pmi1));
        assert_eq!(chosen(Loaded, HYDRA), Some(Launcher::Pmi1));
        assert_eq!(chosen(Absent, &format!("{HYDRA} {STEP}")), Some(Launcher::Pmi1));
        assert_eq!(chosen(Loaded, &format!("{HYDRA} {STEP}")), Some(Launcher::Pmi1));
        assert_eq!(chosen(Absent, STEP), Some(Launcher::Slurm));
        let pmi2 = format!("{STEP} PMI_FD=9 PMI_RANK=1 PMI_SIZE=4 PMI_JOBID=7.0");
        assert_eq!(chosen(Absent, &pmi2), Some(Launcher::Pmi1));
        assert_eq!(chosen(Loaded, &pmi2), Some(Launcher::Slurm));
        assert_eq!(chosen(Finalized, &pmi2), Some(Launcher::Slurm));
    }

    #[test]
    fn launchers_of_another_size_are_passed_over() {
        assert_eq!(chosen(Absent, "PMI_FD=9 PMI_RANK=0 PMI_SIZE=1"), None);
        assert_eq!(chosen(Absent, "SLURM_STEP_ID=0 SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_NTASKS=3"), None);
        assert_eq!(chosen(Absent, &format!("{STEP} PMI_FD=9 PMI_RANK=0 PMI_SIZE=1")), Some(Launcher::Slurm));
        let script = "SLURM_JOB_ID=7 SLURM_PROCID=0 SLURM_NTASKS=4";
        assert_eq!(chosen(Absent, script), None, "a batch script is not a task");
    }
}
