use super::*;
use crate::abi::{LAPI_GEN_IOVECTOR, LAPI_GEN_STRIDED_XFER, lapi_lvec_t, lapi_vec_t};
use std::ptr;

fn runs(layout: &Layout) -> Vec<(usize, usize)> {
    let mut runs = Vec::new();
    layout.runs(0, layout.len(), |at, len| runs.push((at.addr(), len)));
    runs
}

#[test]
fn a_layout_survives_its_description() {
    let pieces = [(0x1000, 8), (0x2000, 0), (0x3000, 5), (0x3005, 3)];
    let layout = Layout::pieces(pieces.map(|(at, len)| (ptr::without_provenance_mut(at), len)));
    let words = describe_layout(&layout);
    assert_eq!(words, [PIECES, 0x1000, 8, 0x3000, 8]);
    assert_eq!(layout_of(&words).map(|layout| runs(&layout)), Some(runs(&layout)));
}

#[test]
fn a_strided_vector_is_five_words() {
    let mut info = [0x1000, 8, 24].map(ptr::without_provenance_mut);
    let vector = lapi_vec_t {
        vec_type: LAPI_GEN_STRIDED_XFER,
        num_vecs: 3,
        info: info.as_mut_ptr(),
        len: ptr::null_mut(),
    };
    // SAFETY: a whole vector, which lives until the end of the test.
    let words = unsafe { Vector::of(&vector) }.map(|vector| describe(&vector)).unwrap_or_default();
    assert_eq!(words, [STRIDED, 0x1000, 8, 24, 3]);
    let layout = layout_of(&words).map(|layout| runs(&layout));
    assert_eq!(layout, Some(vec![(0x1000, 8), (0x1018, 8), (0x1030, 8)]));
}

/// Whatever the length of a pointer here, the task that has the memory may be one of 64 bits.
#[test]
fn the_addresses_of_a_long_vector_are_described_whole() {
    let (mut info, mut len) = ([0x7f12_0000_1000, 0x40_0000_0000, 0x1_0000_1000], [8, 0, 16]);
    let mut vector = lapi_lvec_t {
        vec_type: LAPI_GEN_IOVECTOR,
        num_vecs: 3,
        info: info.as_mut_ptr(),
        len: len.as_mut_ptr(),
    };
    // SAFETY: a whole vector, which lives until the end of the test.
    let words = |vector: &lapi_lvec_t| unsafe { Vector::of_long(vector) }.map(|vector| describe(&vector));
    let pieces = vec![PIECES, 0x7f12_0000_1000, 8, 0x40_0000_0000, 0, 0x1_0000_1000, 16];
    assert_eq!(words(&vector), Some(pieces));
    vector.vec_type = LAPI_GEN_STRIDED_XFER;
    assert_eq!(words(&vector), Some(vec![STRIDED, 0x7f12_0000_1000, 0x40_0000_0000, 0x1_0000_1000, 3]));
    assert_eq!(describe_contiguous(0x7f12_0000_1000, 8), [PIECES, 0x7f12_0000_1000, 8]);
    assert_eq!(describe_contiguous(0, 0), [PIECES]);
}

#[test]
fn what_is_no_description_is_refused() {
    for words in [&[][..], &[2, 0], &[PIECES, 1], &[STRIDED, 1, 2, 3], &[STRIDED, 1, 2, 3, 4, 5]] {
        assert!(layout_of(words).is_none(), "{words:?}");
    }
}

#[test]
fn places_beyond_the_end_of_memory_are_refused() {
    const END: u64 = u64::MAX;
    let negative = (-24_i64) as u64;
    for words in [
        &[STRIDED, 0x1000, 1 << 40, 1 << 41, 1 << 40][..],
        &[STRIDED, 0x1000, 8, 1 << 62, 5],
        &[STRIDED, 0x1000, 8, i64::MAX as u64, END],
        &[STRIDED, END - 7, 8, 24, 1],
        &[STRIDED, END - 40, 8, 24, 3],
        &[STRIDED, 40, 8, negative, 3],
        &[STRIDED, END, 1, i64::MIN as u64, END],
        &[PIECES, END - 7, 8],
        &[PIECES, 0x1000, 8, END - 7, 9],
        &[PIECES, 0, END, 0, END],
    ] {
        assert!(layout_of(words).is_none(), "{words:?}");
    }
    // An empty piece may have any address, and a vector without bytes as well.
    for (words, len) in [
        (&[PIECES, END, 0, 0x1000, 8][..], 8),
        (&[STRIDED, END, 0, END, END], 0),
        (&[STRIDED, END, END, END, 0], 0),
        (&[STRIDED, 48, 8, negative, 3], 24),
    ] {
        assert_eq!(layout_of(words).map(|layout| layout.len()), Some(len), "{words:?}");
    }
}
