//! Several transports of one task that reach the same peers: bulk data is striped over them, and
//! one that fails is replaced by the others, without a packet lost or delivered twice.
//!
//! It is built only for a job with several rails; `docs/design/0015-rails.md` explains it.
//! [`flow`] has the packets of each peer, [`agreement`] which rails both sides use,
//! [`striping`] the accesses; none of them has a clock or a socket. [`Links`] are the kernel's
//! view of the interfaces.

mod agreement;
mod endpoint;
mod failover;
mod flow;
mod peer;
mod remote;
mod striping;
mod wakeup;

use super::link_state::Links;
use super::parcel::Parcel;
use super::poll_pause::PollPause;
use super::sleeper::Sleeper;
use super::{HEAD_MAX, Inbound, Limits, MIN_BODY, Tally, Task, Transport};
use crate::abi::LAPI_ERR_CSS_LOAD_FAILED;
use crate::error::{Error, Log, Result};
use crate::wire::rails::{Keys, NOTE, RAILS};
use flow::WINDOW;
use peer::Peer;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use striping::Striping;

/// What has happened on a rail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RailEvent {
    /// A note has arrived.
    Note(Task, [u8; NOTE]),
    /// The state of the peer on this rail has changed: it has closed, or cannot be
    /// reached any more.
    Lost(Task),
    /// The process of the peer has ended.
    Ended(Task),
    /// The peer has parted from this task on all rails, and lets it rejoin with this epoch.
    Parted(Task, u64),
    /// The peer has rejoined on this rail, with this epoch, which may be none.
    Rejoined(Task, u64),
}

/// A transport that can be one of several rails.
pub trait Rail: Transport {
    /// The transport is one of several rails from now on: it names its events.
    fn become_rail(&mut self);

    /// Whether this process has taken the place of another one: the peers let it rejoin on each
    /// rail ([`super::Want::Connection`]).
    fn replaces(&self) -> bool;

    /// This task has contact with the peer, by this rail or another one: another process that has
    /// the peer's number rejoins only after this task has parted from the peer.
    fn note_contact(&mut self, peer: Task);

    /// The peer has rejoined by another rail, and this task had no contact with it before: it
    /// rejoins by this rail, too.
    fn admit(&mut self, peer: Task);

    /// Sends a note, outside of any connection: it may arrive twice, and is lost when the
    /// connection is cut. Whether there was room for it, and a way.
    fn send_note(&mut self, peer: Task, note: &[u8; NOTE]) -> bool;

    /// The next event; each is named once. An event wakes a thread that sleeps. That a peer has
    /// rejoined is an event of a rail, and no report.
    fn event(&mut self) -> Option<RailEvent>;

    /// Parts from the peer at once ([`super::Withdrawal::Connection`]) and, unless the connection
    /// has `failed` by itself, cuts it: when both sides have done that, no byte that was under way
    /// before is placed. Other connections with the peer's host may be cut, too.
    fn leave(&mut self, peer: Task, failed: bool);
}

/// How often links are looked at by a thread that does not sleep.
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Epochs with this bit are generations of a rail.
pub const OF_RAIL: u64 = 1 << 63;

/// A packet that is kept: the packet's own head and body.
struct Kept {
    kind: crate::wire::rails::RailFrameKind,
    parcel: Parcel,
}

/// The packet that was handed out.
enum Out {
    /// The packet is in place.
    Rail(usize, Inbound),
    Kept(Parcel),
}

// SAFETY: the addresses belong to the rail that has the packet, which is in the same object.
unsafe impl Send for Out {}

/// Several rails of one task.
pub struct Rails<T> {
    rails: Vec<T>,
    me: Task,
    /// This process has taken the place of another one.
    replaces: bool,
    limits: Limits,
    peers: Vec<Option<Box<Peer>>>,
    /// The rail that is asked for a packet first.
    turn: usize,
    out: Option<Out>,
    /// When all rails were polled last.
    rest: PollPause,
    /// Packets that were accepted and kept, in order.
    ready: VecDeque<Parcel>,
    /// Peers that have rejoined and were not named yet.
    back: VecDeque<(Task, u64)>,
    /// Peers for which something is to be done at some time.
    active: Vec<Task>,
    next_tick: Option<Instant>,
    /// The part of it for which a thread is to wake.
    pressing: Option<Instant>,
    start: Instant,
    links: Box<dyn Links>,
    next_look: Instant,
    /// The links that are up.
    up: u8,
    striping: Striping,
    tally: Tally,
    spare: Vec<Vec<u64>>,
    closed: bool,
    /// Watches the rails, and the links while it is armed.
    sleeper: Sleeper,
    messages: Option<LinkMessages>,
}

/// Messages about the links of the rails.
#[derive(Clone, Debug)]
pub struct LinkMessages {
    /// The names of the rails.
    pub names: Vec<String>,
    /// Where the messages go.
    pub log: Log,
}

impl<T: Rail> Rails<T> {
    /// The rails of task `me`, each of which reaches all of the `tasks` tasks. With `messages`, the
    /// failure and the return of a rail are logged.
    ///
    /// # Errors
    /// `LAPI_ERR_CSS_LOAD_FAILED`: the system has no descriptor left.
    pub fn new(
        mut rails: Vec<T>,
        me: Task,
        tasks: u32,
        links: Box<dyn Links>,
        messages: Option<LinkMessages>,
    ) -> Result<Self> {
        assert!((1..=RAILS).contains(&rails.len()), "{} rails", rails.len());
        let failed = |reason: rustix::io::Errno| {
            Error::new(LAPI_ERR_CSS_LOAD_FAILED, format!("no descriptor to wait for several rails: {reason}"))
        };
        let sleeper = Sleeper::new().map_err(failed)?;
        for rail in &mut rails {
            rail.become_rail();
            sleeper.add(rail.event_fd()).map_err(failed)?;
        }
        let some_peer = u32::from(me == 0 && tasks > 1);
        let longest = rails.iter().map(|rail| rail.limits(some_peer).max_body).min().unwrap_or_default();
        let max_body = longest - HEAD_MAX;
        assert!(
            max_body >= MIN_BODY.max(Keys::LONGEST),
            "packets of {longest} bytes are too short for a rail"
        );
        let window = WINDOW as usize;
        let limits = Limits {
            keeps_time: true,
            standing_keys: false,
            max_body,
            job_body: max_body,
            ordered: true,
            window,
            receive_buffer: window * max_body,
            ..rails[0].limits(some_peer)
        };
        let start = Instant::now();
        Ok(Self {
            me,
            replaces: rails.iter().any(Rail::replaces),
            limits,
            peers: std::iter::repeat_with(|| None).take(tasks as usize).collect(),
            turn: 0,
            out: None,
            rest: PollPause::default(),
            ready: VecDeque::new(),
            back: VecDeque::new(),
            active: Vec::new(),
            next_tick: None,
            pressing: None,
            start,
            links,
            next_look: start,
            up: u8::MAX,
            striping: Striping::new(rails.len()),
            tally: Tally::default(),
            spare: Vec::new(),
            closed: false,
            sleeper,
            messages,
            rails,
        })
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }
}

impl<T> Rails<T> {
    #[inline]
    fn peer(&self, task: Task) -> Option<&Peer> {
        self.peers.get(task as usize)?.as_deref()
    }

    #[inline]
    fn peer_mut(&mut self, task: Task) -> Option<&mut Peer> {
        self.peers.get_mut(task as usize)?.as_deref_mut()
    }
}

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
