//! Malformed programs: whatever the code and the descriptor contain, compiling ends, and what
//! passes verification stays within what it describes.

use super::assemble::{Source, Taste, random, simple};
use super::properties::keeps_its_word;
use super::{Program, Rng};
use std::collections::BTreeMap;

fn attempt(seed: u64, source: &mut Source, outcomes: &mut BTreeMap<i32, u32>) {
    for verify in [true, false] {
        // SAFETY: the descriptor points at the code of the source.
        let outcome = unsafe { Program::compile(&source.descriptor(), verify) };
        if let Ok(program) = &outcome {
            let (descriptor, what) = (source.descriptor(), format!("seed {seed}: {source:?}"));
            keeps_its_word(program, &descriptor, &source.code, verify, &what);
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
