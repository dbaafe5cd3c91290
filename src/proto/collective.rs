//! Barrier and exchange among all tasks, in O(log n) rounds.
//!
//! [`super::rounds`] has the rounds: in each group, which in a job of several hosts is the tasks of
//! one host, one task gathers for the others, and those use Bruck's all-gather (Bruck et al., IEEE
//! TPDS 1997). When a task begins a round it sends what it has to the receivers of that round; the
//! round is over when the packets of all its senders have arrived. A barrier is an exchange of
//! nothing. Each task counts its collective operations; packets carry that count, so one that
//! arrives before its task has entered the operation is kept.
//!
//! Where the link can do that, a *signal* takes the place of a packet that says nothing but that
//! its sender is there: the count of the operation. It need not say the round, because a task sends
//! to each other one in at most one round of an operation. A signal stays where it is until the
//! task looks for it. The link keeps one of an even and one of an odd operation, and that is
//! enough: no task completes an operation before all have entered it, so none is more than one
//! ahead of another. Tasks that leave that order, because they have failed or rejoined, continue
//! together at a later operation ([`Collectives::catch_up`]).
//!
//! A task that is missing for ever *fails* the operation at a task that awaits its packet. That
//! task ends the operation at once, and every later one too, and sends a packet about it to all
//! that would await a packet of its own: from this operation on they fail at their turn. So a
//! failure spreads along the ways of the values, in as many steps; no task waits for one that has
//! stopped waiting, and all tasks still count the same operations.
//!
//! A barrier of one task may meet an exchange of another: the program has made different calls.
//! Packets of an exchange have values, those of a barrier have none, so the task that gets the
//! other kind detects it. It continues through all rounds and names such a task in its packets: at
//! the end every task knows, the operation fails in all of them, and the next one is in step.

use super::content::Content;
use super::outbox::{Body, Outbox, SendDone, Sent};
use super::placement::Placement;
use super::rounds::{Rounds, SENDERS};
use super::{Transmit, before};
use crate::abi::LAPI_ERR_UNKNOWN;
use crate::memory::bytes::{self, Piece};
use crate::wire::frame::Task;
use crate::wire::packet::Head;
use std::collections::HashMap;
use std::sync::Arc;

/// Bytes of one task's value in an exchange.
const VALUE: usize = 8;

/// Why an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The task that is missing, or that has made another call.
    pub task: Task,
    /// What the call returns for it.
    pub code: i32,
}

impl Failure {
    /// Whether the tasks have made different calls. No task is missing for this reason.
    pub fn is_mismatch(&self) -> bool {
        self.code == LAPI_ERR_UNKNOWN
    }
}

/// What has arrived of one round.
#[derive(Default)]
struct Round {
    values: Vec<u64>,
    /// The senders whose packet has arrived, or the first of several: one bit for each place.
    there: u32,
    /// How many values of each of them have arrived.
    counts: [u32; SENDERS],
    /// 1 + a task whose call is another one than that of a sender; 0: no sender knows one.
    other: u32,
}

struct Current {
    sequence: u32,
    round: u16,
    /// The senders of this round whose signal was seen: one bit for each place.
    signalled: u32,
    /// Values of this task, its subtree, its group and the groups above it, as far as known;
    /// empty in a barrier.
    values: Vec<u64>,
    /// What the values were before those of all tasks replaced them, and in which round that was.
    gathered: Option<(u16, Vec<u64>)>,
    exchange: bool,
    /// A task that has made another call.
    other: Option<Task>,
}

/// The collective operations of one task.
pub struct Collectives {
    rounds: Rounds,
    next: u32,
    current: Option<Current>,
    /// What has arrived of rounds that are not over here, by operation and round: a few.
    arrived: Vec<((u32, u16), Round)>,
    /// Tasks whose packets do not come any more from this operation on, and why.
    missing: HashMap<Task, (u32, Failure)>,
    /// An operation has failed here: so do all that follow.
    failed: Option<Failure>,
    /// Tasks that were missing and may rejoin: failures of operations before this one, for want of
    /// them, are over.
    may_rejoin_from: HashMap<Task, u32>,
}

impl Round {
    /// Whether all has arrived of the sender at this place. Fewer values than these come where the
    /// tasks have made different calls.
    fn is_complete(&self, at: usize, values: usize) -> bool {
        let count = self.counts[at] as usize;
        self.there & 1 << at != 0 && (count >= values || count == 0 || self.other != 0)
    }

    /// Forgets what the sender at this place has sent.
    fn forget(&mut self, at: usize) {
        self.there &= !(1 << at);
        self.counts[at] = 0;
    }
}

/// The place of a packet in a collective operation: see [`Head::Collective`].
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Which operation.
    pub sequence: u32,
    /// The round.
    pub round: u16,
    /// Where in the round's values its body belongs, in bytes.
    pub offset: u32,
    /// 1 + a task whose call is another one than the sender's; 0: none is known.
    pub other: u32,
}

impl Collectives {
    /// Of task `me` of `tasks`; with their hosts if these are several.
    pub fn new(me: Task, tasks: u32, hosts: Option<Arc<Placement>>) -> Self {
        Self {
            rounds: Rounds::new(me, tasks, hosts),
            next: 0,
            current: None,
            arrived: Vec::new(),
            missing: HashMap::new(),
            failed: None,
            may_rejoin_from: HashMap::new(),
        }
    }

    /// Whether an operation is under way here. There is one at a time.
    pub fn busy(&self) -> bool {
        self.current.is_some()
    }

    /// Enters the next collective operation: a barrier, or an exchange of one value of each task.
    pub fn enter(&mut self, value: Option<u64>, outbox: &mut Outbox, link: &mut impl Transmit) {
        assert!(self.current.is_none(), "one collective operation at a time");
        let current = Current {
            sequence: self.next,
            round: 0,
            signalled: 0,
            values: value.map_or_else(Vec::new, |value| vec![value]),
            gathered: None,
            exchange: value.is_some(),
            other: None,
        };
        self.next = self.next.wrapping_add(1);
        self.current = Some(current);
        if self.failed.is_none() {
            self.send_round(outbox, link);
        }
    }

    /// How many collective operations this task has entered.
    pub fn position(&self) -> u32 {
        self.next
    }

    /// Another task has entered `position` operations: a task that has rejoined continues from
    /// there, also when it has entered one that is behind. Returns whether it was behind.
    pub fn catch_up(&mut self, position: u32, outbox: &mut Outbox, link: &mut impl Transmit) -> bool {
        if !before(self.turn(), position) {
            return false;
        }
        self.next = position;
        self.arrived.retain(|((sequence, _), _)| !before(*sequence, position));
        if let Some(current) = &mut self.current {
            self.next = position.wrapping_add(1);
            (current.sequence, current.round, current.signalled, current.other) = (position, 0, 0, None);
            if let Some((_, gathered)) = current.gathered.take() {
                current.values = gathered;
            }
            current.values.truncate(1);
            if self.failed.is_none() {
                self.send_round(outbox, link);
            }
        }
        true
    }

    /// The operation that is under way, or that comes next.
    pub fn turn(&self) -> u32 {
        self.current.as_ref().map_or(self.next, |current| current.sequence)
    }

    /// Receives a packet of `src`. Returns whether it is one that `src` can have sent: otherwise
    /// nothing has changed.
    ///
    /// # Safety
    /// `body` must be readable for `len` bytes.
    #[must_use]
    pub unsafe fn arrive(&mut self, src: Task, packet: &Part, body: *const u8, len: usize) -> bool {
        let Part { sequence, round, offset, other } = *packet;
        // A round has few senders, so that what is kept has a bound.
        let Some(at) = self.rounds.place(round, src) else { return false };
        let (first, count) = self.rounds.values(round, at);
        let end = usize::try_from(offset).ok().and_then(|from| from.checked_add(len));
        let fits = end.is_some_and(|end| end <= count * VALUE);
        if !fits || !(offset as usize).is_multiple_of(VALUE) || !len.is_multiple_of(VALUE) {
            return false;
        }
        let Some(entry) = self.entry(sequence, round) else { return true };
        entry.there |= 1 << at;
        if other != 0 {
            entry.other = other;
        }
        if len != 0 {
            let (from, values) = (first + offset as usize / VALUE, len / VALUE);
            if entry.values.len() < from + values {
                entry.values.resize(from + values, 0);
            }
            // SAFETY: the values were just made long enough; the caller vouches for the body.
            unsafe { bytes::copy(Piece { ptr: body, len }, entry.values.as_mut_ptr().add(from).cast()) };
            entry.counts[at] += values as u32;
        }
        true
    }

    /// What has arrived of a round; `None` when no operation needs it any more.
    fn entry(&mut self, sequence: u32, round: u16) -> Option<&mut Round> {
        let (now, reached) =
            self.current.as_ref().map_or((self.next, 0), |current| (current.sequence, current.round));
        let over = before(sequence, now) || sequence == now && round < reached;
        if over {
            return None;
        }
        let key = (sequence, round);
        let at = self.arrived.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            self.arrived.push((key, Round::default()));
            self.arrived.len() - 1
        });
        Some(&mut self.arrived[at].1)
    }

    /// Continues as far as what has arrived allows. When the operation is over: the values of all
    /// tasks, by task (none for a barrier), or why there are none.
    pub fn advance(
        &mut self,
        outbox: &mut Outbox,
        link: &mut impl Transmit,
    ) -> Option<Result<Vec<u64>, Failure>> {
        loop {
            let current = self.current.as_mut()?;
            if let Some(failure) = self.failed {
                self.current = None;
                // Later ones may find the task that is missing now.
                self.arrived.retain(|((sequence, _), _)| !before(*sequence, self.next));
                return Some(Err(failure));
            }
            if current.round == self.rounds.count() {
                let (other, values) = (current.other, std::mem::take(&mut current.values));
                self.current = None;
                return Some(match other {
                    Some(task) => Err(Failure { task, code: LAPI_ERR_UNKNOWN }),
                    None => Ok(self.rounds.by_task(values)),
                });
            }
            let all = self.rounds.all(current.round);
            if all != 0 {
                self.look(link);
                if !self.is_over_by_signals(all) && !self.take_round(all) {
                    let failure = self.failure()?;
                    self.fail(self.turn(), failure, outbox, link);
                    continue;
                }
            }
            let current = self.current.as_mut()?;
            (current.round, current.signalled) = (current.round + 1, 0);
            self.send_round(outbox, link);
        }
    }

    /// Looks for the signals of the present round that were not seen yet. Returns whether
    /// there are any.
    #[inline]
    pub fn look(&mut self, link: &mut impl Transmit) -> bool {
        let Some(current) = self.current.as_mut().filter(|_| self.failed.is_none()) else { return false };
        let before = current.signalled;
        for (at, &sender) in self.rounds.senders(current.round).iter().enumerate() {
            if before & 1 << at == 0 && link.signalled(sender, current.sequence) {
                current.signalled |= 1 << at;
            }
        }
        current.signalled != before
    }

    /// Whether the present round needs nothing but the signals of its senders, at these places, and
    /// all were seen.
    #[inline]
    fn is_over_by_signals(&self, all: u32) -> bool {
        let over = |current: &Current| !current.exchange && current.signalled == all;
        self.arrived.is_empty() && self.current.as_ref().is_some_and(over)
    }

    /// Takes what has arrived of the present round, if it is over: a task whose call is another
    /// one, and values. It has senders at these places.
    fn take_round(&mut self, all: u32) -> bool {
        let (rounds, Some(current)) = (&self.rounds, self.current.as_mut()) else { return false };
        let (key, exchange) = ((current.sequence, current.round), current.exchange);
        let found = self.arrived.iter().position(|(known, _)| *known == key);
        let nothing = Round::default();
        let round = found.map_or(&nothing, |at| &self.arrived[at].1);
        let values = |at| if exchange { rounds.values(key.1, at).1 } else { 0 };
        let places = 0..all.count_ones() as usize;
        if !places.clone().all(|at| current.signalled & 1 << at != 0 || round.is_complete(at, values(at))) {
            return false;
        }
        let other = match { places }.find(|&at| (round.counts[at] != 0) != exchange) {
            Some(at) => rounds.senders(key.1).get(at).copied(),
            None => round.other.checked_sub(1),
        };
        current.other = current.other.or(other);
        if rounds.replaces(key.1) {
            current.gathered = Some((key.1, std::mem::take(&mut current.values)));
        }
        if let Some(at) = found {
            current.values.extend(self.arrived.swap_remove(at).1.values);
        }
        true
    }

    /// Why the present round cannot be completed, if it cannot: one of the tasks that it awaits
    /// sends no more packets.
    fn failure(&self) -> Option<Failure> {
        if self.missing.is_empty() {
            return None;
        }
        let now = self.turn();
        let failed = |task: Task| self.missing.get(&task).filter(|(from, _)| !before(now, *from));
        self.awaited().find_map(failed).map(|(_, failure)| *failure)
    }

    /// Nothing more will arrive from `task`: operations that need it fail with `code`.
    pub fn lose(&mut self, task: Task, code: i32) {
        let now = self.turn();
        let (from, _) = self.missing.entry(task).or_insert((now, Failure { task, code }));
        if before(now, *from) {
            // It had failed in a later operation, but what it owed to this one was never sent.
            *from = now;
        }
    }

    /// `peer` has failed in operation `sequence`, and takes part in no later one.
    pub fn peer_failed(&mut self, peer: Task, sequence: u32, failure: Failure) {
        if self.may_rejoin_from.get(&failure.task).is_some_and(|&from| before(sequence, from)) {
            return;
        }
        self.missing.entry(peer).or_insert((sequence, failure));
    }

    /// `task`, which was missing, may rejoin: operations from the next one on wait for it, and for
    /// those that had failed for want of it.
    pub fn allow_rejoin(&mut self, task: Task) {
        self.missing.retain(|_, (_, failure)| failure.task != task);
        // Another process may have its place: what the former one has sent ahead counts no more.
        for ((_, round), arrived) in &mut self.arrived {
            if let Some(at) = self.rounds.place(*round, task) {
                arrived.forget(at);
            }
        }
        self.arrived.retain(|(_, arrived)| arrived.there != 0);
        if let Some(current) = &mut self.current
            && let Some(at) = self.rounds.place(current.round, task)
        {
            current.signalled &= !(1 << at);
        }
        self.failed = self.failed.filter(|failure| failure.task != task);
        self.may_rejoin_from.insert(task, self.next);
    }

    /// This task takes part in no operation from `sequence` on: notifies the tasks that would
    /// await its packets.
    #[cold]
    fn fail(&mut self, sequence: u32, failure: Failure, outbox: &mut Outbox, link: &mut impl Transmit) {
        self.failed = Some(failure);
        let head = Head::CollectiveFailed { sequence, task: failure.task, code: failure.code as u32 };
        for &peer in (0..self.rounds.count()).flat_map(|round| self.rounds.receivers(round)) {
            // SAFETY: the packet has no body.
            let sent =
                unsafe { outbox.send(link, peer, &head, Body::EMPTY, usize::MAX, SendDone::nothing(peer)) };
            if sent == Sent::NoMemory {
                outbox.note_starved(peer);
            }
        }
    }

    /// The tasks from which packets of the present round are awaited.
    pub fn awaited(&self) -> impl Iterator<Item = Task> + '_ {
        self.current.iter().flat_map(move |current| {
            let key = (current.sequence, current.round);
            let arrived = self.arrived.iter().find(|(known, _)| *known == key).map(|(_, round)| round);
            let values = move |at| if current.exchange { self.rounds.values(key.1, at).1 } else { 0 };
            let senders = self.rounds.senders(key.1).iter().copied().enumerate();
            let is_here = move |at: usize| {
                current.signalled & (1 << at) != 0
                    || arrived.is_some_and(|round| round.is_complete(at, values(at)))
            };
            senders.filter(move |&(at, _)| !is_here(at)).map(|(_, task)| task)
        })
    }

    /// Whether a task that awaits packets of this one in some round may not get them yet, since
    /// packets are parked for it. A long message to it is no reason: parked packets pass it.
    pub fn is_held_up(&self, outbox: &Outbox) -> bool {
        let mut receivers = (0..self.rounds.count()).flat_map(|round| self.rounds.receivers(round));
        receivers.any(|&peer| outbox.parked(peer) != 0)
    }

    /// Whether a packet of this task is awaited in the present round.
    pub fn awaits(&self, task: Task) -> bool {
        self.awaited().any(|awaited| awaited == task)
    }

    /// How many operations this task has entered, and the round of the one that is under way.
    pub fn entered(&self) -> (u32, Option<u16>) {
        (self.next, self.current.as_ref().map(|current| current.round))
    }

    fn send_round(&mut self, outbox: &mut Outbox, link: &mut impl Transmit) {
        let Some(current) = &self.current else { return };
        let round = current.round;
        for (at, &peer) in self.rounds.receivers(round).iter().enumerate() {
            let values = match current.exchange {
                // Where the tasks have made different calls, values are missing.
                true => &current.values[..self.rounds.sent(round, at).min(current.values.len())],
                false => &[],
            };
            current.send(round, values, peer, outbox, link);
        }
    }

    /// The connection with `peer` was made again: sends it what it was sent before in the operation
    /// that is under way.
    #[cold]
    pub fn send_again(&mut self, peer: Task, outbox: &mut Outbox, link: &mut impl Transmit) {
        let Some(current) = self.current.as_ref().filter(|_| self.failed.is_none()) else { return };
        for round in (0..self.rounds.count()).take_while(|&round| round <= current.round) {
            // A round begins with the values that are known then, which later ones follow.
            let values = match &current.gathered {
                Some((replaced, gathered)) if round <= *replaced => gathered,
                _ => &current.values,
            };
            for (at, _) in self.rounds.receivers(round).iter().enumerate().filter(|(_, to)| **to == peer) {
                let known = self.rounds.sent(round, at).min(values.len());
                let values = if current.exchange { &values[..known] } else { &[] };
                current.send(round, values, peer, outbox, link);
            }
        }
    }
}

impl Current {
    /// Tells one task that this one is in a round, by a signal or by packets with these values.
    fn send(&self, round: u16, values: &[u64], peer: Task, outbox: &mut Outbox, link: &mut impl Transmit) {
        let sequence = self.sequence;
        if !self.exchange && self.other.is_none() && link.signal(peer, sequence) {
            return;
        }
        let other = self.other.map_or(0, |task| task + 1);
        let per_packet = outbox.max_body() / VALUE;
        let mut offset = 0;
        loop {
            let part = &values[offset..values.len().min(offset + per_packet)];
            let head = Head::Collective { round, sequence, offset: (offset * VALUE) as u32, other };
            let data = Content::Piece(Piece { ptr: part.as_ptr().cast(), len: part.len() * VALUE });
            // SAFETY: the values live until the call is over, and a parked packet copies them.
            let sent = unsafe {
                outbox.send(link, peer, &head, Body::data(&data), usize::MAX, SendDone::nothing(peer))
            };
            if sent == Sent::NoMemory {
                // The peer counts parts: the others of this round must not be sent twice.
                return outbox.note_starved(peer);
            }
            offset += part.len();
            if offset >= values.len() {
                return;
            }
        }
    }
}
