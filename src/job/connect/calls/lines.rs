//! What the lines carry: each is read as long as it has messages, and closed at the first one that is not valid.

use super::{Calls, Handshake};
use crate::job::channel::{Channel, Receive, Received};
use crate::job::connect::machine::Line;
use crate::wire::hello::Message;
use rustix::event::epoll;
use std::os::fd::AsFd;
use std::time::Duration;

impl Calls {
    /// A line of a process of the same user: the user of this task at LAPI_Init, or its present one, as all tasks of a job may
    /// change their user after LAPI_Init. Other lines are closed.
    pub(super) fn add(&mut self, channel: Channel, introduction: Option<Duration>) -> Option<Line> {
        let peer = channel.peer().ok().filter(|peer| self.is_our_user(peer.uid))?;
        self.last_line += 1;
        let line = self.last_line;
        let data = epoll::EventData::new_u64(line);
        epoll::add(&self.place.poll, channel.as_fd(), data, epoll::EventFlags::IN).ok()?;
        let handshake = Handshake { channel, pid: peer.pid, introduction, offer: None, accepted: None };
        self.lines.insert(line, handshake);
        Some(line)
    }

    /// Takes all messages of a line.
    pub(super) fn read(&mut self, line: Line) {
        while let Some(handshake) = self.lines.get(&line) {
            match handshake.channel.receive() {
                Ok(Receive::Nothing) => return,
                Ok(Receive::Message(received)) => {
                    if self.process(line, received).is_none() {
                        self.lose(line);
                    }
                }
                // Descriptors that found no room are lost with their message: the other side sees that the line is closed.
                Ok(Receive::Closed) | Err(_) => self.lose(line),
            }
            self.carry_out();
        }
    }

    /// Closes a line.
    pub(super) fn lose(&mut self, line: Line) {
        self.lines.remove(&line);
        let now = self.now();
        self.machine.closed(line, now);
    }

    /// Takes a message; `None` when it is invalid, and with it the line.
    fn process(&mut self, line: Line, received: Received) -> Option<()> {
        let now = self.now();
        let handshake = self.lines.get_mut(&line)?;
        let pid = handshake.pid;
        match (Message::decode(&received.bytes)?, handshake.introduction) {
            (Message::Call(hello), Some(_)) => {
                if !self.place.key.admits(&hello.secret)
                    || matches!(handshake.channel.receive(), Ok(Receive::Closed))
                {
                    return None;
                }
                handshake.introduction = None;
                if hello.tasks == self.place.hello.tasks
                    && hello.task < hello.tasks
                    && hello.task != self.place.hello.task
                {
                    handshake.accepted = Some(self.place.site.accept(hello.task, received.fds).ok()?);
                }
                self.machine.called(line, hello, pid);
            }
            (Message::Answer(hello), None) if handshake.offer.is_some() && handshake.accepted.is_none() => {
                if !self.place.key.admits(&hello.secret) || hello.task >= self.place.hello.tasks {
                    return None;
                }
                handshake.accepted = Some(self.place.site.accept(hello.task, received.fds).ok()?);
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

    fn is_our_user(&self, uid: u32) -> bool {
        uid == self.place.key.uid || uid == rustix::process::geteuid().as_raw()
    }
}
