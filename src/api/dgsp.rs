//! Data gather/scatter programs: LAPI_Util's requests for them, and LAPI_DGSP_XFER.

use super::active_message;
use crate::abi::{
    AM_ERR, LAPI_ERR_DGSP_ATOM, LAPI_ERR_DGSP_CTL, lapi_dg_handle_t, lapi_dgsp_descr_t, lapi_pack_dgsp_t,
    lapi_unpack_dgsp_t,
};
pub use crate::dgsp::registry::REGISTRY;
use crate::dgsp::{Layout, pack};
use crate::engine::context::request::Message;
use crate::engine::context::{Context, Held};
use crate::engine::progress::operations;
use crate::error::{Error, Result};
use crate::proto::content::Content;

/// Registers a program (man page LAPI_Util, LAPI_REGISTER_DGSP). With `verify` (LAPI_VERIFY_DGSP)
/// its code is looked at, and atom_size is compared with MAX_ATOM_SIZE of `context`, if the call
/// names one.
///
/// # Safety
/// The pointer must be null or a descriptor whose code array has code_size integers.
pub unsafe fn register(
    context: Option<&Context>,
    descriptor: *const lapi_dgsp_descr_t,
    verify: bool,
) -> Result<lapi_dg_handle_t> {
    // SAFETY: the caller's promise.
    if let (true, Some(descriptor)) = (verify, unsafe { descriptor.as_ref() }) {
        let largest = context.and_then(|context| Some(context.enter().ok()?.packet_size()));
        if let Some(largest) = largest.filter(|&largest| descriptor.atom_size as i64 > largest as i64) {
            let detail = format!("atom_size {}; MAX_ATOM_SIZE is {largest}", descriptor.atom_size);
            return Err(Error::new(LAPI_ERR_DGSP_ATOM, detail));
        }
    }
    // SAFETY: the caller's promise.
    unsafe { REGISTRY.register(descriptor, verify) }
}

/// Packs by a program (man page LAPI_Util, LAPI_DGSP_PACK).
///
/// # Safety
/// The buffers must be as the man page wants them.
pub unsafe fn pack(request: &mut lapi_pack_dgsp_t) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe { pack::pack(&REGISTRY, request) }
}

/// Unpacks by a program (man page LAPI_Util, LAPI_DGSP_UNPACK).
///
/// # Safety
/// The buffers must be as the man page wants them, and the registered function sound to
/// call with them.
pub unsafe fn unpack(context: &Context, request: &mut lapi_unpack_dgsp_t) -> Result<()> {
    let function = || context.enter().ok().and_then(|mut held| held.ddm_function());
    // SAFETY: the caller's promise.
    unsafe { pack::unpack(&REGISTRY, request, function) }
}

/// An active message whose data a program gathers.
pub struct DgspMessage {
    /// The message, without its data.
    pub message: Message,
    /// The program.
    pub dgsp: lapi_dg_handle_t,
    /// The address from which the program counts.
    pub udata: *const u8,
    /// How many bytes it gathers.
    pub bytes: u64,
    /// BUFFER_BOTH_CONTIGUOUS: the bytes lie one after the other from `udata` on.
    pub contiguous: bool,
}

/// Starts an active message whose data a program gathers (LAPI_DGSP_XFER). A program with a CONTROL
/// cannot gather: this is reported to the error handler, and the message is sent without data.
///
/// # Safety
/// The program must describe readable memory from `udata` on; the addresses must be as
/// LAPI_Amsend wants them.
pub unsafe fn amsend(held: &mut Held<'_>, request: DgspMessage) -> Result<()> {
    let DgspMessage { message, dgsp, udata, bytes, contiguous } = request;
    let program = REGISTRY.lookup(dgsp)?;
    program.check_atom(held.packet_size())?;
    let atom = program.atom_size();
    let layout = if contiguous {
        Ok(Layout::contiguous(udata.cast_mut(), bytes))
    } else {
        Layout::origin_program(program, udata, bytes)
    };
    let data = match layout {
        Ok(layout) => Content::from(layout),
        Err(error) if error.code == LAPI_ERR_DGSP_CTL => {
            active_message::check_message(held, &message)?;
            // Of a message that is not sent nothing is reported.
            operations::check_reachable(held, message.tgt)?;
            let reported = Error::new(error.code, format!("{}; the message is buried", error.detail));
            let tgt = message.tgt;
            held.context().report(held, AM_ERR, tgt, &reported);
            Content::EMPTY
        }
        Err(error) => return Err(error),
    };
    // SAFETY: the caller's promise.
    unsafe { active_message::amsend(held, &Message { data, atom, ..message }) }
}
