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
use crate::transport::deaths::{self, Step};
use crate::transport::presence::Presence;
use crate::transport::{NO_EPOCH, Task};
use crate::wire::network::{Content, Notice};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The time between two questions for peers that have died, and about how many of them is asked at
/// a time.
const BETWEEN_LOOKS: Nanos = 100_000_000;
const LOOKED_AT: usize = 64;

/// The time after which a notice without a receipt is sent again. It doubles with each time.
const FIRST_INTERVAL: Nanos = 20_000_000;
const LONGEST_INTERVAL: Nanos = 1_000_000_000;

/// The first interval of a notice that this task has ended LAPI: the end waits for the receipt.
const FIRST_AT_END: Nanos = 5_000_000;

/// A task that does not reply to this number of notices, within about ten seconds, is silent.
const ATTEMPTS: u32 = 15;

/// What a task has to watch another one, and to send notices.
pub(super) struct Watch {
    pub(super) shared: deaths::Watch,
    /// Tasks that know that this one has ended LAPI.
    informed: Vec<Task>,
    /// Notices without a receipt.
    pub(super) outgoing: Notices,
}

/// What this task knows of the deaths of others.
pub(super) struct Deaths {
    /// The watch of the tasks for each other.
    pub(super) watch: Option<Box<Watch>>,
    /// When it is asked next which peers have died, and about which of those that were met first.
    pub(super) next_look: Nanos,
    looked_at: usize,
    /// How long this task's end waits for the receipts of those that watch it: they may have ended
    /// LAPI without its knowledge.
    pub(super) linger: Duration,
}

impl Deaths {
    pub(super) fn new() -> Self {
        let linger = Duration::from_millis(100);
        Self { watch: None, next_look: 0, looked_at: 0, linger }
    }

    /// When something is to be done about them.
    pub(super) fn due(&self, start: Instant) -> Option<Instant> {
        let watch = self.watch.as_ref()?;
        let at = |nanos| start + Duration::from_nanos(nanos);
        let changed = watch.shared.has_changed().then_some(start);
        watch.shared.due().into_iter().chain(watch.outgoing.due().map(at)).chain(changed).min()
    }
}

impl UdpTransport {
    /// Takes part in the watch of the tasks for each other. `group_of` numbers, for each task, the
    /// group of tasks that see each other's processes; `processes` are those of all tasks. Packets
    /// to those `elsewhere`, by task, go by another transport, which finds their deaths itself:
    /// they get notices only.
    pub fn watch_others(&mut self, group_of: Vec<u32>, mut processes: Vec<Process>, elsewhere: Box<[bool]>) {
        processes[self.credentials.me as usize] = self.credentials.process;
        self.deaths.watch = Some(Box::new(Watch {
            shared: deaths::Watch::new(self.credentials.me, group_of, processes, elsewhere),
            informed: Vec::new(),
            outgoing: Notices::default(),
        }));
    }

    fn is_elsewhere(&self, task: Task) -> bool {
        self.deaths.watch.as_ref().is_some_and(|watch| watch.shared.is_elsewhere(task))
    }

    /// [`Self::look_at_others`] at once.
    pub(super) fn look_at_others_now(&mut self) {
        self.tell_watch(|watch| watch.look_now());
        self.look_at_others(self.now());
    }

    /// Passes news to the watch, if there is one.
    pub(super) fn tell_watch(&mut self, news: impl FnOnce(&mut deaths::Watch)) {
        if let Some(watch) = &mut self.deaths.watch {
            news(&mut watch.shared);
        }
    }

    /// Looks whether the watched process still runs, and whether others have taken the places of
    /// dead ones, but seldom; does what is to be done, and sends the notices that are due.
    pub(super) fn look_at_others(&mut self, now: Nanos) {
        let Self { deaths: Deaths { watch: Some(watch), .. }, table, directory, closed, .. } = self else {
            return;
        };
        if !*closed {
            let met = |task| table.get(task).is_some_and(|peer| peer.standing == Presence::Up);
            watch.shared.look(&mut **directory, met);
        }
        self.follow_ring();
        self.send_notices(now);
    }

    /// Does what the watch wants done.
    fn follow_ring(&mut self) {
        let looks = !self.closed && self.outlet.is_open();
        while let Some(watch) = &mut self.deaths.watch
            && let Some(step) = watch.shared.step(looks)
        {
            match step {
                Step::Take => {
                    self.take_all();
                    self.tell_watch(|watch| watch.taken());
                }
                Step::Send(to, notice) => watch.outgoing.send(to, notice),
                Step::Report(task) => self.note_death(task),
                Step::Replaced(task, process) => self.note_process(task, process),
            }
        }
    }

    /// Sends the notices that are due.
    fn send_notices(&mut self, now: Nanos) {
        let life = self.credentials.process.life();
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
            let gone = |task| shared.ring().is_in_own_group(task) && shared.process(task).is_gone();
            if attempts + 1 < ATTEMPTS && !(closing && attempts > 0 && gone(to)) {
                watch.outgoing.again(to, notice, attempts + 1, next);
            }
        }
    }

    /// A datagram has arrived that claims to be an announcement. Whether a task of the
    /// job has made it.
    #[cold]
    pub(super) fn note_announcement(&mut self, from: Task, datagram: &[u8], at: SocketAddr) -> bool {
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
            if watch.shared.ring().life(from) == sender {
                watch.outgoing.forget(from, notice);
            }
            return true;
        }
        let receipt = Announcement { notice, is_receipt: true, life: self.credentials.process.life() };
        self.outlet.queue_receipt(at, self.credentials.announce(from, &receipt));
        let Notice { content, task, life } = notice;
        let Self { deaths: Deaths { watch: Some(watch), .. }, directory, .. } = self else { return true };
        if watch.shared.notice_names(from, notice, &mut **directory) {
            self.follow_ring();
        }
        let Some(watch) = &mut self.deaths.watch else { return true };
        if watch.shared.note(from, notice) {
            let content = if closed { Content::Closed } else { Content::Watched };
            watch.outgoing.send(from, Notice { content, ..notice });
        }
        if content == Content::Closed && from == task && watch.shared.ring().life(task) == life {
            // It needs no notice of this task's end any more, and is not there to receive one.
            watch.outgoing.retain(|to, _| to != task);
            watch.shared.closed(task);
            if closed {
                // Others are the neighbours now.
                self.announce_end();
            }
        }
        true
    }

    /// Whether the task's process is known ([`deaths::Watch::knows`]).
    pub(super) fn knows_process(&mut self, task: Task, process: Process) -> bool {
        let life = process.life();
        if self.is_elsewhere(task) {
            return true;
        }
        let Self { deaths: Deaths { watch: Some(watch), .. }, directory, .. } = self else { return true };
        if watch.shared.names(task, task, life, &mut **directory) {
            self.follow_ring();
        }
        self.deaths.watch.as_ref().is_none_or(|watch| watch.shared.knows(task, life))
    }

    /// The task is this process now.
    pub(super) fn note_process(&mut self, task: Task, process: Process) {
        let Some(watch) = &mut self.deaths.watch else { return };
        if watch.shared.replaced(task, process) {
            // It does not know of deaths that were reported to the process before.
            let stays = |content| matches!(content, Content::Died | Content::DiedConfirm);
            watch.outgoing.retain(|to, notice| to != task || stays(notice.content));
        }
    }

    /// A task has died: what is begun with it from now on is refused. Has no effect on a peer that
    /// has left, or that is awaited: it was another process that has died.
    fn note_death(&mut self, task: Task) {
        if task == self.credentials.me || self.is_elsewhere(task) || self.closed {
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

    /// This task ends LAPI: tells those that watch it, and the one that it watches, which may
    /// watch it next.
    pub(super) fn announce_end(&mut self) {
        let me = self.credentials.me;
        let Some(watch) = &mut self.deaths.watch else { return };
        watch.outgoing.retain(|_, notice| notice.content != Content::Watches);
        let own = Notice { content: Content::Closed, ..watch.shared.watches(me) };
        for task in watch.shared.neighbours() {
            if watch.shared.ring().is_living(task) && !watch.informed.contains(&task) {
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
            // It may have ended LAPI before, or another process may have taken its place meanwhile.
            self.take_all();
            if self.is_present(task) && self.directory.has_died(task) {
                self.leave(task, Presence::Dead("has ended without calling LAPI_Term".to_owned()));
                self.touch(task);
            }
        }
        self.notify();
    }

    /// Why a peer that has never replied is given up; `None`: it is not.
    fn unanswered(&mut self, task: Task, now: Nanos) -> Option<String> {
        let patience = self.credentials.patience?;
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
                self.credentials.opening
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
