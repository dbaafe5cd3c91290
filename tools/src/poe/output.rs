//! Carries what the tasks write to `poe`'s own output: whole lines, labelled and in order when asked.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::str::FromStr;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::epoll::EpollTimeout;

use super::fold::Fold;
use super::lanes::Lanes;

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

/// An unfinished line is shown when nothing has arrived for this time: it may be a question to the user.
const QUIET_MILLISECONDS: u8 = 50;
/// How long equal messages are collected before they are summarized.
const COLLECT: Duration = Duration::from_millis(300);

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
    let mut lanes = Lanes::new(sources, style.ordered)?;
    let mut buffer = vec![0; 1 << 16];
    let mut summary_at: Option<Instant> = None;
    loop {
        if style.ordered {
            lanes.release_first(&mut outputs);
        }
        lanes.forget_ended(&outputs);
        if lanes.is_empty() {
            break;
        }
        let pending = outputs.iter().any(Output::has_summary);
        summary_at = pending.then(|| summary_at.unwrap_or_else(|| Instant::now() + COLLECT));
        let timeout = if lanes.are_unfinished() || pending {
            EpollTimeout::from(QUIET_MILLISECONDS)
        } else {
            EpollTimeout::NONE
        };
        lanes.carry_some(timeout, &mut buffer, &mut outputs, broken)?;
        if summary_at.is_some_and(|at| at <= Instant::now()) {
            outputs.iter_mut().for_each(Output::summarize);
            summary_at = None;
        }
    }
    let [stdout, stderr] = outputs.map(Output::finish);
    stdout.and(stderr)
}

/// One of `poe`'s own outputs.
pub(super) struct Output {
    to: File,
    labels: bool,
    /// Whose line has begun and not ended; known only where lines have labels.
    begun_by: Option<usize>,
    /// Shows equal messages once.
    fold: Option<Fold>,
    pub(super) closed: bool,
    result: io::Result<()>,
}

impl Output {
    fn new(to: File, labels: bool) -> Self {
        Self { to, labels, begun_by: None, fold: None, closed: false, result: Ok(()) }
    }

    /// Shows what a task wrote: lines, of which the first may continue one and the last may be unfinished.
    pub(super) fn show(&mut self, task: usize, bytes: &[u8], continues: bool) {
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

    pub(super) fn lose(&mut self, error: io::Error) {
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
    use crate::poe::lanes::{LONGEST_LINE, SPOOL_IN_MEMORY};
    use crate::poe::streams::pipe;
    use std::io::{Read, Seek};
    use std::thread;

    /// A source that has all of this and ends after it.
    fn source(task: usize, stream: Stream, bytes: &[u8]) -> Source {
        let (read, write) = pipe().expect("a pipe can be made");
        let (pipe, mut write) = (File::from(read), File::from(write));
        // What a pipe has room for is there from the start.
        let (now, later) = bytes.split_at(bytes.len().min(1 << 15));
        write.write_all(now).expect("the pipe has room");
        let later = later.to_vec();
        if !later.is_empty() {
            thread::spawn(move || write.write_all(&later));
        }
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
