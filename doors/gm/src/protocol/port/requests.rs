//! What the program asks a port for: sends, puts and gets, and what follows where one has failed.

use super::{Port, key};
use crate::abi::{PORTS, SIZES, Status};
use crate::protocol::registered::is_memory;
use crate::protocol::types::{Event, Request, Target, Then};
use crate::wire::Kind;

impl Port {
    /// Sends, puts or gets.
    pub fn start(&mut self, now: u64, request: Request) {
        self.idle = 0;
        let kind = if request.kind == Kind::Put { Kind::Send } else { request.kind };
        let added = match self.fault(&request) {
            Some(status) => Err(status),
            None => self.messages.add(request).ok_or(Status::InvalidParameter),
        };
        match added {
            Ok(message) => {
                let at = self.connection(request.target, kind);
                let (connection, mut around) = self.out(at, now);
                connection.add(&mut around, message);
            }
            Err(status) => {
                let Request { target, then, address, .. } = request;
                let ended = Event::Ended { then, status, address };
                // A fault may name a port that none can be, and to which there is no connection.
                match self.outgoing_by.get(&key(target, kind)) {
                    Some(at) => self.outgoing[*at as usize].end_in_turn(&mut self.events, ended),
                    None => self.events.push_back(ended),
                }
            }
        }
    }

    /// What is wrong with a request by itself.
    fn fault(&self, request: &Request) -> Option<Status> {
        let Target { node, port, priority } = request.target;
        if usize::from(port) >= PORTS || priority > 1 || !is_memory(request.address, request.length) {
            return Some(Status::InvalidParameter);
        }
        let has_size = matches!(request.kind, Kind::Send | Kind::Datagram);
        if has_size && (request.size >= SIZES || request.length > crate::abi::capacity(request.size)) {
            return Some(Status::InvalidParameter);
        }
        if request.kind == Kind::Datagram && request.length > crate::abi::MTU.into() {
            return Some(Status::InvalidParameter);
        }
        if self.settings.check && !self.registered.has(request.address, request.length as usize) {
            return Some(Status::MemoryFault);
        }
        (self.nodes.tasks(node).is_empty()).then_some(Status::SendTargetNodeUnreachable)
    }

    /// A connection that stands still after a failure goes on.
    pub fn resume(&mut self, now: u64, target: Target, then: Then) {
        self.events.push_back(Event::Ended { then, status: Status::Success, address: 0 });
        if let Some(at) = self.known(target) {
            let (connection, mut around) = self.out(at, now);
            connection.resume(&mut around);
        }
    }

    /// A connection that stands still after a failure forgets what it has.
    pub fn drop_sends(&mut self, now: u64, target: Target, then: Then) {
        let dropped = Event::Ended { then, status: Status::Success, address: 0 };
        match self.known(target) {
            Some(at) => {
                let (connection, mut around) = self.out(at, now);
                connection.drop_all(&mut around, dropped);
            }
            None => self.events.push_back(dropped),
        }
    }
}
