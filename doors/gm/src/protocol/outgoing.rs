//! A connection at its sender: what goes to one port of one node with one priority, in order.

mod around;
mod ends;
mod search;
mod state;

pub use around::Around;

use super::types::{Data, Event, Output, Request, Target};
use crate::abi::{SEND_TOKENS, Status};
use crate::wire::{Header, Kind, MAY_MOVE, Word};
use state::{Flow, Place};
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

/// The target of what is under way is asked for a sign of life after this time, in microseconds.
const SIGN_OF_LIFE: u64 = 1_000_000;
/// A target that may owe a word is asked after this time, and again after twice as long each, up
/// to [`SIGN_OF_LIFE`]: it may have looked into its port for the last time in a while. The clock
/// may be some milliseconds behind.
const WORD: u64 = 5_000;

#[derive(Debug)]
pub struct Outgoing {
    target: Target,
    /// [`Kind::Send`] for messages and puts, [`Kind::Get`], or [`Kind::Datagram`].
    kind: Kind,
    index: u32,
    place: Place,
    /// The task that has had the port has refused a get or a datagram, since the port is closed
    /// there: another one may have opened it.
    may_have_moved: bool,
    /// The task that something was last sent to.
    posted_to: Option<u32>,
    flow: Flow,
    epoch: u32,
    round: u32,
    /// The number of the first message that is not delivered.
    base: u32,
    /// The messages that have not ended, in their order.
    queue: VecDeque<u32>,
    /// The ends of sends that were wrong, and of drops, and after how many ends of the connection's
    /// messages they come: in the order of the program's calls.
    faults: VecDeque<(u32, Event)>,
    /// How many messages have ended.
    ended: u32,
    /// How many of the queue, from the first one on, are delivered.
    delivered: u32,
    /// How many of them, from the first one on, were sent in this round or taken before.
    sent: u32,
    /// One at a time, until one is delivered.
    careful: bool,
    alive_at: u64,
    /// How long after `alive_at` the target is asked for a word.
    asks_after: u64,
    /// When the port ticks this connection.
    wakes_at: Option<u64>,
    /// The port looks at this connection again, since the network has used memory of the first
    /// message.
    lags: bool,
}

impl Outgoing {
    pub fn new(target: Target, kind: Kind, index: u32, epoch: u32) -> Self {
        Self {
            target,
            kind,
            index,
            place: Place::Unknown,
            may_have_moved: false,
            posted_to: None,
            flow: Flow::Sends,
            epoch,
            round: 0,
            base: 0,
            queue: VecDeque::with_capacity(SEND_TOKENS),
            faults: VecDeque::new(),
            ended: 0,
            delivered: 0,
            sent: 0,
            careful: false,
            alive_at: 0,
            asks_after: WORD,
            wakes_at: None,
            lags: false,
        }
    }

    /// One message more.
    pub fn add(&mut self, around: &mut Around<'_>, message: u32) {
        self.queue.push_back(message);
        self.advance(around);
    }

    /// The failed message is forgotten, and the rest goes.
    pub fn resume(&mut self, around: &mut Around<'_>) {
        if self.flow == Flow::Stands {
            self.restart();
        }
        self.advance(around);
    }

    /// After a failure: all that has not been delivered ends without being sent, and then the drop
    /// itself, which may free the memory; where nothing has failed, after wrong sends and drops of
    /// before, which still wait.
    pub fn drop_all(&mut self, around: &mut Around<'_>, dropped: Event) {
        if self.flow != Flow::Stands {
            match self.faults.back() {
                Some(&(after, _)) => self.faults.push_back((after, dropped)),
                None => around.events.push_back(dropped),
            }
            return;
        }
        self.end_all(around, Status::SendDropped);
        self.restart();
        self.end_in_turn(around.events, dropped);
        self.advance(around);
    }

    /// A reply of the target, or an answer of a task of its node.
    pub fn replied(&mut self, around: &mut Around<'_>, from: u32, header: &Header) {
        if header.epoch != self.epoch {
            if header.kind == Kind::Go {
                self.decline(around, from, header);
            }
            return;
        }
        self.alive_at = around.now;
        match header.kind {
            Kind::NoData | Kind::Refused if self.kind != Kind::Send => self.not_there(from, header),
            Kind::Wait => self.wait(around, header),
            Kind::Go => self.go(around, from, header),
            Kind::Again => self.again(around, header),
            Kind::Refused => self.refused(around, header),
            Kind::Answer => self.answered(around, from, header),
            _ => {}
        }
        self.advance(around);
    }

    /// The target has delivered all messages up to one.
    pub fn delivered(&mut self, around: &mut Around<'_>, word: Word) {
        if word.epoch == self.epoch {
            self.alive_at = around.now;
            let base = self.base;
            self.deliver(around, word.seq);
            self.advance(around);
            if base != self.base && self.is_under_way() {
                self.watch(around);
            }
        }
    }

    /// Whether what is under way in this epoch was sent to this task.
    pub fn has_asked(&self, task: u32, epoch: u32) -> bool {
        self.epoch == epoch && self.posted_to == Some(task)
    }

    /// Whether it is not known of all that was sent what has become of it.
    fn awaits_word(&self) -> bool {
        self.kind == Kind::Send && self.sent > self.delivered
    }

    /// Asks the target what is delivered, if that is not known.
    pub fn ask(&self, around: &mut Around<'_>) {
        if let Place::At(task) = self.place
            && self.awaits_word()
        {
            self.ping(around, task);
        }
    }

    fn ping(&self, around: &mut Around<'_>, task: u32) {
        let header = self.header(around, Kind::Ping);
        around.outputs.push_back(Output { task, header, data: Data::None });
    }

    /// When the target is asked for a word, or for a sign of life.
    fn asks_at(&self) -> u64 {
        self.alive_at + if self.awaits_word() { self.asks_after } else { SIGN_OF_LIFE }
    }

    /// A task is gone.
    pub fn lost(&mut self, around: &mut Around<'_>, task: u32) {
        if self.posted_to == Some(task) {
            self.posted_to = None;
            for &at in &self.queue {
                around.messages.arrives_no_more(at);
                if !around.counts_all {
                    around.messages.release(at);
                }
            }
        }
        match self.place {
            Place::At(at) if at == task => {
                self.place = Place::Unknown;
                if self.sent > self.delivered || matches!(self.flow, Flow::Waits { .. }) {
                    self.fail_first(around, Status::SendTargetNodeUnreachable);
                }
                self.begin_anew(around);
            }
            Place::Asked { .. } if around.nodes.tasks(self.target.node).contains(&task) => {
                self.place = Place::Unknown;
            }
            _ => {}
        }
        self.advance(around);
    }

    /// A time has come for which the connection has asked; `false`: another one holds by now.
    pub fn wakes(&mut self, at: u64) -> bool {
        let is_now = self.wakes_at == Some(at);
        if is_now {
            self.wakes_at = None;
        }
        is_now
    }

    /// The network may not use memory any more that it has used.
    pub fn look_again(&mut self, around: &mut Around<'_>) {
        self.lags = false;
        self.advance(around);
    }

    /// A deadline may have passed.
    pub fn tick(&mut self, around: &mut Around<'_>) {
        if let Flow::Waits { not_open } = self.flow
            && let Some(next) = self.at(self.sent)
        {
            let since = around.messages.at(next).waits_since.unwrap_or(around.now);
            if around.now >= since + around.patience {
                let status = if not_open { Status::SendTargetPortClosed } else { Status::SendTimedOut };
                self.fail(around, next, status);
            } else {
                self.wake_at(around, since + around.patience);
            }
        }
        if self.is_under_way() {
            if around.now >= self.asks_at() {
                self.alive_at = around.now;
                match self.place {
                    Place::At(task) => {
                        self.asks_after = SIGN_OF_LIFE.min(2 * self.asks_after);
                        self.ping(around, task);
                    }
                    _ => self.place = Place::Unknown,
                }
            }
            self.wake_at(around, self.asks_at());
        }
        self.advance(around);
    }

    /// Whether something depends on the target.
    fn is_under_way(&self) -> bool {
        self.sent > self.delivered
            || matches!(self.flow, Flow::Waits { .. })
            || matches!(self.place, Place::Asked { .. })
    }

    fn deliver(&mut self, around: &mut Around<'_>, seq: u32) {
        let more = seq.wrapping_sub(self.base).wrapping_add(1);
        if more > self.queue.len() as u32 - self.delivered {
            // Of before.
            return;
        }
        for &at in self.queue.range(self.delivered as usize..(self.delivered + more) as usize) {
            around.messages.at(at).delivered = true;
        }
        self.delivered += more;
        self.base = self.base.wrapping_add(more);
        self.sent = self.sent.max(self.delivered);
        self.careful &= more == 0;
    }

    /// The position of a message that is sent and not delivered.
    fn position(&self, seq: u32) -> Option<u32> {
        let place = self.delivered.checked_add(seq.wrapping_sub(self.base))?;
        (place < self.sent).then_some(place)
    }

    fn wait(&mut self, around: &mut Around<'_>, header: &Header) {
        let Some(place) = self.position(header.seq) else { return };
        if header.round != self.round || self.flow != Flow::Sends {
            return;
        }
        self.sent = place;
        self.stall(around, header.code == crate::wire::NOT_OPEN);
    }

    /// The message that comes next waits.
    fn stall(&mut self, around: &mut Around<'_>, not_open: bool) {
        self.flow = Flow::Waits { not_open };
        if let Some(next) = self.at(self.sent) {
            let since = *around.messages.at(next).waits_since.get_or_insert(around.now);
            self.wake_at(around, since + around.patience);
        }
    }

    fn go(&mut self, around: &mut Around<'_>, from: u32, header: &Header) {
        if around.closing || header.round != self.round || self.place != Place::At(from) {
            return self.decline(around, from, header);
        }
        match self.flow {
            Flow::Waits { .. } => self.flow = Flow::Sends,
            // It has overtaken its Wait, which is then of a round before.
            Flow::Sends => match self.position(header.seq) {
                Some(place) => self.sent = place,
                None => return self.decline(around, from, header),
            },
            _ => return self.decline(around, from, header),
        }
        self.round = self.round.wrapping_add(1);
        self.careful = true;
    }

    fn decline(&self, around: &mut Around<'_>, task: u32, header: &Header) {
        let header = header.reply(Kind::Decline, 0);
        around.outputs.push_back(Output { task, header, data: Data::None });
    }

    fn again(&mut self, around: &mut Around<'_>, header: &Header) {
        if header.round != self.round || self.flow != Flow::Sends {
            return;
        }
        match self.position(header.seq) {
            Some(place) => {
                self.sent = place;
                self.round = self.round.wrapping_add(1);
                self.careful = true;
            }
            // The port was closed, and is another one now. It has met the first message that is not
            // delivered, so the port before has taken none of these.
            None if header.address == self.base.into() => self.begin_anew(around),
            None => self.closed(around),
        }
    }

    fn refused(&mut self, around: &mut Around<'_>, header: &Header) {
        let status = Status::of_peer(header.code);
        let is_closed = status == Status::SendTargetPortClosed;
        if header.round != self.round {
            return;
        }
        if matches!(self.flow, Flow::Waits { .. }) && is_closed {
            return self.closed(around);
        }
        let place = self.position(header.seq).filter(|_| self.flow == Flow::Sends);
        let Some(place) = place else { return };
        if is_closed {
            return self.closed(around);
        }
        self.sent = place;
        if let Some(message) = self.at(place) {
            self.fail(around, message, status);
        }
    }

    fn closed(&mut self, around: &mut Around<'_>) {
        self.fail_first(around, Status::SendTargetPortClosed);
        self.begin_anew(around);
    }

    /// The first message that is not delivered has failed.
    fn fail_first(&mut self, around: &mut Around<'_>, status: Status) {
        if self.kind != Kind::Send {
            return self.end_all(around, status);
        }
        if let Some(first) = self.at(self.delivered) {
            self.sent = self.delivered;
            self.fail(around, first, status);
        }
    }

    /// What is not delivered ends.
    fn end_all(&self, around: &mut Around<'_>, status: Status) {
        for &at in &self.queue {
            let message = around.messages.at(at);
            if !message.delivered {
                message.status.get_or_insert(status);
            }
        }
    }

    fn fail(&mut self, around: &mut Around<'_>, message: u32, status: Status) {
        let message = around.messages.at(message);
        if message.status.is_none() {
            message.status = Some(status);
            self.flow = Flow::Fails;
        }
    }

    /// The target has forgotten the connection.
    fn begin_anew(&mut self, around: &mut Around<'_>) {
        (self.place, self.may_have_moved) = (Place::Unknown, false);
        self.epoch = around.epochs.fetch_add(1, Ordering::Relaxed) + 1;
        (self.round, self.base) = (0, 0);
        // A get that has not ended has failed, and a datagram is not sent again.
        if self.kind == Kind::Send {
            self.sent = self.delivered;
        }
    }

    fn restart(&mut self) {
        self.flow = Flow::Sends;
        self.round = self.round.wrapping_add(1);
        self.sent = self.delivered;
        self.careful = true;
    }

    /// Ends what can end, and sends what can be sent.
    pub fn advance(&mut self, around: &mut Around<'_>) {
        self.settle(around);
        while self.flow == Flow::Sends && !around.closing {
            let Some(next) = self.at(self.sent) else { return };
            if around.messages.at(next).status.is_some() {
                // It ends when its memory is free.
                return;
            }
            match self.place {
                Place::At(task) if around.nodes.is_lost(task) => self.place = Place::Unknown,
                // What is under way gets its answers from there.
                Place::At(_) if self.may_have_moved && self.sent > self.delivered => return,
                Place::At(_) if self.may_have_moved => {
                    (self.place, self.may_have_moved) = (Place::Unknown, false);
                }
                Place::At(task) => {
                    if self.careful && self.sent > self.delivered {
                        return;
                    }
                    self.post(around, task, next);
                }
                Place::Asked { .. } => return,
                Place::Unknown => self.find(around),
            }
            self.settle(around);
        }
    }

    fn watch(&mut self, around: &mut Around<'_>) {
        (self.alive_at, self.asks_after) = (around.now, WORD);
        self.wake_at(around, self.asks_at());
    }

    /// The port ticks this connection at that time, or before.
    fn wake_at(&mut self, around: &mut Around<'_>, at: u64) {
        if self.wakes_at.is_none_or(|before| at < before) {
            self.wakes_at = Some(at);
            around.timers.push(Reverse((at, self.index)));
        }
    }

    fn post(&mut self, around: &mut Around<'_>, task: u32, at: u32) {
        let Request { kind, size, address, length, remote, .. } = around.messages.at(at).request;
        let mut header = self.header(around, kind);
        header.seq = self.base.wrapping_add(self.sent - self.delivered);
        (header.size, header.address, header.length) = (size, remote, length);
        match kind {
            Kind::Get => (header.index, header.round) = (at, around.messages.at(at).life),
            Kind::Datagram if around.nodes.tasks(self.target.node).len() > 1 => header.code = MAY_MOVE,
            _ => {}
        }
        let data = match kind {
            Kind::Get => Data::None,
            _ => Data::Memory { address, length, counter: around.messages.post(at) },
        };
        around.outputs.push_back(Output { task, header, data });
        self.posted_to = Some(task);
        self.sent += 1;
        if self.sent == self.delivered + 1 {
            self.watch(around);
        }
        if kind == Kind::Datagram {
            around.messages.at(at).delivered = true;
        }
    }

    fn header(&self, around: &Around<'_>, kind: Kind) -> Header {
        Header {
            priority: self.target.priority,
            epoch: self.epoch,
            round: self.round,
            index: self.index,
            ..Header::of(kind, around.port, self.target.port)
        }
    }

    /// The message at a position of the queue.
    fn at(&self, place: u32) -> Option<u32> {
        self.queue.get(place as usize).copied()
    }
}
