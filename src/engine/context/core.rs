//! What a context's lock guards. A thread of the engine that holds the lock reaches it
//! by `Held::core`. The modules of this folder alone see what no other part of the engine uses.

pub mod flow;
pub(super) mod queries;
pub(super) mod rdma;
mod results;

use crate::abi::{ddm_func_p, lapi_msg_state_t};
use crate::base::clock::{now, ticks};
use crate::engine::context::addresses::Addresses;
use crate::engine::context::core::rdma::Rdma;
use crate::engine::context::core::results::Reporters;
use crate::engine::context::counter_status::Watched;
use crate::engine::context::direct_copies::DirectCopies;
use crate::engine::context::failure::LossReports;
use crate::engine::context::holds::Holds;
use crate::engine::context::incoming::{Kept, SelfMessage, Then};
use crate::engine::context::membership::Membership;
use crate::engine::context::one_sided::OneSided;
use crate::engine::context::partings::Partings;
use crate::engine::context::settings::Options;
use crate::engine::context::statistics::{Path, Stats};
use crate::engine::context::waiters::Waiters;
use crate::job::Hosts;
use crate::memory::counter;
use crate::proto::Transmit;
use crate::proto::collective::{Collectives, Failure};
use crate::proto::inbox::Inbox;
use crate::proto::ops::Ops;
use crate::proto::outbox::{Outbox, SendDone};
use crate::transport::{AnyTransport, Look, Outgoing, PeerState, Reach, SendOutcome, Task, Transport, Want};
use std::collections::VecDeque;
use std::time::Duration;

/// What the lock guards. The fields of all of `engine` are written beside one that is borrowed, as
/// the transport is while a packet stands in a peer's door: a method would borrow all of it.
pub struct Core {
    /// See [`Options`].
    pub(in crate::engine) options: Options,
    /// The transport to other tasks.
    pub(in crate::engine) transport: AnyTransport,
    /// Messages on their way out.
    pub(in crate::engine) outbox: Outbox,
    /// Messages on their way in.
    pub(in crate::engine) inbox: Inbox<Then>,
    /// See [`Core::count_short_to_self`].
    short_to_self: u64,
    /// Operations that wait for a reply.
    pub(in crate::engine) ops: Ops,
    /// The peers that report packets through their doors, while such reports are awaited.
    pub(in crate::engine) door_reporters: Reporters,
    /// Barrier and exchange.
    pub(in crate::engine) collectives: Collectives,
    /// The result of the last collective operation, when it is complete.
    collected: Option<std::result::Result<Vec<u64>, Failure>>,
    /// Whether a thread is in a collective operation.
    collective_turn: bool,
    /// Copies across address spaces.
    pub(in crate::engine) copies: DirectCopies,
    /// Puts that this task makes alone.
    pub(in crate::engine) one_sided: OneSided,
    /// Packets may wait in the transport for others: see [`Core::flush`].
    held: bool,
    /// The transport has deadlines: see [`crate::transport::Endpoint::due`].
    keeps_time: bool,
    /// Messages to oneself that a handler has sent.
    to_self: VecDeque<SelfMessage>,
    /// How many of these were taken.
    taken_to_self: u64,
    /// Messages that a header handler has refused for now.
    kept: Kept,
    /// The peers from which no packets are taken because of what their messages make
    /// this task keep.
    holds: Holds,
    /// There may be messages that are kept, or holds: see [`Core::has_deferred`].
    deferred: bool,
    /// Send operations that are done, to be reported.
    done_sends: Vec<SendDone>,
    /// Functions registered by LAPI_Addr_set.
    addresses: Addresses,
    /// Completions that LAPI_Msgpoll has not reported yet.
    pub(in crate::engine) msgpoll_state: lapi_msg_state_t,
    /// See [`Life`].
    life: Life,
    /// A failure of bulk transfer was reported.
    bulk_failure_reported: bool,
    /// Which threads wait, and how.
    pub(in crate::engine) waiters: Waiters,
    /// The function that CONTROL calls (LAPI_REG_DDM_FUNC).
    ddm: ddm_func_p,
    /// What is known of each peer.
    pub(in crate::engine) membership: Membership,
    /// Reports of lost peers that are under way.
    pub(in crate::engine) loss_reports: LossReports,
    /// The partings of tasks that prepare a checkpoint.
    pub(in crate::engine) partings: Partings,
    /// Counters with a list of tasks, completions after which a handler is called, and the threads
    /// that wait for counters without polling.
    pub(in crate::engine) watched: Watched,
    /// What the program has registered and holds for RDMA transfers.
    rdma: Rdma,
    /// The statistics.
    pub(in crate::engine) stats: Stats,
}

/// How far a context is on the way to its end.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Life {
    Open,
    /// The program has called LAPI_Term: what a peer does not take any more because it has ended
    /// LAPI itself is no error.
    Ending,
    /// The session has ended by a failure, and was not closed yet.
    Failed,
    /// The handle is being ended, or has been.
    Closing,
}

/// The way out for packets: the transport, counted.
pub struct Wire<'a> {
    transport: &'a mut dyn Transport,
    stats: &'a mut Stats,
    hosts: &'a Hosts,
    held: &'a mut bool,
    membership: &'a Membership,
}

impl Transmit for Wire<'_> {
    #[inline(always)]
    unsafe fn send(&mut self, peer: Task, packet: &Outgoing<'_>) -> SendOutcome {
        if self.membership.is_held(peer) {
            return SendOutcome::NoRoom;
        }
        // SAFETY: the caller's promise.
        let sent = unsafe { self.transport.try_send(peer, packet) };
        self.stats.path(self.hosts, peer).packets_sent += u64::from(sent.accepted().is_ok());
        *self.held |= sent == SendOutcome::Held;
        sent
    }

    fn signal(&mut self, peer: Task, number: u32) -> bool {
        !self.membership.is_down(peer)
            && !self.membership.is_held(peer)
            && self.transport.door(peer).is_some_and(|door| door.signal(number))
    }

    /// Nothing counts of a peer that was given up.
    fn signalled(&mut self, peer: Task, number: u32) -> bool {
        !self.membership.is_quarantined(peer)
            && self.transport.door(peer).is_some_and(|door| door.signalled(number))
    }
}

impl Core {
    /// A core that moves nothing yet.
    pub fn new(options: Options, transport: AnyTransport) -> Self {
        let (me, tasks) = (options.me, options.tasks);
        // A message that is one packet is one between any two tasks of the job, too; long ones are
        // cut for their peer. A job of one task sends none.
        let others = (0..tasks).filter(|&peer| peer != me || tasks == 1);
        let limits = others.map(|peer| transport.limits(peer));
        let shortest = limits.clone().map(|limits| limits.job_body).min().unwrap_or(0);
        let keeps_time = limits.clone().any(|limits| limits.keeps_time);
        let acts_alone = limits.clone().any(|limits| limits.standing_keys);
        let longest = limits.map(|limits| limits.max_body).max().unwrap_or(0);
        let mut outbox = Outbox::new(tasks, shortest);
        if longest > shortest {
            let body = |peer| if peer == me { shortest } else { transport.limits(peer).max_body };
            outbox.set_bodies((0..tasks).map(|peer| body(peer) as u32).collect());
        }
        outbox.limit_buffers(options.buffers);
        Self {
            outbox,
            inbox: Inbox::new(tasks),
            short_to_self: 0,
            ops: Ops::new(256),
            door_reporters: Reporters::default(),
            collectives: Collectives::new(me, tasks, options.hosts.placement()),
            collected: None,
            collective_turn: false,
            copies: DirectCopies::default(),
            one_sided: OneSided::new(acts_alone),
            held: false,
            keeps_time,
            to_self: VecDeque::new(),
            taken_to_self: 0,
            kept: Kept::default(),
            holds: Holds::default(),
            deferred: false,
            done_sends: Vec::with_capacity(64),
            addresses: Addresses::new(),
            msgpoll_state: 0,
            life: Life::Open,
            bulk_failure_reported: false,
            waiters: Waiters::default(),
            ddm: None,
            membership: Membership::new(tasks, options.replaces),
            loss_reports: LossReports::default(),
            partings: Partings::default(),
            watched: Watched::default(),
            rdma: Rdma::default(),
            stats: Stats::default(),
            options,
            transport,
        }
    }

    /// The session ends by a failure: its owner decides what follows.
    #[cold]
    pub fn end(&mut self) {
        self.life = self.life.max(Life::Failed);
        self.waiters.note_news();
        self.options.events.fatal();
    }

    /// There is no memory for a packet that the peer waits for: the session ends.
    #[cold]
    pub fn end_without_memory(&mut self, peer: Task) {
        let log = &self.options.log;
        log.line(format_args!("no memory for a packet that task {peer} waits for: this task ends"));
        self.end();
    }

    /// The program has called LAPI_Term.
    pub fn begin_ending(&mut self) {
        self.life = self.life.max(Life::Ending);
    }

    /// Whether it has.
    pub fn is_ending(&self) -> bool {
        self.life >= Life::Ending
    }

    /// Whether the handle is being ended, or has been, or the session has ended by a failure.
    #[inline]
    pub fn is_closing(&self) -> bool {
        self.life >= Life::Failed
    }

    /// Whether the session has ended by a failure, and was not closed yet.
    pub fn has_failed(&self) -> bool {
        self.life == Life::Failed
    }

    /// The calling thread ends the handle. `false`: another one does, or has.
    pub fn begin_closing(&mut self) -> bool {
        std::mem::replace(&mut self.life, Life::Closing) != Life::Closing
    }

    /// Whether packets may wait in the transport for others.
    #[inline]
    pub fn is_holding_back(&self) -> bool {
        self.held
    }

    /// Whether the transport has deadlines.
    #[inline]
    pub fn keeps_time(&self) -> bool {
        self.keeps_time
    }

    /// A message to this task goes the short way. Returns how many have.
    #[inline(always)]
    pub fn count_short_to_self(&mut self) -> u64 {
        self.short_to_self += 1;
        self.short_to_self
    }

    /// The function that a message names, by its index or by its address.
    #[inline(always)]
    pub fn resolve_function(&self, named: u64) -> usize {
        self.addresses.resolve(named)
    }

    /// Whether a fence has nothing to wait for.
    pub fn has_nothing_under_way(&self) -> bool {
        let nothing_here = self.ops.is_empty() && self.copies.is_empty() && !self.one_sided.are_active();
        let nothing_kept = self.to_self.is_empty() && !self.kept.has_own(u64::MAX);
        nothing_here && nothing_kept && self.outbox.is_fenced() && self.loss_reports.are_made()
    }

    /// A thread begins a collective operation. `false`: another one is in such a call.
    pub fn begin_collective(&mut self) -> bool {
        !std::mem::replace(&mut self.collective_turn, true)
    }

    /// The call that has begun it returns.
    pub fn end_collective(&mut self) {
        self.collective_turn = false;
    }

    /// Takes the result of the collective operation, when it is complete.
    pub fn take_collected(&mut self) -> Option<std::result::Result<Vec<u64>, Failure>> {
        self.collected.take()
    }

    /// The outbox and its way out.
    #[inline]
    pub fn out(&mut self) -> (&mut Outbox, Wire<'_>) {
        let (_, outbox, wire) = self.collective();
        (outbox, wire)
    }

    /// The collective operations, the outbox and its way out.
    #[inline]
    pub fn collective(&mut self) -> (&mut Collectives, &mut Outbox, Wire<'_>) {
        let wire = Wire {
            transport: &mut *self.transport,
            stats: &mut self.stats,
            hosts: &self.options.hosts,
            held: &mut self.held,
            membership: &self.membership,
        };
        (&mut self.collectives, &mut self.outbox, wire)
    }

    /// Advances the collective operation, if one is under way. To be called after anything else
    /// that sends packets of it.
    pub fn advance_collective(&mut self) {
        let (collectives, outbox, mut wire) = self.collective();
        if let Some(outcome) = collectives.advance(outbox, &mut wire) {
            self.collected = Some(outcome);
        }
        if let Some(peer) = self.outbox.take_starved() {
            self.end_without_memory(peer);
        }
    }

    /// Sends what waits in the transport for other packets.
    #[inline]
    pub fn flush(&mut self) {
        if self.held {
            self.held = false;
            self.transport.want(Want::Flush);
        }
    }

    /// The statistics of the path to and from `peer`, another task.
    #[inline]
    pub fn path_to(&mut self, peer: Task) -> &mut Path {
        self.stats.path(&self.options.hosts, peer)
    }

    /// Adds one to a counter of the program, 0 for none, for something that came from `by` or
    /// was done there.
    ///
    /// # Safety
    /// `cntr` must be 0, the address of a counter of the program, or what [`Watched::handle`] has
    /// returned.
    #[inline]
    pub unsafe fn raise(&mut self, cntr: usize, by: Task) {
        // SAFETY: the caller's promise; the number of a completion with a handler exists only
        // while such completions are watched.
        unsafe { if self.watched.is_empty() { counter::bump(cntr) } else { self.raise_watched(cntr, by) } }
    }

    /// [`Self::raise`] while something is watched.
    ///
    /// # Safety
    /// As there.
    #[cold]
    unsafe fn raise_watched(&mut self, cntr: usize, by: Task) {
        let handled = self.watched.take_handled(cntr);
        let cntr = handled.as_ref().map_or(cntr, |handled| handled.cntr);
        // SAFETY: the program's counter, or 0.
        unsafe { counter::bump(cntr) };
        self.watched.raised(cntr, by);
        self.done_sends.extend(handled.map(|handled| handled.done()));
    }

    /// A thread of the program polls from now on, or has polled until now.
    #[inline]
    pub fn set_polling(&mut self, polling: bool) {
        let now = ticks();
        self.waiters.last_poll = now;
        self.transport.want(Want::Polling(polling, now));
    }

    /// A thread copies many bytes in LAPI. Peers may send streams of packets: it looks for them
    /// again before long.
    pub fn note_copying(&mut self) {
        if self.waiters.waiting() == 0 {
            self.set_polling(false);
        }
    }

    /// Makes a copy across address spaces in a call of this thread. Peers may send streams of
    /// packets meanwhile, however long it takes: it looks for them right after it. A peer that
    /// learned only afterwards would copy its reply in the same way, and so on.
    pub fn while_copying<R>(&mut self, copy: impl FnOnce(&mut Self) -> R) -> R {
        if self.waiters.waiting() != 0 {
            return copy(self);
        }
        self.set_polling(true);
        let made = copy(self);
        self.set_polling(false);
        made
    }

    /// How the memory of `peer` can be read and written without its help.
    pub fn reach(&mut self, peer: Task) -> Reach {
        if self.membership.is_held(peer) { Reach::None } else { self.transport.reach(peer) }
    }

    /// How often a peer was purged.
    #[inline]
    pub fn incarnation(&self, peer: Task) -> u32 {
        self.membership.incarnation(peer)
    }

    /// Whether there is work that no packet announces: then no thread may sleep for long.
    #[inline]
    pub fn has_deferred(&self) -> bool {
        self.deferred
    }

    /// There is work that no packet announces.
    pub fn defer(&mut self) {
        self.deferred = true;
    }

    /// Such work was done as far as it can be.
    pub fn note_deferred(&mut self) {
        self.deferred = !self.kept.is_empty() || !self.holds.is_empty() || self.partings.is_any_wanted();
    }

    /// A failure of bulk transfer is to be reported, if it is the first one.
    pub fn reports_bulk_failure(&mut self) -> bool {
        !std::mem::replace(&mut self.bulk_failure_reported, true)
    }

    /// Whether something waits for a task that is to rejoin.
    pub fn has_traffic_for_rejoining(&self) -> bool {
        self.membership.rejoining().iter().any(|&task| self.outbox.waits(task))
    }

    /// How long a thread may sleep at most, and for at most `limit`, until the transport
    /// must be served.
    pub fn until_due(&self, limit: Duration) -> Duration {
        let due = if self.keeps_time { self.transport.due() } else { None };
        due.map_or(limit, |due| due.saturating_duration_since(now()).min(limit))
    }

    /// Whether there is work to be done at once.
    #[inline]
    pub fn has_ready_work(&self) -> bool {
        self.copies.are_ready()
            || !self.to_self.is_empty()
            || !self.done_sends.is_empty()
            || self.one_sided.have_ended()
    }

    /// Whether there is work, to be done at once or when the transport has reported a
    /// remote access.
    #[inline]
    pub fn has_work(&self) -> bool {
        !self.copies.is_empty() || !self.to_self.is_empty() || !self.done_sends.is_empty()
    }

    /// Whether a round of the dispatcher would do nothing now. In a collective operation it
    /// looks for signals.
    #[inline]
    pub fn is_idle(&mut self) -> bool {
        !self.awaits_more_than_packets() && !self.collectives.busy() && self.has_received_nothing()
    }

    /// Whether neither a packet nor a report through a door has come.
    #[inline]
    pub fn has_received_nothing(&mut self) -> bool {
        self.transport.look(Look::All).is_nothing() && (!self.awaits_reports() || !self.has_report())
    }

    /// Whether a round of the dispatcher has something to do, or to look at, when no
    /// packet has arrived.
    #[inline]
    pub fn awaits_more_than_packets(&self) -> bool {
        self.outbox.waiting() || self.has_work() || self.has_deferred() || self.one_sided.are_possible()
    }

    /// Whether the transport still needs this task for what was sent: messages, their reports,
    /// acknowledgements; or a peer does, which was asked for more parts of a message, or is to hear
    /// of what was done in its memory. One that has left sends none.
    pub fn is_sending(&self) -> bool {
        let mut awaiting = self.copies.awaiting_parts();
        self.outbox.waiting()
            || self.has_work()
            || self.transport.tally().outstanding != 0
            || self.one_sided.are_active()
            || awaiting.any(|copy| self.transport.standing(copy.peer).state == PeerState::Up)
    }
}
