//! Programs on a terminal.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use nix::libc;
use nix::pty::openpty;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::deadline::Deadline;
use crate::processes::descendants;
use crate::stage::build_dir;

/// A program on a terminal of its own, which the test types at. Dropped, it ends with all
/// processes below it.
#[derive(Debug)]
pub struct Terminal {
    program: Child,
    keys: File,
    output: Receiver<Vec<u8>>,
    /// What it has shown.
    pub seen: String,
    /// Where in `seen` the next text is expected.
    at: usize,
}

impl Terminal {
    /// Starts a program in a session of its own, with a new terminal as its input,
    /// output and error.
    pub fn start(mut command: Command) -> Self {
        let ends = openpty(None, None).expect("a terminal");
        command.env("TERM", "dumb").current_dir(build_dir());
        let clone = |fd: &OwnedFd| fd.try_clone().expect("a descriptor");
        command.stdin(clone(&ends.slave)).stdout(clone(&ends.slave)).stderr(clone(&ends.slave));
        let terminal = ends.slave.as_raw_fd();
        // SAFETY: system calls only.
        unsafe {
            command.pre_exec(move || {
                nix::unistd::setsid()?;
                // As at a login, also where the tests run in the background of a script.
                for by_key in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGTERM] {
                    libc::signal(by_key, libc::SIG_DFL);
                }
                nix::errno::Errno::result(libc::ioctl(terminal, libc::TIOCSCTTY, 0))?;
                Ok(())
            });
        }
        let program = command.spawn().unwrap_or_else(|error| panic!("{command:?} cannot be run: {error}"));
        let keys = File::from(ends.master);
        let mut reader = keys.try_clone().expect("a descriptor");
        let (sender, output) = channel();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            // EIO: no process has the terminal any more.
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                let _ = sender.send(bytes[..count].to_vec());
            }
        });
        Self { program, keys, output, seen: String::new(), at: 0 }
    }

    /// The number of its process.
    pub fn pid(&self) -> i32 {
        self.program.id() as i32
    }

    /// Types this.
    pub fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("the terminal is there");
    }

    /// Waits until the terminal shows this, after what was expected before.
    pub fn expect(&mut self, text: &str) {
        let mut deadline = Deadline::after(Duration::from_secs(60));
        loop {
            if let Some(found) = self.seen[self.at..].find(text) {
                self.at += found + text.len();
                return;
            }
            match deadline.receive(&self.output) {
                Ok(bytes) => self.seen += &String::from_utf8_lossy(&bytes),
                Err(error) => panic!("\"{text}\" is not shown ({error}):\n{}", self.seen),
            }
        }
    }

    /// Waits for its end, and returns its exit status.
    pub fn status(&mut self) -> Option<i32> {
        let mut deadline = Deadline::after(Duration::from_secs(30));
        while !deadline.has_passed() {
            while let Ok(bytes) = self.output.try_recv() {
                self.seen += &String::from_utf8_lossy(&bytes);
            }
            if let Some(status) = self.program.try_wait().expect("it is our child") {
                return status.code();
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("it does not end:\n{}", self.seen);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let below = descendants(self.program.id() as i32);
        let _ = self.program.kill();
        let _ = self.program.wait();
        for pid in below {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}
