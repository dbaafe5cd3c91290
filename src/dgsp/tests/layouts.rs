//! Layouts of every kind against a list of bytes.

use super::assemble::{Op, Taste, random, simple};
use super::interpreter::moves;
use super::{Rng, compiled, packets, random_bytes};
use crate::abi::*;
use crate::dgsp::Layout;
use crate::dgsp::vector::Vector;
use libc::{c_int, c_long, c_ulong, c_void};

/// Compares a layout in `memory` with the index of each of its bytes there. No byte may occur
/// twice. Returns the number of runs.
fn check(rng: &mut Rng, what: &str, layout: &Layout, memory: &mut [u8], places: &[usize]) -> u64 {
    let what = format!("{what}: {} bytes", places.len());
    let len = places.len();
    assert_eq!((layout.len(), layout.is_empty()), (len as u64, len == 0), "{what}");

    let mut packed = vec![0u8; len + 16];
    for (at, size) in packets(rng, len, 1) {
        // SAFETY: the layout lies in the memory, the buffer holds all bytes.
        unsafe { layout.gather(at as u64, size, packed[at..].as_mut_ptr()) };
    }
    assert!(places.iter().zip(&packed).all(|(&place, &byte)| memory[place] == byte), "{what}");

    // More data than there is room for: the rest is dropped.
    let data = random_bytes(rng, len + 100);
    let mut expected = memory.to_vec();
    for (&place, &byte) in places.iter().zip(&data) {
        expected[place] = byte;
    }
    for (at, size) in packets(rng, data.len(), 1) {
        // SAFETY: the layout lies in the memory, the data holds what is unpacked.
        unsafe { layout.scatter(at as u64, data[at..].as_ptr(), size) };
    }
    assert_eq!(memory, expected, "{what}");
    // SAFETY: the buffer holds all bytes and more; those that are not there are left alone.
    unsafe { layout.gather(0, len + 16, packed.as_mut_ptr()) };
    assert!(packed[..len] == data[..len] && packed[len..] == [0; 16], "{what}");

    let base = memory.as_ptr().addr();
    for (from, size) in [(0, len), (len / 3, len / 2), (len, 9), (len + 7, 9), (len / 2, len)] {
        let mut runs_seen = Vec::new();
        let mut last = None;
        layout.runs(from as u64, size as u64, |at, run| {
            assert!(run != 0 && last != Some(at.addr()), "{what}");
            last = Some(at.addr() + run);
            runs_seen.extend(at.addr() - base..at.addr() - base + run);
        });
        let there = from.min(len)..(from + size).min(len);
        assert_eq!(runs_seen, places[there], "{what}");
    }
    let mut runs = 0;
    layout.runs(0, u64::MAX, |_, _| runs += 1);
    if let Some((at, size)) = layout.as_contiguous() {
        assert!(runs <= 1 && size == len as u64 && (len == 0 || at.addr() == base + places[0]), "{what}");
    }
    runs
}

/// Pieces of a memory that do not overlap, in any order, some of them empty, some touching.
fn pieces(rng: &mut Rng, count: usize) -> (Vec<(usize, usize)>, usize) {
    let mut at = 0;
    let mut pieces = Vec::with_capacity(count);
    for _ in 0..count {
        let len = match rng.below(4) {
            0 => 0,
            1 => [1, 2, 4, 8, 16][rng.below(5) as usize],
            _ => rng.below(40) as usize,
        };
        pieces.push((at, len));
        at += len + if rng.below(3) == 0 { 0 } else { rng.below(9) as usize };
    }
    if rng.below(2) == 0 {
        for i in (1..count).rev() {
            pieces.swap(i, rng.below(i as u64 + 1) as usize);
        }
    }
    (pieces, at)
}

fn places(pieces: &[(usize, usize)]) -> Vec<usize> {
    pieces.iter().flat_map(|&(at, len)| at..at + len).collect()
}

#[test]
fn lists_of_pieces() {
    for seed in 0..2_000 {
        let mut rng = Rng::new(seed);
        let count = rng.below(if seed % 100 == 0 { 5_000 } else { 20 }) as usize;
        let (pieces, size) = pieces(&mut rng, count);
        let mut memory = random_bytes(&mut rng, size + 64);
        let base = memory.as_mut_ptr();
        let mut info: Vec<*mut c_void> = Vec::new();
        let mut len: Vec<c_ulong> = Vec::new();
        for &(at, size) in &pieces {
            // An empty piece may have any address.
            info.push(if size == 0 { std::ptr::null_mut() } else { base.wrapping_add(at).cast() });
            len.push(size as c_ulong);
        }
        let vec_type = if rng.below(2) == 0 { LAPI_GEN_IOVECTOR } else { LAPI_GEN_GENERIC };
        let vec =
            lapi_vec_t { vec_type, num_vecs: count as u32, info: info.as_mut_ptr(), len: len.as_mut_ptr() };
        // SAFETY: the arrays have `count` entries.
        let layout = Layout::vector(&unsafe { Vector::of(&vec) }.unwrap());
        // The arrays are not needed any more.
        info.fill(std::ptr::null_mut());
        len.fill(c_ulong::MAX);
        let runs = check(&mut rng, &format!("seed {seed}"), &layout, &mut memory, &places(&pieces));
        assert_eq!(layout.run_count(), runs);
    }
}

#[test]
fn a_hundred_thousand_pieces_in_packets() {
    let mut rng = Rng::new(5);
    let (pieces, size) = pieces(&mut rng, 100_000);
    let mut memory = random_bytes(&mut rng, size + 64);
    let base = memory.as_mut_ptr();
    let layout = Layout::pieces(pieces.iter().map(|&(at, len)| (base.wrapping_add(at), len as u64)));
    let places = places(&pieces);
    for packet in [1_000, 1_999] {
        let mut packed = vec![0u8; places.len()];
        for (i, part) in packed.chunks_mut(packet).enumerate() {
            // SAFETY: the layout lies in the memory.
            unsafe { layout.gather((i * packet) as u64, part.len(), part.as_mut_ptr()) };
        }
        assert!(places.iter().zip(&packed).all(|(&place, &byte)| memory[place] == byte));
        // Backwards the hint is always wrong.
        let mut memory = memory.clone();
        let (old, new) = (base.addr(), memory.as_mut_ptr());
        let moved = |at: usize| new.wrapping_add(base.wrapping_add(at).addr() - old);
        let layout = Layout::pieces(pieces.iter().map(|&(at, len)| (moved(at), len as u64)));
        memory.fill(0);
        for (i, part) in packed.chunks(packet).enumerate().rev() {
            // SAFETY: the layout lies in the memory.
            unsafe { layout.scatter((i * packet) as u64, part.as_ptr(), part.len()) };
        }
        assert!(places.iter().zip(&packed).all(|(&place, &byte)| memory[place] == byte));
    }
}

#[test]
fn strided_blocks() {
    for seed in 0..2_000 {
        let mut rng = Rng::new(seed);
        let (block, count) = (rng.below(70) as usize, rng.below(40) as usize);
        let stride = block + if rng.below(3) == 0 { 0 } else { rng.below(20) as usize };
        let mut memory = random_bytes(&mut rng, stride * count + 64);
        let info: [*mut c_void; 3] = [
            memory.as_mut_ptr().cast(),
            std::ptr::without_provenance_mut(block),
            std::ptr::without_provenance_mut(stride),
        ];
        let vec = lapi_vec_t {
            vec_type: LAPI_GEN_STRIDED_XFER,
            num_vecs: count as u32,
            info: info.as_ptr().cast_mut(),
            len: std::ptr::null_mut(),
        };
        // SAFETY: info has three entries.
        let layout = Layout::vector(&unsafe { Vector::of(&vec) }.unwrap());
        let places: Vec<usize> = (0..count).flat_map(|i| i * stride..i * stride + block).collect();
        let what = format!("{count} blocks of {block} every {stride}");
        let runs = check(&mut rng, &what, &layout, &mut memory, &places);
        assert_eq!(layout.run_count(), runs);
    }
}

#[test]
fn contiguous_bytes() {
    let mut rng = Rng::new(1);
    for len in [0, 1, 7, 64, 65, 5_000] {
        let mut memory = random_bytes(&mut rng, len + 64);
        let layout = Layout::contiguous(memory.as_mut_ptr().wrapping_add(32), len as u64);
        assert!(layout.as_contiguous().is_some());
        let runs = check(&mut rng, "contiguous", &layout, &mut memory, &Vec::from_iter(32..32 + len));
        assert_eq!(layout.run_count(), runs);
    }
    // What is contiguous in the end is known to be.
    let mut memory = [0u8; 64];
    let base = memory.as_mut_ptr();
    let piece = |at: usize, len| (base.wrapping_add(at), len);
    let touching = Layout::pieces([piece(3, 5), piece(0, 0), piece(8, 9)]);
    assert_eq!(touching.as_contiguous(), Some((base.wrapping_add(3), 14)));
    assert_eq!(Layout::pieces([]).as_contiguous().map(|(_, len)| len), Some(0));
    assert_eq!(Layout::strided(base, 4, 4, 6).as_contiguous(), Some((base, 24)));
    assert_eq!(Layout::strided(base, 4, 90, 1).as_contiguous(), Some((base, 4)));
    let program = compiled(&mut simple(&[Op::Copy { bytes: 6, offset: 2 }], 6, 9, (2, 8)));
    let layout = |bytes| Layout::origin_program(program.clone(), base, bytes).unwrap();
    assert_eq!(layout(6).as_contiguous(), Some((base.wrapping_add(2), 6)));
    assert_eq!(layout(7).as_contiguous(), None);
}

#[test]
fn programs() {
    let mut seen = 0;
    for seed in 0..1_500 {
        let mut rng = Rng::new(seed);
        let taste = Taste { depth: 4, size: 2_000, reach: 20_000, controls: false };
        let mut source = random(&mut rng, taste);
        let bytes = 1 + rng.below(3 * source.size as u64);
        let moves = moves(&source.code, source.extent, bytes, 1 << 20).unwrap();
        let low = moves.iter().map(|m| m.offset).min().unwrap().min(0);
        let high = moves.iter().map(|m| m.offset + m.len as i64).max().unwrap().max(0);
        let places: Vec<usize> = moves
            .iter()
            .flat_map(|m| m.offset - low..m.offset - low + m.len as i64)
            .map(|place| place as usize)
            .collect();
        let mut sorted = places.clone();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            continue;
        }
        seen += 1;
        let mut memory = random_bytes(&mut rng, (high - low) as usize + 64);
        let base = memory.as_mut_ptr().wrapping_add(-low as usize);
        let layout = Layout::target_program(compiled(&mut source), base, bytes, None).unwrap();
        let runs = check(&mut rng, &format!("seed {seed}, {source:?}"), &layout, &mut memory, &places);
        // Only an estimate, but one of the right size.
        let estimate = layout.run_count();
        assert!(
            estimate <= bytes && runs <= 8 * estimate + 8,
            "{runs} runs, estimated {estimate}, seed {seed}"
        );
    }
    assert!(seen > 300, "{seen}");
}

unsafe extern "C" fn add(
    data: *mut c_void,
    inout: *mut c_void,
    bytes: c_long,
    _operand: c_int,
    _operation: c_int,
) -> c_long {
    for i in 0..bytes as usize {
        // SAFETY: the machine passes `bytes` bytes on both sides.
        unsafe { *inout.cast::<u8>().add(i) += *data.cast::<u8>().add(i) };
    }
    bytes
}

#[test]
fn programs_with_a_function() {
    let ops = [Op::Control { operation: 0, operand: 0 }, Op::Copy { bytes: 4, offset: 0 }];
    let program = compiled(&mut simple(&ops, 4, 4, (0, 4)));
    let mut memory = [10u8; 16];
    let base = memory.as_mut_ptr();
    let code = |layout: crate::error::Result<Layout>| layout.unwrap_err().code;
    assert_eq!(code(Layout::origin_program(program.clone(), base, 8)), LAPI_ERR_DGSP_CTL);
    assert_eq!(code(Layout::target_program(program.clone(), base, 8, None)), LAPI_ERR_DGSP_CTL);
    let layout = Layout::target_program(program, base, 8, Some(add)).unwrap();
    assert!(layout.function().is_some() && layout.as_contiguous().is_none());
    // SAFETY: the memory has room for all; the function adds within it.
    unsafe {
        layout.scatter(4, [4u8; 12].as_ptr(), 12);
        layout.scatter(0, [1u8; 4].as_ptr(), 4);
    }
    assert_eq!(memory, [11, 11, 11, 11, 14, 14, 14, 14, 10, 10, 10, 10, 10, 10, 10, 10]);
    let copy = Op::Copy { bytes: 4, offset: 0 };
    // The function is registered, but no CONTROL lets it take anything.
    let plain = Op::Control { operation: LAPI_DGSM_NO_CTL, operand: 7 };
    let program = compiled(&mut simple(&[plain.clone(), copy.clone()], 4, 4, (0, 4)));
    assert_eq!(code(Layout::target_program(program.clone(), base, 8, None)), LAPI_ERR_DGSP_CTL);
    let layout = Layout::target_program(program, base, 8, Some(add)).unwrap();
    assert_eq!(layout.function(), None);
    // SAFETY: the memory has room for two applications of the program.
    unsafe { layout.scatter(0, [3u8; 8].as_ptr(), 8) };
    assert_eq!(memory, [3, 3, 3, 3, 3, 3, 3, 3, 10, 10, 10, 10, 10, 10, 10, 10]);
    let takes = Op::Control { operation: 0, operand: 7 };
    for ops in [[takes.clone(), copy.clone(), plain.clone()], [plain, takes, copy]] {
        let program = compiled(&mut simple(&ops, 4, 4, (0, 4)));
        assert!(
            Layout::target_program(program, memory.as_mut_ptr(), 8, Some(add)).unwrap().function().is_some()
        );
    }
    let nothing = compiled(&mut simple(&[], 0, 0, (0, 0)));
    assert_eq!(code(Layout::target_program(nothing.clone(), base, 1, None)), LAPI_ERR_DGSP_OTHER);
    assert!(Layout::target_program(nothing, base, 0, None).unwrap().is_empty());
}

/// Sizes that do not fit 32 bits, without memory behind them.
#[test]
fn more_than_four_gibibytes() {
    const GIB: u64 = 1 << 30;
    let at = |i: u64| std::ptr::without_provenance_mut::<u8>((i << 40) as usize);
    let layout = Layout::pieces((1..=10).map(|i| (at(i), GIB)));
    assert_eq!(layout.len(), 10 * GIB);
    let mut runs = Vec::new();
    layout.runs(5 * GIB - 3, 10, |at, len| runs.push((at.addr() as u64, len)));
    assert_eq!(runs, [((5 << 40) + GIB - 3, 3), (6 << 40, 7)]);
    let layout = Layout::strided(at(1), 3 * GIB, 1 << 40, 4);
    runs.clear();
    layout.runs(6 * GIB - 1, 2, |at, len| runs.push((at.addr() as u64, len)));
    assert_eq!(runs, [((2 << 40) + 3 * GIB - 1, 1), (3 << 40, 1)]);
}
