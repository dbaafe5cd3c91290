//! The peers: first contact, state, and the end of a connection.

use super::contact::Peer;
use super::ofi::Errno;
use super::own::Wants;
use super::{FabricTransport, LONGEST, PUBLISHED_BEFORE, WINDOW};
use crate::base::limits;
use crate::error::Result;
use crate::transport::presence::Presence;
use crate::transport::rails::RailEvent;
use crate::transport::{ConnectionView, PeerStanding, PeerState, Peers, Task, View, Withdrawal};

impl Peers for FabricTransport {
    fn standing(&self, task: Task) -> PeerStanding {
        self.peer(task).map_or(PeerStanding::UP, |peer| peer.standing.seen())
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
                in_flight: peer.in_flight.into(),
                window: WINDOW.into(),
                no_room: peer.no_room,
                asleep: false,
                arrived: peer.waiting != 0,
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
        if task == self.credentials.me {
            return Ok(());
        }
        self.part(task);
        // The peer may be another process now. Without its address it is awaited: it
        // sends that itself.
        let _ = self.look_up(task);
        let Some(peer) = self.peers[task as usize].as_deref_mut() else { return Ok(()) };
        peer.standing = Presence::Rejoining;
        peer.epoch = epoch;
        self.open_memory(task);
        self.rejoining.awaited.push(task);
        self.owe(task, Wants::REJOIN);
        if let Some(hello) = self.peers[task as usize].as_ref().and_then(|peer| peer.hello) {
            self.accept(task, hello);
        }
        self.send_own(task);
        Ok(())
    }
}

impl FabricTransport {
    /// Cuts the connection with the peer, which may not rejoin.
    pub(super) fn part(&mut self, task: Task) {
        if task == self.credentials.me {
            return;
        }
        self.recall(task);
        self.posting.note_former(task);
        self.end_writes_of(task);
        self.drop_arrived(task);
        let fresh = self.fresh_tag(task);
        self.rejoining.back.retain(|(back, _)| *back != task);
        self.drop_events(task);
        self.want_no_more(task, Wants::ALL);
        let first = self.credentials.first_tag;
        let peer = self.peers[task as usize].get_or_insert_with(|| Box::new(Peer::new(first)));
        peer.reset();
        (peer.mine, peer.theirs) = (fresh, 0);
        peer.standing = Presence::Parted;
        self.drop_queued(task);
    }

    /// A peer from which something is awaited must know of this task, so that it reports its end.
    pub(super) fn want_connection(&mut self, task: Task) {
        if task != self.credentials.me
            && !self.closed
            && self.meet(task)
            && self.peer(task).is_some_and(|peer| !peer.has_met() && peer.is_up())
        {
            self.owe(task, Wants::HELLO);
            self.send_own(task);
            self.settle();
        }
    }

    /// The peer is to look for packets.
    pub(super) fn kick(&mut self, task: Task) {
        if self.peer(task).is_some_and(Peer::is_up) && !self.closed {
            self.owe(task, Wants::KICK);
            self.try_send_own(task);
        }
    }

    #[inline]
    pub(super) fn peer(&self, task: Task) -> Option<&Peer> {
        self.peers.get(task as usize)?.as_deref()
    }

    #[inline]
    pub(super) fn peer_mut(&mut self, task: Task) -> Option<&mut Peer> {
        self.peers.get_mut(task as usize)?.as_deref_mut()
    }

    /// First contact: enters the peer's address. Whether the peer is known now; one without an
    /// address is dead.
    pub(super) fn meet(&mut self, task: Task) -> bool {
        if self.peer(task).is_some() {
            return true;
        }
        if task as usize >= self.peers.len() {
            return false;
        }
        self.add(task);
        if let Err(why) = self.look_up(task) {
            self.lose(task, why);
        }
        if self.peer(task).is_some_and(|peer| peer.standing == Presence::Rejoining) {
            self.owe(task, Wants::REJOIN);
            self.send_own(task);
        }
        true
    }

    /// A peer with which this task has had no contact yet.
    pub(super) fn add(&mut self, task: Task) {
        let mut peer = Box::new(Peer::new(self.credentials.first_tag));
        if self.rejoining.replaces && !self.is_elsewhere(task) {
            (peer.mine, peer.theirs, peer.standing) = (self.fresh_tag(task), 0, Presence::Rejoining);
            self.rejoining.awaited.push(task);
        }
        self.peers[task as usize] = Some(peer);
        self.open_memory(task);
    }

    /// Enters the address that the directory has for a peer, if that has changed.
    pub(super) fn look_up(&mut self, task: Task) -> std::result::Result<(), String> {
        let published = self.directory.address_of(task).map_err(|error| error.detail)?;
        match self.peer_mut(task) {
            // The peer may have sent a later one itself.
            Some(peer) if *peer.listed != *published => peer.listed = published.clone().into(),
            _ => return Ok(()),
        }
        self.enter(task, &published)
    }

    /// Enters what the peer has published.
    pub(super) fn enter(&mut self, task: Task, published: &[u8]) -> std::result::Result<(), String> {
        let Some(peer) = self.peers[task as usize].as_deref_mut() else { return Ok(()) };
        if peer.address.is_some() && *peer.published == *published {
            return Ok(());
        }
        let Some((numbers, address)) = published.split_at_checked(PUBLISHED_BEFORE) else {
            return Err("has published no address of libfabric".to_owned());
        };
        if numbers != &self.credentials.published[..PUBLISHED_BEFORE] {
            return Err(
                "uses another provider or version of libfabric, or another FI_OFI_RXM_BUFFER_SIZE".to_owned()
            );
        }
        let entered = self.device.insert(address);
        peer.address =
            Some(entered.map_err(|errno| format!("has an address that is refused: {}", errno.text()))?);
        peer.published = published.into();
        // What is under way to the process before says nothing about this one. As long as that one
        // counts as up, its end is found by it.
        if !peer.is_up() {
            self.posting.note_former(task);
        }
        Ok(())
    }

    /// The peer cannot be reached any more.
    pub(super) fn lose(&mut self, task: Task, why: String) {
        self.note_left(task, Presence::Dead(why));
    }

    /// The peer cannot be reached any more, because libfabric has failed with this error.
    #[cold]
    pub(super) fn lose_by(&mut self, task: Task, errno: Errno, text: &str) {
        let cause = match errno.0 {
            // What would follow on the connection would look like the rest of the message.
            libc::EFAULT => {
                "memory of this task that was being sent to it has vanished or was closed meanwhile: "
            }
            _ => "",
        };
        let limit = match errno.0 {
            libc::EMFILE | libc::ENFILE => limits::met(rustix::io::Errno::from_raw_os_error(errno.0)),
            _ => None,
        };
        let limit = limit.map_or_else(String::new, |limit| format!(": {limit}"));
        let why = format!("cannot be reached any more: {cause}{text}{limit}");
        self.lose(task, why);
    }

    pub(super) fn note_left(&mut self, task: Task, how: Presence) {
        if how == Presence::Closed {
            self.tell_watch(|watch| watch.closed(task));
        }
        let Some(peer) = self.peer_mut(task) else { return };
        if !peer.is_up() {
            return;
        }
        // One that departs waits until a message says that this was seen. To one that has died
        // there may never be room.
        let keeps = if how == Presence::Closed { Wants::SEEN } else { 0 };
        peer.standing = how;
        peer.no_room = false;
        self.want_no_more(task, !keeps);
        self.left.push(task);
        self.sleeper.note(true);
        self.note_event(RailEvent::Lost(task));
    }

    /// Messages to it that wait for room are not sent.
    pub(super) fn drop_queued(&mut self, task: Task) {
        self.posting.give_up_waiting(task);
        if let Some(peer) = self.peer_mut(task) {
            peer.queued = 0;
        }
    }

    /// What has arrived from the peer and was not taken is gone.
    pub(super) fn drop_arrived(&mut self, task: Task) {
        let aside = self.peer_mut(task).map(|peer| {
            peer.waiting = 0;
            std::mem::take(&mut peer.aside)
        });
        self.receiving.drop_of(&self.device, task, aside.unwrap_or_default());
        self.notify();
    }

    /// The peer has said that it departs.
    pub(super) fn note_departure(&mut self, task: Task, after: u32) {
        if let Some(peer) = self.peer_mut(task) {
            peer.departs_after = Some(after);
            self.look_at_departure(task);
        }
    }

    /// A peer that departs has left when all its packets have arrived. One that is awaited has to
    /// rejoin first: its departure may overtake the proof that it has.
    #[inline]
    pub(super) fn look_at_departure(&mut self, task: Task) {
        let Some(peer) = self.peer_mut(task) else { return };
        if peer.is_up() && peer.departs_after == Some(peer.received) {
            self.owe(task, Wants::SEEN);
            let _ = self.try_send_own(task);
            self.note_left(task, Presence::Closed);
        }
    }
}

const _: () = assert!(LONGEST <= u32::MAX as usize && WINDOW <= u16::MAX as u32);
