//! The transport of a context. The calls that every small message makes know shared memory where
//! that is the only transport, so that they are part of what calls them; all others go through the
//! table of functions.

use super::shm::ShmTransport;
use super::{Door, Endpoint, Look, Seen, Task, Transport};
use std::ops::{Deref, DerefMut};

/// See the module's documentation.
pub enum AnyTransport {
    /// All tasks of the job are on this machine.
    Shared(Box<ShmTransport>),
    /// Any other.
    Other(Box<dyn Transport>),
}

impl AnyTransport {
    /// See [`super::Endpoint::door`].
    #[inline(always)]
    pub fn door(&mut self, peer: Task) -> Option<&mut Door> {
        match self {
            Self::Shared(shared) => shared.door(peer),
            Self::Other(other) => door_of_other(&mut **other, peer),
        }
    }

    /// See [`super::Endpoint::look`].
    #[inline(always)]
    pub fn look(&mut self, look: Look) -> Seen<'_> {
        match self {
            Self::Shared(shared) => shared.look(look),
            Self::Other(other) => look_of_other(&mut **other, look),
        }
    }
}

// Away from the callers, which get by with registers.

#[cold]
#[inline(never)]
fn door_of_other(other: &mut dyn Transport, peer: Task) -> Option<&mut Door> {
    other.door(peer)
}

#[cold]
#[inline(never)]
fn look_of_other(other: &mut dyn Transport, look: Look) -> Seen<'_> {
    other.look(look)
}

impl From<ShmTransport> for AnyTransport {
    fn from(shared: ShmTransport) -> Self {
        Self::Shared(Box::new(shared))
    }
}

impl From<Box<dyn Transport>> for AnyTransport {
    fn from(other: Box<dyn Transport>) -> Self {
        Self::Other(other)
    }
}

impl Deref for AnyTransport {
    type Target = dyn Transport;

    #[inline]
    fn deref(&self) -> &Self::Target {
        match self {
            Self::Shared(shared) => &**shared,
            Self::Other(other) => &**other,
        }
    }
}

impl DerefMut for AnyTransport {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Shared(shared) => &mut **shared,
            Self::Other(other) => &mut **other,
        }
    }
}
