//! How the tasks of one machine meet: each brings a few bytes and file descriptors, and each leaves with those of
//! all.
//!
//! The lowest of the tasks is the root. It listens on an abstract unix socket, which has a name but no file, so
//! that nothing can be left behind. The others connect and say who they are; when all have come, the root closes
//! the listener, sends everything to everyone, waits until everyone has it, and gives the word to go. Because the
//! listener is gone before the first answer, no later round can be caught by it: the same tasks may meet again
//! at once, and so may the tasks of the next program with the same key.
//!
//! ```text
//! others               root
//!   hello  ----------->
//!          <-----------  welcome             (or: fail)
//!                        the listener closes
//!          <-----------  part, part, ...     the bytes and descriptors of all
//!   have   ----------->
//!          <-----------  go
//! ```
//!
//! Both sides look at the user of the process at the other end, as the kernel reports it, before they send or
//! believe anything. The name is derived from the user, the job's key, the instance and the job's secret.
//! A connection that closes after the welcome, or the deadline, ends the round for all with an error that names
//! the tasks that are missing.

mod member;
pub(in crate::job) mod message;
mod root;
#[cfg(test)]
mod tests;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use crate::abi::{LAPI_ERR_NO_CONNECTIVITY, LAPI_ERR_SHM_SETUP};
use crate::error::{Error, Result};
use crate::job::Identity;
use crate::wire::reunion::Search;

use super::channel::Deadline;
use super::ended;
use super::name::{Key, Room};

/// The most bytes that a task may bring.
pub const MAX_BLOB: usize = 4096;

/// The most file descriptors that a task may bring.
pub const MAX_FDS: usize = 3;

const MAX_SECRET: usize = 64;

/// What one task brought.
#[derive(Debug)]
pub struct Member {
    /// Which task.
    pub task: u32,
    /// Its process, as this machine's kernel knows it.
    pub pid: i32,
    /// Its user; always this task's own.
    pub uid: u32,
    /// The bytes it brought.
    pub blob: Vec<u8>,
    /// Copies of the descriptors it brought, closed on exec.
    pub fds: Vec<OwnedFd>,
}

/// Meets the other tasks on this machine, and returns what each of them brought, in the order of their numbers,
/// this task's own entry included. Returns only after everyone has everything.
///
/// `instance` keeps apart the rounds of several LAPI instances of one job. Every task must give the same
/// `secret`, or none. `deadline` counts from this call.
///
/// `elsewhere` is asked now and then while tasks are missing: when it answers [`Search::Back`], the job runs already and
/// this task has come back to it by another way (see [`super::lobby`]); the meeting is left, and the answer is `None`. It is
/// asked likewise when the meeting has failed: of others that come back one may have died in it.
///
/// # Errors
/// `LAPI_ERR_SHM_SETUP`, with what happened: tasks are missing at the deadline or have gone away, another user
/// holds the name, two processes claim to be the same task, the secrets differ, the launcher does not say which
/// tasks are here, descriptors have run out. `LAPI_ERR_NO_CONNECTIVITY`: the launcher reports that a task has ended.
pub fn meet(
    me: &Identity,
    instance: u32,
    secret: Option<&[u8]>,
    blob: &[u8],
    fds: &[BorrowedFd<'_>],
    deadline: Duration,
    elsewhere: &mut dyn FnMut() -> Search,
) -> Result<Option<Vec<Member>>> {
    let round = Round::new(me, instance, secret, deadline)?;
    if blob.len() > MAX_BLOB || fds.len() > MAX_FDS {
        return Err(failed(format!(
            "{} bytes and {} descriptors were brought to the rendezvous; at most {MAX_BLOB} and {MAX_FDS} can be",
            blob.len(),
            fds.len()
        )));
    }
    let met = if me.task == round.root() {
        root::hold(&round, blob, fds, elsewhere)
    } else {
        member::join(&round, blob, fds, elsewhere)
    };
    met.or_else(|error| or_come_back(&round, error, elsewhere))
}

/// The meeting has failed: that does not matter where the job runs already.
fn or_come_back(
    round: &Round,
    error: Error,
    elsewhere: &mut dyn FnMut() -> Search,
) -> Result<Option<Vec<Member>>> {
    loop {
        match elsewhere() {
            Search::Back => return Ok(None),
            Search::Called if !round.deadline.has_passed() => round.deadline.sleep(BETWEEN_CALLS),
            _ => return Err(error),
        }
    }
}

/// How often a task that waits for others asks whether the job runs already.
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(100);
/// How often one asks that has nothing else to wait for.
const BETWEEN_CALLS: Duration = Duration::from_millis(10);

/// Before this thread forks: no listener is made or closed until one of the next two.
pub fn before_fork() {
    super::channel::before_fork();
}

/// After the fork, in the parent.
pub fn after_fork() {
    super::channel::after_fork();
}

/// After the fork, in the child: no listener of a meeting that the parent holds stays open here.
pub fn forget_in_child() {
    super::channel::close_in_child();
}

/// One meeting, as one task sees it.
struct Round {
    task: u32,
    tasks: u32,
    /// The tasks that meet, in ascending order.
    common: Vec<u32>,
    key: Key,
    /// The abstract name of the listener.
    name: String,
    deadline: Deadline,
    /// How long the deadline was when the round began; for messages.
    patience: Duration,
}

impl Round {
    fn new(me: &Identity, instance: u32, secret: Option<&[u8]>, patience: Duration) -> Result<Self> {
        let common = me.common_tasks().ok_or_else(|| {
            failed(format!(
                "{} of {} tasks are on this machine, but {} do not say which; set MP_COMMON_TASKS",
                me.common_count(),
                me.tasks,
                me.source
            ))
        })?;
        let secret = secret.unwrap_or_default();
        if secret.len() > MAX_SECRET {
            return Err(failed(format!("a secret of {} bytes; at most {MAX_SECRET} can be", secret.len())));
        }
        let uid = rustix::process::geteuid().as_raw();
        let key = Key { job: me.key.clone(), instance, secret: secret.to_vec(), uid };
        let name = key.name(Room::Rendezvous, common[0]);
        let deadline = Deadline::after(patience);
        Ok(Self { task: me.task, tasks: me.tasks, common, key, name, deadline, patience })
    }

    /// The task that listens.
    fn root(&self) -> u32 {
        self.common[0]
    }

    /// The job, for messages.
    fn job(&self) -> String {
        self.key.to_string()
    }
}

/// The error when one of `awaited` has ended: one that was never ready is a member of no running job, to which this task
/// could come back. When all others have ended nothing can come, whatever they were.
fn check_ended(round: &Round, awaited: &mut dyn Iterator<Item = u32>) -> Result<()> {
    let others = || round.common.iter().copied().filter(|task| *task != round.task);
    let alone = others().all(|task| ended::of(task).is_some());
    let ended = awaited.filter_map(|task| Some((task, ended::of(task)?)));
    // The first cause: the others have failed because of it.
    match ended.filter(|(_, end)| alone || end.was_never_ready()).min_by_key(|(_, end)| end.stage) {
        Some((task, end)) => Err(Error::new(LAPI_ERR_NO_CONNECTIVITY, format!("task {task} {end}"))),
        None => Ok(()),
    }
}

fn failed(detail: impl Into<String>) -> Error {
    Error::new(LAPI_ERR_SHM_SETUP, detail)
}

/// A system call has failed.
fn trouble(round: &Round, error: &io::Error) -> Error {
    let hint = match error.raw_os_error() {
        Some(libc::EMFILE) => " (the limit on open files, ulimit -n, is too low for this many tasks)",
        _ => "",
    };
    failed(format!("task {}: the rendezvous failed: {error}{hint}; {}", round.task, round.job()))
}

/// `0, 3-7, 9`: task numbers in ascending order, for messages.
fn list(tasks: &[u32]) -> String {
    const MOST: usize = 16;
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &task in tasks {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == task => *last = task,
            _ => runs.push((task, task)),
        }
    }
    let mut texts: Vec<String> = runs
        .iter()
        .take(MOST)
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
        .collect();
    if runs.len() > MOST {
        texts.push("and others".to_owned());
    }
    texts.join(", ")
}
