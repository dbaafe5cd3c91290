//! Every error that a program can be refused with.

use super::assemble::{Op, Source, code, simple};
use super::{Program, compiled, refused};
use crate::abi::*;
use crate::dgsp::MAX_DEPTH;

const COPY: Op = Op::Copy { bytes: 4, offset: 8 };

/// A main program that calls a routine, which copies 4 bytes at 8.
fn nested() -> Source {
    let routines = [vec![Op::Gosub { routine: 1, reps: 3, offset: 0, stride: 16 }], vec![COPY]];
    Source { code: code(&routines, 0), depth: 2, ..simple(&[], 12, 48, (8, 44)) }
}

fn flat() -> Source {
    simple(&[COPY], 4, 16, (8, 12))
}

/// Changes an int and compiles.
fn changed(mut source: Source, at: usize, int: i32, verify: bool) -> i32 {
    source.code[at] = int;
    refused(&mut source, verify)
}

const GOSUB: usize = LAPI_DGSM_GOSUB_SIZE as usize;

#[test]
fn without_code() {
    for verify in [false, true] {
        let mut source = flat();
        let mut descriptor = source.descriptor();
        descriptor.code_size = 0;
        // SAFETY: no code is read.
        assert_eq!(unsafe { Program::compile(&descriptor, verify) }.unwrap_err().code, LAPI_ERR_DGSP_OTHER);
        descriptor.code_size = -5;
        // SAFETY: no code is read.
        assert_eq!(unsafe { Program::compile(&descriptor, verify) }.unwrap_err().code, LAPI_ERR_DGSP_OTHER);
        descriptor.code_size = 8;
        descriptor.code = std::ptr::null_mut();
        // SAFETY: no code is read.
        assert_eq!(unsafe { Program::compile(&descriptor, verify) }.unwrap_err().code, LAPI_ERR_DGSP_OTHER);
    }
}

#[test]
fn opcodes() {
    for verify in [false, true] {
        for opcode in [5, -1, i32::MAX, i32::MIN] {
            assert_eq!(changed(flat(), 0, opcode, verify), LAPI_ERR_DGSP_OPC);
        }
    }
}

#[test]
fn branches() {
    for verify in [false, true] {
        for to in [-1, 1_000, i32::MAX, i32::MIN] {
            assert_eq!(changed(nested(), 1, to, verify), LAPI_ERR_DGSP_BRANCH, "to_loc {to}");
            assert_eq!(changed(nested(), 2, to, verify), LAPI_ERR_DGSP_BRANCH, "ret_loc {to}");
        }
        // Back to itself: the routine never ends.
        assert_eq!(changed(nested(), 2, 0, verify), LAPI_ERR_DGSP_BRANCH);
        // No ITERATE at the end, and an ITERATE, or anything else, of which only the
        // start is there.
        for cut in 1..flat().code.len() {
            let mut source = flat();
            source.code.truncate(cut);
            assert_eq!(refused(&mut source, verify), LAPI_ERR_DGSP_BRANCH, "{cut} ints");
        }
        let mut source = simple(&[Op::Mcopy(vec![(0, 4), (8, 4)])], 8, 16, (0, 12));
        source.code[1] = 3;
        assert_eq!(refused(&mut source, verify), LAPI_ERR_DGSP_BRANCH);
        source.code[1] = i32::MAX;
        assert_eq!(refused(&mut source, verify), LAPI_ERR_DGSP_BRANCH);
    }
}

#[test]
fn iterate_names_the_start() {
    let last = flat().code.len() - 1;
    for back in [0, 1, -1, 100, -100, i32::MIN] {
        assert_eq!(changed(flat(), last, back, true), LAPI_ERR_DGSP_BRANCH);
        // Without verification the end is where it continues from the start, whatever the
        // program declares.
        let mut source = flat();
        source.code[last] = back;
        // SAFETY: the descriptor points at the code of the source.
        let program = unsafe { Program::compile(&source.descriptor(), false) }.unwrap();
        let mut runs = Vec::new();
        program.runs(0, 8, |at, len| runs.push((at, len)));
        assert_eq!(runs, [(8, 4), (24, 4)]);
    }
}

#[test]
fn lengths_and_reps() {
    for verify in [false, true] {
        let negative = Op::Copy { bytes: -1, offset: 0 };
        assert_eq!(refused(&mut simple(&[negative], 0, 4, (0, 0)), verify), LAPI_ERR_DGSP_COPY_SZ);
        let blocks = Op::Mcopy(vec![(0, 4), (8, -4)]);
        assert_eq!(refused(&mut simple(&[blocks], 0, 4, (0, 4)), verify), LAPI_ERR_DGSP_COPY_SZ);
        let mut source = simple(&[Op::Mcopy(vec![(0, 4)])], 4, 4, (0, 4));
        source.code[1] = -1;
        assert_eq!(refused(&mut source, verify), LAPI_ERR_DGSP_COPY_SZ);
        let mut source = nested();
        // The high half of reps.
        source.code[GOSUB - 5] = -1;
        assert_eq!(refused(&mut source, verify), LAPI_ERR_DGSP_REPS);
    }
}

#[test]
fn depth() {
    for verify in [false, true] {
        // A routine that calls itself, and two that call each other.
        assert_eq!(changed(nested(), 1, 0, verify), LAPI_ERR_DGSP_STACK);
        let call = |routine| vec![Op::Gosub { routine, reps: 1, offset: 0, stride: 0 }];
        let mut source = Source { code: code(&[call(1), call(2), call(1)], 0), depth: 1_000, ..flat() };
        assert_eq!(refused(&mut source, verify), LAPI_ERR_DGSP_STACK);
        // As deep as it goes, and one more.
        let mut routines: Vec<_> = (1..MAX_DEPTH).map(call).collect();
        routines.push(vec![COPY]);
        let mut source = Source { code: code(&routines, 0), depth: MAX_DEPTH as i32, ..flat() };
        compiled(&mut source);
        source.depth -= 1;
        assert_eq!(refused(&mut source, true), LAPI_ERR_DGSP_STACK);
        routines.insert(MAX_DEPTH - 1, call(MAX_DEPTH));
        let mut source = Source { code: code(&routines, 0), depth: 1_000, ..flat() };
        assert_eq!(refused(&mut source, verify), LAPI_ERR_DGSP_STACK);
    }
    for depth in [1, 0, -1] {
        assert_eq!(refused(&mut Source { depth, ..nested() }, true), LAPI_ERR_DGSP_STACK);
    }
    compiled(&mut nested());
    // A routine that is called 0 times needs no place on the stack.
    let routines = [vec![COPY, Op::Gosub { routine: 1, reps: 0, offset: 0, stride: 16 }], vec![COPY]];
    compiled(&mut Source { code: code(&routines, 0), depth: 1, ..flat() });
}

#[test]
fn atoms() {
    for verify in [false, true] {
        assert_eq!(refused(&mut Source { atom_size: -1, ..flat() }, verify), LAPI_ERR_DGSP_ATOM);
    }
    let program = compiled(&mut Source { atom_size: 16, ..flat() });
    assert_eq!(program.check_atom(15).unwrap_err().code, LAPI_ERR_DGSP_ATOM);
    assert!(program.check_atom(16).is_ok());
}

#[test]
fn controls() {
    let controlled = |operation| {
        let ops = [Op::Control { operation, operand: 0 }, COPY];
        simple(&ops, 4, 4, (8, 12))
    };
    for density in [LAPI_DGSM_CONTIG, LAPI_DGSM_UNIT] {
        assert_eq!(refused(&mut Source { density, ..controlled(1) }, true), LAPI_ERR_DGSP_CTL);
    }
    for operation in [-2, i32::MIN] {
        assert_eq!(refused(&mut controlled(operation), true), LAPI_ERR_DGSP_CTL);
    }
    for operation in [LAPI_DGSM_NO_CTL, 0, i32::MAX] {
        assert!(compiled(&mut controlled(operation)).has_control());
    }
    // What cannot be reached does not count.
    let mut source = flat();
    source.code.extend([LAPI_DGSM_CONTROL as i32, 1, 1]);
    assert!(!compiled(&mut source).has_control());
}

#[test]
fn descriptors_that_lie() {
    let other = |source: Source| assert_eq!(refused(&mut { source }, true), LAPI_ERR_DGSP_OTHER);
    for size in [3, 5, 0, -4, i64::MIN] {
        other(Source { size, ..flat() });
    }
    other(Source { lext: 9, ..flat() });
    other(Source { rext: 11, ..flat() });
    other(Source { lext: 12, rext: 8, ..flat() });
    other(Source { density: 3, ..flat() });
    // More room than needed is valid.
    compiled(&mut Source { lext: i64::MIN, rext: i64::MAX, ..flat() });
    // CONTIG: one run. UNIT: one run, again and again.
    compiled(&mut Source { density: LAPI_DGSM_CONTIG, ..flat() });
    other(Source { density: LAPI_DGSM_CONTIG, ..nested() });
    other(Source { density: LAPI_DGSM_UNIT, ..flat() });
    compiled(&mut Source { density: LAPI_DGSM_UNIT, extent: 4, ..flat() });
    let halves = || simple(&[Op::Mcopy(vec![(4, 4), (0, 4)])], 8, 8, (0, 8));
    other(Source { density: LAPI_DGSM_UNIT, ..halves() });
    compiled(&mut halves());
}

/// What reaches further than a long can count.
#[test]
fn overflows() {
    let far = |ops: &[Op]| Source { lext: i64::MIN, rext: i64::MAX, ..simple(ops, 0, 0, (0, 0)) };
    for verify in [false, true] {
        let other = |source: Source| assert_eq!(refused(&mut { source }, verify), LAPI_ERR_DGSP_OTHER);
        other(far(&[Op::Copy { bytes: 2, offset: i64::MAX - 1 }]));
        other(far(&[Op::Copy { bytes: i64::MAX, offset: 0 }, COPY]));
        other(far(&[Op::Mcopy(vec![(i64::MIN, i64::MAX), (-1, i64::MAX), (i64::MAX - 1, 1), (0, 8)])]));
        for (reps, offset, stride) in [
            (i64::MAX, 0, 0),
            (1 << 62, 0, 1),
            (3, 0, i64::MAX),
            (3, 0, i64::MIN),
            (2, i64::MAX - 19, 8),
            (2, i64::MAX, 0),
        ] {
            let routines = [vec![Op::Gosub { routine: 1, reps, offset, stride }], vec![COPY]];
            other(Source { code: code(&routines, 0), depth: 2, ..far(&[]) });
        }
    }
    // As far as it goes.
    let mut source = far(&[Op::Copy { bytes: i64::MAX, offset: 0 }]);
    source.size = i64::MAX;
    assert_eq!(compiled(&mut source).size(), i64::MAX as u64);
}

/// Routines that start inside one another are compiled for each start; there is a limit to that.
#[test]
fn shared_code_has_a_limit() {
    let calls = 4_000;
    let mut ops: Vec<Op> =
        (0..calls).map(|_| Op::Gosub { routine: 1, reps: 1, offset: 0, stride: 0 }).collect();
    ops.push(COPY);
    let tail: Vec<Op> = (0..calls).map(|i| Op::Copy { bytes: 1, offset: 2 * i }).collect();
    let mut source = Source { code: code(&[ops, tail], 0), depth: 2, ..flat() };
    let tail_start = calls as usize * GOSUB + LAPI_DGSM_COPY_SIZE as usize + LAPI_DGSM_ITERATE_SIZE as usize;
    for i in 0..calls as usize {
        let to = tail_start + i * LAPI_DGSM_COPY_SIZE as usize;
        source.code[i * GOSUB + 1] = (to - i * GOSUB) as i32;
    }
    assert_eq!(refused(&mut source, false), LAPI_ERR_DGSP_OTHER);
}

/// Lists that are called from lists that are called: the text grows by 8 per level, the runs by
/// a factor of 20.
#[test]
fn calls_of_calls_do_not_multiply() {
    let mut routines: Vec<Vec<Op>> = (1..9)
        .map(|routine| (0..20).map(|i| Op::Gosub { routine, reps: 1, offset: i * i, stride: 0 }).collect())
        .collect();
    routines.push((0..20).map(|i| Op::Copy { bytes: 1, offset: i * i * i }).collect());
    let size = 20i64.pow(9);
    let mut source = Source { code: code(&routines, 0), depth: 9, ..simple(&[], size, size, (0, 1 << 20)) };
    let program = compiled(&mut source);
    let mut bytes = 0;
    program.runs(size as u64 / 3 * 2 + 7, 1_000, |_, len| bytes += len);
    assert_eq!(bytes, 1_000);
}
