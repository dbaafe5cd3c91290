//! The calls and handlers that a thread is in: a part that is made meanwhile shows those, too.

use super::Count;
use crate::calls::Call;

/// How many calls and handlers inside of each other are known. What is deeper belongs to the
/// innermost of them.
const DEPTH: usize = 8;
/// The bits of an address; the number of the call is above them.
const ADDRESS: u32 = 48;

/// Those of one thread, the outermost first.
#[derive(Debug)]
pub struct Open {
    depth: Count,
    entries: [Entry; DEPTH],
}

#[derive(Debug)]
struct Entry {
    /// The address behind the call, or the handler's own, with the number of the call.
    what: Count,
    /// When it began, in ticks; 0: no clock was read.
    start: Count,
}

/// A call or handler that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Current {
    /// Which call.
    pub call: Call,
    /// From where it was called; of a handler, its own address.
    pub site: usize,
    /// When it began, in ticks; 0 when no clock was read then.
    pub start: u64,
}

/// What the thread was in before.
#[derive(Clone, Copy, Debug, Default)]
pub struct Before(u64);

impl Open {
    /// A call or handler begins.
    #[inline(always)]
    pub fn enter(&self, call: Call, site: usize, start: u64) -> Before {
        let mut depth = self.depth.get();
        if depth != 0 && !call.is_handler() {
            depth = self.around_call(depth);
        }
        if let Some(entry) = self.entries.get(depth as usize) {
            entry.what.set((site as u64 & ((1 << ADDRESS) - 1)) | (call as u64) << ADDRESS);
            entry.start.set(start);
        }
        self.depth.set(depth + 1);
        Before(depth)
    }

    /// Ends a call, and all that it has left open by a jump out of it.
    #[inline(always)]
    pub fn leave(&self, before: Before) {
        self.depth.set(before.0);
    }

    /// How many are around a call that begins: it begins outside of all, or in a handler. A call
    /// that is innermost was left by a jump: longjmp, or an exception.
    fn around_call(&self, mut depth: u64) -> u64 {
        let is_call = |entry: &Entry| entry.read().is_some_and(|current| !current.call.is_handler());
        while depth.checked_sub(1).and_then(|at| self.entries.get(at as usize)).is_some_and(is_call) {
            depth -= 1;
        }
        depth
    }

    /// A thread that was here before has ended in a call.
    pub fn reset(&self) {
        self.depth.set(0);
    }

    /// Those that are open. The thread may go on meanwhile.
    pub fn current(&self) -> Vec<Current> {
        let depth = (self.depth.get() as usize).min(DEPTH);
        self.entries[..depth].iter().filter_map(Entry::read).collect()
    }
}

impl Entry {
    fn read(&self) -> Option<Current> {
        let what = self.what.get();
        let call = *Call::ALL.get((what >> ADDRESS).checked_sub(1)? as usize)?;
        let site = (what & ((1 << ADDRESS) - 1)) as usize;
        Some(Current { call, site, start: self.start.get() })
    }
}

#[cfg(test)]
mod tests {
    use super::{Current, DEPTH, Open};
    use crate::calls::Call;

    #[test]
    fn what_is_open_is_known_until_it_ends() {
        // SAFETY: it consists of atomics, for which zeroes are valid.
        let open: Open = unsafe { std::mem::zeroed() };
        assert_eq!(open.current(), []);
        let wait = open.enter(Call::LAPI_Waitcntr, 0x5555_1234, 10);
        let handler = open.enter(Call::HeaderHandler, 0x7fff_ffff_f000, 20);
        open.enter(Call::LAPI_Put, 0x5555_5678, 0);
        let of = |call, site, start| Current { call, site, start };
        let all = [
            of(Call::LAPI_Waitcntr, 0x5555_1234, 10),
            of(Call::HeaderHandler, 0x7fff_ffff_f000, 20),
            of(Call::LAPI_Put, 0x5555_5678, 0),
        ];
        assert_eq!(open.current(), all);
        // The put was left by a jump.
        open.leave(handler);
        assert_eq!(open.current(), all[..1]);
        for _ in 0..DEPTH {
            open.enter(Call::LAPI_Get, 1, 1);
            open.enter(Call::HeaderHandler, 1, 1);
        }
        assert_eq!(open.current().len(), DEPTH);
        open.leave(wait);
        assert_eq!(open.current(), []);
    }

    #[test]
    fn a_call_that_was_left_by_a_jump_is_around_no_later_one() {
        // SAFETY: zeros are an empty list.
        let open: Open = unsafe { std::mem::zeroed() };
        let calls = || open.current().into_iter().map(|current| current.call).collect::<Vec<_>>();
        for _ in 0..2 * DEPTH {
            open.enter(Call::LAPI_Waitcntr, 1, 1);
            assert_eq!(calls(), [Call::LAPI_Waitcntr]);
        }
        // In a handler, that stays open.
        let handler = open.enter(Call::HeaderHandler, 2, 2);
        open.enter(Call::LAPI_Waitcntr, 3, 3);
        let get = open.enter(Call::LAPI_Get, 4, 4);
        assert_eq!(calls(), [Call::LAPI_Waitcntr, Call::HeaderHandler, Call::LAPI_Get]);
        open.leave(get);
        assert_eq!(calls(), [Call::LAPI_Waitcntr, Call::HeaderHandler]);
        open.leave(handler);
        let get = open.enter(Call::LAPI_Get, 5, 5);
        open.leave(get);
        assert_eq!(calls(), []);
    }
}
