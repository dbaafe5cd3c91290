//! How two tasks of a job that have lost each other, or one that was started anew, find each other again.
//!
//! A task that has parted from another listens under a name of its own: its *lobby*. A task that wants another one back
//! *calls* at that one's lobby with what it offers, and waits there until it is *answered* with what the other offers.
//! A lobby is only looked into by who wants somebody back; calls wait in it until then. When two tasks call at each other
//! at the same time, the call of the lower one counts.
//!
//! Nothing here blocks, and nothing is sent to or believed of another user's process.

use super::Identity;
use super::channel::{Channel, Deadline, Listener, Receive};
use super::name::{Key, Room};
use super::rendezvous::message::{Hello, ToRoot};
use crate::wire::reunion::{Event, Offer, Reunion};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

/// How long a caller that has connected may take to say who it is.
const INTRODUCTION: Duration = Duration::from_secs(5);

/// One task's lobby, and its calls at others.
pub struct Lobby {
    task: u32,
    tasks: u32,
    key: Key,
    listener: Option<Listener>,
    /// Who has connected and not yet said who it is.
    strangers: Vec<(Channel, Deadline)>,
    /// Who waits for an answer.
    waiting: BTreeMap<u32, Channel>,
    /// Where we have called.
    calls: BTreeMap<u32, Channel>,
}

impl Lobby {
    /// The lobby of this task, closed.
    pub fn new(me: &Identity, instance: u32, secret: Option<&[u8]>) -> Self {
        let secret = secret.unwrap_or_default().to_vec();
        let uid = rustix::process::geteuid().as_raw();
        Self {
            task: me.task,
            tasks: me.tasks,
            key: Key { job: me.key.clone(), instance, secret, uid },
            listener: None,
            strangers: Vec::new(),
            waiting: BTreeMap::new(),
            calls: BTreeMap::new(),
        }
    }

    fn hear_answers(&mut self) -> io::Result<Option<Event>> {
        let mut event = None;
        for (&task, channel) in &self.calls {
            event = match channel.receive() {
                Ok(Receive::Nothing) => continue,
                Ok(Receive::Message(received)) => {
                    let pid = channel.peer()?.pid;
                    match self.believe(&received.bytes, received.fds, pid) {
                        Some(offer) if offer.task == task => Some(Event::Answered(offer)),
                        _ => Some(Event::HungUp(task)),
                    }
                }
                Ok(Receive::Closed) => Some(Event::HungUp(task)),
                Err(error) => return Err(error),
            };
            self.calls.remove(&task);
            break;
        }
        Ok(event)
    }

    fn hear_strangers(&mut self) -> io::Result<Option<Event>> {
        let mut at = 0;
        while let Some((channel, deadline)) = self.strangers.get(at) {
            let received = match channel.receive()? {
                Receive::Nothing if !deadline.has_passed() => {
                    at += 1;
                    continue;
                }
                Receive::Nothing | Receive::Closed => None,
                Receive::Message(received) => Some(received),
            };
            let (channel, _) = self.strangers.swap_remove(at);
            let Some(received) = received else { continue };
            let pid = channel.peer()?.pid;
            let Some(offer) = self.believe(&received.bytes, received.fds, pid) else { continue };
            // Whoever has found us by our own call has hung up since.
            if !matches!(channel.receive()?, Receive::Closed) && self.admits(offer.task) {
                self.waiting.insert(offer.task, channel);
                return Ok(Some(Event::Called(offer)));
            }
        }
        Ok(None)
    }

    /// Whether a call of `task` counts: unless ours at it does.
    fn admits(&mut self, task: u32) -> bool {
        let ours = self.calls.contains_key(&task) && self.task < task;
        if !ours {
            // Or it would take our call for a new one, later.
            self.calls.remove(&task).into_iter().for_each(Channel::hang_up);
        }
        !ours
    }

    fn believe(&self, bytes: &[u8], fds: Vec<OwnedFd>, pid: i32) -> Option<Offer> {
        let Some(ToRoot::Hello(hello)) = ToRoot::decode(bytes) else { return None };
        let known = hello.task < self.tasks && hello.task != self.task && hello.tasks == self.tasks;
        let whole = hello.fds as usize == fds.len();
        let admitted = known && whole && self.key.admits(&hello.secret);
        admitted.then_some(Offer { task: hello.task, pid, blob: hello.blob, fds })
    }

    fn send(&self, channel: &Channel, blob: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<bool> {
        let hello = Hello {
            task: self.task,
            tasks: self.tasks,
            secret: self.key.secret.clone(),
            blob: blob.to_vec(),
            fds: fds.len() as u32,
        };
        match channel.try_send(&ToRoot::Hello(hello).encode(), fds) {
            Ok(()) => Ok(true),
            // A lobby that has closed meanwhile, or that has no room for one message more: as if it were not there.
            Err(Errno::PIPE | Errno::CONNRESET | Errno::AGAIN | Errno::TOOMANYREFS) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl Reunion for Lobby {
    fn open(&mut self) -> io::Result<bool> {
        if self.listener.is_none() {
            self.listener = Listener::bind(&self.key.name(Room::Lobby, self.task))?;
        }
        Ok(self.listener.is_some())
    }

    fn has_called(&self, task: u32) -> bool {
        self.calls.contains_key(&task)
    }

    fn reach(&mut self, task: u32) -> io::Result<bool> {
        let Some(channel) = Channel::connect(&self.key.name(Room::Lobby, task))? else { return Ok(false) };
        if channel.peer()?.uid != self.key.uid {
            return Ok(false);
        }
        self.calls.insert(task, channel);
        Ok(true)
    }

    fn call(&mut self, task: u32, blob: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<bool> {
        let Some(channel) = self.calls.get(&task) else { return Ok(false) };
        let sent = self.send(channel, blob, fds);
        if !matches!(sent, Ok(true)) {
            self.calls.remove(&task);
        }
        sent
    }

    fn answer(&mut self, task: u32, blob: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<bool> {
        match self.waiting.remove(&task) {
            Some(channel) => self.send(&channel, blob, fds),
            None => Ok(false),
        }
    }

    fn forget(&mut self, task: u32) {
        self.calls.remove(&task).into_iter().for_each(Channel::hang_up);
        self.waiting.remove(&task).into_iter().for_each(Channel::hang_up);
    }

    fn shut(&mut self) {
        self.listener = None;
        self.strangers.clear();
        self.waiting.clear();
        self.calls.clear();
    }

    fn poll(&mut self) -> io::Result<Option<Event>> {
        if let Some(event) = self.hear_answers()? {
            return Ok(Some(event));
        }
        if let Some(listener) = &self.listener {
            while let Some(channel) = listener.accept()? {
                if channel.peer()?.uid == self.key.uid {
                    self.strangers.push((channel, Deadline::after(INTRODUCTION)));
                }
            }
        }
        self.hear_strangers()
    }
}

#[cfg(test)]
mod tests;
