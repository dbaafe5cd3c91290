//! LAPI_DGSP_PACK and LAPI_DGSP_UNPACK (the man page of LAPI_Util).
//!
//! A user's buffer that is described by a program may be null: the program then has addresses, not
//! offsets. It may not be when the program reaches to the address 0 itself.

use super::layout::{check_bytes, check_gather};
use super::{Layout, Program};
use crate::abi::{
    LAPI_ERR_ORG_ADDR_NULL, LAPI_ERR_PACK_SZ, LAPI_ERR_TGT_ADDR_NULL, ddm_func_p, lapi_pack_dgsp_t,
    lapi_unpack_dgsp_t,
};
use crate::dgsp::registry::Registry;
use crate::error::{Error, Result};
use crate::memory::bytes::{self, Piece};
use libc::{c_int, c_ulong, c_void};

/// Gathers `bytes` bytes into the buffer at `position`, and moves `position` behind them.
///
/// # Errors
/// After an error, `position` and the buffers are as they were.
/// - LAPI_ERR_DGSP: no such handle.
/// - LAPI_ERR_DGSP_CTL, LAPI_ERR_DGSP_OTHER: as [`Layout::origin_program`].
/// - LAPI_ERR_PACK_SZ: the buffer ends before `position` + `bytes`.
/// - LAPI_ERR_ORG_ADDR_NULL, LAPI_ERR_TGT_ADDR_NULL: in_buf or out_buf is null.
///
/// # Safety
/// What the program describes must be readable from in_buf on, and out_buf writable for
/// out_size bytes.
pub unsafe fn pack(registry: &Registry, request: &mut lapi_pack_dgsp_t) -> Result<()> {
    registry.with(request.dgsp, |program| {
        let end = end(request.position, request.bytes, request.out_size)?;
        check_user(program, request.in_buf, request.bytes, LAPI_ERR_ORG_ADDR_NULL)?;
        check_buffer(request.out_buf, request.bytes, LAPI_ERR_TGT_ADDR_NULL)?;
        check_gather(program)?;
        check_bytes(program, request.bytes as u64)?;
        let from = request.in_buf.cast::<u8>();
        let out = request.out_buf.cast::<u8>().wrapping_add(request.position as usize);
        let len = request.bytes as usize;
        // SAFETY: the caller vouches for both buffers, and the bytes end within out_size.
        unsafe {
            match program.contiguous(request.bytes as u64) {
                Some(at) => bytes::copy(Piece { ptr: from.wrapping_offset(at), len }, out),
                None => program.gather(from, 0, len, out),
            }
        }
        request.position = end;
        Ok(())
    })
}

/// Scatters `bytes` bytes from the buffer at `position`, and moves `position` behind them.
/// `function` says what CONTROL calls; it is asked for programs with a CONTROL alone.
///
/// # Errors
/// After an error, `position` and the buffers are as they were.
/// - LAPI_ERR_DGSP: no such handle.
/// - LAPI_ERR_DGSP_CTL, LAPI_ERR_DGSP_OTHER: as [`Layout::target_program`].
/// - LAPI_ERR_PACK_SZ: the buffer ends before `position` + `bytes`.
/// - LAPI_ERR_ORG_ADDR_NULL, LAPI_ERR_TGT_ADDR_NULL: in_buf or out_buf is null.
///
/// # Safety
/// What the program describes must be writable from out_buf on, and in_buf readable for in_size
/// bytes; the function must be sound to call with them.
pub unsafe fn unpack(
    registry: &Registry,
    request: &mut lapi_unpack_dgsp_t,
    function: impl FnOnce() -> ddm_func_p,
) -> Result<()> {
    let data = request.in_buf.cast::<u8>().wrapping_add(request.position as usize);
    let (to, len) = (request.out_buf.cast::<u8>(), request.bytes as usize);
    let (end, scattered) = registry.with(request.dgsp, |program| {
        let end = end(request.position, request.bytes, request.in_size)?;
        check_buffer(request.in_buf, request.bytes, LAPI_ERR_ORG_ADDR_NULL)?;
        check_user(program, request.out_buf, request.bytes, LAPI_ERR_TGT_ADDR_NULL)?;
        check_bytes(program, request.bytes as u64)?;
        if program.has_control() {
            return Ok((end, false));
        }
        // SAFETY: the caller vouches for both buffers, and the bytes end within in_size.
        unsafe {
            match program.contiguous(request.bytes as u64) {
                Some(at) => bytes::copy(Piece { ptr: data, len }, to.wrapping_offset(at)),
                None => program.scatter(to, 0, data, len),
            }
        }
        Ok((end, true))
    })?;
    if !scattered {
        // The function is the user's: it runs when nothing of the registry is held.
        let program = registry.lookup(request.dgsp)?;
        let layout = Layout::target_program(program, to, request.bytes as u64, function())?;
        // SAFETY: as above; the caller vouches for the function too.
        unsafe { layout.scatter(0, data, len) };
    }
    request.position = end;
    Ok(())
}

fn end(position: c_ulong, bytes: c_ulong, size: c_ulong) -> Result<c_ulong> {
    position.checked_add(bytes).filter(|&end| end <= size).ok_or_else(|| {
        Error::new(LAPI_ERR_PACK_SZ, format!("{bytes} bytes at {position} of a buffer of {size}"))
    })
}

fn check_buffer(buffer: *const c_void, bytes: c_ulong, code: c_int) -> Result<()> {
    if buffer.is_null() && bytes != 0 { Err(code.into()) } else { Ok(()) }
}

fn check_user(program: &Program, buffer: *const c_void, bytes: c_ulong, code: c_int) -> Result<()> {
    if program.bounds().0 > 0 { Ok(()) } else { check_buffer(buffer, bytes, code) }
}
