//! The peers: state, parting and rejoining.

use super::agreement::{Agreement, Why};
use super::flow::{Flow, WINDOW};
use super::{Kept, OF_RAIL, Rail, Rails};
use crate::base::random::random;
use crate::error::Result;
use crate::transport::parcel::Parcel;
use crate::transport::presence::Presence;
use crate::transport::{
    ConnectionView, Key, NO_EPOCH, PeerStanding, PeerState, Peers, Task, View, Want, Withdrawal,
};
use crate::wire::rails::{RAILS, RailFrameKind};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// What this task has of one peer.
pub(super) struct Peer {
    pub(super) standing: Presence,
    pub(super) flow: Flow<Kept>,
    pub(super) agreement: Agreement,
    /// Names this task's side of the connection, and the peer's as far as it is known
    /// (0 otherwise).
    pub(super) session: u32,
    pub(super) theirs: u32,
    /// Packets of the transport's own that have no number yet.
    pub(super) backlog: VecDeque<Kept>,
    /// Nothing is taken from it now. What was accepted meanwhile is in `aside`, and
    /// not acknowledged.
    pub(super) held: bool,
    /// The peer has rejoined, and [`crate::transport::Report::Joined`] has not named it yet: its
    /// packets wait in `aside`, too, since what is known of the connection before is still in use.
    pub(super) unnamed: bool,
    pub(super) aside: VecDeque<Parcel>,
    /// A packet found no room.
    pub(super) no_room: bool,
    pub(super) progress: u64,
    /// Packets that it has taken and that are not in `progress` yet.
    pub(super) taken: u32,
    /// The epochs of the connection: this task's and the peer's.
    pub(super) epochs: [u64; 2],
    /// Something was sent to it or came from it, or is awaited from it.
    pub(super) touched: bool,
    /// The peer is among those that are looked at from time to time.
    pub(super) active: bool,
    /// When the peer was last asked to acknowledge, or did.
    pub(super) asked: Duration,
    /// Memory that is registered for the peer: by number, the keys on all rails.
    pub(super) registrations: BTreeMap<u64, [Option<(u32, Key)>; RAILS]>,
    pub(super) next_registration: u64,
    /// Memory that the peer has registered for this task, and how many registrations
    /// of it are known.
    pub(super) keys: BTreeMap<u64, [Option<(u32, Key)>; RAILS]>,
    pub(super) known_keys: u64,
}

impl Peer {
    pub(super) fn new(rails: usize, live: bool, now: Duration) -> Self {
        Self {
            standing: Presence::Up,
            flow: Flow::default(),
            agreement: Agreement::new(rails, live, now),
            session: u32::from_ne_bytes(random()) | 1,
            theirs: 0,
            backlog: VecDeque::new(),
            held: false,
            unnamed: false,
            aside: VecDeque::new(),
            no_room: false,
            progress: 0,
            taken: 0,
            epochs: [NO_EPOCH; 2],
            touched: false,
            active: false,
            asked: now,
            registrations: BTreeMap::new(),
            next_registration: 0,
            keys: BTreeMap::new(),
            known_keys: 0,
        }
    }

    #[inline]
    pub(super) fn is_up(&self) -> bool {
        self.standing == Presence::Up
    }

    /// Whether its packets are to be kept.
    #[inline]
    pub(super) fn is_held(&self) -> bool {
        self.held || self.unnamed
    }
}

impl<T: Rail> Peers for Rails<T> {
    fn standing(&self, task: Task) -> PeerStanding {
        let Some(peer) = self.peer(task) else { return PeerStanding::UP };
        let mut seen = peer.standing.seen();
        if peer.is_up() && peer.agreement.live_from(0).is_none() {
            seen.absence = Some("cannot be reached: no rail works".to_owned());
        }
        seen
    }

    fn is_open(&self, task: Task) -> bool {
        self.peer(task).is_none_or(|peer| peer.standing.state() == PeerState::Up)
    }

    fn view(&self, task: Task) -> View {
        let Some(peer) = self.peer(task) else { return View::NONE };
        View {
            progress: peer.progress,
            polls: true,
            connection: Some(ConnectionView {
                in_flight: peer.flow.unacknowledged() as u64,
                window: WINDOW.into(),
                no_room: peer.no_room,
                asleep: false,
                arrived: !peer.aside.is_empty(),
            }),
        }
    }

    fn withdraw(&mut self, task: Task, what: Withdrawal) {
        match what {
            Withdrawal::Key(key) => self.withdraw_key(task, key),
            Withdrawal::Traffic => self.recall(task),
            Withdrawal::Connection => self.part(task),
        }
    }

    fn rejoin(&mut self, task: Task, epoch: u64) -> Result<()> {
        if task == self.me {
            return Ok(());
        }
        self.part(task);
        for rail in &mut self.rails {
            rail.rejoin(task, epoch)?;
        }
        if let Some(peer) = self.peer_mut(task) {
            (peer.standing, peer.epochs[0]) = (Presence::Rejoining, epoch);
        }
        Ok(())
    }
}

impl<T: Rail> Rails<T> {
    /// Cuts the connection with the peer, which may not rejoin.
    fn part(&mut self, task: Task) {
        if task == self.me {
            return;
        }
        self.recall(task);
        self.rails.iter_mut().for_each(|rail| rail.withdraw(task, Withdrawal::Connection));
        self.ready.retain(|parcel| parcel.src != task);
        self.back.retain(|(back, _)| *back != task);
        self.active.retain(|active| *active != task);
        let progress = self.view(task).progress;
        let peer = Peer::new(self.rails.len(), false, self.now());
        let peer = Peer { standing: Presence::Parted, progress, ..peer };
        self.peers[task as usize] = Some(Box::new(peer));
        // What the rails have to say of the connection before must not be taken for news
        // of the next one.
        self.take_events();
    }

    /// The rail that packets to the peer use while it is live: both sides choose the same one, and
    /// pairs of tasks different ones.
    #[inline]
    pub(super) fn home(&self, task: Task) -> usize {
        (self.me as usize + task as usize) % self.rails.len()
    }

    /// The peer, from first contact on: all rails count as live, but those whose link is down. A
    /// process that has taken the place of another one has no rail before the peer lets it rejoin.
    pub(super) fn meet(&mut self, task: Task) -> &mut Peer {
        if self.peers[task as usize].is_none() {
            let mut peer = Peer::new(self.rails.len(), !self.replaces, self.now());
            if self.replaces {
                peer.standing = Presence::Rejoining;
            }
            self.peers[task as usize] = Some(Box::new(peer));
            if self.replaces {
                self.rails.iter_mut().for_each(|rail| rail.want(Want::Connection(task)));
            } else if self.up & self.all() != self.all() {
                self.look_after(task);
            }
        }
        self.peers[task as usize].as_deref_mut().expect("it was entered above")
    }

    /// Whether nothing can have changed since the peer had no room: it has accepted nothing since,
    /// and the last poll was just before. One poll of all rails for each of many such peers would
    /// take long.
    pub(super) fn still_refuses(&self, task: Task) -> bool {
        self.peer(task).is_some_and(|peer| peer.is_up() && peer.no_room) && self.rest.is_recent()
    }

    /// There is contact with the peer: the rails that are not in use yet must know it.
    #[cold]
    pub(super) fn note_contact(&mut self, task: Task) {
        let Some(peer) = self.peer_mut(task) else { return };
        if !std::mem::replace(&mut peer.touched, true) {
            self.rails.iter_mut().for_each(|rail| rail.note_contact(task));
        }
    }

    /// A rail reports that the peer has rejoined.
    pub(super) fn note_rejoined(&mut self, rail: usize, task: Task, epoch: u64) {
        let now = self.now();
        let count = self.rails.len();
        let peer = self.meet(task);
        let of_rail = epoch & OF_RAIL != 0;
        let [own, theirs] = peer.epochs;
        match peer.standing {
            Presence::Up if of_rail => {
                peer.agreement.joined(rail, (epoch & !OF_RAIL) as u32);
                self.note_joined(task);
            }
            // A rail of before, whose other end does not know yet that this task has parted.
            Presence::Rejoining if of_rail => self.rejoin_rail(rail, task, own),
            Presence::Rejoining => self.note_connected(rail, task, [own, epoch]),
            Presence::Up if peer.agreement.is_joining_first(rail) => {
                if epoch == theirs {
                    peer.agreement.joined(rail, 0);
                    self.note_joined(task);
                } else if epoch == NO_EPOCH {
                    // The peer had accepted this task on this rail before it parted from it
                    // on all of them.
                    self.rejoin_rail(rail, task, own);
                } else {
                    // The peer has parted since, which the other rails do not know yet.
                    self.lose(task, Presence::HasParted);
                }
            }
            Presence::Up if !peer.touched => {
                // A task that rejoins the job, and this one has not had contact with it before.
                let active = peer.active;
                *peer = Peer { active, ..Peer::new(count, false, now) };
                let others = self.rails.iter_mut().enumerate().filter(|(at, _)| *at != rail);
                others.for_each(|(_, other)| other.admit(task));
                self.note_connected(rail, task, [NO_EPOCH, epoch]);
            }
            Presence::Up => self.fail(rail, task, Why::Slow),
            _ => {}
        }
    }

    /// The peer has rejoined, on its first rail. These are the epochs of both.
    fn note_connected(&mut self, rail: usize, task: Task, epochs: [u64; 2]) {
        let now = self.now();
        let Some(peer) = self.peer_mut(task) else { return };
        (peer.standing, peer.epochs) = (Presence::Up, epochs);
        peer.agreement.joined(rail, 0);
        peer.agreement.met(now);
        // Without epochs, neither of the two has known the other before.
        peer.unnamed = epochs != [NO_EPOCH; 2];
        if peer.unnamed {
            self.back.push_back((task, epochs[1]));
        }
        self.note_joined(task);
    }

    /// What connects this rail with the peer is from before: it begins again.
    fn rejoin_rail(&mut self, rail: usize, task: Task, own: u64) {
        self.rails[rail].withdraw(task, Withdrawal::Connection);
        // Without success joining takes too long, and is tried again.
        let _ = self.rails[rail].rejoin(task, own);
    }

    /// A rail reports that the peer has parted from this task, and lets it rejoin with this epoch.
    pub(super) fn note_parted(&mut self, rail: usize, task: Task, epoch: u64) {
        let peer = self.meet(task);
        let behind = peer.agreement.is_joining_first(rail);
        let [own, theirs] = peer.epochs;
        match peer.standing {
            Presence::Rejoining => self.rejoin_rail(rail, task, own),
            // The other rails are in use since then.
            Presence::Up if behind && epoch != NO_EPOCH && epoch == theirs => {
                self.rejoin_rail(rail, task, own);
            }
            _ => self.lose(task, Presence::HasParted),
        }
    }

    /// Gives up the accesses under way with the peer.
    pub(super) fn recall(&mut self, task: Task) {
        self.rails.iter_mut().for_each(|rail| rail.withdraw(task, Withdrawal::Traffic));
        self.striping.recall(task);
        if let Some(peer) = self.peer_mut(task) {
            let ids: Vec<u64> = std::mem::take(&mut peer.registrations).into_keys().collect();
            ids.into_iter()
                .for_each(|id| self.send_control(task, RailFrameKind::Withdrawn, &id.to_le_bytes()));
        }
    }

    /// Packets may go over another rail.
    fn note_joined(&mut self, task: Task) {
        self.sleeper.note(true);
        self.note_contact(task);
        self.look_after(task);
    }
}
