//! The memory that a program has registered with a port.

use std::collections::{BTreeMap, HashMap};

/// The most bytes of a message, a put or a get.
const LONGEST: u64 = u32::MAX as u64;

/// Whether this can be memory at all, and not too much for the network.
pub fn is_memory(address: usize, length: u64) -> bool {
    length == 0 || length <= LONGEST && address != 0 && address.checked_add(length as usize).is_some()
}

/// The memory that is registered, as a count of registrations from each address on, up to the next
/// one. A program may register what it has registered already, and any pieces of what it has.
#[derive(Debug, Default)]
pub struct Registered {
    counts: BTreeMap<usize, u32>,
    /// The lengths of what was allocated so, in bytes.
    allocated: HashMap<usize, usize>,
}

impl Registered {
    /// One piece more.
    pub fn add(&mut self, address: usize, length: usize) {
        self.change(address, length, |count| count.saturating_add(1));
    }

    /// One piece more, which [`Self::remove_at`] knows.
    pub fn add_allocated(&mut self, address: usize, length: usize) {
        self.add(address, length);
        self.allocated.insert(address, length);
    }

    /// One piece less, of any that were added; `false`: not all of it is registered.
    pub fn remove(&mut self, address: usize, length: usize) -> bool {
        let has = self.has(address, length);
        if has {
            self.change(address, length, |count| count - 1);
        }
        has
    }

    /// What was allocated here is gone, with what of it is still registered.
    pub fn remove_at(&mut self, address: usize) {
        if let Some(length) = self.allocated.remove(&address) {
            self.change(address, length, |count| count.saturating_sub(1));
        }
    }

    /// Whether all of this memory is registered, in one piece or in several.
    pub fn has(&self, address: usize, length: usize) -> bool {
        if length == 0 {
            return true;
        }
        let Some(last) = address.checked_add(length - 1) else { return false };
        self.count(address) != 0 && self.counts.range(address..=last).all(|(_, count)| *count != 0)
    }

    /// How often the byte here is registered.
    fn count(&self, address: usize) -> u32 {
        self.counts.range(..=address).next_back().map_or(0, |(_, count)| *count)
    }

    /// Changes the counts of a piece. What lies beyond the last address is none.
    fn change(&mut self, address: usize, length: usize, to: impl Fn(u32) -> u32) {
        let end = address.saturating_add(length);
        if end == address {
            return;
        }
        for edge in [address, end] {
            let count = self.count(edge);
            self.counts.insert(edge, count);
        }
        self.counts.range_mut(address..end).for_each(|(_, count)| *count = to(*count));
        // Neighbours with the same count are one.
        let mut before = address.checked_sub(1).map_or(0, |before| self.count(before));
        let places: Vec<usize> = self.counts.range(address..=end).map(|(place, _)| *place).collect();
        for place in places {
            let count = self.count(place);
            if count == before {
                self.counts.remove(&place);
            }
            before = count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_an_address_and_an_end() {
        assert!(is_memory(0, 0) && is_memory(8, LONGEST) && is_memory(usize::MAX - 5, 5));
        assert!(!is_memory(0, 1) && !is_memory(8, LONGEST + 1) && !is_memory(usize::MAX - 5, 6));
        assert!(!is_memory(8, u64::MAX));
    }

    #[test]
    fn memory_is_registered_in_any_pieces() {
        let mut registered = Registered::default();
        registered.add(1000, 100);
        registered.add(1200, 100);
        assert!(registered.has(1000, 100) && registered.has(1299, 1) && registered.has(5, 0));
        assert!(!registered.has(1050, 200), "there is a gap");
        registered.add(1100, 100);
        assert!(registered.has(1050, 200), "three pieces");
        assert!(!registered.has(999, 2) && !registered.has(1299, 2) && !registered.has(usize::MAX, 2));
        assert!(registered.remove(1050, 100), "a part of what was registered");
        assert!(registered.has(1000, 50) && registered.has(1150, 150) && !registered.has(1149, 1));
        assert!(!registered.remove(1000, 51) && registered.has(1000, 50));
        registered.add(1160, 10);
        registered.add(1160, 10);
        assert!(registered.remove(1160, 10) && registered.remove(1160, 10) && registered.has(1150, 150));
        assert!(registered.remove(1160, 10) && !registered.has(1165, 1));
        assert!(registered.remove(1000, 50) && registered.remove(1150, 10) && registered.remove(1170, 130));
        assert!(registered.counts.is_empty(), "{registered:?}");
        registered.add_allocated(4096, 10);
        registered.remove_at(4097);
        assert!(registered.has(4096, 10));
        registered.remove_at(4096);
        assert!(!registered.has(4096, 1));
        registered.add_allocated(4096, 100);
        assert!(registered.remove(4106, 10));
        registered.remove_at(4096);
        assert!(registered.counts.is_empty(), "{registered:?}");
        registered.add(usize::MAX - 9, 10);
        assert!(!registered.has(usize::MAX, 1) && registered.has(usize::MAX - 9, 9));
    }
}
