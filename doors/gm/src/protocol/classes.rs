//! The buffers that a program has provided, by size and priority, and who waits for one.

use crate::abi::SIZES;
use std::collections::VecDeque;

/// A provided buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The buffer's address.
    pub address: usize,
    /// The buffer's tag.
    pub tag: u8,
}

/// Buffers of one size and priority.
#[derive(Debug, Default)]
struct Class {
    free: VecDeque<Buffer>,
    /// Connections that wait for one, by index, in their order.
    waiting: VecDeque<u32>,
    /// How many of the free buffers are promised to connections that have waited.
    promised: usize,
}

/// All buffers of a port.
#[derive(Debug)]
pub struct Classes(Box<[Class]>);

impl Classes {
    /// None.
    pub fn new() -> Self {
        Self((0..usize::from(SIZES) * 2).map(|_| Class::default()).collect())
    }

    /// The number of a class.
    pub fn of(size: u8, priority: u8) -> u8 {
        size * 2 + priority
    }

    /// A buffer more.
    pub fn provide(&mut self, class: u8, buffer: Buffer) {
        self.at(class).free.push_back(buffer);
    }

    /// A buffer that was taken for nothing is there again, before all others.
    pub fn give_back(&mut self, class: u8, buffer: Buffer) {
        self.at(class).free.push_front(buffer);
    }

    /// A buffer for a connection that has no promise.
    pub fn take(&mut self, class: u8) -> Option<Buffer> {
        let class = self.at(class);
        if class.free.len() > class.promised { class.free.pop_front() } else { None }
    }

    /// The buffer that was promised.
    pub fn take_promised(&mut self, class: u8) -> Option<Buffer> {
        let class = self.at(class);
        class.promised -= 1;
        class.free.pop_front()
    }

    /// A connection waits from now on.
    pub fn wait(&mut self, class: u8, connection: u32) {
        self.at(class).waiting.push_back(connection);
    }

    /// A connection does not wait any more.
    pub fn leave(&mut self, class: u8, connection: u32) {
        self.at(class).waiting.retain(|waiting| *waiting != connection);
    }

    /// A promise is not needed. [`Self::promise`] says who gets it.
    pub fn decline(&mut self, class: u8) {
        self.at(class).promised -= 1;
    }

    /// A connection that waits and for which there is a buffer: it has a promise from now on.
    pub fn promise(&mut self, class: u8) -> Option<u32> {
        let class = self.at(class);
        if class.free.len() <= class.promised {
            return None;
        }
        let next = class.waiting.pop_front()?;
        class.promised += 1;
        Some(next)
    }

    fn at(&mut self, class: u8) -> &mut Class {
        &mut self.0[usize::from(class)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_waited_first_gets_the_next_buffer() {
        let mut classes = Classes::new();
        let class = Classes::of(5, 1);
        let buffer = |address| Buffer { address, tag: 3 };
        assert_eq!(classes.take(class), None);
        classes.wait(class, 7);
        classes.wait(class, 8);
        assert_eq!(classes.promise(class), None);
        classes.provide(class, buffer(1));
        assert_eq!((classes.promise(class), classes.promise(class)), (Some(7), None));
        assert_eq!(classes.take(class), None, "it is promised");
        classes.decline(class);
        assert_eq!(classes.promise(class), Some(8));
        assert_eq!(classes.take_promised(class), Some(buffer(1)));
        classes.provide(class, buffer(2));
        assert_eq!(classes.take(Classes::of(5, 0)), None, "another priority");
        assert_eq!(classes.take(class), Some(buffer(2)));
        classes.wait(class, 9);
        classes.leave(class, 9);
        classes.give_back(class, buffer(2));
        assert_eq!((classes.promise(class), classes.take(class)), (None, Some(buffer(2))));
    }
}
