//! The machine against a plain interpreter, and everything else of this floor.

mod assemble;
mod errors;
mod interpreter;
mod layouts;
mod malformed;
mod packing;
mod programs;
mod registered;
mod vectors;

use super::Program;
use crate::base::rng::Rng;
use assemble::Source;
use std::sync::Arc;

/// Compiles with verification.
fn compiled(source: &mut Source) -> Arc<Program> {
    // SAFETY: the descriptor points at the code of the source.
    unsafe { Program::compile(&source.descriptor(), true) }.unwrap()
}

/// The code of the error that compiling ends with.
fn refused(source: &mut Source, verify: bool) -> i32 {
    // SAFETY: the descriptor points at the code of the source.
    unsafe { Program::compile(&source.descriptor(), verify) }.unwrap_err().code
}

fn random_bytes(rng: &mut Rng, len: usize) -> Vec<u8> {
    (0..len).map(|_| rng.next_u64() as u8).collect()
}

/// Cuts `0..len` into packets and shuffles them.
fn packets(rng: &mut Rng, len: usize, atom: usize) -> Vec<(usize, usize)> {
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
