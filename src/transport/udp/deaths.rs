//! The deaths of tasks: found by the tasks of the same host, which watch each other's processes,
//! and made known to all by notices ([`crate::transport::deaths`]).
//!
//! A notice is a datagram outside of any connection, which is sent again until its receipt has
//! arrived. A task that ends LAPI sends notices of that to its neighbours in the ring, which would
//! take the end of its process for a death.

use super::notices::Notices;
use super::seal::{ANNOUNCEMENT, Announcement};
use super::{Nanos, UdpTransport};
use crate::base::process::Process;
use crate::transport::Task;
use crate::transport::deaths::ring::{self, Action, Ring};
use crate::transport::deaths::{Look, Watched};
use crate::transport::presence::Presence;
use crate::wire::network::{Content, Notice};
use std::net::SocketAddr;
use std::time::Duration;

/// The time between two looks at the watched process.
const BETWEEN_LOOKS: Nanos = 100_000_000;

/// The time after which a notice without a receipt is sent again. It doubles with each time.
const FIRST_INTERVAL: Nanos = 20_000_000;
const LONGEST_INTERVAL: Nanos = 1_000_000_000;

/// The first interval of a notice that this task has ended LAPI: the end waits for the receipt.
const FIRST_AT_END: Nanos = 5_000_000;

/// A task that does not reply to this number of notices, within about ten seconds, is silent.
const ATTEMPTS: u32 = 15;

/// With how many cards a look compares what is known of the processes of peers.
const COMPARED: usize = 4;

/// How long a death is not reported here when other hosts have not confirmed yet that they know of
/// it: the program may end at the report.
const REPORT_LATEST: Nanos = 300_000_000;

/// What a task has to watch another one, and to send notices.
pub(super) struct Watch {
    pub(super) ring: Ring,
    processes: Vec<Process>,
    watched: Watched,
    /// Tasks that watch this one, or have.
    watchers: Vec<Task>,
    /// Tasks that know that this one has ended LAPI.
    informed: Vec<Task>,
    /// Notices without a receipt.
    pub(super) outgoing: Notices,
    /// Deaths that are not reported here yet, and when they are at the latest.
    unreported: Vec<(Task, Nanos)>,
    next_look: Nanos,
    /// Which of the peers that were met was compared with its card last.
    compared: usize,
    /// What the ring knows has changed, and was not acted upon yet.
    changed: bool,
}

impl Watch {
    /// When it must be served.
    pub(super) fn due(&self) -> Option<Nanos> {
        let ring = self.ring.due().map(|due| due.as_nanos() as Nanos);
        let reports = self.unreported.iter().map(|(_, latest)| *latest);
        reports.chain(ring).chain(self.outgoing.due()).chain(self.changed.then_some(0)).min()
    }

    fn notice(&self, content: Content, task: Task) -> Notice {
        Notice { content, task, life: self.ring.life(task) }
    }
}

impl UdpTransport {
    /// Takes part in the watch of the tasks for each other. `group_of` numbers, for each task, the
    /// group of tasks that see each other's processes; `processes` are those of all tasks.
    pub fn watch_others(&mut self, group_of: Vec<u32>, mut processes: Vec<Process>) {
        processes[self.me as usize] = self.process;
        let lives: Vec<u32> = processes.iter().map(|process| process.life()).collect();
        self.watch = Some(Box::new(Watch {
            ring: Ring::new(self.me, group_of, &lives),
            processes,
            watched: Watched::default(),
            watchers: Vec::new(),
            informed: Vec::new(),
            outgoing: Notices::default(),
            unreported: Vec::new(),
            next_look: 0,
            compared: 0,
            changed: true,
        }));
    }

    /// Packets to these tasks go by another transport, which finds their deaths itself: they
    /// get notices only.
    pub fn leaves_to_another(&mut self, tasks: Box<[bool]>) {
        self.elsewhere = tasks;
    }

    fn is_elsewhere(&self, task: Task) -> bool {
        self.elsewhere.get(task as usize).is_some_and(|elsewhere| *elsewhere)
    }

    /// [`Self::look_at_others`] at once.
    pub(super) fn look_at_others_now(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.next_look = 0;
        }
        self.look_at_others(self.now());
    }

    /// Looks whether the watched process still runs, and whether others have taken the places of
    /// dead ones, but seldom; does what is to be done, and sends the notices that are due.
    pub(super) fn look_at_others(&mut self, now: Nanos) {
        let Some(watch) = &mut self.watch else { return };
        if watch.next_look <= now && !self.closed {
            watch.next_look = now + BETWEEN_LOOKS;
            watch.changed = true;
            if let Some(task) = watch.ring.probed().filter(|&task| self.directory.has_died(task)) {
                watch.ring.found_dead(task, Duration::from_nanos(now));
            }
            for task in watch.ring.some_dead(COMPARED) {
                if let Some(process) = self.directory.process_of(task) {
                    self.note_card(task, process, now);
                }
            }
            self.compare_cards(now);
        }
        self.follow_ring(now);
        self.send_notices(now);
    }

    /// Watches the task that the ring says, and does what the ring wants done.
    fn follow_ring(&mut self, now: Nanos) {
        while let Some((task, life)) = self.has_ended() {
            // What it has sent before, and perhaps that it has ended LAPI.
            self.take_all();
            let same = |ring: &Ring| ring.watched() == Some(task) && ring.life(task) == life;
            if let Some(watch) = self.watch.as_mut().filter(|watch| same(&watch.ring)) {
                watch.ring.ended(Duration::from_nanos(now));
            }
        }
        let Some(watch) = &mut self.watch else { return };
        watch.ring.serve(Duration::from_nanos(now));
        while let Some(action) = watch.ring.next_action() {
            match action {
                // Another process of the task may have been accepted since: that one lives.
                Action::Report(task) if watch.ring.has_died(task) => {
                    watch.unreported.push((task, now + REPORT_LATEST));
                }
                Action::Report(_) => {}
                Action::Send(to, notice) => {
                    let (content, task, life) = match notice {
                        ring::Notice::Died { task, life, confirm: false } => (Content::Died, task, life),
                        ring::Notice::Died { task, life, confirm: true } => {
                            (Content::DiedConfirm, task, life)
                        }
                        ring::Notice::Confirmed { task, life } => (Content::Confirmed, task, life),
                    };
                    watch.outgoing.send(to, Notice { content, task, life });
                }
            }
        }
        let ring = &watch.ring;
        let waits = |&(task, latest): &(Task, Nanos)| now < latest && ring.spreads(task);
        let (later, due) = watch.unreported.drain(..).partition(waits);
        watch.unreported = later;
        let due: Vec<(Task, Nanos)> = due;
        due.into_iter().for_each(|(task, _)| self.note_death(task));
    }

    /// The task that this one watches, and its life, when its process has ended. Not while
    /// datagrams are taken: what it has sent may be among them.
    fn has_ended(&mut self) -> Option<(Task, u32)> {
        self.device.as_ref()?;
        let watch = self.watch.as_mut().filter(|_| !self.closed)?;
        if !std::mem::take(&mut watch.changed) {
            return None;
        }
        let task = watch.ring.watched()?;
        match watch.watched.look(task, watch.processes[task as usize]) {
            Look::Runs => {}
            Look::Begun => {
                let notice = watch.notice(Content::Watches, task);
                watch.outgoing.send(task, notice);
            }
            Look::Ended => {
                // The next one is looked at, too.
                watch.changed = true;
                return Some((task, watch.ring.life(task)));
            }
        }
        None
    }

    /// Sends the notices that are due.
    fn send_notices(&mut self, now: Nanos) {
        let life = self.process.life();
        let Self { watch: Some(watch), device: Some(device), directory, key, batch, me, .. } = self else {
            return;
        };
        while let Some((to, notice, attempts)) = watch.outgoing.take_due(now) {
            if let Ok(address) = directory.address_of(to) {
                let announcement = Announcement { notice, is_receipt: false, life };
                batch.send_now(&mut **device, address, &key.announce(*me, to, &announcement));
            }
            let closing = notice.content == Content::Closed;
            let first = if closing { FIRST_AT_END } else { FIRST_INTERVAL };
            let next = now + (first << attempts.min(10)).min(LONGEST_INTERVAL);
            let gone =
                |task: Task| watch.ring.is_in_own_group(task) && watch.processes[task as usize].is_gone();
            if attempts + 1 < ATTEMPTS && !(closing && attempts > 0 && gone(to)) {
                watch.outgoing.again(to, notice, attempts + 1, next);
            }
        }
    }

    /// A datagram has arrived that claims to be an announcement. Whether a task of the
    /// job has made it.
    #[cold]
    pub(super) fn note_announcement(
        &mut self,
        now: Nanos,
        from: Task,
        datagram: &[u8],
        at: SocketAddr,
    ) -> bool {
        let Some(Announcement { notice, is_receipt, life: sender }) =
            self.key.announcement(self.me, datagram)
        else {
            return false;
        };
        let closed = self.closed;
        let Some(watch) = self.watch.as_mut().filter(|watch| (notice.task as usize) < watch.processes.len())
        else {
            return true;
        };
        if is_receipt {
            // That of another process than the one that has the number now says
            // nothing of this one.
            let is_its = watch.ring.life(from) == sender;
            if is_its {
                watch.outgoing.forget(from, notice);
            }
            return true;
        }
        let receipt = Announcement { notice, is_receipt: true, life: self.process.life() };
        self.receipts.push((at, self.key.announce(self.me, from, &receipt)));
        let Notice { content, task, life } = notice;
        let time = Duration::from_nanos(now);
        watch.changed = true;
        match content {
            Content::Died | Content::DiedConfirm => {
                let confirm = content == Content::DiedConfirm;
                self.note_unknown_life(from, task, life, now);
                if let Some(watch) = &mut self.watch {
                    watch.ring.note(from, ring::Notice::Died { task, life, confirm }, time);
                }
            }
            Content::Confirmed => watch.ring.note(from, ring::Notice::Confirmed { task, life }, time),
            Content::Watches if task == self.me && life == watch.ring.life(task) => {
                if !watch.watchers.contains(&from) {
                    watch.watchers.push(from);
                }
                let content = if closed { Content::Closed } else { Content::Watched };
                watch.outgoing.send(from, Notice { content, ..notice });
            }
            Content::Watched | Content::Closed if from == task => {
                // This task may have missed that another process has taken the place of the one
                // that it knows.
                self.note_unknown_life(from, task, life, now);
                if self.watch.as_ref().is_some_and(|watch| watch.ring.life(task) == life) {
                    self.note_neighbour(task, content, now);
                }
            }
            Content::Watches | Content::Watched | Content::Closed => {}
        }
        true
    }

    /// A task of this host says that it knows that this one watches it, or that it has ended LAPI.
    fn note_neighbour(&mut self, task: Task, content: Content, now: Nanos) {
        let closed = self.closed;
        let Some(watch) = &mut self.watch else { return };
        if content == Content::Watched {
            return watch.ring.is_open(task);
        }
        // It needs no notice of this task's end any more, and is not there to receive one.
        watch.outgoing.retain(|to, _| to != task);
        self.note_closed(task, now);
        if closed {
            // Others are the neighbours now.
            self.announce_end();
        }
    }

    /// A notice names another process of the task than the one that is known here. When the task's
    /// card shows another one, too, this task has missed a death.
    fn note_unknown_life(&mut self, from: Task, task: Task, life: u32, now: Nanos) {
        let known = self.watch.as_ref().map_or(life, |watch| watch.ring.life(task));
        if known != life && task != self.me {
            self.compare_card(from, task, known, now);
        }
    }

    /// Compares what is known of the processes of peers with their cards, a few at a time: all
    /// tasks of a host may have died, so that no notice of their deaths was sent, and others have
    /// taken their places.
    fn compare_cards(&mut self, now: Nanos) {
        for _ in 0..self.met.len().min(COMPARED) {
            let Some(watch) = &mut self.watch else { return };
            watch.compared = (watch.compared + 1) % self.met.len();
            let task = self.met[watch.compared];
            let known = watch.ring.life(task);
            if self.peer(task).is_some_and(|peer| peer.standing == Presence::Up) {
                self.compare_card(task, task, known, now);
            }
        }
    }

    /// When the task's card shows another process than the one that is known, that one has died.
    fn compare_card(&mut self, from: Task, task: Task, known: u32, now: Nanos) {
        let Some(present) = self.directory.process_of(task).filter(|present| present.life() != known) else {
            return;
        };
        if let Some(watch) = &mut self.watch {
            let died = ring::Notice::Died { task, life: known, confirm: false };
            watch.ring.note(from, died, Duration::from_nanos(now));
        }
        self.note_card(task, present, now);
    }

    /// The task's card shows this process. The death of the one before is reported first, if this
    /// task knows of it.
    fn note_card(&mut self, task: Task, process: Process, now: Nanos) {
        if self.watch.as_ref().is_none_or(|watch| watch.ring.life(task) == process.life()) {
            return;
        }
        self.follow_ring(now);
        let Some(watch) = &mut self.watch else { return };
        if let Some(at) = watch.unreported.iter().position(|(dead, _)| *dead == task) {
            watch.unreported.swap_remove(at);
            self.note_death(task);
        }
        self.note_process(task, process, now);
    }

    /// Whether this is the task's process as far as is known here, and no other one's death is to
    /// be reported: the program parts from the task at such a report.
    pub(super) fn knows_process(&mut self, task: Task, process: (u32, u64), now: Nanos) -> bool {
        let life = Process { pid: process.0, started: process.1 }.life();
        if self.is_elsewhere(task) {
            return true;
        }
        self.note_unknown_life(task, task, life, now);
        self.watch.as_ref().is_none_or(|watch| {
            let reports = watch.unreported.iter().any(|(dead, _)| *dead == task);
            !reports && watch.ring.life(task) == life
        })
    }

    /// The task is this process now.
    pub(super) fn note_process(&mut self, task: Task, process: Process, now: Nanos) {
        let Some(watch) = self.watch.as_mut().filter(|watch| watch.ring.life(task) != process.life()) else {
            return;
        };
        watch.processes[task as usize] = process;
        watch.watched.forget(task);
        watch.watchers.retain(|watcher| *watcher != task);
        // It does not know of deaths that were reported to the process before.
        let stays = |content| matches!(content, Content::Died | Content::DiedConfirm);
        watch.outgoing.retain(|to, notice| to != task || stays(notice.content));
        watch.unreported.retain(|(dead, _)| *dead != task);
        watch.ring.replaced(task, process.life(), Duration::from_nanos(now));
        watch.changed = true;
    }

    /// Another process has the peer's number: the one before has died, which may not be known to
    /// the others yet.
    pub(super) fn note_successor(&mut self, task: Task, process: (u32, u64), now: Nanos) {
        let process = Process { pid: process.0, started: process.1 };
        if let Some(watch) = self.watch.as_mut().filter(|watch| watch.ring.life(task) != process.life()) {
            watch.ring.found_dead(task, Duration::from_nanos(now));
            watch.changed = true;
        }
    }

    /// A task has died: what is begun with it from now on is refused. Has no effect on a peer that
    /// has left, or that is awaited: it was another process that has died.
    fn note_death(&mut self, task: Task) {
        if task == self.me || self.is_elsewhere(task) || self.closed {
            return;
        }
        // A process that has taken the place of another one awaits the peer from its
        // first contact on.
        if self.meet(task) && self.peer(task).is_some_and(|peer| peer.standing == Presence::Up) {
            self.leave(task, Presence::Dead("has ended without calling LAPI_Term".to_owned()));
            self.touch(task);
            self.notify();
        }
    }

    /// The task has ended LAPI.
    pub(super) fn note_closed(&mut self, task: Task, now: Nanos) {
        if let Some(watch) = &mut self.watch {
            watch.ring.closed(task, Duration::from_nanos(now));
            watch.changed = true;
        }
    }

    /// This task ends LAPI: tells those that watch it, and the one that it watches, which may
    /// watch it next.
    pub(super) fn announce_end(&mut self) {
        let me = self.me;
        let Some(watch) = &mut self.watch else { return };
        watch.outgoing.retain(|_, notice| notice.content != Content::Watches);
        let own = watch.notice(Content::Closed, me);
        let neighbours =
            watch.watchers.iter().copied().chain(watch.ring.watcher()).chain(watch.ring.watched());
        for task in neighbours.collect::<Vec<_>>() {
            if watch.ring.is_living(task) && !watch.informed.contains(&task) {
                watch.informed.push(task);
                watch.outgoing.send(task, own);
            }
        }
    }

    /// Whether those that watch this task know of its end, or cannot be reached.
    pub(super) fn has_announced(&self) -> bool {
        let waits = |(_, notice): (Task, Notice)| notice.content == Content::Closed;
        self.watch.as_ref().is_none_or(|watch| !watch.outgoing.iter().any(waits))
    }

    /// Sends the receipts for notices that have arrived.
    pub(super) fn send_receipts(&mut self) {
        let Self { device: Some(device), batch, receipts, .. } = self else { return };
        for (to, receipt) in receipts.drain(..) {
            batch.send_now(&mut **device, to, &receipt);
        }
    }
}

/// The receipts that wait to be sent.
pub(super) type Receipts = Vec<(SocketAddr, [u8; ANNOUNCEMENT])>;
