//! Arriving messages: their memory, buffers that each hold many of them, one behind the other; and
//! the packets among them until they are released.

use super::filled::Filled;
use super::ofi::{Device, Errno, Region, Slot};
use crate::memory::bytes::{self, Piece, zeroed};
use crate::transport::{HEAD_MAX, Inbound, Task};
use crate::wire::network::{FRAME, Frame};
use std::collections::VecDeque;

/// Buffers at a time, at most: each is posted, or holds messages that were not released.
pub(super) const BUFFERS: usize = 128;

/// Buffers that are made at the start, and posted at a time, at most. Those that a burst has needed
/// beside them are spare after it: the provider uses what is posted in turn, and with 40 of them
/// each message was written to memory that no cache had.
pub(super) const FIRST: usize = 4;
/// With fewer of them posted, messages are moved, so that their buffers can be posted again.
const POSTED: usize = 2;

/// Words of a buffer. The first buffers together stay in a processor's cache: with those of 1 MiB a
/// packet of 16 KiB took half as long again.
const WORDS: usize = (128 << 10) / 8;

/// A packet that has arrived and was not released yet.
pub(super) struct Arrived {
    pub(super) src: Task,
    pub(super) tag: u32,
    head_len: u16,
    body_len: u32,
    place: Storage,
}

enum Storage {
    /// The packet's head, in a buffer.
    Buffer(Slot, *const u8),
    /// The packet's head and body, apart.
    Own(Box<[u64]>),
}

// SAFETY: the pointer is into a buffer of the transport that has the packet.
unsafe impl Send for Arrived {}

impl Arrived {
    /// The packet as its receiver sees it.
    #[inline]
    pub(super) fn inbound(&self) -> Inbound {
        let head = self.head();
        Inbound {
            src: self.src,
            head,
            head_len: self.head_len.into(),
            body: head.wrapping_add(self.head_len.into()),
            body_len: self.body_len as usize,
            token: 0,
        }
    }

    fn head(&self) -> *const u8 {
        match &self.place {
            Storage::Buffer(_, head) => *head,
            Storage::Own(words) => words.as_ptr().cast(),
        }
    }

    /// The packet in memory of its own.
    fn copy(&self) -> Box<[u64]> {
        let len = usize::from(self.head_len) + self.body_len as usize;
        debug_assert!(usize::from(self.head_len) <= HEAD_MAX);
        // SAFETY: head and body are one after the other, readable until the packet is released.
        unsafe { bytes::aligned(Piece { ptr: self.head(), len }) }
    }
}

struct Buffer {
    memory: Box<[u64]>,
    region: Option<Region>,
    /// The endpoint has it, and has not reported its end.
    posted: bool,
    filled: Filled,
    /// Packets in it that were not released.
    users: u32,
    /// The buffer is in the list of those that may be posted.
    spare: bool,
}

impl Buffer {
    fn size(&self) -> usize {
        size_of_val(&*self.memory)
    }

    /// Where `len` bytes at `at` are in it.
    #[inline]
    fn offset(&self, at: *const u8, len: usize) -> Option<usize> {
        let offset = at.addr().checked_sub(self.memory.as_ptr().addr())?;
        (offset <= self.size() && len <= self.size() - offset).then_some(offset)
    }

    /// A message of `len` bytes was reported at `at`: the message, if it is in this buffer.
    #[inline]
    fn note(&mut self, at: *const u8, len: usize) -> Option<&[u8]> {
        let offset = self.offset(at, len)?;
        self.filled.note(offset, len);
        // SAFETY: inside the buffer; the endpoint has written it, and writes it no more.
        Some(unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast::<u8>().add(offset), len) })
    }

    /// Whether it can be posted, and is not spare yet.
    fn is_free(&self) -> bool {
        !self.posted && !self.spare && self.users == 0 && self.filled.is_complete()
    }
}

/// All buffers for arriving messages, and the packets in them. The slots of the buffers are 0 to
/// [`BUFFERS`].
pub(super) struct Receiving {
    list: Vec<Buffer>,
    /// Buffers that others have replaced: a place in them is not complete, which happens when its
    /// sender dies. No packet of these is kept.
    replaced: Vec<Buffer>,
    /// Slots of buffers that can be posted. The last one was used last, and is posted first.
    spare: Vec<Slot>,
    posted: usize,
    /// Bytes of the longest message.
    longest: usize,
    /// Packets in the order of their arrival, but those of peers that are held.
    ready: VecDeque<Arrived>,
    /// The packet that was handed out and not released yet.
    out: Option<Arrived>,
}

impl Receiving {
    /// The first buffers, posted, for messages of up to `longest` bytes.
    pub(super) fn new(device: &mut Device, longest: usize) -> Result<Self, Errno> {
        let mut buffers = Self {
            list: Vec::new(),
            replaced: Vec::new(),
            spare: Vec::new(),
            posted: 0,
            longest,
            ready: VecDeque::new(),
            out: None,
        };
        for _ in 0..FIRST {
            buffers.add(device)?;
        }
        Ok(buffers)
    }

    fn add(&mut self, device: &mut Device) -> Result<(), Errno> {
        self.list.push(Self::make(device)?);
        self.post(device, self.list.len() - 1)
    }

    fn make(device: &mut Device) -> Result<Buffer, Errno> {
        let memory = zeroed(WORDS).ok_or(Errno(libc::ENOMEM))?;
        let region = if device.info().registers() {
            // SAFETY: the transport drops the device before this memory.
            Some(unsafe { device.register(memory.as_ptr().cast(), size_of_val(&*memory), None) }?)
        } else {
            None
        };
        Ok(Buffer { memory, region, posted: false, filled: Filled::UNUSED, users: 0, spare: false })
    }

    fn post(&mut self, device: &Device, slot: Slot) -> Result<(), Errno> {
        let buffer = &mut self.list[slot];
        // SAFETY: no packet is in it, and it is not touched while it is posted but for the packets
        // that have arrived.
        unsafe { device.post(buffer.memory.as_mut_ptr().cast(), buffer.size(), buffer.region, slot) }?;
        buffer.filled = Filled::default();
        buffer.posted = true;
        self.posted += 1;
        Ok(())
    }

    /// A buffer that replaces another one.
    fn other(&mut self, device: &mut Device) -> Result<Buffer, Errno> {
        match self.replaced.iter().position(|buffer| buffer.filled.is_complete()) {
            Some(at) => Ok(self.replaced.swap_remove(at)),
            None => Self::make(device),
        }
    }

    /// Whether this is the slot of a buffer.
    pub(super) fn has(&self, slot: Slot) -> bool {
        slot < self.list.len()
    }

    /// A message of `len` bytes was reported at `at` in a buffer of the slot: the message; `None`
    /// when it is in none of these. Each message is passed here once.
    #[inline]
    pub(super) fn note(&mut self, slot: Slot, at: *const u8, len: usize) -> Option<&[u8]> {
        if self.list.get(slot)?.offset(at, len).is_none() {
            return self.note_late(at, len);
        }
        self.list[slot].note(at, len)
    }

    /// A message in a buffer that was replaced.
    #[cold]
    fn note_late(&mut self, at: *const u8, len: usize) -> Option<&[u8]> {
        self.replaced.iter_mut().find(|buffer| buffer.offset(at, len).is_some())?.note(at, len)
    }

    /// The packet whose frame starts at `at` in a buffer of the slot: the buffer is kept until
    /// it is released.
    #[inline]
    pub(super) fn keep(&mut self, slot: Slot, at: *const u8, frame: &Frame) -> Arrived {
        let mut arrived = Arrived {
            src: frame.src,
            tag: frame.tag,
            head_len: frame.head_len as u16,
            body_len: frame.body_len,
            place: Storage::Buffer(slot, at.wrapping_add(FRAME)),
        };
        if at.addr().is_multiple_of(8) && self.list[slot].offset(at, FRAME).is_some() {
            self.list[slot].users += 1;
        } else {
            arrived.place = Storage::Own(arrived.copy());
        }
        arrived
    }

    /// A packet is to be handed out.
    #[inline]
    pub(super) fn add_packet(&mut self, arrived: Arrived) {
        self.ready.push_back(arrived);
    }

    /// Those of the peer that were set aside are to be handed out.
    pub(super) fn add_packets(&mut self, aside: &mut VecDeque<Arrived>) {
        self.ready.append(aside);
    }

    /// Sets aside what is to be handed out of this peer.
    pub(super) fn set_aside(&mut self, peer: Task, aside: &mut VecDeque<Arrived>) {
        for arrived in std::mem::take(&mut self.ready) {
            if arrived.src == peer { aside.push_back(arrived) } else { self.ready.push_back(arrived) }
        }
    }

    /// Whether a packet is to be handed out.
    #[inline]
    pub(super) fn has_packets(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether a packet was handed out and not released.
    #[inline]
    pub(super) fn is_out(&self) -> bool {
        self.out.is_some()
    }

    /// Hands out the next packet.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Inbound> {
        let arrived = self.ready.pop_front()?;
        Some(self.out.insert(arrived).inbound())
    }

    /// Takes back the packet that was handed out: its sender, the tag of its connection, and
    /// whether a buffer was given to the endpoint ([`Self::release`]).
    #[inline]
    pub(super) fn take_back_packet(&mut self, device: &Device) -> Option<(Task, u32, bool)> {
        let arrived = self.out.take()?;
        let (src, tag) = (arrived.src, arrived.tag);
        Some((src, tag, self.release(device, arrived)))
    }

    /// What has arrived from the peer and was not handed out is gone, and so is what was set aside.
    pub(super) fn drop_of(&mut self, device: &Device, peer: Task, mut aside: VecDeque<Arrived>) {
        self.set_aside(peer, &mut aside);
        for arrived in aside {
            self.release(device, arrived);
        }
    }

    /// The packet is not needed any more. Whether a buffer was given to the endpoint, which may
    /// have put messages there that had waited for one.
    #[inline]
    fn release(&mut self, device: &Device, arrived: Arrived) -> bool {
        let Storage::Buffer(slot, _) = arrived.place else { return false };
        self.list[slot].users -= 1;
        let is_free = self.list[slot].is_free();
        if is_free {
            self.reuse(device, slot);
        }
        is_free
    }

    /// The endpoint has reported the end of a buffer, with the message of `with.1` bytes at
    /// `with.0`, or alone.
    #[inline]
    pub(super) fn note_end(&mut self, device: &Device, slot: Slot, with: Option<(*const u8, usize)>) {
        let longest = self.longest;
        let buffer = &mut self.list[slot];
        let place = with.and_then(|(at, len)| Some(buffer.offset(at, len)? + len));
        if with.is_some() && place.is_none() {
            // That of a buffer that has failed and was replaced.
            return;
        }
        let size = buffer.size();
        buffer.filled.note_end(place, size, longest);
        self.take_back(device, slot);
    }

    /// An operation on a buffer has failed. It stays as it is, since messages may
    /// still arrive in it.
    #[cold]
    pub(super) fn note_failure(&mut self, device: &Device, slot: Slot) {
        self.list[slot].filled.note_failure();
        self.take_back(device, slot);
    }

    #[inline]
    fn take_back(&mut self, device: &Device, slot: Slot) {
        if std::mem::take(&mut self.list[slot].posted) {
            self.posted -= 1;
        }
        self.reuse(device, slot);
    }

    /// A buffer was used up, or is free now.
    fn reuse(&mut self, device: &Device, slot: Slot) {
        self.spare_if_free(slot);
        self.post_spare(device);
    }

    fn spare_if_free(&mut self, slot: Slot) {
        if self.list[slot].is_free() {
            self.list[slot].spare = true;
            self.spare.push(slot);
        }
    }

    /// Posts what is spare while few buffers are posted.
    fn post_spare(&mut self, device: &Device) {
        while self.posted < FIRST
            && !device.is_closed()
            && let Some(&slot) = self.spare.last()
            // Without room now, it is posted when there are too few.
            && self.post(device, slot).is_ok()
        {
            self.spare.pop();
            self.list[slot].spare = false;
        }
    }

    /// How many there are, and how many of them the endpoint has.
    #[cfg(test)]
    pub(super) fn count(&self) -> (usize, usize) {
        (self.list.len(), self.posted)
    }

    /// How many packets are to be handed out.
    #[cfg(test)]
    pub(super) fn ready(&self) -> usize {
        self.ready.len()
    }

    /// Whether [`Self::provide`] must be called.
    #[inline]
    pub(super) fn are_few(&self) -> bool {
        self.posted < POSTED
    }

    /// Sees to it that enough buffers are posted: posts what is empty, makes another one, or copies
    /// packets out of one and replaces it if it is not complete.
    #[cold]
    pub(super) fn provide<'a>(&mut self, device: &mut Device, aside: impl Iterator<Item = &'a mut Arrived>) {
        for slot in 0..self.list.len() {
            self.spare_if_free(slot);
        }
        self.post_spare(device);
        if !self.are_few() || device.is_closed() || (self.list.len() < BUFFERS && self.add(device).is_ok()) {
            return;
        }
        let used = |arrived: &Arrived| match arrived.place {
            Storage::Buffer(slot, _) => Some(slot),
            Storage::Own(_) => None,
        };
        let in_hand = self.out.as_ref().and_then(used);
        let candidates =
            self.list.iter().enumerate().filter(|(slot, buffer)| !buffer.posted && in_hand != Some(*slot));
        let cost = |buffer: &Buffer| (!buffer.filled.is_complete(), buffer.users);
        let Some((least, _)) = candidates.min_by_key(|(_, buffer)| cost(buffer)) else { return };
        let mut moved = 0;
        let mut take = |packet: &mut Arrived| {
            if used(packet) == Some(least) {
                packet.place = Storage::Own(packet.copy());
                moved += 1;
            }
        };
        self.ready.iter_mut().for_each(&mut take);
        aside.for_each(take);
        self.list[least].users -= moved;
        if !self.list[least].filled.is_complete()
            && self.list[least].users == 0
            && let Ok(other) = self.other(device)
        {
            self.replaced.push(std::mem::replace(&mut self.list[least], other));
        }
        self.reuse(device, least);
    }
}
