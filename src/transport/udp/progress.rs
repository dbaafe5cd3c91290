//! What has happened: datagrams that have arrived, moments that have come.

use super::contact::Peer;
use super::endpoint::RETRY;
use super::reliable::{Happened, Nanos, State};
use super::seal::{ANNOUNCEMENT, Claim, Refused};
use super::{BELIEF, LOST, UdpTransport};
use crate::transport::Task;
use crate::transport::presence::Presence;
use std::net::SocketAddr;

/// Calls of the device for what has arrived, at a time: a flood does not keep the caller here.
const ROUNDS: u32 = 16;

/// Calls of the device for all that has arrived: a flood does not hide a death for ever.
const ALL_ROUNDS: u32 = 4096;

/// With fewer datagrams than this, a call of the device has probably taken all that were there.
const FEW: usize = 8;

impl UdpTransport {
    /// Takes note of all that has arrived: what a process that has ended has sent before its end.
    pub(super) fn take_all(&mut self) {
        for _ in 0..ALL_ROUNDS {
            if !self.advance() {
                break;
            }
        }
    }

    /// Takes note of what has arrived, and sends what is to be sent now; whether something has
    /// arrived.
    pub(super) fn advance(&mut self) -> bool {
        if !self.outlet.is_open() {
            return false;
        }
        let (now, mut any) = (self.now(), false);
        self.look_at_device(now);
        let Some(mut device) = self.outlet.take_device() else { return false };
        for _ in 0..ROUNDS {
            let taken = device.receive(&mut |from, bytes| self.note_datagram(now, from, bytes));
            any |= taken != 0;
            if taken < FEW {
                break;
            }
        }
        self.outlet.put_back(device);
        self.outlet.send_waiting();
        self.rest.note_poll();
        self.send_kicks(now);
        while let Some(task) = self.schedule.next_touched() {
            if let Some(peer) = self.peer_mut(task) {
                peer.touched = false;
            }
            self.transmit_if_due(task, now);
        }
        while let Some(task) = self.schedule.due(now) {
            if let Some(peer) = self.peer_mut(task) {
                peer.alarm = None;
            }
            self.transmit_if_due(task, now);
        }
        self.notify();
        any
    }

    /// Looks whether the device is still this task's, if that was not done just before.
    #[inline]
    fn look_at_device(&mut self, now: Nanos) {
        if now >= self.next_look {
            self.next_look = now + BELIEF;
            if self.outlet.is_lost() {
                self.lose_device();
            }
        }
    }

    /// The program has closed the device, and its number may be another one's: nothing is sent or
    /// received any more.
    #[cold]
    fn lose_device(&mut self) {
        self.lost = true;
        self.outlet.close();
        for at in 0..self.table.met().len() {
            self.leave(self.table.met()[at], Presence::Dead(LOST.to_owned()));
        }
        self.notify();
    }

    /// Serves a peer before anything else is waited for.
    pub(super) fn touch(&mut self, task: Task) {
        if let Some(peer) = self.table.get_mut(task) {
            self.schedule.touch(task, peer);
        }
    }

    /// [`Self::transmit`], for a peer to which most probably nothing is to be sent now.
    fn transmit_if_due(&mut self, task: Task, now: Nanos) {
        let Some(peer) = self.table.get_mut(task) else { return };
        // What has arrived is acknowledged after that time at the earliest, and the peer is
        // served before.
        let served = peer.alarm.is_some_and(|alarm| alarm <= now + self.parameters.acknowledge_after);
        if served && peer.live().is_some_and(|session| session.connection.is_quiet(now)) {
            return;
        }
        let due = peer.live().map(|session| session.connection.due(now));
        match due {
            Some(due) if due.is_none_or(|due| due > now) => self.schedule.set(&mut peer.alarm, task, due),
            _ => self.transmit(task, now),
        }
    }

    /// Sends what a peer is to be sent now, and notes when there is something next.
    pub(super) fn transmit(&mut self, task: Task, now: Nanos) {
        self.look_at_device(now);
        let Some(peer) = self.table.get_mut(task).filter(|_| self.outlet.is_open()) else { return };
        if peer.live().is_none() {
            self.schedule.set(&mut peer.alarm, task, None);
            return;
        }
        let Peer { session: Some(session), address_validation, .. } = peer else { return };
        let sent = self.outlet.send(session, address_validation.address(), now);
        let Some((hello, due)) = sent else { return };
        // What is still due waits for room in the device.
        let next = due.map(|due| if due <= now { now + RETRY.as_nanos() as Nanos } else { due });
        self.schedule.set(&mut peer.alarm, task, next);
        if let Some(hello) = hello {
            self.greet(task, &hello);
        }
    }

    fn send_kicks(&mut self, now: Nanos) {
        for task in self.schedule.take_kicks() {
            if let Some(session) = self.peer_mut(task).and_then(Peer::live) {
                session.connection.kick(now);
                self.touch(task);
            }
        }
    }

    /// No packet is going to be sent for a while that could carry an acknowledgement.
    pub(super) fn acknowledge(&mut self) {
        while let Some(task) = self.schedule.next_owed() {
            let Some(peer) = self.peer_mut(task) else { continue };
            peer.owed = false;
            if let Some(session) = peer.live() {
                session.connection.flush();
                self.touch(task);
            }
        }
    }

    pub(super) fn note_datagram(&mut self, now: Nanos, from: SocketAddr, bytes: &mut [u8]) {
        let known = |claim: &Claim| claim.from != self.credentials.me && self.table.has(claim.from);
        let Some(claim) = Claim::of(bytes).filter(known) else {
            self.outlet.refusals.forged += 1;
            return;
        };
        let task = claim.from;
        if claim.number == 0 && bytes.len() == ANNOUNCEMENT {
            if !self.note_announcement(task, bytes, from) {
                self.outlet.refusals.forged += 1;
            }
            return;
        }
        if claim.number == 0 {
            match self.credentials.greeting(bytes) {
                Some(hello) => self.note_hello(now, task, &hello, from),
                None => {
                    self.outlet.refusals.forged += 1;
                    // Nothing but the text of an error follows from it: anybody can make one.
                    if let Some(peer) = self.peer_mut(task) {
                        peer.other_key = true;
                    }
                }
            }
            return;
        }
        let session = self.table.get_mut(task).and_then(Peer::live);
        let opener = session.and_then(|session| self.credentials.opener(session, task));
        let opened = opener.map(|opener| opener.open(bytes));
        let content = match opened {
            Some(Ok(content)) => content,
            Some(Err(Refused::Replayed)) => {
                self.outlet.refusals.replayed += 1;
                return;
            }
            None | Some(Err(Refused::Forged)) => {
                self.outlet.refusals.forged += 1;
                return;
            }
        };
        let Some(session) = self.table.get_mut(task).and_then(Peer::live) else { return };
        let connection = &mut session.connection;
        let was_opening = connection.state() == State::Opening;
        let theirs = connection.theirs();
        let happened = connection.receive(now, theirs, claim.number, content, &mut self.buffers);
        self.note(task, happened, was_opening);
        self.note_source(now, task, from);
    }

    /// Notes what a datagram of a peer has brought.
    pub(super) fn note(&mut self, task: Task, happened: Happened, was_opening: bool) {
        let Some(peer) = self.table.get_mut(task) else { return };
        let state = peer.session.as_ref().map(|session| session.connection.state());
        if happened.packet && peer.hands_out() {
            self.arrivals.add(task);
        }
        self.schedule.owe(task, peer);
        if happened.progress {
            self.sleeper.note(std::mem::take(&mut peer.no_room));
        }
        if was_opening && state != Some(State::Opening) {
            self.note_up(task);
        }
        if state == Some(State::Closed) {
            self.leave(task, Presence::Closed);
            self.tell_watch(|watch| watch.closed(task));
        }
        if happened.kick {
            self.sleeper.signal();
        }
        self.touch(task);
    }

    /// The peer has left.
    pub(super) fn leave(&mut self, task: Task, how: Presence) {
        let Some(peer) = self.peer_mut(task) else { return };
        if matches!(peer.standing, Presence::Up | Presence::Meeting | Presence::Rejoining) {
            peer.standing = how;
            peer.no_room = false;
            self.sleeper.note(true);
        }
    }
}
