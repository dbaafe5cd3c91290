//! What the tasks of several hosts have agreed upon when each of them joins its transports.

use crate::abi::LAPI_ERR_CSS_LOAD_FAILED;
use crate::error::{Error, Result};
use crate::job::exchange::Exchange;
use crate::job::hosts::numbered;
use crate::job::secret::Secret;
use crate::transport::Transport;
use crate::transport::coalescing::Coalescing;
use crate::transport::route::Route;
use crate::transport::shm::ShmTransport;
use crate::wire::card::Card;

/// What the tasks have agreed upon, and what the network is joined with.
pub(super) struct Agreed {
    /// What all tasks have published.
    pub(super) cards: Vec<Card>,
    pub(super) exchange: Box<dyn Exchange>,
    pub(super) secret: Secret,
    /// Shared memory, where this task has neighbours.
    pub(super) near: Option<ShmTransport>,
    /// By task: whether it is on this host.
    pub(super) here: Box<[bool]>,
    /// The longest body of a packet between whatever tasks of the job, as shared memory has it.
    pub(super) longest_body: usize,
}

/// The network, and shared memory where there is some. With `coalesces`, small packets of a stream
/// leave together.
pub(super) fn join<F: Transport + 'static>(
    far: F,
    coalesces: bool,
    near: Option<ShmTransport>,
    here: Box<[bool]>,
) -> Result<Box<dyn Transport>> {
    let far = Coalescing::new(far, coalesces);
    Ok(match near {
        Some(near) => Box::new(Route::new(near, far, here)?),
        None => Box::new(far),
    })
}

/// The groups of tasks that see each other's processes, numbered: the group of each task.
pub(super) fn groups(cards: &[Card]) -> Vec<u32> {
    numbered(cards.iter().enumerate().map(|(task, card)| {
        // One whose numbering is unknown is a group by itself.
        let alone = if card.pid_namespace == 0 { task + 1 } else { 0 };
        (card.host, card.pid_namespace, alone)
    }))
}

#[cold]
pub(super) fn failed(detail: impl Into<String>) -> Error {
    Error::new(LAPI_ERR_CSS_LOAD_FAILED, detail)
}
