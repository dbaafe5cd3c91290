//! Copies between the tasks of a network, all of which are in one address space.

use super::MemTransport;
use crate::transport::{Access, Copy, PeerState, RemoteAccess, Task};
use rustix::io::Errno;
use std::io;
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

impl RemoteAccess for MemTransport {
    fn reaches(&self, _peer: Task) -> bool {
        self.network.options.remote
    }

    unsafe fn start(&mut self, access: Access, peer: Task, copies: &[Copy]) -> io::Result<()> {
        for copy in copies {
            self.check(peer, copy)?;
            if copy.len == 0 {
                continue;
            }
            // SAFETY: the caller promises the local place. The remote address is one of this same process, and whoever sets
            // `MemOptions::remote` promises that it is valid. The two may overlap.
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
}

impl MemTransport {
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
