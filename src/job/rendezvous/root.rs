//! The part of the root, the lowest task: it listens, collects, and hands everything to everyone.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::PollFlags;

use super::message::{Hello, Record, ToMember, ToRoot, parts};
use super::{BETWEEN_QUESTIONS, Member, Round, check_ended, failed, list, trouble};
use crate::error::{Error, Result};
use crate::job::channel::{Channel, Deadline, Listener, Peer, Receive, Received, wait};
use crate::wire::reunion::Search;

/// How long to wait before trying again to take a name that somebody holds.
const PAUSE: Duration = Duration::from_millis(2);

/// Holds the round.
pub(super) fn hold(
    round: &Round,
    blob: &[u8],
    fds: &[BorrowedFd<'_>],
    elsewhere: &mut dyn FnMut() -> Search,
) -> Result<Option<Vec<Member>>> {
    let own = fds.iter().map(BorrowedFd::try_clone_to_owned).collect::<io::Result<Vec<_>>>();
    let own = Member {
        task: round.task,
        pid: std::process::id() as i32,
        uid: round.key.uid,
        blob: blob.to_vec(),
        fds: own.map_err(|error| trouble(round, &error))?,
    };
    let mut table = Table { round, guests: Vec::new(), members: vec![own] };
    if round.common.len() > 1 && !table.run(elsewhere).inspect_err(|error| table.dismiss(&fail(error)))? {
        table.dismiss(&ToMember::Elsewhere.encode());
        return Ok(None);
    }
    table.members.sort_unstable_by_key(|member| member.task);
    Ok(Some(table.members))
}

/// The root's view of a round under way.
struct Table<'a> {
    round: &'a Round,
    guests: Vec<Guest>,
    /// What each task that has said hello brought.
    members: Vec<Member>,
}

/// A connection.
struct Guest {
    channel: Channel,
    peer: Peer,
    /// Which task it is, once it has said so and was believed.
    task: Option<u32>,
    /// It has everything.
    has_all: bool,
}

/// What to do with a connection after something was heard from it.
#[derive(PartialEq, Eq)]
enum Verdict {
    Keep,
    Drop,
}

impl Table<'_> {
    /// `false` when the job runs already.
    fn run(&mut self, elsewhere: &mut dyn FnMut() -> Search) -> Result<bool> {
        let listener = listen(self.round)?;
        while self.members.len() < self.round.common.len() {
            if self.serve(Some(&listener))? {
                continue;
            }
            if elsewhere() == Search::Back {
                return Ok(false);
            }
            check_ended(self.round, &mut self.missing().into_iter())?;
        }
        // Before anyone is answered: no later round may find this one's listener.
        drop(listener);
        self.guests.retain(|guest| guest.task.is_some());

        self.hand_out()?;
        while !self.guests.iter().all(|guest| guest.has_all) {
            self.serve(None)?;
        }
        let go = ToMember::Go.encode();
        for guest in &self.guests {
            // Whoever has died since it had everything is missed by those who talk to it, not here.
            let _ = guest.channel.send(&go, &[], self.round.deadline);
        }
        Ok(true)
    }

    /// Waits a moment for something to happen, and deals with it. `false` when nothing has.
    fn serve(&mut self, listener: Option<&Listener>) -> Result<bool> {
        let round = self.round;
        let mut watched: Vec<_> =
            self.guests.iter().map(|guest| (guest.channel.as_fd(), PollFlags::IN)).collect();
        watched.extend(listener.map(|listener| (listener.as_fd(), PollFlags::IN)));
        let moment = Deadline::after(BETWEEN_QUESTIONS.min(round.deadline.left()));
        let ready = wait(&watched, moment).map_err(|error| trouble(round, &error))?;
        if !ready.contains(&true) {
            if !round.deadline.has_passed() {
                return Ok(false);
            }
            return Err(self.incomplete(&format!("the rendezvous was not over within {:?}", round.patience)));
        }

        let mut guests = std::mem::take(&mut self.guests);
        let mut outcome = Ok(());
        let mut ready = ready.into_iter();
        guests.retain_mut(|guest| {
            if !ready.next().unwrap_or(false) || outcome.is_err() {
                return true;
            }
            match self.hear(guest) {
                Ok(verdict) => verdict == Verdict::Keep,
                Err(error) => {
                    outcome = Err(error);
                    true
                }
            }
        });
        self.guests = guests;
        outcome?;

        if let Some(listener) = listener {
            while let Some(channel) = listener.accept().map_err(|error| trouble(round, &error))? {
                let peer = channel.peer().map_err(|error| trouble(round, &error))?;
                // Another user gets no answer at all.
                if peer.uid == round.key.uid {
                    self.guests.push(Guest { channel, peer, task: None, has_all: false });
                }
            }
        }
        Ok(true)
    }

    /// Deals with one message of a guest, or with its end.
    fn hear(&mut self, guest: &mut Guest) -> Result<Verdict> {
        let Received { bytes, fds } = match guest.channel.receive() {
            Ok(Receive::Message(received)) => received,
            Ok(Receive::Nothing) => return Ok(Verdict::Keep),
            Ok(Receive::Closed) => {
                return match guest.task {
                    // Somebody who only wanted to know who listens here.
                    None => Ok(Verdict::Drop),
                    Some(task) => {
                        let pid = guest.peer.pid;
                        Err(self.incomplete(&format!("task {task} (process {pid}) left the rendezvous")))
                    }
                };
            }
            Err(error) => return Err(trouble(self.round, &error)),
        };
        match (ToRoot::decode(&bytes), guest.task) {
            (Some(ToRoot::Hello(hello)), None) => self.admit(guest, hello, fds),
            (Some(ToRoot::Have), Some(_)) => {
                guest.has_all = true;
                Ok(Verdict::Keep)
            }
            (Some(ToRoot::GivingUp(why)), Some(task)) => {
                Err(self.incomplete(&format!("task {task} gives up: {why}")))
            }
            (_, None) => Ok(self.refuse(guest, "do all tasks use the same version of the library?")),
            (_, Some(task)) => Err(failed(format!(
                "task {task} (process {}) sent something that is not understood",
                guest.peer.pid
            ))),
        }
    }

    /// Believes a hello, or not.
    fn admit(&mut self, guest: &mut Guest, hello: Hello, fds: Vec<OwnedFd>) -> Result<Verdict> {
        let Hello { task, tasks, secret, blob, fds: count } = hello;
        let Peer { pid, uid } = guest.peer;
        if !self.round.key.admits(&secret) {
            return Ok(self.refuse(guest, "LAPI_JOB_SECRET is not the same in all tasks"));
        }
        // Either of these means that two jobs share a key, or that the environment of a task is wrong. To go on
        // without the newcomer could mean to go on with a task of another job.
        if tasks != self.round.tasks {
            return Err(failed(format!(
                "task {task} (process {pid}) says that the job has {tasks} tasks, task {} says {}; {}",
                self.round.task,
                self.round.tasks,
                self.round.job()
            )));
        }
        if let Some(other) = self.members.iter().find(|member| member.task == task) {
            return Err(failed(format!(
                "processes {} and {pid} both say that they are task {task}; {}; jobs that run at the same time \
                 need different values of MP_PARTITION",
                other.pid,
                self.round.job()
            )));
        }
        if self.round.common.binary_search(&task).is_err() {
            return Err(failed(format!(
                "task {task} (process {pid}) came to the rendezvous of tasks {}; does MP_COMMON_TASKS say the same \
                 in all of them?",
                list(&self.round.common)
            )));
        }
        if fds.len() != count as usize {
            return Err(failed(format!("task {task} (process {pid}): descriptors were lost on the way")));
        }
        self.members.push(Member { task, pid, uid, blob, fds });
        guest.task = Some(task);
        // If it is gone already, the next look at the connection says so.
        let _ = guest.channel.send(&ToMember::Welcome.encode(), &[], self.round.deadline);
        Ok(Verdict::Keep)
    }

    /// Sends everything to everyone.
    fn hand_out(&mut self) -> Result<()> {
        let records: Vec<Record> = self
            .members
            .iter()
            .map(|member| Record {
                task: member.task,
                pid: member.pid,
                uid: member.uid,
                blob: member.blob.clone(),
                fds: member.fds.len() as u32,
            })
            .collect();
        let mut rest = self.members.iter();
        for part in parts(&records) {
            let fds: Vec<BorrowedFd<'_>> =
                rest.by_ref().take(part.len()).flat_map(|member| &member.fds).map(AsFd::as_fd).collect();
            let bytes = ToMember::Part(part.to_vec()).encode();
            for guest in &self.guests {
                if let Err(error) = guest.channel.send(&bytes, &fds, self.round.deadline) {
                    let task = guest.task.unwrap_or_default();
                    let pid = guest.peer.pid;
                    return Err(
                        self.incomplete(&format!("task {task} (process {pid}) takes nothing: {error}"))
                    );
                }
            }
        }
        Ok(())
    }

    fn refuse(&self, guest: &Guest, why: &str) -> Verdict {
        let round = self.round;
        let why = format!(
            "task {} (process {}) does not let process {} take part in the rendezvous: {why}; {}",
            round.task,
            std::process::id(),
            guest.peer.pid,
            round.job()
        );
        let _ = guest.channel.try_send(&fail(&failed(why)), &[]);
        Verdict::Drop
    }

    /// Tells everyone that nothing comes of the round. Whoever has no room for the message finds the connection closed.
    fn dismiss(&self, bytes: &[u8]) {
        for guest in &self.guests {
            let _ = guest.channel.try_send(bytes, &[]);
        }
    }

    /// The tasks that have not said hello.
    fn missing(&self) -> Vec<u32> {
        let is_missing = |task: &u32| self.members.iter().all(|member| member.task != *task);
        self.round.common.iter().copied().filter(is_missing).collect()
    }

    /// The error of a round from which tasks are missing.
    fn incomplete(&self, why: &str) -> Error {
        let missing = self.missing();
        let missing = match missing.len() {
            0 => "all tasks had come".to_owned(),
            1 => format!("task {} did not come", list(&missing)),
            _ => format!("tasks {} did not come", list(&missing)),
        };
        failed(format!("{why}; {missing}; {}", self.round.job()))
    }
}

/// Takes the round's name, waiting for whoever holds it until the deadline.
fn listen(round: &Round) -> Result<Listener> {
    let mut holder = None;
    loop {
        if let Some(listener) = Listener::bind(&round.name).map_err(|error| trouble(round, &error))? {
            return Ok(listener);
        }
        let is_over = round.deadline.has_passed();
        if holder.is_none() || is_over {
            holder = who_listens(&round.name).or(holder);
        }
        let pid = match holder {
            Some(Peer { pid, uid }) if uid != round.key.uid => {
                return Err(failed(format!(
                    "user {uid} (process {pid}) holds the name of this job's rendezvous; {}; start the job with \
                     poe, which gives it a secret name",
                    round.job()
                )));
            }
            Some(Peer { pid, .. }) => format!("process {pid}"),
            None => "a process that cannot be named".to_owned(),
        };
        if is_over {
            return Err(failed(format!(
                "{pid} held the rendezvous of this job for {:?}; {}; jobs that run at the same time need different \
                 values of MP_PARTITION",
                round.patience,
                round.job()
            )));
        }
        round.deadline.sleep(PAUSE);
    }
}

fn who_listens(name: &str) -> Option<Peer> {
    Channel::connect(name).ok()??.peer().ok()
}

fn fail(error: &Error) -> Vec<u8> {
    ToMember::Fail(error.code, error.detail.clone()).encode()
}
