//! What the tasks of several hosts have agreed upon when each of them joins its transports.

use super::{Joining, shared_memory};
use crate::abi::LAPI_ERR_SHM_SETUP;
use crate::base::process::Process;
use crate::config::UseShm;
use crate::error::{Error, Result};
use crate::job::Hosts;
use crate::job::exchange::Exchange;
use crate::job::hosts::numbered;
use crate::job::secret::Secret;
use crate::transport::Transport;
use crate::transport::coalescing::Coalescing;
use crate::transport::route::Route;
use crate::transport::shm::ShmTransport;
use crate::wire::card::Card;

pub(super) use crate::job::exchange::failed;

/// What the tasks have agreed upon, and what the network is joined with.
pub(super) struct Agreed {
    /// What all tasks have published.
    pub(super) cards: Vec<Card>,
    pub(super) exchange: Box<dyn Exchange>,
    pub(super) secret: Secret,
    pub(super) near: Near,
}

/// What is beside the network.
pub(super) struct Near {
    /// Shared memory, where this task has neighbours.
    transport: Option<ShmTransport>,
    /// By task: whether it is on this host.
    pub(super) here: Box<[bool]>,
    /// The longest body of a packet between whatever tasks of the job, as shared memory has it.
    longest_body: usize,
}

impl Near {
    /// Opens shared memory to the tasks of this host, as [`shared_memory::open`] does; `job` and
    /// `secret` are what they have in common.
    pub(super) fn open(
        place: &Joining<'_>,
        hosts: &Hosts,
        (job, secret): (&str, &Secret),
        processes: Box<[Process]>,
    ) -> Result<Self> {
        let tasks = place.identity.tasks;
        let shares = place.config.use_shm != UseShm::No;
        let here = hosts.here().len() as u32;
        // A task without a neighbour needs no shared memory.
        let transport = match shares && here != 1 {
            true => Some(shared_memory::open(place, here, (job, Some(secret)), processes)?),
            false => None,
        };
        // Every task has the same MAX_PKT_SZ, whether it has a neighbour or not.
        let limited = shares && hosts.count() < tasks;
        let longest_body = if limited { shared_memory::longest_body(tasks) } else { usize::MAX };
        Ok(Self { transport, here: (0..tasks).map(|task| hosts.is_here(task)).collect(), longest_body })
    }

    /// By task: whether packets to it go by shared memory. Empty: none does.
    pub(super) fn neighbours(&self) -> Box<[bool]> {
        self.transport.as_ref().map(|_| self.here.clone()).unwrap_or_default()
    }

    /// The network, and shared memory where there is some. With `coalesces`, small packets of a
    /// stream leave together.
    pub(super) fn join<F: Transport + 'static>(self, far: F, coalesces: bool) -> Result<Box<dyn Transport>> {
        let far = Coalescing::new(far, coalesces, self.longest_body);
        Ok(match self.transport {
            Some(near) => Box::new(Route::new(near, far, self.here)?),
            None => Box::new(far),
        })
    }
}

/// Refuses the network of several hosts where LAPI_USE_SHM is `only`.
pub(super) fn may_use_network(place: &Joining<'_>, hosts: &Hosts) -> Result<()> {
    let detail = format!("{} hosts for {} tasks, and LAPI_USE_SHM=only", hosts.count(), place.identity.tasks);
    let refused = place.config.use_shm == UseShm::Only;
    if refused { Err(Error::new(LAPI_ERR_SHM_SETUP, detail)) } else { Ok(()) }
}

/// The groups of tasks that see each other's processes, numbered: the group of each task.
pub(super) fn groups(cards: &[Card]) -> Vec<u32> {
    numbered(cards.iter().enumerate().map(|(task, card)| {
        // One whose numbering is unknown is a group by itself.
        let alone = if card.pid_namespace == 0 { task + 1 } else { 0 };
        (card.host, card.pid_namespace, alone)
    }))
}
