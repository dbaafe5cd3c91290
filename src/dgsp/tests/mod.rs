//! The machine against a plain interpreter, and everything else of this floor.

mod errors;
mod layouts;
mod malformed;
mod packing;
mod programs;
mod registered;
mod selected;
mod vectors;

use super::Program;
use super::testing::{assemble, interpreter, properties};
use crate::base::rng::Rng;
use assemble::Source;
use properties::{packets, random_bytes};
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
