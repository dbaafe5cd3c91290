//! The peers: first contact, state, parting and rejoining.
//!
//! Tasks that have parted connect again by two messages. Each side chooses a tag, and sends it
//! until it knows that the other has it: a message with the receiver's own tag as echo proves that.
//! What the other side has sent before this one lets it rejoin is kept. A message from a process
//! that has ended meanwhile does no harm: its successor gets an echo that is not its own, and sends
//! its tag again.

use super::contact::Peer;
use super::ofi::Errno;
use super::own::Wants;
use super::{FabricTransport, LONGEST, PUBLISHED_BEFORE, WINDOW};
use crate::base::limits;
use crate::base::process::Process;
use crate::error::Result;
use crate::transport::presence::Presence;
use crate::transport::rails::RailEvent;
use crate::transport::{ConnectionView, NO_EPOCH, PeerStanding, PeerState, Peers, Task, View, Withdrawal};
use crate::wire::network::Rejoin;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often a peer that is awaited is sent the same message to rejoin.
const REJOIN_AGAIN: Duration = Duration::from_millis(100);

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

    fn signal(&mut self, _task: Task, _number: u32) -> bool {
        false
    }

    fn signalled(&self, _task: Task, _number: u32) -> bool {
        false
    }

    fn withdraw(&mut self, task: Task, what: Withdrawal) {
        match what {
            Withdrawal::Key(key) => self.withdraw_key(task, key),
            Withdrawal::Traffic => self.recall(task),
            Withdrawal::Connection => self.part(task),
        }
    }

    fn rejoin(&mut self, task: Task, epoch: u64) -> Result<()> {
        if task == self.credentials.me() {
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
        self.awaited.push(task);
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
        if task == self.credentials.me() {
            return;
        }
        self.recall(task);
        self.end_writes_of(task);
        self.drop_arrived(task);
        let fresh = self.fresh_tag(task);
        self.back.retain(|(back, _)| *back != task);
        self.drop_events(task);
        let first = self.credentials.first_tag();
        let peer = self.peers[task as usize].get_or_insert_with(|| Box::new(Peer::new(first)));
        peer.reset();
        (peer.mine, peer.theirs) = (fresh, 0);
        peer.standing = Presence::Parted;
        self.drop_queued(task);
    }

    /// A peer from which something is awaited must know of this task, so that it reports its end.
    pub(super) fn want_connection(&mut self, task: Task) {
        if task != self.credentials.me()
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
    fn add(&mut self, task: Task) {
        let mut peer = Box::new(Peer::new(self.credentials.first_tag()));
        if self.replaces && !self.is_elsewhere(task) {
            (peer.mine, peer.theirs, peer.standing) = (self.fresh_tag(task), 0, Presence::Rejoining);
            self.awaited.push(task);
        }
        self.peers[task as usize] = Some(peer);
        self.open_memory(task);
    }

    /// The tasks to which packets go by another transport: one entry for each task.
    pub fn leaves_to_another(&mut self, tasks: Box<[bool]>) {
        self.elsewhere = tasks;
    }

    pub(super) fn is_elsewhere(&self, task: Task) -> bool {
        self.elsewhere.get(task as usize).is_some_and(|elsewhere| *elsewhere)
    }

    /// This process has taken the place of another one: packets to a peer find no room until the
    /// peer has let it rejoin.
    pub fn replaces_another(&mut self) {
        self.replaces = true;
    }

    /// Looks whether another process has taken the place of a peer that is awaited. What this task
    /// has sent to rejoin may have been lost: an access that was under way when the two parted
    /// makes the provider for TCP end the connection.
    pub(super) fn look_for_awaited(&mut self) {
        if self.awaited.is_empty() {
            return;
        }
        let awaits = |peer: &Peer| peer.standing == Presence::Rejoining;
        let mut awaited = std::mem::take(&mut self.awaited);
        awaited.retain(|&task| self.peer(task).is_some_and(awaits));
        let now = Instant::now();
        let again = now >= self.next_rejoin;
        if again {
            self.next_rejoin = now + REJOIN_AGAIN;
        }
        for &task in &awaited {
            let before = self.peer(task).and_then(|peer| peer.address);
            let _ = self.look_up(task);
            let address = self.peer(task).and_then(|peer| peer.address);
            if address != before || again && self.posting.of(task).next().is_none() {
                self.owe(task, Wants::REJOIN);
                self.send_own(task);
            }
        }
        self.awaited.append(&mut awaited);
        self.awaited.sort_unstable();
        self.awaited.dedup();
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
    fn enter(&mut self, task: Task, published: &[u8]) -> std::result::Result<(), String> {
        let Some(peer) = self.peers[task as usize].as_deref_mut() else { return Ok(()) };
        if peer.address.is_some() && *peer.published == *published {
            return Ok(());
        }
        let Some((numbers, address)) = published.split_at_checked(PUBLISHED_BEFORE) else {
            return Err("has published no address of libfabric".to_owned());
        };
        if numbers != &self.credentials.published()[..PUBLISHED_BEFORE] {
            return Err(
                "uses another provider or version of libfabric, or another FI_OFI_RXM_BUFFER_SIZE".to_owned()
            );
        }
        let entered = self.device.insert(address);
        peer.address =
            Some(entered.map_err(|errno| format!("has an address that is refused: {}", errno.text()))?);
        peer.published = published.into();
        Ok(())
    }

    /// The peer cannot be reached any more.
    pub(super) fn lose(&mut self, task: Task, why: String) {
        self.leave(task, Presence::Dead(why));
    }

    /// The peer cannot be reached any more, because libfabric has failed with this error.
    #[cold]
    pub(super) fn lose_by(&mut self, task: Task, errno: Errno, text: &str) {
        let cause = match errno.0 {
            // What would follow on the connection cannot be told from the rest of the message.
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

    fn leave(&mut self, task: Task, how: Presence) {
        if how == Presence::Closed {
            self.tell_watch(|watch| watch.closed(task));
        }
        let Some(peer) = self.peer_mut(task) else { return };
        if !peer.is_up() {
            return;
        }
        peer.standing = how;
        peer.no_room = false;
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
    fn drop_arrived(&mut self, task: Task) {
        let aside = self.peer_mut(task).map(|peer| {
            peer.waiting = 0;
            std::mem::take(&mut peer.aside)
        });
        self.receiving.drop_of(&self.device, task, aside.unwrap_or_default());
        self.notify();
    }

    /// A tag that this task has not used for the peer, and that no former process with its number
    /// has used lately.
    fn fresh_tag(&self, task: Task) -> u32 {
        let former = self.peer(task).map(|peer| peer.mine).filter(|tag| *tag != self.credentials.first_tag());
        tag_after(former, tag_now())
    }

    /// The peer has said that it departs.
    pub(super) fn note_departure(&mut self, task: Task, after: u32) {
        if let Some(peer) = self.peer_mut(task) {
            peer.departs_after = Some(after);
            self.look_at_departure(task);
        }
    }

    /// A peer that departs has left when all its packets have arrived.
    #[inline]
    pub(super) fn look_at_departure(&mut self, task: Task) {
        let Some(peer) = self.peer_mut(task) else { return };
        if peer.departs_after == Some(peer.received) {
            self.owe(task, Wants::SEEN);
            let _ = self.try_send_own(task);
            self.leave(task, Presence::Closed);
        }
    }

    /// A peer wants to rejoin.
    #[cold]
    pub(super) fn note_hello(&mut self, task: Task, after: &[u8], body_len: usize) {
        let Some((hello, address)) = after.get(..body_len).and_then(Rejoin::decode) else { return };
        if self.is_elsewhere(task) {
            return;
        }
        if self.peer(task).is_none() {
            self.add(task);
        }
        let Some(peer) = self.peer_mut(task) else { return };
        if peer.is_up() && hello.tag == peer.theirs {
            // It is connected already: this is the proof that this task waited for, or the proof
            // for the peer was lost.
            if hello.waits {
                self.owe(task, Wants::REJOIN);
                self.send_own(task);
            }
            return;
        }
        peer.hello = Some(hello);
        let (pid, started) = hello.process;
        if peer.is_up() && peer.is_known() {
            let process = Process { pid, started };
            self.tell_watch(|watch| watch.has_successor(task, process));
            if self.has_parted(task, &hello) && self.knows_process(task, process) {
                self.note_parted(task, hello.epoch);
            }
        }
        if self.has_come_back(task, &hello) {
            // An access that was under way when the peer has parted from this task has ended the
            // connection before.
            if let Some(peer) = self.peer_mut(task) {
                peer.standing = Presence::HasParted;
            }
        }
        if self.peer(task).is_some_and(|peer| peer.is_up() && !peer.is_known()) {
            self.await_first(task);
        }
        if self.enter(task, address).is_ok()
            && self.peer(task).is_some_and(|peer| peer.standing == Presence::Rejoining)
        {
            self.accept(task, hello);
        }
    }

    /// The peer rejoins the job, and this task has not had contact with it before.
    pub(super) fn await_first(&mut self, task: Task) {
        self.drop_arrived(task);
        let fresh = self.fresh_tag(task);
        let Some(peer) = self.peer_mut(task) else { return };
        peer.reset();
        (peer.mine, peer.theirs, peer.standing, peer.epoch) = (fresh, 0, Presence::Rejoining, NO_EPOCH);
        self.open_memory(task);
        self.awaited.push(task);
    }

    /// Whether a peer that is up has sent this after it has parted from this task: in its
    /// connection, it had sent an earlier tag.
    fn has_parted(&self, task: Task, hello: &Rejoin) -> bool {
        self.peer(task).is_some_and(|peer| {
            let later = peer.theirs == self.credentials.first_tag() || is_later(hello.tag, peer.theirs);
            peer.is_up() && later && hello.epoch != NO_EPOCH && !self.is_rail_epoch(hello.epoch)
        })
    }

    /// Whether a peer that counts as dead only because a message could not be sent has sent this:
    /// it has parted from this task.
    fn has_come_back(&self, task: Task, hello: &Rejoin) -> bool {
        let (pid, started) = hello.process;
        self.rail.is_none()
            && hello.epoch != NO_EPOCH
            && self.peer(task).is_some_and(|peer| peer.broken && matches!(peer.standing, Presence::Dead(_)))
            && self.knows_process(task, Process { pid, started })
    }

    /// The peer has parted from this task, and lets it rejoin: they connect when this task has
    /// done the same.
    #[cold]
    fn note_parted(&mut self, task: Task, epoch: u64) {
        if self.rail.is_some() {
            // The rails' owner parts from the peer on all rails.
            self.note_event(RailEvent::Parted(task, epoch));
            self.sleeper.note(true);
        } else {
            self.leave(task, Presence::HasParted);
        }
    }

    /// A peer that this task lets rejoin has sent its tag.
    fn accept(&mut self, task: Task, hello: Rejoin) {
        let Some(peer) = self.peers[task as usize].as_deref_mut() else { return };
        peer.theirs = hello.tag;
        if hello.echo == peer.mine {
            peer.standing = Presence::Up;
            peer.met = true;
            peer.hello = None;
            // Without epochs there is nothing to name, but to the rails' owner: one of the
            // two has taken the place of another process, and neither has had contact with
            // the other before.
            peer.unnamed = self.rail.is_some() || (peer.epoch, hello.epoch) != (NO_EPOCH, NO_EPOCH);
            if peer.unnamed {
                self.note_rejoined(task, hello.epoch);
            } else {
                self.receiving.add_packets(&mut peer.aside);
            }
            self.sleeper.note(true);
            let (pid, started) = hello.process;
            self.note_process(task, Process { pid, started });
        }
        // The peer waits for the proof that this task has its tag.
        self.owe(task, Wants::REJOIN);
        self.send_own(task);
    }
}

/// The tag of this moment: odd, and about 15,000 a second later for each second.
fn tag_now() -> u32 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() >> 16);
    now as u32 | 1
}

/// The tag of this moment, or, where the peer would not see that it is later than the one that
/// this task has used for it, the one after that: tags begin again after three days, and
/// clocks are set back.
fn tag_after(former: Option<u32>, now: u32) -> u32 {
    former.filter(|former| !is_later(now, *former)).map_or(now, |former| former.wrapping_add(2))
}

/// Whether the one tag was chosen after the other, by one task for one peer.
fn is_later(one: u32, other: u32) -> bool {
    one != other && one.wrapping_sub(other) < 1 << 31
}

const _: () = assert!(LONGEST <= u32::MAX as usize && WINDOW <= u16::MAX as u32);

#[cfg(test)]
mod tests {
    use super::*;

    /// Half of all tags count as earlier ones: those of 39 hours.
    #[test]
    fn the_next_tag_for_a_peer_is_later_whenever_it_is_chosen() {
        let hour = 3_600_000_000_000_u64 >> 16;
        let first = 0xffff_0001_u32;
        for hours in [0, 1, 30, 40, 60, 77, 79, 200, 10_000] {
            let now = first.wrapping_add((hours * hour) as u32) | 1;
            let next = tag_after(Some(first), now);
            assert!(is_later(next, first) && next % 2 == 1, "after {hours} hours");
        }
        assert!(is_later(tag_after(Some(first), first - 50_000), first), "the clock was set back");
        assert_eq!(tag_after(None, 7), 7);
    }
}
