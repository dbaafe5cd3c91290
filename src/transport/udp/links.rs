//! The links of this task's interfaces, where it has several paths to its peers: one that is down is left at once, and one that is up again is
//! tried at once. Without the kernel's reports, silence shows it.

use super::UdpTransport;
use super::contact::Peer;
use super::reliable::Nanos;
use crate::error;
use crate::transport::link_state::Links;

/// The time between two looks.
const BETWEEN_LOOKS: Nanos = 10_000_000;

/// The links of the paths, in their order.
pub(super) struct OwnLinks {
    links: Box<dyn Links>,
    /// The names of the paths, for messages; empty: without messages.
    names: Vec<String>,
    /// Which are up, bit by bit.
    up: u8,
    next_look: Nanos,
}

impl OwnLinks {
    /// The links that have changed since the last look, and which are up.
    fn look(&mut self, now: Nanos) -> Option<(u8, u8)> {
        if now < self.next_look {
            return None;
        }
        self.next_look = now + BETWEEN_LOOKS;
        let up = self.links.poll()?;
        let changed = std::mem::replace(&mut self.up, up) ^ up;
        (changed != 0).then_some((changed, up))
    }
}

impl UdpTransport {
    /// Follows the links of the paths. With `names`, each change is logged.
    pub fn follow_links(&mut self, links: Box<dyn Links>, names: Vec<String>) {
        self.links = Some(OwnLinks { links, names, up: u8::MAX, next_look: 0 });
    }

    /// Takes note of links that have gone down or come up.
    #[inline]
    pub(super) fn look_at_links(&mut self, now: Nanos) {
        if let Some((changed, up)) = self.links.as_mut().and_then(|links| links.look(now)) {
            self.note_links(now, changed, up);
        }
    }

    #[cold]
    fn note_links(&mut self, now: Nanos, changed: u8, up: u8) {
        let changed = (0..self.parameters.paths).filter(|path| changed & 1 << path != 0);
        for path in changed {
            let is_up = up & 1 << path != 0;
            if let Some(name) = self.links.as_ref().and_then(|links| links.names.get(usize::from(path))) {
                let state = if is_up { "up again" } else { "down: others are used" };
                error::log(format_args!("attention: the link of rail {name} is {state}"));
            }
            for at in 0..self.met.len() {
                let task = self.met[at];
                if let Some(session) = self.peer_mut(task).and_then(Peer::live) {
                    session.connection.set_link(now, path, is_up);
                    self.touch(task);
                }
            }
        }
    }

    /// Whether the link of a path was up at the last look.
    pub(super) fn has_link(&self, path: u8) -> bool {
        self.links.as_ref().is_none_or(|links| links.up & 1 << path != 0)
    }
}
