//! Which processors the jobs of this machine have taken, so that two jobs do not get the same ones.
//!
//! A job holds a read lock on a byte for each of its processors, in a file that every process can
//! read and that is always there. Nothing is left behind when `poe` is killed, and no right to
//! write is needed. (A lock for writing would be exclusive, but needs that right: two jobs that
//! start at the same moment may both take a processor, see that, and choose again.)

use std::fs::File;
use std::os::fd::AsFd;
use std::thread::sleep;
use std::time::Duration;

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc::{F_RDLCK, F_UNLCK, F_WRLCK, SEEK_SET, c_short, flock};

const FILE: &str = "/sys/devices/system/cpu/possible";
const ATTEMPTS: u32 = 5;

/// The locks of one job, until it is dropped by all processes that have it.
pub(super) struct Claims {
    /// `None`: the file does not exist, and nothing is known of other jobs.
    file: Option<File>,
}

impl Claims {
    pub(super) fn open() -> Self {
        Self { file: File::open(FILE).ok() }
    }

    /// Of a job that takes nothing, and does not see what others have taken.
    pub(super) fn none() -> Self {
        Self { file: None }
    }

    /// Whether another job has this processor.
    pub(super) fn are_taken(&self, processor: usize) -> bool {
        let mut lock = byte(F_WRLCK, processor);
        let asked = self.file.as_ref().map(|file| fcntl(file.as_fd(), FcntlArg::F_OFD_GETLK(&mut lock)));
        matches!(asked, Some(Ok(_))) && i32::from(lock.l_type) != F_UNLCK
    }

    /// Takes the processors that are chosen; none if others take the same at the same moment,
    /// again and again.
    pub(super) fn take(&mut self, choose: impl Fn(&Self) -> Vec<Vec<usize>>) -> Vec<Vec<usize>> {
        for attempt in 0..ATTEMPTS {
            let chosen = choose(self);
            self.hold(&chosen);
            if !chosen.iter().flatten().any(|cpu| self.are_taken(*cpu)) {
                return chosen;
            }
            chosen.iter().flatten().for_each(|cpu| self.lock(F_UNLCK, *cpu));
            // Another process waits for another time.
            sleep(Duration::from_millis(u64::from(std::process::id() % 8 + 1) << attempt));
        }
        Vec::new()
    }

    /// Takes these processors, though others may have them too.
    pub(super) fn hold(&self, chosen: &[Vec<usize>]) {
        chosen.iter().flatten().for_each(|cpu| self.lock(F_RDLCK, *cpu));
    }

    fn lock(&self, kind: i32, processor: usize) {
        if let Some(file) = &self.file {
            // Without locks jobs do not know of each other, which is all.
            let _ = fcntl(file.as_fd(), FcntlArg::F_OFD_SETLK(&byte(kind, processor)));
        }
    }
}

fn byte(kind: i32, processor: usize) -> flock {
    flock {
        l_type: kind as c_short,
        l_whence: SEEK_SET as c_short,
        l_start: processor as i64,
        l_len: 1,
        l_pid: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_job_has_another_does_not_take() {
        // Far from real processors, and from those of a test that runs at the same time.
        let base = 1_000_000 + std::process::id() as usize * 4;
        let choose = move |claims: &Claims| {
            let free = (base..base + 2).filter(|cpu| !claims.are_taken(*cpu));
            free.take(1).map(|cpu| vec![cpu]).collect::<Vec<_>>()
        };
        let (mut one, mut two, mut three) = (Claims::open(), Claims::open(), Claims::open());
        assert_eq!(one.take(choose), [[base]]);
        assert_eq!(two.take(choose), [[base + 1]]);
        assert!(three.take(choose).is_empty());
        drop(one);
        assert_eq!(three.take(choose), [[base]]);
        assert!(three.are_taken(base + 1) && !three.are_taken(base), "one's own is not another's");
    }
}
