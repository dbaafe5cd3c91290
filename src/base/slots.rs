//! A table with a place for each task, in which few places are taken.

use bytemuck::Zeroable;
use bytemuck::allocation::zeroed_slice_box;
use std::mem::MaybeUninit;

/// A number of places, each free or with a value. A page of the table takes no memory until a value
/// is put into it: all bytes of free places are zero.
pub struct Slots<T> {
    slots: Box<[Slot<T>]>,
    /// The places that are taken.
    taken: Vec<u32>,
}

struct Slot<T> {
    taken: bool,
    /// Valid when `taken`.
    value: MaybeUninit<T>,
}

// SAFETY: zeros are a free slot: `taken` is false, and bytes without a meaning may be anything.
unsafe impl<T> Zeroable for Slot<T> {}

impl<T> Slots<T> {
    /// `count` free places.
    pub fn new(count: u32) -> Self {
        Self { slots: zeroed_slice_box(count as usize), taken: Vec::new() }
    }

    /// All values, in no order. It costs what there is, not the number of places.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.taken.iter().filter_map(|&place| self.get(place))
    }

    /// The value in a place; `None` when it is free, or there is no such place.
    #[inline]
    pub fn get(&self, place: u32) -> Option<&T> {
        let slot = self.slots.get(place as usize)?;
        // SAFETY: a taken slot has a value.
        slot.taken.then(|| unsafe { slot.value.assume_init_ref() })
    }

    /// The value in a place, to be changed; `None` when it is free, or there is no such place.
    #[inline]
    pub fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        let slot = self.slots.get_mut(place as usize)?;
        // SAFETY: a taken slot has a value.
        slot.taken.then(|| unsafe { slot.value.assume_init_mut() })
    }

    /// Changes all values, in no order.
    pub fn update(&mut self, mut change: impl FnMut(&mut T)) {
        for at in 0..self.taken.len() {
            self.get_mut(self.taken[at]).into_iter().for_each(&mut change);
        }
    }

    /// Puts a value into a free place.
    ///
    /// # Panics
    /// When the place is taken, or does not exist.
    pub fn put(&mut self, place: u32, value: T) {
        let slot = &mut self.slots[place as usize];
        assert!(!slot.taken, "place {place} is taken");
        slot.value.write(value);
        slot.taken = true;
        self.taken.push(place);
    }

    /// Takes the value out of a place, which is free from then on.
    pub fn take(&mut self, place: u32) -> Option<T> {
        let slot = self.slots.get_mut(place as usize)?;
        if !std::mem::take(&mut slot.taken) {
            return None;
        }
        self.taken.retain(|&taken| taken != place);
        // SAFETY: the slot was taken, so it has a value, which is not used again: the slot is
        // free from now on.
        Some(unsafe { slot.value.assume_init_read() })
    }
}

impl<T> Drop for Slots<T> {
    fn drop(&mut self) {
        while let Some(&place) = self.taken.last() {
            drop(self.take(place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn a_value_lives_from_put_to_take_or_to_the_end_of_the_table() {
        let value = Rc::new(());
        let mut slots = Slots::new(3);
        slots.put(0, value.clone());
        slots.put(2, value.clone());
        assert!(slots.get(0).is_some() && slots.get(1).is_none() && slots.get_mut(3).is_none());
        assert!(slots.take(0).is_some() && slots.take(0).is_none() && slots.get(0).is_none());
        assert_eq!(Rc::strong_count(&value), 2);
        slots.put(0, value.clone());
        assert_eq!(slots.iter().count(), 2);
        slots.update(|value| *value = Rc::new(()));
        assert_eq!(Rc::strong_count(&value), 1);
        drop(slots);
        assert_eq!(Rc::strong_count(&value), 1);
    }

    #[test]
    #[should_panic(expected = "place 1 is taken")]
    fn a_taken_place_is_not_overwritten() {
        let mut slots = Slots::new(2);
        slots.put(1, ());
        slots.put(1, ());
    }
}
