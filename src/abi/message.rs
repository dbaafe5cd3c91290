//! What LAPI and handlers pass each other about one message.

use super::{lapi_ctl_flags_t, lapi_dg_handle_t, lapi_msg_state_t, lapi_ret_flags_t};
use libc::{c_int, c_uint, c_ulong, c_void};

/// What msg_len of a header handler points at (the manual's chapter 11, enhanced header
/// handler interface).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_return_info_t {
    /// In: the length of the message in bytes.
    pub msg_len: c_ulong,
    /// Marks a whole structure; not to be changed.
    pub MAGIC: c_int,
    /// Out: how to run the completion handler.
    pub ret_flags: lapi_ret_flags_t,
    /// Out: what to do with the message.
    pub ctl_flags: lapi_ctl_flags_t,
    /// Out: the layout of the buffer, or null for contiguous.
    pub dgsp_handle: lapi_dg_handle_t,
    /// Out: how many bytes to deliver when dgsp_handle is set.
    pub bytes: c_ulong,
    /// In: the task that has sent the message.
    pub src: c_int,
    /// In: the data, if it has come in one packet; null otherwise.
    pub udata_one_pkt_ptr: *mut c_void,
    /// Out: how many bytes of the layout to leave out at its start.
    pub recv_offset_dgsp_bytes: c_ulong,
}

/// What a send completion handler gets.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_sh_info_t {
    /// The target of the message.
    pub src: c_uint,
    /// LAPI_SUCCESS or what went wrong.
    pub reason: c_uint,
    /// Not used.
    pub reserve: [c_ulong; 6],
}

/// What LAPI_Msgpoll returns.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_msg_info_t {
    /// What has happened.
    pub status: lapi_msg_state_t,
    /// Not used.
    pub reserve: [c_ulong; 10],
}
