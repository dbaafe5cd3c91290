//! What LAPI_Init takes (the manual's man page of LAPI_Init, and chapter 16 for UDP).

use super::{
    LAPI_err_hndlr_p, lapi_dev_t, lapi_lib_t, thread_init_func_p, udp_init_ext_hndlr_p, udp_init_hndlr_p,
};
use libc::{c_int, c_uint, c_ulong, c_ushort, c_void, pthread_attr_t, sockaddr_storage};

/// The argument of LAPI_Init; to be zeroed before it is filled in.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_info_t {
    /// Out: the device in use. In: LAPI_SHARE_PROTOCOL and the like, or 0.
    pub protocol: lapi_dev_t,
    /// In: the level of the library that the program is written for.
    pub lib_vers: lapi_lib_t,
    /// Not used.
    pub epoch_num: c_uint,
    /// In: how many threads run completion handlers; 0 for the default.
    pub num_compl_hndlr_thr: c_int,
    /// In: the instance, 1 to 16; 0 for the next free one.
    pub instance_no: c_uint,
    /// Must be 0.
    pub info6: c_int,
    /// In: the error handler, or null.
    pub err_hndlr: LAPI_err_hndlr_p,
    /// In: how to start threads, or null.
    pub lapi_thread_attr: *mut com_thread_info_t,
    /// In: the name of an adapter, or null.
    pub adapter_name: *mut c_void,
    /// In: addresses for UDP, or null.
    pub add_info: *mut lapi_extend_t,
}

/// How the tasks find each other by UDP where no launcher says it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_extend_t {
    /// A function that fills in the addresses, or null.
    pub udp_hndlr: udp_init_hndlr_p,
    /// The addresses of all tasks, or null; read when udp_hndlr is null.
    pub add_udp_addrs: *mut lapi_udp_t,
    /// The length of add_udp_addrs or add_udp_ext_addrs. With udp_ext_hndlr the number of tasks.
    pub num_udp_addr: c_uint,
    /// Keeps the next field 8-aligned.
    pub pad: c_uint,
    /// Returns addresses of any family; read when both of the former are null, and num_udp_addr is
    /// not less than the number of tasks.
    pub udp_ext_hndlr: udp_init_ext_hndlr_p,
    /// Addresses of any family; read when both of the former are null.
    pub add_udp_ext_addrs: *mut sockaddr_storage,
    /// Not used.
    pub reserve: [c_ulong; 8],
}

/// The UDP address of a task.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct lapi_udp_t {
    /// In network order, as inet_addr gives it.
    pub ip_addr: c_uint,
    /// In host order.
    pub port_no: c_ushort,
}

/// What a udp_init_hndlr gets about the job.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct lapi_udpinfo_t {
    /// The task that asks.
    pub task_id: c_uint,
    /// The number of tasks in the job.
    pub tot_num_tasks: c_uint,
    /// The number of tasks whose addresses are asked for.
    pub num_tasks: c_uint,
    /// The instance, from 1.
    pub instance_no: c_uint,
    /// Not used.
    pub reserve: [c_ulong; 10],
}

/// How LAPI is to start its threads; defined in `css_shared.h`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct com_thread_info_t {
    /// Attributes for pthread_create, or null.
    pub thread_attr: *mut pthread_attr_t,
    /// Called first in every new thread, or null.
    pub thread_init_func: thread_init_func_p,
    /// The function's first argument.
    pub parm_ptr: *mut c_void,
    /// The function's second argument.
    pub extra_ptr: *mut c_void,
}
