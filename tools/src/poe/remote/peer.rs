//! One task on another machine as the hub has it: its control connection, and those of its data.

use std::fs::File;
use std::sync::Weak;

use rustix::net::{Shutdown, shutdown};

use super::super::notes::{Exchange, Note};
use super::link::Connection;

/// How many replies a task has to one look: what its process does at once, and what it says itself.
const REPLIES: u8 = 2;

/// A task on another machine.
pub(super) struct Peer {
    /// What is to be sent waits here, so that a machine that does not read delays no other one.
    pub control: Exchange<Connection>,
    /// The connections of its output and error, while they are read.
    data: Vec<Weak<File>>,
    /// The task's end was reported.
    pub ended: bool,
    /// The look that it was sent, and to which it has not replied yet.
    pub asked: Option<u32>,
    /// How many replies to the last look are taken from it.
    pub replies: u8,
}

impl Peer {
    /// Of a task with these connections: `control` does not block, and `data` are those
    /// that end with it.
    pub(super) fn new(control: Connection, data: Vec<Weak<File>>) -> Self {
        Self { control: Exchange::new(control), data, ended: false, asked: None, replies: 0 }
    }

    /// Asks the task, for those who look on. One that has not replied is not asked again: looks
    /// that it does not read would fill its connection, which would end, and with it the job.
    pub(super) fn look(&mut self, number: u32) {
        if self.asked.is_none() {
            (self.asked, self.replies) = (Some(number), REPLIES);
            // One that is gone is seen when it is read.
            let _ = self.control.send_bytes(Note::Look { number }.bytes().as_slice().into());
        }
    }

    /// Closes the control connection: the task ends if it still runs. Returns the connections of
    /// its data, on which something may still be on its way.
    pub(super) fn close(self) -> Vec<Weak<File>> {
        self.data
    }
}

/// Ends a connection for all who have it: what has arrived is read, and then the end.
pub(super) fn end(data: &File) {
    let _ = shutdown(data, Shutdown::Both);
}
