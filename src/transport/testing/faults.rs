//! Faults on purpose: wraps any transport and makes its packets late, out of order, refused, or
//! its task dead.
//!
//! All decisions come from one seed, through one generator for each task, and depend on nothing but
//! the calls that are made: a run that steps its tasks in one thread happens again exactly when it
//! is given the same [`FaultPlan`], and the plan prints itself as one complete line.
//!
//! Nothing is lost and nothing arrives twice: the contract of a [`Transport`] excludes both, and
//! the wrapper keeps that contract. In particular:
//!
//! * A packet that is held back comes out after some calls of [`Endpoint::recv`], also when nothing
//!   else arrives. Until then [`Wakeup::arm`] returns `false`, so no thread sleeps over it.
//! * A sender that was refused for no reason does not wait for room that was there all the time:
//!   the next [`Wakeup::arm`] returns `false` once, or the descriptor becomes readable when it is
//!   armed already.
//! * A peer is not reported to have left while packets from it are held back.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::base::rng::Rng;
use crate::transport::parcel::Parcel;
use crate::transport::testing::forward::forward;
use crate::transport::{
    Door, Endpoint, Inbound, Limits, Look, Outgoing, PeerStanding, PeerState, Peers, Piece, RemoteAccess,
    Seen, SendOutcome, Task, Transport, Wakeup, Want, Withdrawal,
};

/// No more packets than this are held back at a time: the oldest then comes out before its time.
const HELD_MAX: usize = 256;

/// A packet that is to be overtaken is held back for at most this number of polls.
const REORDER_POLLS: u32 = 8;

/// What goes wrong, how often, and from which seed. The default is that nothing does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultPlan {
    /// Decides everything that the other fields leave open.
    pub seed: u64,
    /// The probability that an arriving packet is held back; what its sender sent later then waits
    /// behind it (unless `reorder` is above 0).
    pub delay: f64,
    /// For how many polls (calls of [`Endpoint::recv`]) it is held back at most; at
    /// least 1 is meant.
    pub delay_polls: u32,
    /// The probability that an arriving packet is set aside while later ones overtake it. Above 0,
    /// [`Limits::ordered`] is false.
    pub reorder: f64,
    /// The probability that a packet is refused with [`SendOutcome::NoRoom`] although there may be
    /// room. Below 1, or nothing is ever sent.
    pub refuse: f64,
    /// This task dies as soon as it has sent and received this number of packets, both together.
    pub death: Option<(Task, u64)>,
}

impl FaultPlan {
    /// All faults but deaths, each often enough that they coincide.
    pub fn rough(seed: u64) -> Self {
        Self { seed, delay: 0.2, delay_polls: 12, reorder: 0.15, refuse: 0.1, death: None }
    }
}

impl fmt::Display for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed={:#018x} delay={} delay_polls={} reorder={} refuse={}",
            self.seed, self.delay, self.delay_polls, self.reorder, self.refuse
        )?;
        if let Some((task, after)) = self.death {
            write!(f, " death=task {task} after {after} packets")?;
        }
        Ok(())
    }
}

/// How often a [`Faulty`] has done what its plan says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCounts {
    /// Packets held back, for whichever reason.
    pub held: u64,
    /// Packets that were set aside to be overtaken.
    pub reordered: u64,
    /// Packets refused for no reason.
    pub refused: u64,
}

/// A transport with faults. See the module's documentation.
pub struct Faulty<T> {
    inner: T,
    task: Task,
    tasks: u32,
    plan: FaultPlan,
    /// Set when the task of `plan.death` has died: all ends of one job in one process share it.
    dead: Arc<AtomicBool>,
    rng: Rng,
    counts: FaultCounts,
    /// How often the user has asked for a packet.
    polls: u64,
    /// Packets sent and received, until death.
    packets: u64,
    /// Packets held back, in the order of their arrival.
    held: VecDeque<Held>,
    /// The held packet that was handed out and not yet given back.
    out: Option<Parcel>,
    /// Refused for no reason since it was last armed.
    refused: bool,
    armed: bool,
}

struct Held {
    /// The poll at which it comes out.
    due: u64,
    parcel: Parcel,
}

impl<T: Transport> Faulty<T> {
    fn inner_mut(&mut self) -> &mut T {
        &mut self.inner
    }

    /// Wraps all ends of a job that lives in this process: element `i` is task `i`. When the task
    /// of [`FaultPlan::death`] dies, the others see it as [`PeerState::Dead`] and are woken.
    pub fn join(ends: Vec<T>, plan: &FaultPlan) -> Vec<Self> {
        let dead = Arc::new(AtomicBool::new(false));
        let tasks = ends.len() as u32;
        ends.into_iter()
            .zip(0..)
            .map(|(end, task)| Self::wrap(end, task, tasks, plan, dead.clone()))
            .collect()
    }

    /// Wraps one end alone, where the others live in other processes. Death then means silence: the
    /// task neither sends nor receives any more, and its peers have to find that out by themselves.
    pub fn alone(end: T, task: Task, plan: &FaultPlan) -> Self {
        Self::wrap(end, task, 0, plan, Arc::default())
    }

    /// What has been done so far.
    pub fn counts(&self) -> FaultCounts {
        self.counts
    }

    /// The transport that is wrapped.
    pub fn inner(&self) -> &T {
        &self.inner
    }

    fn wrap(inner: T, task: Task, tasks: u32, plan: &FaultPlan, dead: Arc<AtomicBool>) -> Self {
        let mut end = Self {
            inner,
            task,
            tasks,
            plan: plan.clone(),
            dead,
            rng: Rng::stream(plan.seed, task.into()),
            counts: FaultCounts::default(),
            polls: 0,
            packets: 0,
            held: VecDeque::new(),
            out: None,
            refused: false,
            armed: false,
        };
        if matches!(plan.death, Some((who, 0)) if who == task) {
            end.die();
        }
        end
    }

    fn is_dead(&self, task: Task) -> bool {
        matches!(self.plan.death, Some((who, _)) if who == task) && self.dead.load(Ordering::Acquire)
    }

    /// One more packet sent or received: perhaps the last.
    fn count_packet(&mut self) {
        self.packets += 1;
        if matches!(self.plan.death, Some((who, after)) if who == self.task && self.packets >= after) {
            self.die();
        }
    }

    fn die(&mut self) {
        self.dead.store(true, Ordering::Release);
        self.held.clear();
        self.inner.want(Want::Wake);
        for peer in (0..self.tasks).filter(|&peer| peer != self.task) {
            self.inner.want(Want::Attention(peer));
        }
    }

    /// Whether the packet is held back, and if so, until which poll.
    fn judge(&mut self, src: Task) -> Option<u64> {
        // Both are drawn always, so that the two probabilities can be changed one at a time.
        let reorder = self.rng.chance(self.plan.reorder);
        let delay = self.rng.chance(self.plan.delay);
        let behind = self.held.iter().rev().find(|held| held.parcel.src == src).map(|held| held.due);
        let in_order = self.limits(src).ordered;
        if (reorder || delay) && self.inner.standing(src).state == PeerState::Up {
            let span = if reorder { REORDER_POLLS } else { self.plan.delay_polls.max(1) };
            let due = self.polls + 1 + self.rng.below(span.into());
            self.counts.reordered += u64::from(reorder);
            return Some(if in_order { due.max(behind.unwrap_or(0)) } else { due });
        }
        behind.filter(|_| in_order)
    }

    fn hand_out(&mut self, held: Held) -> Inbound {
        let inbound = self.out.insert(held.parcel).inbound(0);
        self.count_packet();
        inbound
    }
}

impl<T: Transport> Endpoint for Faulty<T> {
    forward!(report, due, tally);

    /// What is held back comes out after some calls.
    fn look(&mut self, look: Look) -> Seen<'_> {
        self.inner.look(look);
        Seen::Something
    }

    fn limits(&self, peer: Task) -> Limits {
        let inner = self.inner.limits(peer);
        Limits { ordered: inner.ordered && self.plan.reorder <= 0.0, ..inner }
    }

    unsafe fn try_send(&mut self, peer: Task, packet: &Outgoing<'_>) -> SendOutcome {
        if self.is_dead(self.task) || self.is_dead(peer) {
            return SendOutcome::Gone;
        }
        if self.rng.chance(self.plan.refuse) {
            self.counts.refused += 1;
            if self.armed {
                self.inner.want(Want::Wake);
            } else {
                self.refused = true;
            }
            return SendOutcome::NoRoom;
        }
        // SAFETY: the pieces are readable during the call, as the caller promised.
        let outcome = unsafe { self.inner.try_send(peer, packet) };
        if outcome.accepted().is_ok() {
            self.count_packet();
        }
        outcome
    }

    fn door(&mut self, _peer: Task) -> Option<&mut Door> {
        None
    }

    fn recv(&mut self) -> Option<Inbound> {
        assert!(self.out.is_none(), "the packet before has not been released");
        if self.is_dead(self.task) {
            return None;
        }
        self.polls += 1;
        loop {
            // In arrival order: where order is kept, no packet is due before an earlier one
            // of its sender.
            let full = self.held.len() >= HELD_MAX;
            if let Some(at) = self.held.iter().position(|held| full || held.due <= self.polls) {
                let held = self.held.remove(at).expect("found just now");
                return Some(self.hand_out(held));
            }
            let Some(packet) = self.inner.recv() else {
                if self.armed && !self.held.is_empty() {
                    self.inner.want(Want::Wake);
                }
                return None;
            };
            let Some(due) = self.judge(packet.src) else {
                self.count_packet();
                return Some(packet);
            };
            self.counts.held += 1;
            // SAFETY: the packet is in place and readable until it is released, below.
            let parcel = unsafe { copy(&packet) };
            self.inner.release(packet);
            self.held.push_back(Held { due, parcel });
        }
    }

    fn release(&mut self, packet: Inbound) {
        if self.out.take().is_none() {
            self.inner.release(packet);
        }
    }

    fn want(&mut self, what: Want) {
        if what != Want::Serve || !self.is_dead(self.task) {
            self.inner.want(what);
        }
    }

    fn close(&mut self) {
        // A dead task sends nothing.
        if !self.is_dead(self.task) {
            self.inner.close();
        }
    }
}

impl<T: Transport> RemoteAccess for Faulty<T> {
    forward!(RemoteAccess);
}

impl<T: Transport> Wakeup for Faulty<T> {
    forward!(event_fd);

    fn arm(&mut self) -> bool {
        if self.is_dead(self.task) {
            // Nothing will arrive: a thread that sleeps nevertheless is woken at once, and sees
            // that all peers are gone.
            self.inner.want(Want::Wake);
            return true;
        }
        if !self.held.is_empty() || std::mem::take(&mut self.refused) {
            return false;
        }
        self.armed = self.inner.arm();
        self.armed
    }

    fn disarm(&mut self) {
        self.armed = false;
        self.inner.disarm();
    }
}

impl<T: Transport> Peers for Faulty<T> {
    forward!(view);

    fn standing(&self, peer: Task) -> PeerStanding {
        let state = if self.held.iter().any(|held| held.parcel.src == peer) {
            PeerState::Up
        } else if self.is_dead(self.task) || self.is_dead(peer) {
            PeerState::Dead
        } else {
            return self.inner.standing(peer);
        };
        PeerStanding { state, ..self.inner.standing(peer) }
    }

    fn is_open(&self, peer: Task) -> bool {
        self.standing(peer).state == PeerState::Up
    }

    fn withdraw(&mut self, peer: Task, what: Withdrawal) {
        if what == Withdrawal::Connection {
            self.held.retain(|held| held.parcel.src != peer);
        }
        self.inner.withdraw(peer, what);
    }

    fn rejoin(&mut self, peer: Task, epoch: u64) -> crate::error::Result<()> {
        self.withdraw(peer, Withdrawal::Connection);
        self.inner.rejoin(peer, epoch)
    }
}

/// # Safety
/// The packet must not have been released.
unsafe fn copy(packet: &Inbound) -> Parcel {
    // SAFETY: head and body are readable until the packet is released.
    unsafe {
        let head = std::slice::from_raw_parts(packet.head, packet.head_len);
        let first = Piece { ptr: packet.body, len: packet.body_len };
        Parcel::gather(
            packet.src,
            &Outgoing { head, first, second: Piece::EMPTY.into(), copy_limit: usize::MAX },
            Vec::new(),
        )
    }
}

#[cfg(test)]
mod tests;
