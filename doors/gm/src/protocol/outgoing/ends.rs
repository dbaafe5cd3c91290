//! How the messages of a connection end, in their order.

use super::state::Flow;
use super::{Around, Outgoing};
use crate::abi::Status;
use crate::protocol::messages::Message;
use crate::protocol::types::{Event, Request};
use crate::wire::Kind;
use std::collections::VecDeque;

impl Outgoing {
    /// A send that was wrong by itself, or a drop of sends, ends when those before it have ended.
    pub fn end_in_turn(&mut self, events: &mut VecDeque<Event>, ended: Event) {
        match self.queue.len() as u32 {
            0 => events.push_back(ended),
            before => self.faults.push_back((self.ended.wrapping_add(before), ended)),
        }
    }

    /// Ends messages from the first one on.
    pub(super) fn settle(&mut self, around: &mut Around<'_>) {
        while let Some(&at) = self.queue.front() {
            let is_in_use = around.messages.is_in_use(at);
            let &mut Message { request, delivered, status, .. } = around.messages.at(at);
            let Some(status) = (if delivered { Some(Status::Success) } else { status }) else { return };
            if is_in_use {
                if !std::mem::replace(&mut self.lags, true) {
                    around.lagging.push_back(self.index);
                }
                return;
            }
            self.queue.pop_front();
            if self.kind != Kind::Send {
                self.sent = self.sent.saturating_sub(1);
            } else if delivered {
                self.delivered -= 1;
                self.sent -= 1;
            }
            around.messages.remove(at);
            let Request { then, address, .. } = request;
            around.events.push_back(Event::Ended { then, status, address });
            self.ended = self.ended.wrapping_add(1);
            while self.faults.front().is_some_and(|(after, _)| *after == self.ended) {
                around.events.extend(self.faults.pop_front().map(|(_, fault)| fault));
            }
            let failed = !matches!(status, Status::Success | Status::SendDropped);
            if failed && self.kind == Kind::Send {
                self.sent = self.delivered;
                self.flow = Flow::Stands;
                if then.callback == 0 {
                    // The program cannot learn of it, and so cannot say what follows.
                    self.restart();
                }
            }
        }
    }
}
