//! Where the tasks of a soak run when they are not all on this machine: hosts that are network
//! namespaces, and the file by which the tasks find each other's addresses, as poe's tasks have it
//! (`LAPI_JOB_FD`). All hosts are of one machine: one file serves them all.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Command;

use nix::fcntl::{FcntlArg, fcntl};
use openlapi::wire::board::{Word, size};

use super::board::{in_memory, pass_on};
use super::{Network, Soak};
use crate::hosts::{Hosts, Layout};

/// The lowest number of the file's descriptor in the tasks.
const FIRST_PLACE: i32 = 101;

pub(super) struct Places {
    hosts: Hosts,
    rails: usize,
    network: Network,
    file: File,
    tasks: usize,
}

impl Places {
    /// The hosts of a soak, with the links between them.
    pub(super) fn new(soak: &Soak) -> io::Result<Self> {
        let Soak { hosts, rails, tasks, network, .. } = *soak;
        let hosts = Hosts::with(Layout { hosts, rails, own_tmp: false }).map_err(io::Error::other)?;
        if let Network::Udp { loss: loss @ 1.. } = network {
            hosts.lose(loss).map_err(io::Error::other)?;
        }
        let made = in_memory(c"lapi-job")?;
        let number = fcntl(&made, FcntlArg::F_DUPFD_CLOEXEC(FIRST_PLACE))?;
        // SAFETY: just made, and owned by nothing else.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(number) });
        file.set_len(size(tasks as u32))?;
        Ok(Self { hosts, rails, network, file, tasks })
    }

    /// The command that starts the program as a task of the job with this number.
    pub(super) fn command(&self, task: usize, program: &Path, partition: &str) -> io::Result<Command> {
        let count = self.hosts.count();
        let others = (0..self.tasks).filter(|other| *other != task && other % count == task % count);
        let others: Vec<String> = others.map(|other| format!(":{other}")).collect();
        let mut command = Command::new(self.hosts.entrance(task % count));
        let (number, inode) = (self.file.as_raw_fd(), self.file.metadata()?.ino());
        command
            .arg(program)
            .env("MP_COMMON_TASKS", format!("{}{}", others.len(), others.concat()))
            .env("LAPI_JOB_FD", format!("{number}:{inode}@{partition}"));
        if self.rails > 1 {
            command.env("MP_EUIDEVICE", "sn_all");
        }
        if self.network != Network::Fabric {
            command.env("MP_EUILIB", "ip");
        }
        pass_on(&self.file, &mut command);
        Ok(command)
    }

    /// The process of this task has died, and another one takes its place.
    pub(super) fn replace(&self, task: usize) -> io::Result<()> {
        let read = |word: Word| {
            let mut bytes = [0; 4];
            self.file.read_exact_at(&mut bytes, word.at(task as u32)).map(|()| u32::from_le_bytes(bytes))
        };
        let (opened, closed) = (read(Word::Opened(0))?, read(Word::Closed(0))?);
        if opened > closed {
            self.file.write_all_at(&opened.to_le_bytes(), Word::Rejoins(0).at(task as u32))?;
        }
        Ok(())
    }
}
