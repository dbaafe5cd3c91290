//! What happens to rails: events, notes, links, and what is due; leaving and joining.

use super::agreement::{Action, Why};
use super::endpoint::ACKNOWLEDGE;
use super::flow::WINDOW;
use super::peer::Peer;
use super::{BETWEEN_LOOKS, LinkMessages, OF_RAIL, Rail, RailEvent, Rails};
use crate::transport::presence::Presence;
use crate::transport::{PeerState, Task};
use crate::wire::rails::{NOTE, Note};
use std::time::{Duration, Instant};

/// When a peer is asked for an acknowledgement that has not come.
const ASK: Duration = Duration::from_millis(25);

impl Peer {
    /// What it is to be sent as acknowledgement. What is aside is not acknowledged: that bounds it.
    #[inline]
    pub(super) fn acknowledgement(&self) -> u32 {
        if self.aside.is_empty() { self.flow.accepted() } else { self.flow.last_acknowledged() }
    }

    /// The note for it. `up` has the links that are up.
    fn note(&self, up: u8, wants_reply: bool) -> Note {
        Note {
            session: self.session,
            to: self.theirs,
            accepted: self.acknowledgement(),
            wants_reply,
            rails: self.agreement.standings(up),
        }
    }

    /// The peer was sent the acknowledgement.
    #[inline]
    pub(super) fn acknowledge(&mut self) {
        if self.aside.is_empty() {
            self.flow.acknowledge();
        }
    }
}

impl<T: Rail> Rails<T> {
    /// Whether all peers have acknowledged everything.
    pub(super) fn is_acknowledged(&self) -> bool {
        let waits = |peer: &Peer| peer.is_up() && peer.flow.unacknowledged() != 0;
        !self.active.iter().filter_map(|task| self.peer(*task)).any(waits)
    }

    /// The bits of all rails.
    #[inline]
    pub(super) fn all(&self) -> u8 {
        u8::MAX >> (8 - self.rails.len())
    }

    /// Takes note of everything that has happened but packets, and does what is due.
    #[inline]
    pub(super) fn advance(&mut self) {
        if self.closed {
            return;
        }
        self.take_events();
        if self.striping.is_busy() {
            self.advance_accesses();
        }
        let now = Instant::now();
        if self.next_look <= now || self.sleeper.armed {
            self.next_look = now + BETWEEN_LOOKS;
            self.look_at_links();
        }
        if self.next_tick.is_some_and(|due| due <= now) {
            self.tick();
        }
        self.notify();
    }

    /// Takes note of what the rails have to say of the peers.
    #[inline]
    pub(super) fn take_events(&mut self) {
        for rail in 0..self.rails.len() {
            while let Some(event) = self.rails[rail].event() {
                self.note_event(rail, event);
            }
        }
    }

    #[cold]
    fn note_event(&mut self, rail: usize, event: RailEvent) {
        self.striping.note_change();
        match event {
            RailEvent::Note(task, bytes) => self.note_note(task, &bytes),
            RailEvent::Lost(task) => self.note_lost(rail, task),
            RailEvent::Ended(task) => {
                let why = self.rails[rail].standing(task).absence.unwrap_or_else(|| "has ended".to_owned());
                self.lose(task, Presence::Dead(why));
            }
            RailEvent::Rejoined(task, epoch) => self.note_rejoined(rail, task, epoch),
            RailEvent::Parted(task, epoch) => self.note_parted(rail, task, epoch),
        }
    }

    /// A rail does not reach the peer any more, or the peer has closed.
    #[cold]
    pub(super) fn note_lost(&mut self, rail: usize, task: Task) {
        self.meet(task);
        match self.rails[rail].standing(task).state {
            PeerState::Up | PeerState::Connecting => {}
            PeerState::Closed => self.lose(task, Presence::Closed),
            PeerState::Dead => self.fail(rail, task, Why::Failure),
        }
    }

    /// A rail has refused a packet for good, whatever it says of the peer.
    #[cold]
    pub(super) fn note_refused(&mut self, rail: usize, task: Task) {
        match self.rails[rail].standing(task).state {
            PeerState::Closed => self.lose(task, Presence::Closed),
            _ => self.fail(rail, task, Why::Failure),
        }
    }

    /// The peer has left.
    pub(super) fn lose(&mut self, task: Task, how: Presence) {
        let peer = self.meet(task);
        if peer.is_up() {
            peer.standing = how;
            peer.no_room = false;
            self.sleeper.note(true);
            self.end_accesses(task);
        }
    }

    /// A rail does not work with the peer any more.
    #[cold]
    pub(super) fn fail(&mut self, rail: usize, task: Task, why: Why) {
        self.striping.note_change();
        let now = self.now();
        let peer = self.meet(task);
        if !peer.is_up() {
            return;
        }
        let leaves = peer.agreement.fail(rail, why, now);
        if leaves {
            self.act(task, Action::Leave(rail));
        }
        if self.peer(task).is_some_and(|peer| peer.agreement.has_failed()) {
            let why = self.rails[rail].standing(task).absence;
            let why = why.unwrap_or_else(|| "cannot be reached by any rail".to_owned());
            self.lose(task, Presence::Dead(why));
        }
        self.look_after(task);
    }

    fn act(&mut self, task: Task, action: Action) {
        match action {
            Action::Leave(rail) => {
                let failed = self.peer(task).is_some_and(|peer| peer.agreement.has_rail_failed(rail));
                self.rails[rail].leave(task, failed);
                let generation = self.peer(task).map_or(0, |peer| peer.agreement.generation(rail));
                self.striping.lose(rail, task, generation);
                let Some(peer) = self.peer_mut(task) else { return };
                let again = peer.flow.lose(rail) as u64;
                peer.asked = Duration::ZERO;
                self.tally.sent_again += again;
                self.look_after(task);
            }
            Action::Join(rail, generation) => {
                // Without success it takes too long, and is tried again.
                let _ = self.rails[rail].rejoin(task, OF_RAIL | u64::from(generation));
            }
        }
    }

    #[cold]
    fn note_note(&mut self, task: Task, bytes: &[u8; NOTE]) {
        if task as usize >= self.peers.len() || task == self.me {
            return;
        }
        let note = Note::decode(bytes);
        let now = self.now();
        let peer = self.meet(task);
        let other = |own: u32, theirs: u32| own != 0 && theirs != 0 && own != theirs;
        if !peer.is_up() || other(note.to, peer.session) || other(note.session, peer.theirs) {
            return;
        }
        peer.theirs = note.session;
        let mut actions = Vec::new();
        let reply = peer.agreement.note(&note.rails, now, |action| actions.push(action));
        let known = note.to == peer.session;
        self.note_contact(task);
        actions.into_iter().for_each(|action| self.act(task, action));
        if known {
            self.note_accepted(task, note.accepted);
        }
        if reply || note.wants_reply {
            self.send_note(task, false);
        }
        self.look_after(task);
    }

    fn send_note(&mut self, task: Task, wants_reply: bool) {
        let (now, up) = (self.now(), self.up);
        let Some(peer) = self.peers[task as usize].as_deref_mut().filter(|peer| peer.is_up()) else { return };
        let bytes = peer.note(up, wants_reply).encode();
        peer.agreement.noted(now);
        for (_, rail) in self.rails.iter_mut().enumerate().filter(|(at, _)| up & 1 << at != 0) {
            if rail.send_note(task, &bytes)
                && let Some(peer) = self.peers[task as usize].as_deref_mut()
            {
                peer.acknowledge();
            }
        }
    }

    /// Acknowledges alone, over one rail.
    fn send_acknowledgement(&mut self, task: Task) {
        let home = self.home(task);
        let up = self.up;
        let Some(peer) = self.peers[task as usize].as_deref_mut().filter(|peer| peer.is_up()) else { return };
        let Some(rail) = peer.agreement.live_from(home) else { return };
        let note = peer.note(up, false).encode();
        if self.rails[rail].send_note(task, &note)
            && let Some(peer) = self.peer_mut(task)
        {
            peer.acknowledge();
        }
    }

    /// The peer has accepted all packets before this one.
    #[inline]
    pub(super) fn note_accepted(&mut self, task: Task, number: u32) {
        let now = self.now();
        let Self { peers, spare, .. } = self;
        let Some(peer) = peers[task as usize].as_deref_mut() else { return };
        let mut count = 0;
        peer.flow.note_accepted(number, |kept| {
            count += 1;
            if spare.len() < WINDOW as usize {
                spare.push(kept.parcel.into_words());
            }
        });
        if count != 0 {
            // Many together: acknowledgements come late, and a task that has stopped sending
            // still gets some.
            peer.taken += count;
            if peer.taken >= WINDOW / 2 {
                peer.taken = 0;
                peer.progress += 1;
            }
            peer.asked = now;
            self.sleeper.note(std::mem::take(&mut peer.no_room));
            if !peer.backlog.is_empty() {
                self.flush(task);
            }
        }
    }

    /// A packet was accepted: its sender is informed, now or soon.
    #[inline]
    pub(super) fn owe_acknowledgement(&mut self, task: Task) {
        let Some(peer) = self.peers[task as usize].as_deref_mut() else { return };
        if peer.aside.is_empty() && peer.flow.owed() >= WINDOW / 2 {
            self.send_acknowledgement(task);
        } else if !peer.active || peer.flow.owed() == 1 {
            self.look_after(task);
        }
    }

    /// A packet was sent: its acknowledgement is expected.
    #[inline]
    pub(super) fn expect_acknowledgement(&mut self, task: Task) {
        let now = self.now();
        let Some(peer) = self.peers[task as usize].as_deref_mut().filter(|peer| !peer.active) else { return };
        (peer.asked, peer.active) = (now, true);
        self.active.push(task);
        // Nothing need be done unless the acknowledgement is missing.
        let due = self.start + now + ASK;
        self.next_tick = self.next_tick.into_iter().chain([due]).min();
    }

    /// Something is to be done for the peer soon.
    pub(super) fn look_after(&mut self, task: Task) {
        let Some(peer) = self.peers[task as usize].as_deref_mut() else { return };
        if !std::mem::replace(&mut peer.active, true) {
            self.active.push(task);
        }
        let due = Instant::now() + ACKNOWLEDGE;
        self.next_tick = self.next_tick.into_iter().chain([due]).min();
        self.pressing = self.pressing.into_iter().chain([due]).min();
    }

    /// Sends what is to be sent, as far as rails have room again.
    pub(super) fn flush_all(&mut self) {
        for at in 0..self.active.len() {
            let task = self.active[at];
            if self.peer(task).is_some_and(|peer| peer.flow.has_unsent() || !peer.backlog.is_empty()) {
                self.flush(task);
            }
        }
    }

    /// The kernel's view of the links may have changed.
    #[cold]
    fn look_at_links(&mut self) {
        let Some(up) = self.links.poll() else { return };
        let changed = (self.up ^ up) & self.all();
        if changed == 0 {
            return;
        }
        self.up = up;
        if let Some(LinkMessages { names, log }) = &self.messages {
            for (rail, name) in names.iter().enumerate().filter(|(rail, _)| changed & 1 << rail != 0) {
                let state = if up & 1 << rail == 0 { "down: others are used" } else { "up again" };
                log.line(format_args!("attention: the link of rail {name} is {state}"));
            }
        }
        for task in 0..self.peers.len() as Task {
            if let Some(peer) = self.peer_mut(task) {
                peer.agreement.changed();
                self.look_after(task);
            }
        }
        self.tick();
    }

    /// Does what is due for the peers for which something is to be done.
    #[cold]
    fn tick(&mut self) {
        (self.next_tick, self.pressing) = (None, None);
        self.striping.note_change();
        let mut dues = Dues::default();
        for task in std::mem::take(&mut self.active) {
            let due = self.tick_one(task);
            if due.any.is_some() {
                self.active.push(task);
                dues = Dues {
                    any: dues.any.into_iter().chain(due.any).min(),
                    pressing: dues.pressing.into_iter().chain(due.pressing).min(),
                };
            } else if let Some(peer) = self.peer_mut(task) {
                peer.active = false;
            }
        }
        let soonest = self.now() + Duration::from_millis(1);
        let start = self.start;
        let at = |due: Option<Duration>| due.map(|due| start + due.max(soonest));
        self.next_tick = self.next_tick.into_iter().chain(at(dues.any)).min();
        self.pressing = self.pressing.into_iter().chain(at(dues.pressing)).min();
        self.notify();
    }

    /// Does what is due for one peer: when something is due next.
    fn tick_one(&mut self, task: Task) -> Dues {
        let (now, up) = (self.now(), self.up);
        let mut actions = Vec::new();
        let Some(peer) = self.peer_mut(task).filter(|peer| peer.is_up()) else { return Dues::default() };
        peer.agreement.tick(up, now, |action| actions.push(action));
        actions.into_iter().for_each(|action| self.act(task, action));
        self.flush(task);
        let Some(peer) = self.peer_mut(task) else { return Dues::default() };
        let asks = peer.flow.unacknowledged() != 0 && now.saturating_sub(peer.asked) >= ASK;
        if asks {
            peer.asked = now;
        }
        if asks || peer.agreement.note_due(up).is_some_and(|due| due <= now) {
            self.send_note(task, true);
        } else if peer.flow.owed() != 0 && peer.aside.is_empty() {
            self.send_acknowledgement(task);
        }
        let Some(peer) = self.peer(task) else { return Dues::default() };
        let unsent = peer.flow.has_unsent() || !peer.backlog.is_empty();
        let send = unsent.then(|| now + ACKNOWLEDGE);
        let acknowledged = (peer.flow.unacknowledged() != 0).then(|| peer.asked + ASK);
        let agreed = [peer.agreement.tick_due(up), peer.agreement.note_due(up)].into_iter().flatten().min();
        // Not what waits for the peer's program to receive.
        let owed = (peer.flow.owed() != 0 && peer.aside.is_empty()).then(|| now + ACKNOWLEDGE);
        let pressing = [agreed, owed, send].into_iter().flatten().min();
        Dues { any: [pressing, acknowledged].into_iter().flatten().min(), pressing }
    }
}

/// When something is to be done for a peer at the latest.
#[derive(Clone, Copy, Debug, Default)]
struct Dues {
    any: Option<Duration>,
    /// When something is due, without what only matters when something was lost.
    pressing: Option<Duration>,
}
