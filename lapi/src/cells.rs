//! Copies of elements that other threads and tasks may change at any time: as atomic words.
//!
//! A word of an element is the largest integer that divides its size and is no more aligned than
//! it. All accesses to one memory are of one type, so that no two accesses of different sizes meet.

use bytemuck::Pod;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// The bytes of a word of `T`.
const fn word<T>() -> usize {
    let all = size_of::<T>() | align_of::<T>() | 8;
    1 << all.trailing_zeros()
}

macro_rules! by_words {
    ($type:ty, $run:ident, $($arguments:expr),*) => {
        match word::<$type>() {
            8 => $run!(AtomicU64, u64, $($arguments),*),
            4 => $run!(AtomicU32, u32, $($arguments),*),
            2 => $run!(AtomicU16, u16, $($arguments),*),
            _ => $run!(AtomicU8, u8, $($arguments),*),
        }
    };
}

/// The element at an address.
///
/// # Safety
/// There must be an element, aligned, that nothing but this function and [`store`] or other
/// atomic accesses to its words accesses meanwhile; or what does must be outside of what the
/// compiler sees.
#[inline]
pub unsafe fn load<T: Pod>(at: *const T) -> T {
    let mut value = T::zeroed();
    let to = &raw mut value;
    macro_rules! load {
        ($atomic:ty, $plain:ty, $at:expr, $to:expr) => {
            for word in 0..size_of::<T>() / size_of::<$plain>() {
                // SAFETY: a word of the element, and one of the value; words are no more aligned
                // than those are.
                unsafe {
                    let from = <$atomic>::from_ptr($at.cast_mut().cast::<$plain>().add(word));
                    $to.cast::<$plain>().add(word).write(from.load(Ordering::Relaxed));
                }
            }
        };
    }
    by_words!(T, load, at, to);
    value
}

/// Sets the element at an address.
///
/// # Safety
/// The conditions of [`load`] hold.
#[inline]
pub unsafe fn store<T: Pod>(at: *mut T, value: T) {
    let from = &raw const value;
    macro_rules! store {
        ($atomic:ty, $plain:ty, $at:expr, $from:expr) => {
            for word in 0..size_of::<T>() / size_of::<$plain>() {
                // SAFETY: as in `load`.
                unsafe {
                    let to = <$atomic>::from_ptr($at.cast::<$plain>().add(word));
                    to.store($from.cast::<$plain>().add(word).read(), Ordering::Relaxed);
                }
            }
        };
    }
    by_words!(T, store, at, from);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;

    fn check<T: Pod + PartialEq + Debug>(bytes: usize, value: T) {
        assert_eq!(word::<T>(), bytes, "{value:?}");
        let mut elements = [T::zeroed(); 3];
        let at = elements.as_mut_ptr();
        // SAFETY: the second of three elements, which this thread alone accesses.
        let read = unsafe {
            store(at.add(1), value);
            load(at.add(1))
        };
        assert_eq!((read, elements), (value, [T::zeroed(), value, T::zeroed()]));
    }

    #[test]
    fn an_element_is_all_its_words() {
        check(1, 7u8);
        check(1, [1u8, 2, 3]);
        check(2, [1u16, 2, 3]);
        check(4, -5i32);
        check(4, [1f32, 2.5, 3.5]);
        check(8, 1.25f64);
        check(8, [u64::MAX, 1, 2]);
        check(8, u128::MAX - 1);
        check(1, [0u8; 0]);
    }

    /// Two threads of a task may use one element of a window. ThreadSanitizer reports a race here
    /// when the accesses are volatile ones.
    #[test]
    fn threads_may_load_and_store_at_once() {
        let mut element = [0u64; 2];
        let at = element.as_mut_ptr() as usize;
        std::thread::scope(|scope| {
            for thread in 0..2u64 {
                scope.spawn(move || {
                    for round in 0..1000 {
                        let at = at as *mut [u64; 2];
                        // SAFETY: an element that lives as long as the threads, and that they
                        // access by these functions alone.
                        let [first, second] = unsafe {
                            store(at, [round << 1 | thread; 2]);
                            load(at)
                        };
                        assert!(first < 2000 && second < 2000);
                    }
                });
            }
        });
    }
}
