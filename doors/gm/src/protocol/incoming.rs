//! A connection at its target: which message is next, and what was taken and has not yet arrived.

use super::classes::{Buffer, Classes};
use super::registered::{Registered, is_memory};
use super::types::{Data, Event, Output, Verdict};
use super::words::Words;
use crate::abi::{Status, capacity};
use crate::nodes::Nodes;
use crate::wire::{Header, Kind};
use std::collections::VecDeque;

/// What a connection works with.
pub struct Around<'a> {
    pub classes: &'a mut Classes,
    pub events: &'a mut VecDeque<Event>,
    pub outputs: &'a mut VecDeque<Output>,
    pub words: &'a mut Words,
    pub nodes: &'a Nodes,
    /// Which sizes are taken, by priority.
    pub acceptable: [u64; 2],
    /// Whether others may put and get.
    pub remote_access: bool,
    /// The memory into which others may put; `None`: any.
    pub registered: Option<&'a Registered>,
}

/// What a connection that was not served waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Nothing,
    /// Listed in this class.
    Listed(u8),
    /// A buffer of this class is promised to it.
    Promised(u8),
}

/// A message that was taken.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    header: Header,
    /// The buffer that it goes into; `None`: a put.
    buffer: Option<Buffer>,
    is_complete: bool,
}

#[derive(Debug)]
pub struct Incoming {
    from: u32,
    index: u32,
    epoch: u32,
    round: u32,
    /// The number of the message that is next.
    expected: u32,
    /// Nothing more of this round is taken.
    stopped: bool,
    wait: Wait,
    /// The header of the message that waits.
    waiting: Option<Header>,
    arrivals: VecDeque<Arrival>,
    /// The number of the first of them, from the connection's first one on.
    first: u32,
}

impl Incoming {
    pub fn new(from: u32, index: u32) -> Self {
        Self {
            from,
            index,
            epoch: 0,
            round: 0,
            expected: 0,
            stopped: false,
            wait: Wait::Nothing,
            waiting: None,
            arrivals: VecDeque::with_capacity(16),
            first: 0,
        }
    }

    /// A message or a put has come.
    pub fn offered(&mut self, around: &mut Around<'_>, header: &Header) -> Verdict {
        let age = header.epoch.wrapping_sub(self.epoch) as i32;
        if age < 0 {
            return Verdict::Bury;
        }
        if age > 0 {
            self.wait_no_more(around);
            (self.epoch, self.round, self.expected) = (header.epoch, header.round, 0);
            self.stopped = false;
        }
        let newer = header.round.wrapping_sub(self.round) as i32;
        if newer < 0 || newer == 0 && self.stopped {
            return Verdict::Bury;
        }
        self.round = header.round;
        if header.seq != self.expected {
            self.stopped = true;
            let met = Header { address: header.seq.into(), ..header.reply(Kind::Again, 0) };
            self.reply(around, Header { seq: self.expected, ..met });
            return Verdict::Bury;
        }
        self.stopped = false;
        let taken = match header.kind {
            Kind::Put => self.place_of_put(around, header),
            _ => self.buffer_for(around, header),
        };
        let (address, buffer) = match taken {
            Ok(taken) => taken,
            Err((kind, code)) => return self.stop(around, header, kind, code),
        };
        self.expected = self.expected.wrapping_add(1);
        let number = self.first.wrapping_add(self.arrivals.len() as u32);
        self.arrivals.push_back(Arrival { header: *header, buffer, is_complete: false });
        Verdict::Into { address, token: u64::from(self.index) << 32 | u64::from(number) }
    }

    fn place_of_put(
        &mut self,
        around: &mut Around<'_>,
        header: &Header,
    ) -> Result<(usize, Option<Buffer>), (Kind, u8)> {
        self.wait_no_more(around);
        if !around.remote_access {
            return Err((Kind::Refused, Status::SendRejected as u8));
        }
        let (address, length) = (header.address as usize, header.length as usize);
        let is_registered = |registered: &Registered| registered.has(address, length);
        if !is_memory(address, header.length) || !around.registered.is_none_or(is_registered) {
            return Err((Kind::Refused, Status::MemoryFault as u8));
        }
        Ok((address, None))
    }

    fn buffer_for(
        &mut self,
        around: &mut Around<'_>,
        header: &Header,
    ) -> Result<(usize, Option<Buffer>), (Kind, u8)> {
        let class = Classes::of(header.size, header.priority);
        if self.wait != Wait::Promised(class) && self.wait != Wait::Listed(class) {
            self.wait_no_more(around);
        }
        if header.length > capacity(header.size) {
            return Err((Kind::Refused, Status::InvalidParameter as u8));
        }
        if around.acceptable[usize::from(header.priority)] >> header.size & 1 == 0 {
            self.wait_no_more(around);
            return Err((Kind::Refused, Status::SendRejected as u8));
        }
        let buffer = match self.wait {
            Wait::Promised(_) => around.classes.take_promised(class),
            _ => around.classes.take(class),
        };
        match buffer {
            Some(buffer) => {
                if self.wait == Wait::Listed(class) {
                    around.classes.leave(class, self.index);
                }
                (self.wait, self.waiting) = (Wait::Nothing, None);
                Ok((buffer.address, Some(buffer)))
            }
            None => {
                if self.wait == Wait::Nothing {
                    around.classes.wait(class, self.index);
                    self.wait = Wait::Listed(class);
                }
                self.waiting = Some(*header);
                around.words.go_at_once = true;
                Err((Kind::Wait, 0))
            }
        }
    }

    fn stop(&mut self, around: &mut Around<'_>, header: &Header, kind: Kind, code: u8) -> Verdict {
        self.stopped = true;
        around.words.go_at_once = true;
        self.reply(around, header.reply(kind, code));
        Verdict::Bury
    }

    /// A buffer is promised to this connection, which was listed.
    pub fn promised(&mut self, around: &mut Around<'_>) {
        let (Wait::Listed(class), Some(header)) = (self.wait, self.waiting) else { return };
        self.wait = Wait::Promised(class);
        self.reply(around, header.reply(Kind::Go, 0));
    }

    /// The class of which a buffer is promised to this connection.
    #[inline]
    pub fn promised_class(&self) -> Option<u8> {
        if let Wait::Promised(class) = self.wait { Some(class) } else { None }
    }

    /// The sender does not need what was promised.
    pub fn declined(&mut self, around: &mut Around<'_>, header: &Header) {
        let Wait::Promised(class) = self.wait else { return };
        let is_for_this = self.waiting.is_some_and(|waiting| waiting.round == header.round);
        if header.epoch != self.epoch || !is_for_this {
            return;
        }
        (self.wait, self.waiting) = (Wait::Nothing, None);
        around.classes.decline(class);
    }

    /// All data of a message that was taken is there.
    pub fn complete(&mut self, around: &mut Around<'_>, number: u32) {
        let place = number.wrapping_sub(self.first) as usize;
        if let Some(arrival) = self.arrivals.get_mut(place) {
            arrival.is_complete = true;
        }
        while self.arrivals.front().is_some_and(|first| first.is_complete) {
            let Some(Arrival { header, buffer, .. }) = self.arrivals.pop_front() else { break };
            self.first = self.first.wrapping_add(1);
            if let Some(Buffer { address, tag }) = buffer {
                around.events.push_back(Event::Received {
                    buffer: address,
                    tag,
                    size: header.size,
                    priority: header.priority,
                    length: header.length as u32,
                    node: around.nodes.node(self.from),
                    port: header.from_port,
                });
            }
            around.words.note(self.from, &header);
        }
    }

    /// How many messages were taken and have not arrived.
    pub fn arriving(&self) -> usize {
        self.arrivals.len()
    }

    /// The sender's task is gone. Returns the buffers that are free again, by class.
    pub fn lost(&mut self, around: &mut Around<'_>) -> Vec<(u8, Buffer)> {
        self.wait_no_more(around);
        // Another process may take its place, whose epochs begin elsewhere.
        self.epoch = 0;
        let arrivals = std::mem::take(&mut self.arrivals);
        self.first = self.first.wrapping_add(arrivals.len() as u32);
        let back = arrivals.into_iter().filter_map(|arrival| {
            let Header { size, priority, .. } = arrival.header;
            Some((Classes::of(size, priority), arrival.buffer?))
        });
        back.collect()
    }

    /// The port is closed: a sender that waits gets a refusal. Its place in the list, or its
    /// promise, ends with the port.
    pub fn close(&mut self, around: &mut Around<'_>) {
        if let Some(header) = self.waiting.take() {
            self.reply(around, header.reply(Kind::Refused, Status::SendTargetPortClosed as u8));
        }
    }

    /// The task that sends.
    pub fn from(&self) -> u32 {
        self.from
    }

    fn wait_no_more(&mut self, around: &mut Around<'_>) {
        match std::mem::replace(&mut self.wait, Wait::Nothing) {
            Wait::Nothing => {}
            Wait::Listed(class) => around.classes.leave(class, self.index),
            Wait::Promised(class) => around.classes.decline(class),
        }
        self.waiting = None;
    }

    fn reply(&self, around: &mut Around<'_>, header: Header) {
        around.outputs.push_back(Output { task: self.from, header, data: Data::None });
    }
}
