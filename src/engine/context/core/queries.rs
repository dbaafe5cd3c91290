//! What the calls of the manual read and set in a core, value by value.

use crate::abi::{LAPI_ERR_MEMORY_EXHAUSTED, ddm_func_p};
use crate::engine::context::Held;
use crate::engine::context::settings::Options;
use crate::engine::context::statistics::Path;
use crate::engine::context::wait_policy::WaitPolicy;
use crate::error::{Error, Result};
use crate::job::Hosts;
use crate::job::addresses::Addresses;
use crate::transport::{Limits, Reach, Task};
use rustix::io::fcntl_dupfd_cloexec;
use std::os::fd::OwnedFd;

/// The statistics of a context, by the path that data takes.
pub struct Statistics {
    /// Data to and from tasks of other hosts.
    pub network: Path,
    /// Data to and from tasks with which this one shares memory, and what they have fetched
    /// by themselves.
    pub peers: Path,
    /// Data to oneself.
    pub local: Path,
}

impl Held<'_> {
    /// What is fixed since the context was opened. Users of the library get copies of it: a
    /// reference into the core could still be there when a handler makes a call of its own.
    #[inline]
    pub(crate) fn options(&mut self) -> &Options {
        &self.core().options
    }

    /// This task's number.
    pub fn task(&mut self) -> Task {
        self.options().me
    }

    /// The number of tasks in the job.
    pub fn tasks(&mut self) -> u32 {
        self.options().tasks
    }

    /// Which tasks share a host.
    pub fn hosts(&mut self) -> Hosts {
        self.options().hosts.clone()
    }

    /// Where the tasks receive, if the program has said that.
    pub fn addresses(&mut self) -> Option<Addresses> {
        self.options().addresses.clone()
    }

    /// How long threads poll before they sleep.
    pub fn wait_policy(&mut self) -> WaitPolicy {
        self.options().wait_policy
    }

    /// A descriptor for what the transport's own one is, for as long as its owner wants.
    ///
    /// # Errors
    /// LAPI_ERR_MEMORY_EXHAUSTED: no descriptor is left.
    pub(crate) fn descriptor(&mut self) -> Result<OwnedFd> {
        fcntl_dupfd_cloexec(self.core().transport.event_fd(), 0).map_err(|reason| {
            Error::new(LAPI_ERR_MEMORY_EXHAUSTED, format!("no descriptor for the session: {reason}"))
        })
    }

    /// The data that one packet carries, in bytes.
    pub fn packet_size(&mut self) -> usize {
        self.core().outbox.packet_size()
    }

    /// What the transport carries to and from another task, where all are alike; in a job of one
    /// task, to the task itself.
    pub fn limits(&mut self) -> Limits {
        let core = self.core();
        core.transport.limits(u32::from(core.options.me == 0 && core.options.tasks > 1))
    }

    /// Whether bulk transfer is enabled, and some peer's memory is reached by keys.
    pub fn has_bulk_transfer(&mut self) -> bool {
        let core = self.core();
        let (me, tasks) = (core.options.me, core.options.tasks);
        core.options.bulk.by_key
            && (0..tasks).any(|peer| peer != me && matches!(core.reach(peer), Reach::Keyed(_)))
    }

    /// The statistics until now.
    pub fn statistics(&mut self) -> Statistics {
        let core = self.core();
        let tally = core.transport.tally();
        let peers = Path { bytes_sent: core.stats.peers.bytes_sent + tally.fetched, ..core.stats.peers };
        let network = Path { tally, ..core.stats.network };
        Statistics { network, peers, local: core.stats.local }
    }

    /// How often threads of the program have polled until now.
    pub fn polls(&mut self) -> u64 {
        self.core().waiters.activity
    }

    /// Registers a function under an index (LAPI_Addr_set).
    ///
    /// # Errors
    /// LAPI_ERR_ADDR_HNDL_RANGE: the index is not valid.
    pub fn register_function(&mut self, index: i32, function: usize) -> Result<()> {
        self.core().addresses.set(index, function)
    }

    /// The function that was registered under an index, 0 for none (LAPI_Addr_get).
    ///
    /// # Errors
    /// LAPI_ERR_ADDR_HNDL_RANGE: the index is not valid.
    pub fn registered_function(&mut self, index: i32) -> Result<usize> {
        self.core().addresses.get(index)
    }

    /// Sets the function that CONTROL calls (LAPI_REG_DDM_FUNC).
    pub fn set_ddm_function(&mut self, function: ddm_func_p) {
        self.core().ddm = function;
    }

    /// The function that CONTROL calls.
    pub fn ddm_function(&mut self) -> ddm_func_p {
        self.core().ddm
    }
}
