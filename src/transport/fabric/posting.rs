//! Messages on their way out: those that the endpoint has, those for which it had no room, and the
//! reports of those that have ended.

use super::ofi::{Address, Device, Errno, Slot};
use super::send::{Send, Sends, write};
use super::{BUFFERS, COPY, INJECT};
use crate::transport::parcel::bytes_of;
use crate::transport::{Outgoing, Task, Ticket};
use crate::wire::network::Frame;
use std::collections::VecDeque;

/// All messages on their way out.
pub(super) struct Posting {
    sends: Sends,
    /// Messages that the endpoint had no room for, in order.
    queued: VecDeque<Slot>,
    /// Taken packets that have ended and were not reported yet.
    completed: VecDeque<(Task, Ticket)>,
    /// One message, while it is injected.
    scratch: Box<[u64]>,
    /// Packets of up to this number of bytes are injected; none before one has been posted. The
    /// first message that is posted makes a provider get its memory for those, which takes
    /// `ofi_rxm` some 20 ms: that is to be the first packet, and not one in the middle of a stream.
    inject: usize,
    /// Messages are sent from the program's memory, when they are longer than [`COPY`].
    lends: bool,
    next_ticket: u64,
    /// A packet was refused because all send buffers were in use.
    refused: bool,
}

/// What has become of a message that was to be posted.
pub(super) enum Posted {
    /// The endpoint has it.
    Sent,
    /// The message waits until the endpoint has room.
    Queued,
    /// The peer cannot be reached: the message is dropped.
    Failed(Errno),
}

impl Posting {
    /// Buffers for messages of up to `longest` bytes.
    pub(super) fn new(device: &mut Device, longest: usize) -> Result<Self, Errno> {
        Ok(Self {
            sends: Sends::new(device, BUFFERS, longest)?,
            queued: VecDeque::new(),
            completed: VecDeque::new(),
            scratch: vec![0; longest.div_ceil(8)].into_boxed_slice(),
            inject: 0,
            lends: device.info().gathers() && !device.info().registers(),
            next_ticket: 0,
            refused: false,
        })
    }

    /// Whether a message of so many bytes is injected.
    #[inline]
    pub(super) fn injects(&self, len: usize) -> bool {
        len <= self.inject
    }

    /// Injects a packet.
    ///
    /// # Errors
    /// The message, of so many words, is as it was: see [`Self::keep_injected`].
    ///
    /// # Safety
    /// The pieces of `packet` are readable.
    #[inline]
    pub(super) unsafe fn inject(
        &mut self,
        device: &Device,
        to: Address,
        frame: &Frame,
        packet: &Outgoing<'_>,
    ) -> Result<(), (usize, Errno)> {
        // SAFETY: the caller's promise.
        let words = unsafe { write(&mut self.scratch, frame, packet, false) } / 8;
        device.inject(bytes_of(&self.scratch[..words]), to).map_err(|errno| (words, errno))
    }

    /// Keeps the message that could not be injected, to be posted; `None` without a buffer.
    pub(super) fn keep_injected(&mut self, to: Task, words: usize) -> Option<Slot> {
        if self.refuses() { None } else { self.sends.make_of(to, &self.scratch[..words]) }
    }

    /// Whether a packet is refused because all send buffers are in use.
    pub(super) fn refuses(&mut self) -> bool {
        self.refused = !self.sends.has_free();
        self.refused
    }

    pub(super) fn has_free(&self) -> bool {
        self.sends.has_free()
    }

    /// Makes a message of `len` bytes, and its ticket if the packet is taken.
    ///
    /// # Safety
    /// The pieces are readable, and one that is taken until the message has ended.
    pub(super) unsafe fn make(
        &mut self,
        to: Task,
        frame: &Frame,
        packet: &Outgoing<'_>,
        len: usize,
    ) -> Option<(Slot, Option<Ticket>)> {
        let taken = self.lends && len > COPY && packet.lendable().is_some();
        self.next_ticket += u64::from(taken);
        let ticket = taken.then_some(Ticket(self.next_ticket));
        // SAFETY: the caller's promise.
        let slot = unsafe { self.sends.make(to, frame, packet, ticket) };
        slot.map(|slot| (slot, ticket))
    }

    /// Makes a message of bytes that are complete; `None` without a buffer.
    pub(super) fn make_of(&mut self, to: Task, message: &[u64]) -> Option<Slot> {
        self.sends.make_of(to, message)
    }

    /// Posts a message, or queues it until the endpoint has room. Without an address it is queued.
    pub(super) fn post(&mut self, device: &Device, to: Option<Address>, slot: Slot) -> Posted {
        match to.map_or(Err(Errno::AGAIN), |to| self.sends.post(device, to, slot)) {
            Ok(()) => Posted::Sent,
            Err(errno) if errno.is_again() => {
                self.queued.push_back(slot);
                Posted::Queued
            }
            Err(errno) => {
                self.sends.end(slot);
                Posted::Failed(errno)
            }
        }
    }

    /// A packet was posted or queued: from now on short ones are injected.
    pub(super) fn note_posted(&mut self, device: &Device) {
        self.inject = INJECT.min(device.info().inject_size());
    }

    /// How many messages wait for room in the endpoint.
    #[inline]
    pub(super) fn waiting(&self) -> usize {
        self.queued.len()
    }

    /// Takes out the message that has waited for longest, and its peer.
    pub(super) fn next_waiting(&mut self) -> Option<(Task, Slot)> {
        let slot = self.queued.pop_front()?;
        self.sends.get(slot).map(|send| (send.peer, slot))
    }

    /// The message waits behind all others.
    pub(super) fn wait_again(&mut self, slot: Slot) {
        self.queued.push_back(slot);
    }

    /// The message is not sent.
    pub(super) fn give_up(&mut self, slot: Slot) {
        self.sends.end(slot);
    }

    /// The messages to the peer that wait for room are not sent.
    pub(super) fn give_up_waiting(&mut self, peer: Task) {
        let Self { queued, sends, .. } = self;
        queued.retain(|slot| {
            let drop = sends.get(*slot).is_none_or(|send| send.peer == peer);
            if drop {
                sends.end(*slot);
            }
            !drop
        });
    }

    /// A message has ended: whether a packet was refused that there may be a buffer for now.
    pub(super) fn end(&mut self, slot: Slot) -> bool {
        let Some(send) = self.sends.end(slot) else { return false };
        self.completed.extend(send.ticket.map(|ticket| (send.peer, ticket)));
        std::mem::take(&mut self.refused)
    }

    /// A message has failed, and is not reported: the message.
    pub(super) fn fail(&mut self, slot: Slot) -> Option<Send> {
        self.sends.end(slot)
    }

    /// The next taken packet that has ended.
    #[inline]
    pub(super) fn next_report(&mut self) -> Option<Ticket> {
        self.completed.pop_front().map(|(_, ticket)| ticket)
    }

    pub(super) fn has_reports(&self) -> bool {
        !self.completed.is_empty()
    }

    /// Forgets what was taken for the peer. Whether the endpoint still reads the program's memory.
    pub(super) fn recall(&mut self, peer: Task) -> bool {
        self.sends.recall(peer)
    }

    /// What was taken for the peer and has ended is not reported.
    pub(super) fn forget_reports(&mut self, peer: Task) {
        self.completed.retain(|(to, _)| *to != peer);
    }

    /// Messages that the endpoint has or that wait, taken or not.
    #[inline]
    pub(super) fn under_way(&self) -> usize {
        self.sends.under_way()
    }

    /// Whether messages that were not taken are under way.
    pub(super) fn has_copies(&self) -> bool {
        self.sends.copies() != 0
    }

    /// What has not ended, or was not reported.
    pub(super) fn outstanding(&self) -> usize {
        self.sends.under_way() + self.completed.len()
    }

    /// The slots of what is under way to the peer.
    pub(super) fn of(&self, peer: Task) -> impl Iterator<Item = Slot> {
        self.sends.of(peer)
    }

    /// Whether the endpoint has messages to the peer.
    pub(super) fn has_posted(&self, peer: Task) -> bool {
        self.sends.of(peer).any(|slot| self.sends.get(slot).is_some_and(|send| send.posted))
    }

    /// The endpoint is closed: nothing is reported, and nothing waits.
    pub(super) fn close(&mut self) {
        self.completed.clear();
        self.queued.clear();
    }
}
