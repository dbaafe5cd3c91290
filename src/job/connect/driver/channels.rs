//! What the channels carry: each is read as long as it has messages, and closed at the first one
//! that is not valid.

use super::hindrance::Step;
use super::{Driver, Handshake};
use crate::job::channel::{Channel, Receive, Received};
use crate::job::connect::machine::ChannelId;
use crate::job::derive::is_same;
use crate::wire::VERSION;
use crate::wire::hello::{Message, other_version, refusal};
use rustix::event::epoll;
use std::os::fd::AsFd;
use std::time::Duration;

impl Driver {
    /// A channel to a process of the same user: the user of this task at LAPI_Init, or its present
    /// one, as all tasks of a job may change their user after LAPI_Init. Other channels are closed.
    pub(super) fn add(&mut self, channel: Channel, introduction: Option<Duration>) -> Option<ChannelId> {
        let peer = channel.peer().ok().filter(|peer| self.is_our_user(peer.uid))?;
        self.last_channel += 1;
        let id = self.last_channel;
        let data = epoll::EventData::new_u64(id);
        epoll::add(self.poll.get()?, channel.as_fd(), data, epoll::EventFlags::IN).ok()?;
        let handshake = Handshake { channel, pid: peer.pid, introduction, offer: None, accepted: None };
        self.handshakes.insert(id, handshake);
        Some(id)
    }

    /// Takes all messages of a channel.
    pub(super) fn read(&mut self, id: ChannelId) {
        while let Some(handshake) = self.handshakes.get(&id) {
            match handshake.channel.receive() {
                Ok(Receive::Nothing) => return,
                Ok(Receive::Message(received)) => {
                    if !received.fds.is_empty() {
                        self.hindrance.passed(Step::Receive);
                    }
                    if self.process(id, received).is_none() {
                        self.lose(id);
                    }
                }
                Ok(Receive::Closed) => self.lose(id),
                Err(error) => {
                    // Descriptors that found no room are lost with their message: the other side
                    // sees that the channel is closed.
                    let _ = self.unless_limited(Step::Receive, Err::<(), _>(error));
                    if let (Some(why), Some(handshake)) = (self.refusal(), self.handshakes.get(&id)) {
                        let _ = handshake.channel.try_send(&Message::Refuse(why).encode(), &[]);
                    }
                    self.lose(id);
                }
            }
            self.carry_out();
        }
    }

    /// Closes a channel.
    pub(super) fn lose(&mut self, id: ChannelId) {
        self.handshakes.remove(&id);
        let now = self.now();
        self.machine.closed(id, now);
    }

    /// Takes a message; `None` when it is invalid, and with it the channel.
    fn process(&mut self, id: ChannelId, received: Received) -> Option<()> {
        let now = self.now();
        let handshake = self.handshakes.get_mut(&id)?;
        let pid = handshake.pid;
        let Some(message) = Message::decode(&received.bytes) else {
            // Without a reason the other side would ask again.
            if let Some(theirs) = other_version(&received.bytes).filter(|_| handshake.introduction.is_some())
            {
                let why = format!(
                    "task {} uses another version of the library: its messages have version {VERSION}, those of the task that \
                     connects {theirs}",
                    self.settings.hello.task
                );
                let _ = handshake.channel.try_send(&refusal(theirs, &why), &[]);
            }
            return None;
        };
        match (message, handshake.introduction) {
            (Message::Request(hello), Some(_)) => {
                if !is_same(&self.key.secret, &hello.secret)
                    || matches!(handshake.channel.receive(), Ok(Receive::Closed))
                {
                    return None;
                }
                handshake.introduction = None;
                if hello.tasks == self.settings.hello.tasks
                    && hello.task < hello.tasks
                    && hello.task != self.settings.hello.task
                {
                    handshake.accepted = Some(self.site.accept(hello.task, received.fds).ok()?);
                }
                self.machine.received_request(id, hello, pid);
            }
            (Message::Reply(hello), None) if handshake.offer.is_some() && handshake.accepted.is_none() => {
                if !is_same(&self.key.secret, &hello.secret) || hello.task >= self.settings.hello.tasks {
                    return None;
                }
                handshake.accepted = Some(self.site.accept(hello.task, received.fds).ok()?);
                self.machine.received_reply(id, hello, now);
            }
            (Message::Confirm, None) => self.machine.received_confirmation(id),
            (Message::Refuse(why), None) => {
                if let Some(task) = self.machine.whose(id) {
                    self.refuse(task, why);
                }
                return None;
            }
            _ => return None,
        }
        Some(())
    }

    fn is_our_user(&self, uid: u32) -> bool {
        uid == self.key.uid || uid == rustix::process::geteuid().as_raw()
    }
}
