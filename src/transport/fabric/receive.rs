//! Memory for arriving messages: buffers that each hold many of them, one behind the other.

use super::ofi::{Device, Errno, Region, Slot};
use crate::base::bytes::zeroed;
use crate::transport::{HEAD_MAX, Inbound, Task};
use crate::wire::network::{FRAME, Frame};

/// Buffers at a time, at most: each is posted, or holds messages that were not released.
pub(super) const BUFFERS: usize = 64;

/// Buffers that are made at the start.
const FIRST: usize = 4;
/// With fewer of them posted, messages are moved, so that their buffers can be posted again.
const POSTED: usize = 2;

/// Words of a buffer. Buffers of 128 KiB stay in the cache, so that packets of 16 KiB take a third less; but messages then arrive while no
/// buffer is posted, and a packet was lost with `tcp;ofi_rxm` of libfabric 1.17 when another peer died. The reason is not known.
const WORDS: usize = (1 << 20) / 8;

/// A packet that has arrived and was not released yet.
pub(super) struct Arrived {
    pub(super) src: Task,
    pub(super) tag: u32,
    head_len: u16,
    body_len: u32,
    place: Place,
}

enum Place {
    /// Its head, in a buffer.
    Buffer(Slot, *const u8),
    /// Its head and body, apart.
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
            Place::Buffer(_, head) => *head,
            Place::Own(words) => words.as_ptr().cast(),
        }
    }

    /// The packet in memory of its own.
    fn copy(&self) -> Box<[u64]> {
        let len = usize::from(self.head_len) + self.body_len as usize;
        debug_assert!(usize::from(self.head_len) <= HEAD_MAX);
        let mut words = vec![0_u64; len.div_ceil(8)].into_boxed_slice();
        // SAFETY: head and body are one after the other, readable until the packet is released.
        unsafe { words.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(self.head(), len) };
        words
    }
}

struct Buffer {
    memory: Box<[u64]>,
    region: Option<Region>,
    /// The endpoint has it.
    posted: bool,
    /// Packets in it that were not released.
    users: u32,
}

/// All buffers for arriving messages. Their slots are 0 to [`BUFFERS`].
pub(super) struct Buffers {
    list: Vec<Buffer>,
    posted: usize,
}

impl Buffers {
    /// The first buffers, posted.
    pub(super) fn new(device: &mut Device) -> Result<Self, Errno> {
        let mut buffers = Self { list: Vec::new(), posted: 0 };
        for _ in 0..FIRST {
            buffers.add(device)?;
        }
        Ok(buffers)
    }

    fn add(&mut self, device: &mut Device) -> Result<(), Errno> {
        let memory = zeroed(WORDS).ok_or(Errno(libc::ENOMEM))?;
        let region = if device.info().registers() {
            // SAFETY: the transport drops the device before this memory.
            Some(unsafe { device.register(memory.as_ptr().cast(), size_of_val(&*memory), None) }?)
        } else {
            None
        };
        self.list.push(Buffer { memory, region, posted: false, users: 0 });
        self.post(device, self.list.len() - 1)
    }

    fn post(&mut self, device: &Device, slot: Slot) -> Result<(), Errno> {
        let buffer = &mut self.list[slot];
        // SAFETY: no packet is in it, and it is not touched while it is posted but for the packets that have arrived.
        unsafe {
            device.post(buffer.memory.as_mut_ptr().cast(), size_of_val(&*buffer.memory), buffer.region, slot)
        }?;
        buffer.posted = true;
        self.posted += 1;
        Ok(())
    }

    /// Whether this is the slot of a buffer.
    pub(super) fn has(&self, slot: Slot) -> bool {
        slot < self.list.len()
    }

    /// A message of `len` bytes that has arrived at `at` in the buffer `slot`; `None` when it is not one of ours.
    #[inline]
    pub(super) fn message(&self, slot: Slot, at: *const u8, len: usize) -> Option<&[u8]> {
        let buffer = self.list.get(slot)?;
        let offset = at.addr().checked_sub(buffer.memory.as_ptr().addr())?;
        let bytes = size_of_val(&*buffer.memory);
        if offset > bytes || len > bytes - offset {
            return None;
        }
        // SAFETY: inside the buffer; the endpoint has written it, and writes it no more.
        Some(unsafe { std::slice::from_raw_parts(buffer.memory.as_ptr().cast::<u8>().add(offset), len) })
    }

    /// The packet whose frame starts at `at` in the buffer `slot`: the buffer is kept until it is released.
    #[inline]
    pub(super) fn keep(&mut self, slot: Slot, at: *const u8, frame: &Frame) -> Arrived {
        let mut arrived = Arrived {
            src: frame.src,
            tag: frame.tag,
            head_len: frame.head_len as u16,
            body_len: frame.body_len,
            place: Place::Buffer(slot, at.wrapping_add(FRAME)),
        };
        if at.addr() % 8 == 0 {
            self.list[slot].users += 1;
        } else {
            arrived.place = Place::Own(arrived.copy());
        }
        arrived
    }

    /// The packet is not needed any more.
    #[inline]
    pub(super) fn release(&mut self, device: &Device, arrived: Arrived) {
        if let Place::Buffer(slot, _) = arrived.place {
            self.list[slot].users -= 1;
            self.post_again(device, slot);
        }
    }

    /// The endpoint has used a buffer up.
    pub(super) fn used_up(&mut self, device: &Device, slot: Slot) {
        if std::mem::take(&mut self.list[slot].posted) {
            self.posted -= 1;
        }
        self.post_again(device, slot);
    }

    #[inline]
    fn post_again(&mut self, device: &Device, slot: Slot) {
        let buffer = &self.list[slot];
        if !buffer.posted && buffer.users == 0 && !device.is_closed() {
            // Without room now, it is posted when there are too few.
            let _ = self.post(device, slot);
        }
    }

    /// Whether [`Self::provide`] must be called.
    #[inline]
    pub(super) fn are_few(&self) -> bool {
        self.posted < POSTED
    }

    /// Sees to it that enough buffers are posted: posts what is empty, makes another one, or copies packets out of one.
    #[cold]
    pub(super) fn provide<'a>(
        &mut self,
        device: &mut Device,
        packets: impl Iterator<Item = &'a mut Arrived>,
        in_hand: Option<&Arrived>,
    ) {
        for slot in 0..self.list.len() {
            self.post_again(device, slot);
        }
        if !self.are_few() || device.is_closed() || (self.list.len() < BUFFERS && self.add(device).is_ok()) {
            return;
        }
        let used = |arrived: &Arrived| match arrived.place {
            Place::Buffer(slot, _) => Some(slot),
            Place::Own(_) => None,
        };
        let in_hand = in_hand.and_then(used);
        let candidates =
            self.list.iter().enumerate().filter(|(slot, buffer)| !buffer.posted && in_hand != Some(*slot));
        let Some((least, _)) = candidates.min_by_key(|(_, buffer)| buffer.users) else { return };
        for packet in packets.filter(|packet| used(packet) == Some(least)) {
            packet.place = Place::Own(packet.copy());
            self.list[least].users -= 1;
        }
        self.post_again(device, least);
    }
}
