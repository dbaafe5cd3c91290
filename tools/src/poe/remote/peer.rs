//! One task's control connection as the hub has it: what arrives is put together to notes, and what
//! is to be sent waits here until the connection takes it, so that a machine that does not read
//! delays no other one.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::sync::Weak;

use nix::poll::PollFlags;
use rustix::net::{Shutdown, shutdown};

use super::super::supervisor::Note;
use super::link::Connection;
use super::mirror::LONGEST;

/// A task on another machine.
pub(super) struct Peer {
    control: Connection,
    /// The connections of its output and error, while they are read.
    data: Vec<Weak<File>>,
    /// The task's end was reported.
    pub ended: bool,
    /// What has arrived and is no complete note yet.
    input: Vec<u8>,
    /// What waits to be sent. Tasks have what they all get in common.
    output: VecDeque<Rc<[u8]>>,
    /// How much of the first of these was sent.
    sent: usize,
}

/// What a task has sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Arrived {
    Note(Note),
    /// What it has written into its file.
    Changes(Vec<u8>),
}

impl Peer {
    /// Of a task with these connections: `control` does not block, and `data` are those
    /// that end with it.
    pub(super) fn new(control: Connection, data: Vec<Weak<File>>) -> Self {
        let (ended, input, output, sent) = (false, Vec::new(), VecDeque::new(), 0);
        Self { control, data, ended, input, output, sent }
    }

    /// What it is to be polled for.
    pub(super) fn events(&self) -> PollFlags {
        let writes = if self.output.is_empty() { PollFlags::empty() } else { PollFlags::POLLOUT };
        PollFlags::POLLIN | writes
    }

    /// Has bytes sent. An error is the end of the connection.
    pub(super) fn send(&mut self, bytes: Rc<[u8]>) -> io::Result<()> {
        self.output.push_back(bytes);
        self.write()
    }

    /// Sends what the connection takes now.
    pub(super) fn write(&mut self) -> io::Result<()> {
        while let Some(first) = self.output.front() {
            match self.control.write(&first[self.sent..]) {
                Ok(written) => self.sent += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            if self.sent == first.len() {
                self.output.pop_front();
                self.sent = 0;
            }
        }
        Ok(())
    }

    /// Reads what is there, once. An error is the end of the connection.
    pub(super) fn read(&mut self) -> io::Result<()> {
        let mut bytes = [0; 1 << 16];
        match self.control.read(&mut bytes) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                self.input.extend_from_slice(&bytes[..read]);
                Ok(())
            }
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The next of what has arrived as a whole. An error: it is no note.
    pub(super) fn next(&mut self) -> io::Result<Option<Arrived>> {
        let Some(head) = self.input.get(..Note::LENGTH) else { return Ok(None) };
        let note = Note::read(&mut &head[..])?;
        let Note::Changes { length } = note else {
            self.input.drain(..Note::LENGTH);
            return Ok(Some(Arrived::Note(note)));
        };
        if length > LONGEST {
            return Err(ErrorKind::InvalidData.into());
        }
        let end = Note::LENGTH + length;
        if self.input.len() < end {
            return Ok(None);
        }
        let changes = self.input[Note::LENGTH..end].to_vec();
        self.input.drain(..end);
        Ok(Some(Arrived::Changes(changes)))
    }

    /// Closes the control connection: the task ends if it still runs. Returns the connections of
    /// its data, on which something may still be on its way.
    pub(super) fn close(self) -> Vec<Weak<File>> {
        self.data
    }
}

impl AsFd for Peer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.control.as_fd()
    }
}

/// Ends a connection for all who have it: what has arrived is read, and then the end.
pub(super) fn end(data: &File) {
    let _ = shutdown(data, Shutdown::Both);
}
