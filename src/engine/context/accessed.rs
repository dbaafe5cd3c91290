//! What this task has put into the memory of others without their help. They hear of it in time: of
//! several puts together, because a packet for each would cost as much as the put.

use crate::transport::Task;

/// Puts that are announced together, at most.
const MOST: u32 = 256;
/// They are announced when the last of them ended this many ticks ago, 30 to 150 microseconds, and
/// none is under way: a program that goes on has started another one by then.
const QUIET: u64 = 150_000;
/// And when the first one ended this many ticks ago, 0.5 to 3 milliseconds.
const LONGEST: u64 = 3_000_000;

/// What is to be announced.
#[derive(Debug, Default)]
pub struct Accessed {
    /// In the order of tasks.
    list: Vec<Access>,
    puts: u32,
    /// When the first and the last put ended, in ticks.
    first: u64,
    last: u64,
}

/// What is to be announced to one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The task.
    pub target: Task,
    /// Bytes of puts.
    pub written: u64,
}

impl Accessed {
    /// Puts to this task have ended now.
    #[inline]
    pub fn note(&mut self, access: Access, now: u64) {
        if self.list.is_empty() {
            (self.puts, self.first) = (0, now);
        }
        (self.puts, self.last) = (self.puts + 1, now);
        match self.list.iter_mut().find(|entry| entry.target >= access.target) {
            Some(entry) if entry.target == access.target => entry.written += access.written,
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

    /// Whether it is time, if there is something; `goes_on` while such puts are under way.
    #[inline]
    pub fn is_due(&self, goes_on: bool, now: u64) -> bool {
        self.puts >= MOST
            || !goes_on && now.wrapping_sub(self.last) >= QUIET
            || now.wrapping_sub(self.first) >= LONGEST
    }

    /// What is to be announced, which nothing else remembers.
    pub fn take(&mut self) -> Vec<Access> {
        std::mem::take(&mut self.list)
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
        let (mut accessed, mut announced) = (Accessed::default(), [0; 3]);
        let mut take = |accessed: &mut Accessed| {
            for Access { target, written } in accessed.take() {
                announced[target as usize] += written;
            }
        };
        for put in 0..1000 {
            accessed.note(Access { target: [2, 0, 1][put % 3], written: put as u64 }, 0);
            if put % 100 == 0 {
                take(&mut accessed);
            }
            if put % 100 == 50 {
                accessed.take().into_iter().for_each(|access| accessed.note(access, 0));
            }
        }
        accessed.forget(1);
        take(&mut accessed);
        assert!(accessed.is_empty());
        let bytes = |first: usize| (first..1000).step_by(3).sum::<usize>() as u64;
        assert_eq!((announced[2], announced[0]), (bytes(0), bytes(1)));
        assert!(announced[1] < bytes(2), "the rest was forgotten");
    }

    #[test]
    fn it_is_announced_when_no_other_follows_or_when_there_are_many() {
        let access = Access { target: 1, written: 1 };
        let mut accessed = Accessed::default();
        accessed.note(access, 1000);
        assert!(!accessed.is_due(false, 1000) && !accessed.is_due(false, 999 + QUIET));
        assert!(accessed.is_due(false, 1000 + QUIET));
        assert!(!accessed.is_due(true, 1000 + 2 * QUIET), "another one is under way");
        assert!(accessed.is_due(true, 1000 + LONGEST));
        // One follows the other.
        let (mut accessed, mut now, mut puts) = (Accessed::default(), 0, 0);
        while !accessed.is_due(false, now) {
            accessed.note(access, now);
            (now, puts) = (now + QUIET / 2, puts + 1);
        }
        assert_eq!(puts, LONGEST / (QUIET / 2));
        let mut accessed = Accessed::default();
        (0..MOST).for_each(|_| accessed.note(access, 0));
        assert!(accessed.is_due(true, 0));
        accessed.take();
        accessed.note(access, 1);
        assert!(!accessed.is_due(true, 1), "the count begins again");
    }
}
