//! Bundles that have arrived, and are handed out packet by packet.

use crate::memory::bytes::{self, Piece};
use crate::transport::{Inbound, Task};
use crate::wire::coalesced;
use std::collections::{BTreeMap, VecDeque};

#[derive(Default)]
pub(super) struct Incoming {
    /// Those with packets that were not handed out, in the order of their arrival.
    bundles: VecDeque<Bundle>,
    /// The bundle of the packet that was handed out and not released yet.
    out: Option<Bundle>,
    /// The peers whose packets are not taken now.
    held: Vec<Task>,
    /// Words of the bundles of each peer that are over.
    over: BTreeMap<Task, u64>,
    /// Memory to be used again.
    spare: Option<Vec<u64>>,
    /// Bundles that contained something else than packets.
    pub(super) malformed: u64,
}

/// A copy of a bundle.
struct Bundle {
    src: Task,
    words: Vec<u64>,
    /// The word at which the next packet begins.
    at: usize,
}

impl Incoming {
    /// Whether this packet contains others.
    #[inline]
    pub(super) fn is_bundle(packet: &Inbound) -> bool {
        // SAFETY: the head is readable until the packet is released, and has a word at least.
        packet.head_len == coalesced::HEAD.len()
            && unsafe { packet.head.cast::<[u8; 8]>().read() } == coalesced::HEAD
    }

    /// Copies a bundle, whose packets are handed out from now on.
    pub(super) fn take(&mut self, packet: &Inbound) {
        if !packet.body_len.is_multiple_of(8) {
            self.malformed += 1;
            return;
        }
        let mut words = self.spare.take().unwrap_or_default();
        words.clear();
        words.reserve(packet.body_len / 8);
        // SAFETY: the body is readable until the packet is released, and begins at a multiple of 8;
        // there is room for all of its words.
        unsafe {
            bytes::copy(Piece { ptr: packet.body, len: packet.body_len }, words.as_mut_ptr().cast());
            words.set_len(packet.body_len / 8);
        }
        self.keep_or_recycle(Bundle { src: packet.src, words, at: 0 }, false);
    }

    /// The next packet, if there is one that is taken now.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Inbound> {
        assert!(self.out.is_none(), "the packet before has not been released");
        let at = self.bundles.iter().position(|bundle| !self.held.contains(&bundle.src))?;
        let mut bundle = self.bundles.remove(at)?;
        let place = coalesced::place(&bundle.words, bundle.at)?;
        bundle.at = place.end;
        let start = bundle.words.as_ptr();
        let inbound = Inbound {
            src: bundle.src,
            // SAFETY: the places are inside of the words, as was just seen, or at their end.
            head: unsafe { start.add(place.head) }.cast(),
            head_len: place.head_len,
            // SAFETY: the body is inside of the words too, or at their end.
            body: unsafe { start.add(place.body) }.cast(),
            body_len: place.body_len,
            token: 0,
        };
        self.out = Some(bundle);
        Some(inbound)
    }

    /// Takes the packet back that was handed out: `false` if that was none of a bundle.
    #[inline]
    pub(super) fn release(&mut self) -> bool {
        let Some(bundle) = self.out.take() else { return false };
        self.keep_or_recycle(bundle, true);
        true
    }

    /// A bundle that has another packet is the next one that is looked at, if it was before, and
    /// otherwise the last one.
    #[inline]
    fn keep_or_recycle(&mut self, bundle: Bundle, first: bool) {
        if bundle.at < bundle.words.len() {
            if coalesced::place(&bundle.words, bundle.at).is_some() {
                if first {
                    self.bundles.push_front(bundle)
                } else {
                    self.bundles.push_back(bundle)
                }
                return;
            }
            self.malformed += 1;
        }
        *self.over.entry(bundle.src).or_default() += bundle.at as u64;
        self.spare = Some(bundle.words);
    }

    /// Takes no packets of this peer from now on, or takes them again.
    pub(super) fn hold(&mut self, peer: Task, held: bool) {
        self.held.retain(|task| *task != peer);
        if held {
            self.held.push(peer);
        }
    }

    /// What has arrived from this peer is not handed out any more.
    pub(super) fn forget(&mut self, peer: Task) {
        self.bundles.retain(|bundle| bundle.src != peer);
        if let Some(out) = self.out.as_mut().filter(|out| out.src == peer) {
            out.at = out.words.len();
        }
    }

    /// How far the packets of this peer's bundles were handed out, in words.
    pub(super) fn handed_out_of(&self, peer: Task) -> u64 {
        let over = self.over.get(&peer).copied().unwrap_or_default();
        let bundles = self.bundles.iter().chain(&self.out).filter(|bundle| bundle.src == peer);
        over + bundles.map(|bundle| bundle.at as u64).sum::<u64>()
    }

    /// Whether there is a packet of this peer.
    #[inline]
    pub(super) fn has_from(&self, peer: Task) -> bool {
        let in_hand = self.out.iter().filter(|bundle| bundle.at < bundle.words.len());
        self.bundles.iter().chain(in_hand).any(|bundle| bundle.src == peer)
    }

    /// Whether there is a packet that is taken now.
    #[inline]
    pub(super) fn has_some(&self) -> bool {
        self.bundles.iter().any(|bundle| !self.held.contains(&bundle.src))
    }
}
