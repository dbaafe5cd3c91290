//! What this process and its peers know of each other.

use super::hello::Hello;
use super::sending::Order;
use super::{PATIENCE, Shared, lock};
use openlapi_runtime::console;
use openlapi_session::{Error, Session};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Another node.
#[derive(Default)]
pub(super) struct Peer {
    /// To the thread that sends to it, once there is one.
    pub(super) sender: Mutex<Option<Sender<Order>>>,
    pub(super) link: Mutex<Link>,
    /// Locked while something of the peer is taken, and while the peer is forgotten.
    pub(super) taking: Mutex<()>,
}

/// What two processes know of each other.
#[derive(Default)]
pub(super) struct Link {
    /// How often the peer was forgotten: what belongs to an earlier life harms no later one.
    pub(super) life: u64,
    /// What the peer calls its own life; `None`: no session has been used in this one.
    peer: Option<u64>,
    /// Two where both sides have begun at once. What goes to the peer goes by the last one; which
    /// that is, each side says for itself.
    pub(super) sessions: Vec<Arc<Session>>,
    /// A session has failed: nothing is sent any more, and the others end when nothing comes for a
    /// while, but at this time.
    pub(super) ends: Option<Instant>,
}

impl Link {
    /// Whether messages of this life are sent.
    pub(super) fn takes(&self, life: u64) -> bool {
        self.life == life && self.ends.is_none()
    }

    /// A session of this life has failed.
    pub(super) fn fail(&mut self, life: u64) {
        if self.life == life {
            self.ends.get_or_insert_with(|| Instant::now() + PATIENCE);
        }
    }
}

impl Shared {
    /// This process and its life, as a peer learns of them.
    pub(super) fn hello(&self, session: &Session, life: u64) -> Result<(), Error> {
        let (header, data) = Hello { task: self.own, life: self.incarnation.wrapping_add(life) }.encode();
        session.send(header, &data)
    }

    /// Takes the number and the life of the peer.
    pub(super) fn peer_of(&self, session: &Session) -> Option<Hello> {
        let message = session.receive(Some(Instant::now() + PATIENCE)).ok()??;
        let known = Hello::decode(&message.header, &message.data, self.peers.len());
        if known.is_none() {
            console::log(format_args!("gm: a peer has said no number of the map"));
        }
        known
    }

    /// A peer has said which life it is in. One that is in another than before is forgotten before
    /// anything of it is taken: it may be another process. Returns the life of the link, in which
    /// [`Self::publish`] has the last word.
    pub(super) fn meet(&self, task: u32, of_peer: u64) -> u64 {
        let (known, life) = {
            let link = lock(&self.peers[task as usize].link);
            (link.peer, link.life)
        };
        if known.is_some_and(|known| known != of_peer) {
            self.lose(task, life);
        }
        lock(&self.peers[task as usize].link).life
    }

    /// A session in which both sides have said their lives is used from now on; `false`: it belongs
    /// to an earlier life of one of them. A session that is not used leaves no trace: by that of a
    /// peer's earlier life the next session would be refused, whose loss gives the peer another
    /// life again.
    pub(super) fn publish(&self, task: u32, life: u64, of_peer: u64, session: &Arc<Session>) -> bool {
        let mut link = lock(&self.peers[task as usize].link);
        let is_now = link.life == life && link.peer.is_none_or(|known| known == of_peer);
        if is_now {
            link.peer = Some(of_peer);
            link.sessions.push(session.clone());
        }
        is_now
    }

    /// Forgets a peer, if the link is still in this life.
    pub(super) fn lose(&self, task: u32, life: u64) {
        let peer = &self.peers[task as usize];
        let _alone = lock(&peer.taking);
        {
            let mut link = lock(&peer.link);
            if link.life != life {
                return;
            }
            // First: nothing that a port has for the peer gets the life of its successor.
            (self.receiving.losing)(task);
            *link = Link { life: life + 1, ..Link::default() };
        }
        (self.receiving.lost)(task);
        self.wake();
    }

    /// A session is over. The peer is lost with the last one of its life: what it has said in
    /// another one before is taken first.
    pub(super) fn leave(&self, task: u32, life: u64, session: &Arc<Session>) {
        let is_last = {
            let mut link = lock(&self.peers[task as usize].link);
            if link.life != life {
                return;
            }
            link.sessions.retain(|other| !Arc::ptr_eq(other, session));
            link.sessions.is_empty()
        };
        if is_last {
            self.lose(task, life);
        }
    }

    /// A message could not be sent. Where there is a session, the threads that take from the peer's
    /// sessions lose the peer when they have taken all: it may have said something before it left.
    pub(super) fn not_sent(&self, task: u32, life: u64, error: &Error) {
        let mut link = lock(&self.peers[task as usize].link);
        if link.sessions.is_empty() {
            drop(link);
            self.lose(task, life);
        } else if !matches!(error, Error::Closed) {
            // A peer that leaves closes all of them.
            link.fail(life);
        }
    }
}
