//! Handles and plain numbers: what a program holds of LAPI.
//!
//! In `lapi.h` these stand in `capi/prelude.h`, in front of everything that uses them.

use super::lapi_dgsp_descr_t;
use libc::{c_uint, c_ulong, c_ulonglong, c_ushort, pthread_t};

/// A LAPI context, as LAPI_Init gives it out.
pub type lapi_handle_t = c_uint;
/// 64 bits in 32-bit programs too: wide enough for an address of any task.
pub type lapi_long_t = c_ulonglong;
/// What a LAPI_Util or LAPI_Xfer structure carries back.
pub type lapi_status_t = c_uint;
/// A message length in bytes.
pub type lapi_msglen_t = c_ulong;
/// The number of a task, in `css_shared.h`.
pub type css_task_t = c_uint;
/// An RDMA context of another task.
pub type lapi_user_cxt_t = c_uint;
/// A piece of memory registered for RDMA.
pub type lapi_user_pvo_t = c_ulonglong;
/// The program's own mark on an RDMA transfer.
pub type lapi_rdma_tag_t = c_ushort;

/// A registered DGSP: points at LAPI's own copy of the descriptor, which a C program may read.
pub type lapi_dg_handle_t = *mut lapi_dgsp_descr_t;
/// Another name of [`lapi_dg_handle_t`].
pub type lapi_dgsp_handle_t = lapi_dg_handle_t;

/// No context.
pub const LAPI_VOID_HANDLE: lapi_handle_t = lapi_handle_t::MAX;
/// What mutex_getowner returns when no thread holds the lock.
pub const LAPI_NULL_THREAD_ID: pthread_t = pthread_t::MAX;
