//! What the driver and the tasks of a soak have in common: the board of `tests/c/soak/soak.h`, and
//! what the tasks print. Both are in memory: a thread that writes to a file waits when the disk
//! stands still, perhaps inside LAPI, and the tasks would look as if LAPI hung.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

/// Of the board: the offset in words of each part.
pub(super) mod word {
    pub const ERA: usize = 0;
    pub const GO: usize = 1;
    pub const STOP: usize = 2;
    pub const SEED: usize = 3;
    const PER_TASK: usize = 16;
    pub const LIFE: usize = PER_TASK;
    pub const READY: usize = 2 * PER_TASK;
    pub const RUNNING: usize = 3 * PER_TASK;
    pub const PHASE: usize = 4 * PER_TASK;
    pub const PROGRESS: usize = 5 * PER_TASK;
    pub const PURGED: usize = 6 * PER_TASK;
    pub const DONE: usize = 7 * PER_TASK;
    pub const SUMS: usize = DONE + 32;
    pub const CALLS: usize = SUMS + 16;
    pub const MOST: usize = CALLS + PER_TASK;
    pub const KNOWS: usize = MOST + 4 * PER_TASK;
    pub const END: usize = KNOWS + PER_TASK;
}

/// See the module's documentation.
pub(super) struct Board {
    words: File,
    said: File,
}

impl Board {
    pub(super) fn new() -> io::Result<Self> {
        let words = in_memory(c"soak-board")?;
        words.set_len(4096)?;
        Ok(Self { words, said: in_memory(c"soak-said")? })
    }

    /// Lets a task open the board, and print behind what others have printed.
    pub(super) fn pass_to(&self, command: &mut Command) -> io::Result<()> {
        let voice = || File::options().append(true).open(path(&self.said));
        command.env("SOAK_BOARD", path(&self.words)).stdout(voice()?).stderr(voice()?);
        pass_on(&self.words, command);
        Ok(())
    }

    /// What the tasks have printed.
    pub(super) fn said(&self) -> String {
        fs::read(path(&self.said))
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .unwrap_or_default()
    }

    pub(super) fn get(&self, at: usize) -> u64 {
        assert!(at < word::END, "a word of the board");
        let mut bytes = [0; 8];
        self.words.read_exact_at(&mut bytes, 8 * at as u64).expect("the board can be read");
        u64::from_le_bytes(bytes)
    }

    pub(super) fn set(&self, at: usize, value: u64) {
        self.words.write_all_at(&value.to_le_bytes(), 8 * at as u64).expect("the board can be written");
    }
}

/// A file that is in memory and has no name.
pub(super) fn in_memory(name: &CStr) -> io::Result<File> {
    // SAFETY: the name ends, and the call makes a descriptor that is owned by nothing else.
    unsafe {
        let number = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC);
        if number < 0 { Err(io::Error::last_os_error()) } else { Ok(File::from_raw_fd(number)) }
    }
}

/// Lets the process of the command have the file, too, by the same number.
pub(super) fn pass_on(file: &File, command: &mut Command) {
    let number = file.as_raw_fd();
    // SAFETY: the closure makes one system call, and the child has the descriptor that it names.
    unsafe {
        command.pre_exec(move || {
            let file = BorrowedFd::borrow_raw(number);
            fcntl(file, FcntlArg::F_SETFD(FdFlag::empty())).map(drop).map_err(io::Error::from)
        });
    }
}

/// A path to a file of this process. A task has its own: to one below `/proc` of this process a
/// task in another user namespace has no access.
fn path(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
