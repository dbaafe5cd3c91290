//! This endpoint as one of several rails: notes, and the events that the rails' owner
//! is informed of.

use super::own::Wants;
use super::workarounds::disconnect;
use super::{FabricTransport, PUBLISHED_BEFORE};
use crate::transport::Task;
use crate::transport::rails::{OF_RAIL, Rail, RailEvent};
use crate::wire::network::FrameKind;
use crate::wire::rails::NOTE;
use std::collections::VecDeque;

impl Rail for FabricTransport {
    fn become_rail(&mut self) {
        self.rail = Some(VecDeque::new());
        self.limits.standing_keys = false;
    }

    fn replaces(&self) -> bool {
        self.rejoining.replaces
    }

    fn note_contact(&mut self, task: Task) {
        if self.meet(task)
            && let Some(peer) = self.peer_mut(task)
        {
            peer.known = true;
        }
    }

    fn admit(&mut self, task: Task) {
        if !self.meet(task) || self.peer(task).is_none_or(|peer| !peer.is_up() || peer.is_known()) {
            return;
        }
        self.await_first(task);
        self.owe(task, Wants::REJOIN);
        self.send_own(task);
    }

    /// A note has the first tag always: tasks that have parted here send it, too.
    fn send_note(&mut self, task: Task, note: &[u8; NOTE]) -> bool {
        if self.closed || !self.meet(task) {
            return false;
        }
        let Some(peer) = self.peer(task).filter(|peer| peer.address.is_some()) else { return false };
        let frame = self.credentials.frame(FrameKind::RailNote, NOTE);
        self.inject_own(task, peer, &frame, note).is_ok()
    }

    fn event(&mut self) -> Option<RailEvent> {
        let event = self.rail.as_mut()?.pop_front()?;
        if let RailEvent::Rejoined(task, _) = event {
            self.note_named(task);
        }
        Some(event)
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
        let addresses =
            self.credentials.published.get(PUBLISHED_BEFORE..).zip(peer.published.get(PUBLISHED_BEFORE..));
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
        if let Some(events) = &mut self.rail {
            events.push_back(event);
        }
    }

    /// The peer has rejoined, which is reported to the engine or the rails' owner: what it has sent
    /// is handed out after that.
    pub(super) fn note_rejoined(&mut self, task: Task, epoch: u64) {
        match &mut self.rail {
            Some(events) => events.push_back(RailEvent::Rejoined(task, epoch)),
            None => self.rejoining.back.push_back((task, epoch)),
        }
    }

    /// The engine, or the rails' owner, knows from now on that the peer has rejoined.
    pub(super) fn note_named(&mut self, task: Task) {
        if let Some(peer) = self.peers[task as usize].as_deref_mut() {
            peer.unnamed = false;
            if !peer.held {
                self.receiving.add_packets(&mut peer.aside);
            }
        }
    }

    /// The connection with the peer is given up: what has happened to it is not to be
    /// reported any more.
    pub(super) fn drop_events(&mut self, task: Task) {
        let of_connection = |event: &RailEvent| match event {
            RailEvent::Rejoined(of, _) | RailEvent::Lost(of) | RailEvent::Parted(of, _) => *of == task,
            RailEvent::Note(..) | RailEvent::Ended(_) => false,
        };
        if let Some(events) = &mut self.rail {
            events.retain(|event| !of_connection(event));
        }
    }

    /// Whether the rails' owner is to take note of something.
    pub(super) fn has_events(&self) -> bool {
        self.rail.as_ref().is_some_and(|events| !events.is_empty())
    }
}
