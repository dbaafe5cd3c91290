//! A completion queue that has failures and does not tell them, for tests.

use super::{Device, fi};
use std::ffi::c_void;
use std::ptr;
use std::sync::OnceLock;

unsafe extern "C" fn read(_cq: *mut fi::fid_cq, _entries: *mut c_void, _count: usize) -> isize {
    -(fi::FI_EAVAIL as isize)
}

unsafe extern "C" fn readerr(_cq: *mut fi::fid_cq, _entry: *mut fi::fi_cq_err_entry, _flags: u64) -> isize {
    -(fi::FI_EIO as isize)
}

impl Device {
    /// From now on each poll finds a failure that cannot be read. For one provider in a process.
    pub(in crate::transport::fabric) fn make_unreadable(&mut self) {
        static OPS: OnceLock<fi::fi_ops_cq> = OnceLock::new();
        // SAFETY: an open queue, whose functions are those of its provider but for two, and are
        // only read.
        unsafe {
            let own = *(*self.cq).ops;
            let ops = OPS.get_or_init(|| fi::fi_ops_cq { read: Some(read), readerr: Some(readerr), ..own });
            (*self.cq).ops = ptr::from_ref(ops).cast_mut();
        }
    }
}
