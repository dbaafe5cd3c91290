//! Runs a job, and never longer than its deadline.

use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::deadline::Deadline;
use crate::hosts::Hosts;
use crate::job::Job;
use crate::processes::{alive, descendants, standing};
use crate::transport::{self, Transport};

/// The result of a job.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The exit status, when the process exited.
    pub status: Option<i32>,
    /// The signal that ended the process, when one did.
    pub signal: Option<i32>,
    /// All standard output; bytes that are not UTF-8 are replaced.
    pub stdout: String,
    /// All standard error, likewise.
    pub stderr: String,
    /// Whether the job was ended because its deadline had passed.
    pub timed_out: bool,
    /// The state of each process at the deadline; empty when the job was over in time.
    pub standing: String,
}

/// A job that is running. Ends with [`Running::wait`]; dropped earlier, it is killed.
#[derive(Debug)]
pub struct Running {
    pid: i32,
    deadline: Deadline,
    status: Receiver<ExitStatus>,
    stdout: Stream,
    stderr: Stream,
    over: bool,
    /// What writes the input, and then has the pipe, which stays open as long as this is here.
    _stdin: Option<JoinHandle<io::Result<ChildStdin>>>,
    /// The hosts that were made for this job. They end after it.
    _hosts: Option<Hosts>,
}

impl Job {
    /// Runs the job to its end, or to its deadline.
    pub fn run(&self) -> Outcome {
        self.start().wait()
    }

    /// Starts the job in a process group of its own, over the transport that
    /// `TEST_TRANSPORT` names.
    pub fn start(&self) -> Running {
        let (job, hosts) = self.placed();
        job.start_on(hosts)
    }

    /// The job as `TEST_TRANSPORT` wants it. Only jobs under `poe` change, and only those that have
    /// no host file of their own.
    fn placed(&self) -> (Self, Option<Hosts>) {
        let has_hosts = self.env.iter().any(|(name, _)| name == "MP_HOSTFILE");
        if self.launcher.is_none() || self.program.is_none() || self.under.is_some() || has_hosts {
            return (self.clone(), None);
        }
        match transport::wanted() {
            None => (self.clone(), None),
            Some(Transport::Fabric) => (self.clone(), None),
            Some(Transport::Hybrid) if self.procs < 2 => (self.clone(), None),
            Some(Transport::Hybrid) => {
                let hosts = Hosts::new(2).unwrap_or_else(|why| panic!("TEST_TRANSPORT=hybrid: {why}"));
                if let Some(percent) = transport::loss() {
                    hosts.lose(percent).unwrap_or_else(|why| panic!("TEST_LOSS={percent}: {why}"));
                }
                (hosts.place(self.procs, self.clone()), Some(hosts))
            }
        }
    }

    fn start_on(&self, hosts: Option<Hosts>) -> Running {
        let mut command = self.command();
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
        let mut stdin = child.stdin.take().expect("stdin is a pipe");
        let bytes = self.stdin.clone();
        // A program that does not read its input closes the pipe: this is allowed.
        let writer = thread::spawn(move || stdin.write_all(&bytes).map(|()| stdin));
        let stdin = if self.stdin_ends { None } else { Some(writer) };
        let stdout = Stream::read(child.stdout.take().expect("stdout is a pipe"));
        let stderr = Stream::read(child.stderr.take().expect("stderr is a pipe"));
        let pid = child.id() as i32;
        let (ended, status) = channel();
        thread::spawn(move || ended.send(child.wait().expect("a child can be waited for")));
        Running {
            pid,
            deadline: Deadline::after(self.deadline * transport::time_factor()),
            status,
            stdout,
            stderr,
            over: false,
            _stdin: stdin,
            _hosts: hosts,
        }
    }
}

impl Running {
    /// The process that was started: `poe`, or the program of a direct job.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Sends a signal to that process alone.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid), signal).expect("the job is there to be signalled");
    }

    /// Sends a signal to its process group, as the keys of a terminal do.
    pub fn signal_group(&self, signal: Signal) {
        killpg(Pid::from_raw(self.pid), signal).expect("the job is there to be signalled");
    }

    /// The standard output so far.
    pub fn stdout_so_far(&mut self) -> String {
        String::from_utf8_lossy(self.stdout.so_far()).into_owned()
    }

    /// The standard error so far.
    pub fn stderr_so_far(&mut self) -> String {
        String::from_utf8_lossy(self.stderr.so_far()).into_owned()
    }

    /// Waits until standard error contains the text, and returns all of it so far. Panics after 20
    /// seconds, later on a crowded machine.
    #[track_caller]
    pub fn until_it_says(&mut self, text: &str) -> String {
        let mut last = Deadline::after(Duration::from_secs(20));
        loop {
            let so_far = self.stderr_so_far();
            if so_far.contains(text) {
                return so_far;
            }
            assert!(!last.has_passed(), "\"{text}\" does not come\n{so_far}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until standard output has `count` lines, and returns them. Panics at the deadline.
    pub fn lines(&mut self, count: usize) -> Vec<String> {
        loop {
            let text = self.stdout_so_far();
            let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
            if whole.lines().count() >= count {
                return whole.lines().map(str::to_owned).collect();
            }
            if self.deadline.has_passed() {
                let standing = self.kill();
                panic!("only this was written before the deadline:\n{text}\n{standing}");
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits until the job is over and its output closed, or ends it at the deadline.
    pub fn wait(mut self) -> Outcome {
        let mut standing = String::new();
        let mut status = self.deadline.receive(&self.status).ok();
        let closed = status.is_some()
            && self.stdout.close(&mut self.deadline)
            && self.stderr.close(&mut self.deadline);
        if !closed {
            standing = self.kill();
            status = status.or_else(|| self.status.recv_timeout(Duration::from_secs(20)).ok());
            let mut last = Deadline::after(Duration::from_secs(5));
            let _ = self.stdout.close(&mut last) && self.stderr.close(&mut last);
        }
        self.over = true;
        Outcome {
            status: status.and_then(|status| status.code()),
            signal: status.and_then(|status| status.signal()),
            stdout: self.stdout_so_far(),
            stderr: self.stderr_so_far(),
            timed_out: !closed,
            standing,
        }
    }

    /// Ends all processes of the job, and returns their states. It also prints them: a test that
    /// panics for another reason still shows where its job hung.
    fn kill(&mut self) -> String {
        let mut pids = descendants(self.pid);
        if alive(self.pid) {
            pids.insert(0, self.pid);
        }
        let standing = standing(&pids);
        eprintln!("a job did not end before its deadline:\n{standing}");
        let _ = killpg(Pid::from_raw(self.pid), Signal::SIGKILL);
        for pid in pids {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        standing
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.over && self.status.try_recv().is_err() {
            let pids = descendants(self.pid);
            let _ = killpg(Pid::from_raw(self.pid), Signal::SIGKILL);
            for pid in pids {
                let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
            }
        }
    }
}

impl Outcome {
    /// Panics with the output of the job unless it exited with status 0 in time.
    #[track_caller]
    pub fn ok(&self) -> &Self {
        self.exited(0)
    }

    /// Panics with the output of the job unless it exited with this status in time.
    #[track_caller]
    pub fn exited(&self, status: i32) -> &Self {
        assert!(self.status == Some(status) && !self.timed_out, "status {status} was expected\n{self}");
        self
    }

    /// Standard error without the line in which poe says what starts the tasks of a job on
    /// several hosts.
    pub fn complaints(&self) -> String {
        let starts = |line: &str| line.starts_with("poe: ") && line.trim_end().ends_with(" hosts");
        self.stderr.split_inclusive('\n').filter(|line| !starts(line)).collect()
    }

    /// Panics unless standard error holds `text`.
    #[track_caller]
    pub fn says(&self, text: &str) -> &Self {
        assert!(self.stderr.contains(text), "\"{text}\" was expected on standard error\n{self}");
        self
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { status, signal, stdout, stderr, timed_out, standing } = self;
        writeln!(f, "status {status:?}, signal {signal:?}, timed out: {timed_out}")?;
        write!(f, "=== standard output\n{stdout}\n=== standard error\n{stderr}\n{standing}")
    }
}

/// An output of the job, read by a thread as it arrives.
#[derive(Debug)]
struct Stream {
    pieces: Receiver<Vec<u8>>,
    bytes: Vec<u8>,
}

impl Stream {
    fn read(mut from: impl Read + Send + 'static) -> Self {
        let (send, pieces) = channel();
        thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(n @ 1..) = from.read(&mut buffer) {
                if send.send(buffer[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { pieces, bytes: Vec::new() }
    }

    fn so_far(&mut self) -> &[u8] {
        while let Ok(piece) = self.pieces.try_recv() {
            self.bytes.extend(piece);
        }
        &self.bytes
    }

    /// Reads to the end; `false` when some process still held the other end at `deadline`.
    fn close(&mut self, deadline: &mut Deadline) -> bool {
        loop {
            match deadline.receive(&self.pieces) {
                Ok(piece) => self.bytes.extend(piece),
                Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }
}
