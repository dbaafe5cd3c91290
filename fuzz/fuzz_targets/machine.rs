//! Any code that compiles, under a correct descriptor: it gathers and scatters what a plain interpreter
//! gathers and scatters, in packets of any order, and touches nothing else.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openlapi::{abi, base, dgsp};

mod input;
#[path = "../../src/dgsp/tests/interpreter.rs"]
mod interpreter;
#[path = "../../src/dgsp/tests/properties.rs"]
#[allow(dead_code)]
mod properties;

/// Programs with larger offsets or more bytes are skipped: they would need too much memory.
const REACH: i64 = 1 << 17;
const BYTES: u64 = 1 << 14;

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes;
    let [extent, length, seed] = [0; 3].map(|_| input::short(&mut bytes));
    let mut code = input::ints(bytes);
    let mut descriptor = abi::lapi_dgsp_descr_t {
        code: code.as_mut_ptr(),
        code_size: code.len() as i32,
        depth: i32::MAX,
        density: abi::LAPI_DGSM_SPARSE,
        size: 0,
        extent,
        lext: i64::MIN,
        rext: i64::MAX,
        atom_size: 0,
    };
    // SAFETY: the descriptor points at the code.
    let Ok(draft) = (unsafe { dgsp::Program::compile(&descriptor, false) }) else { return };
    let length = length as u16 as u64 % BYTES + 1;
    if draft.size() == 0 || draft.size() > BYTES || draft.bounds().0 < -REACH || draft.bounds().1 > REACH {
        return;
    }
    descriptor.size = draft.size() as i64;
    // SAFETY: as above.
    let Ok(program) = (unsafe { dgsp::Program::compile(&descriptor, true) }) else { return };
    let Some(moves) = interpreter::moves(&code, extent, length, 1 << 16) else { return };
    // Small extents only: the memory of all applications must exist.
    if moves.iter().all(|m| m.offset.abs() < 8 * REACH) {
        properties::moves_like(&program, &moves, length, &mut base::rng::Rng::new(seed as u64), "");
    }
});
