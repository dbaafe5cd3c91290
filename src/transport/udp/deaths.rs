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
use crate::transport::deaths::{self, Look};
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

/// What a task has to watch another one, and to send notices.
pub(super) struct Watch {
    pub(super) shared: deaths::Watch,
    /// Tasks that know that this one has ended LAPI.
    informed: Vec<Task>,
    /// Notices without a receipt.
    pub(super) outgoing: Notices,
    next_look: Nanos,
    /// Which of the peers that were met was compared with its card last.
    compared: usize,
    /// What the ring knows has changed, and was not acted upon yet.
    changed: bool,
}

impl Watch {
    /// When it must be served.
    pub(super) fn due(&self) -> Option<Nanos> {
        let shared = self.shared.due().map(|due| due.as_nanos() as Nanos);
        shared.into_iter().chain(self.outgoing.due()).chain(self.changed.then_some(0)).min()
    }
}

impl UdpTransport {
    /// Takes part in the watch of the tasks for each other. `group_of` numbers, for each task, the
    /// group of tasks that see each other's processes; `processes` are those of all tasks.
    pub fn watch_others(&mut self, group_of: Vec<u32>, mut processes: Vec<Process>) {
        processes[self.me as usize] = self.process;
        self.watch = Some(Box::new(Watch {
            shared: deaths::Watch::new(self.me, group_of, processes),
            informed: Vec::new(),
            outgoing: Notices::default(),
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
            if let Some(task) = watch.shared.ring.probed().filter(|&task| self.directory.has_died(task)) {
                watch.shared.ring.found_dead(task, Duration::from_nanos(now));
            }
            for task in watch.shared.ring.some_dead(COMPARED) {
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
            let Some(ring) = self.watch.as_mut().map(|watch| &mut watch.shared.ring) else { return };
            if ring.watched() == Some(task) && ring.life(task) == life {
                ring.ended(Duration::from_nanos(now));
            }
        }
        let Some(watch) = &mut self.watch else { return };
        let time = Duration::from_nanos(now);
        watch.shared.ring.serve(time);
        while let Some((to, notice)) = watch.shared.next_notice(time) {
            watch.outgoing.send(to, notice);
        }
        watch.shared.reports(time).into_iter().for_each(|task| self.note_death(task));
    }

    /// The task that this one watches, and its life, when its process has ended. Not while
    /// datagrams are taken: what it has sent may be among them.
    fn has_ended(&mut self) -> Option<(Task, u32)> {
        self.device.as_ref()?;
        let watch = self.watch.as_mut().filter(|_| !self.closed)?;
        if !std::mem::take(&mut watch.changed) {
            return None;
        }
        let (task, look) = watch.shared.look()?;
        match look {
            Look::Runs => {}
            Look::Begun => watch.outgoing.send(task, watch.shared.watches(task)),
            Look::Ended => {
                // The next one is looked at, too.
                watch.changed = true;
                return Some((task, watch.shared.ring.life(task)));
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
            let shared = &watch.shared;
            let gone = |task| shared.ring.is_in_own_group(task) && shared.process(task).is_gone();
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
        let (closed, tasks) = (self.closed, self.peers.len());
        let Some(watch) = self.watch.as_mut().filter(|_| (notice.task as usize) < tasks) else {
            return true;
        };
        if is_receipt {
            // That of another process than the one that has the number now says
            // nothing of this one.
            if watch.shared.ring.life(from) == sender {
                watch.outgoing.forget(from, notice);
            }
            return true;
        }
        let receipt = Announcement { notice, is_receipt: true, life: self.process.life() };
        self.receipts.push((at, self.key.announce(self.me, from, &receipt)));
        watch.changed = true;
        let Notice { content, task, life } = notice;
        let names = match content {
            Content::Died | Content::DiedConfirm => true,
            // This task may have missed that another process has taken the place of the one
            // that it knows.
            Content::Watched | Content::Closed => from == task,
            Content::Confirmed | Content::Watches => false,
        };
        if names {
            self.note_unknown_life(from, task, life, now);
        }
        let Some(watch) = &mut self.watch else { return true };
        if watch.shared.note(from, notice, Duration::from_nanos(now)) {
            let content = if closed { Content::Closed } else { Content::Watched };
            watch.outgoing.send(from, Notice { content, ..notice });
        }
        if content == Content::Closed && from == task && watch.shared.ring.life(task) == life {
            // It needs no notice of this task's end any more, and is not there to receive one.
            watch.outgoing.retain(|to, _| to != task);
            self.note_closed(task, now);
            if closed {
                // Others are the neighbours now.
                self.announce_end();
            }
        }
        true
    }

    /// A notice names another process of the task than the one that is known here. When the task's
    /// card shows another one, too, this task has missed a death.
    fn note_unknown_life(&mut self, from: Task, task: Task, life: u32, now: Nanos) {
        let known = self.watch.as_ref().map_or(life, |watch| watch.shared.ring.life(task));
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
            let known = watch.shared.ring.life(task);
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
            let died = Notice { content: Content::Died, task, life: known };
            watch.shared.note(from, died, Duration::from_nanos(now));
        }
        self.note_card(task, present, now);
    }

    /// The task's card shows this process. The death of the one before is reported first, if this
    /// task knows of it.
    fn note_card(&mut self, task: Task, process: Process, now: Nanos) {
        if self.watch.as_ref().is_none_or(|watch| watch.shared.ring.life(task) == process.life()) {
            return;
        }
        self.follow_ring(now);
        if self.watch.as_mut().is_some_and(|watch| watch.shared.forget_report(task)) {
            self.note_death(task);
        }
        self.note_process(task, process, now);
    }

    /// Whether the task's process is known ([`deaths::Watch::knows`]).
    pub(super) fn knows_process(&mut self, task: Task, process: (u32, u64), now: Nanos) -> bool {
        let life = Process { pid: process.0, started: process.1 }.life();
        if self.is_elsewhere(task) {
            return true;
        }
        self.note_unknown_life(task, task, life, now);
        self.watch.as_ref().is_none_or(|watch| watch.shared.knows(task, life))
    }

    /// The task is this process now.
    pub(super) fn note_process(&mut self, task: Task, process: Process, now: Nanos) {
        let Some(watch) = &mut self.watch else { return };
        if !watch.shared.replaced(task, process, Duration::from_nanos(now)) {
            return;
        }
        // It does not know of deaths that were reported to the process before.
        let stays = |content| matches!(content, Content::Died | Content::DiedConfirm);
        watch.outgoing.retain(|to, notice| to != task || stays(notice.content));
        watch.shared.forget_report(task);
        watch.changed = true;
    }

    /// Another process has the peer's number: the one before has died, which may not be known to
    /// the others yet.
    pub(super) fn note_successor(&mut self, task: Task, process: (u32, u64), now: Nanos) {
        let process = Process { pid: process.0, started: process.1 };
        if let Some(watch) =
            self.watch.as_mut().filter(|watch| watch.shared.ring.life(task) != process.life())
        {
            watch.shared.ring.found_dead(task, Duration::from_nanos(now));
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
            watch.shared.ring.closed(task, Duration::from_nanos(now));
            watch.changed = true;
        }
    }

    /// This task ends LAPI: tells those that watch it, and the one that it watches, which may
    /// watch it next.
    pub(super) fn announce_end(&mut self) {
        let me = self.me;
        let Some(watch) = &mut self.watch else { return };
        watch.outgoing.retain(|_, notice| notice.content != Content::Watches);
        let own = Notice { content: Content::Closed, ..watch.shared.watches(me) };
        for task in watch.shared.neighbours() {
            if watch.shared.ring.is_living(task) && !watch.informed.contains(&task) {
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
