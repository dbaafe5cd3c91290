//! The sockets of the machine: listeners, the calls that come in and go out, and what they carry.

use super::machine::{Action, Line, Machine};
use crate::abi::LAPI_ERR_SHM_SETUP;
use crate::error::{Error, Result, log};
use crate::job::channel::{Channel, Listener, Receive, Received};
use crate::job::name::Key;
use crate::job::{Openings, ended};
use crate::transport::shm::connection::{Absence, Accepted, Offer, Particulars, Site};
use crate::transport::shm::remote::Landmark;
use crate::transport::{PeerState, Task};
use crate::wire::hello::{Hello, Message, NO_EPOCH};
use crate::wire::launcher::Stage;
use rustix::event::epoll;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a caller may take to identify itself.
const INTRODUCTION: Duration = Duration::from_secs(5);
/// How long the listener rests when no descriptor is free for a caller.
const REST: Duration = Duration::from_millis(20);
/// How often a name is asked for that another process has.
const BETWEEN_BINDS: Duration = Duration::from_millis(50);
/// After how long a task that does not connect is named.
const NOTICE: Duration = Duration::from_secs(10);
/// After how long a hint is printed why it may not be found.
const HINT: Duration = Duration::from_secs(3);

/// Numbers of listeners have this bit, those of lines do not.
const LISTENER: u64 = 1 << 63;

/// Where this task is, and what it has.
pub(super) struct Place {
    pub(super) key: Key,
    pub(super) hello: Hello,
    pub(super) site: Site,
    pub(super) poll: Arc<OwnedFd>,
    pub(super) openings: Openings,
    pub(super) patience: Duration,
    pub(super) info_level: u8,
    pub(super) hint: Option<String>,
}

/// See the module's documentation.
pub(super) struct Calls {
    place: Place,
    machine: Machine,
    /// By generation.
    listeners: BTreeMap<u32, Option<Listener>>,
    lines: BTreeMap<Line, Talk>,
    last_line: Line,
    started: Instant,
    /// Since when a connection with these is wanted.
    wanted: BTreeMap<Task, Duration>,
    /// Why these cannot be connected with.
    refused: BTreeMap<Task, String>,
    /// When the listeners are asked again, after descriptors had run out.
    rests_until: Option<Duration>,
    /// When names are asked for again.
    bind_at: Option<Duration>,
    noticed: bool,
    hinted: bool,
    closed: bool,
}

/// A line, and what was exchanged by it so far.
struct Talk {
    channel: Channel,
    pid: i32,
    /// Until when the caller must have identified itself.
    introduction: Option<Duration>,
    offer: Option<Offer>,
    accepted: Option<Accepted>,
}

impl Calls {
    pub(super) fn new(place: Place) -> Result<Self> {
        let generation = place.hello.generation;
        let mut calls = Self {
            machine: Machine::new(place.hello.clone()),
            place,
            listeners: [(generation, None)].into(),
            lines: BTreeMap::new(),
            last_line: WAKE_LINE,
            started: Instant::now(),
            wanted: BTreeMap::new(),
            refused: BTreeMap::new(),
            rests_until: None,
            bind_at: None,
            noticed: false,
            hinted: false,
            closed: false,
        };
        calls.bind()?;
        Ok(calls)
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Listens under all names that this task should have.
    fn bind(&mut self) -> Result<()> {
        let failed = |reason: std::io::Error| {
            Error::new(
                LAPI_ERR_SHM_SETUP,
                format!("the listener of task {}: {reason}", self.place.hello.task),
            )
        };
        self.bind_at = None;
        for (&generation, listener) in self.listeners.iter_mut().filter(|(_, listener)| listener.is_none()) {
            let name = self.place.key.name(generation, self.place.hello.task);
            match Listener::bind(&name).map_err(failed)? {
                Some(new) => {
                    let data = epoll::EventData::new_u64(LISTENER | u64::from(generation));
                    epoll::add(&self.place.poll, new.as_fd(), data, epoll::EventFlags::IN)
                        .map_err(|reason| failed(reason.into()))?;
                    *listener = Some(new);
                }
                None => {
                    let holder =
                        Channel::connect(&name).ok().flatten().and_then(|channel| channel.peer().ok());
                    if let Some(holder) = holder.filter(|holder| holder.uid != self.place.key.uid) {
                        let detail = format!(
                            "user {} (process {}) has the address of task {} of {}; start the job by poe",
                            holder.uid, holder.pid, self.place.hello.task, self.place.key
                        );
                        return Err(Error::new(LAPI_ERR_SHM_SETUP, detail));
                    }
                    // The process that had this task's place before has not ended.
                    self.bind_at = Some(self.started.elapsed() + BETWEEN_BINDS);
                }
            }
        }
        Ok(())
    }

    pub(super) fn want(&mut self, task: Task) {
        let now = self.now();
        if self.closed || self.place.site.has_handed_over(task) {
            return;
        }
        self.wanted.entry(task).or_insert(now);
        self.machine.want(task);
        self.carry_out();
    }

    pub(super) fn part(&mut self, task: Task) {
        self.wanted.remove(&task);
        self.refused.remove(&task);
        self.machine.part(task);
        self.place.site.take_back(task);
        self.carry_out();
    }

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
        self.lines.clear();
        self.bind_at = None;
    }

    pub(super) fn absence(&self, task: Task) -> Absence {
        let absence = |state, why: &str| Absence { state, why: why.to_owned() };
        if let Some(why) = self.refused.get(&task) {
            return absence(PeerState::Dead, why);
        }
        if self.machine.hears(task) || self.place.site.has_handed_over(task) {
            // It listens: its silence counts like that of any other.
            return absence(PeerState::Up, "is being connected");
        }
        if let Some(end) = ended::of(task) {
            let state = if end.stage == Stage::Left { PeerState::Closed } else { PeerState::Dead };
            return absence(state, &end.to_string());
        }
        let generation = self.machine.generation();
        if !self.machine.rejoins(task) && self.place.openings.has_closed(task, generation) {
            return absence(PeerState::Closed, "has ended LAPI");
        }
        let opened = self.place.openings.opened(task);
        let why = match opened {
            Some(opened) if opened >= generation => "has called LAPI_Init, but cannot be reached",
            _ => "has not called LAPI_Init",
        };
        let waited = self.wanted.get(&task).map_or(Duration::ZERO, |since| self.now().saturating_sub(*since));
        if waited < self.place.patience {
            return absence(PeerState::Connecting, why);
        }
        let seconds = self.place.patience.as_secs();
        absence(PeerState::Dead, &format!("{why} within {seconds} s (LAPI_INIT_TIMEOUT)"))
    }

    /// When [`Self::tick`] has something to do.
    pub(super) fn due(&self) -> Option<Duration> {
        if self.closed {
            return None;
        }
        let introductions = self.lines.values().filter_map(|talk| talk.introduction).min();
        let missed = self.wanted.values().min();
        let hint = missed.filter(|_| !self.hinted && self.place.hint.is_some()).map(|since| *since + HINT);
        let notice = missed.filter(|_| !self.noticed && self.place.info_level >= 1);
        let notice = notice.map(|since| *since + NOTICE);
        [self.machine.due(), introductions, self.rests_until, self.bind_at, hint, notice]
            .into_iter()
            .flatten()
            .min()
    }

    pub(super) fn time_left(&self) -> Option<Duration> {
        self.due().map(|due| due.saturating_sub(self.now()))
    }

    pub(super) fn tick(&mut self) {
        if self.closed {
            return;
        }
        let now = self.now();
        let late = |talk: &Talk| talk.introduction.is_some_and(|until| until <= now);
        self.lines.retain(|_, talk| !late(talk));
        if self.bind_at.is_some_and(|at| at <= now) {
            let _ = self.bind();
        }
        if self.rests_until.is_some_and(|until| until <= now) {
            self.rests_until = None;
            self.watch_listeners(true);
        }
        self.machine.tick(now);
        self.carry_out();
        self.speak(now);
    }

    /// Names the tasks that do not connect.
    fn speak(&mut self, now: Duration) {
        let missed_for = |time: Duration| {
            let missed = self.wanted.iter().filter(|(_, since)| now.saturating_sub(**since) >= time);
            missed.map(|(task, _)| *task).collect::<Vec<Task>>()
        };
        if !self.hinted && !missed_for(HINT).is_empty() {
            self.hinted = true;
            if let Some(hint) = &self.place.hint {
                log(format_args!("task {} is not found: {hint}", missed_for(HINT)[0]));
            }
        }
        let missed = missed_for(NOTICE);
        if !self.noticed && !missed.is_empty() {
            self.noticed = true;
            if self.place.info_level >= 1 {
                let (first, rest) = (missed[0], missed.len() - 1);
                let others = if rest == 0 { String::new() } else { format!(" (and for {rest} more)") };
                log(format_args!("waiting for task {first}, which {}{others}", self.absence(first).why));
            }
        }
    }

    /// A listener or a line has something.
    pub(super) fn ready(&mut self, what: u64) {
        if what & LISTENER != 0 {
            self.accept((what & !LISTENER) as u32);
        } else {
            self.read(what);
        }
        self.carry_out();
    }

    fn accept(&mut self, generation: u32) {
        loop {
            let Some(Some(listener)) = self.listeners.get(&generation) else { return };
            match listener.accept() {
                Ok(Some(channel)) => {
                    let introduction = Some(self.now() + INTRODUCTION);
                    if let Some(line) = self.add(channel, introduction) {
                        self.read(line);
                    }
                }
                Ok(None) => return,
                Err(_) => {
                    // No descriptors: the callers wait in the kernel's queue.
                    self.watch_listeners(false);
                    self.rests_until = Some(self.now() + REST);
                    return;
                }
            }
        }
    }

    fn watch_listeners(&self, watch: bool) {
        for (generation, listener) in &self.listeners {
            let Some(listener) = listener else { continue };
            let data = epoll::EventData::new_u64(LISTENER | u64::from(*generation));
            let flags = if watch { epoll::EventFlags::IN } else { epoll::EventFlags::empty() };
            let _ = epoll::modify(&self.place.poll, listener.as_fd(), data, flags);
        }
    }

    /// A line of a process of the same user: the user of this task at LAPI_Init, or its present one, as all tasks of a job may
    /// change their user after LAPI_Init. Other lines are closed.
    fn add(&mut self, channel: Channel, introduction: Option<Duration>) -> Option<Line> {
        let peer = channel.peer().ok().filter(|peer| self.is_our_user(peer.uid))?;
        self.last_line += 1;
        let line = self.last_line;
        let data = epoll::EventData::new_u64(line);
        epoll::add(&self.place.poll, channel.as_fd(), data, epoll::EventFlags::IN).ok()?;
        let talk = Talk { channel, pid: peer.pid, introduction, offer: None, accepted: None };
        self.lines.insert(line, talk);
        Some(line)
    }

    fn is_our_user(&self, uid: u32) -> bool {
        uid == self.place.key.uid || uid == rustix::process::geteuid().as_raw()
    }

    fn read(&mut self, line: Line) {
        while let Some(talk) = self.lines.get(&line) {
            match talk.channel.receive() {
                Ok(Receive::Nothing) => return,
                Ok(Receive::Message(received)) => {
                    if self.hear(line, received).is_none() {
                        self.lose(line);
                    }
                }
                // Descriptors that found no room are lost with their message: the other side sees that the line is closed.
                Ok(Receive::Closed) | Err(_) => self.lose(line),
            }
            self.carry_out();
        }
    }

    fn lose(&mut self, line: Line) {
        self.lines.remove(&line);
        let now = self.now();
        self.machine.closed(line, now);
    }

    /// Takes a message; `None` when it is invalid, and with it the line.
    fn hear(&mut self, line: Line, received: Received) -> Option<()> {
        let now = self.now();
        let talk = self.lines.get_mut(&line)?;
        let pid = talk.pid;
        match (Message::decode(&received.bytes)?, talk.introduction) {
            (Message::Call(hello), Some(_)) => {
                if !self.place.key.admits(&hello.secret)
                    || matches!(talk.channel.receive(), Ok(Receive::Closed))
                {
                    return None;
                }
                talk.introduction = None;
                if hello.tasks == self.place.hello.tasks
                    && hello.task < hello.tasks
                    && hello.task != self.place.hello.task
                {
                    talk.accepted = Some(self.place.site.accept(hello.task, received.fds).ok()?);
                }
                self.machine.called(line, hello, pid);
            }
            (Message::Answer(hello), None) if talk.offer.is_some() && talk.accepted.is_none() => {
                if !self.place.key.admits(&hello.secret) || hello.task >= self.place.hello.tasks {
                    return None;
                }
                talk.accepted = Some(self.place.site.accept(hello.task, received.fds).ok()?);
                self.machine.answered(line, hello, now);
            }
            (Message::Confirm, None) => self.machine.confirmed(line),
            (Message::Refuse(why), None) => {
                if let Some(task) = self.machine.whose(line) {
                    self.refuse(task, why);
                }
                return None;
            }
            _ => return None,
        }
        Some(())
    }

    fn refuse(&mut self, task: Task, why: String) {
        if let std::collections::btree_map::Entry::Vacant(entry) = self.refused.entry(task) {
            log(format_args!("{why}"));
            entry.insert(format!("refuses to connect: {why}"));
        }
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
            Action::Dial(task, hello) => match self.dial(task, &Message::Call(hello)) {
                Some(line) => {
                    let pid = self.lines.get(&line).map_or(0, |talk| talk.pid);
                    self.machine.reached(task, line, pid);
                }
                None => self.machine.unreachable(task, now),
            },
            Action::Answer(task, line, hello) => {
                if self.answer(task, line, &Message::Answer(hello)).is_none() {
                    self.lose(line);
                }
            }
            Action::Establish { task, line, confirm, epoch, hello } => {
                if self.establish(line, confirm, epoch, &hello).is_some() {
                    self.wanted.remove(&task);
                } else {
                    self.machine.failed(task, epoch, now);
                }
            }
            Action::HangUp(line, why) => {
                let talk = self.lines.remove(&line);
                if let (Some(talk), Some(why)) = (talk, why) {
                    let _ = talk.channel.try_send(&Message::Refuse(why.clone()).encode(), &[]);
                    log(format_args!("{why}"));
                }
            }
            Action::Adopt(generation) => {
                self.listeners.entry(generation).or_insert(None);
                let _ = self.bind();
            }
        }
    }

    fn dial(&mut self, task: Task, call: &Message) -> Option<Line> {
        let opened = self.place.openings.opened(task);
        let own = self.machine.generation();
        let generations = match (self.machine.rejoins(task), opened) {
            (true, Some(opened)) => vec![opened],
            // A process that is new has opened the instance once.
            (true, None) => vec![own, 1],
            (false, Some(opened)) if opened < own => return None,
            (false, _) => vec![own],
        };
        let reach = |generation: u32| Channel::connect(&self.place.key.name(generation, task)).ok()?;
        let channel = generations.into_iter().find_map(reach)?;
        let line = self.add(channel, None)?;
        let sent = self.offer(task, line, call);
        if sent.is_none() {
            self.lines.remove(&line);
        }
        sent.map(|()| line)
    }

    fn answer(&mut self, task: Task, line: Line, answer: &Message) -> Option<()> {
        self.offer(task, line, answer)
    }

    /// Sends a message with a new ring.
    fn offer(&mut self, task: Task, line: Line, message: &Message) -> Option<()> {
        let talk = self.lines.get_mut(&line)?;
        let offer = self.place.site.offer(task).ok()?;
        talk.channel.try_send(&message.encode(), &self.place.site.descriptors(&offer)).ok()?;
        talk.offer = Some(offer);
        Some(())
    }

    fn establish(&mut self, line: Line, confirm: bool, epoch: Option<u64>, hello: &Hello) -> Option<()> {
        let Talk { channel, pid, offer, accepted, .. } = self.lines.remove(&line)?;
        let (offer, accepted) = (offer?, accepted?);
        epoll::delete(&self.place.poll, channel.as_fd()).ok()?;
        if confirm {
            channel.try_send(&Message::Confirm.encode(), &[]).ok()?;
        }
        let about = Particulars {
            task: hello.task,
            pid,
            landmark: Landmark { address: hello.landmark, mark: hello.mark },
            asymmetric: hello.asymmetric,
            epoch: hello.epoch,
            rejoins: epoch.is_some(),
        };
        self.compare_maps(hello);
        self.place.site.hand_over(about, offer, accepted, Box::new(channel));
        Some(())
    }

    /// Reports, once in the job, that addresses of one task are not valid in another.
    fn compare_maps(&mut self, hello: &Hello) {
        let own = &self.place.hello;
        let first = own.task == 0 || hello.task == 0;
        if self.place.info_level >= 1
            && own.maps != hello.maps
            && first
            && own.task < 2
            && hello.epoch == NO_EPOCH
        {
            log(format_args!(
                "attention: the address maps of tasks {} and {} differ. A program that uses addresses of one task in \
                 another without LAPI_Address_init needs them to agree: start it by poe, and link it with -no-pie \
                 (mpcc_r does).",
                own.task, hello.task
            ));
            self.place.hello.maps = hello.maps;
        }
    }
}

/// Lines are numbered above this.
const WAKE_LINE: Line = super::WAKE;
