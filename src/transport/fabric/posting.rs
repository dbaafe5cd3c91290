//! Messages on their way out: those that the endpoint has, those for which it had no room, and the
//! reports of those that have ended.

use super::ofi::{Address, Device, Errno, PIECES, Region, Slot};
use super::{BUFFERS, COPY, INJECT, WINDOW};
use crate::memory::bytes::{self, Piece, pad8, zeroed};
use crate::transport::parcel::{self, bytes_of};
use crate::transport::{Outgoing, Task, Ticket};
use crate::wire::network::{FRAME, Frame};
use std::collections::VecDeque;

/// Messages that can be under way at a time, at most.
pub(super) const SENDS: usize = 128;

/// The first of their slots; the others follow.
const FIRST: Slot = BUFFERS;

/// The zeros that fill a message to a multiple of 8 bytes.
static PADDING: [u8; 8] = [0; 8];

/// A message on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Send {
    pub(super) peer: Task,
    /// The bytes of it that are in the buffer.
    copied: usize,
    /// The bytes behind these that are still in the program's memory.
    lent: Piece,
    /// The message's name, when it was taken and is to be reported.
    pub(super) ticket: Option<Ticket>,
    /// The endpoint has it.
    pub(super) posted: bool,
    /// Whether it was posted in a connection that has ended: it says nothing about the peer now.
    pub(super) former: bool,
}

// SAFETY: a lent piece is read by libfabric alone, under the contract of `Endpoint::try_send`.
unsafe impl std::marker::Send for Send {}

/// One buffer for each slot. The system gives memory as they are used, and the one used last is
/// used next.
struct Buffers {
    memory: Box<[u64]>,
    /// Words of one buffer.
    words: usize,
    region: Option<Region>,
}

impl Buffers {
    /// For messages of up to `longest` bytes.
    fn new(device: &mut Device, longest: usize) -> Result<Self, Errno> {
        let words = longest.div_ceil(64) * 8;
        let memory = zeroed(words * SENDS).ok_or(Errno(libc::ENOMEM))?;
        let region = if device.info().registers() {
            // SAFETY: the transport drops the device before this memory.
            Some(unsafe { device.register(memory.as_ptr().cast(), size_of_val(&*memory), None) }?)
        } else {
            None
        };
        Ok(Self { memory, words, region })
    }

    #[inline]
    fn of(&mut self, at: usize) -> &mut [u64] {
        &mut self.memory[at * self.words..][..self.words]
    }
}

/// All messages on their way out: each has a buffer and the context of its operation.
pub(super) struct Posting {
    buffers: Buffers,
    free: Vec<u16>,
    list: Vec<Option<Send>>,
    /// Those that were not taken: they are not settled until they have ended.
    copies: usize,
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
    next_ticket: u64,
    /// A packet was refused for want of a send buffer.
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

const _: () = assert!(WINDOW as usize <= SENDS / 2);

impl Posting {
    /// Buffers for messages of up to `longest` bytes.
    pub(super) fn new(device: &mut Device, longest: usize) -> Result<Self, Errno> {
        Ok(Self {
            buffers: Buffers::new(device, longest)?,
            free: (0..SENDS as u16).rev().collect(),
            list: vec![None; SENDS],
            copies: 0,
            queued: VecDeque::new(),
            completed: VecDeque::new(),
            scratch: vec![0; longest.div_ceil(8)].into_boxed_slice(),
            inject: 0,
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
        if self.refuses(to) {
            return None;
        }
        let scratch = std::mem::take(&mut self.scratch);
        let slot = self.make_of(to, &scratch[..words]);
        self.scratch = scratch;
        slot
    }

    /// Whether a packet to the peer is refused for want of a send buffer.
    pub(super) fn refuses(&mut self, peer: Task) -> bool {
        self.refused = !self.has_room(peer);
        self.refused
    }

    /// Whether a packet to the peer may have a send buffer. A peer has at most as many as are free,
    /// so that those that take nothing leave some to the others; alone it has its whole window.
    #[inline]
    pub(super) fn has_room(&self, peer: Task) -> bool {
        let free = self.free.len();
        self.under_way() < free || self.of(peer).count() < free
    }

    pub(super) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// Makes a message of `len` bytes, and its ticket if the packet is taken: a long one is sent
    /// from the program's memory. `None` without a buffer.
    ///
    /// # Safety
    /// The pieces are readable, and one that is taken until the message has ended.
    pub(super) unsafe fn make(
        &mut self,
        device: &Device,
        peer: Task,
        frame: &Frame,
        packet: &Outgoing<'_>,
        len: usize,
    ) -> Option<(Slot, Option<Ticket>)> {
        let at = usize::from(self.free.pop()?);
        let lends = len > COPY && device.info().gathers() && !device.info().registers();
        let lent = packet.lendable().filter(|_| lends);
        self.next_ticket += u64::from(lent.is_some());
        let ticket = lent.map(|_| Ticket(self.next_ticket));
        let lent = lent.unwrap_or(Piece::EMPTY);
        // An address without memory would end the connection, and blame the peer.
        // SAFETY: the caller's promise.
        let copied = unsafe {
            lent.touch();
            write(self.buffers.of(at), frame, packet, lent.len != 0)
        };
        self.copies += usize::from(lent.len == 0);
        self.list[at] = Some(Send { peer, copied, lent, ticket, posted: false, former: false });
        Some((FIRST + at, ticket))
    }

    /// Makes a message of bytes that are complete; `None` without a buffer.
    pub(super) fn make_of(&mut self, peer: Task, message: &[u64]) -> Option<Slot> {
        let at = usize::from(self.free.pop()?);
        self.buffers.of(at)[..message.len()].copy_from_slice(message);
        self.copies += 1;
        let copied = message.len() * 8;
        let (lent, ticket) = (Piece::EMPTY, None);
        self.list[at] = Some(Send { peer, copied, lent, ticket, posted: false, former: false });
        Some(FIRST + at)
    }

    fn get(&self, slot: Slot) -> Option<&Send> {
        self.list[index(slot)?].as_ref()
    }

    /// Posts a message, or queues it until the endpoint has room. Without an address it is queued.
    pub(super) fn post(&mut self, device: &Device, to: Option<Address>, slot: Slot) -> Posted {
        match to.map_or(Err(Errno::AGAIN), |to| self.give(device, to, slot)) {
            Ok(()) => Posted::Sent,
            Err(errno) if errno.is_again() => {
                self.queued.push_back(slot);
                Posted::Queued
            }
            Err(errno) => {
                self.remove(slot);
                Posted::Failed(errno)
            }
        }
    }

    /// Gives the message to the endpoint.
    fn give(&mut self, device: &Device, to: Address, slot: Slot) -> Result<(), Errno> {
        let at = index(slot).ok_or(Errno(libc::EINVAL))?;
        let Some(send) = &mut self.list[at] else { return Err(Errno(libc::EINVAL)) };
        let pad = pad8(send.lent.len) - send.lent.len;
        let pieces: [_; PIECES] = [
            (self.buffers.of(at).as_ptr().cast::<u8>(), send.copied),
            (send.lent.ptr, send.lent.len),
            (PADDING.as_ptr(), pad),
        ];
        let count = if pad != 0 { 3 } else { 1 + usize::from(send.lent.len != 0) };
        // SAFETY: the buffer is not touched before the message has ended, nor is a lent piece, by
        // the promise made to `make`.
        unsafe { device.send(&pieces[..count], self.buffers.region, to, slot) }?;
        send.posted = true;
        Ok(())
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
        self.get(slot).map(|send| (send.peer, slot))
    }

    /// The message waits behind all others.
    pub(super) fn wait_again(&mut self, slot: Slot) {
        self.queued.push_back(slot);
    }

    /// Takes out a message that has ended or failed, or is not sent.
    pub(super) fn remove(&mut self, slot: Slot) -> Option<Send> {
        let at = index(slot)?;
        let send = self.list[at].take()?;
        self.copies -= usize::from(send.lent.len == 0);
        self.free.push(at as u16);
        Some(send)
    }

    /// The messages to the peer that wait for room are not sent.
    pub(super) fn give_up_waiting(&mut self, peer: Task) {
        for slot in std::mem::take(&mut self.queued) {
            if self.get(slot).is_some_and(|send| send.peer != peer) {
                self.queued.push_back(slot);
            } else {
                self.remove(slot);
            }
        }
    }

    /// A message has ended: whether a packet was refused that there may be a buffer for now.
    pub(super) fn end(&mut self, slot: Slot) -> bool {
        let Some(send) = self.remove(slot) else { return false };
        self.completed.extend(send.ticket.map(|ticket| (send.peer, ticket)));
        std::mem::take(&mut self.refused)
    }

    /// The next taken packet that has ended.
    #[inline]
    pub(super) fn next_report(&mut self) -> Option<Ticket> {
        self.completed.pop_front().map(|(_, ticket)| ticket)
    }

    pub(super) fn has_reports(&self) -> bool {
        !self.completed.is_empty()
    }

    /// Forgets the tickets of what was taken for the peer. What the endpoint does not have yet is
    /// copied. Whether the endpoint still reads the program's memory.
    pub(super) fn recall(&mut self, peer: Task) -> bool {
        let mut reads = false;
        for (at, send) in self.list.iter_mut().enumerate() {
            let Some(send) = send.as_mut().filter(|send| send.peer == peer && send.lent.len != 0) else {
                continue;
            };
            send.ticket = None;
            if send.posted {
                reads = true;
                continue;
            }
            let buffer = self.buffers.of(at);
            // SAFETY: the piece is readable until the recall returns. The buffer has room for the
            // longest message, and ends in zeros as `write` leaves them.
            unsafe { bytes::copy(send.lent, buffer.as_mut_ptr().cast::<u8>().add(send.copied)) };
            parcel::clear_padding(buffer, send.copied + send.lent.len);
            send.copied += pad8(send.lent.len);
            send.lent = Piece::EMPTY;
            self.copies += 1;
        }
        reads
    }

    /// What was taken for the peer and has ended is not reported.
    pub(super) fn forget_reports(&mut self, peer: Task) {
        self.completed.retain(|(to, _)| *to != peer);
    }

    /// Messages that the endpoint has or that wait, taken or not.
    #[inline]
    pub(super) fn under_way(&self) -> usize {
        SENDS - self.free.len()
    }

    /// Whether messages that were not taken are under way.
    pub(super) fn has_copies(&self) -> bool {
        self.copies != 0
    }

    /// What has not ended, or was not reported.
    pub(super) fn outstanding(&self) -> usize {
        self.under_way() + self.completed.len()
    }

    /// The slots of what is under way to the peer.
    pub(super) fn of(&self, peer: Task) -> impl Iterator<Item = Slot> {
        let own = move |send: &Option<Send>| send.is_some_and(|send| send.peer == peer);
        self.list.iter().enumerate().filter(move |(_, send)| own(send)).map(|(at, _)| FIRST + at)
    }

    /// Whether the endpoint has messages to the peer.
    pub(super) fn has_posted(&self, peer: Task) -> bool {
        self.list.iter().flatten().any(|send| send.peer == peer && send.posted)
    }

    /// As if the endpoint had the message.
    #[cfg(test)]
    pub(super) fn pretend_posted(&mut self, slot: Slot) {
        let send = index(slot).and_then(|at| self.list[at].as_mut());
        send.expect("a message").posted = true;
    }

    /// What the endpoint has for the peer belongs to a connection that has ended.
    pub(super) fn note_former(&mut self, peer: Task) {
        for send in self.list.iter_mut().flatten().filter(|send| send.peer == peer) {
            send.former = send.posted;
        }
    }

    /// Whether messages of the connection with the peer are under way.
    pub(super) fn has_current(&self, peer: Task) -> bool {
        self.list.iter().flatten().any(|send| send.peer == peer && !send.former)
    }

    /// The endpoint is closed: nothing is reported, and nothing waits.
    pub(super) fn close(&mut self) {
        self.completed.clear();
        self.queued.clear();
    }
}

/// The place of a slot among those of messages.
fn index(slot: Slot) -> Option<usize> {
    slot.checked_sub(FIRST).filter(|at| *at < SENDS)
}

/// Writes a message, without its second piece when that is `lent`: the number of bytes, a
/// multiple of 8.
///
/// # Safety
/// The pieces of `packet` are readable.
#[inline]
unsafe fn write(to: &mut [u64], frame: &Frame, packet: &Outgoing<'_>, lent: bool) -> usize {
    let (start, rest) = to.split_at_mut(FRAME / 8);
    bytemuck::cast_slice_mut(start).copy_from_slice(&frame.encode());
    // SAFETY: the caller's promise.
    FRAME + pad8(unsafe { parcel::write(rest, packet, lent) })
}
