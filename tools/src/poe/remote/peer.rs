//! One task on another machine as the hub has it: its control connection, and those of its data.

use std::fs::File;
use std::sync::Weak;

use rustix::net::{Shutdown, shutdown};

use super::super::notes::Exchange;
use super::link::Connection;

/// A task on another machine.
pub(super) struct Peer {
    /// What is to be sent waits here, so that a machine that does not read delays no other one.
    pub control: Exchange<Connection>,
    /// The connections of its output and error, while they are read.
    data: Vec<Weak<File>>,
    /// The task's end was reported.
    pub ended: bool,
}

impl Peer {
    /// Of a task with these connections: `control` does not block, and `data` are those
    /// that end with it.
    pub(super) fn new(control: Connection, data: Vec<Weak<File>>) -> Self {
        Self { control: Exchange::new(control), data, ended: false }
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
