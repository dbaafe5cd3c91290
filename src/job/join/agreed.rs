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
        // A task without a neighbour needs no shared memory.
        let transport = match shares && hosts.here().len() != 1 {
            true => Some(shared_memory::open(place, hosts, (job, Some(secret)), processes)?),
            false => None,
        };
        // Every task has the same MAX_PKT_SZ, whether it has a neighbour or not.
        let limited = shares && hosts.count() < tasks;
        let longest_body = if limited { shared_memory::longest_body(hosts.largest()) } else { usize::MAX };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::test_deadline;
    use crate::base::thread::ThreadConfig;
    use crate::config::Config;
    use crate::error::Log;
    use crate::job::{Identity, Link};
    use crate::transport::{Endpoint, Outgoing, Piece, SendOutcome};
    use std::time::Instant;

    /// Two of 2,048 tasks share a host: their numbers are higher than those of tasks that can share
    /// memory.
    #[test]
    fn two_tasks_of_a_large_job_share_memory() {
        let config = Config::from_env(&|_| None).expect("valid");
        let key = format!("a large job of process {}", std::process::id());
        let open = |task: u32| {
            let identity = Identity { task, tasks: 2048, ..Identity::alone() };
            let link = Link::none();
            let openings = link.openings(&key, identity.tasks, 0);
            let place = Joining {
                config: &config,
                identity: &identity,
                instance: 0,
                thread_config: Some(ThreadConfig::PLAIN),
                log: &Log::none(),
                link: &link,
                openings: &openings,
                opening: openings.open(task),
                replaces: false,
                ignores_addresses: false,
            };
            let hosts = Hosts::new(task, (0..2048).map(|task| if task == 1501 { 1500 } else { task }));
            let near = Near::open(&place, &hosts, (&key, &Secret::default()), Box::default());
            let near = near.expect("shared memory");
            assert_eq!(near.longest_body, shared_memory::longest_body(2));
            near.transport.expect("it has a neighbour")
        };
        let (mut one, mut other) = (open(1500), open(1501));
        let head = [7_u8; 8];
        let packet = Outgoing {
            head: &head,
            first: Piece::EMPTY,
            second: Piece::EMPTY.into(),
            copy_limit: usize::MAX,
        };
        let end = Instant::now() + test_deadline();
        // SAFETY: the head lives during the call.
        while unsafe { one.try_send(1501, &packet) } != SendOutcome::Sent {
            assert!(Instant::now() < end && other.recv().is_none(), "it is not sent");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let received = std::iter::from_fn(|| (Instant::now() < end).then(|| other.recv())).flatten().next();
        let received = received.expect("the packet");
        assert_eq!(received.src, 1500);
        other.release(received);
    }
}
