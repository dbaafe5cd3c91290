//! The connections of one task with its peers: to which task to send a connection request, which
//! request to reply to. There is no socket and no clock here: events come in with the time,
//! actions go out.
//!
//! First contact, the return of a task that was given up, and replacement by a new process are the
//! same thing: one of two tasks, the *initiator*, sends a *request*; the other, the *responder*,
//! sends a *reply*; the initiator *confirms*. Request and reply each carry a receive ring that was
//! made for it alone. The initiator sends packets after it has confirmed, the responder after it
//! has received the confirmation; the channel loses nothing while both live, so no connection is
//! known to only one of them. Of two requests that cross, the one of the lower task counts.

use crate::wire::frame::Task;
use crate::wire::hello::{Hello, NO_EPOCH};
use std::collections::BTreeMap;
use std::time::Duration;

/// The first pause between two requests to a peer that does not listen or has closed the channel,
/// in a job of a few tasks.
const PAUSE: Duration = Duration::from_millis(1);
/// The longest.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// With this many tasks the first pause is twice as long, and so on: this many start one after the
/// other, and those that have started send requests to those that have not.
const TASKS_PER_PAUSE: u32 = 16;

/// The first and the longest pause in a job of this number of tasks.
fn pauses(tasks: u32) -> (Duration, Duration) {
    (PAUSE * (tasks / TASKS_PER_PAUSE).max(1), LONGEST_PAUSE.max(Duration::from_millis(tasks.into())))
}

/// A channel to another task, by the number that its owner has given it.
pub type ChannelId = u64;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Connect to the peer's listener and send a request with this hello and a new ring;
    /// [`Machine::reached`] or [`Machine::unreachable`] reports the result.
    Request(Task, Hello),
    /// Reply to the peer's request that came by this channel, with this hello and a new ring.
    /// [`Machine::closed`] when it fails.
    Reply(Task, ChannelId, Hello),
    /// The connection is complete: it is handed to the transport, after the confirmation was sent
    /// if `confirm`. [`Machine::failed`] when that fails.
    Establish {
        /// The peer.
        task: Task,
        /// By this channel.
        channel: ChannelId,
        /// This task is the initiator.
        confirm: bool,
        /// The program has resumed the peer, with this epoch.
        epoch: Option<u64>,
        /// What the peer has sent about itself.
        hello: Hello,
    },
    /// Close this channel, with this reason for the other side, if any.
    Close(ChannelId, Option<String>),
    /// This task belongs to this generation from now on: it listens for it too.
    Adopt(u32),
}

/// The state of the connection with one peer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Not connected, and no attempt is made.
    Idle,
    /// An [`Action::Request`] is being carried out.
    Requesting,
    /// The next request is to be sent at this time.
    Waiting { until: Duration },
    /// A request was sent to a process with this number by this channel. No reply yet.
    Requested { channel: ChannelId, process: i32 },
    /// Replied to its request. No confirmation yet.
    Replied { channel: ChannelId, hello: Hello },
    /// Packets flow, to and from the process with this incarnation.
    Connected { incarnation: u64 },
    /// The program has given the peer up.
    Parted,
}

/// A request that has come too early: the program has yet to give the former connection up, or to
/// resume the peer.
#[derive(Clone, Debug)]
struct Held {
    channel: ChannelId,
    hello: Hello,
}

#[derive(Clone, Debug)]
struct Peer {
    state: State,
    /// This task wants the connection.
    wanted: bool,
    /// The program has resumed the peer, with this epoch.
    epoch: Option<u64>,
    held: Option<Held>,
    /// Before the next request; `None`: the first pause.
    pause: Option<Duration>,
}

impl Peer {
    const NEW: Self = Self { state: State::Idle, wanted: false, epoch: None, held: None, pause: None };

    /// The last attempt has failed.
    fn retry(&mut self, now: Duration, tasks: u32) {
        if self.wanted || self.epoch.is_some() {
            let (first, longest) = pauses(tasks);
            let pause = self.pause.unwrap_or(first);
            self.state = State::Waiting { until: now + pause };
            self.pause = Some((pause * 2).min(longest));
        } else {
            self.state = State::Idle;
        }
    }
}

/// See the module's documentation.
pub struct Machine {
    /// What this task sends about itself, without a peer's epoch.
    own: Hello,
    peers: BTreeMap<Task, Peer>,
    /// To which task each channel leads.
    channels: BTreeMap<ChannelId, Task>,
    actions: Vec<Action>,
}

impl Machine {
    /// Of a task that sends this about itself.
    pub fn new(own: Hello) -> Self {
        Self { own, peers: BTreeMap::new(), channels: BTreeMap::new(), actions: Vec::new() }
    }

    /// What is to be done, in this order. Each is done before the next event.
    pub fn actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// The generation that this task belongs to.
    pub fn generation(&self) -> u32 {
        self.own.generation
    }

    /// The next time at which [`Self::tick`] has something to do.
    pub fn due(&self) -> Option<Duration> {
        self.peers
            .values()
            .filter_map(|peer| match peer.state {
                State::Waiting { until } => Some(until),
                _ => None,
            })
            .min()
    }

    /// The task at the other end of a channel by which this one has sent a request or a reply.
    pub fn whose(&self, channel: ChannelId) -> Option<Task> {
        self.channels.get(&channel).copied()
    }

    /// Whether the program has resumed the peer, so that a process of any generation will do.
    pub fn rejoins(&self, task: Task) -> bool {
        self.peers.get(&task).is_some_and(|peer| peer.epoch.is_some())
    }

    /// Whether the peer's process was reached: a channel to it is open.
    pub fn is_reached(&self, task: Task) -> bool {
        self.peers.get(&task).is_some_and(|peer| {
            peer.held.is_some() || matches!(peer.state, State::Requested { .. } | State::Replied { .. })
        })
    }

    /// Whether the process that this task is connected with has sent another request, which is
    /// held: its program has given this task up, and lets it rejoin.
    pub fn has_parted(&self, task: Task) -> bool {
        self.peers.get(&task).is_some_and(|peer| match (&peer.state, &peer.held) {
            (State::Connected { incarnation }, Some(held)) => held.hello.incarnation == *incarnation,
            _ => false,
        })
    }

    /// The channel by which the peer is to confirm, which has got a reply to its request.
    pub fn awaits_confirmation(&self, task: Task) -> Option<ChannelId> {
        self.peers.get(&task).and_then(|peer| match peer.state {
            State::Replied { channel, .. } => Some(channel),
            _ => None,
        })
    }

    /// This task has something for the peer, or awaits something from it.
    pub fn want(&mut self, task: Task) {
        let Some(peer) = self.peer(task) else { return };
        peer.wanted = true;
        if peer.state == State::Idle {
            self.request(task);
        }
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Duration) {
        let is_due = |peer: &Peer| matches!(peer.state, State::Waiting { until } if until <= now);
        let due: Vec<Task> =
            self.peers.iter().filter(|(_, peer)| is_due(peer)).map(|(task, _)| *task).collect();
        due.into_iter().for_each(|task| self.request(task));
    }

    /// The peer listens: the request was sent by this channel, to this process.
    pub fn reached(&mut self, task: Task, channel: ChannelId, process: i32) {
        let Some(peer) = self.peer(task) else { return };
        if peer.state != State::Requesting {
            return self.close(channel, None);
        }
        peer.state = State::Requested { channel, process };
        self.channels.insert(channel, task);
    }

    /// The peer does not listen, or the request could not be sent.
    pub fn unreachable(&mut self, task: Task, now: Duration) {
        let tasks = self.own.tasks;
        if let Some(peer) = self.peer(task).filter(|peer| peer.state == State::Requesting) {
            peer.retry(now, tasks);
        }
    }

    /// A request has come by this channel, from this process, which has not closed it: a request
    /// whose channel was closed before it was read must not be passed here, since its initiator may
    /// have sent a later one.
    pub fn received_request(&mut self, channel: ChannelId, hello: Hello, process: i32) {
        let (task, tasks, generation) = (hello.task, self.own.tasks, self.own.generation);
        if hello.tasks != tasks {
            let why = format!(
                "task {} says that the job has {} tasks, task {} says {tasks}; is MP_PROCS the same in all tasks?",
                task, hello.tasks, self.own.task
            );
            return self.close(channel, Some(why));
        }
        let me = self.own.task;
        let Some(peer) = self.peer(task) else { return self.close(channel, None) };
        let same = peer.epoch.is_some() || hello.epoch != NO_EPOCH || hello.generation == generation;
        match peer.state {
            State::Connected { .. } | State::Parted => {
                let before = peer.held.replace(Held { channel, hello });
                self.channels.insert(channel, task);
                if let Some(before) = before {
                    self.close(before.channel, None);
                }
                return;
            }
            _ if !same => return self.close(channel, None),
            // A process that has taken the peer's place is preferred to the one to which this task
            // has sent a request.
            State::Requested { process: other, .. } if me < task && other == process => {
                return self.close(channel, None);
            }
            State::Requested { channel: former, .. } | State::Replied { channel: former, .. } => {
                peer.state = State::Idle;
                self.close(former, None);
            }
            State::Idle | State::Requesting | State::Waiting { .. } => {}
        }
        let Some(peer) = self.peer(task) else { return };
        let epoch = peer.epoch.unwrap_or(NO_EPOCH);
        self.adopt(&hello);
        let own = Hello { epoch, ..self.own.clone() };
        if let Some(peer) = self.peer(task) {
            peer.state = State::Replied { channel, hello };
        }
        self.channels.insert(channel, task);
        self.actions.push(Action::Reply(task, channel, own));
    }

    /// The reply to the request that was sent by this channel has arrived.
    pub fn received_reply(&mut self, channel: ChannelId, hello: Hello, now: Duration) {
        let Some(&task) = self.channels.get(&channel) else { return self.close(channel, None) };
        let (tasks, generation) = (self.own.tasks, self.own.generation);
        let Some(peer) = self.peer(task) else { return };
        if !matches!(peer.state, State::Requested { channel: own, .. } if own == channel) {
            return self.close(channel, None);
        }
        let same = peer.epoch.is_some() || hello.epoch != NO_EPOCH || hello.generation == generation;
        if hello.task != task || hello.tasks != tasks || !same {
            peer.retry(now, tasks);
            return self.close(channel, None);
        }
        self.establish(task, channel, hello, true);
    }

    /// The confirmation of the initiator of this channel has arrived.
    pub fn received_confirmation(&mut self, channel: ChannelId) {
        let Some(&task) = self.channels.get(&channel) else { return self.close(channel, None) };
        let Some(peer) = self.peer(task) else { return };
        match &peer.state {
            State::Replied { channel: own, hello } if *own == channel => {
                let hello = hello.clone();
                self.establish(task, channel, hello, false);
            }
            _ => self.close(channel, None),
        }
    }

    /// The other side has closed this channel, or it is unusable.
    pub fn closed(&mut self, channel: ChannelId, now: Duration) {
        let tasks = self.own.tasks;
        let Some(task) = self.channels.remove(&channel) else { return };
        let Some(peer) = self.peer(task) else { return };
        peer.held.take_if(|held| held.channel == channel);
        match peer.state {
            State::Requested { channel: own, .. } | State::Replied { channel: own, .. } if own == channel => {
                peer.retry(now, tasks);
            }
            _ => {}
        }
    }

    /// The connection could not be established: the peer has closed the channel before it
    /// was confirmed.
    pub fn failed(&mut self, task: Task, epoch: Option<u64>, now: Duration) {
        let tasks = self.own.tasks;
        let Some(peer) = self.peer(task).filter(|peer| matches!(peer.state, State::Connected { .. })) else {
            return;
        };
        (peer.epoch, peer.wanted) = (epoch, true);
        peer.retry(now, tasks);
    }

    /// The program gives the peer up.
    pub fn part(&mut self, task: Task) {
        let Some(peer) = self.peer(task) else { return };
        (peer.wanted, peer.epoch) = (false, None);
        let state = std::mem::replace(&mut peer.state, State::Parted);
        if let State::Requested { channel, .. } | State::Replied { channel, .. } = state {
            self.close(channel, None);
        }
    }

    /// The program lets the peer, which it has given up, rejoin.
    pub fn rejoin(&mut self, task: Task, epoch: u64) {
        let Some(peer) = self.peer(task) else { return };
        (peer.state, peer.epoch, peer.pause) = (State::Idle, Some(epoch), None);
        if !self.admit_held(task) {
            self.request(task);
        }
    }

    /// Replies to the request that was held, if one was.
    fn admit_held(&mut self, task: Task) -> bool {
        let held = self.peer(task).and_then(|peer| peer.held.take());
        let Some(Held { channel, hello }) = held else { return false };
        self.received_request(channel, hello, 0);
        true
    }

    fn establish(&mut self, task: Task, channel: ChannelId, hello: Hello, confirm: bool) {
        self.adopt(&hello);
        self.channels.remove(&channel);
        let Some(peer) = self.peer(task) else { return };
        let epoch = peer.epoch.take();
        let connected = State::Connected { incarnation: hello.incarnation };
        (peer.state, peer.wanted, peer.pause) = (connected, false, None);
        self.actions.push(Action::Establish { task, channel, confirm, epoch, hello });
    }

    /// Tasks of different generations connect only where one has resumed the other: this process
    /// has taken another one's place in a job that the peer knows, and whose openings were counted
    /// before its own.
    fn adopt(&mut self, hello: &Hello) {
        if hello.generation < self.own.generation {
            self.own.generation = hello.generation;
            self.actions.push(Action::Adopt(hello.generation));
        }
    }

    fn request(&mut self, task: Task) {
        let Some(peer) = self.peer(task) else { return };
        peer.state = State::Requesting;
        let epoch = peer.epoch.unwrap_or(NO_EPOCH);
        let own = Hello { epoch, ..self.own.clone() };
        self.actions.push(Action::Request(task, own));
    }

    fn close(&mut self, channel: ChannelId, why: Option<String>) {
        self.channels.remove(&channel);
        self.actions.push(Action::Close(channel, why));
    }

    /// Another task of the job.
    fn peer(&mut self, task: Task) -> Option<&mut Peer> {
        let is_peer = task < self.own.tasks && task != self.own.task;
        is_peer.then(|| self.peers.entry(task).or_insert(Peer::NEW))
    }
}

#[cfg(test)]
#[path = "simulation.rs"]
mod simulation;
#[cfg(test)]
#[path = "machine_tests.rs"]
mod tests;
