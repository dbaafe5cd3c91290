//! What the messages of a peer make this task keep, and those of this task to itself that wait for
//! a handler to return. Messages that header handlers have refused are offered again. What is kept
//! has bounds, beyond which the peer's packets stay in its ring: the rules, and why they cannot
//! stop two tasks for ever, are in [`crate::engine::context::holds`].

use crate::base::clock::ticks;
use crate::engine::context::holds::{Hold, Level, Reason};
use crate::engine::context::incoming::{Dropped, SelfMessage};
use crate::engine::context::{Context, Core, Held};
use crate::transport::{Task, Want};

/// Messages of one peer that header handlers have refused: their number, and their bytes.
const KEPT: (u32, usize) = (1024, 4 << 20);
/// Bytes of one peer's data that came before their message.
const EARLY: usize = 4 << 20;
/// Completion handlers that wait for a thread, of all peers.
const COMPLETIONS: usize = 1024;
/// Bytes that header handlers have sent and that wait for room, at other tasks than the one whose
/// messages run these handlers.
const FORWARDED: usize = 4 << 20;
/// With more bytes than this waiting for room, an inline completion handler that sends
/// (LAPI_SEND_REPLY) gets no send token: a completion thread runs it, where its calls can
/// be slowed down.
const TOKEN: usize = 256 << 10;

impl Core {
    /// How many messages are kept, if they are to be offered again now; otherwise 0.
    pub fn kept_to_offer(&self) -> usize {
        if self.kept.is_empty() || !self.kept.is_due(ticks()) { 0 } else { self.kept.len() }
    }

    /// A message to oneself waits until a handler has returned.
    pub fn queue_to_self(&mut self, message: SelfMessage) {
        self.to_self.push_back(message);
    }

    /// Takes one of those.
    pub fn next_to_self(&mut self) -> Option<SelfMessage> {
        let first = self.to_self.pop_front()?;
        self.taken_to_self += 1;
        Some(first)
    }

    /// How many have been queued so far.
    pub fn queued_to_self(&self) -> u64 {
        self.taken_to_self + self.to_self.len() as u64
    }

    /// How many of those were taken.
    pub fn taken_to_self(&self) -> u64 {
        self.taken_to_self
    }

    /// How many of them there are.
    pub fn to_self(&self) -> usize {
        self.to_self.len()
    }

    /// Takes out the message that was kept or offered for longest.
    pub fn next_kept(&mut self) -> Option<Dropped> {
        let dropped = self.kept.take_first()?;
        self.membership.unkeep(dropped.message.src, dropped.bytes());
        Some(dropped)
    }

    /// Some of `waiting` messages were offered. Returns whether one was accepted.
    pub fn note_kept_offered(&mut self, waiting: usize) -> bool {
        let accepted = self.kept.len() < waiting;
        self.kept.note_offer(ticks(), accepted);
        accepted
    }

    /// Forgets the messages of `peer`.
    pub fn forget_kept(&mut self, peer: Task) {
        self.kept.forget(peer);
        self.membership.unkeep_all(peer);
    }

    /// Whether messages are kept.
    #[inline]
    pub fn keeps_messages(&self) -> bool {
        !self.kept.is_empty()
    }

    /// The number of the message of this task to itself that was the last to be kept first.
    pub fn last_own_kept(&self) -> u64 {
        self.kept.last_own()
    }

    /// Whether messages of this task to itself are kept, of those up to this number.
    #[inline]
    pub fn keeps_own_messages(&self, last: u64) -> bool {
        self.kept.has_own(last)
    }

    /// The sender of each message that is kept.
    pub fn senders_of_kept(&self) -> impl Iterator<Item = Task> {
        self.kept.senders()
    }
}

/// Keeps a message that a header handler has refused.
pub fn keep(core: &mut Core, dropped: Dropped) {
    let src = dropped.message.src;
    core.membership.keep(src, dropped.bytes());
    core.kept.keep(dropped);
    core.defer();
    kept(core, src);
}

/// A message of `peer` was refused and is kept; or its data is, because its beginning is
/// not known yet.
#[cold]
pub fn kept(core: &mut Core, peer: Task) {
    let (count, bytes) = core.membership.kept(peer);
    if count > KEPT.0 || bytes > KEPT.1 {
        grown(core, peer, Reason::Kept, kept_progress(count, bytes));
    }
    let early = core.inbox.early_bytes(peer);
    if early > EARLY {
        grown(core, peer, Reason::Early, early as u64);
    }
}

/// A completion handler was queued for a message of `peer`; now `queued` of them wait.
#[inline]
pub fn queued(held: &mut Held<'_>, peer: Task, queued: usize) {
    if queued > COMPLETIONS {
        let returned = held.context().completions.returned();
        grown(held.core(), peer, Reason::Completions, returned);
    }
}

/// A header handler has run for a message of `peer`, and may have sent something.
#[inline]
pub fn handled(core: &mut Core, peer: Task) {
    if core.outbox.waiting() && core.outbox.forwarded_beside(peer) > FORWARDED {
        let progress = core.outbox.pumped();
        grown(core, peer, Reason::Forwarded, progress);
    }
}

/// Whether an inline completion handler may send now: it gets a send token.
pub fn has_send_token(core: &Core) -> bool {
    core.outbox.bytes_in_all() <= TOKEN
}

/// Nothing is held back of `peer` any more.
pub fn release(core: &mut Core, peer: Task) {
    if core.holds.forget(peer) {
        core.transport.want(Want::Hold(peer, false));
    }
}

/// Nothing is held back of this peer from now on, but of any other; `None`: of none.
pub fn drain(core: &mut Core, peer: Option<Task>) {
    if let Some(peer) = peer {
        release(core, peer);
    }
    core.holds.drain(peer);
}

/// Nothing is held back of any peer any more: the context is closing, and serves what has arrived.
pub fn release_all(core: &mut Core) {
    let released = core.holds.end();
    released.into_iter().for_each(|peer| core.transport.want(Want::Hold(peer, false)));
}

/// Releases and lifts what is to be released and lifted.
pub fn balance(held: &mut Held<'_>) {
    if held.core().holds.is_empty() {
        return;
    }
    let context = held.context();
    let core = held.core();
    let mut holds = std::mem::take(&mut core.holds);
    let released = holds.look(ticks(), |hold| level(context, core, hold));
    core.holds = holds;
    released.into_iter().for_each(|peer| core.transport.want(Want::Hold(peer, false)));
}

fn level(context: &Context, core: &Core, hold: &Hold) -> Level {
    match hold.reason {
        Reason::Kept => {
            let (count, bytes) = core.membership.kept(hold.peer);
            let high = count > KEPT.0 / 2 || bytes > KEPT.1 / 2;
            Level { high, progress: kept_progress(count, bytes), blocked: false }
        }
        Reason::Early => {
            let early = core.inbox.early_bytes(hold.peer);
            Level { high: early > EARLY / 2, progress: early as u64, blocked: false }
        }
        Reason::Completions => {
            let (queued, running) = context.completions.load();
            // Every handler that runs waits in a call of LAPI: for packets that may be in the ring
            // of this same peer.
            let blocked = running != 0 && core.waiters.in_handlers() >= running;
            Level { high: queued > COMPLETIONS / 2, progress: context.completions.returned(), blocked }
        }
        Reason::Forwarded => {
            // What waits for the peer itself does not count: only its own calls can make room for
            // that. Nor does what the program's calls have sent: they pause.
            let high = core.outbox.forwarded_beside(hold.peer) > FORWARDED / 2;
            Level { high, progress: core.outbox.pumped(), blocked: false }
        }
    }
}

fn kept_progress(count: u32, bytes: usize) -> u64 {
    u64::from(count) << 40 ^ bytes as u64
}

#[cold]
fn grown(core: &mut Core, peer: Task, reason: Reason, progress: u64) {
    if peer == core.options.me {
        return;
    }
    core.defer();
    if core.holds.grown(peer, reason, progress, ticks()) {
        core.transport.want(Want::Hold(peer, true));
    }
}
