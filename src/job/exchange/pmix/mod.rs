//! PMIx: Open MPI's mpirun, PRRTE, and Slurm's pmix. libpmix is opened when it is needed;
//! [`library`] has what is used of it.
//!
//! PMIx_Init is called once per process, and PMIx_Finalize when the process ends: an MPI library
//! may use PMIx, too, before, after or meanwhile, and PMIx counts. Keys contain the number of the
//! exchange and the task's number.

mod library;
mod ranks;

use super::{Exchange, failed, late, unpublished};
use crate::base::sync::Mutex;
use crate::error::Result;
use crate::job::identity::Identity;
use library::{Library, Outcome, Proc};
use ranks::Ranks;
use std::time::{Duration, Instant};

/// PMIx as it was initialised for a task of this process.
#[derive(Default)]
pub(super) struct Conversation(Mutex<Option<Initialized>>);

impl Conversation {
    /// Calls PMIx_Finalize, in the process that has called PMIx_Init: launchers call the end of a
    /// task abnormal when it has begun a conversation with them and not ended it.
    ///
    /// Does nothing while a thread begins or uses it, which in a forked child may be one of the
    /// parent.
    pub(super) fn end(&self) {
        let Some(mut initialized) = self.0.try_lock() else { return };
        if initialized.is_some_and(|initialized| initialized.process == std::process::id())
            && let Some(initialized) = initialized.take()
        {
            initialized.library.finalize();
        }
    }
}

/// How long a value that is there may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How long the server may say that it does not know a value that was published, and the time
/// between two questions.
const UNKNOWN: Duration = Duration::from_secs(5);
const BETWEEN_LOOKUPS: Duration = Duration::from_millis(10);

#[derive(Clone, Copy)]
struct Initialized {
    library: &'static Library,
    me: Proc,
    process: u32,
}

/// One exchange.
pub(super) struct Pmix {
    library: &'static Library,
    me: Proc,
    task: u32,
    opening: u32,
    ranks: Ranks,
}

/// Initialises PMIx, if that was not done yet for this task.
///
/// # Errors
/// `LAPI_ERR_CSS_LOAD_FAILED`: libpmix is missing, or there is no PMIx server.
pub(super) fn open(identity: &Identity, opening: u32, conversation: &Conversation) -> Result<Pmix> {
    let mut initialized = conversation.0.lock();
    let process = std::process::id();
    let Initialized { library, me, .. } = match *initialized {
        Some(known) if known.process == process => known,
        Some(_) => return Err(failed("PMIx: this is a forked child of the process that uses PMIx")),
        None => {
            let library = Library::get().map_err(|why| failed(why.clone()))?;
            let me = library
                .init()
                .map_err(|status| failed(format!("PMIx_Init: {}", library.describe(status))))?;
            *initialized.insert(Initialized { library, me, process })
        }
    };
    let (task, tasks) = (identity.task, identity.tasks);
    let mut exchange = Pmix { library, me, task, opening, ranks: Ranks::new(tasks) };
    exchange.put(&exchange.number(), &task.to_le_bytes())?;
    Ok(exchange)
}

impl Pmix {
    fn put(&mut self, name: &str, value: &[u8]) -> Result<()> {
        let put = self.library.put(name, value);
        put.map_err(|status| failed(format!("PMIx_Put of \"{name}\": {}", self.library.describe(status))))
    }

    /// The name under which each rank gives its task's number.
    fn number(&self) -> String {
        format!("lapi-{}-number", self.opening)
    }

    /// The rank that has this number as a task. Ranks are the numbers of the tasks, unless the
    /// tasks have numbered themselves.
    fn rank(&mut self, task: u32) -> Option<u32> {
        let (library, me, name) = (self.library, self.me, self.number());
        self.ranks.find(task, |rank| match library.get_value(&me.with_rank(rank), &name, TIMEOUT) {
            Outcome::Done(number) => number.try_into().ok().map(u32::from_le_bytes),
            Outcome::Late | Outcome::Failed(_) => None,
        })
    }

    fn key(&self, task: u32, key: &str) -> Result<String> {
        let text = format!("lapi-{}-{task}-{key}", self.opening);
        let fits = text.len() <= library::LONGEST_KEY && !text.contains('\0');
        fits.then_some(text).ok_or_else(|| failed(format!("PMIx: a key of {} bytes is too long", key.len())))
    }
}

impl Exchange for Pmix {
    fn name(&self) -> &'static str {
        "PMIx"
    }

    fn publish(&mut self, key: &str, value: &[u8]) -> Result<()> {
        let name = self.key(self.task, key)?;
        self.put(&name, value)
    }

    fn fence(&mut self, deadline: Instant) -> Result<()> {
        let why = |status| self.library.describe(status);
        self.library.commit().map_err(|status| failed(format!("PMIx_Commit: {}", why(status))))?;
        let left = deadline.saturating_duration_since(Instant::now());
        match self.library.fence(&self.me, left) {
            Outcome::Done(_) => Ok(()),
            Outcome::Late => Err(late("PMIx: not all tasks have come to the start-up exchange in time")),
            Outcome::Failed(status) => Err(failed(format!("PMIx_Fence: {}", why(status)))),
        }
    }

    fn lookup(&mut self, task: u32, key: &str) -> Result<Vec<u8>> {
        let name = self.key(task, key)?;
        match self.value(task, &name) {
            Outcome::Done(value) => Ok(value),
            Outcome::Late => Err(late(format!("PMIx: no value \"{key}\" of task {task} in time"))),
            Outcome::Failed(_) => Err(unpublished("PMIx", task, key)),
        }
    }

    /// Seen with Open MPI, of the second program of the same tasks: its server says for a moment
    /// that it has no such value.
    fn lookup_published(&mut self, task: u32, key: &str) -> Result<Vec<u8>> {
        let latest = Instant::now() + UNKNOWN;
        loop {
            let found = self.lookup(task, key);
            if found.is_ok() || Instant::now() > latest {
                return found;
            }
            std::thread::sleep(BETWEEN_LOOKUPS);
        }
    }
}

impl Pmix {
    /// The value that this task has published under this name, as far as the server knows now.
    fn value(&mut self, task: u32, name: &str) -> Outcome {
        let expected = self.ranks.known(task).unwrap_or(task);
        let of_rank = self.library.get_value(&self.me.with_rank(expected), name, TIMEOUT);
        match of_rank {
            Outcome::Failed(status) => match self.rank(task) {
                Some(rank) if rank != expected => {
                    self.library.get_value(&self.me.with_rank(rank), name, TIMEOUT)
                }
                _ => Outcome::Failed(status),
            },
            other => other,
        }
    }
}
