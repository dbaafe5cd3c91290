//! Calls of other tasks, and the connections that follow.

use super::{Calls, Handshake};
use crate::job::channel::Channel;
use crate::job::connect::machine::Line;
use crate::transport::Task;
use crate::transport::shm::connection::Particulars;
use crate::transport::shm::remote::Landmark;
use crate::wire::hello::{Hello, Message};
use rustix::event::epoll;
use std::os::fd::AsFd;

impl Calls {
    /// Calls a task: connects with its listener and sends the call. `None`: no process listens.
    pub(super) fn dial(&mut self, task: Task, call: &Message) -> Option<Line> {
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

    /// Sends a message with a new ring.
    pub(super) fn offer(&mut self, task: Task, line: Line, message: &Message) -> Option<()> {
        let handshake = self.lines.get_mut(&line)?;
        let offer = self.place.site.offer(task).ok()?;
        handshake.channel.try_send(&message.encode(), &self.place.site.descriptors(&offer)).ok()?;
        handshake.offer = Some(offer);
        Some(())
    }

    /// Passes a complete connection to the transport.
    pub(super) fn establish(
        &mut self,
        line: Line,
        confirm: bool,
        epoch: Option<u64>,
        hello: &Hello,
    ) -> Option<()> {
        let Handshake { channel, pid, offer, accepted, .. } = self.lines.remove(&line)?;
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
        self.place.site.establish(about, offer, accepted, Box::new(channel));
        Some(())
    }
}
