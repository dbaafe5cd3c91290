//! Which peer most of what arrives comes from: the device serves that one at less cost
//! ([`super::device::Device::prefer`]).

use std::net::SocketAddr;

/// How many more datagrams of one address than of all others make it the preferred one, which it
/// stays until as many more have come from others.
const ENOUGH: u8 = 64;

/// The address that has most of the traffic, by majority vote: each datagram that comes from the
/// candidate is a vote for it, each other one a vote against it. So it costs one comparison for a
/// datagram, however many peers there are.
#[derive(Debug, Default)]
pub(super) struct PreferredPeer {
    candidate: Option<SocketAddr>,
    votes: u8,
    preferred: Option<SocketAddr>,
    changed: bool,
}

impl PreferredPeer {
    /// A datagram of a connection has come from there. `is_usual` says whether datagrams to the
    /// peer go there, too; others do not count.
    #[inline]
    pub(super) fn note(&mut self, from: SocketAddr, is_usual: impl FnOnce() -> bool) {
        if self.candidate == Some(from) {
            if self.votes < ENOUGH {
                self.votes += 1;
                self.changed |= self.votes == ENOUGH && self.preferred != self.candidate;
            }
        } else if is_usual() {
            self.note_other(from);
        }
    }

    /// What the device was asked for last.
    #[cfg(test)]
    pub(super) fn preferred(&self) -> Option<SocketAddr> {
        self.preferred
    }

    fn note_other(&mut self, from: SocketAddr) {
        self.votes = self.votes.saturating_sub(1);
        if self.votes == 0 {
            (self.candidate, self.votes) = (Some(from), 1);
            self.changed |= self.preferred.is_some();
        }
    }

    /// The address that is to be preferred from now on, if that is another one than before, or
    /// none any more.
    #[inline]
    pub(super) fn changed(&mut self) -> Option<Option<SocketAddr>> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let stays = self.votes == ENOUGH || self.preferred == self.candidate;
        self.preferred = self.candidate.filter(|_| stays);
        Some(self.preferred)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::rng::Rng;

    fn address(port: u16) -> SocketAddr {
        ([192, 0, 2, 1], port).into()
    }

    /// What changes when datagrams come from these ports.
    fn changes(preferred_peer: &mut PreferredPeer, ports: impl IntoIterator<Item = u16>) -> Vec<Option<u16>> {
        let ports = ports.into_iter();
        ports
            .filter_map(|port| {
                preferred_peer.note(address(port), || true);
                preferred_peer.changed().map(|address| address.map(|address| address.port()))
            })
            .collect()
    }

    #[test]
    fn one_that_sends_most_is_preferred_until_others_do() {
        let mut preferred_peer = PreferredPeer::default();
        assert_eq!(changes(&mut preferred_peer, [1; 63]), []);
        assert_eq!(changes(&mut preferred_peer, [1]), [Some(1)]);
        assert_eq!(changes(&mut preferred_peer, [1; 1000]), []);
        let mixed = (0..3000).map(|at| if at % 3 == 0 { 2 + at % 7 } else { 1 });
        assert_eq!(changes(&mut preferred_peer, mixed), [], "it has two thirds");
        assert_eq!(changes(&mut preferred_peer, [2; 200]), [None, Some(2)]);
    }

    #[test]
    fn none_of_several_that_send_as_much_is_preferred() {
        let mut preferred_peer = PreferredPeer::default();
        assert_eq!(changes(&mut preferred_peer, (0..10_000).map(|at| at % 2)), []);
        assert_eq!(changes(&mut preferred_peer, (0..10_000).map(|at| at % 5)), []);
    }

    /// The device is asked for another peer once in [`ENOUGH`] datagrams at most, and
    /// for none between.
    #[test]
    fn it_changes_seldom() {
        for seed in 0..50 {
            let (mut rng, mut preferred_peer) = (Rng::stream(0xfa40, seed), PreferredPeer::default());
            let mut ports = Vec::new();
            while ports.len() < 20_000 {
                let (port, len) = (rng.below(3) as u16, 1 + rng.below(300) as usize);
                ports.extend(std::iter::repeat_n(port, len));
            }
            let made = changes(&mut preferred_peer, ports.iter().copied());
            assert!(!made.is_empty() && made.len() <= 2 * ports.len() / usize::from(ENOUGH), "seed {seed}");
            assert!(made.windows(2).all(|two| two[0] != two[1]), "seed {seed}: {made:?}");
        }
    }

    #[test]
    fn what_comes_from_elsewhere_does_not_count() {
        let mut preferred_peer = PreferredPeer::default();
        (0..1000).for_each(|_| preferred_peer.note(address(1), || false));
        assert_eq!(preferred_peer.changed(), None);
        assert_eq!(preferred_peer.candidate, None);
    }
}
