//! Carries what the tasks write to `poe`'s own output: whole lines, labelled and in order when asked.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::str::FromStr;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tempfile::SpooledTempFile;

/// In which order standard output appears (MP_STDOUTMODE). Standard error always comes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StdoutMode {
    /// Line by line, as it comes.
    Unordered,
    /// All of task 0, then all of task 1, and so on.
    Ordered,
    /// One task's; what the others write is thrown away.
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
}

/// An unfinished line is shown when nothing has come for so long (it may be a question to the user) …
const QUIET_MILLISECONDS: u8 = 50;
/// … or when it is longer than this.
const LONGEST_LINE: usize = 1 << 16;
/// What a later task writes in ordered mode goes to disk beyond this.
const SPOOL_IN_MEMORY: usize = 1 << 20;

/// Carries everything from the sources to the outputs until all sources are closed. An error means that output
/// was lost. A reader that went away is no error: the pipes that led to it are closed, and the tasks that write to
/// them are told by the system as if nobody stood between.
pub(super) fn carry(sources: Vec<Source>, style: Style, stdout: File, stderr: File) -> io::Result<()> {
    let mut outputs = [Output::new(stdout, style.labels), Output::new(stderr, style.labels)];
    let mut lanes: Vec<Lane> = sources.into_iter().map(|source| Lane::new(source, style.ordered)).collect();
    let mut buffer = vec![0; 1 << 16];
    loop {
        release_first(&mut lanes, &mut outputs);
        lanes.retain(|lane| (lane.open || lane.held.is_some()) && !outputs[lane.stream as usize].closed);
        if lanes.is_empty() {
            break;
        }
        let unfinished = lanes.iter().any(|lane| !lane.line.is_empty());
        let timeout = if unfinished { PollTimeout::from(QUIET_MILLISECONDS) } else { PollTimeout::NONE };
        let readable = wait(&lanes, timeout)?;
        for lane in lanes.iter_mut().filter(|_| readable.is_empty()) {
            lane.show_unfinished(&mut outputs[lane.stream as usize]);
        }
        for index in readable {
            let lane = &mut lanes[index];
            lane.read(&mut buffer, &mut outputs[lane.stream as usize]);
        }
    }
    let [stdout, stderr] = outputs.map(Output::finish);
    stdout.and(stderr)
}

/// In ordered mode the first task that still has something to say is heard; the later ones are held back.
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

/// Waits until something can be read, and answers from which lanes: from none after the timeout.
fn wait(lanes: &[Lane], timeout: PollTimeout) -> io::Result<Vec<usize>> {
    let open: Vec<usize> = (0..lanes.len()).filter(|index| lanes[*index].open).collect();
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
    open: bool,
    /// The line that has begun and not ended, as far as it has not been shown.
    line: Vec<u8>,
    /// What came while it was not this task's turn.
    held: Option<SpooledTempFile>,
}

impl Lane {
    fn new(Source { task, stream, pipe }: Source, ordered: bool) -> Self {
        let held = (ordered && stream == Stream::Stdout).then(|| SpooledTempFile::new(SPOOL_IN_MEMORY));
        Self { task, stream, pipe, open: true, line: Vec::new(), held }
    }

    fn read(&mut self, buffer: &mut [u8], output: &mut Output) {
        let length = match self.pipe.read(buffer) {
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return,
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

    /// Shows the whole lines of what has come, and keeps the rest.
    fn take(&mut self, bytes: &[u8], output: &mut Output) {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        if whole > 0 && self.line.is_empty() {
            output.show(self.task, &bytes[..whole]);
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
            output.show(self.task, &self.line);
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
    closed: bool,
    result: io::Result<()>,
}

impl Output {
    fn new(to: File, labels: bool) -> Self {
        Self { to, labels, begun_by: None, closed: false, result: Ok(()) }
    }

    /// Shows what a task wrote: lines, of which the first may continue one and the last may be unfinished.
    fn show(&mut self, task: usize, bytes: &[u8]) {
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
                // Whoever shares this output has made it non-blocking; that is no reason to lose anything.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let _ = poll(&mut [PollFd::new(self.to.as_fd(), PollFlags::POLLOUT)], PollTimeout::NONE);
                }
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => self.closed = true,
                Err(error) => self.lose(error),
            }
        }
    }

    fn lose(&mut self, error: io::Error) {
        self.closed = true;
        self.result = Err(error);
    }

    fn finish(mut self) -> io::Result<()> {
        if self.begun_by.is_some() {
            self.write(b"\n");
        }
        self.result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source that holds all of this and is closed behind it.
    fn source(task: usize, stream: Stream, bytes: &[u8]) -> Source {
        let mut pipe = tempfile::tempfile().expect("a file can be made");
        pipe.write_all(bytes).and_then(|()| pipe.rewind()).expect("the file can be written");
        Source { task, stream, pipe }
    }

    fn carried(sources: Vec<Source>, labels: bool, ordered: bool) -> (String, String) {
        let mut files = [(); 2].map(|()| tempfile::tempfile().expect("a file can be made"));
        let [stdout, stderr] = [&files[0], &files[1]].map(|file| file.try_clone().expect("it can be shared"));
        carry(sources, Style { labels, ordered }, stdout, stderr).expect("nothing is lost");
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
        output.show(0, b"name? ");
        output.show(1, b"hello\n");
        output.show(0, b"still ");
        output.show(0, b"here");
        output.finish().expect("nothing is lost");
        let (mut file, mut text) = (file, String::new());
        file.rewind().and_then(|()| file.read_to_string(&mut text)).expect("the file can be read");
        assert_eq!(text, "  0:name? \n  1:hello\n  0:still here\n");
    }

    #[test]
    fn in_ordered_mode_task_follows_task() {
        let text = |task: usize| format!("task {task}\n").repeat(SPOOL_IN_MEMORY / 4);
        let sources = (0..3).map(|task| source(task, Stream::Stdout, text(task).as_bytes())).collect();
        let (stdout, _) = carried(sources, false, true);
        assert!(stdout == text(0) + &text(1) + &text(2));
    }
}
