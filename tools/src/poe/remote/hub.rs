//! The thread of `poe` that passes notes between it and the tasks on other machines, in the place
//! of a supervisor. It waits for no machine alone: one that has vanished, or does not read,
//! delays no other one.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ChildStdin;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill, raise};
use nix::unistd::Pid;
use rustix::event::{self, Timespec};
use rustix::process::{PidfdFlags, pidfd_open};

use super::super::error::Error;
use super::super::notes::{Arrived, Exchange, Note};
use super::link::{self, Connection};
use super::mirror::put_end;
use super::peer::{self, Peer};

/// How long the launcher may take to end after the tasks, and the tasks after it, and then once
/// more after a signal.
const GRACE: Duration = Duration::from_secs(5);
/// How long the tasks may take once they are killed: the user has asked twice, or they have
/// had their time.
const SHORT_GRACE: Duration = Duration::from_secs(1);
/// How long what a lost task has written may still be on its way.
const PARTING: Duration = Duration::from_secs(2);

/// A task that is connected: its control connection, and those of its output and error, which are
/// read elsewhere.
pub(super) type Connected = (Connection, Vec<Weak<File>>);

/// What `poe` keeps of the thread: the socket of the notes, and that of those who look on.
pub(super) struct Ends {
    pub notes: UnixStream,
    pub looks: UnixStream,
}

/// Sends the tasks their orders, and passes notes from then on. Returns `poe`'s ends.
/// `input` is the launcher's, where that is a pipe: it does not end before the launcher does.
pub(super) fn start(
    connected: Vec<Connected>,
    orders: Vec<Vec<Vec<u8>>>,
    (launcher, input): (Pid, Option<ChildStdin>),
) -> Result<Ends, Error> {
    let failed = |error| Error::system("cannot start the thread that passes notes", error);
    let (ours, socket) = UnixStream::pair().map_err(failed)?;
    socket.set_nonblocking(true).map_err(failed)?;
    let (looks, looked) = UnixStream::pair().map_err(failed)?;
    looked.set_nonblocking(true).map_err(failed)?;
    let pid = rustix::process::Pid::from_raw(launcher.as_raw()).expect("a process has a number");
    let ended = pidfd_open(pid, PidfdFlags::empty()).map_err(|errno| failed(errno.into()))?;
    for (control, _) in &connected {
        control.set_nonblocking(true).map_err(failed)?;
    }
    let run = move || {
        Hub::new(connected, (socket, looked), launcher, Some(ended)).run(orders);
        drop(input);
    };
    thread::Builder::new().name("poe-notes".into()).spawn(run).map_err(failed)?;
    Ok(Ends { notes: ours, looks })
}

pub(super) struct Hub {
    /// `None`: its connection is closed.
    tasks: Vec<Option<Peer>>,
    poe: Exchange<UnixStream>,
    /// What asks for those who look on; `None`: it is gone.
    looks: Option<Exchange<UnixStream>>,
    /// The number of the last look.
    look: u32,
    launcher: Pid,
    /// Readable when the launcher has ended; `None`: that is known.
    launcher_ended: Option<OwnedFd>,
    /// The user was warned that addresses are randomised.
    randomized: bool,
    /// What tasks have written into their files, and the others were not sent yet.
    changes: Vec<u8>,
    /// How long the launcher and the tasks may take to end.
    grace: Duration,
    /// When the tasks that are left are lost.
    until: Option<Instant>,
    /// The connections of the data of lost tasks.
    parting: Vec<Weak<File>>,
}

impl Hub {
    /// Of these connections. The sockets are those of the notes and of those who look on, and
    /// do not block.
    pub(super) fn new(
        connected: Vec<Connected>,
        (socket, looks): (UnixStream, UnixStream),
        launcher: Pid,
        launcher_ended: Option<OwnedFd>,
    ) -> Self {
        let tasks = connected.into_iter().map(|(control, data)| Some(Peer::new(control, data))).collect();
        let (poe, looks, look) = (Exchange::new(socket), Some(Exchange::new(looks)), 0);
        let (randomized, changes, grace, until, parting) = (false, Vec::new(), GRACE, None, Vec::new());
        Self { tasks, poe, looks, look, launcher, launcher_ended, randomized, changes, grace, until, parting }
    }

    pub(super) fn run(mut self, orders: Vec<Vec<Vec<u8>>>) {
        for (task, order) in orders.iter().enumerate() {
            let mut bytes = Vec::new();
            link::write_list(&mut bytes, order).expect("memory takes it");
            self.give(task, &bytes.into());
        }
        drop(orders);
        // An error: `poe` reads no notes any more.
        if self.pass().and_then(|()| self.poe.finish()).is_ok() {
            self.see_the_launcher_off();
            self.end_the_lost();
            let _ = self.poe.send(Note::Done).and_then(|()| self.poe.finish());
        }
    }

    /// Passes notes until no task is connected.
    fn pass(&mut self) -> io::Result<()> {
        while self.tasks.iter().any(Option::is_some) {
            let open: Vec<usize> = (0..self.tasks.len()).filter(|task| self.tasks[*task].is_some()).collect();
            let mut polled = vec![PollFd::new(self.poe.as_fd(), self.poe.events())];
            polled.extend(
                self.launcher_ended.iter().map(|ended| PollFd::new(ended.as_fd(), PollFlags::POLLIN)),
            );
            let first = polled.len();
            polled.extend(
                self.tasks
                    .iter()
                    .flatten()
                    .map(|task| PollFd::new(task.control.as_fd(), task.control.events())),
            );
            polled.extend(self.looks.iter().map(|looks| PollFd::new(looks.as_fd(), looks.events())));
            let _ = poll(&mut polled, poll_timeout(self.until));
            let ready: Vec<PollFlags> =
                polled.iter().map(|polled| polled.revents().unwrap_or(PollFlags::empty())).collect();
            if !ready[0].is_empty() {
                self.poe.write()?;
                self.poe.read()?;
                while let Some(Arrived::Note(note)) = self.poe.next()? {
                    self.send(note);
                }
            }
            if self.looks.is_some() && ready.last().is_some_and(|ready| !ready.is_empty()) {
                self.take_looks();
            }
            for (task, ready) in open.into_iter().zip(&ready[first..]) {
                if ready.contains(PollFlags::POLLOUT)
                    && let Some(task) = &mut self.tasks[task]
                {
                    // As in `give`.
                    let _ = task.control.write();
                }
                if ready.intersects(PollFlags::POLLIN | PollFlags::POLLERR | PollFlags::POLLHUP) {
                    self.take_in(task)?;
                }
            }
            self.pass_changes();
            if first == 2 && !ready[1].is_empty() {
                // The tasks have some time.
                self.launcher_ended = None;
                self.hurry();
            }
            if self.until.is_some_and(|until| until <= Instant::now()) {
                // A task whose connection is closed ends.
                (0..self.tasks.len()).for_each(|task| self.lose(task));
            }
        }
        Ok(())
    }

    /// The tasks that are left are lost after the grace.
    fn hurry(&mut self) {
        let until = Instant::now() + self.grace;
        self.until = Some(self.until.map_or(until, |earlier| earlier.min(until)));
    }

    /// Sends a note of `poe` to the tasks that it concerns.
    fn send(&mut self, note: Note) {
        if matches!(note, Note::Signal { signal } if signal == Signal::SIGKILL as i32) {
            // A machine that has vanished does not reply to it.
            self.grace = SHORT_GRACE;
            self.hurry();
        }
        for number in 0..self.tasks.len() {
            let note = match note {
                Note::SignalTask { task, signal } if task == number => Note::SignalTask { task: 0, signal },
                Note::Signal { .. } | Note::Offer { .. } => note,
                _ => continue,
            };
            self.give(number, &note.bytes().as_slice().into());
        }
        if matches!(note, Note::Signal { signal } if signal == Signal::SIGSTOP as i32) {
            // With the tasks, and not before they know it: `poe` leaves it to this thread. Raised
            // here, the signal lets this thread do nothing more before the process is continued.
            let _ = raise(Signal::SIGSTOP);
        }
    }

    /// Asks the tasks for those who look on.
    fn take_looks(&mut self) {
        let Some(looks) = &mut self.looks else { return };
        if looks.write().and_then(|()| looks.read()).is_err() {
            self.looks = None;
            return;
        }
        while let Ok(Some(Arrived::Note(Note::Look { number }))) = looks.next() {
            self.look = number;
            for task in self.tasks.iter_mut().flatten().filter(|task| !task.ended) {
                task.replies = 0;
                task.look(number);
            }
        }
    }

    /// Passes on what a task says to those who look on, if it was asked.
    fn pass_reply(&mut self, task: usize, number: u32, bytes: &[u8]) {
        let Some(peer) = &mut self.tasks[task] else { return };
        if peer.asked == Some(number) {
            peer.asked = None;
            // It was not sent those after that one, of which the last may be waited for.
            if number != self.look && !peer.ended {
                peer.look(self.look);
            }
        }
        if number == self.look
            && peer.replies > 0
            && let Some(looks) = &mut self.looks
        {
            peer.replies -= 1;
            let head = Note::Reply { task, number, length: bytes.len() }.bytes();
            // One that is gone is seen when it is read.
            let _ = looks.send_bytes([&head[..], bytes].concat().into());
        }
    }

    /// Sends the tasks what others have written into their files. One that does not need it any
    /// more is not waited for.
    fn pass_changes(&mut self) {
        let changes = std::mem::take(&mut self.changes);
        if changes.is_empty() {
            return;
        }
        let head = Note::Changes { length: changes.len() }.bytes();
        let bytes: Arc<[u8]> = [&head[..], &changes].concat().into();
        for number in 0..self.tasks.len() {
            self.give(number, &bytes);
        }
    }

    /// Has bytes sent to a task that has not ended.
    fn give(&mut self, number: usize, bytes: &Arc<[u8]>) {
        if let Some(task) = self.tasks[number].as_mut().filter(|task| !task.ended) {
            // One that is gone is seen when it is read.
            let _ = task.control.send_bytes(bytes.clone());
        }
    }

    /// Takes in what a task has sent.
    fn take_in(&mut self, number: usize) -> io::Result<()> {
        let Some(task) = &mut self.tasks[number] else { return Ok(()) };
        let mut gone = task.control.read().is_err();
        loop {
            let Some(task) = &mut self.tasks[number] else { return Ok(()) };
            match task.control.next() {
                Ok(Some(Arrived::Note(note))) => self.pass_note(number, note)?,
                Ok(Some(Arrived::Changes(changes))) => self.changes.extend(changes),
                Ok(Some(Arrived::Reply { number: look, bytes, .. })) => self.pass_reply(number, look, &bytes),
                Ok(None) => break,
                Err(_) => {
                    gone = true;
                    break;
                }
            }
        }
        if gone {
            self.lose(number);
        }
        Ok(())
    }

    /// Passes a note of a task on, as one with the number that the task has here. One that says
    /// what no task says is lost.
    fn pass_note(&mut self, number: usize, note: Note) -> io::Result<()> {
        let Some(task) = &mut self.tasks[number] else { return Ok(()) };
        match note {
            Note::Started { .. } => {}
            Note::Exited { .. } | Note::Killed { .. } => task.ended = true,
            Note::NotStarted { .. } => {
                task.ended = true;
                self.send(Note::Signal { signal: Signal::SIGKILL as i32 });
            }
            Note::Randomized { .. } if std::mem::replace(&mut self.randomized, true) => return Ok(()),
            Note::Randomized { .. } => {}
            Note::Done if task.ended => {
                self.tasks[number] = None;
                return Ok(());
            }
            _ => {
                self.lose(number);
                return Ok(());
            }
        }
        self.poe.send(note.of_task(number))
    }

    /// The connection to a task has ended, or is closed here: the task ends, and its machine does
    /// not report that to the others.
    fn lose(&mut self, number: usize) {
        let Some(task) = self.tasks[number].take() else { return };
        let reported = task.ended;
        self.parting.extend(task.close());
        if !reported {
            put_end(&mut self.changes, number);
            let _ = self.poe.send(Note::Lost { task: number });
        }
    }

    /// Waits until the launcher has ended, and hastens it. `poe` reaps it.
    fn see_the_launcher_off(&self) {
        for signal in [None, Some(Signal::SIGTERM), Some(Signal::SIGKILL)] {
            let Some(ended) = &self.launcher_ended else { return };
            if let Some(signal) = signal {
                let _ = kill(self.launcher, signal);
            }
            let until = Instant::now() + self.grace;
            while Instant::now() < until {
                let mut polled = [PollFd::new(ended.as_fd(), PollFlags::POLLIN)];
                if poll(&mut polled, poll_timeout(Some(until))).is_ok_and(|ready| ready > 0) {
                    return;
                }
            }
        }
    }

    /// Ends the connections of the data of lost tasks: a machine that has vanished does not.
    fn end_the_lost(&self) {
        let until = Instant::now() + PARTING;
        // From here on they are not closed before they have ended, or are ended: it is not long.
        let mut parting: Vec<Arc<File>> = self.parting.iter().filter_map(Weak::upgrade).collect();
        while !parting.is_empty() && Instant::now() < until {
            let left = until.saturating_duration_since(Instant::now()).as_millis() as i64 + 1;
            let left = Timespec { tv_sec: left / 1000, tv_nsec: left % 1000 * 1_000_000 };
            let mut polled: Vec<event::PollFd> =
                parting.iter().map(|data| event::PollFd::new(data, event::PollFlags::RDHUP)).collect();
            let _ = event::poll(&mut polled, Some(&left));
            let mut open =
                polled.iter().map(|polled| polled.revents().is_empty()).collect::<Vec<_>>().into_iter();
            parting.retain(|_| open.next() == Some(true));
        }
        parting.iter().for_each(|data| peer::end(data));
    }
}

fn poll_timeout(until: Option<Instant>) -> PollTimeout {
    // Rounded up: a sleep that is too short would be one of many.
    until.map_or(PollTimeout::NONE, |until| {
        let left = until.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
    })
}

#[cfg(test)]
mod tests;
