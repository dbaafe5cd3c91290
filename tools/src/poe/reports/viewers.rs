//! Those who look on: `lapi_top` connects to a socket of `poe`, gets one line of JSON with the
//! state of all tasks, and connects again for the next. Tasks are asked when a viewer has
//! connected, and otherwise never.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::{Duration, Instant};

use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::geteuid;
use openlapi::wire::launcher::{FromLauncher, Report};
use serde::{Deserialize, Serialize};

use super::board::Board;
use super::text::state_of;

/// How long tasks may take to reply.
const TIMEOUT: Duration = Duration::from_secs(1);
/// How long a viewer may take to read. The reports of tasks wait meanwhile.
const PATIENCE: Duration = Duration::from_millis(200);
/// More of them at once are turned away.
const MOST: usize = 16;

/// The name of the socket, among those that are no files.
pub(crate) fn address(pid: i32) -> std::io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{NAME}{pid}"))
}

/// How the name begins; the number of `poe`'s process follows.
pub(crate) const NAME: &str = "openlapi-poe-";

/// The state of a job.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Job {
    /// The job's tasks run on other machines, where `poe` has no sockets to them.
    pub elsewhere: bool,
    /// The job's tasks.
    pub tasks: Vec<Task>,
}

/// The state of a task.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Task {
    pub task: usize,
    /// The process that uses LAPI, or the task's first one; 0: it has ended, or has not begun.
    pub pid: i32,
    /// The task has ended.
    pub ended: bool,
    /// The state of the process, as `/proc` has it.
    pub state: Option<char>,
    /// The process has replied.
    pub replied: bool,
    /// What it does, as clauses that follow its name.
    pub doing: Vec<String>,
    /// The tasks that it waits for.
    pub waits_for: Vec<usize>,
    /// Sent and received since LAPI_Init.
    pub packets: (u64, u64),
    /// Bytes of data sent and received.
    pub bytes: (u64, u64),
}

/// All of them.
pub(super) struct Viewers {
    listener: Option<UnixListener>,
    waiting: Vec<UnixStream>,
    number: u64,
    until: Option<Instant>,
    replies: BTreeMap<usize, Report>,
}

impl Viewers {
    /// Listens. A `poe` that cannot has none.
    pub(super) fn open() -> Self {
        let listener = address(std::process::id() as i32).and_then(|address| {
            let listener = UnixListener::bind_addr(&address)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let (waiting, replies) = (Vec::new(), BTreeMap::new());
        Self { listener: listener.ok(), waiting, number: 0, until: None, replies }
    }

    pub(super) fn listener(&self) -> Option<&UnixListener> {
        self.listener.as_ref()
    }

    /// Takes in who has connected, and asks the tasks.
    pub(super) fn accept(&mut self, board: &Board) {
        while let Some(Ok((viewer, _))) = self.listener.as_ref().map(UnixListener::accept) {
            let timeout =
                viewer.set_nonblocking(false).and_then(|()| viewer.set_write_timeout(Some(PATIENCE)));
            if timeout.is_ok() && is_allowed(&viewer) && self.waiting.len() < MOST {
                self.waiting.push(viewer);
            }
        }
        if self.waiting.is_empty() || self.until.is_some() {
            return;
        }
        self.number += 1;
        self.until = Some(Instant::now() + TIMEOUT);
        self.replies.clear();
        let question = FromLauncher::Look(self.number).encode();
        for (_, socket) in board.sockets() {
            let _ = socket.send(question.as_bytes());
        }
    }

    /// A task has replied.
    pub(super) fn take(&mut self, number: u64, task: usize, report: Report) {
        if number == self.number && self.until.is_some() {
            self.replies.insert(task, report);
        }
    }

    /// When the viewers get what has come until then.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Sends the state of the job when all have replied, or have had time to.
    pub(super) fn serve(&mut self, board: &Board) {
        let Some(until) = self.until else { return };
        let pids = board.pids();
        let complete = (0..).zip(&pids).all(|(task, pid)| *pid == 0 || self.replies.contains_key(&task));
        if !complete && Instant::now() < until {
            return;
        }
        self.until = None;
        let replies = std::mem::take(&mut self.replies);
        let elsewhere = board.sockets().next().is_none();
        let states = pids.into_iter().zip(board.have_ended());
        let tasks = (0..)
            .zip(states)
            .map(|(task, (pid, ended))| Task::of(task, pid, ended, replies.get(&task)))
            .collect();
        let text = serde_json::to_string(&Job { elsewhere, tasks }).unwrap_or_default() + "\n";
        for mut viewer in self.waiting.drain(..) {
            // One that does not read gets nothing.
            let _ = viewer.write_all(text.as_bytes());
        }
    }
}

impl Task {
    fn of(task: usize, pid: i32, ended: bool, reply: Option<&Report>) -> Self {
        let process = reply.filter(|_| pid != 0).map_or(pid, |reply| reply.pid);
        let traffic = reply.map(|reply| reply.traffic).unwrap_or_default();
        Self {
            task,
            pid: process,
            ended,
            state: if process == 0 { None } else { state_of(process) },
            replied: reply.is_some(),
            doing: reply.map(|reply| reply.clauses.clone()).unwrap_or_default(),
            waits_for: reply.map(|reply| reply.awaited.clone()).unwrap_or_default(),
            packets: traffic.packets,
            bytes: traffic.bytes,
        }
    }
}

/// The user of the job, and root.
fn is_allowed(viewer: &UnixStream) -> bool {
    getsockopt(viewer, sockopt::PeerCredentials)
        .is_ok_and(|peer| peer.uid() == 0 || peer.uid() == geteuid().as_raw())
}
