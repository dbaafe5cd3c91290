//! What this task has put into the memory of others, and got from there, without their help. They hear of it in time: of several
//! operations together, because a packet for each would cost as much as the operation.

use crate::transport::Task;

/// Operations that are announced together, at most.
const MOST: u32 = 256;
/// They are announced when the last of them ended this many ticks ago, 30 to 150 microseconds: a program that goes on with such operations
/// has started another one by then.
const QUIET: u64 = 150_000;
/// And when the first one ended so many ticks ago, 0.5 to 3 milliseconds.
const LONGEST: u64 = 3_000_000;

/// What is to be announced.
#[derive(Debug, Default)]
pub struct Accessed {
    /// In the order of tasks.
    list: Vec<Access>,
    operations: u32,
    /// When the first and the last operation ended, in ticks.
    first: u64,
    last: u64,
}

/// What is to be announced to one task: bytes that were written there, and read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The task.
    pub target: Task,
    /// Bytes of puts.
    pub written: u64,
    /// Bytes of gets.
    pub read: u64,
}

impl Accessed {
    /// A put, a get, or both, with this task has ended now.
    #[inline]
    pub fn note(&mut self, access: Access, now: u64) {
        if self.list.is_empty() {
            (self.operations, self.first) = (0, now);
        }
        (self.operations, self.last) = (self.operations + 1, now);
        match self.list.iter_mut().find(|entry| entry.target >= access.target) {
            Some(entry) if entry.target == access.target => {
                entry.written += access.written;
                entry.read += access.read;
            }
            _ => self.insert(access),
        }
    }

    #[cold]
    fn insert(&mut self, access: Access) {
        let at = self.list.partition_point(|entry| entry.target < access.target);
        self.list.insert(at, access);
    }

    /// Whether nothing is to be announced.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether it is time, if there is something.
    #[inline]
    pub fn is_due(&self, now: u64) -> bool {
        self.operations >= MOST
            || now.wrapping_sub(self.last) >= QUIET
            || now.wrapping_sub(self.first) >= LONGEST
    }

    /// What is to be announced to one of the tasks.
    pub fn take(&mut self) -> Option<Access> {
        self.list.pop()
    }

    /// Nothing is announced to this task.
    pub fn forget(&mut self, target: Task) {
        self.list.retain(|entry| entry.target != target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_announced_once() {
        let (mut accessed, mut announced) = (Accessed::default(), [(0, 0); 3]);
        let mut take = |accessed: &mut Accessed| {
            while let Some(Access { target, written, read }) = accessed.take() {
                let sum = &mut announced[target as usize];
                (sum.0, sum.1) = (sum.0 + written, sum.1 + read);
            }
        };
        for operation in 0..1000 {
            let target = [2, 0, 1][operation % 3];
            accessed.note(Access { target, written: operation as u64, read: 1 }, 0);
            if operation % 100 == 0 {
                take(&mut accessed);
            }
        }
        accessed.forget(1);
        take(&mut accessed);
        assert!(accessed.is_empty());
        let bytes = |first: usize| (first..1000).step_by(3).sum::<usize>() as u64;
        assert_eq!((announced[2], announced[0]), ((bytes(0), 334), (bytes(1), 333)));
        assert!(announced[1].0 < bytes(2), "the rest was forgotten");
    }

    #[test]
    fn it_is_announced_when_no_other_follows_or_when_there_are_many() {
        let access = Access { target: 1, written: 1, read: 0 };
        let mut accessed = Accessed::default();
        accessed.note(access, 1000);
        assert!(!accessed.is_due(1000) && !accessed.is_due(999 + QUIET));
        assert!(accessed.is_due(1000 + QUIET));
        // One follows the other.
        let (mut accessed, mut now, mut operations) = (Accessed::default(), 0, 0);
        while !accessed.is_due(now) {
            accessed.note(access, now);
            (now, operations) = (now + QUIET / 2, operations + 1);
        }
        assert_eq!(operations, LONGEST / (QUIET / 2));
        let mut accessed = Accessed::default();
        (0..MOST).for_each(|_| accessed.note(access, 0));
        assert!(accessed.is_due(0));
        accessed.take();
        accessed.note(access, 1);
        assert!(!accessed.is_due(1), "the count begins again");
    }
}
