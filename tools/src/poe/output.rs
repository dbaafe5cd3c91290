//! Carries what the tasks write to `poe`'s own output: whole lines, labelled and in order when asked.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::str::FromStr;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tempfile::SpooledTempFile;

use super::fold::Fold;

/// In which order standard output appears (MP_STDOUTMODE). Standard error is always shown at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StdoutMode {
    /// Line by line, as it comes.
    Unordered,
    /// All of task 0, then all of task 1, and so on.
    Ordered,
    /// One task's; what the others write is discarded.
    Only(usize),
}

impl FromStr for StdoutMode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text.to_ascii_lowercase().as_str() {
            "unordered" => Ok(Self::Unordered),
            "ordered" => Ok(Self::Ordered),
            number => number.parse().map(Self::Only).map_err(|_| ()),
        }
    }
}

/// The reading end of one task's output or error.
pub(super) struct Source {
    pub task: usize,
    pub stream: Stream,
    pub pipe: File,
    /// It is a pseudoterminal: its end is an error, and a task that writes to a closed one gets no SIGPIPE.
    pub terminal: bool,
}

/// Which output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

/// How output is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    pub labels: bool,
    pub ordered: bool,
    /// Messages of the library that several tasks write alike are shown once.
    pub fold: bool,
}

/// An unfinished line is shown when nothing has arrived for so long (it may be a question to the user) …
const QUIET_MILLISECONDS: u8 = 50;
/// … or when it is longer than this.
const LONGEST_LINE: usize = 1 << 16;
/// What a later task writes in ordered mode goes to disk beyond this.
const SPOOL_IN_MEMORY: usize = 1 << 20;
/// How long equal messages are collected before they are summarized.
const COLLECT: Duration = Duration::from_millis(300);
/// How long a task has to end by SIGPIPE before its terminal is closed.
const PARTING: Duration = Duration::from_millis(500);

/// Carries everything from the sources to the outputs until all sources are closed. An error means that output was lost.
///
/// A reader that went away is not an error: the pipes that led to it are closed, so that tasks that write to them get
/// SIGPIPE. A terminal does not do that: `broken` is called with the task that has written.
pub(super) fn carry(
    sources: Vec<Source>,
    style: Style,
    stdout: File,
    stderr: File,
    broken: &mut dyn FnMut(usize),
) -> io::Result<()> {
    let mut outputs = [Output::new(stdout, style.labels), Output::new(stderr, style.labels)];
    outputs[Stream::Stderr as usize].fold = style.fold.then(Fold::default);
    let mut lanes: Vec<Lane> = sources.into_iter().map(|source| Lane::new(source, style.ordered)).collect();
    let mut buffer = vec![0; 1 << 16];
    let mut summary_at: Option<Instant> = None;
    loop {
        release_first(&mut lanes, &mut outputs);
        lanes.retain(|lane| {
            let wanted = !outputs[lane.stream as usize].closed;
            lane.open && (wanted || lane.parts_later()) || lane.held.is_some() && wanted
        });
        if lanes.is_empty() {
            break;
        }
        let pending = outputs.iter().any(Output::has_summary);
        summary_at = pending.then(|| summary_at.unwrap_or_else(|| Instant::now() + COLLECT));
        let unfinished = lanes.iter().any(|lane| !lane.line.is_empty() || lane.parting.is_some());
        let timeout =
            if unfinished || pending { PollTimeout::from(QUIET_MILLISECONDS) } else { PollTimeout::NONE };
        let readable = wait(&lanes, timeout)?;
        for lane in lanes.iter_mut().filter(|_| readable.is_empty()) {
            lane.show_unfinished(&mut outputs[lane.stream as usize]);
        }
        for index in readable {
            let lane = &mut lanes[index];
            let output = &mut outputs[lane.stream as usize];
            if output.closed {
                lane.part(broken);
            } else {
                lane.read(&mut buffer, output);
            }
        }
        if summary_at.is_some_and(|at| at <= Instant::now()) {
            outputs.iter_mut().for_each(Output::summarize);
            summary_at = None;
        }
    }
    let [stdout, stderr] = outputs.map(Output::finish);
    stdout.and(stderr)
}

/// In ordered mode the output of the first task that has not ended is shown; that of later ones is held back.
fn release_first(lanes: &mut [Lane], outputs: &mut [Output; 2]) {
    for lane in lanes.iter_mut().filter(|lane| lane.stream == Stream::Stdout) {
        let output = &mut outputs[lane.stream as usize];
        if let Some(held) = lane.held.take() {
            lane.replay(held, output);
        }
        if lane.open {
            return;
        }
    }
}

/// Waits until something can be read, and returns from which lanes: from none after the timeout.
fn wait(lanes: &[Lane], timeout: PollTimeout) -> io::Result<Vec<usize>> {
    let watched = |lane: &Lane| lane.open && lane.parting.is_none();
    let open: Vec<usize> = (0..lanes.len()).filter(|index| watched(&lanes[*index])).collect();
    let mut polled: Vec<PollFd> =
        open.iter().map(|index| PollFd::new(lanes[*index].pipe.as_fd(), PollFlags::POLLIN)).collect();
    while let Err(errno) = poll(&mut polled, timeout) {
        if errno != Errno::EINTR {
            return Err(errno.into());
        }
    }
    let ready = open.iter().zip(&polled).filter(|(_, polled)| polled.any() != Some(false));
    Ok(ready.map(|(index, _)| *index).collect())
}

/// What comes from one source.
struct Lane {
    task: usize,
    stream: Stream,
    pipe: File,
    terminal: bool,
    open: bool,
    /// The output is closed, the task has written to it, and at this time the terminal is closed.
    parting: Option<Instant>,
    /// The line that has begun and not ended, as far as it has not been shown.
    line: Vec<u8>,
    /// What was shown last did not end a line.
    continues: bool,
    /// What arrived before this task's turn.
    held: Option<SpooledTempFile>,
}

impl Lane {
    fn new(Source { task, stream, pipe, terminal }: Source, ordered: bool) -> Self {
        let held = (ordered && stream == Stream::Stdout).then(|| SpooledTempFile::new(SPOOL_IN_MEMORY));
        let (open, line, continues, parting) = (true, Vec::new(), false, None);
        Self { task, stream, pipe, terminal, open, parting, line, continues, held }
    }

    /// Whether it stays open though its output is closed.
    fn parts_later(&self) -> bool {
        self.terminal && self.parting.is_none_or(|at| at > Instant::now())
    }

    /// The task has written to an output that is closed, or has closed its end.
    fn part(&mut self, broken: &mut dyn FnMut(usize)) {
        let mut polled = [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
        let _ = poll(&mut polled, PollTimeout::ZERO);
        if polled[0].revents().is_some_and(|events| events.contains(PollFlags::POLLIN)) {
            broken(self.task);
            self.parting = Some(Instant::now() + PARTING);
        } else {
            self.open = false;
        }
    }

    fn read(&mut self, buffer: &mut [u8], output: &mut Output) {
        let length = match self.pipe.read(buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return,
            // A terminal whose other end is closed, for one.
            Err(_) => 0,
        };
        match &mut self.held {
            Some(held) => {
                if let Err(error) = held.write_all(&buffer[..length]) {
                    output.lose(error);
                }
            }
            None => self.take(&buffer[..length], output),
        }
        if length == 0 {
            self.open = false;
            if self.held.is_none() {
                self.show_unfinished(output);
            }
        }
    }

    fn replay(&mut self, mut held: SpooledTempFile, output: &mut Output) {
        let mut buffer = vec![0; 1 << 16];
        let mut next = held.rewind().and_then(|()| held.read(&mut buffer));
        while let Ok(length @ 1..) = next {
            self.take(&buffer[..length], output);
            next = held.read(&mut buffer);
        }
        if let Err(error) = next {
            output.lose(error);
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

/// One of `poe`'s own outputs.
struct Output {
    to: File,
    labels: bool,
    /// Whose line has begun and not ended; known only where lines have labels.
    begun_by: Option<usize>,
    /// Shows equal messages once.
    fold: Option<Fold>,
    closed: bool,
    result: io::Result<()>,
}

impl Output {
    fn new(to: File, labels: bool) -> Self {
        Self { to, labels, begun_by: None, fold: None, closed: false, result: Ok(()) }
    }

    /// Shows what a task wrote: lines, of which the first may continue one and the last may be unfinished.
    fn show(&mut self, task: usize, bytes: &[u8], continues: bool) {
        let Some(fold) = &mut self.fold else { return self.put(task, bytes) };
        let lines = bytes.split_inclusive(|byte| *byte == b'\n').enumerate();
        let shown: Vec<&[u8]> = lines
            .filter(|(at, line)| {
                (*at == 0 && continues) || line.last() != Some(&b'\n') || fold.shows(task, line)
            })
            .map(|(_, line)| line)
            .collect();
        if !shown.is_empty() {
            self.put(task, &shown.concat());
        }
    }

    fn has_summary(&self) -> bool {
        self.fold.as_ref().is_some_and(Fold::is_pending)
    }

    /// Says which messages were not shown, and of which tasks.
    fn summarize(&mut self) {
        let summary = self.fold.as_mut().map(Fold::summary).unwrap_or_default();
        if self.begun_by.is_some() && !summary.is_empty() {
            self.begun_by = None;
            self.write(b"\n");
        }
        self.write(summary.as_bytes());
    }

    fn put(&mut self, task: usize, bytes: &[u8]) {
        if !self.labels {
            return self.write(bytes);
        }
        let mut text = Vec::with_capacity(bytes.len() + bytes.len() / 4 + 16);
        let mut continues = self.begun_by == Some(task);
        if self.begun_by.is_some() && !continues {
            text.push(b'\n');
        }
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if !continues {
                text.extend(format!("{task:3}:").as_bytes());
            }
            text.extend(line);
            continues = false;
        }
        self.begun_by = (bytes.last() != Some(&b'\n')).then_some(task);
        self.write(&text);
    }

    fn write(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && !self.closed {
            match self.to.write(bytes) {
                Ok(length) => bytes = &bytes[length..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Another process that shares this output has made it non-blocking; nothing is lost because of that.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let _ = poll(&mut [PollFd::new(self.to.as_fd(), PollFlags::POLLOUT)], PollTimeout::NONE);
                }
                Err(error)
                    if [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset]
                        .contains(&error.kind()) =>
                {
                    self.closed = true;
                }
                Err(error) => self.lose(error),
            }
        }
    }

    fn lose(&mut self, error: io::Error) {
        self.closed = true;
        self.result = Err(error);
    }

    fn finish(mut self) -> io::Result<()> {
        self.summarize();
        if self.begun_by.is_some() {
            self.write(b"\n");
        }
        self.result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source that holds all of this and ends after it.
    fn source(task: usize, stream: Stream, bytes: &[u8]) -> Source {
        let mut pipe = tempfile::tempfile().expect("a file can be made");
        pipe.write_all(bytes).and_then(|()| pipe.rewind()).expect("the file can be written");
        Source { task, stream, pipe, terminal: false }
    }

    fn carried(sources: Vec<Source>, labels: bool, ordered: bool) -> (String, String) {
        let mut files = [(); 2].map(|()| tempfile::tempfile().expect("a file can be made"));
        let [stdout, stderr] = [&files[0], &files[1]].map(|file| file.try_clone().expect("it can be shared"));
        carry(sources, Style { labels, ordered, fold: true }, stdout, stderr, &mut |_| ())
            .expect("nothing is lost");
        let texts = files.each_mut().map(|file| {
            let mut text = String::new();
            file.rewind().and_then(|()| file.read_to_string(&mut text)).expect("the file can be read");
            text
        });
        texts.into()
    }

    #[test]
    fn bytes_pass_unchanged_without_labels() {
        let long = "x".repeat(3 * LONGEST_LINE) + "\nand no end";
        let sources = vec![source(0, Stream::Stdout, long.as_bytes()), source(0, Stream::Stderr, b"error")];
        assert_eq!(carried(sources, false, false), (long, "error".into()));
    }

    #[test]
    fn every_line_has_a_label() {
        let sources = vec![source(12, Stream::Stdout, b"one\n\ntwo"), source(3, Stream::Stderr, b"error\n")];
        assert_eq!(carried(sources, true, false), (" 12:one\n 12:\n 12:two\n".into(), "  3:error\n".into()));
    }

    #[test]
    fn a_long_line_has_one_label() {
        let long = "x".repeat(5 * LONGEST_LINE);
        let sources = vec![source(0, Stream::Stdout, format!("{long}\n").as_bytes())];
        assert_eq!(carried(sources, true, false).0, format!("  0:{long}\n"));
    }

    #[test]
    fn a_line_that_another_task_interrupts_is_labelled_again() {
        let file = tempfile::tempfile().expect("a file can be made");
        let mut output = Output::new(file.try_clone().expect("it can be shared"), true);
        output.show(0, b"name? ", false);
        output.show(1, b"hello\n", false);
        output.show(0, b"still ", false);
        output.show(0, b"here", false);
        output.finish().expect("nothing is lost");
        let (mut file, mut text) = (file, String::new());
        file.rewind().and_then(|()| file.read_to_string(&mut text)).expect("the file can be read");
        assert_eq!(text, "  0:name? \n  1:hello\n  0:still here\n");
    }

    #[test]
    fn equal_messages_of_the_library_are_shown_once() {
        let text = b"LAPI: wrong\nLAPI: why\nmine\n";
        let sources = (0..3).map(|task| source(task, Stream::Stderr, text)).collect();
        let (_, stderr) = carried(sources, true, false);
        let expected = "  0:LAPI: wrong\n  0:LAPI: why\n  0:mine\n  1:mine\n  2:mine\n\
                        poe: the same from tasks 1, 2 (2 lines, LAPI: wrong)\n";
        assert_eq!(stderr, expected);
        let sources = (0..2).map(|task| source(task, Stream::Stdout, text)).collect();
        assert_eq!(
            carried(sources, false, false).0.matches("LAPI: why").count(),
            2,
            "on standard error only"
        );
    }

    #[test]
    fn in_ordered_mode_task_follows_task() {
        let text = |task: usize| format!("task {task}\n").repeat(SPOOL_IN_MEMORY / 4);
        let sources = (0..3).map(|task| source(task, Stream::Stdout, text(task).as_bytes())).collect();
        let (stdout, _) = carried(sources, false, true);
        assert!(stdout == text(0) + &text(1) + &text(2));
    }
}
