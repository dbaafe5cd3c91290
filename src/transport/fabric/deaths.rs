//! The deaths of tasks: found by the tasks of the same host, which watch each other's processes,
//! and made known to all by notices ([`crate::transport::deaths`]).

use super::FabricTransport;
use super::contact::Peer;
use super::own::Wants;
use crate::base::process::{Handle, Process};
use crate::transport::deaths::{self, Step};
use crate::transport::presence::Presence;
use crate::transport::rails::RailEvent;
use crate::transport::{Peers, Task};
use crate::wire::network::{Content, FrameKind, NOTICE, Notice};
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// The time between two probes of a task of the next host.
const BETWEEN_PROBES: Duration = Duration::from_millis(300);

/// When a probe finds no room for this long, though an earlier one has had a reply, the connection
/// cannot be made again: the process has ended.
const UNREACHABLE: Duration = Duration::from_millis(700);

/// How long notices to a peer are refused before they are given up: a shortage of descriptors, or
/// of a route, may pass.
const REFUSED: Duration = Duration::from_secs(2);

/// Notices to a peer that were not sent yet.
#[derive(Default)]
struct Unsent {
    notices: Vec<Notice>,
    /// Since when they are refused, if they are, and do not merely wait for room.
    refused: Option<Instant>,
}

/// The probes of a task of the next host.
struct Probes {
    task: Task,
    replied: bool,
    next: Instant,
    /// A probe waits for room since then.
    waits: Option<Instant>,
}

/// What a task has to watch another one and to send notices.
pub(super) struct Watch {
    pub(super) shared: deaths::Watch,
    probes: Option<Probes>,
    /// Tasks of other hosts from which notices have come: a connection with them was made.
    contacts: Vec<Task>,
    /// Notices that have arrived and were not noted yet, and their senders.
    arrived: VecDeque<(Task, Notice)>,
    /// Notices that were not sent yet.
    outgoing: BTreeMap<Task, Unsent>,
}

impl FabricTransport {
    /// Takes part in the watch of the tasks for each other. `group_of` numbers, for each task, the
    /// group of tasks that see each other's processes; `processes` are those of all tasks. Packets
    /// to those `elsewhere`, by task, go by another transport, which finds their deaths itself:
    /// they get notices only.
    pub fn watch_others(&mut self, group_of: Vec<u32>, processes: Vec<Process>, elsewhere: Box<[bool]>) {
        self.watch = Some(Box::new(Watch {
            shared: deaths::Watch::new(self.credentials.me, group_of, processes, elsewhere),
            probes: None,
            contacts: Vec::new(),
            arrived: VecDeque::new(),
            outgoing: BTreeMap::new(),
        }));
        self.look_at_others();
    }

    /// [`Self::look_at_others`] at once.
    pub(super) fn look_at_others_now(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.shared.look_now();
        }
        self.look_at_others();
    }

    /// Does now and then what the watch of the tasks needs: looks at cards and at the
    /// watched process, probes the next host, and sends notices that were not sent yet.
    pub(super) fn look_at_others(&mut self) {
        let Self { watch: Some(watch), directory, peers, closed: false, .. } = self else { return };
        let met =
            |task: Task| peers[task as usize].as_ref().is_some_and(|peer| peer.is_up() && peer.has_met());
        if !watch.shared.look(&mut **directory, met) {
            return;
        }
        self.follow_ring();
        self.probe();
        self.look_for_awaited();
        let waiting: Vec<Task> = self.watch.iter().flat_map(|watch| watch.outgoing.keys().copied()).collect();
        waiting.into_iter().for_each(|task| self.send_notices(task));
    }

    /// Whether [`Self::follow_ring`] may have something to do.
    #[inline]
    pub(super) fn has_news_of_others(&self) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.shared.has_changed())
    }

    /// Does what the watch wants done. What is under way with those that have died ends after that,
    /// for all of them at once.
    pub(super) fn follow_ring(&mut self) {
        while let Some(watch) = self.watch.as_mut().filter(|_| !self.closed)
            && let Some(step) = watch.shared.step(true)
        {
            match step {
                Step::Take => {
                    self.advance();
                    // Those of an earlier batch, too, if it is in the middle of them.
                    self.note_notices();
                    self.tell_watch(|watch| watch.taken());
                }
                Step::Send(to, notice) => self.send_notice(to, notice),
                Step::Report(task) => self.note_death(task),
                Step::Replaced(task, process) => self.note_process(task, process),
            }
        }
        if !self.left.is_empty() {
            self.settle();
            self.notify();
        }
    }

    /// Passes news to the watch, if there is one.
    pub(super) fn tell_watch(&mut self, news: impl FnOnce(&mut deaths::Watch)) {
        if let Some(watch) = &mut self.watch {
            news(&mut watch.shared);
        }
    }

    /// Probes a task of the next host.
    fn probe(&mut self) {
        let now = Instant::now();
        let probed = self.watch.as_ref().and_then(|watch| watch.shared.ring().probed());
        // What the endpoint has for it and cannot send yet shows that a connection exists: the task
        // may be stopped.
        let blocked = probed.is_some_and(|task| self.posting.has_posted(task));
        let met = probed.and_then(|task| self.peer(task)).is_some_and(|peer| peer.is_up() && peer.met);
        let Some(watch) = &mut self.watch else { return };
        // A rail that was left says nothing about the process of the peer.
        let left = |task: &Task| self.peers[*task as usize].as_ref().is_some_and(|peer| !peer.is_up());
        let Some(task) = probed.filter(|task| self.rail.is_none() || !left(task)) else {
            watch.probes = None;
            return;
        };
        if watch.probes.as_ref().is_none_or(|probes| probes.task != task) {
            let replied = watch.contacts.contains(&task);
            watch.probes = Some(Probes { task, replied, next: now, waits: None });
        }
        let Some(probes) = &mut watch.probes else { return };
        probes.replied |= met;
        let unsent = watch.outgoing.get(&task);
        // What refuses them is here, and says nothing about the peer.
        let waits = unsent.is_some_and(|unsent| unsent.refused.is_none());
        let unsent = unsent.is_some();
        let since = if waits { Some(*probes.waits.get_or_insert(now)) } else { None };
        probes.waits = since;
        let unreachable = since.is_some_and(|since| now - since > UNREACHABLE);
        let disconnected = unreachable && probes.replied && !blocked;
        if disconnected {
            self.disconnected(task);
            self.follow_ring();
        } else if !unsent && probes.next <= now {
            probes.next = now + BETWEEN_PROBES;
            let notice = watch.shared.watches(task);
            self.send_notice(task, notice);
        }
    }

    /// The connection with a task has ended.
    fn disconnected(&mut self, task: Task) {
        if let Some(watch) = &mut self.watch
            && watch.probes.as_ref().is_some_and(|probes| probes.task == task && probes.replied)
        {
            watch.shared.found_dead(task);
        }
    }

    pub(super) fn send_notice(&mut self, to: Task, notice: Notice) {
        if self.meet(to)
            && let Some(watch) = &mut self.watch
        {
            watch.outgoing.entry(to).or_default().notices.push(notice);
            self.send_notices(to);
        }
    }

    /// Sends the notices for a peer that have room. They have the first tag always: tasks that have
    /// parted send them, too. A peer that they do not reach is lost, but for one to which packets
    /// go by another transport: that gets them later.
    pub(super) fn send_notices(&mut self, task: Task) {
        let Some(mut watch) = self.watch.take() else { return };
        let mut failed = None;
        let Unsent { mut notices, refused: before } = watch.outgoing.remove(&task).unwrap_or_default();
        notices.retain(|notice| {
            if failed.is_some() {
                return true;
            }
            let peer = self.peer(task).filter(|peer| !peer.has_left() && peer.address.is_some());
            let Some(peer) = peer else { return false };
            let frame = self.credentials.frame(FrameKind::Notice, NOTICE);
            failed = self.inject_own(task, peer, &frame, &notice.encode()).err();
            failed.is_some()
        });
        let elsewhere = watch.shared.is_elsewhere(task);
        let refused = failed.filter(|errno| !errno.is_again());
        let since = refused.map(|_| before.unwrap_or_else(Instant::now));
        let keeps = since.is_none_or(|since| elsewhere && since.elapsed() < REFUSED);
        if keeps && !notices.is_empty() {
            watch.outgoing.insert(task, Unsent { notices, refused: since });
        }
        self.watch = Some(watch);
        if failed.is_some() && refused.is_none() {
            self.owe(task, Wants::NOTICE);
        } else {
            self.want_no_more(task, Wants::NOTICE);
        }
        let Some(errno) = refused else { return };
        if !elsewhere {
            self.lose_by(task, errno, &errno.text());
        }
        let ended = [libc::ECONNREFUSED, libc::ECONNRESET, libc::ECONNABORTED, libc::ENOTCONN];
        if ended.contains(&errno.0.abs()) {
            self.disconnected(task);
        }
    }

    /// How many notices to the peer were not sent yet.
    #[cfg(test)]
    pub(super) fn unsent_to(&self, task: Task) -> usize {
        let unsent = self.watch.as_ref().and_then(|watch| watch.outgoing.get(&task));
        unsent.map_or(0, |unsent| unsent.notices.len())
    }

    /// A notice has arrived: it is noted when the rest of its batch has been.
    pub(super) fn keep_notice(&mut self, from: Task, after: &[u8]) {
        if let (Some(watch), Some(notice)) = (&mut self.watch, Notice::decode(after)) {
            watch.arrived.push_back((from, notice));
        }
    }

    /// Notes the notices that have arrived. What one of them shows may make the watch take what has
    /// arrived, which notes those behind it.
    #[inline]
    pub(super) fn note_notices(&mut self) {
        while let Some((from, notice)) = self.watch.as_mut().and_then(|watch| watch.arrived.pop_front()) {
            self.note_notice(from, notice);
        }
    }

    #[cold]
    fn note_notice(&mut self, from: Task, notice: Notice) {
        let Notice { content, task, life } = notice;
        let closed = self.closed;
        if task as usize >= self.peers.len() {
            return;
        }
        let Self { watch: Some(watch), directory, .. } = self else { return };
        if watch.shared.notice_names(from, notice, &mut **directory) {
            self.follow_ring();
        }
        let Some(watch) = &mut self.watch else { return };
        if !watch.contacts.contains(&from) {
            watch.contacts.push(from);
        }
        let is_watched = watch.shared.note(from, notice);
        let knows = content == Content::Watched && from == task && life == watch.shared.ring().life(task);
        if let Some(probes) = watch.probes.as_mut().filter(|probes| knows && probes.task == task) {
            probes.replied = true;
        }
        if is_watched && !closed {
            self.send_notice(from, Notice { content: Content::Watched, ..notice });
        } else if is_watched && self.meet(from) {
            self.owe(from, Wants::DEPARTURE);
            self.send_own(from);
        }
    }

    /// The peer may be another process now.
    pub(super) fn note_process(&mut self, task: Task, process: Process) {
        if let Some(watch) = &mut self.watch
            && watch.shared.replaced(task, process)
        {
            watch.probes.take_if(|probes| probes.task == task);
            watch.contacts.retain(|contact| *contact != task);
            if self.is_elsewhere(task) && self.peer(task).is_some() {
                let _ = self.look_up(task);
            }
        }
    }

    /// Whether packets to the task go by another transport.
    pub(super) fn is_elsewhere(&self, task: Task) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.shared.is_elsewhere(task))
    }

    /// Whether the peer's process is known ([`deaths::Watch::knows`]).
    pub(super) fn knows_process(&self, task: Task, process: Process) -> bool {
        self.watch.as_ref().is_none_or(|watch| watch.shared.knows(task, process.life()))
    }

    /// The tasks that watch this one, or that it watches: they must know when it ends LAPI.
    pub(super) fn neighbours(&self) -> Vec<Task> {
        self.watch.as_ref().map(|watch| watch.shared.neighbours()).unwrap_or_default()
    }

    /// Whether the peer's process can be seen by this task, and runs.
    pub(super) fn sees_running(&self, task: Task) -> bool {
        let Some(watch) = &self.watch else { return false };
        watch.shared.ring().is_in_own_group(task) && Handle::open(watch.shared.process(task)).is_some()
    }

    /// Another task has found that `peer` has died: it is dead here, too. Has no effect on a peer
    /// that has left, or that is awaited: it was another process that has died.
    fn note_death(&mut self, peer: Task) {
        if self.is_elsewhere(peer) {
            // That transport finds it itself.
            return;
        }
        // A rail that is joined again does so with the same process.
        let awaits = |one: &Peer| one.standing == Presence::Rejoining && !self.is_rail_epoch(one.epoch);
        if peer == self.credentials.me || self.peer(peer).is_some_and(awaits) {
            return;
        }
        self.note_event(RailEvent::Ended(peer));
        if !self.is_open(peer) || self.peer(peer).is_some_and(|peer| !peer.is_up()) {
            return;
        }
        if self.meet(peer) {
            self.lose(peer, "has ended without calling LAPI_Term".to_owned());
        }
    }
}
