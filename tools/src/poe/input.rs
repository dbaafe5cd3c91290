//! Standard input of the tasks (MP_STDINMODE).

use std::fs::File;
use std::io::{Read, Stdin, Write};
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
use crate::patient::Patient;

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

/// Copies standard input to all these pipes, in a thread of its own, until it or they end. The tasks proceed together: one
/// that does not read delays the others once its pipe is full.
///
/// A terminal is read while `poe` is in its foreground only: what is typed for the shell stays there. Little of it is read ahead, because
/// what no task reads was typed for the shell, too.
pub(super) fn copy_to_all(mut pipes: Vec<File>) -> Result<(), Error> {
    let copy = move || {
        let stdin = std::io::stdin();
        if is_our_terminal() {
            // The system refuses to read it in the background, instead of stopping the job.
            let _ = SigSet::from(Signal::SIGTTIN).thread_block();
            pipes.iter().for_each(make_short);
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

/// Waits until each pipe has room and there is input. Drops the pipes that nobody reads any more; `false`: none is left.
fn wait_for_input(stdin: &Stdin, pipes: &mut Vec<File>) -> bool {
    pipes.retain(|pipe| {
        let mut room = [PollFd::new(pipe.as_fd(), PollFlags::POLLOUT)];
        wait(&mut room);
        !has_ended(&room[0])
    });
    while !pipes.is_empty() {
        let mut polled = vec![PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        polled.extend(pipes.iter().map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::empty())));
        wait(&mut polled);
        let mut ended = polled[1..].iter().map(has_ended).collect::<Vec<_>>().into_iter();
        if polled[0].any() == Some(true) {
            return true;
        }
        pipes.retain(|_| ended.next() != Some(true));
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

/// Whether standard input is the terminal of this session: what is typed there may be for the shell.
pub(super) fn is_our_terminal() -> bool {
    tcgetpgrp(std::io::stdin()).is_ok()
}

/// Whether it is, and another process group uses it.
pub(super) fn is_in_background() -> bool {
    tcgetpgrp(std::io::stdin()).is_ok_and(|foreground| foreground != getpgrp())
}
