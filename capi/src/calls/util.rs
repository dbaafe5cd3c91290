//! LAPI_Util.

use super::lock_sharing;
use crate::{boundary, handles};
use libc::c_int;
use openlapi::abi::*;
use openlapi::api::checkpoint;
use openlapi::api::dgsp::{self, REGISTRY};
use openlapi::error::{Error, Result};
use openlapi_runtime::environment::verifies_dgsp;
use openlapi_runtime::{rdma, udp, unimplemented};

pub(crate) unsafe fn util(hndl: lapi_handle_t, util_cmd: *mut lapi_util_t) -> c_int {
    const NAME: &str = "LAPI_Util";
    // SAFETY: null, or the program's structure, of which only the member that its type
    // names is touched.
    unsafe {
        let Some(command) = util_cmd.as_mut() else {
            return boundary::call(NAME, hndl, |_| {
                Err(Error::new(LAPI_ERR_UTIL_CMD, "a null pointer to the command"))
            });
        };
        match command.Util_type {
            // Programs belong to no context: the handle need not be valid.
            LAPI_REGISTER_DGSP => boundary::code(NAME, hndl, register(hndl, &mut command.RegDgsp)),
            LAPI_RESERVE_DGSP => boundary::code(NAME, hndl, REGISTRY.reserve(command.ResvDgsp.dgsp_handle)),
            LAPI_UNRESERVE_DGSP => {
                boundary::code(NAME, hndl, REGISTRY.unreserve(command.DrefDgsp.dgsp_handle))
            }
            LAPI_REG_DDM_FUNC => boundary::call(NAME, hndl, |held| {
                held.set_ddm_function(command.DdmFunc.ddm_func);
                Ok(())
            }),
            LAPI_DGSP_PACK => {
                let outcome = handles::find(hndl).and_then(|_| dgsp::pack(&mut command.PackDgsp));
                boundary::code(NAME, hndl, outcome)
            }
            LAPI_DGSP_UNPACK => {
                let outcome =
                    handles::find(hndl).and_then(|context| dgsp::unpack(context, &mut command.UnpackDgsp));
                boundary::code(NAME, hndl, outcome)
            }
            LAPI_GET_THREAD_FUNC => boundary::call(NAME, hndl, |_| {
                lock_sharing::functions(&mut command.ThreadFunc);
                Ok(())
            }),
            LAPI_ADD_UDP_DEST_PORT | LAPI_ADD_UDP_DEST_EXT => {
                boundary::call(NAME, hndl, |held| udp::add_destination(held, &mut command.Udp))
            }
            LAPI_XLATE_ADDRESS => boundary::call(NAME, hndl, |held| rdma::memory(held, &mut command.Xlate)),
            LAPI_REMOTE_RCXT => {
                boundary::call(NAME, hndl, |held| rdma::context(held, &mut command.RemoteCxt))
            }
            LAPI_CHECKPOINT_BEFORE => boundary::call(NAME, hndl, checkpoint::before),
            LAPI_CHECKPOINT_AFTER => boundary::call(NAME, hndl, checkpoint::after),
            other => boundary::call(NAME, hndl, |_| Err(unimplemented::utility(other))),
        }
    }
}

unsafe fn register(hndl: lapi_handle_t, command: &mut lapi_reg_dgsp_t) -> Result<()> {
    handles::prepare_for_forks();
    let context = handles::find(hndl).ok().map(|context| &**context);
    // SAFETY: the program's descriptor, as the man page wants it.
    command.dgsp_handle = unsafe { dgsp::register(context, command.idgsp, verifies_dgsp()) }?;
    command.status = 0;
    Ok(())
}
