//! Any descriptor, any code: compiling ends, and a verified program agrees with its descriptor.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openlapi::{abi, base, dgsp};

mod input;
#[path = "../../src/dgsp/tests/interpreter.rs"]
mod interpreter;
#[path = "../../src/dgsp/tests/properties.rs"]
#[allow(dead_code)]
mod properties;

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes;
    let [size, extent, lext, rext, mixed] = [0; 5].map(|_| input::short(&mut bytes));
    let mut code = input::ints(bytes);
    let descriptor = abi::lapi_dgsp_descr_t {
        code: code.as_mut_ptr(),
        code_size: code.len() as i32,
        depth: (mixed & 15) as i32,
        density: (mixed >> 4 & 3) as u32,
        size,
        extent,
        lext,
        rext,
        atom_size: (mixed >> 6) as i32,
    };
    for verify in [true, false] {
        // SAFETY: the descriptor points at the code.
        if let Ok(program) = unsafe { dgsp::Program::compile(&descriptor, verify) } {
            properties::keeps_its_word(&program, &descriptor, &code, verify, "");
        }
    }
});
