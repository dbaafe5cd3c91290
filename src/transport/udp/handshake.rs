//! How connections are made, and what it means when a peer has another incarnation of one.
//!
//! Both sides send a hello with their number until they know that the other side has it. What a
//! hello says has an effect only when it is proven: by the number of this side's connection in it,
//! which is new, or by something sealed with keys of it.
//!
//! A peer with which this task is connected may say that it has another incarnation, because it has
//! parted from this task, or is another process. Such a hello may also be an old one. This side
//! then sends a challenge, a hello with a number that follows from the one that is claimed and from
//! a secret of this process: it keeps nothing. The peer sends its hello again with that number, if
//! it has that incarnation; that is the proof.
//!
//! The epoch in a hello tells first contact ([`FIRST_CONTACT`]) from a process that replaces
//! another one ([`NO_EPOCH`]) and from a task that lets this one rejoin (any other). A task that
//! has begun with the job, and is greeted by one of the latter two before it has had contact,
//! rejoins it, as it would if it had replaced another process; this, too, after a challenge.
//!
//! Tasks without a launcher may be in different openings of LAPI at a time: first contact is
//! made within one. A hello also says how long datagrams may be: the shorter length of both
//! sides is used.

use super::address_validation::AddressValidation;
use super::contact::{CHALLENGE, FIRST_CONTACT, Peer, Session, VALIDATION};
use super::reliable::{Connection, Nanos, State};
use super::{LOST, UdpTransport, with_datagrams};
use crate::transport::presence::Presence;
use crate::transport::{NO_EPOCH, Task};
use crate::wire::datagram::Hello;
use std::net::SocketAddr;

impl UdpTransport {
    /// First contact: whether there is anything to send to the peer.
    pub(super) fn meet(&mut self, task: Task) -> bool {
        if !self.table.has(task) || task == self.credentials.me {
            return false;
        }
        if self.peer(task).is_none() {
            self.add(task);
            if let Err(error) = self.directory.address_of(task) {
                self.leave(task, Presence::Dead(error.detail));
            }
            if self.lost {
                self.leave(task, Presence::Dead(LOST.to_owned()));
            }
        }
        let now = self.now();
        if let Some(peer) = self.peer_mut(task) {
            peer.wanted.get_or_insert(now);
        }
        true
    }

    /// A peer with which this task has had no contact yet.
    pub(super) fn add(&mut self, task: Task) {
        let (standing, epoch) = self.credentials.first_contact();
        let session = self.session(epoch);
        self.table.add(task, Peer { standing, session: Some(session), ..Peer::default() });
        // Also after a hello that says nothing: the other side may wait for one of this side.
        self.touch(task);
    }

    /// A connection that is to be made.
    pub(super) fn session(&mut self, epoch: u64) -> Session {
        let hello = self.credentials.first_hello(epoch);
        Session::new(hello, &self.parameters, self.now())
    }

    /// Sends a hello of this side to where the peer may be.
    pub(super) fn greet(&mut self, task: Task, hello: &Hello) {
        let listed = self.directory.address_of(task).ok();
        let known = self.peer(task).map(|peer| [peer.address_validation.address(), peer.heard_at]);
        let [address, heard_at] = known.unwrap_or_default();
        let (longest, opening) = (self.credentials.longest, self.credentials.opening);
        let greeting = self.credentials.greet(task, &Hello { longest, opening, ..*hello });
        let all = [listed, address, heard_at];
        for (at, to) in all.iter().enumerate() {
            if let Some(to) = to.filter(|to| !all[..at].contains(&Some(*to))) {
                self.outlet.send_now(to, &greeting);
            }
        }
    }

    /// A hello has arrived that was made by a task of the job, now or before.
    pub(super) fn note_hello(&mut self, now: Nanos, task: Task, hello: &Hello, from: SocketAddr) {
        if self.peer(task).is_none() {
            if self.closed {
                return;
            }
            self.add(task);
        }
        let opening = self.peer(task).and_then(|peer| peer.session.as_ref()).is_some_and(Session::is_opening);
        if opening
            && ![CHALLENGE, VALIDATION].contains(&hello.epoch)
            && !self.knows_process(task, hello.process)
        {
            // It greets again, when the death of the one before was reported here.
            return;
        }
        self.note_late(task);
        let Some(session) = self.table.get_mut(task).and_then(Peer::live) else { return };
        let connection = &session.connection;
        if hello.mine == connection.mine() {
            return;
        }
        if hello.epoch == VALIDATION {
            self.note_validation(task, hello, from);
            return;
        }
        if hello.epoch != CHALLENGE && connection.has_heard_later(hello) {
            // The network has reordered them, or repeats an old one.
            return;
        }
        if hello.epoch == CHALLENGE && hello.yours == connection.mine() && !connection.is_confirmed() {
            // Also when this side is up: as long as nothing that was sealed has arrived, the peer
            // may have taken an older hello of this task for the proof of an earlier incarnation,
            // and must learn of this one.
            let epoch = session.epoch;
            let reply = Hello { mine: hello.yours, yours: hello.mine, ..self.credentials.hello(epoch) };
            self.outlet.queue_greeting(from, self.credentials.greet(task, &reply));
            return;
        }
        if connection.state() != State::Opening {
            if hello.mine != connection.theirs() {
                self.note_claim(task, hello, from);
                return;
            }
        } else if hello.epoch == CHALLENGE {
            return;
        } else {
            let (first, unused) = (session.epoch == FIRST_CONTACT, connection.is_empty());
            match (first, hello.epoch == FIRST_CONTACT) {
                // The peer has called LAPI_Term, and LAPI_Init again, or this task has: one of them
                // is not ready yet.
                (true, true) if hello.opening != self.credentials.opening => {
                    if let Some(peer) = self.peer_mut(task) {
                        peer.other_opening = Some(hello.opening);
                    }
                    return;
                }
                (true, false) if hello.epoch == NO_EPOCH || unused => {
                    // The peer may be connected with the number that would be given up
                    // for an old hello.
                    if !self.is_proven(task, hello, from) {
                        return;
                    }
                    self.begin_again(task, now);
                    if hello.epoch != NO_EPOCH && self.credentials.opening != hello.opening {
                        self.credentials.opening = hello.opening;
                        self.directory.note_opening(hello.opening);
                    }
                }
                // The engine would forget what the packets that were accepted belong to.
                (_, false) if hello.epoch != NO_EPOCH && !unused => {
                    self.note_claim(task, hello, from);
                    return;
                }
                // It rejoins when it has a hello of this side.
                (false, true) => return,
                _ => {}
            }
        }
        let Some(peer) = self.table.get_mut(task) else { return };
        let Some(session) = &mut peer.session else { return };
        let was_opening = session.connection.state() == State::Opening;
        if was_opening {
            peer.heard_at = Some(from);
            let longest = hello.longest.min(self.credentials.longest);
            session.connection.agree(&with_datagrams(self.parameters, longest));
        }
        let happened = session.connection.receive_hello(now, hello);
        self.credentials.opener(session, task);
        let proven = hello.yours == session.connection.mine();
        self.note(task, happened, was_opening);
        if proven {
            self.note_source(now, task, from);
        }
    }

    /// A peer greets. If it was given up before it came, what waited for it has ended: the program
    /// must let it join.
    fn note_late(&mut self, task: Task) {
        let Some(peer) = self.peer_mut(task).filter(|peer| peer.given_up) else { return };
        peer.given_up = false;
        if let Presence::Dead(why) = &mut peer.standing {
            why.push_str("; it has come since, and LAPI_Purge_totask and LAPI_Resume_totask let it join");
        }
    }

    /// A datagram has been accepted that was made for this incarnation of the connection, and came
    /// from this address.
    #[inline]
    pub(super) fn note_source(&mut self, now: Nanos, task: Task, from: SocketAddr) {
        let Some(peer) = self.peer_mut(task) else { return };
        if !peer.address_validation.is_settled() && peer.address_validation.heard(now, from) {
            self.ask_for_validation(task, from);
        }
    }

    /// Asks an address for the number that is sent there.
    #[cold]
    fn ask_for_validation(&mut self, task: Task, at: SocketAddr) {
        let Some(connection) = self.connection(task) else { return };
        let yours = connection.theirs();
        let mine = self.credentials.number_of(task, connection, at);
        let question = Hello { mine, yours, ..self.credentials.hello(VALIDATION) };
        self.outlet.queue_greeting(at, self.credentials.greet(task, &question));
    }

    /// The peer asks whether the address at which it has sent this is one of this task's, or has
    /// replied to such a question.
    #[cold]
    fn note_validation(&mut self, task: Task, hello: &Hello, from: SocketAddr) {
        let Some(connection) = self.connection(task) else { return };
        if hello.yours == connection.mine() {
            let reply = Hello { mine: hello.yours, yours: hello.mine, ..self.credentials.hello(VALIDATION) };
            self.outlet.queue_greeting(from, self.credentials.greet(task, &reply));
        } else if hello.mine == connection.theirs()
            && hello.yours == self.credentials.number_of(task, connection, from)
        {
            let Some(peer) = self.peer_mut(task) else { return };
            if peer.address_validation.replied(from) {
                self.touch(task);
            }
        }
    }

    fn connection(&self, task: Task) -> Option<&Connection> {
        Some(&self.peer(task)?.session.as_ref()?.connection)
    }

    /// This task, which has begun with the job, rejoins a peer with which it has had no contact.
    pub(super) fn begin_again(&mut self, task: Task, now: Nanos) {
        let hello = self.credentials.first_hello(NO_EPOCH);
        let Some(peer) = self.table.get_mut(task) else { return };
        let Some(session) = &mut peer.session else { return };
        session.begin_again(hello, &self.parameters, now);
        peer.standing = Presence::Rejoining;
    }

    /// Whether the peer has this incarnation now: the hello is the reply to a challenge, which is
    /// sent otherwise.
    fn is_proven(&mut self, task: Task, hello: &Hello, from: SocketAddr) -> bool {
        let Some(session) = self.peer(task).and_then(|peer| peer.session.as_ref()) else { return false };
        let challenge = self.credentials.challenge(task, hello.mine, session.connection.mine());
        if hello.yours != challenge {
            let asked = Hello { mine: challenge, yours: hello.mine, ..self.credentials.hello(CHALLENGE) };
            self.outlet.queue_greeting(from, self.credentials.greet(task, &asked));
        }
        hello.yours == challenge
    }

    /// A peer claims to have another incarnation of the connection than the one of which this task
    /// has accepted packets.
    #[cold]
    fn note_claim(&mut self, task: Task, hello: &Hello, from: SocketAddr) {
        if hello.epoch == CHALLENGE {
            return;
        }
        if !self.is_proven(task, hello, from) {
            return;
        }
        let Some(session) = self.peer(task).and_then(|peer| peer.session.as_ref()) else { return };
        let same = session.connection.peer().is_none_or(|known| known.process == hello.process);
        if same && ![FIRST_CONTACT, NO_EPOCH].contains(&hello.epoch) {
            self.leave(task, Presence::HasParted);
        } else {
            let process = hello.process;
            self.tell_watch(|watch| watch.has_successor(task, process));
            let why = "has ended without calling LAPI_Term, and another process has taken its place";
            self.leave(task, Presence::Dead(why.to_owned()));
        }
    }

    /// The connection with a peer is made.
    pub(super) fn note_up(&mut self, task: Task) {
        self.sleeper.note(true);
        let hello = self.peer(task).and_then(|peer| peer.session.as_ref()?.connection.peer());
        if let Some(process) = hello.map(|hello| hello.process) {
            self.note_process(task, process);
            self.directory.note_process(task, process);
        }
        let listed = self.directory.address_of(task).ok();
        let Some(peer) = self.peer_mut(task) else { return };
        peer.address_validation = AddressValidation::made(listed);
        if peer.standing == Presence::Meeting {
            peer.standing = Presence::Up;
        }
        if peer.standing != Presence::Rejoining {
            return;
        }
        let Some(session) = &peer.session else { return };
        let theirs = session.connection.peer().map_or(NO_EPOCH, |hello| hello.epoch);
        peer.standing = Presence::Up;
        // Without epochs there is nothing to name: one of the two has taken the place of another
        // process, and neither has had contact with the other before.
        peer.unnamed = (session.epoch, theirs) != (NO_EPOCH, NO_EPOCH);
        if peer.unnamed {
            // A packet that came in the same datagram waits, too.
            self.arrivals.note_back(task, theirs);
        }
    }
}
