//! What LAPI_Util takes (the man page of LAPI_Util, tables 14 to 22).

use super::{
    ddm_func_p, lapi_cond_destroy_t, lapi_cond_init_t, lapi_cond_signal_t, lapi_cond_timedwait_t,
    lapi_cond_wait_t, lapi_dg_handle_t, lapi_dgsp_descr_t, lapi_mutex_getowner_t, lapi_mutex_lock_t,
    lapi_mutex_trylock_t, lapi_mutex_unlock_t, lapi_status_t, lapi_udp_t, lapi_user_cxt_t, lapi_user_pvo_t,
    lapi_usr_fcall_t, lapi_util_type_t,
};
use libc::{c_int, c_uint, c_ulong, c_void};

/// One request; Util_type says which member it is.
#[repr(C)]
#[derive(Clone, Copy)]
pub union lapi_util_t {
    /// The first field of every member.
    pub Util_type: lapi_util_type_t,
    /// LAPI_REGISTER_DGSP
    pub RegDgsp: lapi_reg_dgsp_t,
    /// LAPI_UNRESERVE_DGSP
    pub DrefDgsp: lapi_dref_dgsp_t,
    /// LAPI_RESERVE_DGSP
    pub ResvDgsp: lapi_resv_dgsp_t,
    /// LAPI_REG_DDM_FUNC
    pub DdmFunc: lapi_reg_ddm_t,
    /// LAPI_ADD_UDP_DEST_PORT
    pub Udp: lapi_add_udp_port_t,
    /// LAPI_DGSP_PACK
    pub PackDgsp: lapi_pack_dgsp_t,
    /// LAPI_DGSP_UNPACK
    pub UnpackDgsp: lapi_unpack_dgsp_t,
    /// LAPI_GET_THREAD_FUNC
    pub ThreadFunc: lapi_thread_func_t,
    /// LAPI_XLATE_ADDRESS
    pub Xlate: lapi_get_pvo_t,
    /// LAPI_REMOTE_RCXT
    pub RemoteCxt: lapi_remote_cxt_t,
}

/// Registers a DGSP.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_reg_dgsp_t {
    /// LAPI_REGISTER_DGSP
    pub Util_type: lapi_util_type_t,
    /// In: the program; LAPI makes a copy.
    pub idgsp: *mut lapi_dgsp_descr_t,
    /// Out: its handle.
    pub dgsp_handle: lapi_dg_handle_t,
    /// For debugging only.
    pub in_usr_func: lapi_usr_fcall_t,
    /// Not used.
    pub status: lapi_status_t,
}

/// Adds a reference to a registered DGSP.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_resv_dgsp_t {
    /// LAPI_RESERVE_DGSP
    pub Util_type: lapi_util_type_t,
    /// In: the handle.
    pub dgsp_handle: lapi_dg_handle_t,
    /// For debugging only.
    pub in_usr_func: lapi_usr_fcall_t,
    /// Not used.
    pub status: lapi_status_t,
}

/// Takes a reference to a registered DGSP away.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_dref_dgsp_t {
    /// LAPI_UNRESERVE_DGSP
    pub Util_type: lapi_util_type_t,
    /// In: the handle.
    pub dgsp_handle: lapi_dg_handle_t,
    /// For debugging only.
    pub in_usr_func: lapi_usr_fcall_t,
    /// Not used.
    pub status: lapi_status_t,
}

/// Sets the function for CONTROL instructions.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_reg_ddm_t {
    /// LAPI_REG_DDM_FUNC
    pub Util_type: lapi_util_type_t,
    /// In: the function, or null.
    pub ddm_func: ddm_func_p,
    /// For debugging only.
    pub in_usr_func: lapi_usr_fcall_t,
    /// Not used.
    pub status: lapi_status_t,
}

/// Gathers into a buffer. In C, dgsp is also called dgsp_handle.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_pack_dgsp_t {
    /// LAPI_DGSP_PACK
    pub Util_type: lapi_util_type_t,
    /// In: the layout of in_buf.
    pub dgsp: lapi_dg_handle_t,
    /// In: where the layout is based.
    pub in_buf: *mut c_void,
    /// In: how many bytes to move.
    pub bytes: c_ulong,
    /// In: the buffer.
    pub out_buf: *mut c_void,
    /// In: its size in bytes.
    pub out_size: c_ulong,
    /// In and out: how far it is filled, in bytes.
    pub position: c_ulong,
    /// For debugging only.
    pub in_usr_func: lapi_usr_fcall_t,
    /// Not used.
    pub status: lapi_status_t,
}

/// Scatters from a buffer. In C, dgsp is also called dgsp_handle, and in_buf is also called buf.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_unpack_dgsp_t {
    /// LAPI_DGSP_UNPACK
    pub Util_type: lapi_util_type_t,
    /// In: the layout of out_buf.
    pub dgsp: lapi_dg_handle_t,
    /// In: the buffer.
    pub in_buf: *mut c_void,
    /// In: its size in bytes.
    pub in_size: c_ulong,
    /// In: where the layout is based.
    pub out_buf: *mut c_void,
    /// In: how many bytes to move.
    pub bytes: c_ulong,
    /// In and out: how far the buffer is read, in bytes.
    pub position: c_ulong,
    /// For debugging only.
    pub in_usr_func: lapi_usr_fcall_t,
    /// Not used.
    pub status: lapi_status_t,
}

/// Gives a task a new UDP address.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_add_udp_port_t {
    /// LAPI_ADD_UDP_DEST_PORT or LAPI_ADD_UDP_DEST_EXT
    pub Util_type: lapi_util_type_t,
    /// In: the task.
    pub tgt: c_uint,
    /// In: its address; with LAPI_ADD_UDP_DEST_EXT a struct sockaddr_storage.
    pub udp_port: *mut lapi_udp_t,
    /// In: the instance.
    pub instance_no: c_uint,
    /// For debugging only.
    pub in_usr_func: lapi_usr_fcall_t,
    /// Not used.
    pub status: lapi_status_t,
}

/// Out: the functions of the context's lock.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_thread_func_t {
    /// LAPI_GET_THREAD_FUNC
    pub Util_type: lapi_util_type_t,
    /// Takes the lock.
    pub mutex_lock: lapi_mutex_lock_t,
    /// Releases the lock.
    pub mutex_unlock: lapi_mutex_unlock_t,
    /// Takes the lock if it is free.
    pub mutex_trylock: lapi_mutex_trylock_t,
    /// Says who holds the lock.
    pub mutex_getowner: lapi_mutex_getowner_t,
    /// Waits for a condition.
    pub cond_wait: lapi_cond_wait_t,
    /// Waits for a condition until a time.
    pub cond_timedwait: lapi_cond_timedwait_t,
    /// Wakes one thread that waits.
    pub cond_signal: lapi_cond_signal_t,
    /// Sets up a condition.
    pub cond_init: lapi_cond_init_t,
    /// Takes down a condition.
    pub cond_destroy: lapi_cond_destroy_t,
}

/// Registers memory for RDMA; later level.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_get_pvo_t {
    /// LAPI_XLATE_ADDRESS
    pub Util_type: lapi_util_type_t,
    /// In: bytes.
    pub length: c_uint,
    /// In or out: the registered memory.
    pub usr_pvo: lapi_user_pvo_t,
    /// In: its address.
    pub address: *mut c_void,
    /// In: LAPI_RDMA_ACQUIRE or LAPI_RDMA_RELEASE.
    pub operation: c_uint,
}

/// Takes an RDMA context of another task; later level.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_remote_cxt_t {
    /// LAPI_REMOTE_RCXT
    pub Util_type: lapi_util_type_t,
    /// In: LAPI_RDMA_ACQUIRE or LAPI_RDMA_RELEASE.
    pub operation: c_uint,
    /// In: the task.
    pub dest: c_int,
    /// In or out: the context.
    pub usr_rcxt: lapi_user_cxt_t,
}
