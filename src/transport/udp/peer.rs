//! The peers: state, parting and rejoining.

use super::address_validation::AddressValidation;
use super::contact::Peer;
use super::{LOST, UdpTransport, contact::Session};
use crate::abi::LAPI_ERR_SHM_SETUP;
use crate::error::{Error, Result};
use crate::transport::presence::Presence;
use crate::transport::{ConnectionView, PeerStanding, PeerState, Peers, Tally, Task, View, Withdrawal};

/// The peers, by task.
pub(super) struct Table {
    peers: Vec<Option<Box<Peer>>>,
    /// Those with which there has been contact, in the order of that.
    met: Vec<Task>,
    /// What former connections have counted.
    past: Tally,
}

impl Table {
    pub(super) fn new(tasks: u32) -> Self {
        let peers = std::iter::repeat_with(|| None).take(tasks as usize).collect();
        Self { peers, met: Vec::new(), past: Tally::default() }
    }

    /// Whether the job has this task.
    #[inline]
    pub(super) fn has(&self, task: Task) -> bool {
        (task as usize) < self.peers.len()
    }

    #[inline]
    pub(super) fn get(&self, task: Task) -> Option<&Peer> {
        self.peers.get(task as usize)?.as_deref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, task: Task) -> Option<&mut Peer> {
        self.peers.get_mut(task as usize)?.as_deref_mut()
    }

    /// First contact with a peer.
    pub(super) fn add(&mut self, task: Task, peer: Peer) -> &mut Peer {
        self.met.push(task);
        self.peers[task as usize].insert(Box::new(peer))
    }

    /// The peers with which there has been contact, in the order of that.
    pub(super) fn met(&self) -> &[Task] {
        &self.met
    }

    /// There has been no contact with any.
    #[cfg(test)]
    pub(super) fn clear(&mut self) {
        self.peers.fill_with(|| None);
        self.met.clear();
    }

    /// The connections.
    pub(super) fn sessions_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.peers.iter_mut().flatten().filter_map(|peer| peer.session.as_mut())
    }

    /// A connection has ended that has counted this.
    fn note_past(&mut self, tally: Tally) {
        self.past += tally;
    }

    /// What all connections have counted.
    pub(super) fn tally(&self) -> Tally {
        let mut sum = self.past;
        let sessions = self.met.iter().filter_map(|&task| self.get(task)?.session.as_ref());
        sessions.for_each(|session| sum += session.tally());
        sum
    }
}

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

    fn withdraw(&mut self, task: Task, what: Withdrawal) {
        match what {
            Withdrawal::Connection => self.part(task),
            // Nothing is taken, and nothing is reached by keys.
            Withdrawal::Key(_) | Withdrawal::Traffic => {}
        }
    }

    fn rejoin(&mut self, task: Task, epoch: u64) -> Result<()> {
        if task == self.credentials.me {
            return Ok(());
        }
        self.part(task);
        if self.lost {
            return Err(Error::new(LAPI_ERR_SHM_SETUP, format!("task {task} {LOST}")));
        }
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
        if task == self.credentials.me {
            return;
        }
        self.arrivals.forget(task);
        if self.peer(task).is_none() {
            self.table.add(task, Peer { standing: Presence::Parted, ..Peer::default() });
        }
        if let Some(mut session) = self.peer_mut(task).and_then(|peer| peer.session.take()) {
            self.table.note_past(session.tally());
            session.connection.abandon(&mut self.buffers);
        }
        let Some(peer) = self.peer_mut(task) else { return };
        peer.standing = Presence::Parted;
        (peer.address_validation, peer.heard_at) = (AddressValidation::default(), None);
        (peer.held, peer.unnamed, peer.no_room) = (false, false, false);
    }
}
