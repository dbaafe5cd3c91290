//! This endpoint as one of several rails: notes, and the events that the rails' owner is informed of.

use super::sockets::disconnect;
use super::{FabricTransport, PUBLISHED_BEFORE};
use crate::transport::rails::{OF_RAIL, Rail, RailEvent};
use crate::transport::{Peers, Task};
use crate::wire::network::{FRAME, Frame, Kind};
use crate::wire::rails::NOTE;
use std::collections::VecDeque;

/// What only an endpoint that is a rail has.
#[derive(Default)]
pub(super) struct RailSide {
    events: VecDeque<RailEvent>,
}

impl Rail for FabricTransport {
    fn become_rail(&mut self) {
        self.rail = Some(Box::default());
    }

    /// It has the first tag always: tasks that have parted here send it, too.
    fn send_note(&mut self, task: Task, note: &[u8; NOTE]) -> bool {
        if self.closed || !self.meet(task) {
            return false;
        }
        let Some(address) = self.peer(task).and_then(|peer| peer.address) else { return false };
        let frame = Frame {
            kind: Kind::RailNote,
            src: self.me,
            tag: self.first_tag,
            credits: 0,
            head_len: 0,
            body_len: NOTE as u32,
        };
        let mut message = [0; FRAME + NOTE];
        message[..FRAME].copy_from_slice(&frame.encode());
        message[FRAME..].copy_from_slice(note);
        self.device.inject(&message, address).is_ok()
    }

    fn event(&mut self) -> Option<RailEvent> {
        self.rail.as_mut()?.events.pop_front()
    }

    fn leave(&mut self, task: Task, failed: bool) {
        if !failed {
            self.disconnect(task);
        }
        self.cut(task);
        self.part(task);
    }
}

impl FabricTransport {
    /// Ends the connections with the peer, where libfabric keeps them: its provider for TCP.
    fn disconnect(&mut self, task: Task) {
        let Some(peer) = self.peer(task) else { return };
        let addresses = self.published.get(PUBLISHED_BEFORE..).zip(peer.published.get(PUBLISHED_BEFORE..));
        if let Some((own, peer)) = addresses.filter(|_| self.device.info().provider().starts_with("tcp")) {
            disconnect(own, peer);
        }
    }

    /// Whether this is the epoch of a rail that is joined again, and not of the peer itself.
    pub(super) fn is_rail_epoch(&self, epoch: u64) -> bool {
        self.rail.is_some() && epoch & OF_RAIL != 0
    }

    /// Notes an event for the rails' owner, if this is a rail.
    pub(super) fn note_event(&mut self, event: RailEvent) {
        if let Some(rail) = &mut self.rail {
            rail.events.push_back(event);
        }
    }

    /// Whether the rails' owner is to take note of something.
    pub(super) fn has_events(&self) -> bool {
        self.rail.as_ref().is_some_and(|rail| !rail.events.is_empty())
    }
}
