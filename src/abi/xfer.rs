//! What LAPI_Xfer takes (the man page of LAPI_Xfer, tables 23 to 31).

use super::{
    RMW_ops_t, compl_hndlr_p, lapi_cntr_t, lapi_dg_handle_t, lapi_long_t, lapi_rdma_tag_t, lapi_status_t,
    lapi_user_cxt_t, lapi_user_pvo_t, lapi_vec_t, lapi_xfer_type_t, scompl_hndlr_p,
};
use libc::{c_int, c_uint, c_ulong, c_ushort, c_void};

/// One transfer; Xfer_type says which member it is.
#[repr(C)]
#[derive(Clone, Copy)]
pub union lapi_xfer_t {
    /// The first field of every member.
    pub Xfer_type: lapi_xfer_type_t,
    /// LAPI_GET_XFER
    pub Get: lapi_get_t,
    /// LAPI_AM_XFER, LAPI_AM_LW_XFER
    pub Am: lapi_am_t,
    /// LAPI_RMW_XFER
    pub Rmw: lapi_rmw_t,
    /// LAPI_PUT_XFER
    pub Put: lapi_put_t,
    /// LAPI_GETV_XFER
    pub Getv: lapi_getv_t,
    /// LAPI_PUTV_XFER
    pub Putv: lapi_putv_t,
    /// LAPI_AMV_XFER
    pub Amv: lapi_amv_t,
    /// LAPI_DGSP_XFER
    pub Dgsp: lapi_amdgsp_t,
    /// LAPI_RDMA_XFER
    pub HwXfer: lapi_hwxfer_t,
    /// LAPI_AMX_XFER
    pub Amx: lapi_amx_t,
}

/// LAPI_Get, with a completion handler at the origin.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_get_t {
    /// LAPI_GET_XFER
    pub Xfer_type: lapi_xfer_type_t,
    /// Bits such as LAPI_USE_BULK_XFER, or 0.
    pub flags: c_int,
    /// The target task.
    pub tgt: c_uint,
    /// Keeps the next field 8-aligned.
    pub pad: c_uint,
    /// The address at the target.
    pub tgt_addr: lapi_long_t,
    /// The address at the origin.
    pub org_addr: *mut c_void,
    /// The length in bytes.
    pub len: c_ulong,
    /// The address of the target's counter, or 0.
    pub tgt_cntr: lapi_long_t,
    /// The origin counter, or null.
    pub org_cntr: *mut lapi_cntr_t,
    /// Called when all data has arrived, or null.
    pub chndlr: compl_hndlr_p,
    /// The second argument of chndlr.
    pub cinfo: *mut c_void,
}

/// LAPI_Put, with a send completion handler.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_put_t {
    /// LAPI_PUT_XFER
    pub Xfer_type: lapi_xfer_type_t,
    /// Bits such as LAPI_USE_BULK_XFER, or 0.
    pub flags: c_int,
    /// The target task.
    pub tgt: c_uint,
    /// Keeps the next field 8-aligned.
    pub pad: c_uint,
    /// The address at the target.
    pub tgt_addr: lapi_long_t,
    /// The address at the origin.
    pub org_addr: *mut c_void,
    /// The length in bytes.
    pub len: c_ulong,
    /// Called when the origin data may be changed, or null.
    pub shdlr: scompl_hndlr_p,
    /// The second argument of shdlr.
    pub sinfo: *mut c_void,
    /// The address of the target's counter, or 0.
    pub tgt_cntr: lapi_long_t,
    /// The origin counter, or null.
    pub org_cntr: *mut lapi_cntr_t,
    /// The completion counter, or null.
    pub cmpl_cntr: *mut lapi_cntr_t,
}

/// LAPI_Amsend, with a send completion handler.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_am_t {
    /// LAPI_AM_XFER or LAPI_AM_LW_XFER
    pub Xfer_type: lapi_xfer_type_t,
    /// Bits such as LAPI_USE_BULK_XFER, or 0.
    pub flags: c_int,
    /// The target task.
    pub tgt: c_uint,
    /// Keeps the next field 8-aligned.
    pub pad: c_uint,
    /// The header handler: an index of LAPI_Addr_set, or an address at the target.
    pub hdr_hdl: lapi_long_t,
    /// The length of the user header in bytes.
    pub uhdr_len: c_uint,
    /// Keeps the next field 8-aligned.
    pub pad2: c_uint,
    /// The user header.
    pub uhdr: *mut c_void,
    /// The data.
    pub udata: *mut c_void,
    /// The length of the data in bytes.
    pub udata_len: c_ulong,
    /// Called when the origin data may be changed, or null.
    pub shdlr: scompl_hndlr_p,
    /// The second argument of shdlr.
    pub sinfo: *mut c_void,
    /// The address of the target's counter, or 0.
    pub tgt_cntr: lapi_long_t,
    /// The origin counter, or null.
    pub org_cntr: *mut lapi_cntr_t,
    /// The completion counter, or null.
    pub cmpl_cntr: *mut lapi_cntr_t,
}

/// LAPI_Amsendv, with a send completion handler.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_amv_t {
    /// LAPI_AMV_XFER
    pub Xfer_type: lapi_xfer_type_t,
    /// Bits such as LAPI_USE_BULK_XFER, or 0.
    pub flags: c_int,
    /// The target task.
    pub tgt: c_uint,
    /// Keeps the next field 8-aligned.
    pub pad: c_uint,
    /// The header handler: an index of LAPI_Addr_set, or an address at the target.
    pub hdr_hdl: lapi_long_t,
    /// The length of the user header in bytes.
    pub uhdr_len: c_uint,
    /// Keeps the next field 8-aligned.
    pub pad2: c_uint,
    /// The user header.
    pub uhdr: *mut c_void,
    /// Called when the origin data may be changed, or null.
    pub shdlr: scompl_hndlr_p,
    /// The second argument of shdlr.
    pub sinfo: *mut c_void,
    /// The vector at the origin.
    pub org_vec: *mut lapi_vec_t,
    /// The address of the target's counter, or 0.
    pub tgt_cntr: lapi_long_t,
    /// The origin counter, or null.
    pub org_cntr: *mut lapi_cntr_t,
    /// The completion counter, or null.
    pub cmpl_cntr: *mut lapi_cntr_t,
}

/// LAPI_Getv, with a completion handler at the origin.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_getv_t {
    /// LAPI_GETV_XFER
    pub Xfer_type: lapi_xfer_type_t,
    /// Bits such as LAPI_USE_BULK_XFER, or 0.
    pub flags: c_int,
    /// The target task.
    pub tgt: c_uint,
    /// Keeps the next field 8-aligned.
    pub pad: c_uint,
    /// The vector at the origin.
    pub org_vec: *mut lapi_vec_t,
    /// The target's vector: a lapi_vec_t with USE_TGT_VEC_TYPE, else a lapi_lvec_t.
    pub tgt_vec: *mut c_void,
    /// The address of the target's counter, or 0.
    pub tgt_cntr: lapi_long_t,
    /// The origin counter, or null.
    pub org_cntr: *mut lapi_cntr_t,
    /// Called when all data has arrived, or null.
    pub chndlr: compl_hndlr_p,
    /// The second argument of chndlr.
    pub cinfo: *mut c_void,
}

/// LAPI_Putv, with a send completion handler.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_putv_t {
    /// LAPI_PUTV_XFER
    pub Xfer_type: lapi_xfer_type_t,
    /// Bits such as LAPI_USE_BULK_XFER, or 0.
    pub flags: c_int,
    /// The target task.
    pub tgt: c_uint,
    /// Keeps the next field 8-aligned.
    pub pad: c_uint,
    /// Called when the origin data may be changed, or null.
    pub shdlr: scompl_hndlr_p,
    /// The second argument of shdlr.
    pub sinfo: *mut c_void,
    /// The vector at the origin.
    pub org_vec: *mut lapi_vec_t,
    /// The target's vector: a lapi_vec_t with USE_TGT_VEC_TYPE, else a lapi_lvec_t.
    pub tgt_vec: *mut c_void,
    /// The address of the target's counter, or 0.
    pub tgt_cntr: lapi_long_t,
    /// The origin counter, or null.
    pub org_cntr: *mut lapi_cntr_t,
    /// The completion counter, or null.
    pub cmpl_cntr: *mut lapi_cntr_t,
}

/// LAPI_Rmw or LAPI_Rmw64, with a send completion handler.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_rmw_t {
    /// LAPI_RMW_XFER
    pub Xfer_type: lapi_xfer_type_t,
    /// The operation.
    pub op: RMW_ops_t,
    /// The target task.
    pub tgt: c_uint,
    /// 32 or 64.
    pub size: c_uint,
    /// The address of the variable at the target.
    pub tgt_var: lapi_long_t,
    /// What the operation takes; two values for COMPARE_AND_SWAP.
    pub in_val: *mut c_void,
    /// Where the former value goes, or null.
    pub prev_tgt_val: *mut c_void,
    /// The origin counter, or null.
    pub org_cntr: *mut lapi_cntr_t,
    /// Called when the origin data may be changed, or null.
    pub shdlr: scompl_hndlr_p,
    /// The second argument of shdlr.
    pub sinfo: *mut c_void,
}

/// An active message whose data is gathered by a DGSP.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_amdgsp_t {
    /// LAPI_DGSP_XFER
    pub Xfer_type: lapi_xfer_type_t,
    /// Bits such as LAPI_USE_BULK_XFER, or 0.
    pub flags: c_int,
    /// The target task.
    pub tgt: c_uint,
    /// Keeps the next field 8-aligned.
    pub pad: c_uint,
    /// The header handler: an index of LAPI_Addr_set, or an address at the target.
    pub hdr_hdl: lapi_long_t,
    /// The length of the user header in bytes.
    pub uhdr_len: c_uint,
    /// Keeps the next field 8-aligned.
    pub pad2: c_uint,
    /// The user header.
    pub uhdr: *mut c_void,
    /// The data.
    pub udata: *mut c_void,
    /// The length of the data in bytes.
    pub udata_len: c_ulong,
    /// Called when the origin data may be changed, or null.
    pub shdlr: scompl_hndlr_p,
    /// The second argument of shdlr.
    pub sinfo: *mut c_void,
    /// The address of the target's counter, or 0.
    pub tgt_cntr: lapi_long_t,
    /// The origin counter, or null.
    pub org_cntr: *mut lapi_cntr_t,
    /// The completion counter, or null.
    pub cmpl_cntr: *mut lapi_cntr_t,
    /// The layout of the data.
    pub dgsp: lapi_dg_handle_t,
    /// Not used.
    pub status: lapi_status_t,
}

/// A direct transfer between registered memory; later level.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_hwxfer_t {
    /// LAPI_RDMA_XFER
    pub Xfer_type: lapi_xfer_type_t,
    /// The target task.
    pub tgt: c_uint,
    /// Bits such as LAPI_RDMA_GET.
    pub op: c_ushort,
    /// The program's own mark.
    pub rdma_tag: lapi_rdma_tag_t,
    /// The context at the target.
    pub remote_cxt: lapi_user_cxt_t,
    /// The memory at the origin.
    pub src_pvo: lapi_user_pvo_t,
    /// The memory at the target.
    pub tgt_pvo: lapi_user_pvo_t,
    /// Bytes into src_pvo.
    pub src_offset: c_uint,
    /// Bytes into tgt_pvo.
    pub tgt_offset: c_uint,
    /// The length in bytes.
    pub len: c_ulong,
    /// The origin counter, or null.
    pub org_cntr: *mut lapi_cntr_t,
    /// Called when the transfer is complete, or null.
    pub shdlr: scompl_hndlr_p,
    /// The second argument of shdlr.
    pub sinfo: *mut c_void,
}

/// A later form of the active message, of which only the size is kept.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_amx_t {
    /// LAPI_AMX_XFER
    pub Xfer_type: lapi_xfer_type_t,
    /// Bits such as LAPI_USE_BULK_XFER, or 0.
    pub flags: c_int,
    /// The target task.
    pub tgt: c_uint,
    /// Keeps the next field 8-aligned.
    pub pad: c_uint,
    /// The header handler: an index of LAPI_Addr_set, or an address at the target.
    pub hdr_hdl: lapi_long_t,
    /// The length of the user header in bytes.
    pub uhdr_len: c_uint,
    /// Keeps the next field 8-aligned.
    pub pad2: c_uint,
    /// The user header.
    pub uhdr: *mut c_void,
    /// The data.
    pub udata: *mut c_void,
    /// The length of the data in bytes.
    pub udata_len: c_ulong,
    /// Called when the origin data may be changed, or null.
    pub shdlr: scompl_hndlr_p,
    /// The second argument of shdlr.
    pub sinfo: *mut c_void,
    /// The address of the target's counter, or 0.
    pub tgt_cntr: lapi_long_t,
    /// The origin counter, or null.
    pub org_cntr: *mut lapi_cntr_t,
    /// The completion counter, or null.
    pub cmpl_cntr: *mut lapi_cntr_t,
    /// Not used.
    pub reserve: [lapi_long_t; 3],
}
