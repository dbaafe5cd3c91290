//! Which path a fragment takes. A connection with one path has no choice, and pays for none.
//!
//! What fits into one datagram uses the path that is called home while that works: both sides have the same, and different pairs of
//! tasks different ones. Each longer packet uses the path that is least full. When the chosen path has no room, the fragment takes another
//! one that works. Where none works, all goes by home or, while its link is down, by another one whose link is up.

use super::super::{Nanos, OVERHEAD};
use super::{Fate, Path, Piece, Sender};

impl Sender {
    /// The path that is called home.
    pub fn prefer(&mut self, path: usize) {
        self.home = path % self.paths.len();
    }

    /// The path of what belongs to no packet: home, or the next one that works.
    #[inline]
    pub(super) fn usual(&self) -> usize {
        if self.paths[self.home].works() { self.home } else { self.usual_without_home() }
    }

    #[cold]
    fn usual_without_home(&self) -> usize {
        let count = self.paths.len();
        let all = || (self.home..self.home + count).map(|at| at % count);
        let working = all().find(|&at| self.paths[at].works());
        working.or_else(|| all().find(|&at| self.paths[at].has_link())).unwrap_or(self.home)
    }

    /// The path for a message that may be repeated: with each repetition another one, of those whose link is up.
    pub fn turn(&self, repetition: u32) -> u8 {
        let (usual, count) = (self.usual(), self.paths.len());
        let up = || (usual..usual + count).map(|at| at % count).filter(|&at| self.paths[at].has_link());
        let ups = up().count().max(1);
        up().nth(repetition as usize % ups).unwrap_or(usual) as u8
    }

    /// Whether another path than this one works.
    pub(super) fn works_beside(&self, path: usize) -> bool {
        self.paths.iter().enumerate().any(|(at, other)| at != path && other.works())
    }

    /// The timer of a path has ended.
    pub(super) fn note_end(&mut self, now: Nanos, at: usize) {
        let several = self.paths.len() > 1;
        let path = &mut self.paths[at];
        path.ends += 1;
        path.since = now;
        if several {
            path.doubt(now);
        }
    }

    /// The connection has come up by this path.
    pub fn prove(&mut self, now: Nanos, path: u8, sample: Option<Nanos>) {
        let Some(path) = self.paths.get_mut(usize::from(path)) else { return };
        if let Some(sample) = sample {
            path.round_trip.note(sample, 0);
        }
        path.prove(now);
    }

    /// The peer has replied to a probe.
    pub fn note_reply(&mut self, now: Nanos, number: u64) -> bool {
        self.paths.iter_mut().any(|path| path.replied(now, number))
    }

    /// The link of one of this task's interfaces has gone down or come up. What is on its way there is sent by others, if they work.
    pub fn set_link(&mut self, now: Nanos, path: u8, up: bool) {
        let at = usize::from(path);
        if at >= self.paths.len() || self.paths.len() == 1 || self.paths[at].has_link() == up {
            return;
        }
        self.paths[at].set_link(up, now);
        if !up && self.works_beside(at) {
            self.paths[at].ends = self.paths[at].ends.max(2);
            self.lose_oldest(now, at);
        }
    }

    /// The path that is to be probed now, if any, with the number of this transmission; and the length of the probe.
    pub(super) fn probe(&mut self, now: Nanos, transmission: u64) -> Option<(u8, usize)> {
        let busy = !self.pieces.is_empty();
        let due = |path: &Path| path.probe_due(busy).is_some_and(|at| at <= now);
        // A path that has nothing to try any more is due later.
        while let Some(at) = self.paths.iter().position(due) {
            if let Some(len) = self.paths[at].probe(now, transmission) {
                return Some((at as u8, len));
            }
        }
        None
    }

    /// When a path is to be probed next.
    pub(super) fn probe_due(&self) -> Option<Nanos> {
        let busy = !self.pieces.is_empty();
        self.paths.iter().filter_map(|path| path.probe_due(busy)).min()
    }

    /// Whether a path that would be used has room for a datagram of this length.
    pub(super) fn fits(&self, len: usize) -> bool {
        if let [only] = &*self.paths {
            return !only.is_full(len);
        }
        (0..self.paths.len()).any(|at| self.may_carry(at, len) && !self.paths[at].is_full(len))
    }

    /// Whether a path carries datagrams of this length: one that takes them as they are; where none does, any that works, in parts; and where
    /// none works, the usual one.
    fn may_carry(&self, at: usize, len: usize) -> bool {
        let takes = |path: &Path| path.works() && path.length.proven() + OVERHEAD >= len;
        match self.paths.iter().any(takes) {
            true => takes(&self.paths[at]),
            false => self.paths[at].works() || at == self.usual(),
        }
    }

    /// The path by which a fragment is sent now; `None`: all are full, or held up by their pacers until `paced`.
    #[inline]
    pub(super) fn choose(&mut self, now: Nanos, number: u64, len: usize) -> Option<usize> {
        if self.paths.len() == 1 {
            return self.admits(now, 0, len).then_some(0);
        }
        self.choose_of_several(now, number, len)
    }

    fn choose_of_several(&mut self, now: Nanos, number: u64, len: usize) -> Option<usize> {
        let wanted = self.wanted(number)?;
        let others = (0..self.paths.len()).filter(|at| *at != wanted);
        let mut all = std::iter::once(wanted).chain(others);
        let chosen = all.find(|&at| self.may_carry(at, len) && self.admits(now, at, len))?;
        self.paced = None;
        Some(chosen)
    }

    /// How long the fragments of the next packet may be: as all paths take them that work.
    #[inline]
    pub(super) fn unit(&self) -> usize {
        match &*self.paths {
            [only] => only.length.proven(),
            all => Self::unit_of_several(all),
        }
    }

    fn unit_of_several(paths: &[Path]) -> usize {
        let lengths = |works: bool| {
            paths.iter().filter(move |path| path.works() || !works).map(|path| path.length.proven()).min()
        };
        lengths(true).or_else(|| lengths(false)).unwrap_or(1)
    }

    /// The path that a fragment should take.
    fn wanted(&mut self, number: u64) -> Option<usize> {
        let usual = self.usual();
        let &Piece { packet, index, fate, .. } = self.piece(number)?;
        let packet = (packet - self.first_packet) as usize;
        let (count, before) = self.packets.get(packet).map(|packet| (packet.count, packet.path))?;
        if count == 1 || fate == Fate::Lost || !self.paths[usual].works() {
            return Some(usual);
        }
        if index != 0 && self.paths[usize::from(before)].works() {
            return Some(before.into());
        }
        let working = (0..self.paths.len()).filter(|&at| self.paths[at].works());
        let emptiest = working.min_by_key(|&at| (self.paths[at].load(), at != usual))?;
        self.packets[packet].path = emptiest as u8;
        Some(emptiest)
    }

    /// Whether a path takes a datagram of this length now.
    #[inline]
    fn admits(&mut self, now: Nanos, at: usize, len: usize) -> bool {
        let path = &mut self.paths[at];
        if path.probes != 0 {
            path.probes -= 1;
            return true;
        }
        if path.is_full(len) {
            path.limited = true;
            return false;
        }
        if let Err(later) = path.pacer.look(now) {
            path.limited = true;
            self.paced = Some(self.paced.map_or(later, |at| at.min(later)));
            return false;
        }
        true
    }
}
