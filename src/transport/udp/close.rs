//! The end of LAPI for this task: what was sent arrives, and the peers with which it is
//! connected are informed.

use super::UdpTransport;
use super::contact::Peer;
use crate::base::clock;
use crate::transport::Task;
use crate::transport::presence::reply_to_those_that_rejoin;
use std::time::Duration;

/// How long the end waits for the peers, at most: one that is alive acknowledges as soon as it
/// gets a processor.
const LINGER: Duration = Duration::from_secs(2);

/// How long it waits for a peer that is to get nothing else, and has not confirmed that it knows of
/// the end: it may have ended, too.
const LINGER_FOR_CONFIRMATION: Duration = Duration::from_millis(500);

impl UdpTransport {
    pub(super) fn end(&mut self) {
        if !self.closed {
            // A death that only this task can see.
            self.advance();
            self.look_at_others_now();
        }
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        let met = self.table.met().to_vec();
        let awaiting = reply_to_those_that_rejoin(self, met);
        let now = self.now();
        for at in 0..self.table.met().len() {
            let task = self.table.met()[at];
            if let Some(session) = self
                .peer_mut(task)
                .and_then(Peer::live)
                .filter(|own| own.has_begun() || awaiting.contains(&task))
            {
                session.connection.close(now);
                self.touch(task);
            }
        }
        self.acknowledge();
        self.announce_end();
        let start = clock::now();
        for turn in 0_u32.. {
            self.advance();
            self.look_at_others(self.now());
            let passed = clock::elapsed(start);
            let announced = passed > self.deaths.linger || self.has_announced();
            if passed > LINGER
                || announced && self.table.met().iter().all(|&task| self.may_forget(task, passed, &awaiting))
            {
                break;
            }
            if turn < 1000 {
                clock::yield_now();
            } else {
                clock::sleep(Duration::from_micros(100));
            }
        }
        self.watch(false);
        self.outlet.close();
        self.arrivals.clear();
        for session in self.table.sessions_mut() {
            session.connection.abandon(&mut self.buffers);
        }
    }

    /// Whether nothing is to be expected from a peer.
    fn may_forget(&self, task: Task, passed: Duration, awaiting: &[Task]) -> bool {
        let session = self.peer(task).and_then(|peer| peer.session.as_ref());
        self.has_everything(task)
            || session.is_none_or(|session| {
                let confirmed_late = passed > LINGER_FOR_CONFIRMATION && session.connection.is_empty();
                let nothing_begun = !session.has_begun() && !awaiting.contains(&task);
                nothing_begun || confirmed_late
            })
    }
}
