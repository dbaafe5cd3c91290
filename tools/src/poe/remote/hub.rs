//! The thread of `poe` that passes notes between it and the tasks on other machines, in the place of a supervisor.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::process::{PidfdFlags, pidfd_open};

use super::super::error::Error;
use super::super::supervisor::Note;
use super::link::{self, Connection};
use super::mirror::{LONGEST, put_end};

/// How long the launcher may take to end after the tasks, and the tasks after it, and then once more after a signal.
const GRACE: Duration = Duration::from_secs(5);

/// Sends the tasks their orders, and passes notes from then on. Returns the socket of the notes.
pub(super) fn start(
    controls: Vec<Connection>,
    orders: Vec<Vec<Vec<u8>>>,
    launcher: Pid,
) -> Result<UnixStream, Error> {
    let failed = |error| Error::system("cannot start the thread that passes notes", error);
    let (ours, socket) = UnixStream::pair().map_err(failed)?;
    let pid = rustix::process::Pid::from_raw(launcher.as_raw()).expect("a process has a number");
    let ended = pidfd_open(pid, PidfdFlags::empty()).map_err(|errno| failed(errno.into()))?;
    let tasks = controls.into_iter().map(|stream| Some(Task { stream, ended: false })).collect();
    let hub =
        Hub { tasks, socket, launcher, launcher_ended: Some(ended), randomized: false, changes: Vec::new() };
    thread::Builder::new().name("poe-notes".into()).spawn(move || hub.run(orders)).map_err(failed)?;
    Ok(ours)
}

struct Hub {
    /// `None`: its connection is closed.
    tasks: Vec<Option<Task>>,
    socket: UnixStream,
    launcher: Pid,
    /// Readable when the launcher has ended; `None`: that is known.
    launcher_ended: Option<OwnedFd>,
    /// That addresses are randomised was reported.
    randomized: bool,
    /// What tasks have written into their files, and the others were not sent yet.
    changes: Vec<u8>,
}

struct Task {
    stream: Connection,
    /// Its end was reported.
    ended: bool,
}

impl Hub {
    fn run(mut self, orders: Vec<Vec<Vec<u8>>>) {
        for (task, order) in orders.iter().enumerate() {
            let written = self.tasks[task].as_mut().map(|task| link::write_list(&mut task.stream, order));
            if matches!(written, Some(Err(_))) {
                self.lose(task);
            }
        }
        drop(orders);
        // An error: `poe` reads no notes any more.
        if self.pass().is_ok() {
            self.see_the_launcher_off();
            let _ = Note::Done.write(&mut self.socket);
        }
    }

    /// Passes notes until no task is connected.
    fn pass(&mut self) -> io::Result<()> {
        // When the launcher has ended before the tasks, they have until then.
        let mut until: Option<Instant> = None;
        while self.tasks.iter().any(Option::is_some) {
            let open: Vec<usize> = (0..self.tasks.len()).filter(|task| self.tasks[*task].is_some()).collect();
            let mut polled = vec![PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            polled.extend(
                self.launcher_ended.iter().map(|ended| PollFd::new(ended.as_fd(), PollFlags::POLLIN)),
            );
            let first = polled.len();
            let streams = self.tasks.iter().flatten().map(|task| &task.stream);
            polled.extend(streams.map(|stream| PollFd::new(stream.as_fd(), PollFlags::POLLIN)));
            let _ = poll(&mut polled, poll_timeout(until));
            let ready: Vec<bool> = polled.iter().map(|polled| polled.any() == Some(true)).collect();
            if ready[0] {
                let note = Note::read(&mut self.socket)?;
                self.send(note);
            }
            for (task, _) in open.into_iter().zip(&ready[first..]).filter(|(_, ready)| **ready) {
                self.pass_note(task)?;
            }
            self.pass_changes();
            if first == 2 && ready[1] {
                self.launcher_ended = None;
                until = Some(Instant::now() + GRACE);
            }
            if until.is_some_and(|until| until <= Instant::now()) {
                // A task whose connection is closed ends.
                (0..self.tasks.len()).for_each(|task| self.lose(task));
            }
        }
        Ok(())
    }

    /// Sends a note of `poe` to the tasks that it concerns.
    fn send(&mut self, note: Note) {
        for (number, task) in self.tasks.iter_mut().enumerate() {
            let Some(task) = task.as_mut().filter(|task| !task.ended) else { continue };
            let note = match note {
                Note::SignalTask { task, signal } if task == number => Note::SignalTask { task: 0, signal },
                Note::Signal { .. } | Note::Offer { .. } => note,
                _ => continue,
            };
            // One that is gone is seen when it is read.
            let _ = note.write(&mut task.stream);
        }
    }

    /// Sends the tasks what others have written into their files. One that does not need it any more is not waited for.
    fn pass_changes(&mut self) {
        let changes = std::mem::take(&mut self.changes);
        if changes.is_empty() {
            return;
        }
        for task in self.tasks.iter_mut().flatten().filter(|task| !task.ended) {
            let head = Note::Changes { length: changes.len() }.write(&mut task.stream);
            // One that is gone is seen when it is read.
            let _ = head.and_then(|()| task.stream.write_all(&changes));
        }
    }

    /// Takes in what a task has written into its file.
    fn collect(&mut self, number: usize, length: usize) {
        let Some(task) = &mut self.tasks[number] else { return };
        let before = self.changes.len();
        self.changes.resize(before + length.min(LONGEST), 0);
        if task.stream.read_exact(&mut self.changes[before..]).is_err() {
            self.changes.truncate(before);
            self.lose(number);
        }
    }

    /// Passes a note of a task on.
    fn pass_note(&mut self, number: usize) -> io::Result<()> {
        let Some(task) = &mut self.tasks[number] else { return Ok(()) };
        let note = match Note::read(&mut task.stream) {
            Ok(note) => note,
            Err(_) => {
                self.lose(number);
                return Ok(());
            }
        };
        match note {
            Note::Exited { .. } | Note::Killed { .. } => task.ended = true,
            Note::NotStarted { .. } => {
                task.ended = true;
                self.send(Note::Signal { signal: Signal::SIGKILL as i32 });
            }
            Note::Changes { length } => {
                self.collect(number, length);
                return Ok(());
            }
            Note::Randomized { .. } if std::mem::replace(&mut self.randomized, true) => return Ok(()),
            Note::Done => {
                if task.ended {
                    self.tasks[number] = None;
                } else {
                    self.lose(number);
                }
                return Ok(());
            }
            _ => {}
        }
        note.of_task(number).write(&mut self.socket)
    }

    /// The connection to a task has ended, or is closed here: the task ends, and its machine does not report that to the others.
    fn lose(&mut self, number: usize) {
        if self.tasks[number].take().is_some_and(|task| !task.ended) {
            put_end(&mut self.changes, number);
            let _ = Note::Lost { task: number }.write(&mut self.socket);
        }
    }

    /// Waits until the launcher has ended, and hastens it. `poe` reaps it.
    fn see_the_launcher_off(&self) {
        for signal in [None, Some(Signal::SIGTERM), Some(Signal::SIGKILL)] {
            let Some(ended) = &self.launcher_ended else { return };
            if let Some(signal) = signal {
                let _ = kill(self.launcher, signal);
            }
            let until = Instant::now() + GRACE;
            while Instant::now() < until {
                let mut polled = [PollFd::new(ended.as_fd(), PollFlags::POLLIN)];
                if poll(&mut polled, poll_timeout(Some(until))).is_ok_and(|ready| ready > 0) {
                    return;
                }
            }
        }
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
mod tests {
    use super::*;
    use openlapi::wire::board::Word;
    use std::net::{TcpListener, TcpStream};

    /// The ends of a connection.
    fn connection() -> (Connection, Connection) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let here = TcpStream::connect(address).expect("it listens");
        (here, listener.accept().expect("it has connected").0)
    }

    #[test]
    fn the_loss_of_a_task_is_passed_on_to_the_others() {
        let (first, second) = (connection(), connection());
        let (mut poe, socket) = UnixStream::pair().expect("sockets");
        let tasks = [first.0, second.0].map(|stream| Some(Task { stream, ended: false })).into();
        let (launcher, launcher_ended) = (nix::unistd::getpid(), None);
        let mut hub = Hub { tasks, socket, launcher, launcher_ended, randomized: false, changes: Vec::new() };
        let thread = thread::spawn(move || hub.pass());
        drop(first.1);
        let mut other = second.1;
        other.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
        let mut expected = Word::Ended.at(0).to_le_bytes().to_vec();
        expected.extend([4_u32, 1].map(u32::to_le_bytes).concat());
        let note = Note::read(&mut other).expect("a note comes");
        assert_eq!(note, Note::Changes { length: expected.len() });
        let mut changes = vec![0; expected.len()];
        other.read_exact(&mut changes).expect("it follows");
        assert_eq!(changes, expected);
        drop(other);
        assert_eq!(Note::read(&mut poe).expect("a note"), Note::Lost { task: 0 });
        assert_eq!(Note::read(&mut poe).expect("a note"), Note::Lost { task: 1 });
        thread.join().expect("it ends").expect("nothing fails");
    }
}
