//! Two hosts for a test that chooses what carries the packets between them.

use super::{Hosts, Launcher, Layout};
use crate::installed::skipped;
use crate::job::Job;
use crate::transport::{has_fabric, on_network};

/// What carries the packets between the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// libfabric, by the provider that every machine has.
    Fabric,
    /// LAPI's own transport.
    Udp,
}

impl Network {
    /// The job with this transport.
    #[must_use]
    pub fn select(self, job: Job) -> Job {
        match self {
            Self::Fabric => job.env("LAPI_FABRIC_PROVIDER", "tcp;ofi_rxm"),
            Self::Udp => job.env("MP_EUILIB", "ip"),
        }
    }

    /// Two hosts for it with this number of links; or a loud end of the test.
    #[must_use]
    pub fn hosts(self, what: &str, rails: usize) -> Option<Hosts> {
        self.hosts_of(what, Layout { hosts: 2, rails, own_tmp: false })
    }

    /// Hosts of this layout for it; or a loud end of the test.
    #[must_use]
    pub fn hosts_of(self, what: &str, layout: Layout) -> Option<Hosts> {
        if self == Self::Fabric && !has_fabric() {
            skipped(what, "libfabric.so.1 is not installed");
            return None;
        }
        if on_network(what, "the test chooses the transport itself") {
            return None;
        }
        if Launcher::Hydra.command().is_none() && Launcher::OpenMpi.command().is_none() {
            skipped(what, "neither mpiexec.hydra nor mpirun is installed");
            return None;
        }
        Hosts::with(layout).map_err(|why| skipped(what, &why)).ok()
    }
}
