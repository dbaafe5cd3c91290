//! Nonsense: whatever the code and the descriptor say, compiling ends, and what passes verification stays within what
//! it describes.

use super::assemble::{Source, Taste, random, simple};
use super::interpreter::moves;
use super::{Program, Rng};
use std::collections::BTreeMap;

/// Looks at a program that was compiled: as many bytes of its stream as can be looked at.
fn inspect(seed: u64, source: &Source, program: &Program, verified: bool) {
    let what = format!("seed {seed}: {source:?}");
    let size = program.size();
    let bytes = size.saturating_mul(2).min(20_000);
    let (mut at, mut told) = (0u64, Vec::new());
    program.runs(0, bytes, |offset, len| {
        told.push((at, offset as i64, len as u64));
        at += len as u64;
    });
    assert_eq!(at, bytes, "{what}");
    if !verified {
        return;
    }
    assert_eq!(size as i64, source.size, "{what}");
    for &(start, offset, len) in &told {
        // A run that touches the next application's may belong to both.
        let (first, last) = ((start / size) as i64, ((start + len - 1) / size) as i64);
        let (one, other) = (source.extent.wrapping_mul(first), source.extent.wrapping_mul(last));
        if one.checked_add(source.lext).is_none() || other.checked_add(source.rext).is_none() {
            return; // Addresses wrap; nothing can be said of them here.
        }
        assert!(offset >= (one + source.lext).min(other + source.lext), "{what}");
        assert!(offset + len as i64 <= (one + source.rext).max(other + source.rext), "{what}");
    }
    // The interpreter must find the same, unless it counts longer than we wait.
    if let Some(moves) = moves(&source.code, source.extent, bytes, 200_000) {
        let mut expected: Vec<(u64, i64, u64)> = Vec::new();
        for m in moves.iter().filter(|m| m.len != 0) {
            match expected.last_mut() {
                Some(last) if last.1.checked_add_unsigned(last.2) == Some(m.offset) => last.2 += m.len,
                _ => expected.push((m.start, m.offset, m.len)),
            }
        }
        assert_eq!(told, expected, "{what}");
    }
}

fn attempt(seed: u64, source: &mut Source, outcomes: &mut BTreeMap<i32, u32>) {
    for verify in [true, false] {
        // SAFETY: the descriptor points at the code of the source.
        let outcome = unsafe { Program::compile(&source.descriptor(), verify) };
        if let Ok(program) = &outcome {
            inspect(seed, source, program, verify);
        }
        *outcomes.entry(outcome.map_or_else(|error| error.code, |_| 0)).or_default() += 1;
    }
}

/// Numbers that are likely to be taken for opcodes, distances, counts and lengths.
fn number(rng: &mut Rng) -> i32 {
    match rng.below(6) {
        0..3 => rng.below(6) as i32,
        3 => rng.below(64) as i32 - 32,
        4 => -1,
        _ => rng.next_u64() as i32,
    }
}

#[test]
fn good_programs_with_a_few_wrong_numbers() {
    let mut outcomes = BTreeMap::new();
    for seed in 0..12_000 {
        let mut rng = Rng::new(seed);
        let taste = Taste { depth: 6, size: 3_000, reach: 20_000, controls: rng.below(3) == 0 };
        let mut source = random(&mut rng, taste);
        for _ in 0..=rng.below(4) {
            let at = rng.below(source.code.len() as u64) as usize;
            source.code[at] = number(&mut rng);
        }
        match rng.below(12) {
            0 => source.size += rng.below(3) as i64 - 1,
            1 => source.depth -= 1,
            2 => source.density = rng.below(4) as u32,
            3 => source.lext += 1,
            4 => source.rext -= 1,
            5 => source.extent = rng.next_u64() as i64,
            6 => source.atom_size = number(&mut rng),
            7 => source.code.truncate(1 + rng.below(source.code.len() as u64) as usize),
            _ => {}
        }
        attempt(seed, &mut source, &mut outcomes);
    }
    // Every way to be refused was met, and being accepted, too.
    let codes: Vec<i32> = outcomes.keys().copied().collect();
    assert_eq!(codes, [0, 466, 467, 468, 469, 471, 472, 473, 480], "{outcomes:?}");
}

#[test]
fn random_numbers() {
    let mut outcomes = BTreeMap::new();
    for seed in 0..30_000 {
        let mut rng = Rng::new(seed);
        let mut source = simple(&[], rng.below(40) as i64, rng.below(64) as i64, (-64, 64));
        source.depth = rng.below(5) as i32;
        source.code = (0..=rng.below(60)).map(|_| number(&mut rng)).collect();
        attempt(seed, &mut source, &mut outcomes);
    }
    assert!(outcomes[&0] > 100, "{outcomes:?}");
}
