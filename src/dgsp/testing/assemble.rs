//! Programs put together: a builder of code, and random programs that mean something.

use crate::abi::{
    LAPI_DGSM_CONTROL, LAPI_DGSM_CONTROL_SIZE, LAPI_DGSM_COPY, LAPI_DGSM_COPY_SIZE, LAPI_DGSM_GOSUB,
    LAPI_DGSM_GOSUB_SIZE, LAPI_DGSM_ITERATE, LAPI_DGSM_ITERATE_SIZE, LAPI_DGSM_MCOPY,
    LAPI_DGSM_MCOPY_BLOCK_SIZE, LAPI_DGSM_MCOPY_SIZE, LAPI_DGSM_SPARSE, lapi_dgsp_density_t,
    lapi_dgsp_descr_t,
};
use crate::base::rng::Rng;

/// A descriptor and the code it points at.
#[derive(Clone, Debug)]
pub struct Source {
    pub code: Vec<i32>,
    pub depth: i32,
    pub density: lapi_dgsp_density_t,
    pub size: i64,
    pub extent: i64,
    pub lext: i64,
    pub rext: i64,
    pub atom_size: i32,
}

impl Source {
    pub fn descriptor(&mut self) -> lapi_dgsp_descr_t {
        lapi_dgsp_descr_t {
            code: self.code.as_mut_ptr(),
            code_size: self.code.len() as i32,
            depth: self.depth,
            density: self.density,
            size: self.size,
            extent: self.extent,
            lext: self.lext,
            rext: self.rext,
            atom_size: self.atom_size,
        }
    }
}

/// The content of a routine. Routines are numbers; 0 is the main program.
#[derive(Clone, Debug)]
pub enum Op {
    Copy { bytes: i64, offset: i64 },
    Mcopy(Vec<(i64, i64)>),
    Gosub { routine: usize, reps: i64, offset: i64, stride: i64 },
    Control { operation: i32, operand: i32 },
}

/// Code of routines; between a GOSUB and where it returns to come `gap` ints of nonsense.
pub fn code(routines: &[Vec<Op>], gap: usize) -> Vec<i32> {
    let mut code = Vec::new();
    let mut starts = Vec::new();
    let mut calls = Vec::new();
    for ops in routines {
        let start = code.len();
        starts.push(start);
        for op in ops {
            match *op {
                Op::Copy { bytes, offset } => {
                    append(&mut code, LAPI_DGSM_COPY_SIZE, &[LAPI_DGSM_COPY as i32], &[bytes, offset]);
                }
                Op::Mcopy(ref blocks) => {
                    code.extend([LAPI_DGSM_MCOPY as i32, blocks.len() as i32]);
                    let head = LAPI_DGSM_MCOPY_SIZE - LAPI_DGSM_MCOPY_BLOCK_SIZE;
                    assert_eq!(head, 2);
                    for &(offset, len) in blocks {
                        append(&mut code, LAPI_DGSM_MCOPY_BLOCK_SIZE, &[], &[offset, len]);
                    }
                }
                Op::Gosub { routine, reps, offset, stride } => {
                    calls.push((code.len(), routine));
                    let ret_loc = LAPI_DGSM_GOSUB_SIZE + gap as i32;
                    let ints = [LAPI_DGSM_GOSUB as i32, 0, ret_loc];
                    append(&mut code, LAPI_DGSM_GOSUB_SIZE, &ints, &[reps, offset, stride]);
                    code.extend(std::iter::repeat_n(-77, gap));
                }
                Op::Control { operation, operand } => {
                    let ints = [LAPI_DGSM_CONTROL as i32, operation, operand];
                    append(&mut code, LAPI_DGSM_CONTROL_SIZE, &ints, &[]);
                }
            }
        }
        let iter_loc = start as i32 - code.len() as i32;
        append(&mut code, LAPI_DGSM_ITERATE_SIZE, &[LAPI_DGSM_ITERATE as i32, iter_loc], &[]);
    }
    for (at, routine) in calls {
        code[at + 1] = starts[routine] as i32 - at as i32;
    }
    code
}

/// Puts an instruction of `size` ints behind the code, wherever that ends: often not where its
/// longs would be aligned. The ints stand at its beginning, the longs at its end; what is between
/// them is 0, so that equal programs have equal code.
fn append(code: &mut Vec<i32>, size: i32, ints: &[i32], longs: &[i64]) {
    let (at, size) = (code.len(), size as usize);
    code.extend(ints);
    code.resize(at + size - 2 * longs.len(), 0);
    code.extend(longs.iter().flat_map(|long| [*long as i32, (long >> 32) as i32]));
    assert_eq!(code.len(), at + size);
}

/// A program of one routine.
#[cfg(test)]
pub fn simple(ops: &[Op], size: i64, extent: i64, bounds: (i64, i64)) -> Source {
    Source {
        code: code(&[ops.to_vec()], 0),
        depth: 1,
        density: LAPI_DGSM_SPARSE,
        size,
        extent,
        lext: bounds.0,
        rext: bounds.1,
        atom_size: 0,
    }
}

/// What random programs may look like.
#[derive(Clone, Copy)]
pub struct Taste {
    /// How deep they may nest.
    pub depth: usize,
    /// How many bytes one application may move, and how far it may reach.
    pub size: u64,
    pub reach: i64,
    /// Whether they have CONTROLs.
    pub controls: bool,
}

/// A random program with a truthful descriptor.
pub fn random(rng: &mut Rng, taste: Taste) -> Source {
    let depth = 1 + rng.below(taste.depth as u64) as usize;
    loop {
        let routines: Vec<Vec<Op>> = (0..depth).map(|level| routine(rng, level, depth, taste)).collect();
        let mut facts = vec![Facts::default(); depth];
        for level in (0..depth).rev() {
            facts[level] = Facts::of(&routines[level], &facts);
        }
        let Facts { size, low, high, depth: nested, fits } = facts[0];
        assert_eq!(nested, depth);
        if !fits || size == 0 || size as u64 > taste.size || low < -taste.reach || high > taste.reach {
            continue;
        }
        // Often the natural extent, else one with gaps, overlaps or a way back.
        let extent = match rng.below(4) {
            0 => size,
            1 => high - low,
            2 => high - low + rng.below(9) as i64,
            _ => rng.below(200) as i64 - 100,
        };
        let gap = if rng.below(3) == 0 { rng.below(3) as usize } else { 0 };
        return Source {
            code: code(&routines, gap),
            depth: depth as i32,
            density: LAPI_DGSM_SPARSE,
            size,
            extent,
            lext: low,
            rext: high,
            atom_size: 0,
        };
    }
}

fn routine(rng: &mut Rng, level: usize, depth: usize, taste: Taste) -> Vec<Op> {
    let mut ops = Vec::new();
    let mut cursor = rng.below(40) as i64 - 20;
    // Deep programs would be too large if they were broad, too.
    let deep = depth > 4;
    for i in 0..=rng.below(if deep { 2 } else { 3 }) {
        if taste.controls && rng.below(2) == 0 {
            ops.push(Op::Control { operation: rng.below(4) as i32 - 1, operand: rng.below(9) as i32 });
        }
        // Every level calls the next one, so that programs get as deep as they may.
        let down = i == 0 && level + 1 < depth;
        let kind = if down { 2 } else { rng.below(if level + 1 < depth { 4 } else { 2 }) };
        match kind {
            0 => {
                let bytes = length(rng);
                ops.push(Op::Copy { bytes, offset: cursor });
                cursor += bytes + gap(rng);
            }
            1 => {
                let same = (rng.below(2) == 0).then(|| length(rng));
                let even = (rng.below(2) == 0).then(|| gap(rng));
                let blocks = (0..rng.below(7)).map(|_| {
                    let (at, bytes) = (cursor, same.unwrap_or_else(|| length(rng)));
                    cursor += bytes + even.unwrap_or_else(|| gap(rng));
                    (at, bytes)
                });
                ops.push(Op::Mcopy(blocks.collect()));
            }
            _ => {
                let reps = match (down, deep) {
                    (true, true) => [1, 1, 2, 2, 3][rng.below(5) as usize],
                    (true, false) => [1, 2, 2, 3, 5, 9][rng.below(6) as usize],
                    (false, _) => [0, 1, 1, 2, 2, 3, 5, 9][rng.below(8) as usize],
                };
                let stride = match rng.below(4) {
                    0 => -(rng.below(64) as i64),
                    1 => [1, 2, 4, 8, 16][rng.below(5) as usize],
                    _ => rng.below(128) as i64,
                };
                let further = if down { 0 } else { rng.below((depth - level - 1) as u64) as usize };
                let routine = level + 1 + further;
                ops.push(Op::Gosub { routine, reps, offset: cursor, stride });
                cursor += rng.below(200) as i64;
            }
        }
    }
    ops
}

fn length(rng: &mut Rng) -> i64 {
    match rng.below(3) {
        0 => [0, 1, 2, 4, 8, 16][rng.below(6) as usize],
        1 => rng.below(24) as i64,
        _ => rng.below(90) as i64,
    }
}

fn gap(rng: &mut Rng) -> i64 {
    if rng.below(2) == 0 { 0 } else { rng.below(40) as i64 - 8 }
}

/// What one application of a routine does.
#[derive(Clone, Copy)]
struct Facts {
    size: i64,
    low: i64,
    high: i64,
    depth: usize,
    fits: bool,
}

impl Default for Facts {
    fn default() -> Self {
        Self { size: 0, low: i64::MAX, high: i64::MIN, depth: 1, fits: true }
    }
}

impl Facts {
    fn of(ops: &[Op], all: &[Facts]) -> Self {
        let mut facts = Self::default();
        for op in ops {
            match *op {
                Op::Copy { bytes, offset } => facts.copy(offset, bytes),
                Op::Mcopy(ref blocks) => blocks.iter().for_each(|block| facts.copy(block.0, block.1)),
                Op::Gosub { routine, reps, offset, stride } => {
                    let below = all[routine];
                    if reps != 0 {
                        facts.depth = facts.depth.max(below.depth + 1);
                    }
                    facts.fits &= below.fits;
                    if reps != 0 && below.size != 0 {
                        let last = (reps - 1) * stride;
                        facts.low = facts.low.min(below.low + offset + last.min(0));
                        facts.high = facts.high.max(below.high + offset + last.max(0));
                        facts.size += reps * below.size;
                        facts.fits &= facts.size < 1 << 30;
                    }
                }
                Op::Control { .. } => {}
            }
        }
        facts
    }

    fn copy(&mut self, offset: i64, bytes: i64) {
        if bytes != 0 {
            self.size += bytes;
            self.low = self.low.min(offset);
            self.high = self.high.max(offset + bytes);
        }
    }
}
