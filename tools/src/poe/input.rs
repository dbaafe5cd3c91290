//! Standard input of the tasks (MP_STDINMODE).

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{getpgrp, tcgetpgrp};

use super::error::Error;
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

/// How often a terminal that has something for another process group is looked at again.
const LOOK: Duration = Duration::from_millis(200);

/// Copies standard input to all these pipes, in a thread of its own, until it or they end. The
/// tasks proceed together: one that does not read delays the others once its pipe is full.
///
/// A terminal is read while `poe` is in its foreground only: what is typed for the shell stays
/// there. Little of it is read ahead for a single task, because what no task reads was typed for
/// the shell, too.
pub(super) fn copy_to_all(mut pipes: Vec<File>) -> Result<(), Error> {
    let copy = move || {
        let stdin = std::io::stdin();
        if is_our_terminal() {
            // The system refuses to read it in the background, instead of stopping the job.
            let _ = SigSet::from(Signal::SIGTTIN).thread_block();
            if let [only] = &pipes[..] {
                make_short(only);
            }
        }
        let mut buffer = vec![0; 1 << 16];
        while wait_for_input(&stdin, &mut pipes) {
            match Patient(&stdin).read(&mut buffer) {
                Ok(length @ 1..) => {
                    pipes.retain_mut(|pipe| Patient(pipe).write_all(&buffer[..length]).is_ok())
                }
                Err(_) if is_in_background() => thread::sleep(LOOK),
                Ok(_) | Err(_) => return,
            }
        }
    };
    let thread = thread::Builder::new().name("poe-input".into()).spawn(copy);
    thread.map(drop).map_err(|error| Error::system("cannot start the thread that copies input", error))
}

/// Waits until there is input, and until the pipe has room if it is the only one: of several, one
/// without a reader shall not keep input from the others. Drops the pipes without a reader;
/// `false`: none is left.
fn wait_for_input(stdin: &impl AsFd, pipes: &mut Vec<File>) -> bool {
    if let [only] = &pipes[..] {
        wait(&mut [PollFd::new(only.as_fd(), PollFlags::POLLOUT)]);
    }
    while !pipes.is_empty() {
        let mut polled = vec![PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        polled.extend(pipes.iter().map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::empty())));
        wait(&mut polled);
        let is_input = polled[0].any() == Some(true);
        let mut ended = polled[1..].iter().map(has_ended).collect::<Vec<_>>().into_iter();
        pipes.retain(|_| ended.next() != Some(true));
        if is_input && !pipes.is_empty() {
            return true;
        }
    }
    false
}

fn wait(polled: &mut [PollFd<'_>]) {
    while poll(polled, PollTimeout::NONE) == Err(Errno::EINTR) {}
}

fn has_ended(pipe: &PollFd<'_>) -> bool {
    pipe.revents().is_some_and(|events| events.intersects(PollFlags::POLLERR | PollFlags::POLLHUP))
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
mod tests {
    use super::*;
    use crate::poe::streams::pipe;
    use std::sync::mpsc;

    /// What [`wait_for_input`] returns, and the number of pipes that are left.
    fn waits(stdin: File, mut pipes: Vec<File>) -> mpsc::Receiver<(bool, usize)> {
        let (done, waiting) = mpsc::channel();
        thread::spawn(move || {
            let more = wait_for_input(&stdin, &mut pipes);
            done.send((more, pipes.len()))
        });
        waiting
    }

    #[test]
    fn a_task_that_does_not_read_keeps_no_input_from_the_others() {
        let files = || pipe().map(|(read, write)| (File::from(read), File::from(write))).expect("a pipe");
        let ((stdin, mut typed), (idle, full), (_reads, empty)) = (files(), files(), files());
        make_short(&full);
        (&full).write_all(&[0]).expect("it has room");
        typed.write_all(b"line\n").expect("it has room");
        let patience = Duration::from_secs(60);
        let copy = |file: &File| file.try_clone().expect("a descriptor");
        let several = waits(copy(&stdin), vec![copy(&full), empty]);
        assert_eq!(several.recv_timeout(patience), Ok((true, 2)));
        // Alone, it gets no more than it reads.
        let alone = waits(stdin, vec![full]);
        assert!(alone.recv_timeout(Duration::from_millis(50)).is_err(), "nothing is read ahead");
        (&idle).read_exact(&mut [0]).expect("it was written");
        assert_eq!(alone.recv_timeout(patience), Ok((true, 1)));
    }

    #[test]
    fn without_readers_there_is_nothing_to_wait_for() {
        let ((stdin, typed), (read, write)) = (pipe().expect("a pipe"), pipe().expect("a pipe"));
        File::from(typed).write_all(b"line\n").expect("it has room");
        drop(read);
        let ended = waits(stdin.into(), vec![write.into()]);
        assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok((false, 0)));
    }
}
