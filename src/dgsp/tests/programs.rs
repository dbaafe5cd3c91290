//! Random programs and hand-made ones: gather, scatter, runs and functions, in
//! packets of any order.

use super::assemble::{Op, Source, Taste, random, simple};
use super::interpreter::moves;
use super::properties::{Arena, moves_like};
use super::{Program, Rng, compiled, packets, random_bytes};
use libc::{c_int, c_long, c_void};
use std::cell::RefCell;

const PLAIN: Taste = Taste { depth: 8, size: 6_000, reach: 40_000, controls: false };
const STEPS: usize = 1 << 22;

fn check(seed: u64, source: &mut Source, bytes: u64) {
    let what = format!("seed {seed}, {bytes} bytes of {source:?}");
    let program = compiled(source);
    let moves = moves(&source.code, source.extent, bytes, STEPS).unwrap();
    moves_like(&program, &moves, bytes, &mut Rng::stream(seed, 1), &what);
}

#[test]
fn random_programs_move_what_the_interpreter_moves() {
    let mut depths = [0; 9];
    for seed in 0..4_000 {
        let mut rng = Rng::new(seed);
        let mut source = random(&mut rng, PLAIN);
        depths[source.depth as usize] += 1;
        let size = source.size as u64;
        // Shorter than the program, the program, several times over, and somewhere in between.
        let bytes = match rng.below(4) {
            0 => 1 + rng.below(size),
            1 => size,
            2 => size * (1 + rng.below(4)),
            _ => 1 + rng.below(5 * size),
        };
        check(seed, &mut source, bytes);
    }
    assert!(depths[1..].iter().all(|&n| n > 20), "{depths:?}");
}

/// The shapes that have loops of their own, at the lengths around every change of method.
#[test]
fn every_block_length_at_every_shape() {
    let mut seed = 1 << 32;
    for block in (1..=130).chain([255, 256, 257, 1000]) {
        for reps in [1, 2, 3, 4, 5, 17] {
            seed += 1;
            let mut strided =
                simple(&[Op::Copy { bytes: block, offset: 3 }], block, block + 5, (3, block + 3));
            check(seed, &mut strided, (block * reps) as u64);
            check(seed, &mut strided, (block * reps - block / 2) as u64);
        }
        seed += 1;
        let places: Vec<i64> = [7, 3, 0, 9, 4, 5, 1, 2, 11].map(|i: i64| i * (block + i)).into();
        let bounds = (0, places.iter().max().unwrap() + block);
        let blocks = places.iter().map(|&place| (place, block)).collect();
        check(seed, &mut simple(&[Op::Mcopy(blocks)], 9 * block, bounds.1, bounds), 30 * block as u64 + 1);

        // A record of a few fields, often enough for slices.
        let fields = vec![(0, 1), (4, block), (block + 8, 8)];
        let mut record = simple(&[Op::Mcopy(fields)], block + 9, block + 16, (0, block + 16));
        check(seed, &mut record, (block as u64 + 9) * 600 + 3);
    }
}

fn subblock(dims: &[(i64, i64)], bytes: i64) -> Source {
    let size = dims.iter().map(|dim| dim.0).product::<i64>() * bytes;
    let reach = dims.iter().map(|dim| (dim.0 - 1) * dim.1).sum::<i64>() + bytes;
    let mut routines: Vec<Vec<Op>> = dims
        .iter()
        .enumerate()
        .map(|(i, dim)| vec![Op::Gosub { routine: i + 1, reps: dim.0, offset: 0, stride: dim.1 }])
        .collect();
    routines.push(vec![Op::Copy { bytes, offset: 0 }]);
    Source {
        code: super::assemble::code(&routines, 0),
        depth: routines.len() as i32,
        extent: reach,
        ..simple(&[], size, 0, (0, reach))
    }
}

#[test]
fn subblocks_of_two_to_four_dimensions() {
    for (seed, bytes) in [1, 2, 3, 4, 8, 12, 16, 24, 100, 300].into_iter().enumerate() {
        let seed = seed as u64 + (1 << 40);
        for (dims, rounds) in [
            (&[(7, 900), (5, 400)][..], 3),
            (&[(3, 9_000), (4, 1_100), (2, 400)], 2),
            (&[(2, 20_000), (3, 5_000), (3, 1_000), (2, 400)], 2),
            // Rows that touch: fewer dimensions than there seem to be.
            (&[(4, 5 * bytes), (5, bytes)], 4),
            (&[(4, 5_000), (6, bytes)], 2),
        ] {
            let mut source = subblock(dims, bytes);
            let size = source.size as u64;
            check(seed, &mut source, size * rounds - 1);
        }
    }
}

/// What looks different and is the same becomes the same: few runs, as long as they get.
#[test]
fn programs_are_normalised() {
    let runs_of = |source: &mut Source, bytes| {
        let mut runs = Vec::new();
        compiled(source).runs(0, bytes, |at, len| runs.push((at, len)));
        runs
    };
    // 4 × 5 blocks of 8 bytes that all touch.
    let mut source = subblock(&[(4, 40), (5, 8)], 8);
    assert_eq!(compiled(&mut source).contiguous(1 << 40), Some(0));
    assert_eq!(runs_of(&mut source, 1 << 40), [(0, 1 << 40)]);
    assert_eq!(compiled(&mut source).pieces(1 << 40), 1);
    // Copies that touch.
    let ops = [Op::Copy { bytes: 5, offset: 2 }, Op::Mcopy(vec![(7, 3), (10, 6)])];
    let mut source = simple(&ops, 14, 20, (2, 16));
    assert_eq!(compiled(&mut source).contiguous(14), Some(2));
    assert_eq!(compiled(&mut source).contiguous(15), None);
    assert_eq!(runs_of(&mut source, 28), [(2, 14), (22, 14)]);
    assert_eq!(compiled(&mut source).pieces(29), 3);
    // Large counts stay loops: this would be 10^15 runs.
    let mut source = subblock(&[(100_000, 1 << 40), (100_000, 1 << 20), (100_000, 16)], 8);
    let program = compiled(&mut source);
    assert_eq!(program.size(), 8_000_000_000_000_000);
    let mut last = Vec::new();
    program.runs(program.size() - 10, 10, |at, len| last.push((at as i64, len)));
    let end = 99_999 * ((1 << 40) + (1 << 20) + 16);
    assert_eq!(last, [(end - 16 + 6, 2), (end, 8)]);
}

/// Where to, which bytes, operand, operation.
type Call = (usize, Vec<u8>, c_int, c_int);

thread_local! {
    static CALLS: RefCell<Vec<Call>> = const { RefCell::new(Vec::new()) };
}

unsafe extern "C" fn record(
    data: *mut c_void,
    inout: *mut c_void,
    bytes: c_long,
    operand: c_int,
    operation: c_int,
) -> c_long {
    // SAFETY: the machine passes `bytes` bytes.
    let data = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), bytes as usize) };
    CALLS.with_borrow_mut(|calls| calls.push((inout.addr(), data.to_vec(), operand, operation)));
    bytes
}

#[test]
fn functions_get_each_copy_with_its_control() {
    let mut called = 0;
    for seed in 0..2_000 {
        let mut rng = Rng::new(seed);
        let mut source = random(&mut rng, Taste { controls: true, depth: 5, ..PLAIN });
        let program = compiled(&mut source);
        let bytes = 1 + rng.below(3 * source.size as u64);
        let what = format!("seed {seed}, {bytes} bytes of {source:?}");
        let moves = moves(&source.code, source.extent, bytes, STEPS).unwrap();
        let mut arena = Arena::new(&mut rng, &moves);
        let (data, base) = (random_bytes(&mut rng, bytes as usize), arena.base());
        for (at, len) in packets(&mut rng, bytes as usize, 1) {
            // SAFETY: the arena holds all moves, the data all bytes; the function only reads.
            unsafe { program.scatter_ddm(base, at as u64, data[at..].as_ptr(), len, record) };
            let calls = CALLS.take();
            called += calls.len();
            let mut calls = calls.into_iter();
            // Every copy of the interpreter, cut to the packet, is a call, or in memory.
            for m in &moves {
                let (start, end) = (m.start.max(at as u64), (m.start + m.len).min((at + len) as u64));
                let Some((operation, operand)) = m.control.filter(|_| start < end) else { continue };
                let place = base.addr().wrapping_add_signed((m.offset + (start - m.start) as i64) as isize);
                let part = data[start as usize..end as usize].to_vec();
                assert_eq!(calls.next(), Some((place, part, operand, operation)), "{what}");
            }
            assert_eq!(calls.next(), None, "{what}");
        }
        let mut expected = vec![Vec::new(); arena.bytes.len()];
        for m in moves.iter().filter(|m| m.control.is_none()) {
            for i in 0..m.len {
                expected[arena.index(m.offset + i as i64)].push(data[(m.start + i) as usize]);
            }
        }
        for (byte, allowed) in arena.bytes.iter().zip(&expected) {
            assert!(allowed.is_empty() || allowed.contains(byte), "{what}");
        }
    }
    assert!(called > 10_000, "{called}");
}

#[test]
fn atoms_stay_whole_when_packets_hold_whole_atoms() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let atom = [2, 4, 8, 16][rng.below(4) as usize];
        let blocks: Vec<(i64, i64)> = (0..6).map(|i| (i * 200, atom * (1 + rng.below(9) as i64))).collect();
        let size = blocks.iter().map(|block| block.1).sum();
        let ops = [Op::Control { operation: 3, operand: 5 }, Op::Mcopy(blocks)];
        let program = compiled(&mut simple(&ops, size, 1_200, (0, 1_200)));
        let mut memory = vec![0u8; 1_200 * 4];
        let data = random_bytes(&mut rng, 4 * size as usize);
        for (at, len) in packets(&mut rng, data.len(), atom as usize) {
            // SAFETY: the memory holds four applications, the data all bytes; the
            // function only reads.
            unsafe { program.scatter_ddm(memory.as_mut_ptr(), at as u64, data[at..].as_ptr(), len, record) };
        }
        assert!(CALLS.take().iter().all(|call| call.1.len() % atom as usize == 0));
    }
}

/// Sums up only the first 3 bytes, then returns the operand.
unsafe extern "C" fn hesitant(
    data: *mut c_void,
    inout: *mut c_void,
    bytes: c_long,
    operand: c_int,
    _operation: c_int,
) -> c_long {
    let take = bytes.min(3);
    for i in 0..take as usize {
        // SAFETY: the machine passes `bytes` bytes on both sides.
        unsafe { *inout.cast::<u8>().add(i) += *data.cast::<u8>().add(i) };
    }
    if operand == 0 { take } else { c_long::from(operand) }
}

#[test]
fn a_function_that_takes_less_is_called_again() {
    let scattered = |operand| {
        let ops = [Op::Control { operation: 1, operand }, Op::Copy { bytes: 8, offset: 0 }];
        let mut memory = [10u8; 8];
        // SAFETY: the memory and the data hold 8 bytes, and so does what the function gets.
        unsafe {
            compiled(&mut simple(&ops, 8, 8, (0, 8))).scatter_ddm(
                memory.as_mut_ptr(),
                0,
                [1u8, 2, 3, 4, 5, 6, 7, 8].as_ptr(),
                8,
                hesitant,
            );
        }
        memory
    };
    assert_eq!(scattered(0), [11, 12, 13, 14, 15, 16, 17, 18]);
    // Invalid return values end it, as does the whole length at once.
    for operand in [-1, 8, 9] {
        assert_eq!(scattered(operand), [11, 12, 13, 10, 10, 10, 10, 10]);
    }
}

#[test]
fn a_program_of_no_bytes_moves_nothing() {
    let program = compiled(&mut simple(&[Op::Copy { bytes: 0, offset: 9 }], 0, 4, (0, 0)));
    let (mut memory, mut packed) = ([1u8; 8], [2u8; 8]);
    // SAFETY: nothing is accessed beyond the arrays.
    unsafe {
        program.gather(memory.as_ptr(), 0, 8, packed.as_mut_ptr());
        program.scatter(memory.as_mut_ptr(), 3, packed.as_ptr(), 5);
    }
    program.runs(0, 100, |_, _| panic!("a run"));
    assert_eq!((memory, packed), ([1; 8], [2; 8]));
    assert_eq!(Program::size(&program), 0);
}
