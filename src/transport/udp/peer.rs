//! The peers: state, parting and rejoining.

use super::address_validation::AddressValidation;
use super::contact::Peer;
use super::{UdpTransport, contact::Session};
use crate::error::Result;
use crate::transport::presence::Presence;
use crate::transport::{ConnectionView, PeerStanding, PeerState, Peers, Task, View, Withdrawal};

impl Peers for UdpTransport {
    fn standing(&self, task: Task) -> PeerStanding {
        let Some(peer) = self.peer(task) else { return PeerStanding::UP };
        let mut seen = peer.standing.seen();
        if seen.absence.is_none() && peer.session.as_ref().is_some_and(Session::is_opening) {
            seen.absence = Some("has not replied yet".to_owned());
        }
        seen
    }

    /// Packets to a peer that has not come yet wait for it.
    fn is_open(&self, task: Task) -> bool {
        let state = self.peer(task).map_or(PeerState::Up, |peer| peer.standing.state());
        matches!(state, PeerState::Up | PeerState::Connecting)
    }

    fn view(&self, task: Task) -> View {
        let Some(peer) = self.peer(task) else { return View::NONE };
        let connection = peer.session.as_ref().map(|session| &session.connection);
        #[cfg(test)]
        connection.inspect(|connection| connection.check(&self.parameters));
        let granted = connection.map_or(0, |connection| connection.granted());
        View {
            // The first window is no sign of life.
            progress: peer.taken + granted.saturating_sub(self.parameters.window.into()),
            polls: true,
            connection: connection.map(|connection| ConnectionView {
                in_flight: connection.unacknowledged(),
                window: self.parameters.window.into(),
                no_room: peer.no_room,
                asleep: false,
                arrived: connection.waiting() != 0,
            }),
        }
    }

    fn signal(&mut self, _task: Task, _number: u32) -> bool {
        false
    }

    fn signalled(&self, _task: Task, _number: u32) -> bool {
        false
    }

    fn withdraw(&mut self, task: Task, what: Withdrawal) {
        match what {
            Withdrawal::Connection => self.part(task),
            // Nothing is taken, and nothing is reached by keys.
            Withdrawal::Key(_) | Withdrawal::Traffic => {}
        }
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
}

impl UdpTransport {
    /// Cuts the connection with the peer, which may not rejoin.
    pub(super) fn part(&mut self, task: Task) {
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
}
