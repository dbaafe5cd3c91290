//! Copies between the tasks of a fabric, all of which are in one address space.

use super::Fabric;
use crate::transport::{Attach, PeerState, Task};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;

pub(super) struct MemAttach(pub(super) Arc<Fabric>);

impl MemAttach {
    fn check(&self, peer: Task, remote: u64, len: usize) -> io::Result<()> {
        if self.0.end(peer).state() == PeerState::Dead {
            return Err(Errno::SRCH.into());
        }
        let end = usize::try_from(remote).ok().and_then(|start| start.checked_add(len));
        if len > 0 && (remote == 0 || end.is_none()) {
            return Err(Errno::FAULT.into());
        }
        Ok(())
    }
}

impl Attach for MemAttach {
    unsafe fn read(&self, peer: Task, remote: u64, local: *mut u8, len: usize) -> io::Result<()> {
        self.check(peer, remote, len)?;
        if len > 0 {
            // SAFETY: `local` is writable as the caller promised; `remote` is an address of this same process,
            // which whoever asks for `MemOptions::attach` promises to be valid. They may overlap.
            unsafe { std::ptr::copy(std::ptr::with_exposed_provenance(remote as usize), local, len) };
        }
        Ok(())
    }

    unsafe fn write(&self, peer: Task, remote: u64, local: *const u8, len: usize) -> io::Result<()> {
        self.check(peer, remote, len)?;
        if len > 0 {
            // SAFETY: as in `read`, the other way round.
            unsafe { std::ptr::copy(local, std::ptr::with_exposed_provenance_mut(remote as usize), len) };
        }
        Ok(())
    }
}
