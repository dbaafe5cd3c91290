//! Every call of Fortran, made from the table of calls: eight functions for each.

use crate::argument::{Argument, Code, Handler, Here, There, Value, Vector};
use crate::{common, ddm, text};
use libc::{c_char, c_int, c_longlong, c_uint, c_ulong, c_void, size_t};
use openlapi::abi::{
    RMW_ops_t, lapi_cntr_t, lapi_handle_t, lapi_info_t, lapi_long_t, lapi_msg_info_t, lapi_query_t,
    lapi_util_t, lapi_vec_t, lapi_xfer_t,
};

openlapi::for_each_call!(calls);
