//! What the tasks write on its way to the outputs of `poe`: one lane for each output of each task.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use tempfile::SpooledTempFile;

use super::error::{reason, say};
use super::output::{Output, OutputStream, Source};
use super::record::Record;

/// An unfinished line is shown when it is longer than this.
pub(super) const LONGEST_LINE: usize = 1 << 16;
/// An unfinished line is shown when no task has written anything for this time: it may be a
/// question to the user. On a loaded machine a task may be interrupted for some time in the middle
/// of a line.
pub(super) const QUIET: Duration = Duration::from_millis(200);
/// An unfinished line is shown when its own task has written nothing for this time, whatever others
/// write: beside them, a task waits longer for a processor.
const SILENT: Duration = Duration::from_secs(2);
/// What a later task writes in ordered mode goes to disk beyond this.
pub(super) const SPOOL_IN_MEMORY: usize = 1 << 20;
/// How long a task has to end by SIGPIPE before its terminal is closed.
const PARTING: Duration = Duration::from_millis(500);
/// How many lanes are read before the outputs are looked after.
const AT_ONCE: usize = 64;

/// All lanes that have not ended. What arrives costs what it is, not the number of lanes.
pub(super) struct Lanes {
    /// By number, in the order of the tasks.
    lanes: BTreeMap<usize, Lane>,
    watch: Epoll,
    /// Lanes that have begun a line, or wait until their task has ended.
    unfinished: BTreeSet<usize>,
    /// When these were last looked at.
    looked: Instant,
    /// Lanes that may have ended since [`Lanes::forget_ended`].
    changed: Vec<usize>,
    /// Which outputs were closed then.
    closed: [bool; 2],
}

impl Lanes {
    pub(super) fn new(sources: Vec<Source>, ordered: bool, record: Option<&Path>) -> io::Result<Self> {
        let watch = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let spool = if ordered { Spool::find() } else { Spool::Memory };
        let lanes = sources.into_iter().enumerate().map(|(number, source)| {
            let record = record.map(|folder| Record::open(folder, source.task, source.stream)).transpose()?;
            Ok((number, Lane::new(source, ordered, &spool, record)))
        });
        let lanes: BTreeMap<usize, Lane> = lanes.collect::<io::Result<_>>()?;
        for (number, lane) in &lanes {
            watch.add(&lane.pipe, EpollEvent::new(EpollFlags::EPOLLIN, *number as u64))?;
        }
        let (unfinished, looked, changed) = (BTreeSet::new(), Instant::now(), Vec::new());
        Ok(Self { lanes, watch, unfinished, looked, changed, closed: [false; 2] })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Whether something is to be done when nothing arrives for some time.
    pub(super) fn are_unfinished(&self) -> bool {
        !self.unfinished.is_empty()
    }

    /// In ordered mode the output of the first task that has not ended is shown; that of later
    /// ones is held back.
    pub(super) fn release_first(&mut self, outputs: &mut [Output; 2]) {
        for (number, lane) in self.lanes.iter_mut().filter(|(_, lane)| lane.stream == OutputStream::Stdout) {
            let output = &mut outputs[lane.stream as usize];
            if let Some(held) = lane.held.take() {
                lane.replay(held, output);
                self.changed.push(*number);
            }
            if lane.open {
                return;
            }
        }
    }

    /// Drops the lanes that carry nothing any more.
    pub(super) fn forget_ended(&mut self, outputs: &[Output; 2]) {
        let closed = outputs.each_ref().map(|output| output.closed);
        if std::mem::replace(&mut self.closed, closed) != closed {
            self.changed = self.lanes.keys().copied().collect();
        }
        if closed.contains(&true) {
            // The time of those that wait for their task's end may be over.
            self.changed.extend(&self.unfinished);
        }
        for number in self.changed.drain(..) {
            let Some(lane) = self.lanes.get(&number) else { continue };
            let wanted = !closed[lane.stream as usize];
            let stays = lane.open && (wanted || lane.parts_later()) || lane.held.is_some() && wanted;
            if lane.is_unfinished() && stays {
                self.unfinished.insert(number);
            } else {
                self.unfinished.remove(&number);
            }
            if !lane.open || lane.parting.is_some() || !stays {
                // It may have been taken out before.
                let _ = self.watch.delete(&lane.pipe);
            }
            if !stays {
                self.lanes.remove(&number);
            }
        }
    }

    /// Waits until something arrives, and carries it. Unfinished lines are shown when nothing has
    /// arrived for [`QUIET`], or nothing of their tasks for [`SILENT`].
    /// `broken` is called with a task that writes to a closed output.
    pub(super) fn carry_some(
        &mut self,
        timeout: EpollTimeout,
        buffer: &mut [u8],
        outputs: &mut [Output; 2],
        broken: &mut dyn FnMut(usize),
    ) -> io::Result<()> {
        let mut events = [EpollEvent::empty(); AT_ONCE];
        let ready = loop {
            match self.watch.wait(&mut events, timeout) {
                Ok(count) => break &events[..count],
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        };
        let all_quiet = ready.is_empty();
        for event in ready {
            let number = event.data() as usize;
            let Some(lane) = self.lanes.get_mut(&number) else { continue };
            let output = &mut outputs[lane.stream as usize];
            if output.closed {
                lane.part(broken);
            } else {
                lane.read(buffer, output);
            }
            self.changed.push(number);
        }
        if all_quiet || self.looked.elapsed() >= QUIET {
            self.looked = Instant::now();
            for number in &self.unfinished {
                if let Some(lane) = self.lanes.get_mut(number).filter(|lane| all_quiet || lane.is_silent()) {
                    lane.show_unfinished(&mut outputs[lane.stream as usize]);
                }
            }
            self.changed.extend(&self.unfinished);
        }
        Ok(())
    }
}

/// Where output that is held back waits, beyond what is kept in memory anyway.
enum Spool {
    Folder(PathBuf),
    Memory,
}

impl Spool {
    /// The first folder of those for temporary files in which a file can be made.
    fn find() -> Self {
        let asked = std::env::temp_dir();
        let refused = |folder: &Path| tempfile::tempfile_in(folder).err();
        let Some(why) = refused(&asked) else { return Self::Folder(asked) };
        let others = ["/tmp", "/var/tmp"].map(PathBuf::from);
        let other = others.into_iter().find(|folder| refused(folder).is_none());
        let place =
            other.as_ref().map_or("in memory".to_owned(), |folder| format!("in {}", folder.display()));
        say(&format!(
            "warning: no file can be made in {} (TMPDIR): {}; output that is held back (-stdoutmode ordered) waits {place}",
            asked.display(),
            reason(&why)
        ));
        other.map_or(Self::Memory, Self::Folder)
    }

    fn open(&self) -> Held {
        let (file, place) = match self {
            Self::Folder(folder) => {
                let place = format!("held back (-stdoutmode ordered) in {} (TMPDIR)", folder.display());
                (SpooledTempFile::new_in(SPOOL_IN_MEMORY, folder), place)
            }
            Self::Memory => (SpooledTempFile::new(usize::MAX), "held back in memory".to_owned()),
        };
        Held { file, place }
    }
}

/// Output of a task that waits for its turn.
struct Held {
    file: SpooledTempFile,
    /// For messages.
    place: String,
}

/// What comes from one source.
struct Lane {
    task: usize,
    stream: OutputStream,
    pipe: Arc<File>,
    terminal: bool,
    open: bool,
    /// The output is closed, the task has written to it, and at this time the terminal is closed.
    parting: Option<Instant>,
    /// The line that has begun and not ended, as far as it has not been shown.
    line: Vec<u8>,
    /// When its task has written last.
    wrote: Instant,
    /// What was shown last did not end a line.
    continues: bool,
    /// What arrived before this task's turn.
    held: Option<Held>,
    /// The file to which all that arrives is written too.
    record: Option<Record>,
}

impl Lane {
    fn new(
        Source { task, stream, pipe, terminal }: Source,
        ordered: bool,
        spool: &Spool,
        record: Option<Record>,
    ) -> Self {
        let held = (ordered && stream == OutputStream::Stdout).then(|| spool.open());
        let (open, line, continues, parting) = (true, Vec::new(), false, None);
        let wrote = Instant::now();
        Self { task, stream, pipe, terminal, open, parting, line, wrote, continues, held, record }
    }

    /// Whether something is to be done with it when nothing arrives for some time.
    fn is_unfinished(&self) -> bool {
        !self.line.is_empty() || self.parting.is_some()
    }

    /// Whether it stays open though its output is closed.
    fn parts_later(&self) -> bool {
        self.terminal && self.parting.is_none_or(|at| at > Instant::now())
    }

    /// The task has written to an output that is closed, or has closed its end.
    fn part(&mut self, broken: &mut dyn FnMut(usize)) {
        if self.has_input() {
            broken(self.task);
            self.parting = Some(Instant::now() + PARTING);
        } else {
            self.open = false;
        }
    }

    /// Whether something waits in the pipe.
    fn has_input(&self) -> bool {
        let mut polled = [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut polled, PollTimeout::ZERO);
        polled[0].revents().is_some_and(|events| events.contains(PollFlags::POLLIN))
    }

    /// Whether its task has written nothing for [`SILENT`]. What waits in the pipe counts: this
    /// process, too, may have stood still.
    fn is_silent(&self) -> bool {
        self.wrote.elapsed() >= SILENT && !self.has_input()
    }

    fn read(&mut self, buffer: &mut [u8], output: &mut Output) {
        self.wrote = Instant::now();
        let length = match (&*self.pipe).read(buffer) {
            Ok(length) => length,
            Err(error) if [ErrorKind::Interrupted, ErrorKind::WouldBlock].contains(&error.kind()) => return,
            // A terminal whose other end is closed, for one.
            Err(_) => 0,
        };
        if let Some(Err((path, error))) = self.record.as_mut().map(|record| record.write(&buffer[..length])) {
            self.record = None;
            output.lose_copy(&path, &error);
        }
        match &mut self.held {
            Some(held) => {
                if let Err(error) = held.file.write_all(&buffer[..length]) {
                    output.lose(&held.place, &error);
                }
            }
            None => self.take(&buffer[..length], output),
        }
        if length == 0 {
            self.open = false;
            if self.held.is_none() {
                self.show_unfinished(output);
                output.end(self.task);
            }
        }
    }

    fn replay(&mut self, mut held: Held, output: &mut Output) {
        let mut buffer = vec![0; 1 << 16];
        let mut next = held.file.rewind().and_then(|()| held.file.read(&mut buffer));
        while let Ok(length @ 1..) = next {
            self.take(&buffer[..length], output);
            next = held.file.read(&mut buffer);
        }
        if let Err(error) = next {
            output.lose(&held.place, &error);
        }
        if !self.open {
            self.show_unfinished(output);
        }
    }

    /// Shows the whole lines of what has arrived, and keeps the rest.
    fn take(&mut self, bytes: &[u8], output: &mut Output) {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        if whole > 0 && self.line.is_empty() {
            output.show(self.task, &bytes[..whole], self.continues);
            self.continues = false;
        } else if whole > 0 {
            self.line.extend(&bytes[..whole]);
            self.show_unfinished(output);
        }
        self.line.extend(&bytes[whole..]);
        if self.line.len() > LONGEST_LINE {
            self.show_unfinished(output);
        }
    }

    fn show_unfinished(&mut self, output: &mut Output) {
        if !self.line.is_empty() {
            output.show(self.task, &self.line, self.continues);
            self.continues = self.line.last() != Some(&b'\n');
            self.line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// While this process stood still, the task has written the rest of its line.
    #[test]
    fn what_waits_in_the_pipe_is_no_silence() {
        let (pipe, mut task) = io::pipe().expect("a pipe");
        let pipe = Arc::new(File::from(std::os::fd::OwnedFd::from(pipe)));
        let source = Source { task: 0, stream: OutputStream::Stdout, pipe, terminal: false };
        let mut lane = Lane::new(source, false, &Spool::Memory, None);
        assert!(!lane.is_silent(), "it has only begun");
        lane.wrote = Instant::now().checked_sub(SILENT).expect("the machine runs for longer");
        assert!(lane.is_silent());
        task.write_all(b"the rest\n").expect("the pipe has room");
        assert!(!lane.is_silent());
    }
}
