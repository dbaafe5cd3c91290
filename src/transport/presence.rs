//! Where a peer stands, for a transport that keeps connections over a network.

use super::{HAS_PURGED, NO_EPOCH, PeerStanding, PeerState, Peers, SendOutcome, Task};

/// Lets those of the peers rejoin that have parted from this task, which ends: they wait until it
/// does, and learn of the end by a connection that ends at once. Returns them.
pub(super) fn reply_to_those_that_rejoin(end: &mut impl Peers, mut peers: Vec<Task>) -> Vec<Task> {
    peers.retain(|&task| end.standing(task).has_parted && end.rejoin(task, NO_EPOCH).is_ok());
    peers
}

/// The state of the connection with a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Presence {
    #[default]
    Up,
    /// The peer may not have called LAPI_Init yet, or this task may have taken the place of a
    /// process that it knows: packets find no room before the connection is made. With UDP and no
    /// launcher only.
    Meeting,
    /// The peer has ended LAPI.
    Closed,
    /// The peer cannot be reached: why.
    Dead(String),
    /// The peer has parted from this task, and lets it rejoin.
    HasParted,
    /// This task has parted from it.
    Parted,
    /// The peer may rejoin.
    Rejoining,
}

impl Presence {
    /// What [`super::Peers::standing`] returns for it.
    pub(super) fn seen(&self) -> PeerStanding {
        PeerStanding { state: self.state(), absence: self.absence(), has_parted: *self == Self::HasParted }
    }

    /// What it shows to those who only want to know whether the peer takes packets.
    pub(super) fn state(&self) -> PeerState {
        match self {
            Self::Up | Self::Rejoining => PeerState::Up,
            Self::Meeting => PeerState::Connecting,
            Self::Closed => PeerState::Closed,
            Self::Dead(_) | Self::HasParted | Self::Parted => PeerState::Dead,
        }
    }

    /// How a packet to the peer is refused that is not accepted now.
    pub(super) fn refusal(&self) -> SendOutcome {
        match self.state() {
            PeerState::Up | PeerState::Connecting => SendOutcome::NoRoom,
            PeerState::Closed | PeerState::Dead => SendOutcome::Gone,
        }
    }

    /// Why nothing can be expected of the peer; none while it is up.
    fn absence(&self) -> Option<String> {
        match self {
            Self::Up => None,
            Self::Meeting => Some("has not replied yet".to_owned()),
            Self::Closed => Some("has ended LAPI".to_owned()),
            Self::Dead(why) => Some(why.clone()),
            Self::HasParted => Some(HAS_PURGED.to_owned()),
            Self::Parted => Some("has left the job".to_owned()),
            Self::Rejoining => Some("has not rejoined yet".to_owned()),
        }
    }
}
