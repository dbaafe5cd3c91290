//! Copies between the tasks of a network, all of which are in one address space.

use super::MemTransport;
use crate::transport::{Access, AccessId, Copy, PeerState, RemoteAccess, Started, Task};
use rustix::io::Errno;
use std::io;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

impl RemoteAccess for MemTransport {
    fn reaches(&self, _peer: Task) -> bool {
        self.network.options.remote
    }

    unsafe fn start(&mut self, access: Access, peer: Task, copies: &[Copy]) -> io::Result<Started> {
        if self.network.options.pending {
            let id = AccessId(self.network.next_ticket());
            self.accesses.push_back(Pending { id, access, peer, copies: copies.into() });
            return Ok(Started::Pending(id));
        }
        // SAFETY: the caller's promise.
        unsafe { self.make(access, peer, copies) }.map(|()| Started::Done)
    }

    fn poll(&mut self) -> Option<(AccessId, io::Result<()>)> {
        self.made.pop_front().map(|access| (access.id, access.outcome))
    }
}

/// A remote access that waits to be made.
pub(super) struct Pending {
    id: AccessId,
    access: Access,
    pub(super) peer: Task,
    copies: Box<[Copy]>,
}

// SAFETY: the addresses are the program's; the code that starts an access promises that they are valid for it.
unsafe impl Send for Pending {}

/// A remote access that was made, and how it went.
pub(super) struct Made {
    id: AccessId,
    pub(super) peer: Task,
    outcome: io::Result<()>,
}

impl MemTransport {
    /// Makes the accesses that were started.
    pub(super) fn make_accesses(&mut self) {
        while let Some(Pending { id, access, peer, copies }) = self.accesses.pop_front() {
            // SAFETY: the promise of the caller of `start`, which holds until the access is reported.
            let outcome = unsafe { self.make(access, peer, &copies) };
            self.made.push_back(Made { id, peer, outcome });
        }
    }

    /// # Safety
    /// As for [`RemoteAccess::start`].
    unsafe fn make(&self, access: Access, peer: Task, copies: &[Copy]) -> io::Result<()> {
        for copy in copies {
            self.check(peer, copy)?;
            if copy.len == 0 {
                continue;
            }
            // SAFETY: the caller promises the local place. The remote address belongs to this same process, and the code
            // that sets `MemOptions::remote` promises that it is valid. The two may overlap.
            unsafe {
                match access {
                    Access::Read => {
                        std::ptr::copy(with_exposed_provenance(copy.remote as usize), copy.local, copy.len);
                    }
                    Access::Write => {
                        let remote = with_exposed_provenance_mut(copy.remote as usize);
                        std::ptr::copy(copy.local.cast_const(), remote, copy.len);
                    }
                }
            }
        }
        Ok(())
    }

    fn check(&self, peer: Task, copy: &Copy) -> io::Result<()> {
        if self.network.end(peer).state() == PeerState::Dead {
            return Err(Errno::SRCH.into());
        }
        let end = usize::try_from(copy.remote).ok().and_then(|start| start.checked_add(copy.len));
        if copy.len > 0 && (copy.remote == 0 || end.is_none()) {
            return Err(Errno::FAULT.into());
        }
        Ok(())
    }
}
