//! The transport's own messages: credits, greetings, kicks, departures, what parted tasks send each
//! other to rejoin. A peer is to be sent at most one of each kind; one without room waits until
//! there is room.

use super::FabricTransport;
use super::contact::Peer;
use super::ofi::Errno;
use crate::transport::Task;
use crate::transport::presence::Presence;
use crate::wire::network::{FRAME, Frame, FrameKind, REJOIN, Rejoin, TAG};
use std::time::Instant;

/// Bytes of the longest message of the transport's own that is injected.
const SHORT: usize = 96;

/// Bits of the messages that a peer is to be sent.
pub(super) struct Wants;

impl Wants {
    pub(super) const CREDITS: u8 = 1;
    pub(super) const HELLO: u8 = 2;
    pub(super) const REJOIN: u8 = 4;
    pub(super) const DEPARTURE: u8 = 8;
    pub(super) const SEEN: u8 = 16;
    pub(super) const KICK: u8 = 32;
    /// The notices that have no room.
    pub(super) const NOTICE: u8 = 64;
    pub(super) const ALL: u8 = u8::MAX;

    /// Those that are a frame alone.
    const FRAMES: [(u8, FrameKind); 5] = [
        (Self::CREDITS, FrameKind::Credits),
        (Self::HELLO, FrameKind::Hello),
        (Self::KICK, FrameKind::Kick),
        (Self::DEPARTURE, FrameKind::Departure),
        (Self::SEEN, FrameKind::DepartureSeen),
    ];
}

impl FabricTransport {
    /// The peer is owed one of the transport's own messages.
    pub(super) fn owe(&self, task: Task, what: u8) {
        let Some(peer) = self.peer(task) else { return };
        if what & Wants::SEEN != 0 {
            peer.seen_owed.set(Some(Instant::now()));
        }
        self.set_wants(task, peer, peer.wants.get() | what);
    }

    /// The message was sent, or is not to be sent after all.
    pub(super) fn want_no_more(&self, task: Task, what: u8) {
        if let Some(peer) = self.peer(task) {
            self.set_wants(task, peer, peer.wants.get() & !what);
        }
    }

    /// Those that are to be sent something are pending, once each.
    fn set_wants(&self, task: Task, peer: &Peer, wants: u8) {
        let before = peer.wants.replace(wants);
        if (before == 0) == (wants == 0) {
            return;
        }
        let mut pending = self.pending.borrow_mut();
        if wants != 0 {
            pending.push(task);
        } else if let Some(at) = pending.iter().rposition(|other| *other == task) {
            // Most often the last one: what it is owed had room.
            pending.remove(at);
        }
    }

    /// Sends the transport's own messages for which there is room; an error means that
    /// the peer is lost.
    pub(super) fn send_own(&mut self, task: Task) {
        self.send_rejoin(task);
        if self.peer(task).is_some_and(|peer| peer.wants.get() & Wants::NOTICE != 0) {
            self.send_notices(task);
        }
        if let Some(errno) = self.try_send_own(task) {
            self.lose_by(task, errno, &errno.text());
        }
        self.notify();
    }

    /// Sends the transport's own messages; returns why the peer is lost, if it is.
    pub(super) fn try_send_own(&self, task: Task) -> Option<Errno> {
        let peer = self.peer(task)?;
        for (bit, kind) in Wants::FRAMES {
            if peer.wants.get() & bit == 0 {
                continue;
            }
            match self.send_frame(task, peer, kind) {
                Ok(()) => {
                    self.want_no_more(task, bit);
                    peer.hello_sent.set(peer.hello_sent.get() || bit == Wants::HELLO);
                }
                Err(errno) if errno.is_again() => return None,
                Err(errno) => {
                    self.want_no_more(task, Wants::ALL);
                    return Some(errno);
                }
            }
        }
        None
    }

    /// Sends this task's tag, epoch and address to a peer that may rejoin.
    fn send_rejoin(&mut self, task: Task) {
        let Some(peer) = self.peer(task).filter(|peer| peer.wants.get() & Wants::REJOIN != 0) else { return };
        if peer.address.is_some() && !self.posting.has_free() {
            return;
        }
        self.want_no_more(task, Wants::REJOIN);
        if peer.address.is_none() {
            return;
        }
        let process = self.credentials.process;
        let waits = peer.standing == Presence::Rejoining;
        let rejoin = Rejoin { tag: peer.mine, echo: peer.theirs, epoch: peer.epoch, process, waits };
        let published = &self.credentials.published;
        let frame = self.credentials.frame(FrameKind::Rejoin, REJOIN + published.len());
        let mut message = frame.encode().to_vec();
        message.extend(rejoin.encode());
        message.extend(published);
        message.resize(message.len().next_multiple_of(8), 0);
        message.extend(self.credentials.tag(task, &peer.published, &message));
        let words: Vec<u64> = message
            .chunks_exact(8)
            .map(|word| u64::from_ne_bytes(std::array::from_fn(|at| word[at])))
            .collect();
        if let Some(slot) = self.posting.make_of(task, &words) {
            self.post_own(task, slot);
        }
    }

    fn send_frame(&self, task: Task, peer: &Peer, kind: FrameKind) -> Result<(), Errno> {
        let Some(address) = peer.address else { return Ok(()) };
        let mut frame =
            Frame { kind, src: self.credentials.me, tag: peer.theirs, credits: 0, head_len: 0, body_len: 0 };
        match kind {
            FrameKind::Credits => frame.credits = peer.owed.get(),
            FrameKind::Departure => frame.body_len = peer.sent,
            _ => {}
        }
        if kind == FrameKind::Credits {
            self.device.inject(&frame.encode(), address)?;
            peer.owed.set(0);
            return Ok(());
        }
        self.inject_own::<0>(task, peer, &frame, &[])
    }

    /// Sends a short message of the transport's own, with its tag.
    pub(super) fn inject_own<const LEN: usize>(
        &self,
        task: Task,
        peer: &Peer,
        frame: &Frame,
        content: &[u8; LEN],
    ) -> Result<(), Errno> {
        let Some(address) = peer.address else { return Ok(()) };
        const { assert!(FRAME + LEN + TAG <= SHORT) };
        let mut message = [0; SHORT];
        let (covered, len) = (FRAME + LEN, FRAME + LEN + TAG);
        message[..FRAME].copy_from_slice(&frame.encode());
        message[FRAME..covered].copy_from_slice(content);
        let tag = self.credentials.tag(task, &peer.published, &message[..covered]);
        message[covered..len].copy_from_slice(&tag);
        self.device.inject(&message[..len], address)
    }

    /// Whether messages of the transport's own wait for room.
    pub(super) fn has_pending(&self) -> bool {
        !self.pending.borrow().is_empty()
    }

    /// Sends the transport's own messages that had no room.
    #[cold]
    pub(super) fn send_pending(&mut self) {
        let tasks = self.pending.borrow().clone();
        for task in tasks {
            if self.peer(task).is_some_and(|peer| peer.wants.get() != 0) {
                self.send_own(task);
                // A peer that departs waits no longer; its endpoint may be closed, to which there
                // is never room.
                let owed = self.peer(task).and_then(|peer| peer.seen_owed.get());
                if owed.is_some_and(|since| since.elapsed() > self.linger) {
                    self.want_no_more(task, Wants::SEEN);
                }
            }
        }
    }
}
