//! The deaths of tasks: found by the tasks of the same host, which watch each other's processes,
//! and made known to all by notices ([`crate::transport::deaths`]).
//!
//! A notice is a datagram outside of any connection, which is sent again until its receipt has
//! arrived. A task that ends LAPI sends notices of that to its neighbours in the ring, which would
//! take the end of its process for a death.

use super::notices::Notices;
use super::seal::Announcement;
use super::{Nanos, UdpTransport};
use crate::base::process::Process;
use crate::transport::deaths::{self, Look};
use crate::transport::presence::Presence;
use crate::transport::{NO_EPOCH, Task};
use crate::wire::network::{Content, Notice};
use std::net::SocketAddr;
use std::time::Duration;

/// The time between two looks at the watched process, and between two questions for peers that have
/// died; about how many of them is asked at a time.
const BETWEEN_LOOKS: Nanos = 100_000_000;
const LOOKED_AT: usize = 64;

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

/// What this task knows of the deaths of others.
pub(super) struct Deaths {
    /// The watch of the tasks for each other.
    watch: Option<Box<Watch>>,
    /// By task: whether packets to it go by another transport. Empty: none does.
    elsewhere: Box<[bool]>,
    /// When it is asked next which peers have died, and about which of those that were met first.
    next_look: Nanos,
    looked_at: usize,
    /// How long this task's end waits for the receipts of those that watch it: they may have ended
    /// LAPI without its knowledge.
    linger: Duration,
}

impl Deaths {
    pub(super) fn new() -> Self {
        let linger = Duration::from_millis(100);
        Self { watch: None, elsewhere: Box::default(), next_look: 0, looked_at: 0, linger }
    }

    /// When something is to be done about them.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.watch.as_ref().and_then(|watch| watch.due())
    }

    /// How long this task's end waits for the receipts of those that watch it.
    pub(super) fn linger(&self) -> Duration {
        self.linger
    }

    #[cfg(test)]
    pub(super) fn set_linger(&mut self, linger: Duration) {
        self.linger = linger;
    }

    #[cfg(test)]
    pub(super) fn look_now(&mut self) {
        self.next_look = 0;
    }

    #[cfg(test)]
    pub(super) fn watch(&self) -> &Watch {
        self.watch.as_ref().expect("a watch")
    }
}

impl UdpTransport {
    /// Takes part in the watch of the tasks for each other. `group_of` numbers, for each task, the
    /// group of tasks that see each other's processes; `processes` are those of all tasks.
    pub fn watch_others(&mut self, group_of: Vec<u32>, mut processes: Vec<Process>) {
        processes[self.credentials.me() as usize] = self.credentials.process();
        self.deaths.watch = Some(Box::new(Watch {
            shared: deaths::Watch::new(self.credentials.me(), group_of, processes),
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
        self.deaths.elsewhere = tasks;
    }

    fn is_elsewhere(&self, task: Task) -> bool {
        self.deaths.elsewhere.get(task as usize).is_some_and(|elsewhere| *elsewhere)
    }

    /// [`Self::look_at_others`] at once.
    pub(super) fn look_at_others_now(&mut self) {
        if let Some(watch) = &mut self.deaths.watch {
            watch.next_look = 0;
        }
        self.look_at_others(self.now());
    }

    /// Looks whether the watched process still runs, and whether others have taken the places of
    /// dead ones, but seldom; does what is to be done, and sends the notices that are due.
    pub(super) fn look_at_others(&mut self, now: Nanos) {
        let Some(watch) = &mut self.deaths.watch else { return };
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
            let Some(ring) = self.deaths.watch.as_mut().map(|watch| &mut watch.shared.ring) else { return };
            if ring.watched() == Some(task) && ring.life(task) == life {
                ring.ended(Duration::from_nanos(now));
            }
        }
        let Some(watch) = &mut self.deaths.watch else { return };
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
        let watch = self.deaths.watch.as_mut().filter(|_| !self.closed && self.outlet.is_open())?;
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
        let life = self.credentials.process().life();
        let Some(watch) = self.deaths.watch.as_mut().filter(|_| self.outlet.is_open()) else { return };
        while let Some((to, notice, attempts)) = watch.outgoing.take_due(now) {
            if let Ok(address) = self.directory.address_of(to) {
                let announcement = Announcement { notice, is_receipt: false, life };
                self.outlet.send_now(address, &self.credentials.announce(to, &announcement));
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
        let Some(Announcement { notice, is_receipt, life: sender }) = self.credentials.announcement(datagram)
        else {
            return false;
        };
        let closed = self.closed;
        let Some(watch) = self.deaths.watch.as_mut().filter(|_| self.table.has(notice.task)) else {
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
        let receipt = Announcement { notice, is_receipt: true, life: self.credentials.process().life() };
        self.outlet.queue_receipt(at, self.credentials.announce(from, &receipt));
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
        let Some(watch) = &mut self.deaths.watch else { return true };
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
        let known = self.deaths.watch.as_ref().map_or(life, |watch| watch.shared.ring.life(task));
        if known != life && task != self.credentials.me() {
            self.compare_card(from, task, known, now);
        }
    }

    /// Compares what is known of the processes of peers with their cards, a few at a time: all
    /// tasks of a host may have died, so that no notice of their deaths was sent, and others have
    /// taken their places.
    fn compare_cards(&mut self, now: Nanos) {
        for _ in 0..self.table.met().len().min(COMPARED) {
            let Some(watch) = &mut self.deaths.watch else { return };
            watch.compared = (watch.compared + 1) % self.table.met().len();
            let task = self.table.met()[watch.compared];
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
        if let Some(watch) = &mut self.deaths.watch {
            let died = Notice { content: Content::Died, task, life: known };
            watch.shared.note(from, died, Duration::from_nanos(now));
        }
        self.note_card(task, present, now);
    }

    /// The task's card shows this process. The death of the one before is reported first, if this
    /// task knows of it.
    fn note_card(&mut self, task: Task, process: Process, now: Nanos) {
        if self.deaths.watch.as_ref().is_none_or(|watch| watch.shared.ring.life(task) == process.life()) {
            return;
        }
        self.follow_ring(now);
        if self.deaths.watch.as_mut().is_some_and(|watch| watch.shared.forget_report(task)) {
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
        self.deaths.watch.as_ref().is_none_or(|watch| watch.shared.knows(task, life))
    }

    /// The task is this process now.
    pub(super) fn note_process(&mut self, task: Task, process: Process, now: Nanos) {
        let Some(watch) = &mut self.deaths.watch else { return };
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
            self.deaths.watch.as_mut().filter(|watch| watch.shared.ring.life(task) != process.life())
        {
            watch.shared.ring.found_dead(task, Duration::from_nanos(now));
            watch.changed = true;
        }
    }

    /// A task has died: what is begun with it from now on is refused. Has no effect on a peer that
    /// has left, or that is awaited: it was another process that has died.
    fn note_death(&mut self, task: Task) {
        if task == self.credentials.me() || self.is_elsewhere(task) || self.closed {
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
        if let Some(watch) = &mut self.deaths.watch {
            watch.shared.ring.closed(task, Duration::from_nanos(now));
            watch.changed = true;
        }
    }

    /// This task ends LAPI: tells those that watch it, and the one that it watches, which may
    /// watch it next.
    pub(super) fn announce_end(&mut self) {
        let me = self.credentials.me();
        let Some(watch) = &mut self.deaths.watch else { return };
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
        self.deaths.watch.as_ref().is_none_or(|watch| !watch.outgoing.iter().any(waits))
    }

    /// Asks which peers have died; but seldom, and about some of them at a time.
    pub(super) fn look_for_deaths(&mut self) {
        let now = self.now();
        if now < self.deaths.next_look || self.closed {
            return;
        }
        self.deaths.next_look = now + BETWEEN_LOOKS;
        for _ in 0..self.table.met().len().min(LOOKED_AT) {
            self.deaths.looked_at = (self.deaths.looked_at + 1) % self.table.met().len();
            let task = self.table.met()[self.deaths.looked_at];
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
        let patience = self.credentials.patience()?;
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
                self.credentials.opening()
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
}
