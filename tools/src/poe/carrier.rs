//! Carries what the tasks write to `poe`'s own outputs.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::epoll::EpollTimeout;

use super::causes::Errors;
use super::error::{Error, reason, say};
use super::fold::Fold;
use super::lanes::{Lanes, QUIET};
use super::output::{Lost, Output, OutputStream, Prefix, Source};
use super::streams;

/// How output is shown.
#[derive(Clone, Debug)]
pub(super) struct Style {
    pub prefix: Prefix,
    pub ordered: bool,
    /// Messages of the library that several tasks write alike are shown once.
    pub fold: bool,
    /// Where the output of each task is written to as well.
    pub record: Option<PathBuf>,
}

/// How long equal messages are collected before they are summarized.
const COLLECT: Duration = Duration::from_millis(300);

/// What the thread has seen.
#[derive(Debug)]
pub(super) struct Carried {
    /// What the tasks have said of errors.
    pub errors: Errors,
    /// A copy of their output was lost, and the output itself was not.
    pub copy_lost: bool,
}

/// The thread that carries output.
pub(super) struct Carrier {
    thread: JoinHandle<Result<Carried, Lost>>,
    /// Carries the number of each task that has written to a terminal whose reader is gone; its end
    /// is that of the thread.
    broken: File,
}

impl Carrier {
    /// Starts to carry what comes from the sources to these two.
    pub(super) fn start(
        sources: Vec<Source>,
        style: Style,
        stdout: File,
        stderr: File,
    ) -> Result<Self, Error> {
        let (broken, running) = streams::pipe()?;
        let run = move || {
            let mut running = File::from(running);
            let mut broken = |task: usize| {
                let _ = running.write_all(&(task as u32).to_ne_bytes());
            };
            carry(sources, style, stdout, stderr, &mut broken)
        };
        let thread = thread::Builder::new()
            .name("poe-output".into())
            .spawn(run)
            .map_err(|error| Error::system("cannot start the thread that carries output", error))?;
        Ok(Self { thread, broken: File::from(broken) })
    }

    /// The task that has written to a terminal whose reader is gone; `None` when the
    /// thread is over.
    pub(super) fn broken(&mut self) -> Option<usize> {
        let mut task = [0; 4];
        self.broken.read_exact(&mut task).ok().map(|()| u32::from_ne_bytes(task) as usize)
    }

    /// Waits for the end of the thread. An error means that output was lost.
    pub(super) fn finish(self) -> Result<Carried, Lost> {
        self.thread.join().unwrap_or(Err(Lost))
    }
}

impl AsFd for Carrier {
    /// Readable when [`Carrier::broken`] does not wait.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.broken.as_fd()
    }
}

/// Carries everything from the sources to the outputs until all sources are closed. An error means
/// that output was lost.
///
/// A reader that went away is not an error: the pipes that led to it are closed, so that tasks
/// that write to them get SIGPIPE. A terminal does not do that: `broken` is called with the task
/// that has written.
fn carry(
    sources: Vec<Source>,
    style: Style,
    stdout: File,
    stderr: File,
    broken: &mut dyn FnMut(usize),
) -> Result<Carried, Lost> {
    let several = sources.iter().any(|source| source.task != sources[0].task);
    let mut outputs = [("standard output", stdout), ("standard error", stderr)]
        .map(|(name, to)| Output::new(name, to, style.prefix));
    outputs[OutputStream::Stderr as usize].fold = (style.fold && several).then(Fold::default);
    outputs[OutputStream::Stderr as usize].errors = Some(Errors::new());
    let mut failed = |error: io::Error| {
        say(&format!("output of the tasks was lost: {}", reason(&error)));
        Lost
    };
    let mut lanes = Lanes::new(sources, style.ordered, style.record.as_deref()).map_err(&mut failed)?;
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
            EpollTimeout::try_from(QUIET).expect("a short time")
        } else {
            EpollTimeout::NONE
        };
        lanes.carry_some(timeout, &mut buffer, &mut outputs, broken).map_err(&mut failed)?;
        if summary_at.is_some_and(|at| at <= Instant::now()) {
            outputs.iter_mut().for_each(Output::summarize);
            summary_at = None;
        }
    }
    let errors = outputs[OutputStream::Stderr as usize].errors.take().unwrap_or_default();
    let copy_lost = outputs.iter().any(|output| output.copy_lost);
    let [stdout, stderr] = outputs.map(Output::finish);
    stdout.and(stderr).map(|()| Carried { errors, copy_lost })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poe::lanes::{LONGEST_LINE, SPOOL_IN_MEMORY};
    use crate::poe::streams::pipe;
    use std::io::Seek;

    /// A source that has all of this and ends after it.
    fn source(task: usize, stream: OutputStream, bytes: &[u8]) -> Source {
        let (read, write) = pipe().expect("a pipe can be made");
        let (pipe, mut write) = (File::from(read), File::from(write));
        // What a pipe has room for is there from the start.
        let (now, later) = bytes.split_at(bytes.len().min(1 << 15));
        write.write_all(now).expect("the pipe has room");
        let later = later.to_vec();
        if !later.is_empty() {
            thread::spawn(move || write.write_all(&later));
        }
        Source { task, stream, pipe: pipe.into(), terminal: false }
    }

    fn carried(sources: Vec<Source>, label: bool, ordered: bool) -> (String, String) {
        let prefix = Prefix { label, ..Prefix::default() };
        let mut files = [(); 2].map(|()| tempfile::tempfile().expect("a file can be made"));
        let [stdout, stderr] = [&files[0], &files[1]].map(|file| file.try_clone().expect("it can be shared"));
        carry(sources, Style { prefix, ordered, fold: true, record: None }, stdout, stderr, &mut |_| ())
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
        let sources =
            vec![source(0, OutputStream::Stdout, long.as_bytes()), source(0, OutputStream::Stderr, b"error")];
        assert_eq!(carried(sources, false, false), (long, "error".into()));
    }

    #[test]
    fn every_line_has_a_label() {
        let sources = vec![
            source(12, OutputStream::Stdout, b"one\n\ntwo"),
            source(3, OutputStream::Stderr, b"error\n"),
        ];
        assert_eq!(carried(sources, true, false), (" 12:one\n 12:\n 12:two\n".into(), "  3:error\n".into()));
    }

    #[test]
    fn a_long_line_has_one_label() {
        let long = "x".repeat(5 * LONGEST_LINE);
        let sources = vec![source(0, OutputStream::Stdout, format!("{long}\n").as_bytes())];
        assert_eq!(carried(sources, true, false).0, format!("  0:{long}\n"));
    }

    #[test]
    fn equal_messages_of_the_library_are_shown_once() {
        let text = b"LAPI: wrong\nLAPI: why\nmine\n";
        let sources = (0..3).map(|task| source(task, OutputStream::Stderr, text)).collect();
        let (_, stderr) = carried(sources, true, false);
        let expected = "  0:LAPI: wrong\n  0:LAPI: why\n  0:mine\n  1:mine\n  2:mine\n\
                        poe: the same from tasks 1, 2 (2 lines, LAPI: wrong)\n";
        assert_eq!(stderr, expected);
        let sources = (0..2).map(|task| source(task, OutputStream::Stdout, text)).collect();
        assert_eq!(
            carried(sources, false, false).0.matches("LAPI: why").count(),
            2,
            "on standard error only"
        );
    }

    /// A question stands in an unfinished line, and another task goes on writing until it is shown.
    #[test]
    fn a_question_is_shown_while_others_write() {
        let (asks, mut question) =
            pipe().map(|(read, write)| (File::from(read), File::from(write))).expect("a pipe");
        let (writes, mut lines) =
            pipe().map(|(read, write)| (File::from(read), File::from(write))).expect("a pipe");
        let source = |task, pipe: File| Source {
            task,
            stream: OutputStream::Stdout,
            pipe: pipe.into(),
            terminal: false,
        };
        let sources = vec![source(0, asks), source(1, writes)];
        let mut files = [(); 2].map(|()| tempfile::NamedTempFile::new().expect("a file can be made"));
        let shown = files[0].path().to_owned();
        let others = thread::spawn(move || {
            question.write_all(b"name? ").expect("the pipe has room");
            (0..1000).any(|_| {
                lines.write_all(b"goes on\n").expect("it is read");
                thread::sleep(Duration::from_millis(20));
                std::fs::read_to_string(&shown).is_ok_and(|text| text.contains("name? "))
            })
        });
        let [stdout, stderr] = files.each_mut().map(|file| file.reopen().expect("it can be shared"));
        let style = Style { prefix: Prefix::default(), ordered: false, fold: true, record: None };
        carry(sources, style, stdout, stderr, &mut |_| ()).expect("nothing is lost");
        assert!(others.join().expect("it has not failed"), "the question was not shown");
    }

    #[test]
    fn in_ordered_mode_task_follows_task() {
        let text = |task: usize| format!("task {task}\n").repeat(SPOOL_IN_MEMORY / 4);
        let sources = (0..3).map(|task| source(task, OutputStream::Stdout, text(task).as_bytes())).collect();
        let (stdout, _) = carried(sources, false, true);
        assert!(stdout == text(0) + &text(1) + &text(2));
    }
}
