//! LAPI_Xfer: the same operations, by a structure.

use crate::boundary;
use libc::c_int;
use openlapi::abi::*;
use openlapi::api::{active_message, dgsp, put_get, rdma, rmw, vector};
use openlapi::error::Error;
use openlapi_runtime::{request, unimplemented};

pub(crate) unsafe fn xfer(hndl: lapi_handle_t, xfer_cmd: *mut lapi_xfer_t) -> c_int {
    boundary::call("LAPI_Xfer", hndl, |held| {
        // SAFETY: null, or the program's structure, of which only the member that its type names is
        // read. What the man page asks of the program is what the core asks.
        unsafe {
            let command = xfer_cmd
                .as_ref()
                .ok_or_else(|| Error::new(LAPI_ERR_XFER_CMD, "a null pointer to the command"))?;
            match command.Xfer_type {
                LAPI_GET_XFER => put_get::get(held, &request::get(&command.Get)),
                LAPI_PUT_XFER => put_get::put(held, &request::put(&command.Put)),
                LAPI_AM_XFER => active_message::amsend(held, &request::active_message(&command.Am)),
                LAPI_AM_LW_XFER => active_message::light_weight(held, &request::light_weight(&command.Am)),
                LAPI_RMW_XFER => rmw::rmw(held, &request::read_modify_write(&command.Rmw)),
                LAPI_PUTV_XFER => vector::put(held, request::put_vector(&command.Putv)),
                LAPI_GETV_XFER => vector::get(held, request::get_vector(&command.Getv)),
                LAPI_AMV_XFER => {
                    let command = &command.Amv;
                    let origin = request::origin_vector(command.org_vec);
                    let contiguous = request::is_contiguous(command.flags);
                    vector::amsend(held, request::vector_message(command), origin, contiguous)
                }
                LAPI_DGSP_XFER => dgsp::amsend(held, request::dgsp_message(&command.Dgsp)),
                LAPI_RDMA_XFER => rdma::transfer(held, &request::rdma(&command.HwXfer)),
                other => Err(unimplemented::transfer(other)),
            }
        }
    })
}
