//! From code to tree. For any content of the code this ends, and reads nothing but the code.
//!
//! A routine is compiled once, however often it is called. The machine has no conditions, so a
//! routine that comes to the same GOSUB twice, or that calls itself, would never end.

use super::decode::{Code, Instruction};
use super::sequence::Sequence;
use super::shape::{Control, Part, repeat};
use crate::abi::{
    LAPI_DGSM_NO_CTL, LAPI_ERR_DGSP_BRANCH, LAPI_ERR_DGSP_CTL, LAPI_ERR_DGSP_OTHER, LAPI_ERR_DGSP_STACK,
};
use crate::error::{Error, Result};
use std::collections::{HashMap, HashSet};

/// Deeper nesting is refused with LAPI_ERR_DGSP_STACK.
pub const MAX_DEPTH: usize = 128;

/// How much of the code may be read again because routines share it, as a multiple of the code.
/// Beyond that the program is refused with LAPI_ERR_DGSP_OTHER.
const MAX_SHARING: usize = 16;

/// What a program does.
#[derive(Debug)]
pub(super) struct Compiled {
    /// One application of it.
    pub(super) once: Part,
    /// How deep its routines nest, the main program included.
    pub(super) depth: usize,
    /// Whether it has a CONTROL that can be reached. Then every copy has stayed visible.
    pub(super) controls: bool,
    /// Whether one of these makes the function take what is copied.
    pub(super) distributes: bool,
}

/// Compiles code. `strict` refuses also what would do no harm: see [`super::Program::compile`].
pub(super) fn compile(code: Code<'_>, strict: bool) -> Result<Compiled> {
    let mut compiler = Compiler::new(code, strict, false);
    let (mut once, mut depth) = compiler.routine(0)?;
    let (controls, distributes) = (compiler.controls, compiler.distributes);
    if controls {
        compiler = Compiler::new(code, strict, true);
        (once, depth) = compiler.routine(0)?;
    }
    Ok(Compiled { once, depth, controls, distributes })
}

struct Compiler<'a> {
    code: Code<'a>,
    strict: bool,
    exact: bool,
    controls: bool,
    distributes: bool,
    /// The routines that are being compiled, outermost first.
    active: Vec<usize>,
    /// The compiled ones by their place, each with its depth.
    done: HashMap<usize, (Part, usize)>,
    /// How many ints may still be read.
    budget: usize,
}

impl<'a> Compiler<'a> {
    fn new(code: Code<'a>, strict: bool, exact: bool) -> Self {
        let budget = code.0.len().saturating_mul(MAX_SHARING);
        Self {
            code,
            strict,
            exact,
            controls: false,
            distributes: false,
            active: Vec::new(),
            done: HashMap::new(),
            budget,
        }
    }

    /// The routine at `start`, and how deep it nests.
    fn routine(&mut self, start: usize) -> Result<(Part, usize)> {
        if let Some(done) = self.done.get(&start) {
            return Ok(done.clone());
        }
        if self.active.contains(&start) {
            return Err(Error::new(
                LAPI_ERR_DGSP_STACK,
                format!("the routine at code[{start}] calls itself"),
            ));
        }
        if self.active.len() == MAX_DEPTH {
            return Err(Error::new(LAPI_ERR_DGSP_STACK, format!("more than {MAX_DEPTH} routines deep")));
        }
        self.active.push(start);
        let done = self.body(start)?;
        self.active.pop();
        self.done.insert(start, done.clone());
        Ok(done)
    }

    fn body(&mut self, start: usize) -> Result<(Part, usize)> {
        let mut sequence = Sequence::new(self.exact);
        let mut calls = HashSet::new();
        let mut depth = 1;
        let mut at = start;
        loop {
            match self.code.instruction(at)? {
                Instruction::Copy { len, offset, next } => {
                    self.spend(at, next)?;
                    sequence.copy(offset, len);
                    at = next;
                }
                Instruction::Mcopy { count, first, next } => {
                    self.spend(at, next)?;
                    for i in 0..count {
                        let (len, offset) = self.code.block(first, i)?;
                        sequence.copy(offset, len);
                    }
                    at = next;
                }
                Instruction::Gosub { to, reps, offset, stride, next } => {
                    self.spend(at, at + 1)?;
                    if !calls.insert(at) {
                        let what =
                            format!("the routine at code[{start}] comes to code[{at}] again and never ends");
                        return Err(Error::new(LAPI_ERR_DGSP_BRANCH, what));
                    }
                    if reps != 0 {
                        let (part, below) = self.routine(to)?;
                        depth = depth.max(below + 1);
                        let moved = repeat(reps, stride, &part, self.exact)
                            .and_then(|all| all.shifted(offset))
                            .and_then(|all| sequence.part(all));
                        moved.map_err(|_| too_far(at))?;
                    }
                    at = next;
                }
                Instruction::Control { operation, operand, next } => {
                    self.spend(at, next)?;
                    if self.strict && operation < LAPI_DGSM_NO_CTL {
                        let what = format!("operation {operation} at code[{at}]");
                        return Err(Error::new(LAPI_ERR_DGSP_CTL, what));
                    }
                    self.controls = true;
                    self.distributes |= operation > LAPI_DGSM_NO_CTL;
                    sequence.control(Control { operation, operand }).map_err(|_| too_far(at))?;
                    at = next;
                }
                Instruction::Iterate { start: said } => {
                    if self.strict && said != Some(start) {
                        let what = format!("the ITERATE at code[{at}] does not lead back to code[{start}]");
                        return Err(Error::new(LAPI_ERR_DGSP_BRANCH, what));
                    }
                    return Ok((sequence.finish().map_err(|_| too_far(at))?, depth));
                }
            }
        }
    }

    fn spend(&mut self, at: usize, next: usize) -> Result<()> {
        match self.budget.checked_sub(next - at) {
            Some(left) => self.budget = left,
            None => {
                let what = format!("its routines share code more than {MAX_SHARING} times over");
                return Err(Error::new(LAPI_ERR_DGSP_OTHER, what));
            }
        }
        Ok(())
    }
}

fn too_far(at: usize) -> Error {
    Error::new(LAPI_ERR_DGSP_OTHER, format!("what ends at code[{at}] reaches beyond what a long can hold"))
}
