//! What must hold of every program.

use super::interpreter::{Move, moves};
use crate::abi::lapi_dgsp_descr_t;
use crate::base::rng::Rng;
use crate::dgsp::Program;

pub fn random_bytes(rng: &mut Rng, len: usize) -> Vec<u8> {
    (0..len).map(|_| rng.next_u64() as u8).collect()
}

/// Cuts `0..len` into packets that hold whole atoms, and shuffles them.
pub fn packets(rng: &mut Rng, len: usize, atom: usize) -> Vec<(usize, usize)> {
    let mut cuts = Vec::new();
    let mut at = 0;
    while at < len {
        let size = (1 + rng.below(1 + len as u64 / 3) as usize).next_multiple_of(atom).min(len - at);
        cuts.push((at, size));
        at += size;
    }
    for i in (1..cuts.len()).rev() {
        cuts.swap(i, rng.below(i as u64 + 1) as usize);
    }
    cuts
}

/// Memory around a base, and what lies in it of a message.
pub struct Arena {
    pub bytes: Vec<u8>,
    base: usize,
}

impl Arena {
    /// Random bytes that hold all of the moves and the base, and some more on both sides.
    pub fn new(rng: &mut Rng, moves: &[Move]) -> Self {
        const GUARD: i64 = 128;
        let low = moves.iter().map(|m| m.offset).min().unwrap_or(0).min(0) - GUARD;
        let high = moves.iter().map(|m| m.offset + m.len as i64).max().unwrap_or(0).max(0) + GUARD;
        Self { bytes: random_bytes(rng, (high - low) as usize), base: -low as usize }
    }

    pub fn base(&mut self) -> *mut u8 {
        self.bytes.as_mut_ptr().wrapping_add(self.base)
    }

    pub fn index(&self, offset: i64) -> usize {
        (self.base as i64 + offset) as usize
    }
}

/// The offset of each byte of the stream.
pub fn places(moves: &[Move]) -> Vec<i64> {
    moves.iter().flat_map(|m| m.offset..m.offset + m.len as i64).collect()
}

/// Gathers, scatters and lists `bytes` bytes in packets of any order, and holds the result against
/// the moves that the interpreter makes for them.
pub fn moves_like(program: &Program, moves: &[Move], bytes: u64, rng: &mut Rng, what: &str) {
    let places = places(moves);
    assert_eq!(places.len() as u64, bytes, "{what}");
    let mut arena = Arena::new(rng, moves);

    // Gather, packet by packet, between guards.
    let mut packed = random_bytes(rng, bytes as usize + 32);
    let before = packed.clone();
    for (at, len) in packets(rng, bytes as usize, 1) {
        // SAFETY: the arena holds all moves, the buffer all bytes.
        unsafe { program.gather(arena.base(), at as u64, len, packed[16 + at..].as_mut_ptr()) };
    }
    for (i, &place) in places.iter().enumerate() {
        assert_eq!(packed[16 + i], arena.bytes[arena.index(place)], "byte {i}, {what}");
    }
    assert_eq!(packed[..16], before[..16], "{what}");
    assert_eq!(packed[16 + bytes as usize..], before[16 + bytes as usize..], "{what}");

    // Scatter: every byte of memory has one of the values that go there; one to which none
    // goes is unchanged.
    let data = random_bytes(rng, bytes as usize);
    let mut expected: Vec<Vec<u8>> = vec![Vec::new(); arena.bytes.len()];
    for (i, &place) in places.iter().enumerate() {
        expected[arena.index(place)].push(data[i]);
    }
    for (values, &byte) in expected.iter_mut().zip(&arena.bytes) {
        if values.is_empty() {
            values.push(byte);
        }
    }
    for (at, len) in packets(rng, bytes as usize, 1) {
        // SAFETY: the arena holds all moves, the data all bytes.
        unsafe { program.scatter(arena.base(), at as u64, data[at..].as_ptr(), len) };
    }
    for (i, (byte, allowed)) in arena.bytes.iter().zip(&expected).enumerate() {
        assert!(allowed.contains(byte), "memory {i}, {what}");
    }

    // Runs: the same bytes, in order, and none that touch.
    let from = rng.below(bytes);
    let len = rng.below(bytes - from + 1);
    let mut runs_seen = Vec::new();
    let mut runs: Vec<(isize, usize)> = Vec::new();
    program.runs(from, len, |at, len| {
        runs_seen.extend(at as i64..at as i64 + len as i64);
        runs.push((at, len));
    });
    assert_eq!(runs_seen, places[from as usize..][..len as usize], "{what}");
    assert!(runs.windows(2).all(|pair| pair[0].0 + pair[0].1 as isize != pair[1].0), "{what}");
    assert!(runs.iter().all(|run| run.1 != 0), "{what}");
    if let Some(at) = program.contiguous(bytes) {
        assert_eq!(places, Vec::from_iter(at as i64..at as i64 + bytes as i64), "{what}");
    }
}

/// Looks at the start of the stream of a program, whatever it is: as many bytes come as are
/// asked for. If it was verified, they lie where the descriptor declares, and where the
/// interpreter puts them.
pub fn keeps_its_word(
    program: &Program,
    descriptor: &lapi_dgsp_descr_t,
    code: &[i32],
    verified: bool,
    what: &str,
) {
    let size = program.size();
    let bytes = size.saturating_mul(2).min(20_000);
    let (mut at, mut runs_seen) = (0u64, Vec::new());
    program.runs(0, bytes, |offset, len| {
        runs_seen.push((at, offset as i64, len as u64));
        at += len as u64;
    });
    assert_eq!(at, bytes, "{what}");
    if !verified {
        return;
    }
    let &lapi_dgsp_descr_t { extent, lext, rext, .. } = descriptor;
    assert_eq!(size as i64, descriptor.size as i64, "{what}");
    for &(start, offset, len) in &runs_seen {
        // A run that touches the next application's may belong to both.
        let (first, last) = ((start / size) as i64, ((start + len - 1) / size) as i64);
        let ends = [first, last].map(|n| Some((n.checked_mul(extent)?.checked_add(lext)?, n * extent)));
        // Where addresses wrap they cannot be checked.
        let [Some(first), Some(last)] = ends else { return };
        let Some(high) = first.1.max(last.1).checked_add(rext) else { return };
        assert!(offset >= first.0.min(last.0), "{what}");
        assert!(offset.checked_add_unsigned(len).is_some_and(|end| end <= high), "{what}");
    }
    // The interpreter must find the same, unless it counts longer than we wait.
    if let Some(moves) = moves(code, extent, bytes, 200_000) {
        let mut expected: Vec<(u64, i64, u64)> = Vec::new();
        for m in &moves {
            match expected.last_mut() {
                Some(last) if last.1.checked_add_unsigned(last.2) == Some(m.offset) => last.2 += m.len,
                _ => expected.push((m.start, m.offset, m.len)),
            }
        }
        assert_eq!(runs_seen, expected, "{what}");
    }
}
