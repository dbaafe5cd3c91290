//! Packets through the inboxes of a network.

use super::network::Inbox;
use super::{MemOptions, MemTransport};
use crate::transport::parcel::Parcel;
use crate::transport::{Endpoint, Inbound, Limits, Outgoing, PeerState, RemoteAccess, SendError, Task};

impl Endpoint for MemTransport {
    fn name(&self) -> &'static str {
        "mem"
    }

    fn limits(&self, _peer: Task) -> Limits {
        let MemOptions { max_body, capacity, .. } = self.network.options;
        Limits { max_body, ordered: true, window: capacity, receive_buffer: capacity * max_body }
    }

    unsafe fn try_send(&mut self, peer: Task, packet: &Outgoing<'_>) -> Result<(), SendError> {
        assert_ne!(peer, self.task, "a transport carries nothing from a task to itself");
        assert!(packet.body_len() <= self.network.options.max_body, "a body beyond the limit");
        if let Some(&awaited) = self.absent.get(&peer) {
            return Err(if awaited { SendError::NoRoom } else { SendError::PeerGone });
        }
        let end = self.network.end(peer);
        let mut inbox = end.inbox.lock();
        if !self.knows(peer)
            || end.state() != PeerState::Up
            || self.network.end(self.task).state() != PeerState::Up
        {
            return Err(SendError::PeerGone);
        }
        if self.network.rejoins.lock().contains_key(&(self.task, peer)) {
            // It has not taken note yet that this task has rejoined.
            return Err(SendError::NoRoom);
        }
        let Inbox { lanes, ready, spare, .. } = &mut *inbox;
        let lane = lanes.entry(self.task).or_default();
        if lane.taken == self.network.options.capacity {
            lane.wanted = true;
            return Err(SendError::NoRoom);
        }
        lane.wanted = false;
        lane.taken += 1;
        // SAFETY: the pieces are readable during the call, as the caller promised.
        let parcel = unsafe { Parcel::gather(self.task, packet, spare.pop().unwrap_or_default()) };
        lane.queue.push_back(parcel);
        if lane.queue.len() == 1 {
            ready.push_back(self.task);
        }
        end.call(&mut inbox);
        Ok(())
    }

    fn recv(&mut self) -> Option<Inbound> {
        assert!(self.out.is_none(), "the packet before has not been released");
        let mut inbox = self.network.end(self.task).inbox.lock();
        let parcel = loop {
            let src = inbox.ready.pop_front()?;
            if self.absent.contains_key(&src) {
                // It does not know that this task has parted from it.
                inbox.lanes.remove(&src);
                continue;
            }
            let lane = inbox.lanes.get_mut(&src).expect("a ready lane exists");
            let parcel = lane.queue.pop_front().expect("a ready lane has a packet");
            if !lane.queue.is_empty() {
                inbox.ready.push_back(src);
            }
            break parcel;
        };
        drop(inbox);
        self.serial += 1;
        Some(self.out.insert(parcel).inbound(self.serial))
    }

    fn release(&mut self, packet: Inbound) {
        let parcel = self.out.take().expect("a packet is released once");
        assert_eq!(packet.token, self.serial, "the packet released is the one handed out last");
        let mut inbox = self.network.end(self.task).inbox.lock();
        // A task that was killed meanwhile has no lanes any more.
        let Some(lane) = inbox.lanes.get_mut(&parcel.src) else { return };
        // The lane of one that was parted from, and has come back, is a new one.
        lane.taken = lane.taken.saturating_sub(1);
        lane.released += 1;
        let wanted = std::mem::take(&mut lane.wanted);
        let src = parcel.src;
        inbox.spare.push(parcel.into_words());
        drop(inbox);
        if wanted {
            self.network.note_room(src);
        }
    }

    fn remote(&mut self) -> Option<&mut dyn RemoteAccess> {
        if self.network.options.remote { Some(self) } else { None }
    }

    fn close(&mut self) {
        self.network.depart(self.task, PeerState::Closed);
    }
}
