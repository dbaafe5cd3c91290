//! The peers: state, parting and rejoining.

use super::address_validation::AddressValidation;
use super::contact::Peer;
use super::{UdpTransport, contact::Session};
use crate::error::Result;
use crate::transport::presence::Presence;
use crate::transport::{ConnectionView, PeerStanding, PeerState, Peers, Task, View, Want};

impl Peers for UdpTransport {
    fn standing(&self, task: Task) -> PeerStanding {
        let Some(peer) = self.peer(task) else { return PeerStanding::UP };
        let mut seen = peer.standing.seen();
        if seen.absence.is_none() && peer.session.as_ref().is_some_and(Session::is_opening) {
            seen.absence = Some("has not replied yet".to_owned());
        }
        seen
    }

    fn want(&mut self, task: Task, what: Want) {
        match what {
            // A peer from which something is awaited must know of this task, so that it
            // reports its end.
            Want::Connection if self.peer(task).is_none() && !self.closed && self.meet(task) => {
                let now = self.now();
                self.transmit(task, now);
            }
            Want::Attention => {
                let is_up = self.peer(task).is_some_and(|peer| peer.standing == Presence::Up);
                if is_up && !self.kicks.contains(&task) {
                    self.kicks.push(task);
                }
            }
            Want::Connection => {}
        }
    }

    /// Packets to a peer that has not come yet wait for it.
    fn is_open(&self, task: Task) -> bool {
        let state = self.peer(task).map_or(PeerState::Up, |peer| peer.standing.state());
        matches!(state, PeerState::Up | PeerState::Connecting)
    }

    fn view(&self, task: Task) -> View {
        let Some(peer) = self.peer(task) else { return View { progress: 0, connection: None } };
        let connection = peer.session.as_ref().map(|session| &session.connection);
        #[cfg(test)]
        connection.inspect(|connection| connection.check(&self.parameters));
        let granted = connection.map_or(0, |connection| connection.granted());
        View {
            // The first window is no sign of life.
            progress: peer.taken + granted.saturating_sub(self.parameters.window.into()),
            connection: connection.map(|connection| ConnectionView {
                in_flight: connection.unacknowledged(),
                window: self.parameters.window.into(),
                no_room: peer.no_room,
                asleep: false,
                arrived: connection.waiting() != 0,
            }),
        }
    }

    fn set_polling(&mut self, _polling: bool, _now: u64) {}

    fn polls(&self, _task: Task) -> bool {
        true
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
                none.insert(Box::new(Peer::new(Presence::Parted, None)))
            }
        };
        if let Some(mut session) = peer.session.take() {
            self.past += session.tally();
            session.connection.abandon(&mut self.buffers);
        }
        peer.standing = Presence::Parted;
        (peer.address_validation, peer.heard_at) = (AddressValidation::default(), None);
        (peer.held, peer.unnamed, peer.no_room) = (false, false, false);
    }

    fn rejoin(&mut self, task: Task, epoch: u64) -> Result<()> {
        if task == self.me {
            return Ok(());
        }
        self.part(task);
        let session = self.session(epoch);
        if let Some(peer) = self.peer_mut(task) {
            (peer.standing, peer.session) = (Presence::Rejoining, Some(session));
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
