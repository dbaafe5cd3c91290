//! The end of LAPI for this task: what was sent arrives, and the peers that know this
//! task are informed.

use super::FabricTransport;
use super::contact::Peer;
use super::own::Wants;
use crate::transport::Task;
use crate::transport::presence::{Presence, reply_to_those_that_rejoin};
use std::time::{Duration, Instant};

/// How long the end waits for the peers, at most: one that is alive takes messages as soon as it
/// gets a processor. A peer that has not received the departure by then learns of it by
/// the watch of the tasks for each other when this process has ended.
pub(super) const LINGER: Duration = Duration::from_secs(2);

/// How long it waits for a task of this host with which it has had no contact, and whose process
/// runs: that may have ended LAPI.
const LINGER_FOR_WATCHER: Duration = Duration::from_secs(1);

/// How long it waits for one that has ended LAPI itself: it may be waiting for this task.
const LINGER_FOR_CLOSED: Duration = Duration::from_millis(50);

impl FabricTransport {
    pub(super) fn end(&mut self) {
        // Other hosts may learn of a death by this task only.
        self.look_at_others_now();
        if self.closed {
            return;
        }
        let greets = |task: &Task| self.peer(*task).is_some_and(|peer| peer.hello.is_some());
        let greeting = (0..self.peers.len() as Task).filter(greets).collect();
        let awaiting = reply_to_those_that_rejoin(self, greeting);
        self.closed = true;
        let start = Instant::now();
        self.linger(|end| {
            let passed = start.elapsed();
            let said = !end.has_pending() || passed > LINGER_FOR_WATCHER;
            let awaited =
                |task: &Task| end.peer(*task).is_some_and(|peer| peer.standing == Presence::Rejoining);
            let replied = passed > end.linger / 2 || !awaiting.iter().any(awaited);
            passed > end.linger || end.posting.under_way() == 0 && said && replied
        });
        let known =
            |peer: &Option<Box<Peer>>| peer.as_ref().is_some_and(|peer| peer.is_up() && peer.has_met());
        let mut peers: Vec<Task> =
            (0..self.peers.len()).filter(|&at| known(&self.peers[at])).map(|at| at as Task).collect();
        for task in self.neighbours() {
            if !peers.contains(&task) && self.meet(task) && self.peer(task).is_some_and(Peer::is_up) {
                peers.push(task);
            }
        }
        for &task in &peers {
            self.owe(task, Wants::DEPARTURE);
            self.send_own(task);
        }
        self.linger(|end| {
            let passed = start.elapsed();
            let may_forget = |&task: &Task| end.may_forget(task, passed);
            passed > end.linger || peers.iter().all(may_forget) && end.pending.borrow().iter().all(may_forget)
        });
        self.device.close_endpoint();
        self.accesses.withdraw_all(&mut self.device);
        self.posting.close();
    }

    /// Makes progress until something is so.
    fn linger(&mut self, until: impl Fn(&Self) -> bool) {
        for turn in 0_u32.. {
            self.advance();
            if until(self) {
                return;
            }
            if turn < 1000 {
                std::thread::yield_now()
            } else {
                std::thread::sleep(Duration::from_micros(100))
            }
        }
    }

    /// Whether nothing is to be expected from a peer that was informed of the end.
    fn may_forget(&self, task: Task, passed: Duration) -> bool {
        self.peer(task).is_none_or(|peer| match peer.standing {
            // One that this task has only watched, or that only watches it, may have ended before.
            Presence::Up => {
                peer.knows_departure
                    || !peer.has_met()
                        && passed > LINGER_FOR_CLOSED
                        && (passed > LINGER_FOR_WATCHER || !self.sees_running(task))
            }
            Presence::Closed => peer.knows_departure || passed > LINGER_FOR_CLOSED,
            Presence::Dead(_)
            | Presence::HasParted
            | Presence::Parted
            | Presence::Meeting
            | Presence::Rejoining => true,
        })
    }
}
