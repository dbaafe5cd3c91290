//! Standard input of the tasks (MP_STDINMODE).

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Stdin, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::str::FromStr;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::stat::{SFlag, fstat, makedev};
use nix::unistd::{Whence, getpgrp, lseek, tcgetpgrp};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, Event, EventData, EventFlags};
use tempfile::SpooledTempFile;

use super::error::{Error, reason, say};
use openlapi::base::patient::Patient;

/// Which tasks get standard input. The others read an end of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StdinMode {
    /// Every task gets all of it.
    All,
    /// No task.
    None,
    /// One task gets it, and reads from `poe`'s own descriptor.
    Only(usize),
}

impl FromStr for StdinMode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text.to_ascii_lowercase().as_str() {
            "all" => Ok(Self::All),
            "none" => Ok(Self::None),
            number => number.parse().map(Self::Only).map_err(|_| ()),
        }
    }
}

/// What tasks have not read goes to disk beyond this.
const KEPT_IN_MEMORY: usize = 1 << 20;

/// How often a terminal that has something for another process group is looked at again.
const LOOK: Duration = Duration::from_millis(200);

/// Standard input of the others again, where it is a file: a description of its own, which begins
/// where that one stands, so that no task moves it for another one.
pub(super) fn reopened() -> Option<File> {
    let kind = SFlag::from_bits_truncate(fstat(io::stdin()).ok()?.st_mode) & SFlag::S_IFMT;
    if kind != SFlag::S_IFREG {
        return None;
    }
    let place = lseek(io::stdin(), 0, Whence::SeekCur).ok()?;
    let mut own = File::open("/proc/self/fd/0").ok()?;
    own.seek(SeekFrom::Start(place as u64)).ok()?;
    Some(own)
}

/// Whether standard input is /dev/null, as is one that was closed.
pub(super) fn is_null() -> bool {
    fstat(io::stdin()).is_ok_and(|stat| {
        SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFCHR
            && stat.st_rdev == makedev(1, 3)
    })
}

/// Standard input of the steps of a job. What `poe` itself has read of a pipe for one step is kept
/// for the next one: each step gets all of it, as it gets all of a file.
pub(super) struct Input {
    /// The steps that follow.
    left: usize,
    /// The thread of the last step, which ends when the pipes of that do.
    copying: Option<JoinHandle<Option<OfPipe>>>,
}

type OfPipe = Copier<Stdin, SpooledTempFile>;

impl Input {
    pub(super) fn of_steps(steps: usize) -> Self {
        Self { left: steps, copying: None }
    }

    /// Copies standard input to all these pipes, those of the next step, in a thread of its own,
    /// until it or they end.
    ///
    /// A terminal is read while `poe` is in its foreground only: what is typed for the shell stays
    /// there. Little of it is read ahead, because what no task reads was typed for the shell, too.
    pub(super) fn copy_to_all(&mut self, pipes: Vec<File>) -> Result<(), Error> {
        self.left = self.left.saturating_sub(1);
        let (before, follows) = (self.copying.take(), self.left > 0);
        let is_terminal = is_our_terminal();
        if is_terminal {
            pipes.iter().for_each(make_short);
        }
        let several = pipes.len() > 1;
        let pipes =
            Pipes::new(pipes).map_err(|error| Error::system("cannot watch the pipes to the tasks", error))?;
        let copy = move || {
            if is_terminal {
                // The system refuses to read it in the background, instead of stopping the job.
                let _ = SigSet::from(Signal::SIGTTIN).thread_block();
            }
            if let Some(file) = if several { reopened() } else { None } {
                Copier::of_file(io::stdin(), pipes, file).run();
                return None;
            }
            let mut copier = match before.and_then(|thread| thread.join().ok()).flatten() {
                Some(before) => before.of_step(pipes),
                None => {
                    let spool = SpooledTempFile::new_in(KEPT_IN_MEMORY, std::env::temp_dir());
                    Copier::new(io::stdin(), pipes, spool)
                }
            };
            copier.keeps_all = follows && !is_terminal;
            copier.run();
            (!is_terminal).then_some(copier)
        };
        let thread = thread::Builder::new().name("poe-input".into()).spawn(copy);
        self.copying =
            Some(thread.map_err(|error| Error::system("cannot start the thread that copies input", error))?);
        Ok(())
    }
}

/// Copies input to pipes. It is read on as soon as one of them has taken all of it. What the others
/// have not taken yet is kept once: a task that does not read delays no other one.
struct Copier<I, K> {
    input: Patient<I>,
    /// Nothing follows what is kept.
    ended: bool,
    pipes: Pipes,
    /// What was read, up to `end`.
    kept: K,
    end: u64,
    /// What all pipes have taken is kept, too.
    keeps_all: bool,
    /// What was read and is not kept yet.
    unkept: Vec<u8>,
    /// The user knows that what was read could not be kept.
    warned: bool,
    buffer: Vec<u8>,
}

/// The pipes to the tasks. One that nothing can be done with costs nothing: there may be many.
struct Pipes {
    /// `None`: the pipe has ended.
    all: Vec<Option<Pipe>>,
    epoll: OwnedFd,
}

struct Pipe {
    file: File,
    /// How much of what is kept it has taken.
    taken: u64,
    /// Whether its room is waited for. If not, it has taken all, and has room.
    awaited: bool,
}

impl Pipes {
    fn new(files: Vec<File>) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (number, file) in files.iter().enumerate() {
            // This end is poe's alone.
            let _ = fcntl(file, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
            epoll::add(&epoll, file, EventData::new_u64(number as u64), watched(true))?;
        }
        let all = files.into_iter().map(|file| Some(Pipe { file, taken: 0, awaited: true })).collect();
        Ok(Self { all, epoll })
    }

    fn open(&self) -> impl Iterator<Item = &Pipe> {
        self.all.iter().flatten()
    }

    /// What has happened: the pipe, and whether it has room.
    fn ready(&self) -> Vec<(usize, bool)> {
        let mut events = Vec::with_capacity(self.all.len());
        let _ = epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&Timespec::default()));
        let of_event = |event: Event| {
            let flags = event.flags;
            (event.data.u64() as usize, flags == EventFlags::OUT)
        };
        events.into_iter().map(of_event).collect()
    }

    /// Waits for the room of a pipe, or no more.
    fn set_awaited(&mut self, number: usize, awaited: bool) {
        if let Some(pipe) = self.all[number].as_mut().filter(|pipe| pipe.awaited != awaited) {
            pipe.awaited = awaited;
            let data = EventData::new_u64(number as u64);
            let _ = epoll::modify(&self.epoll, &pipe.file, data, watched(awaited));
        }
    }

    fn close(&mut self, number: usize) {
        if let Some(pipe) = self.all[number].take() {
            let _ = epoll::delete(&self.epoll, &pipe.file);
        }
    }
}

/// What is waited for at a pipe. The end of a connection to another machine is no error by itself.
fn watched(room: bool) -> EventFlags {
    if room { EventFlags::OUT | EventFlags::RDHUP } else { EventFlags::RDHUP }
}

impl<I: Read + AsFd> Copier<I, File> {
    /// The file is all that there is, to its end, whatever length it is said to have: that of a
    /// file of /proc is 0.
    fn of_file(input: I, pipes: Pipes, mut file: File) -> Self {
        let place = file.stream_position().unwrap_or(0);
        let mut copier = Self { ended: true, end: u64::MAX, ..Self::new(input, pipes, file) };
        copier.pipes.all.iter_mut().flatten().for_each(|pipe| pipe.taken = place);
        copier
    }
}

impl<I: Read + AsFd, K: Read + Write + Seek> Copier<I, K> {
    fn new(input: I, pipes: Pipes, kept: K) -> Self {
        let (ended, end, keeps_all, unkept, warned) = (false, 0, false, Vec::new(), false);
        let (input, buffer) = (Patient(input), vec![0; 1 << 16]);
        Self { input, ended, pipes, kept, end, keeps_all, unkept, warned, buffer }
    }

    /// For the next step: its pipes get what is kept, and what follows.
    fn of_step(self, pipes: Pipes) -> Self {
        Self { pipes, ..self }
    }

    fn run(&mut self) {
        while self.pipes.open().next().is_some() {
            self.pass_some();
            if self.ended && self.unkept.is_empty() {
                for number in 0..self.pipes.all.len() {
                    if self.pipes.all[number].as_ref().is_some_and(|pipe| pipe.taken >= self.end) {
                        self.pipes.close(number);
                    }
                }
            }
        }
    }

    /// Waits until something can be read or written, and does it.
    fn pass_some(&mut self) {
        let hungry = self.pipes.open().any(|pipe| !pipe.awaited);
        let reads = hungry && !self.ended && self.unkept.is_empty();
        let mut polled = vec![PollFd::new(self.pipes.epoll.as_fd(), PollFlags::POLLIN)];
        polled.extend(reads.then(|| PollFd::new(self.input.0.as_fd(), PollFlags::POLLIN)));
        while poll(&mut polled, PollTimeout::NONE) == Err(Errno::EINTR) {}
        let is_input = polled.get(1).is_some_and(|input| input.any() != Some(false));
        for (number, has_room) in self.pipes.ready() {
            if has_room {
                self.give(number);
            } else {
                self.pipes.close(number);
            }
        }
        // Nothing is read for those that have ended.
        if is_input && self.pipes.open().next().is_some() {
            self.take();
        }
        self.make_room();
        if !self.unkept.is_empty() {
            self.keep();
        }
    }

    /// Writes to a pipe what it has not taken, as far as it has room.
    fn give(&mut self, number: usize) {
        let Some(pipe) = &mut self.pipes.all[number] else { return };
        if pipe.taken >= self.end {
            return self.pipes.set_awaited(number, false);
        }
        let most = (self.end - pipe.taken).min(self.buffer.len() as u64) as usize;
        let read = self.kept.seek(SeekFrom::Start(pipe.taken));
        let given = read.and_then(|_| self.kept.read(&mut self.buffer[..most])).and_then(|length| {
            // The end of a file.
            if length == 0 { Ok(0) } else { pipe.file.write(&self.buffer[..length]) }
        });
        match given {
            Ok(written @ 1..) => pipe.taken += written as u64,
            Err(error) if is_transient(&error) => {}
            Ok(_) | Err(_) => self.pipes.close(number),
        }
    }

    /// Reads what is there.
    fn take(&mut self) {
        match self.input.read(&mut self.buffer) {
            Ok(length @ 1..) => self.unkept = self.buffer[..length].to_vec(),
            Err(_) if is_in_background() => thread::sleep(LOOK),
            Ok(_) | Err(_) => self.ended = true,
        }
    }

    /// Forgets what all have taken: when that is all, or more than the rest, which then moves to
    /// its place. So what is kept does not grow with the input where all tasks read.
    fn make_room(&mut self) {
        if self.ended || self.keeps_all {
            return;
        }
        let taken = self.pipes.open().map(|pipe| pipe.taken).min().unwrap_or(self.end);
        let left = self.end - taken;
        let is_much = taken >= KEPT_IN_MEMORY as u64 / 2 && taken >= left;
        if (left == 0 || is_much) && self.move_down(taken).is_ok() {
            self.end = left;
            self.pipes.all.iter_mut().flatten().for_each(|pipe| pipe.taken -= taken);
        }
    }

    /// Moves what is kept from this place on to the beginning, where there is room for it.
    fn move_down(&mut self, from: u64) -> io::Result<()> {
        let mut to = 0;
        while from + to < self.end {
            let length = (self.end - from - to).min(self.buffer.len() as u64) as usize;
            let piece = &mut self.buffer[..length];
            self.kept.seek(SeekFrom::Start(from + to))?;
            self.kept.read_exact(piece)?;
            self.kept.seek(SeekFrom::Start(to))?;
            self.kept.write_all(piece)?;
            to += length as u64;
        }
        Ok(())
    }

    /// Keeps what was read. Where there is no room for it, what all have taken makes room.
    fn keep(&mut self) {
        let place = self.kept.seek(SeekFrom::Start(self.end));
        let Err(error) = place.and_then(|_| self.kept.write_all(&self.unkept)) else {
            self.end += self.unkept.len() as u64;
            self.unkept.clear();
            return (0..self.pipes.all.len()).for_each(|number| self.pipes.set_awaited(number, true));
        };
        let is_lost = self.end == 0;
        let then = if is_lost {
            self.ended = true;
            self.unkept.clear();
            "it ends here"
        } else if self.keeps_all {
            "the commands that follow get the rest only"
        } else {
            "a task that does not read delays the others"
        };
        let was_kept = std::mem::take(&mut self.keeps_all);
        if is_lost || was_kept || !std::mem::replace(&mut self.warned, true) {
            say(&format!(
                "standard input that tasks have not read finds no room in {} (TMPDIR): {}; {then} (-stdinmode 0: task 0 alone gets it)",
                std::env::temp_dir().display(),
                reason(&error)
            ));
        }
        if was_kept && !is_lost {
            self.make_room();
            self.keep();
        }
    }
}

/// Whether a read or a write is to be tried again.
fn is_transient(error: &io::Error) -> bool {
    [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind())
}

/// Gives a pipe the least room: it has none before all that was written to it has been read.
fn make_short(pipe: &File) {
    let _ = fcntl(pipe, FcntlArg::F_SETPIPE_SZ(1));
}

/// Whether standard input is the terminal of this session: what is typed there may be
/// for the shell.
pub(super) fn is_our_terminal() -> bool {
    tcgetpgrp(std::io::stdin()).is_ok()
}

/// Whether it is, and another process group uses it.
pub(super) fn is_in_background() -> bool {
    tcgetpgrp(std::io::stdin()).is_ok_and(|foreground| foreground != getpgrp())
}

#[cfg(test)]
mod tests;
