//! What has become of each pair of addresses of two parties, as each of them has seen it, and how a
//! party publishes it.

use super::Party;

/// What has become of one pair, as the party sees it that has tried it: in a byte, one of these, or
/// the number of an error.
pub(super) const UNTRIED: u8 = 0;
/// A packet has come back.
pub(super) const WORKS: u8 = 255;
/// Nothing has come back.
pub(super) const SILENT: u8 = 254;

/// The longest text of outcomes, in bytes.
const LONGEST: usize = 1200;

/// A pair of addresses: of this party, and of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pair {
    /// The own candidate.
    pub(super) own: usize,
    /// The other party.
    pub(super) party: usize,
    /// The other party's candidate.
    pub(super) other: usize,
}

/// The pairs of a party, in the order in which it publishes their outcomes: those with one address
/// of its own together, so that its failure with all others takes few bytes.
pub(super) fn pairs(parties: &[Party], of: usize) -> impl Iterator<Item = Pair> + '_ {
    let most = parties.iter().map(|party| party.candidates.len()).max().unwrap_or_default();
    let own = 0..parties[of].candidates.len();
    own.flat_map(move |own| {
        (0..most).flat_map(move |other| {
            let has = move |party: &usize| *party != of && other < parties[*party].candidates.len();
            (0..parties.len()).filter(has).map(move |party| Pair { own, party, other })
        })
    })
}

/// The outcomes of all parties.
#[derive(Clone, Debug)]
pub(super) struct Outcomes {
    /// By party: runs of its pairs, in the order of [`pairs`]: where each ends, and the outcome of
    /// its pairs. Those beyond the last run are untried.
    seen: Vec<Vec<(usize, u8)>>,
    /// By party: the number of its candidates.
    candidates: Vec<usize>,
    /// By number of a candidate: how many parties before a party have one of this number.
    before: Vec<Vec<usize>>,
    /// Nothing is tried: all pairs count as working.
    trusted: bool,
}

impl Outcomes {
    /// Nothing is known.
    pub(super) fn untried(parties: &[Party]) -> Self {
        let candidates: Vec<usize> = parties.iter().map(|party| party.candidates.len()).collect();
        let most = candidates.iter().copied().max().unwrap_or_default();
        let before = |number: usize| {
            let mut sum = 0;
            let mut add = |count: &usize| {
                let before = sum;
                sum += usize::from(number < *count);
                before
            };
            let mut all: Vec<usize> = candidates.iter().map(&mut add).collect();
            all.push(sum);
            all
        };
        let before = (0..most).map(before).collect();
        Self { seen: vec![Vec::new(); parties.len()], candidates, before, trusted: true }
    }

    /// Takes what a party has published. What is cut off counts as untried.
    pub(super) fn note(&mut self, parties: &[Party], of: usize, bytes: &[u8]) {
        let count = pairs(parties, of).count();
        let mut end = 0;
        let run = |run: &[u8]| {
            end = count.min(end + usize::from(u16::from_le_bytes([run[0], run[1]])));
            (end, run[2])
        };
        self.seen[of] = bytes.chunks_exact(3).map(run).collect();
        self.trusted = false;
    }

    /// The bytes that a party publishes: runs, each a number of pairs and their outcome.
    pub(super) fn encode(seen: &[u8]) -> Vec<u8> {
        let runs = seen.chunk_by(|one, next| one == next);
        let short = runs.flat_map(|run| run.chunks(u16::MAX.into()));
        let mut bytes: Vec<u8> = short
            .flat_map(|run| {
                let [low, high] = (run.len() as u16).to_le_bytes();
                [low, high, run[0]]
            })
            .collect();
        bytes.truncate(LONGEST);
        bytes
    }

    /// Whether packets have gone both ways between these candidates, whichever side began.
    pub(super) fn work(&self, p: usize, i: usize, q: usize, j: usize) -> bool {
        self.trusted || self.seen(p, i, q, j) == WORKS && self.seen(q, j, p, i) == WORKS
    }

    /// What has become of it: why it does not work, where that is known.
    pub(super) fn of(&self, p: usize, i: usize, q: usize, j: usize) -> u8 {
        if self.trusted {
            return UNTRIED;
        }
        match (self.seen(p, i, q, j), self.seen(q, j, p, i)) {
            (WORKS, other) | (SILENT, other) if other != UNTRIED => other,
            (one, _) => one,
        }
    }

    fn seen(&self, p: usize, i: usize, q: usize, j: usize) -> u8 {
        let is = |party: usize, number: usize| usize::from(number < self.candidates[party]);
        // Whole rows of other numbers first; party `p` itself is in none of them.
        let row = |number: usize| self.before[number][self.candidates.len()] - is(p, number);
        let rows = (0..self.before.len()).map(row).sum::<usize>();
        let numbers = (0..j).map(row).sum::<usize>();
        let place = self.before[j][q] - if p < q { is(p, j) } else { 0 };
        let at = i * rows + numbers + place;
        let runs = &self.seen[p];
        runs.get(runs.partition_point(|(end, _)| *end <= at)).map_or(UNTRIED, |(_, outcome)| *outcome)
    }
}

#[cfg(test)]
#[path = "outcomes_tests.rs"]
mod tests;
