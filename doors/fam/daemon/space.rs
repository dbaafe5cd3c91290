//! Free space of a part, by first fit.

use std::collections::BTreeMap;

/// Pieces begin at multiples of this many bytes, and take whole ones.
const GRAIN: u64 = 128;

/// The gaps of a part.
#[derive(Clone, Debug)]
pub struct Space {
    size: u64,
    /// By their beginnings; no two touch.
    gaps: BTreeMap<u64, u64>,
}

impl Space {
    /// A part without a piece.
    pub fn new(size: u64) -> Self {
        let size = size / GRAIN * GRAIN;
        Self { size, gaps: BTreeMap::from([(0, size)]) }
    }

    /// Finds room for a piece and takes it; `None`: no gap is long enough.
    pub fn place(&mut self, length: u64) -> Option<u64> {
        let length = length.max(1).checked_next_multiple_of(GRAIN)?;
        let (offset, gap) = self.gaps.iter().find(|(_, gap)| **gap >= length)?;
        let (offset, gap) = (*offset, *gap);
        self.cut(offset, gap, offset, length);
        Some(offset)
    }

    /// Takes the room of a piece that is there. `false`: it is not free.
    pub fn take(&mut self, offset: u64, length: u64) -> bool {
        let Some(length) = length.max(1).checked_next_multiple_of(GRAIN) else { return false };
        let Some((start, gap)) = self.gaps.range(..=offset).next_back() else { return false };
        let (start, gap) = (*start, *gap);
        let fits =
            offset.is_multiple_of(GRAIN) && offset.checked_add(length).is_some_and(|end| end <= start + gap);
        if fits {
            self.cut(start, gap, offset, length);
        }
        fits
    }

    /// Takes a range out of a gap.
    fn cut(&mut self, start: u64, gap: u64, offset: u64, length: u64) {
        self.gaps.remove(&start);
        if offset > start {
            self.gaps.insert(start, offset - start);
        }
        let rest = start + gap - (offset + length);
        if rest != 0 {
            self.gaps.insert(offset + length, rest);
        }
    }

    /// Gives the room of a piece back.
    pub fn free(&mut self, offset: u64, length: u64) {
        let (mut offset, mut length) = (offset, length.max(1).next_multiple_of(GRAIN));
        if let Some(after) = self.gaps.remove(&(offset + length)) {
            length += after;
        }
        if let Some((start, gap)) = self.gaps.range(..offset).next_back()
            && start + gap == offset
        {
            (offset, length) = (*start, length + gap);
        }
        self.gaps.insert(offset, length);
    }

    /// Gives the part another size. `false`: a piece lies beyond it.
    pub fn resize(&mut self, size: u64) -> bool {
        let size = size / GRAIN * GRAIN;
        if size > self.size {
            let old = std::mem::replace(&mut self.size, size);
            self.free(old, size - old);
            return true;
        }
        let last = self.gaps.iter().next_back().filter(|(start, gap)| *start + *gap == self.size);
        let end = last.map_or(self.size, |(start, _)| *start);
        if size < end {
            return false;
        }
        self.gaps.remove(&end);
        if size > end {
            self.gaps.insert(end, size - end);
        }
        self.size = size;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openlapi::base::rng::Rng;

    /// Against a model: a list of blocks that are taken.
    #[test]
    fn no_piece_overlaps_another_and_all_space_comes_back() {
        for seed in 0..50 {
            let mut rng = Rng::new(seed);
            let mut size = 64 * GRAIN;
            let mut space = Space::new(size);
            let mut pieces: Vec<(u64, u64)> = Vec::new();
            let mut taken = [false; 200];
            let blocks = |offset: u64, length: u64| {
                (offset / GRAIN) as usize..(offset + length).div_ceil(GRAIN) as usize
            };
            for _ in 0..300 {
                match rng.below(5) {
                    0 | 1 => {
                        let length = 1 + rng.below(8 * GRAIN);
                        let fits = |start: &usize| {
                            let range = blocks(*start as u64 * GRAIN, length);
                            range.end as u64 <= size / GRAIN && taken[range].iter().all(|taken| !taken)
                        };
                        let first = (0..taken.len()).find(fits).map(|start| start as u64 * GRAIN);
                        assert_eq!(space.place(length), first);
                        if let Some(offset) = first {
                            taken[blocks(offset, length)].fill(true);
                            pieces.push((offset, length));
                        }
                    }
                    2 | 3 if !pieces.is_empty() => {
                        let (offset, length) = pieces.swap_remove(rng.below(pieces.len() as u64) as usize);
                        space.free(offset, length);
                        taken[blocks(offset, length)].fill(false);
                    }
                    _ => {
                        let new = (1 + rng.below(150)) * GRAIN;
                        let last = taken.iter().rposition(|taken| *taken).map_or(0, |last| last as u64 + 1);
                        let fits = new >= last * GRAIN;
                        assert_eq!(space.resize(new), fits);
                        if fits {
                            size = new;
                        }
                    }
                }
            }
            // As a daemon that starts again does.
            let mut again = Space::new(size);
            assert!(pieces.iter().all(|(offset, length)| again.take(*offset, *length)));
            assert!(pieces.iter().all(|(offset, length)| !again.take(*offset, *length)));
            for (offset, length) in
                [(0, u64::MAX), (u64::MAX / GRAIN * GRAIN, GRAIN), (GRAIN, u64::MAX - GRAIN)]
            {
                assert!(!again.take(offset, length), "beyond all numbers");
            }
            assert_eq!(again.gaps, space.gaps);
            pieces.iter().for_each(|(offset, length)| space.free(*offset, *length));
            assert_eq!(space.gaps, BTreeMap::from([(0, size)]));
        }
    }
}
