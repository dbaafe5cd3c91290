//! The memory that a program has registered with a port.

/// The most bytes of a message, a put or a get.
const LONGEST: u64 = u32::MAX as u64;

/// Whether this can be memory at all, and not too much for the network.
pub fn is_memory(address: usize, length: u64) -> bool {
    length == 0 || length <= LONGEST && address != 0 && address.checked_add(length as usize).is_some()
}

/// Pieces of memory: start, and length in bytes.
#[derive(Debug, Default)]
pub struct Registered(Vec<(usize, usize)>);

impl Registered {
    /// One piece more.
    pub fn add(&mut self, address: usize, length: usize) {
        self.0.push((address, length));
    }

    /// One piece less; `false`: there is none like it.
    pub fn remove(&mut self, address: usize, length: usize) -> bool {
        let place = self.0.iter().position(|one| *one == (address, length));
        place.map(|place| self.0.swap_remove(place)).is_some()
    }

    /// The piece that begins here is gone; its length in bytes.
    pub fn remove_at(&mut self, address: usize) -> Option<usize> {
        let place = self.0.iter().position(|(start, _)| *start == address)?;
        Some(self.0.swap_remove(place).1)
    }

    /// Whether one piece has all of this memory.
    pub fn has(&self, address: usize, length: usize) -> bool {
        let has = |&(start, size): &(usize, usize)| {
            let into = address.checked_sub(start);
            into.is_some_and(|into| into <= size && length <= size - into)
        };
        length == 0 || self.0.iter().any(has)
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
    fn memory_is_registered_as_a_whole() {
        let mut registered = Registered::default();
        registered.add(1000, 100);
        registered.add(1100, 100);
        assert!(registered.has(1000, 100) && registered.has(1199, 1) && registered.has(5, 0));
        assert!(!registered.has(1050, 100), "it is two pieces");
        assert!(!registered.has(999, 2) && !registered.has(usize::MAX, 2));
        assert!(registered.remove(1000, 100) && !registered.remove(1000, 100));
        assert_eq!((registered.remove_at(1100), registered.remove_at(1100)), (Some(100), None));
    }
}
