//! Pseudoterminals for the tasks' standard output: a program whose output is a terminal writes each
//! line when it is printed, so that lines are seen in time, and those before a crash are not lost.
//!
//! They are raw: every byte passes unchanged, and nothing is echoed.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use nix::fcntl::OFlag;
use nix::libc;
use nix::pty::{Winsize, grantpt, posix_openpt, unlockpt};
use nix::sys::termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr};

/// Makes a pseudoterminal: the end that `poe` reads, and the end that a task writes. No program
/// inherits them by accident, and neither becomes a controlling terminal.
pub(super) fn open() -> io::Result<(File, OwnedFd)> {
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let master = posix_openpt(flags)?;
    grantpt(&master)?;
    unlockpt(&master)?;
    // SAFETY: asks the terminal for its other end; the arguments are those that the call wants.
    // Unlike a name, this works where /dev/pts is another one than the terminal's.
    let number = unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCGPTPEER, flags.bits()) };
    if number < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just made, and owned by nothing else.
    let slave = unsafe { OwnedFd::from_raw_fd(number) };
    let mut modes = tcgetattr(&slave)?;
    cfmakeraw(&mut modes);
    tcsetattr(&slave, SetArg::TCSANOW, &modes)?;
    copy_size(&slave);
    Ok((File::from(OwnedFd::from(master)), slave))
}

/// Programs that ask how wide their output is see the terminal of `poe`, if there is one.
fn copy_size(to: &OwnedFd) {
    let mut size = Winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: `size` is as large as the calls want, and lives through them.
    unsafe {
        if libc::ioctl(io::stdout().as_fd().as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) == 0 {
            libc::ioctl(to.as_raw_fd(), libc::TIOCSWINSZ, &raw const size);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn every_byte_passes_unchanged_and_none_is_lost_at_the_end() {
        let (mut master, slave) = open().expect("a pseudoterminal");
        assert!(nix::unistd::isatty(&slave).expect("it can be asked"));
        let bytes: Vec<u8> = (0..200_000_u32).map(|at| (at * 7 % 256) as u8).collect();
        let written = bytes.clone();
        let writer = std::thread::spawn(move || File::from(slave).write_all(&written));
        let mut read = Vec::new();
        // The end of it is an error.
        assert!(master.read_to_end(&mut read).is_err());
        writer.join().expect("no panic").expect("all is written");
        assert!(read == bytes, "{} of {} bytes", read.len(), bytes.len());
    }
}
