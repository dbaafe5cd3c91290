//! Requests to other tasks, and the connections that follow.

use super::hindrance::Step;
use super::{Driver, Handshake};
use crate::job::channel::Channel;
use crate::job::connect::machine::ChannelId;
use crate::transport::Task;
use crate::transport::shm::connection::Particulars;
use crate::transport::shm::remote::Landmark;
use crate::wire::hello::{Hello, Message};
use rustix::event::epoll;
use std::os::fd::AsFd;

impl Driver {
    /// Connects to a task's listener and sends the request. `None`: no process listens.
    pub(super) fn request(&mut self, task: Task, request: &Message) -> Option<ChannelId> {
        let opened = self.settings.openings.opened(task);
        let own = self.machine.generation();
        let generations = match (self.machine.rejoins(task), opened) {
            (true, Some(opened)) => vec![opened],
            // A process that is new has opened the instance once.
            (true, None) => vec![own, 1],
            (false, Some(opened)) if opened < own => return None,
            (false, _) => vec![own],
        };
        let channel = generations.into_iter().find_map(|generation| {
            let connected = Channel::connect(&self.key.name(generation, task));
            self.unless_limited(Step::Connect, connected)?
        })?;
        let id = self.add(channel, None)?;
        let sent = self.offer(task, id, request);
        if sent.is_none() {
            self.handshakes.remove(&id);
        }
        sent.map(|()| id)
    }

    /// Sends a message with a new ring.
    pub(super) fn offer(&mut self, task: Task, id: ChannelId, message: &Message) -> Option<()> {
        let offer = self.site.offer(task);
        let offer = self.unless_limited(Step::Offer, offer)?;
        let handshake = self.handshakes.get_mut(&id)?;
        handshake.channel.try_send(&message.encode(), &self.site.descriptors(&offer)).ok()?;
        handshake.offer = Some(offer);
        Some(())
    }

    /// Passes a complete connection to the transport.
    pub(super) fn establish(
        &mut self,
        id: ChannelId,
        confirm: bool,
        epoch: Option<u64>,
        hello: &Hello,
    ) -> Option<()> {
        let Handshake { channel, pid, offer, accepted, .. } = self.handshakes.remove(&id)?;
        let (offer, accepted) = (offer?, accepted?);
        epoll::delete(self.poll.get()?, channel.as_fd()).ok()?;
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
        self.site.establish(about, offer, accepted, Box::new(channel));
        Some(())
    }
}
