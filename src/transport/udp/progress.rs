//! What has happened: datagrams that have arrived, moments that have come.

use super::UdpTransport;
use super::contact::Peer;
use super::endpoint::RETRY;
use super::reliable::{Happened, Nanos, State};
use super::seal::{ANNOUNCEMENT, Claim, Refused};
use crate::transport::presence::Presence;
use crate::transport::{NO_EPOCH, Task};
use std::net::SocketAddr;

/// The time between two questions for peers that have died, and about how many of them is
/// asked at a time.
const BETWEEN_LOOKS: Nanos = 100_000_000;
const LOOKED_AT: usize = 64;

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
        let Some(mut device) = self.device.take() else { return false };
        let (now, mut any) = (self.now(), false);
        for _ in 0..ROUNDS {
            let taken = device.receive(&mut |from, bytes| self.note_datagram(now, from, bytes));
            any |= taken != 0;
            if taken < FEW {
                break;
            }
        }
        self.batch.send_unsent(&mut *device);
        for (to, greeting) in std::mem::take(&mut self.greetings) {
            self.batch.send_now(&mut *device, to, &greeting);
        }
        self.device = Some(device);
        self.send_receipts();
        self.rest.note_poll();
        self.send_kicks(now);
        while let Some(task) = self.touched.pop() {
            if let Some(peer) = self.peer_mut(task) {
                peer.touched = false;
            }
            self.transmit_if_due(task, now);
        }
        while let Some(task) = self.alarms.due(now) {
            if let Some(peer) = self.peer_mut(task) {
                peer.alarm = None;
            }
            self.transmit_if_due(task, now);
        }
        self.notify();
        any
    }

    /// Asks which peers have died; but seldom, and about some of them at a time.
    pub(super) fn look_for_deaths(&mut self) {
        let now = self.now();
        if now < self.next_look || self.closed {
            return;
        }
        self.next_look = now + BETWEEN_LOOKS;
        for _ in 0..self.met.len().min(LOOKED_AT) {
            self.looked_at = (self.looked_at + 1) % self.met.len();
            let task = self.met[self.looked_at];
            if let Some(why) = self.unanswered(task, now) {
                self.leave(task, Presence::Dead(why));
                if let Some(peer) = self.peer_mut(task) {
                    peer.given_up = true;
                }
                self.touch(task);
            }
            if !self.is_present(task) || !self.directory.has_died(task) {
                continue;
            }
            // It may have ended LAPI before.
            self.take_all();
            if self.is_present(task) {
                self.leave(task, Presence::Dead("has ended without calling LAPI_Term".to_owned()));
                self.touch(task);
            }
        }
        self.notify();
    }

    /// Why a peer that has never replied is given up; `None`: it is not.
    fn unanswered(&mut self, task: Task, now: Nanos) -> Option<String> {
        let patience = self.patience?;
        let peer = self.peer(task).filter(|peer| peer.standing == Presence::Meeting)?;
        let waited = now.saturating_sub(peer.wanted?);
        if u128::from(waited) < patience.as_nanos() {
            return None;
        }
        let (other_key, other_opening) = (peer.other_key, peer.other_opening);
        let address = self.directory.address_of(task).map_or_else(|why| why.detail, |at| at.to_string());
        let seconds = patience.as_secs();
        if let Some(its) = other_opening {
            return Some(format!(
                "is in its LAPI_Init number {its}, and this task in number {}, for {seconds} seconds (LAPI_INIT_TIMEOUT): tasks \
                 communicate when they have called it equally often, and a process that has taken the place of another one after \
                 LAPI_Purge_totask and LAPI_Resume_totask",
                self.opening
            ));
        }
        let why = match other_key {
            true => {
                "messages in its name have come that were made with another secret (LAPI_JOB_SECRET or the key file), \
                 version of the library, LAPI_NET_SECURITY, LAPI_USE_SHM, MP_PARTITION, MP_PROCS or list of addresses"
            }
            false => {
                "is it started, are its address and port right, and has it not given up this task before?"
            }
        };
        Some(format!("has not replied at {address} for {seconds} seconds (LAPI_INIT_TIMEOUT): {why}"))
    }

    /// Whether the death of the peer's process is news: where a task that has parted from this one
    /// is to rejoin, it was an earlier process that has died.
    fn is_present(&self, task: Task) -> bool {
        self.peer(task).is_some_and(|peer| match (&peer.standing, &peer.session) {
            (Presence::Up, _) => true,
            (Presence::Rejoining, Some(session)) => session.epoch == NO_EPOCH,
            _ => false,
        })
    }

    /// Serves a peer before anything else is waited for.
    pub(super) fn touch(&mut self, task: Task) {
        let Some(peer) = self.peers[task as usize].as_deref_mut() else { return };
        if !std::mem::replace(&mut peer.touched, true) {
            self.touched.push(task);
        }
    }

    /// [`Self::transmit`], for a peer to which most probably nothing is to be sent now.
    fn transmit_if_due(&mut self, task: Task, now: Nanos) {
        let Some(peer) = self.peers[task as usize].as_deref_mut() else { return };
        // What has arrived is acknowledged after that time at the earliest, and the peer is
        // served before.
        let served = peer.alarm.is_some_and(|alarm| alarm <= now + self.parameters.acknowledge_after);
        if served && peer.live().is_some_and(|session| session.connection.is_quiet(now)) {
            return;
        }
        let due = peer.live().map(|session| session.connection.due(now));
        match due {
            Some(due) if due.is_none_or(|due| due > now) => self.alarms.set(&mut peer.alarm, task, due),
            _ => self.transmit(task, now),
        }
    }

    /// Sends what a peer is to be sent now, and notes when there is something next.
    pub(super) fn transmit(&mut self, task: Task, now: Nanos) {
        let Self { peers, device, batch, alarms, .. } = self;
        let (Some(device), Some(peer)) = (device, peers[task as usize].as_deref_mut()) else { return };
        if peer.live().is_none() {
            alarms.set(&mut peer.alarm, task, None);
            return;
        }
        let Peer { session: Some(session), address_validation, .. } = peer else { return };
        let (hello, due) = batch.send(&mut **device, session, address_validation.address(), now);
        // What is still due waits for room in the device.
        let next = due.map(|due| if due <= now { now + RETRY.as_nanos() as Nanos } else { due });
        alarms.set(&mut peer.alarm, task, next);
        if let Some(hello) = hello {
            self.greet(task, &hello);
        }
    }

    fn send_kicks(&mut self, now: Nanos) {
        let kicks = std::mem::take(&mut self.kicks);
        for task in kicks {
            if let Some(session) = self.peer_mut(task).and_then(Peer::live) {
                session.connection.kick(now);
                self.touch(task);
            }
        }
    }

    /// No packet is going to be sent for a while that could carry an acknowledgement.
    pub(super) fn acknowledge(&mut self) {
        while let Some(task) = self.owed.pop() {
            let Some(peer) = self.peer_mut(task) else { continue };
            peer.owed = false;
            if let Some(session) = peer.live() {
                session.connection.flush();
                self.touch(task);
            }
        }
    }

    pub(super) fn note_datagram(&mut self, now: Nanos, from: SocketAddr, bytes: &mut [u8]) {
        let known = |claim: &Claim| claim.from != self.me && (claim.from as usize) < self.peers.len();
        let Some(claim) = Claim::of(bytes).filter(known) else {
            self.refusals.forged += 1;
            return;
        };
        let task = claim.from;
        if claim.number == 0 && bytes.len() == ANNOUNCEMENT {
            if !self.note_announcement(now, task, bytes, from) {
                self.refusals.forged += 1;
            }
            return;
        }
        if claim.number == 0 {
            match self.key.greeting(self.me, bytes) {
                Some(hello) => self.note_hello(now, task, &hello, from),
                None => {
                    self.refusals.forged += 1;
                    // Nothing but the text of an error follows from it: anybody can make one.
                    if let Some(peer) = self.peer_mut(task) {
                        peer.other_key = true;
                    }
                }
            }
            return;
        }
        let Self { peers, key, me, refusals, .. } = self;
        let session = peers[task as usize].as_deref_mut().and_then(Peer::live);
        let opened =
            session.and_then(|session| session.keys(key, *me, task).map(|(_, opener)| opener.open(bytes)));
        let content = match opened {
            Some(Ok(content)) => content,
            Some(Err(Refused::Replayed)) => {
                refusals.replayed += 1;
                return;
            }
            None | Some(Err(Refused::Forged)) => {
                refusals.forged += 1;
                return;
            }
        };
        let Self { peers, buffers, .. } = self;
        let Some(session) = peers[task as usize].as_deref_mut().and_then(Peer::live) else { return };
        let connection = &mut session.connection;
        let was_opening = connection.state() == State::Opening;
        let theirs = connection.theirs();
        let happened = connection.receive(now, theirs, claim.number, content, buffers);
        self.note(task, happened, was_opening);
        self.note_source(now, task, from);
    }

    /// Notes what a datagram of a peer has brought.
    pub(super) fn note(&mut self, task: Task, happened: Happened, was_opening: bool) {
        let Some(peer) = self.peers[task as usize].as_deref_mut() else { return };
        let state = peer.session.as_ref().map(|session| session.connection.state());
        if happened.packet && peer.hands_out() {
            self.ready.push_back(task);
        }
        if !std::mem::replace(&mut peer.owed, true) {
            self.owed.push(task);
        }
        if happened.progress {
            self.noted |= std::mem::take(&mut peer.no_room);
        }
        if was_opening && state != Some(State::Opening) {
            self.note_up(task);
        }
        if state == Some(State::Closed) {
            self.leave(task, Presence::Closed);
            self.note_closed(task, self.now());
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
            self.noted = true;
        }
    }

    /// Whether something is to be taken from this endpoint. A peer that waits to be named is noted
    /// once, and keeps no thread from sleeping: the engine may ask for it only then.
    pub(super) fn has_reports(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Wakes a thread that sleeps, if it waits for something that has happened.
    #[inline]
    pub(super) fn notify(&mut self) {
        if self.armed && (self.noted || self.has_reports()) {
            self.sleeper.signal();
        }
    }
}
