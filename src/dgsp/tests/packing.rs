//! LAPI_DGSP_PACK and LAPI_DGSP_UNPACK.

use super::assemble::{Op, Source, simple};
use crate::abi::*;
use crate::dgsp::pack::{pack, unpack};
use crate::dgsp::registry::Registry;
use libc::{c_int, c_long, c_ulong, c_void};
use std::ptr::null_mut;

/// 2 bytes of every 6, from 1 on.
fn source() -> Source {
    simple(&[Op::Copy { bytes: 2, offset: 1 }], 2, 6, (1, 3))
}

fn register(registry: &Registry, mut source: Source) -> lapi_dg_handle_t {
    // SAFETY: the descriptor points at the code of the source.
    unsafe { registry.register(&source.descriptor(), true) }.unwrap()
}

fn packing(dgsp: lapi_dg_handle_t, from: &[u8], to: &mut [u8], bytes: c_ulong) -> lapi_pack_dgsp_t {
    lapi_pack_dgsp_t {
        Util_type: LAPI_DGSP_PACK,
        dgsp,
        in_buf: from.as_ptr().cast_mut().cast(),
        bytes,
        out_buf: to.as_mut_ptr().cast(),
        out_size: to.len() as c_ulong,
        position: 0,
        in_usr_func: 0,
        status: 0,
    }
}

fn unpacking(dgsp: lapi_dg_handle_t, from: &[u8], to: &mut [u8], bytes: c_ulong) -> lapi_unpack_dgsp_t {
    lapi_unpack_dgsp_t {
        Util_type: LAPI_DGSP_UNPACK,
        dgsp,
        in_buf: from.as_ptr().cast_mut().cast(),
        in_size: from.len() as c_ulong,
        out_buf: to.as_mut_ptr().cast(),
        bytes,
        position: 0,
        in_usr_func: 0,
        status: 0,
    }
}

/// The code that a request ends with; 0 for success.
fn packed(registry: &Registry, request: &mut lapi_pack_dgsp_t) -> c_int {
    // SAFETY: the tests' buffers are as long as they say and hold what the programs describe.
    unsafe { pack(registry, request) }.map_or_else(|error| error.code, |()| 0)
}

fn unpacked(registry: &Registry, request: &mut lapi_unpack_dgsp_t, function: ddm_func_p) -> c_int {
    // SAFETY: the tests' buffers are as long as they say.
    unsafe { unpack(registry, request, || function) }.map_or_else(|error| error.code, |()| 0)
}

#[test]
fn a_series_of_calls_fills_a_buffer_and_empties_it() {
    let registry = Registry::new();
    let (gaps, whole) = (register(&registry, source()), BYTE_DGSP.handle());
    let memory: Vec<u8> = (0..24).collect();
    let mut buffer = [99u8; 12];
    let mut request = packing(gaps, &memory, &mut buffer, 5);
    request.position = 1;
    assert_eq!(packed(&registry, &mut request), 0);
    assert_eq!(request.position, 6);
    // Each call starts at the beginning of its program.
    request = lapi_pack_dgsp_t { dgsp: whole, bytes: 3, ..request };
    assert_eq!(packed(&registry, &mut request), 0);
    request = lapi_pack_dgsp_t { dgsp: gaps, bytes: 3, ..request };
    assert_eq!(packed(&registry, &mut request), 0);
    assert_eq!(request.position, 12);
    assert_eq!(buffer, [99, 1, 2, 7, 8, 13, 0, 1, 2, 1, 2, 7]);

    let mut back = [50u8; 24];
    let mut request = unpacking(gaps, &buffer, &mut back, 5);
    request.position = 1;
    assert_eq!(unpacked(&registry, &mut request, None), 0);
    assert_eq!(request.position, 6);
    for (i, byte) in back.iter().enumerate() {
        let moved = [1, 2, 7, 8, 13].contains(&i);
        assert_eq!(*byte, if moved { i as u8 } else { 50 });
    }
}

#[test]
fn nothing_happens_when_it_does_not_fit() {
    let registry = Registry::new();
    let handle = register(&registry, source());
    let (memory, mut buffer) = ([7u8; 64], [9u8; 8]);
    for (position, bytes) in [(0, 9), (8, 1), (9, 0), (3, 6), (c_ulong::MAX, 1), (1, c_ulong::MAX)] {
        let mut request = lapi_pack_dgsp_t { position, ..packing(handle, &memory, &mut buffer, bytes) };
        assert_eq!(packed(&registry, &mut request), LAPI_ERR_PACK_SZ);
        assert_eq!((request.position, buffer), (position, [9; 8]));
        let mut memory = memory;
        let mut request = lapi_unpack_dgsp_t { position, ..unpacking(handle, &buffer, &mut memory, bytes) };
        assert_eq!(unpacked(&registry, &mut request, None), LAPI_ERR_PACK_SZ);
        assert_eq!((request.position, memory), (position, [7; 64]));
    }
    // Exactly full is not too full, and nothing fits at the end.
    for (position, bytes) in [(0, 8), (8, 0), (3, 5)] {
        let mut request = lapi_pack_dgsp_t { position, ..packing(handle, &memory, &mut buffer, bytes) };
        assert_eq!(packed(&registry, &mut request), 0);
        assert_eq!(request.position, position + bytes);
    }
}

#[test]
fn nulls() {
    let registry = Registry::new();
    let (memory, mut buffer) = ([7u8; 64], [9u8; 8]);
    let request = packing(BYTE_DGSP.handle(), &memory, &mut buffer, 4);
    let code = |mut request| packed(&registry, &mut request);
    assert_eq!(code(lapi_pack_dgsp_t { dgsp: null_mut(), ..request }), LAPI_ERR_DGSP);
    assert_eq!(code(lapi_pack_dgsp_t { in_buf: null_mut(), ..request }), LAPI_ERR_ORG_ADDR_NULL);
    assert_eq!(code(lapi_pack_dgsp_t { out_buf: null_mut(), ..request }), LAPI_ERR_TGT_ADDR_NULL);
    let nothing =
        lapi_pack_dgsp_t { in_buf: null_mut(), out_buf: null_mut(), out_size: 0, bytes: 0, ..request };
    assert_eq!(code(nothing), 0);
    let mut target = memory;
    let request = unpacking(BYTE_DGSP.handle(), &buffer, &mut target, 4);
    let code = |mut request| unpacked(&registry, &mut request, None);
    assert_eq!(code(lapi_unpack_dgsp_t { dgsp: null_mut(), ..request }), LAPI_ERR_DGSP);
    assert_eq!(code(lapi_unpack_dgsp_t { in_buf: null_mut(), ..request }), LAPI_ERR_ORG_ADDR_NULL);
    assert_eq!(code(lapi_unpack_dgsp_t { out_buf: null_mut(), ..request }), LAPI_ERR_TGT_ADDR_NULL);

    // A program may have addresses instead of offsets; then the buffer is null.
    let memory = [1u8, 2, 3, 4, 5, 6];
    let offset = memory.as_ptr().expose_provenance() as i64 + 2;
    let handle = register(&registry, simple(&[Op::Copy { bytes: 3, offset }], 3, 3, (offset, offset + 3)));
    let mut request = lapi_pack_dgsp_t { in_buf: null_mut(), ..packing(handle, &memory, &mut buffer, 3) };
    assert_eq!(packed(&registry, &mut request), 0);
    assert_eq!(buffer[..3], [3, 4, 5]);
}

unsafe extern "C" fn add(
    data: *mut c_void,
    inout: *mut c_void,
    bytes: c_long,
    operand: c_int,
    operation: c_int,
) -> c_long {
    assert_eq!((operand, operation), (6, 2));
    for i in 0..bytes as usize {
        // SAFETY: the machine passes `bytes` bytes on both sides.
        unsafe { *inout.cast::<u8>().add(i) += *data.cast::<u8>().add(i) };
    }
    bytes
}

#[test]
fn controls_unpack_through_the_function() {
    let registry = Registry::new();
    let ops = [
        Op::Copy { bytes: 1, offset: 0 },
        Op::Control { operation: 2, operand: 6 },
        Op::Copy { bytes: 2, offset: 1 },
    ];
    let handle = register(&registry, simple(&ops, 3, 3, (0, 3)));
    let (buffer, mut memory) = ([1u8; 6], [10u8; 6]);
    let mut request = unpacking(handle, &buffer, &mut memory, 6);
    assert_eq!(unpacked(&registry, &mut request, None), LAPI_ERR_DGSP_CTL);
    assert_eq!((request.position, memory), (0, [10; 6]));
    let mut request = unpacking(handle, &buffer, &mut memory, 6);
    assert_eq!(unpacked(&registry, &mut request, Some(add)), 0);
    // The mode lasts: the second application starts in it.
    assert_eq!(memory, [1, 11, 11, 11, 11, 11]);
    let mut buffer = buffer;
    assert_eq!(packed(&registry, &mut packing(handle, &memory, &mut buffer, 6)), LAPI_ERR_DGSP_CTL);
}

#[test]
fn a_program_of_no_bytes_cannot_pack_any() {
    let registry = Registry::new();
    let handle = register(&registry, simple(&[], 0, 0, (0, 0)));
    let (memory, mut buffer) = ([7u8; 64], [9u8; 8]);
    assert_eq!(packed(&registry, &mut packing(handle, &memory, &mut buffer, 1)), LAPI_ERR_DGSP_OTHER);
    assert_eq!(packed(&registry, &mut packing(handle, &memory, &mut buffer, 0)), 0);
}
