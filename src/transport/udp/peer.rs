//! The peers: state, parting and rejoining.

use super::contact::Peer;
use super::whereabouts::Whereabouts;
use super::{UdpTransport, contact::Session};
use crate::error::Result;
use crate::transport::standing::Standing;
use crate::transport::{ConnectionView, PeerState, Peers, Task};

impl Peers for UdpTransport {
    fn state(&self, task: Task) -> PeerState {
        self.peer(task).map_or(PeerState::Up, |peer| peer.standing.state())
    }

    fn absence(&self, task: Task) -> Option<String> {
        let peer = self.peer(task)?;
        peer.standing.absence().or_else(|| {
            let opening = peer.session.as_ref().is_some_and(Session::is_opening);
            opening.then(|| "has not replied yet".to_owned())
        })
    }

    fn parted(&self) -> Vec<Task> {
        let has_parted =
            |task: &Task| self.peer(*task).is_some_and(|peer| peer.standing == Standing::HasParted);
        self.met.iter().copied().filter(has_parted).collect()
    }

    /// A peer from which something is awaited must know of this task, so that it reports its end.
    fn connect(&mut self, task: Task) {
        let is_new = self.peer(task).is_none();
        if !self.closed && self.meet(task) && is_new {
            let now = self.now();
            self.transmit(task, now);
        }
    }

    /// Packets to a peer that has not come yet wait for it.
    fn is_open(&self, task: Task) -> bool {
        matches!(self.state(task), PeerState::Up | PeerState::Connecting)
    }

    fn progress(&self, task: Task) -> u64 {
        self.peer(task).map_or(0, |peer| {
            let granted = peer.session.as_ref().map_or(0, |session| session.connection.granted());
            // The first window is no sign of life.
            peer.taken + granted.saturating_sub(self.parameters.window.into())
        })
    }

    fn kick(&self, task: Task) {
        let mut kicks = self.kicks.borrow_mut();
        if !kicks.contains(&task) && self.peer(task).is_some_and(|peer| peer.standing == Standing::Up) {
            kicks.push(task);
        }
    }

    fn view(&self, task: Task) -> Option<ConnectionView> {
        let peer = self.peer(task)?;
        let connection = &peer.session.as_ref()?.connection;
        #[cfg(test)]
        connection.check(&self.parameters);
        Some(ConnectionView {
            in_flight: connection.unacknowledged(),
            window: self.parameters.window.into(),
            no_room: peer.no_room,
            asleep: false,
            arrived: connection.waiting() != 0,
        })
    }

    fn part(&mut self, task: Task) {
        if task == self.me {
            return;
        }
        self.back.retain(|(back, _)| *back != task);
        self.ready.retain(|from| *from != task);
        let peer = match &mut self.peers[task as usize] {
            Some(peer) => peer,
            none => {
                self.met.push(task);
                none.insert(Box::new(Peer::new(Standing::Parted, None)))
            }
        };
        if let Some(mut session) = peer.session.take() {
            self.past += session.tally();
            session.connection.abandon(&mut self.buffers);
        }
        peer.standing = Standing::Parted;
        (peer.whereabouts, peer.heard_at) = (Whereabouts::default(), None);
        (peer.held, peer.unnamed, peer.no_room) = (false, false, false);
    }

    fn rejoin(&mut self, task: Task, epoch: u64) -> Result<()> {
        if task == self.me {
            return Ok(());
        }
        self.part(task);
        let session = self.session(epoch);
        if let Some(peer) = self.peer_mut(task) {
            (peer.standing, peer.session) = (Standing::Rejoining, Some(session));
        }
        let now = self.now();
        self.transmit(task, now);
        Ok(())
    }

    fn rejoined(&mut self) -> Option<(Task, u64)> {
        let (task, epoch) = self.back.pop_front()?;
        if let Some(peer) = self.peer_mut(task) {
            peer.unnamed = false;
        }
        self.hand_out(task);
        Some((task, epoch))
    }
}
