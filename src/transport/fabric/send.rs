//! Messages on their way out: each has a buffer and the context of its operation.

use super::ofi::{Device, Errno, PIECES, Region, Slot};
use crate::base::bytes::{self, Piece, pad8, zeroed};
use crate::transport::{Outgoing, Task, Ticket, parcel};
use crate::wire::network::{FRAME, Frame};

/// Messages that can be under way at a time, at most.
pub(super) const SENDS: usize = 128;

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
}

// SAFETY: a lent piece is read by libfabric alone, under the contract of `Endpoint::try_send`.
unsafe impl std::marker::Send for Send {}

/// All messages on their way out.
pub(super) struct Sends {
    /// The first of the slots; the others follow.
    first: Slot,
    /// One buffer for each slot. The system gives memory as they are used, and the one used
    /// last is used next.
    memory: Box<[u64]>,
    /// Words of one buffer.
    words: usize,
    region: Option<Region>,
    free: Vec<u16>,
    list: Vec<Option<Send>>,
    /// Those that were not taken: they are not settled until they have ended.
    copies: usize,
}

impl Sends {
    /// Buffers for messages of up to `longest` bytes, in slots from `first` on.
    pub(super) fn new(device: &mut Device, first: Slot, longest: usize) -> Result<Self, Errno> {
        let words = longest.div_ceil(64) * 8;
        let memory = zeroed(words * SENDS).ok_or(Errno(libc::ENOMEM))?;
        let region = if device.info().registers() {
            // SAFETY: the transport drops the device before this memory.
            Some(unsafe { device.register(memory.as_ptr().cast(), size_of_val(&*memory), None) }?)
        } else {
            None
        };
        let free = (0..SENDS as u16).rev().collect();
        Ok(Self { first, memory, words, region, free, list: vec![None; SENDS], copies: 0 })
    }

    pub(super) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// Messages under way, taken or not.
    pub(super) fn under_way(&self) -> usize {
        SENDS - self.free.len()
    }

    /// Messages under way that were not taken.
    pub(super) fn copies(&self) -> usize {
        self.copies
    }

    /// Makes a message of `frame` and `packet`. With a ticket the packet's second piece is lent;
    /// there must be a free slot.
    ///
    /// # Safety
    /// The pieces are readable, and a lent one until the message has ended.
    pub(super) unsafe fn make(
        &mut self,
        peer: Task,
        frame: &Frame,
        packet: &Outgoing<'_>,
        ticket: Option<Ticket>,
    ) -> Option<Slot> {
        let at = usize::from(self.free.pop()?);
        let lent = ticket.and_then(|_| packet.lendable()).unwrap_or(Piece::EMPTY);
        let buffer = &mut self.memory[at * self.words..][..self.words];
        // An address without memory would end the connection, and blame the peer.
        // SAFETY: the caller's promise.
        let copied = unsafe {
            lent.touch();
            write(buffer, frame, packet, lent.len != 0)
        };
        self.copies += usize::from(lent.len == 0);
        self.list[at] = Some(Send { peer, copied, lent, ticket, posted: false });
        Some(self.first + at)
    }

    /// Makes a message of bytes that are complete. There must be a free slot.
    pub(super) fn make_of(&mut self, peer: Task, message: &[u64]) -> Option<Slot> {
        let at = usize::from(self.free.pop()?);
        self.memory[at * self.words..][..message.len()].copy_from_slice(message);
        self.copies += 1;
        let copied = message.len() * 8;
        self.list[at] = Some(Send { peer, copied, lent: Piece::EMPTY, ticket: None, posted: false });
        Some(self.first + at)
    }

    fn index(&self, slot: Slot) -> Option<usize> {
        slot.checked_sub(self.first).filter(|at| *at < SENDS)
    }

    pub(super) fn get(&self, slot: Slot) -> Option<&Send> {
        self.list[self.index(slot)?].as_ref()
    }

    /// Gives the message to the endpoint.
    pub(super) fn post(&mut self, device: &Device, to: super::ofi::Address, slot: Slot) -> Result<(), Errno> {
        let Some(at) = self.index(slot) else { return Err(Errno(libc::EINVAL)) };
        let Some(send) = &mut self.list[at] else { return Err(Errno(libc::EINVAL)) };
        let pad = pad8(send.lent.len) - send.lent.len;
        let pieces: [_; PIECES] = [
            (self.memory[at * self.words..].as_ptr().cast::<u8>(), send.copied),
            (send.lent.ptr, send.lent.len),
            (PADDING.as_ptr(), pad),
        ];
        let count = if pad != 0 { 3 } else { 1 + usize::from(send.lent.len != 0) };
        // SAFETY: the buffer is not touched before the message has ended, nor is a lent piece, by
        // the promise made to `make`.
        unsafe { device.send(&pieces[..count], self.region, to, slot) }?;
        send.posted = true;
        Ok(())
    }

    /// The message has ended, or will not be sent.
    pub(super) fn end(&mut self, slot: Slot) -> Option<Send> {
        let at = self.index(slot)?;
        let send = self.list[at].take()?;
        self.copies -= usize::from(send.lent.len == 0);
        self.free.push(at as u16);
        Some(send)
    }

    /// Forgets the tickets of what was taken for `peer`. What the endpoint does not have yet is
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
            let buffer = &mut self.memory[at * self.words..][..self.words];
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

    /// The slots of what is under way to `peer`.
    pub(super) fn of(&self, peer: Task) -> impl Iterator<Item = Slot> {
        let own = move |send: &Option<Send>| send.is_some_and(|send| send.peer == peer);
        self.list.iter().enumerate().filter(move |(_, send)| own(send)).map(|(at, _)| self.first + at)
    }
}

/// Writes a message, without its second piece when that is `lent`: the number of bytes, a
/// multiple of 8.
///
/// # Safety
/// The pieces of `packet` are readable.
#[inline]
pub(super) unsafe fn write(to: &mut [u64], frame: &Frame, packet: &Outgoing<'_>, lent: bool) -> usize {
    let (start, rest) = to.split_at_mut(FRAME / 8);
    bytemuck::cast_slice_mut(start).copy_from_slice(&frame.encode());
    // SAFETY: the caller's promise.
    FRAME + pad8(unsafe { parcel::write(rest, packet, lent) })
}
