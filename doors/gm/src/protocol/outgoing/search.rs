//! How a connection finds the task of its node that has the port.

use super::state::{Flow, Place};
use super::{Around, Outgoing};
use crate::abi::Status;
use crate::protocol::types::{Data, Output};
use crate::wire::{Header, Kind};

impl Outgoing {
    /// Looks for the task that has the port.
    pub(super) fn find(&mut self, around: &mut Around<'_>) {
        let tasks = around.nodes.tasks(self.target.node);
        let alive = tasks.iter().filter(|task| !around.nodes.is_lost(**task)).count() as u32;
        if alive == 0 {
            return self.fail_first(around, Status::SendTargetNodeUnreachable);
        }
        if let [task] = *tasks {
            self.place = Place::At(task);
            return;
        }
        // A port of a task that is gone is closed.
        self.place = Place::Asked { left: alive, closed: alive < tasks.len() as u32 };
        self.round = self.round.wrapping_add(1);
        let mut header = self.header(around, Kind::Where);
        header.seq = self.round;
        for &task in tasks.iter().filter(|task| !around.nodes.is_lost(**task)) {
            around.outputs.push_back(Output { task, header, data: Data::None });
        }
        self.watch(around);
    }

    /// A get or a datagram was refused. Where it is not known yet that the port is closed in this
    /// task, the tasks of the node are asked before the next one is sent.
    pub(super) fn not_there(&mut self, from: u32, header: &Header) {
        let is_closed = header.code == Status::SendTargetPortClosed as u8;
        self.may_have_moved |= is_closed && self.place == Place::At(from);
    }

    /// A task of the node has answered.
    pub(super) fn answered(&mut self, around: &mut Around<'_>, from: u32, header: &Header) {
        use crate::wire::answer::{CLOSED, HERE};
        let waits = self.flow == Flow::Waits { not_open: true };
        match (self.place, header.code) {
            (Place::Asked { .. }, HERE) => self.place = Place::At(from),
            (Place::Unknown, HERE) if waits => {
                self.place = Place::At(from);
                self.flow = Flow::Sends;
            }
            (Place::Asked { left, closed }, code) if header.seq == self.round => {
                let (left, closed) = (left.saturating_sub(1), closed || code == CLOSED);
                self.place = Place::Asked { left, closed };
                if left == 0 {
                    self.place = Place::Unknown;
                    if closed || self.kind != Kind::Send {
                        self.fail_first(around, Status::SendTargetPortClosed);
                    } else if self.at(self.sent).is_some() {
                        self.stall(around, true);
                    }
                }
            }
            _ => {}
        }
    }
}
