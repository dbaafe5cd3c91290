//! What this task is for its peers: its number, its address, its process, and what shows that its
//! messages are those of a task of the job.

use super::control::{self, ControlKey};
use crate::base::process::Process;
use crate::transport::Task;
use crate::wire::network::{Frame, FrameKind, TAG};

/// What this task shows.
pub(super) struct Credentials {
    pub(super) me: Task,
    /// What this task has published.
    pub(super) published: Vec<u8>,
    /// The tag of frames at first contact.
    pub(super) first_tag: u32,
    pub(super) process: Process,
    key: ControlKey,
}

impl Credentials {
    pub(super) fn new(me: Task, published: Vec<u8>, secret: &[u8]) -> Self {
        let (first_tag, key) = (control::first_tag(secret), ControlKey::new(secret));
        Self { me, published, first_tag, process: Process::own(), key }
    }

    /// The frame of a message with the first tag: tasks that have parted send each other these.
    pub(super) fn frame(&self, kind: FrameKind, body_len: usize) -> Frame {
        let (src, tag) = (self.me, self.first_tag);
        Frame { kind, src, tag, credits: 0, head_len: 0, body_len: body_len as u32 }
    }

    /// The tag of a message to a task that has published this.
    pub(super) fn tag(&self, to: Task, published: &[u8], message: &[u8]) -> [u8; TAG] {
        self.key.tag(to, published, message)
    }

    /// Whether a message with its tag was made for this task.
    pub(super) fn admits(&self, message: &[u8]) -> bool {
        self.key.admits(self.me, &self.published, message)
    }

    /// The key of all memory of this task, for `user` ([`ControlKey::memory_key`]).
    pub(super) fn own_memory_key(&self, user: Task, tag: u32) -> u64 {
        self.key.memory_key(self.me, &self.published, user, tag)
    }

    /// The key of all memory of `owner`, which has published this, for this task.
    pub(super) fn memory_key_of(&self, owner: Task, published: &[u8], tag: u32) -> u64 {
        self.key.memory_key(owner, published, self.me, tag)
    }

    #[cfg(test)]
    pub(super) fn set_secret(&mut self, secret: &[u8]) {
        self.key = ControlKey::new(secret);
    }
}
