//! The connections of one task with its peers: which task to call, which call to reply to. There is no socket and no clock
//! here: events come in with the time, actions go out.
//!
//! First contact, the return of a task that was given up, and replacement by a new process are the same thing: one of two
//! tasks *calls*, the other *replies*, the caller *confirms*. Each of the first two messages carries a receive ring that was
//! made for it alone. The caller sends packets after it has confirmed, the other after it has received the confirmation; the
//! channel loses nothing while both live, so no connection is known to only one of them. Of two calls that cross,
//! the one of the lower task counts.

use crate::wire::frame::Task;
use crate::wire::hello::{Hello, NO_EPOCH};
use std::collections::BTreeMap;
use std::time::Duration;

/// The first pause between two calls of a peer that does not listen or has hung up, in a job of a few tasks.
const PAUSE: Duration = Duration::from_millis(1);
/// The longest.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);
/// With this many tasks the first pause is twice as long, and so on: this many start one after the other, and those that have
/// started call those that have not.
const TASKS_PER_PAUSE: u32 = 16;

/// The first and the longest pause in a job of this number of tasks.
fn pauses(tasks: u32) -> (Duration, Duration) {
    (PAUSE * (tasks / TASKS_PER_PAUSE).max(1), LONGEST_PAUSE.max(Duration::from_millis(tasks.into())))
}

/// A channel to another task, by the number that its owner has given it.
pub type Line = u64;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Connect to the peer's listener and send a call with this hello and a new ring; [`Machine::reached`] or
    /// [`Machine::unreachable`] reports the result.
    Dial(Task, Hello),
    /// Reply to the call of the peer that came by this line, with this hello and a new ring. [`Machine::closed`] when it
    /// fails.
    Answer(Task, Line, Hello),
    /// The connection is complete: it is handed to the transport, after the confirmation was sent if `confirm`.
    /// [`Machine::failed`] when that fails.
    Establish {
        /// The peer.
        task: Task,
        /// By this line.
        line: Line,
        /// This task has called.
        confirm: bool,
        /// The program has resumed the peer, with this epoch.
        epoch: Option<u64>,
        /// What the peer has sent about itself.
        hello: Hello,
    },
    /// Close this line, with this reason for the other side, if any.
    HangUp(Line, Option<String>),
    /// This task belongs to this generation from now on: it listens for it too.
    Adopt(u32),
}

/// The state of the connection with one peer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    /// Not connected, and no attempt is made.
    Idle,
    /// An [`Action::Dial`] is being carried out.
    Dialing,
    /// To be called again at this time.
    Waiting { until: Duration },
    /// Called a process with this number by this line. No reply yet.
    Calling { line: Line, process: i32 },
    /// Replied to its call. No confirmation yet.
    Answering { line: Line, hello: Hello },
    /// Packets flow.
    Connected,
    /// The program has given the peer up.
    Parted,
}

/// A call that has come too early: the program has yet to give the former connection up, or to resume the peer.
#[derive(Clone, Debug)]
struct Held {
    line: Line,
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
    /// Before the next call; `None`: the first pause.
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
    /// Whose line it is.
    lines: BTreeMap<Line, Task>,
    actions: Vec<Action>,
}

impl Machine {
    /// Of a task that sends this about itself.
    pub fn new(own: Hello) -> Self {
        Self { own, peers: BTreeMap::new(), lines: BTreeMap::new(), actions: Vec::new() }
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

    /// The task at the other end of a line that this one has called by or replied to.
    pub fn whose(&self, line: Line) -> Option<Task> {
        self.lines.get(&line).copied()
    }

    /// Whether the program has resumed the peer, so that a process of any generation will do.
    pub fn rejoins(&self, task: Task) -> bool {
        self.peers.get(&task).is_some_and(|peer| peer.epoch.is_some())
    }

    /// Whether the peer's process was reached: a line to it is open.
    pub fn is_reached(&self, task: Task) -> bool {
        self.peers.get(&task).is_some_and(|peer| {
            peer.held.is_some() || matches!(peer.state, State::Calling { .. } | State::Answering { .. })
        })
    }

    /// This task has something for the peer, or awaits something from it.
    pub fn want(&mut self, task: Task) {
        let Some(peer) = self.peer(task) else { return };
        peer.wanted = true;
        if peer.state == State::Idle {
            self.dial(task);
        }
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Duration) {
        let is_due = |peer: &Peer| matches!(peer.state, State::Waiting { until } if until <= now);
        let due: Vec<Task> =
            self.peers.iter().filter(|(_, peer)| is_due(peer)).map(|(task, _)| *task).collect();
        due.into_iter().for_each(|task| self.dial(task));
    }

    /// The peer listens: the call was sent by this line, to this process.
    pub fn reached(&mut self, task: Task, line: Line, process: i32) {
        let Some(peer) = self.peer(task) else { return };
        if peer.state != State::Dialing {
            return self.hang_up(line, None);
        }
        peer.state = State::Calling { line, process };
        self.lines.insert(line, task);
    }

    /// The peer does not listen, or the call could not be sent.
    pub fn unreachable(&mut self, task: Task, now: Duration) {
        let tasks = self.own.tasks;
        if let Some(peer) = self.peer(task).filter(|peer| peer.state == State::Dialing) {
            peer.retry(now, tasks);
        }
    }

    /// A call has come by this line, from this process, which has not hung up: a call that was hung up before it was read must
    /// not be passed here, since its caller may have made a later one.
    pub fn called(&mut self, line: Line, hello: Hello, process: i32) {
        let (task, tasks, generation) = (hello.task, self.own.tasks, self.own.generation);
        if hello.tasks != tasks {
            let why = format!(
                "task {} says that the job has {} tasks, task {} says {tasks}; is MP_PROCS the same in all tasks?",
                task, hello.tasks, self.own.task
            );
            return self.hang_up(line, Some(why));
        }
        let me = self.own.task;
        let Some(peer) = self.peer(task) else { return self.hang_up(line, None) };
        let same = peer.epoch.is_some() || hello.epoch != NO_EPOCH || hello.generation == generation;
        match peer.state {
            State::Connected | State::Parted => {
                let before = peer.held.replace(Held { line, hello });
                self.lines.insert(line, task);
                if let Some(before) = before {
                    self.hang_up(before.line, None);
                }
                return;
            }
            _ if !same => return self.hang_up(line, None),
            // A process that has taken the peer's place is preferred to the one that this task has called.
            State::Calling { process: other, .. } if me < task && other == process => {
                return self.hang_up(line, None);
            }
            State::Calling { line: former, .. } | State::Answering { line: former, .. } => {
                peer.state = State::Idle;
                self.hang_up(former, None);
            }
            State::Idle | State::Dialing | State::Waiting { .. } => {}
        }
        let Some(peer) = self.peer(task) else { return };
        let epoch = peer.epoch.unwrap_or(NO_EPOCH);
        self.adopt(&hello);
        let own = Hello { epoch, ..self.own.clone() };
        if let Some(peer) = self.peer(task) {
            peer.state = State::Answering { line, hello };
        }
        self.lines.insert(line, task);
        self.actions.push(Action::Answer(task, line, own));
    }

    /// The reply to the call of this line has arrived.
    pub fn answered(&mut self, line: Line, hello: Hello, now: Duration) {
        let Some(&task) = self.lines.get(&line) else { return self.hang_up(line, None) };
        let (tasks, generation) = (self.own.tasks, self.own.generation);
        let Some(peer) = self.peer(task) else { return };
        if !matches!(peer.state, State::Calling { line: called, .. } if called == line) {
            return self.hang_up(line, None);
        }
        let same = peer.epoch.is_some() || hello.epoch != NO_EPOCH || hello.generation == generation;
        if hello.task != task || hello.tasks != tasks || !same {
            peer.retry(now, tasks);
            return self.hang_up(line, None);
        }
        self.establish(task, line, hello, true);
    }

    /// The confirmation of the caller of this line has arrived.
    pub fn confirmed(&mut self, line: Line) {
        let Some(&task) = self.lines.get(&line) else { return self.hang_up(line, None) };
        let Some(peer) = self.peer(task) else { return };
        match &peer.state {
            State::Answering { line: answered, hello } if *answered == line => {
                let hello = hello.clone();
                self.establish(task, line, hello, false);
            }
            _ => self.hang_up(line, None),
        }
    }

    /// The other side has closed this line, or it is unusable.
    pub fn closed(&mut self, line: Line, now: Duration) {
        let tasks = self.own.tasks;
        let Some(task) = self.lines.remove(&line) else { return };
        let Some(peer) = self.peer(task) else { return };
        peer.held.take_if(|held| held.line == line);
        match peer.state {
            State::Calling { line: own, .. } | State::Answering { line: own, .. } if own == line => {
                peer.retry(now, tasks);
            }
            _ => {}
        }
    }

    /// The connection could not be established: the peer has hung up before it was confirmed.
    pub fn failed(&mut self, task: Task, epoch: Option<u64>, now: Duration) {
        let tasks = self.own.tasks;
        let Some(peer) = self.peer(task).filter(|peer| peer.state == State::Connected) else { return };
        (peer.epoch, peer.wanted) = (epoch, true);
        peer.retry(now, tasks);
    }

    /// The program gives the peer up.
    pub fn part(&mut self, task: Task) {
        let Some(peer) = self.peer(task) else { return };
        (peer.wanted, peer.epoch) = (false, None);
        let state = std::mem::replace(&mut peer.state, State::Parted);
        if let State::Calling { line, .. } | State::Answering { line, .. } = state {
            self.hang_up(line, None);
        }
    }

    /// The program lets the peer, which it has given up, rejoin.
    pub fn rejoin(&mut self, task: Task, epoch: u64) {
        let Some(peer) = self.peer(task) else { return };
        (peer.state, peer.epoch, peer.pause) = (State::Idle, Some(epoch), None);
        if !self.admit_held(task) {
            self.dial(task);
        }
    }

    /// Replies to the call that was held, if one was.
    fn admit_held(&mut self, task: Task) -> bool {
        let held = self.peer(task).and_then(|peer| peer.held.take());
        let Some(Held { line, hello }) = held else { return false };
        self.called(line, hello, 0);
        true
    }

    fn establish(&mut self, task: Task, line: Line, hello: Hello, confirm: bool) {
        self.adopt(&hello);
        self.lines.remove(&line);
        let Some(peer) = self.peer(task) else { return };
        let epoch = peer.epoch.take();
        (peer.state, peer.wanted, peer.pause) = (State::Connected, false, None);
        self.actions.push(Action::Establish { task, line, confirm, epoch, hello });
    }

    /// Tasks of different generations connect only where one has resumed the other: this process has taken another one's place
    /// in a job that the peer knows, and whose openings were counted before its own.
    fn adopt(&mut self, hello: &Hello) {
        if hello.generation < self.own.generation {
            self.own.generation = hello.generation;
            self.actions.push(Action::Adopt(hello.generation));
        }
    }

    fn dial(&mut self, task: Task) {
        let Some(peer) = self.peer(task) else { return };
        peer.state = State::Dialing;
        let epoch = peer.epoch.unwrap_or(NO_EPOCH);
        let own = Hello { epoch, ..self.own.clone() };
        self.actions.push(Action::Dial(task, own));
    }

    fn hang_up(&mut self, line: Line, why: Option<String>) {
        self.lines.remove(&line);
        self.actions.push(Action::HangUp(line, why));
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
