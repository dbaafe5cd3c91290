//! LAPI_Rmw, LAPI_Rmw64, and their form in LAPI_Xfer.

use super::check;
use crate::abi::{
    COMPARE_AND_SWAP, LAPI_ERR_IN_VAL_NULL, LAPI_ERR_OP_SZ, LAPI_ERR_RMW_OP, LAPI_ERR_TGT_VAR_NULL,
    LAPI_ERR_UNKNOWN, RMW_ops_t,
};
use crate::engine::context::Held;
use crate::engine::context::request::Rmw;
use crate::engine::progress::operations;
use crate::error::{Error, Result};
use crate::memory::word;
use crate::proto::outbox::SendDone;

/// What the program gives for a read-modify-write.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The target.
    pub tgt: u32,
    /// The operation.
    pub op: RMW_ops_t,
    /// The variable's size in bits: 32 or 64.
    pub size: u32,
    /// The variable's address at the target.
    pub var: u64,
    /// The address of the value, or of the two values of COMPARE_AND_SWAP.
    pub in_val: usize,
    /// Where the previous value goes, or 0.
    pub previous: usize,
    /// What follows.
    pub done: SendDone,
}

/// Starts a read-modify-write (man pages LAPI_Rmw, LAPI_Rmw64). The values are read
/// before this returns.
///
/// # Safety
/// The addresses must be as the man page wants them.
pub unsafe fn rmw(held: &mut Held<'_>, request: &Request) -> Result<()> {
    check::target(held, request.tgt)?;
    if request.op > COMPARE_AND_SWAP {
        return Err(Error::new(
            LAPI_ERR_RMW_OP,
            format!("operation {}; valid: 0 to {COMPARE_AND_SWAP}", request.op),
        ));
    }
    if request.size != 32 && request.size != 64 {
        return Err(Error::new(LAPI_ERR_OP_SZ, format!("a size of {} bits; it is 32 or 64", request.size)));
    }
    if request.in_val == 0 {
        return Err(Error::new(LAPI_ERR_IN_VAL_NULL, "a null address of the value"));
    }
    if request.var == 0 {
        return Err(Error::new(LAPI_ERR_TGT_VAR_NULL, "a null address of the variable"));
    }
    let width = u64::from(request.size / 8);
    if !request.var.is_multiple_of(width) {
        let detail = format!("tgt_var {:#x} is not a multiple of {width}", request.var);
        return Err(Error::new(LAPI_ERR_UNKNOWN, detail));
    }
    let wide = request.size == 64;
    let swap = request.op == COMPARE_AND_SWAP;
    // SAFETY: the program's value.
    let value = unsafe { word::load(request.in_val, wide) };
    // SAFETY: the second value follows the first one, for this operation.
    let swap = if swap { unsafe { word::load(request.in_val + width as usize, wide) } } else { 0 };
    let operation = Rmw {
        tgt: request.tgt,
        op: request.op as u16,
        wide,
        var: request.var,
        value,
        swap,
        previous: request.previous,
        done: request.done,
    };
    // SAFETY: the caller's promise.
    unsafe { operations::rmw(held, &operation) }
}
