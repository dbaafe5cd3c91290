//! The outputs of `poe`, where the lines of all tasks are shown, and what is read from the tasks.

use std::fs::File;
use std::io::{self, Write};
use std::str::FromStr;
use std::sync::Arc;

use jiff::ZonedDateTime;

use super::causes::{self, Errors};
use super::error::{reason, say};
use super::fold::Fold;
use openlapi::base::patient::Patient;

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
    pub stream: OutputStream,
    /// Closed when what comes from it is not wanted any more: then the task gets SIGPIPE.
    pub pipe: Arc<File>,
    /// The pipe is a pseudoterminal: its end is an error, and a task that writes to a closed one
    /// gets no SIGPIPE.
    pub terminal: bool,
}

/// Which output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputStream {
    Stdout,
    Stderr,
}

/// What is put before each line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Prefix {
    /// The local time at which the line is shown (MP_TIMESTAMPS).
    pub time: bool,
    /// The number of the task (MP_LABELIO).
    pub label: bool,
}

/// One of `poe`'s own outputs.
pub(super) struct Output {
    to: Patient<File>,
    prefix: Prefix,
    /// Whose line has begun and not ended; known only where lines have a prefix.
    begun_by: Option<usize>,
    /// Shows equal messages once.
    pub(super) fold: Option<Fold>,
    pub(super) closed: bool,
    /// For messages about it.
    name: &'static str,
    lost: bool,
    /// A copy of what the tasks write was lost.
    pub(super) copy_lost: bool,
    /// What the tasks have said of errors, where that is of interest.
    pub(super) errors: Option<Errors>,
}

/// Output of the tasks was lost; it was said why.
#[derive(Debug)]
pub(super) struct Lost;

impl Output {
    pub(super) fn new(name: &'static str, to: File, prefix: Prefix) -> Self {
        let (begun_by, fold, errors) = (None, None, None);
        let (closed, lost, copy_lost) = (false, false, false);
        Self { to: Patient(to), prefix, begun_by, fold, errors, closed, name, lost, copy_lost }
    }

    /// Shows what a task wrote: lines, of which the first may continue one and the last may
    /// be unfinished.
    pub(super) fn show(&mut self, task: usize, bytes: &[u8], continues: bool) {
        if let Some(errors) = &mut self.errors {
            let lines = bytes.split_inclusive(|byte| *byte == b'\n').skip(usize::from(continues));
            lines.for_each(|line| causes::note(errors, task, line));
        }
        let Some(fold) = &mut self.fold else { return self.put(task, bytes) };
        let mut shown = Vec::new();
        for (at, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let is_whole = !(at == 0 && continues) && line.last() == Some(&b'\n');
            if is_whole && fold.takes(task, line) {
                continue;
            }
            shown.extend(fold.close(task));
            shown.extend(line);
        }
        if !shown.is_empty() {
            self.put(task, &shown);
        }
    }

    /// The task writes nothing more.
    pub(super) fn end(&mut self, task: usize) {
        let shown = self.fold.as_mut().map(|fold| fold.close(task)).unwrap_or_default();
        if !shown.is_empty() {
            self.put(task, &shown);
        }
    }

    pub(super) fn has_summary(&self) -> bool {
        self.fold.as_ref().is_some_and(Fold::is_pending)
    }

    /// Says which messages were not shown, and of which tasks.
    pub(super) fn summarize(&mut self) {
        let open = self.fold.as_ref().map(Fold::open).unwrap_or_default();
        open.into_iter().for_each(|task| self.end(task));
        let summary = self.fold.as_mut().map(Fold::summary).unwrap_or_default();
        if self.begun_by.is_some() && !summary.is_empty() {
            self.begun_by = None;
            self.write(b"\n");
        }
        self.write(summary.as_bytes());
    }

    fn put(&mut self, task: usize, bytes: &[u8]) {
        if self.prefix == Prefix::default() {
            return self.write(bytes);
        }
        let prefix = self.prefix.text(task);
        let mut text = Vec::with_capacity(bytes.len() + bytes.len() / 4 + 16);
        let mut continues = self.begun_by == Some(task);
        if self.begun_by.is_some() && !continues {
            text.push(b'\n');
        }
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if !continues {
                text.extend(prefix.as_bytes());
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
                Err(error)
                    if [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset]
                        .contains(&error.kind()) =>
                {
                    self.closed = true;
                }
                Err(error) => self.lose(self.name, &error),
            }
        }
    }

    /// Says at once where and why output is lost: its end is the tasks' end, and this is the cause.
    pub(super) fn lose(&mut self, place: &str, error: &io::Error) {
        if !self.closed {
            say(&format!("output of the tasks was lost: {place}: {}", reason(error)));
        }
        self.closed = true;
        self.lost = true;
    }

    /// Says where the first copy of the output is lost. The output itself goes on.
    pub(super) fn lose_copy(&mut self, place: &str, error: &io::Error) {
        if !self.copy_lost {
            say(&format!("output of the tasks was lost: {place}: {}", reason(error)));
        }
        self.copy_lost = true;
    }

    pub(super) fn finish(mut self) -> Result<(), Lost> {
        self.summarize();
        if self.begun_by.is_some() {
            self.write(b"\n");
        }
        if self.lost { Err(Lost) } else { Ok(()) }
    }
}

impl Prefix {
    fn text(self, task: usize) -> String {
        let time = if self.time {
            ZonedDateTime::now().strftime("%Y-%m-%d %H:%M:%S.%3f ").to_string()
        } else {
            String::new()
        };
        let label = if self.label { format!("{task:3}:") } else { String::new() };
        time + &label
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek};

    #[test]
    fn a_line_that_another_task_interrupts_is_labelled_again() {
        let file = tempfile::tempfile().expect("a file can be made");
        let mut output = Output::new(
            "standard output",
            file.try_clone().expect("it can be shared"),
            Prefix { label: true, ..Prefix::default() },
        );
        output.show(0, b"name? ", false);
        output.show(1, b"hello\n", false);
        output.show(0, b"still ", false);
        output.show(0, b"here", false);
        output.finish().expect("nothing is lost");
        let (mut file, mut text) = (file, String::new());
        file.rewind().and_then(|()| file.read_to_string(&mut text)).expect("the file can be read");
        assert_eq!(text, "  0:name? \n  1:hello\n  0:still here\n");
    }
}
