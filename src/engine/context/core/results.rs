//! What has completed and was not reported to the program yet: send operations, completions for
//! LAPI_Msgpoll, and messages whose targets report them through their doors.

use crate::abi::lapi_msg_state_t;
use crate::engine::context::Core;
use crate::proto::outbox::SendDone;
use crate::proto::tasks::TaskSet;
use crate::transport::{Task, Ticket};

/// The peers whose doors are to report messages.
#[derive(Default)]
pub struct Reporters {
    tasks: TaskSet,
    /// Whose turn it is, as a position among them.
    turn: usize,
}

impl Reporters {
    /// Adds a peer, unless it is there.
    #[inline]
    pub fn insert(&mut self, peer: Task) {
        self.tasks.insert(peer);
    }

    /// The next one in turn.
    #[inline]
    fn next(&mut self) -> Option<Task> {
        let peers = self.tasks.members();
        self.turn = if self.turn + 1 < peers.len() { self.turn + 1 } else { 0 };
        peers.get(self.turn).copied()
    }
}

impl Core {
    /// Passes what waits in the outbox to the transport; returns whether something has moved.
    pub fn pump(&mut self) -> bool {
        let mut done = std::mem::take(&mut self.done_sends);
        let (outbox, mut wire) = self.out();
        let moved = outbox.pump(&mut wire, &mut done);
        self.done_sends = done;
        moved
    }

    /// The transport no longer uses the memory of a packet that it had taken.
    pub fn note_free(&mut self, ticket: Ticket) {
        self.outbox.free(ticket, &mut self.done_sends);
    }

    /// Send operations are done: the next round of the dispatcher reports them.
    pub fn finish_later(&mut self, done: impl IntoIterator<Item = SendDone>) {
        self.done_sends.extend(done);
    }

    /// The send operations that are to be reported.
    pub fn take_done_sends(&mut self) -> Vec<SendDone> {
        std::mem::take(&mut self.done_sends)
    }

    /// Takes back the emptied list of [`Self::take_done_sends`], which keeps its memory. What was
    /// added meanwhile is reported in the next round.
    pub fn give_back_done_sends(&mut self, mut list: Vec<SendDone>) {
        list.append(&mut self.done_sends);
        self.done_sends = list;
    }

    /// How many send operations are to be reported.
    #[cfg(test)]
    pub fn count_done_sends(&self) -> usize {
        self.done_sends.len()
    }

    /// Something has completed that LAPI_Msgpoll reports (LAPI_SEND_COMPLETE, LAPI_RECV_COMPLETE).
    #[inline]
    pub fn note_completed(&mut self, what: lapi_msg_state_t) {
        self.msgpoll_state |= what;
    }

    /// What has completed since the last call.
    pub fn take_completed(&mut self) -> lapi_msg_state_t {
        std::mem::take(&mut self.msgpoll_state)
    }

    /// Whether reports through doors are awaited.
    #[inline]
    pub fn awaits_reports(&self) -> bool {
        !self.door_reporters.tasks.is_empty()
    }

    /// Whether a report has come through the door whose turn it is: many looks find all, and none
    /// of them costs more where many peers are to report.
    #[inline]
    pub fn next_has_report(&mut self) -> bool {
        let Some(peer) = self.door_reporters.next() else { return false };
        self.transport.door(peer).is_some_and(|door| door.has_report())
    }

    /// Whether a report has come through any door.
    pub fn has_report(&mut self) -> bool {
        let transport = &mut self.transport;
        let mut peers = self.door_reporters.tasks.members().iter();
        peers.any(|&peer| transport.door(peer).is_some_and(|door| door.has_report()))
    }

    /// Messages are complete at their targets, which have reported them through their doors.
    /// Returns whether one is.
    #[inline]
    pub fn take_reports(&mut self) -> bool {
        self.awaits_reports() && self.take_some_reports()
    }

    fn take_some_reports(&mut self) -> bool {
        let (mut any, mut at) = (false, 0);
        while let Some(&peer) = self.door_reporters.tasks.members().get(at) {
            let mut awaits = false;
            while let Some(door) = self.transport.door(peer) {
                let Some(cookie) = door.report() else {
                    awaits = door.awaits_reports();
                    break;
                };
                any = true;
                // None: the operation ended when the peer was given up.
                if let Some(cmpl_cntr) = self.ops.take_completion(peer, cookie) {
                    // SAFETY: the program's counter.
                    unsafe { self.raise(cmpl_cntr, peer) };
                }
            }
            if awaits {
                at += 1;
            } else {
                // All are reported, or the connection has ended, and their operations with it.
                self.door_reporters.tasks.remove(peer);
            }
        }
        any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reporter_has_its_turn() {
        let mut reporters = Reporters::default();
        assert_eq!(reporters.next(), None);
        for count in 1..=5 {
            reporters.insert(count - 1);
            let mut seen: Vec<Task> = (0..count).filter_map(|_| reporters.next()).collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..count).collect::<Vec<_>>());
        }
        // Those that have left do not keep others from theirs.
        reporters.tasks.remove(4);
        reporters.tasks.remove(1);
        let seen: Vec<Task> = (0..3).filter_map(|_| reporters.next()).collect();
        assert!([0, 2, 3].iter().all(|peer| seen.contains(peer)), "{seen:?}");
    }
}
