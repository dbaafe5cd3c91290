//! The part of every task but the root.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::PollFlags;

use super::message::{Hello, Record, ToMember, ToRoot};
use super::{BETWEEN_QUESTIONS, Member, Round, check_ended, failed, trouble};
use crate::error::{Error, Result};
use crate::job::channel::{Channel, Deadline, Receive, Received, wait};
use crate::wire::reunion::Search;

/// The first and the longest pause between two attempts to connect.
const PAUSE: (Duration, Duration) = (Duration::from_micros(100), Duration::from_millis(10));

/// How long a root that is there has for a last word after the deadline.
const GRACE: Duration = Duration::from_secs(1);

/// Meets the others at the root.
pub(super) fn join(
    round: &Round,
    blob: &[u8],
    fds: &[BorrowedFd<'_>],
    elsewhere: &mut dyn FnMut() -> Search,
) -> Result<Option<Vec<Member>>> {
    let hello = ToRoot::Hello(Hello {
        task: round.task,
        tasks: round.tasks,
        secret: round.key.secret.clone(),
        blob: blob.to_vec(),
        fds: fds.len() as u32,
    });
    let hello = hello.encode();

    let mut pause = PAUSE.0;
    let mut question = Deadline::after(BETWEEN_QUESTIONS);
    loop {
        if let Some(channel) = Channel::connect(&round.name).map_err(|error| trouble(round, &error))? {
            let root = channel.peer().map_err(|error| trouble(round, &error))?;
            if root.uid != round.key.uid {
                return Err(failed(format!(
                    "user {} (process {}) holds the name of this job's rendezvous; {}; start the job with poe, \
                     which gives it a secret name",
                    root.uid,
                    root.pid,
                    round.job()
                )));
            }
            // A root that closes before it has answered was the listener of another round at its very end.
            if channel.send(&hello, fds, round.deadline).is_ok() {
                if let Some(members) = converse(round, &channel, root.pid)? {
                    return Ok(Some(members));
                }
            }
        }
        if question.has_passed() {
            if elsewhere() == Search::Back {
                return Ok(None);
            }
            check_ended(round, &mut round.common.iter().copied())?;
            question = Deadline::after(BETWEEN_QUESTIONS);
        }
        if round.deadline.has_passed() {
            return Err(failed(format!(
                "task {} did not come to the rendezvous within {:?}; {}; does it run on this machine, with the \
                 same MP_PARTITION, MP_COMMON_TASKS and LAPI_JOB_SECRET?",
                round.root(),
                round.patience,
                round.job()
            )));
        }
        round.deadline.sleep(pause);
        pause = (pause * 2).min(PAUSE.1);
    }
}

/// Everything after the hello. `None` when the root closed the connection before it answered, or has gone back to a job
/// that runs already.
fn converse(round: &Round, channel: &Channel, root_pid: i32) -> Result<Option<Vec<Member>>> {
    let mut welcome = false;
    let mut members = Vec::with_capacity(round.common.len());
    loop {
        let Received { bytes, fds } = match next(channel, round.deadline) {
            Ok(Some(received)) => received,
            Ok(None) if !welcome => return Ok(None),
            Ok(None) => {
                return Err(failed(format!(
                    "task {} (process {root_pid}) left the rendezvous before it was over; {}",
                    round.root(),
                    round.job()
                )));
            }
            Err(error) => return Err(give_up(round, channel, root_pid, &error)),
        };
        match ToMember::decode(&bytes) {
            Some(ToMember::Fail(code, why)) => return Err(Error::new(code, why)),
            Some(ToMember::Welcome) => welcome = true,
            Some(ToMember::Elsewhere) => return Ok(None),
            Some(ToMember::Part(records)) => {
                take(round, &mut members, records, fds).ok_or_else(|| nonsense(round, root_pid))?;
                if members.len() == round.common.len() {
                    // If the root is gone, the next look at the channel says so.
                    let _ = channel.send(&ToRoot::Have.encode(), &[], round.deadline);
                }
            }
            Some(ToMember::Go) if members.len() == round.common.len() => {
                members.sort_unstable_by_key(|member| member.task);
                // Each process knows itself best, and the kernel knows the root from this side.
                for member in &mut members {
                    if member.task == round.task {
                        member.pid = std::process::id() as i32;
                    } else if member.task == round.root() {
                        member.pid = root_pid;
                    }
                }
                return Ok(Some(members));
            }
            _ => return Err(nonsense(round, root_pid)),
        }
    }
}

/// Adds what a part says to `members`; `None` when it contradicts itself or what is there already.
fn take(round: &Round, members: &mut Vec<Member>, records: Vec<Record>, fds: Vec<OwnedFd>) -> Option<()> {
    let mut fds = fds.into_iter();
    for Record { task, pid, uid, blob, fds: count } in records {
        let fds: Vec<OwnedFd> = fds.by_ref().take(count as usize).collect();
        let is_new = members.iter().all(|member| member.task != task);
        if !is_new || round.common.binary_search(&task).is_err() || fds.len() != count as usize {
            return None;
        }
        members.push(Member { task, pid, uid, blob, fds });
    }
    fds.next().is_none().then_some(())
}

fn nonsense(round: &Round, root_pid: i32) -> Error {
    failed(format!(
        "task {} (process {root_pid}) sent something that is not understood; do all tasks use the same version of \
         the library?",
        round.root()
    ))
}

/// The next message; `None` when the other end is closed.
fn next(channel: &Channel, deadline: Deadline) -> io::Result<Option<Received>> {
    loop {
        match channel.receive()? {
            Receive::Message(received) => return Ok(Some(received)),
            Receive::Closed => return Ok(None),
            Receive::Nothing if deadline.has_passed() => return Err(io::ErrorKind::TimedOut.into()),
            Receive::Nothing => wait(&[(channel.as_fd(), PollFlags::IN)], deadline).map(drop)?,
        }
    }
}

/// Tells the root that this task gives up, and hears from it who is missing.
fn give_up(round: &Round, channel: &Channel, root_pid: i32, error: &io::Error) -> Error {
    let why = if error.kind() == io::ErrorKind::TimedOut {
        format!("the rendezvous was not over within {:?}", round.patience)
    } else {
        trouble(round, error).detail
    };
    let grace = Deadline::after(GRACE);
    let _ = channel.send(&ToRoot::GivingUp(why.clone()).encode(), &[], grace);
    while let Ok(Some(received)) = next(channel, grace) {
        if let Some(ToMember::Fail(code, why)) = ToMember::decode(&received.bytes) {
            return Error::new(code, why);
        }
    }
    failed(format!("{why}; task {} (process {root_pid}) does not say why; {}", round.root(), round.job()))
}
