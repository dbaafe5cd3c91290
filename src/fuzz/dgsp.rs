//! Gather/scatter programs.

use super::{Reader, Seed, Target, seed};
use crate::abi::LAPI_DGSM_SPARSE;
use crate::base::rng::Rng;
use crate::dgsp::Program;
use crate::dgsp::testing::assemble::{Source, Taste, random};
use crate::dgsp::testing::{interpreter, properties};

/// Any code that compiles, under a correct descriptor: it gathers and scatters what a plain
/// interpreter gathers and scatters, in packets of any order, and touches nothing else.
pub const MACHINE: Target = Target { name: "machine", feed: machine, seeds: machine_seeds };

/// Any descriptor, any code: compiling ends, and a verified program agrees with its descriptor.
pub const VERIFIER: Target = Target { name: "verifier", feed: verifier, seeds: verifier_seeds };

/// Programs with larger offsets or more bytes are skipped: they would need too much memory.
const REACH: i64 = 1 << 17;
const BYTES: u64 = 1 << 14;

fn long(reader: &mut Reader<'_>) -> i64 {
    i64::from(reader.short() as i16)
}

fn machine(bytes: &[u8]) -> bool {
    let mut reader = Reader(bytes);
    let [extent, length, seed] = [(); 3].map(|()| long(&mut reader));
    let mut source = Source {
        code: reader.ints(),
        depth: i32::MAX,
        density: LAPI_DGSM_SPARSE,
        size: 0,
        extent,
        lext: i64::MIN,
        rext: i64::MAX,
        atom_size: 0,
    };
    // SAFETY: the descriptor points at the code of the source.
    let Ok(draft) = (unsafe { Program::compile(&source.descriptor(), false) }) else { return false };
    let length = length as u16 as u64 % BYTES + 1;
    if draft.size() == 0 || draft.size() > BYTES || draft.bounds().0 < -REACH || draft.bounds().1 > REACH {
        return false;
    }
    source.size = draft.size() as i64;
    // SAFETY: the descriptor still points at the code of the source.
    let Ok(program) = (unsafe { Program::compile(&source.descriptor(), true) }) else { return false };
    let Some(moves) = interpreter::moves(&source.code, extent, length, 1 << 16) else { return false };
    // Small extents only: the memory of all applications must exist.
    let fits = moves.iter().all(|m| m.offset.abs() < 2 * REACH);
    if fits {
        properties::moves_like(&program, &moves, length, &mut Rng::new(seed as u64), "");
    }
    fits
}

fn verifier(bytes: &[u8]) -> bool {
    let mut reader = Reader(bytes);
    let [size, extent, lext, rext, mixed] = [(); 5].map(|()| long(&mut reader));
    let mut source = Source {
        code: reader.ints(),
        depth: (mixed & 15) as i32,
        density: (mixed >> 4 & 3) as u32,
        size,
        extent,
        lext,
        rext,
        atom_size: (mixed >> 6) as i32,
    };
    let descriptor = source.descriptor();
    let mut verified = false;
    for verify in [true, false] {
        // SAFETY: the descriptor points at the code of the source.
        if let Ok(program) = unsafe { Program::compile(&descriptor, verify) } {
            properties::keeps_its_word(&program, &descriptor, &source.code, verify, "");
            verified |= verify;
        }
    }
    verified
}

fn sources() -> impl Iterator<Item = (String, Source)> {
    let source = |seed| {
        let taste = Taste { depth: 3, size: 300, reach: 2000, controls: seed % 2 == 1 };
        (format!("program{seed}"), random(&mut Rng::new(seed), taste))
    };
    (0..4).map(source)
}

/// The bytes that [`Reader::short`] and [`Reader::ints`] read.
fn input(shorts: &[i64], code: &[i32]) -> Vec<u8> {
    let mut bytes: Vec<u8> = shorts.iter().flat_map(|short| (*short as i16).to_le_bytes()).collect();
    for int in code {
        match i8::try_from(*int) {
            Ok(small) if small != -1 => bytes.push(small as u8),
            _ => {
                bytes.push(255);
                bytes.extend(int.to_le_bytes());
            }
        }
    }
    bytes
}

fn machine_seeds() -> Vec<Seed> {
    sources().map(|(name, source)| seed(&name, input(&[source.extent, 700, 5], &source.code))).collect()
}

fn verifier_seeds() -> Vec<Seed> {
    let seed = |(name, source): (String, Source)| {
        let mixed =
            i64::from(source.depth) | i64::from(source.density) << 4 | i64::from(source.atom_size) << 6;
        seed(&name, input(&[source.size, source.extent, source.lext, source.rext, mixed], &source.code))
    };
    sources().map(seed).collect()
}
