//! Vectors: every check, in its order, and both forms of the structure.

use crate::abi::*;
use crate::dgsp::vector::{Vector, check_origin, check_pair, check_target};
use crate::error::Result;
use libc::{c_ulong, c_void};
use std::ptr::null_mut;

const MAX: u64 = LONGEST;

/// A vector and its arrays.
#[derive(Clone)]
struct Owned {
    kind: lapi_vectype_t,
    count: u32,
    info: Option<Vec<u64>>,
    lengths: Option<Vec<c_ulong>>,
}

impl Owned {
    fn list(kind: lapi_vectype_t, pieces: &[(u64, c_ulong)]) -> Self {
        Self {
            kind,
            count: pieces.len() as u32,
            info: Some(pieces.iter().map(|piece| piece.0).collect()),
            lengths: Some(pieces.iter().map(|piece| piece.1).collect()),
        }
    }

    fn strided(base: u64, block: u64, stride: u64, count: u32) -> Self {
        Self { kind: LAPI_GEN_STRIDED_XFER, count, info: Some(vec![base, block, stride]), lengths: None }
    }

    /// The view of both forms of the structure, which must be the same.
    fn view(&mut self) -> Vector {
        let len = self.lengths.as_mut().map_or(null_mut(), |lengths| lengths.as_mut_ptr());
        let info = self.info.as_mut().map_or(null_mut(), |info| info.as_mut_ptr());
        let (vec_type, num_vecs) = (self.kind, self.count);
        let short = lapi_vec_t { vec_type, num_vecs, info: info.cast::<*mut c_void>(), len };
        let long = lapi_lvec_t { vec_type, num_vecs, info, len };
        // SAFETY: the arrays live as long as `self`, which outlives every use in these tests.
        let (short, long) = unsafe { (Vector::of(&short).unwrap(), Vector::of_long(&long).unwrap()) };
        if self.info.is_some() && self.lengths.is_some() {
            assert!(short.pieces().eq(long.pieces()) && short.template() == long.template());
        }
        long
    }
}

fn code(outcome: Result<()>) -> i32 {
    outcome.map_or_else(|error| error.code, |()| 0)
}

fn origin(mut org: Owned) -> i32 {
    code(check_origin(Some(&org.view())))
}

fn pair(mut org: Owned, mut tgt: Owned) -> i32 {
    code(check_pair(Some(&org.view()), Some(&tgt.view())))
}

fn iov(pieces: &[(u64, c_ulong)]) -> Owned {
    Owned::list(LAPI_GEN_IOVECTOR, pieces)
}

#[test]
fn origins() {
    assert_eq!(code(check_origin(None)), LAPI_ERR_ORG_VEC_NULL);
    // SAFETY: null is none.
    assert!(unsafe { Vector::of(null_mut()).is_none() && Vector::of_long(null_mut()).is_none() });
    for kind in [3, lapi_vectype_t::MAX] {
        assert_eq!(origin(Owned::list(kind, &[(16, 4)])), LAPI_ERR_ORG_VEC_TYPE);
    }
    for kind in [LAPI_GEN_IOVECTOR, LAPI_GEN_GENERIC] {
        assert_eq!(origin(Owned::list(kind, &[])), 0);
        assert_eq!(origin(Owned { info: None, lengths: None, ..Owned::list(kind, &[]) }), 0);
        assert_eq!(origin(Owned::list(kind, &[(16, 4), (0, 0), (32, MAX - 4)])), 0);
        assert_eq!(origin(Owned::list(kind, &[(16, 4), (0, 1)])), LAPI_ERR_ORG_VEC_ADDR);
        assert_eq!(origin(Owned { info: None, ..Owned::list(kind, &[(1, 1)]) }), LAPI_ERR_ORG_VEC_ADDR);
        assert_eq!(origin(Owned { lengths: None, ..Owned::list(kind, &[(1, 1)]) }), LAPI_ERR_ORG_VEC_LEN);
        assert_eq!(origin(Owned::list(kind, &[(16, 4), (32, MAX - 3)])), LAPI_ERR_ORG_VEC_LEN);
        let wraps = [(16, c_ulong::MAX), (32, 2), (64, 3)];
        assert_eq!(origin(Owned::list(kind, &wraps)), LAPI_ERR_ORG_VEC_LEN);
    }
    assert_eq!(origin(Owned::strided(16, 8, 8, 5)), 0);
    assert_eq!(origin(Owned::strided(0, 9, 8, 0)), 0);
    assert_eq!(origin(Owned { info: None, ..Owned::strided(0, 9, 8, 0) }), 0);
    assert_eq!(origin(Owned::strided(0, 9, 8, 1)), LAPI_ERR_STRIDE_ORG_VEC_ADDR_NULL);
    assert_eq!(origin(Owned { info: None, ..Owned::strided(1, 1, 1, 1) }), LAPI_ERR_STRIDE_ORG_VEC_ADDR_NULL);
    assert_eq!(origin(Owned::strided(16, 9, 8, 1)), LAPI_ERR_ORG_STRIDE);
    assert_eq!(origin(Owned::strided(16, 8, MAX / 4 + 1, 4)), LAPI_ERR_ORG_EXTENT);
    assert_eq!(origin(Owned::strided(16, 8, u64::MAX, 2)), LAPI_ERR_ORG_EXTENT);
    assert_eq!(origin(Owned::strided(16, 8, MAX / 4, 4)), 0);
}

/// Each pair has the mistake of its line and those of all lines below it: the first in
/// the order counts.
#[test]
fn pairs_in_their_order() {
    assert_eq!(code(check_pair(None, None)), LAPI_ERR_ORG_VEC_NULL);
    assert_eq!(code(check_pair(Some(&iov(&[]).view()), None)), LAPI_ERR_TGT_VEC_NULL);
    let generic = || Owned::list(LAPI_GEN_GENERIC, &[(0, 1)]);
    let null = || iov(&[(0, 1)]);
    assert_eq!(pair(generic(), generic()), LAPI_ERR_ORG_VEC_TYPE);
    assert_eq!(pair(null(), generic()), LAPI_ERR_TGT_VEC_TYPE);
    assert_eq!(pair(null(), Owned { kind: 77, ..generic() }), LAPI_ERR_TGT_VEC_TYPE);
    assert_eq!(pair(null(), Owned::strided(0, 9, 8, 3)), LAPI_ERR_VEC_TYPE_DIFF);
    assert_eq!(pair(null(), iov(&[(0, 1), (0, 2)])), LAPI_ERR_VEC_NUM_DIFF);

    let long = MAX as c_ulong;
    assert_eq!(pair(iov(&[(0, 1), (1, long)]), iov(&[(0, 2), (1, long)])), LAPI_ERR_ORG_VEC_ADDR);
    assert_eq!(pair(iov(&[(1, 1), (1, long)]), iov(&[(0, 2), (1, long)])), LAPI_ERR_TGT_VEC_ADDR);
    assert_eq!(pair(iov(&[(1, 1), (1, long)]), iov(&[(1, 2), (1, long)])), LAPI_ERR_ORG_VEC_LEN);
    assert_eq!(pair(iov(&[(1, 1), (1, 1)]), iov(&[(1, 2), (1, long)])), LAPI_ERR_TGT_VEC_LEN);
    assert_eq!(pair(iov(&[(1, 1), (1, 1)]), iov(&[(1, 1), (1, 2)])), LAPI_ERR_VEC_LEN_DIFF);
    assert_eq!(pair(iov(&[(1, 1), (0, 0), (1, 1)]), iov(&[(1, 1), (0, 0), (9, 1)])), 0);
    assert_eq!(pair(iov(&[]), iov(&[])), 0);

    let far = MAX / 2;
    let s = Owned::strided;
    assert_eq!(pair(s(0, 9, 8, 3), s(0, 8, 7, 3)), LAPI_ERR_STRIDE_ORG_VEC_ADDR_NULL);
    assert_eq!(pair(s(1, 9, 8, 3), s(0, 8, 7, 3)), LAPI_ERR_STRIDE_TGT_VEC_ADDR_NULL);
    assert_eq!(pair(s(1, 9, 8, 3), s(1, 8, 7, 3)), LAPI_ERR_ORG_STRIDE);
    assert_eq!(pair(s(1, 9, far, 3), s(1, 8, 7, 3)), LAPI_ERR_TGT_STRIDE);
    assert_eq!(pair(s(1, 9, far, 3), s(1, 8, far, 3)), LAPI_ERR_ORG_EXTENT);
    assert_eq!(pair(s(1, 9, 9, 3), s(1, 8, far, 3)), LAPI_ERR_TGT_EXTENT);
    assert_eq!(pair(s(1, 9, 9, 3), s(1, 8, 9, 3)), LAPI_ERR_VEC_LEN_DIFF);
    assert_eq!(pair(s(1, 9, 9, 3), s(1, 9, 900, 3)), 0);
    assert_eq!(pair(s(0, 9, 8, 0), s(0, 7, 1, 0)), 0);
    // What ends beyond all memory.
    assert_eq!(pair(s(16, 8, 8, 2), s(u64::MAX - 7, 8, 8, 2)), LAPI_ERR_TGT_EXTENT);
    assert_eq!(pair(s(16, 8, 8, 2), s(u64::MAX - 16, 8, 8, 2)), 0);
    assert_eq!(pair(iov(&[(16, 8)]), iov(&[(u64::MAX - 7, 8)])), LAPI_ERR_TGT_VEC_ADDR);
    assert_eq!(pair(iov(&[(16, 8)]), iov(&[(u64::MAX - 8, 8)])), 0);
}

#[test]
fn what_a_header_handler_returns() {
    let target = |mut tgt: Owned, kind, count| code(check_target(Some(&tgt.view()), kind, count));
    assert_eq!(code(check_target(None, LAPI_GEN_IOVECTOR, 1)), LAPI_ERR_TGT_VEC_NULL);
    let generic = || Owned::list(LAPI_GEN_GENERIC, &[(1, 1), (2, 2)]);
    assert_eq!(target(generic(), LAPI_GEN_GENERIC, 9), 0);
    assert_eq!(target(generic(), LAPI_GEN_IOVECTOR, 2), LAPI_ERR_VEC_TYPE_DIFF);
    assert_eq!(target(Owned { kind: 5, ..generic() }, LAPI_GEN_IOVECTOR, 2), LAPI_ERR_TGT_VEC_TYPE);
    assert_eq!(target(iov(&[(1, 1)]), LAPI_GEN_IOVECTOR, 1), 0);
    assert_eq!(target(iov(&[(1, 1)]), LAPI_GEN_IOVECTOR, 2), LAPI_ERR_VEC_NUM_DIFF);
    assert_eq!(target(iov(&[(0, 1)]), LAPI_GEN_IOVECTOR, 1), LAPI_ERR_TGT_VEC_ADDR);
    assert_eq!(
        target(Owned::strided(0, 1, 1, 1), LAPI_GEN_STRIDED_XFER, 1),
        LAPI_ERR_STRIDE_TGT_VEC_ADDR_NULL
    );
    assert_eq!(target(Owned::strided(1, 2, 1, 1), LAPI_GEN_STRIDED_XFER, 1), LAPI_ERR_TGT_STRIDE);
    assert_eq!(target(Owned::strided(1, 2, MAX, 2), LAPI_GEN_STRIDED_XFER, 2), LAPI_ERR_TGT_EXTENT);
    assert_eq!(target(iov(&[(1, MAX as c_ulong), (1, 1)]), LAPI_GEN_IOVECTOR, 2), LAPI_ERR_TGT_VEC_LEN);
}
