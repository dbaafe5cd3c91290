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

use super::board::Board;
use super::elsewhere::Elsewhere;
use super::state::{Job, Task};

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

/// All of them.
pub(super) struct Viewers {
    listener: Option<UnixListener>,
    waiting: Vec<UnixStream>,
    number: u64,
    until: Option<Instant>,
    /// What has been replied.
    found: BTreeMap<usize, Task>,
    /// The tasks, where `poe` has no sockets to them.
    elsewhere: Option<Elsewhere>,
}

impl Viewers {
    /// Listens. A `poe` that cannot has none.
    pub(super) fn open(elsewhere: Option<Elsewhere>) -> Self {
        let listener = address(std::process::id() as i32).and_then(|address| {
            let listener = UnixListener::bind_addr(&address)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let (waiting, found) = (Vec::new(), BTreeMap::new());
        Self { listener: listener.ok(), waiting, number: 0, until: None, found, elsewhere }
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
        let question = FromLauncher::Look(self.number).encode();
        for (_, socket) in board.sockets() {
            let _ = socket.send(question.as_bytes());
        }
        if let Some(elsewhere) = &mut self.elsewhere {
            elsewhere.ask(self.number as u32);
        }
    }

    /// Takes in what tasks on other machines have replied.
    pub(super) fn take_elsewhere(&mut self) {
        let asked = self.until.map(|_| self.number as u32);
        if let Some(elsewhere) = &mut self.elsewhere {
            self.found.extend(elsewhere.take(asked));
        }
    }

    /// A task has replied.
    pub(super) fn take(&mut self, number: u64, task: usize, report: &Report) {
        if number == self.number && self.until.is_some() {
            self.found.insert(task, Task::of(report.pid, Some(report)));
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
        let has_replied = |task| self.found.get(&task).is_some_and(|found| found.replied);
        let complete = (0..).zip(&pids).all(|(task, pid)| *pid == 0 || has_replied(task));
        if !complete && Instant::now() < until {
            return;
        }
        self.until = None;
        let mut found = std::mem::take(&mut self.found);
        let states = pids.into_iter().zip(board.have_ended());
        let tasks = (0..)
            .zip(states)
            .map(|(task, (pid, ended))| {
                let host = self.elsewhere.as_ref().and_then(|elsewhere| elsewhere.host(task));
                let known = found.remove(&task).filter(|_| pid != 0);
                let known = known.unwrap_or_else(|| match host {
                    Some(_) => Task { pid, ..Task::default() },
                    None => Task::of(pid, None),
                });
                Task { task, ended, host, ..known }
            })
            .collect();
        let text = serde_json::to_string(&Job { tasks }).unwrap_or_default() + "\n";
        for mut viewer in self.waiting.drain(..) {
            // One that does not read gets nothing.
            let _ = viewer.write_all(text.as_bytes());
        }
    }
}

/// The user of the job, and root.
fn is_allowed(viewer: &UnixStream) -> bool {
    getsockopt(viewer, sockopt::PeerCredentials)
        .is_ok_and(|peer| peer.uid() == 0 || peer.uid() == geteuid().as_raw())
}
