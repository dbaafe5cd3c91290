//! The sockets of the machine: listeners, the channels of the requests that come in and go out, and
//! what they carry.
//!
//! [`listeners`]: under which names this task listens, and the channels that it accepts.
//! [`initiator`]: the requests that this task sends. [`channels`]: the messages of both.
//! [`noticing`]: tasks with which no connection exists. [`hindrance`]: why none can be made.

mod channels;
mod hindrance;
mod initiator;
mod listeners;
mod noticing;

use self::hindrance::Hindrance;
use super::ConnectSettings;
use super::machine::{Action, ChannelId, Machine};
use crate::base::descriptor::Descriptor;
use crate::error::Result;
use crate::job::channel::{Channel, Listener};
use crate::job::name::Key;
use crate::transport::Task;
use crate::transport::shm::connection::{Accepted, Offer, Site};
use crate::wire::hello::Message;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Numbers of listeners have this bit, those of channels do not.
const LISTENER: u64 = 1 << 63;

/// Channels are numbered above this.
const WAKE: ChannelId = super::descriptors::WAKE;

/// See the module's documentation.
pub(super) struct Driver {
    settings: ConnectSettings,
    key: Key,
    site: Site,
    poll: Arc<Descriptor>,
    machine: Machine,
    /// By generation.
    listeners: BTreeMap<u32, Option<Listener>>,
    handshakes: BTreeMap<ChannelId, Handshake>,
    last_channel: ChannelId,
    started: Instant,
    /// Since when a connection with these is wanted.
    wanted: BTreeMap<Task, Duration>,
    /// Why these cannot be connected with.
    refused: BTreeMap<Task, String>,
    /// When connections are accepted again, after descriptors had run out.
    rests_until: Option<Duration>,
    /// When this task tries again to listen under names that other processes have.
    bind_at: Option<Duration>,
    /// How long it waits for that after a failure, or zero where there was none.
    bind_pause: Duration,
    /// Why this task cannot make connections for now.
    hindrance: Hindrance,
    noticed: bool,
    hinted: bool,
    closed: bool,
}

/// A channel, and what was exchanged by it so far.
struct Handshake {
    channel: Channel,
    pid: i32,
    /// Until when the initiator must have identified itself.
    introduction: Option<Duration>,
    offer: Option<Offer>,
    accepted: Option<Accepted>,
}

impl Driver {
    pub(super) fn new(
        settings: ConnectSettings,
        key: Key,
        site: Site,
        poll: Arc<Descriptor>,
    ) -> Result<Self> {
        let generation = settings.hello.generation;
        let mut driver = Self {
            machine: Machine::new(settings.hello.clone()),
            settings,
            key,
            site,
            poll,
            listeners: [(generation, None)].into(),
            handshakes: BTreeMap::new(),
            last_channel: WAKE,
            started: Instant::now(),
            wanted: BTreeMap::new(),
            refused: BTreeMap::new(),
            rests_until: None,
            bind_at: None,
            bind_pause: Duration::ZERO,
            hindrance: Hindrance::default(),
            noticed: false,
            hinted: false,
            closed: false,
        };
        driver.bind()?;
        Ok(driver)
    }

    /// A connection with this task is wanted.
    pub(super) fn want(&mut self, task: Task) {
        let now = self.now();
        if self.closed || self.site.has_established(task) {
            return;
        }
        self.wanted.entry(task).or_insert(now);
        self.machine.want(task);
        self.carry_out();
    }

    /// Reads a confirmation that the task may have sent. Where this task is the initiator there is
    /// nothing to read: it confirms and passes the connection on under one lock.
    pub(super) fn settle(&mut self, task: Task) {
        if let Some(channel) = self.machine.awaits_confirmation(task) {
            self.ready(channel);
        }
    }

    /// See [`Machine::has_parted`].
    pub(super) fn has_parted(&self, task: Task) -> bool {
        self.machine.has_parted(task)
    }

    /// The task was purged: it may not connect until it rejoins.
    pub(super) fn part(&mut self, task: Task) {
        self.wanted.remove(&task);
        self.refused.remove(&task);
        self.machine.part(task);
        self.site.take_back(task);
        self.carry_out();
    }

    /// The task may connect again, from this epoch on.
    pub(super) fn rejoin(&mut self, task: Task, epoch: u64) {
        let now = self.now();
        self.wanted.insert(task, now);
        self.machine.rejoin(task, epoch);
        self.carry_out();
    }

    /// No task can connect any more.
    pub(super) fn close(&mut self) {
        self.closed = true;
        self.listeners.clear();
        self.handshakes.clear();
        self.bind_at = None;
    }

    /// When [`Self::tick`] has something to do.
    pub(super) fn due(&self) -> Option<Duration> {
        if self.closed {
            return None;
        }
        let introductions = self.handshakes.values().filter_map(|handshake| handshake.introduction).min();
        [self.machine.due(), introductions, self.rests_until, self.bind_at, self.notice_due()]
            .into_iter()
            .flatten()
            .min()
    }

    /// How long until then.
    pub(super) fn time_left(&self) -> Option<Duration> {
        self.due().map(|due| due.saturating_sub(self.now()))
    }

    /// Does what is due.
    pub(super) fn tick(&mut self) {
        if self.closed {
            return;
        }
        let now = self.now();
        let late = |handshake: &Handshake| handshake.introduction.is_some_and(|until| until <= now);
        self.handshakes.retain(|_, handshake| !late(handshake));
        if self.bind_at.is_some_and(|at| at <= now) {
            let _ = self.bind();
        }
        if self.rests_until.is_some_and(|until| until <= now) {
            self.rests_until = None;
            self.watch_listeners(true);
        }
        self.machine.tick(now);
        self.carry_out();
        self.name_missing(now);
    }

    /// A listener or a channel has something.
    pub(super) fn ready(&mut self, what: u64) {
        if what & LISTENER != 0 {
            self.accept((what & !LISTENER) as u32);
        } else {
            self.read(what);
        }
        self.carry_out();
    }

    /// Does what the machine wants.
    fn carry_out(&mut self) {
        loop {
            let actions = self.machine.actions();
            if actions.is_empty() {
                return;
            }
            for action in actions {
                self.act(action);
            }
        }
    }

    fn act(&mut self, action: Action) {
        let now = self.now();
        match action {
            Action::Request(task, hello) => match self.request(task, &Message::Request(hello)) {
                Some(channel) => {
                    let pid = self.handshakes.get(&channel).map_or(0, |handshake| handshake.pid);
                    self.machine.reached(task, channel, pid);
                }
                None => self.machine.unreachable(task, now),
            },
            Action::Reply(task, channel, hello) => {
                if self.offer(task, channel, &Message::Reply(hello)).is_none() {
                    self.lose(channel);
                }
            }
            Action::Establish { task, channel, confirm, epoch, hello } => {
                if self.establish(channel, confirm, epoch, &hello).is_some() {
                    self.wanted.remove(&task);
                    self.hindrance.end();
                } else {
                    self.machine.failed(task, epoch, now);
                }
            }
            Action::Close(channel, why) => {
                let handshake = self.handshakes.remove(&channel);
                if let (Some(handshake), Some(why)) = (handshake, why) {
                    let _ = handshake.channel.try_send(&Message::Refuse(why.clone()).encode(), &[]);
                    self.settings.log.line(format_args!("{why}"));
                }
            }
            Action::Adopt(generation) => {
                self.listeners.entry(generation).or_insert(None);
                let _ = self.bind();
            }
        }
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }
}
