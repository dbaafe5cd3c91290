//! The instances of an interface: which are taken, and the handles that name them.
//!
//! A handle has the index of an instance and a generation, so that one that has been ended stays
//! wrong when its instance is taken again. The C and the Rust interface have instances of their
//! own: a process that uses both says which it means.

use openlapi::abi::{LAPI_ERR_ALL_HNDL_IN_USE, lapi_handle_t};
use openlapi::api::env::INSTANCES;
use openlapi::error::{Error, Result};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// All instances of one interface.
pub struct Instances {
    taken: [AtomicBool; INSTANCES],
    /// How many handles were made.
    generation: AtomicU32,
}

impl Instances {
    /// None is taken.
    pub const fn new() -> Self {
        Self { taken: [const { AtomicBool::new(false) }; INSTANCES], generation: AtomicU32::new(0) }
    }

    /// Takes the instance `number`, 1 and up; 0 is the lowest free one. Returns its index, from 0.
    ///
    /// # Errors
    /// `LAPI_ERR_ALL_HNDL_IN_USE`: it is taken, or does not exist, or all are taken.
    pub fn take(&self, number: u32) -> Result<usize> {
        let mut wanted = match number {
            0 => 0..INSTANCES,
            _ => number as usize - 1..(number as usize).min(INSTANCES),
        };
        wanted.find(|&index| !self.taken[index].swap(true, Ordering::AcqRel)).ok_or_else(|| {
            let detail = format!("instance {number}; there are {INSTANCES}, and each can be open once");
            Error::new(LAPI_ERR_ALL_HNDL_IN_USE, detail)
        })
    }

    /// Gives an instance back.
    pub fn release(&self, index: usize) {
        self.taken[index].store(false, Ordering::Release);
    }

    /// Gives all back: a forked child has none of its parent's.
    pub fn release_all(&self) {
        (0..INSTANCES).for_each(|index| self.release(index));
    }

    /// A handle of this instance that was not returned before.
    pub fn handle(&self, index: usize) -> lapi_handle_t {
        let generation = self.generation.fetch_add(1, Ordering::Relaxed) & (u32::MAX >> 6);
        generation * INSTANCES as u32 + index as u32 + 1
    }
}

impl Default for Instances {
    fn default() -> Self {
        Self::new()
    }
}

/// The index of the instance that a handle names, whatever its generation.
#[inline(always)]
pub fn index(handle: lapi_handle_t) -> usize {
    handle.wrapping_sub(1) as usize % INSTANCES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_taken_once_and_its_handles_differ() {
        let instances = Instances::new();
        assert_eq!(
            (instances.take(2).ok(), instances.take(0).ok(), instances.take(0).ok()),
            (Some(1), Some(0), Some(2))
        );
        for wrong in [2, INSTANCES as u32 + 1, u32::MAX] {
            assert_eq!(instances.take(wrong).expect_err("it is not free").code, LAPI_ERR_ALL_HNDL_IN_USE);
        }
        let (first, second) = (instances.handle(1), instances.handle(1));
        assert_ne!(first, second);
        assert_eq!((index(first), index(second), index(instances.handle(15))), (1, 1, 15));
        instances.release(1);
        assert_eq!(instances.take(2).ok(), Some(1));
        instances.release_all();
        assert!((1..=INSTANCES as u32).all(|number| instances.take(number).is_ok()));
        assert!(instances.take(0).is_err());
    }
}
