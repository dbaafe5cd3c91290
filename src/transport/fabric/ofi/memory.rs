//! Memory of the endpoint: registering it, and reading and writing that of peers.

use super::{Address, Device, Errno, Region, Slot, checked, close};
use crate::base::random::random;
use crate::transport::Access;
use libfabric_sys::bindings as fi;
use libfabric_sys::calls;
use std::ffi::{c_int, c_void};
use std::ptr;

impl Device {
    /// Registers memory: for this side, or with `remote` for peers, which write it
    /// (`true`) or read it.
    ///
    /// # Safety
    /// The memory stays valid until the region is closed or the device dropped; where peers may
    /// write, nothing else is in it.
    pub(in crate::transport::fabric) unsafe fn register(
        &mut self,
        at: *const u8,
        len: usize,
        remote: Option<bool>,
    ) -> Result<Region, Errno> {
        let access = match remote {
            None => fi::FI_SEND | fi::FI_RECV | fi::FI_READ | fi::FI_WRITE,
            Some(true) => fi::FI_REMOTE_WRITE,
            Some(false) => fi::FI_REMOTE_READ,
        };
        let mut mr = ptr::null_mut();
        let key = self.fresh_key();
        // SAFETY: the caller's promise.
        checked(unsafe { calls::mr_reg(self.domain, at.cast(), len, access.into(), key, 0, &raw mut mr) })?;
        if self.info.domain().mr_mode as u32 & fi::FI_MR_ENDPOINT != 0 {
            // SAFETY: open objects, in the order of the man page.
            let enabled = unsafe {
                checked(calls::bind(mr.cast(), self.ep.cast(), 0)).and_then(|()| {
                    checked(calls::control(mr.cast(), fi::FI_ENABLE as c_int, ptr::null_mut()))
                })
            };
            if let Err(errno) = enabled {
                close(mr.cast());
                return Err(errno);
            }
        }
        Ok(self.keep(mr))
    }

    /// Registers all memory of this task for peers that have the key, where
    /// [`Info::registers_any_address`](super::Info).
    pub(in crate::transport::fabric) fn register_all(&mut self, key: u64) -> Result<Region, Errno> {
        let access = fi::FI_REMOTE_READ | fi::FI_REMOTE_WRITE;
        let mut mr = ptr::null_mut();
        let (from, len) = (ptr::null(), usize::MAX);
        // SAFETY: nothing is accessed but what a task of the job, which alone has the key, names in
        // an operation: the program's memory at this task, by the contract of the operation.
        checked(unsafe { calls::mr_reg(self.domain, from, len, access.into(), key, 0, &raw mut mr) })?;
        Ok(self.keep(mr))
    }

    fn keep(&mut self, mr: *mut fi::fid_mr) -> Region {
        if let Some(at) = self.free.pop() {
            self.regions[at] = mr;
            return Region(at);
        }
        self.regions.push(mr);
        Region(self.regions.len() - 1)
    }

    /// A key that no other region has, and that is hard to guess where keys are long.
    fn fresh_key(&mut self) -> u64 {
        self.next_key += 1;
        if self.info.domain().mr_key_size < 8 {
            return self.next_key;
        }
        self.next_key | u64::from(u32::from_ne_bytes(random())) << 32
    }

    /// The key by which peers reach a region.
    pub(in crate::transport::fabric) fn key(&self, region: Region) -> u64 {
        // SAFETY: an open region.
        unsafe { calls::mr_key(self.regions[region.0]) }
    }

    /// Closes a region: its memory is not accessed any more.
    pub(in crate::transport::fabric) fn deregister(&mut self, region: Region) {
        let mr = std::mem::replace(&mut self.regions[region.0], ptr::null_mut());
        if !mr.is_null() {
            close(mr.cast());
            self.free.push(region.0);
        }
    }

    /// Reads or writes memory of a peer.
    ///
    /// # Safety
    /// The local place is readable, and for a read writable, until the operation has ended or the
    /// endpoint is closed. No other operation has this slot.
    pub(in crate::transport::fabric) unsafe fn access(
        &self,
        access: Access,
        (local, len): (*mut u8, usize),
        region: Option<Region>,
        peer: Address,
        (remote, key): (u64, u64),
        slot: Slot,
    ) -> Result<(), Errno> {
        let piece = fi::iovec { iov_base: local.cast(), iov_len: len };
        let mut description = self.description(region);
        let there = fi::fi_rma_iov { addr: remote, len, key };
        let message = fi::fi_msg_rma {
            msg_iov: &raw const piece,
            desc: &raw mut description,
            iov_count: 1,
            addr: peer.0,
            rma_iov: &raw const there,
            rma_iov_count: 1,
            context: self.contexts[slot].get().cast(),
            data: 0,
        };
        // SAFETY: the caller's promise.
        let code = unsafe {
            match access {
                Access::Read => calls::readmsg(self.ep, &raw const message, 0),
                Access::Write => {
                    calls::writemsg(self.ep, &raw const message, fi::FI_DELIVERY_COMPLETE.into())
                }
            }
        };
        checked(code as c_int)
    }

    /// What operations on a region are given.
    pub(super) fn description(&self, region: Option<Region>) -> *mut c_void {
        // SAFETY: an open region.
        region.map_or(ptr::null_mut(), |Region(at)| unsafe { calls::mr_desc(self.regions[at]) })
    }
}
