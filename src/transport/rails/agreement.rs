//! Which rails two tasks use: each of them notices failures by itself, and they agree by notes that
//! may be lost. Without a clock or a socket.
//!
//! A rail is left by both before it is joined again, and each time it is joined it has the next
//! generation. See `docs/design/0015-rails.md`.

use crate::wire::rails::{RAILS, RailState};
use std::time::Duration;

/// How long joining may take. A rail that is slower is left again.
const JOIN: Duration = Duration::from_secs(2);

/// How long a rail that has failed rests, at first and at most.
const REST: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];

/// The time between two notes about the same, at first and at most.
const REPEAT: [Duration; 2] = [Duration::from_millis(20), Duration::from_secs(1)];

/// Generations are counted modulo 2^30.
const MODULUS: u32 = 1 << 30;

/// What is to be done with a rail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Part from the peer there, and cut the connection.
    Leave(usize),
    /// Let the peer rejoin there, with this generation.
    Join(usize, u32),
}

/// Why a rail is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The link is down.
    Link,
    /// The provider has failed.
    Failure,
    /// Joining took too long.
    Slow,
    /// The peer has left it.
    Peer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Live,
    Joining { since: Duration },
    Left { why: Why, since: Duration },
}

#[derive(Clone, Copy, Debug)]
struct Rail {
    generation: u32,
    phase: Phase,
    /// What the peer's last note said.
    theirs: (u32, RailState),
    rest: Duration,
}

/// The rails between this task and one peer.
#[derive(Clone, Debug)]
pub(super) struct Agreement {
    rails: [Rail; RAILS],
    count: usize,
    /// Joining may take any time: the peer itself has not rejoined yet.
    patient: bool,
    /// When the last note was sent, and when the next one follows without a change.
    repeat: Duration,
    last_note: Option<Duration>,
}

impl Agreement {
    /// `count` rails that are all in use, or are being joined with the peer itself.
    pub(super) fn new(count: usize, live: bool, now: Duration) -> Self {
        let phase = if live { Phase::Live } else { Phase::Joining { since: now } };
        let rail = Rail { generation: 0, phase, theirs: (0, RailState::Live), rest: REST[0] };
        Self { rails: [rail; RAILS], count, patient: !live, repeat: REPEAT[0], last_note: Some(now) }
    }

    fn own(&self) -> &[Rail] {
        &self.rails[..self.count]
    }

    /// Whether packets may go over the rail.
    #[inline]
    pub(super) fn is_live(&self, rail: usize) -> bool {
        self.rails[rail].phase == Phase::Live
    }

    /// The first live rail, from this one on.
    #[inline]
    pub(super) fn live_from(&self, first: usize) -> Option<usize> {
        let order = (first..self.count).chain(0..first);
        order.into_iter().find(|&rail| self.is_live(rail))
    }

    /// Whether the rail is being joined with the peer itself.
    pub(super) fn is_joining_first(&self, rail: usize) -> bool {
        let Rail { generation, phase, .. } = self.rails[rail];
        generation == 0 && matches!(phase, Phase::Joining { .. })
    }

    /// How often the rail was joined.
    #[inline]
    pub(super) fn generation(&self, rail: usize) -> u32 {
        self.rails[rail].generation
    }

    /// Whether the rail was left because its provider has failed.
    pub(super) fn has_rail_failed(&self, rail: usize) -> bool {
        matches!(self.rails[rail].phase, Phase::Left { why: Why::Failure, .. })
    }

    /// Whether all rails have failed, and that not by their links.
    pub(super) fn has_failed(&self) -> bool {
        (0..self.count).all(|rail| self.has_rail_failed(rail))
    }

    /// Whether both have left this generation of the rail.
    pub(super) fn is_cut(&self, rail: usize, generation: u32) -> bool {
        let Rail { generation: own, phase, theirs, .. } = self.rails[rail];
        let left = matches!(phase, Phase::Left { .. });
        let behind = own.wrapping_sub(generation) % MODULUS;
        behind != 0 && behind < MODULUS / 2 || left && own == generation && has_left(theirs, generation)
    }

    /// What this task says of its rails. `up` has the links that are up.
    pub(super) fn standings(&self, up: u8) -> [(u32, RailState); RAILS] {
        std::array::from_fn(|at| {
            let rail = &self.rails[at];
            let standing = match rail.phase {
                Phase::Live => RailState::Live,
                Phase::Joining { .. } => RailState::Joining,
                Phase::Left { .. } if up & 1 << at != 0 => RailState::Ready,
                Phase::Left { .. } => RailState::Left,
            };
            (rail.generation, standing)
        })
    }

    /// A rail does not work any more. Whether it is to be left now.
    pub(super) fn fail(&mut self, at: usize, why: Why, now: Duration) -> bool {
        let rail = &mut self.rails[at];
        if let Phase::Left { why: before, .. } = &mut rail.phase {
            // A link that is down explains the failure.
            if why == Why::Link {
                *before = why;
            }
            return false;
        }
        rail.phase = Phase::Left { why, since: now };
        if matches!(why, Why::Failure | Why::Slow) {
            rail.rest = (rail.rest * 2).min(REST[1]);
        }
        self.changed();
        true
    }

    /// The peer has joined this generation, too.
    pub(super) fn joined(&mut self, at: usize, generation: u32) {
        let rail = &mut self.rails[at];
        if matches!(rail.phase, Phase::Joining { .. }) && rail.generation == generation {
            rail.phase = Phase::Live;
            rail.rest = REST[0];
            self.changed();
        }
    }

    /// The peer itself has rejoined on one rail: joining the others has a limit from now on.
    pub(super) fn met(&mut self, now: Duration) {
        if std::mem::take(&mut self.patient) {
            for rail in &mut self.rails {
                if let Phase::Joining { since } = &mut rail.phase {
                    *since = now;
                }
            }
        }
    }

    /// A note of the peer's has arrived: what is to be done, and whether the peer is to
    /// be sent a note.
    pub(super) fn note(
        &mut self,
        theirs: &[(u32, RailState); RAILS],
        now: Duration,
        mut act: impl FnMut(Action),
    ) -> bool {
        let mut reply = false;
        for (at, (rail, said)) in self.rails.iter_mut().zip(theirs).enumerate().take(self.count) {
            let (generation, standing) = *said;
            let ahead = generation.wrapping_sub(rail.generation) % MODULUS;
            if ahead >= MODULUS / 2 {
                // A note of before, or it has not gone as far as this task.
                continue;
            }
            rail.theirs = *said;
            let left = matches!(standing, RailState::Left | RailState::Ready);
            let own_left = matches!(rail.phase, Phase::Left { .. });
            let behind = ahead != 0 && (left || !own_left);
            if behind || left && !own_left {
                if !own_left {
                    act(Action::Leave(at));
                }
                // The generations between were joined without this task, which has left all of
                // them therefore.
                rail.generation = if left { generation } else { generation.wrapping_sub(1) % MODULUS };
                let why = match rail.phase {
                    Phase::Left { why: Why::Link, .. } => Why::Link,
                    _ => Why::Peer,
                };
                rail.phase = Phase::Left { why, since: now };
                (self.repeat, self.last_note) = (REPEAT[0], None);
                reply = true;
            } else if !left && ahead == 0 && own_left {
                // It has not noticed.
                reply = true;
            }
        }
        reply
    }

    /// What is to be done now. `up` has the links that are up.
    pub(super) fn tick(&mut self, up: u8, now: Duration, mut act: impl FnMut(Action)) {
        for at in 0..self.count {
            let is_up = up & 1 << at != 0;
            let rail = &mut self.rails[at];
            let failure = match rail.phase {
                Phase::Live | Phase::Joining { .. } if !is_up => Some(Why::Link),
                Phase::Joining { since } if !self.patient && now.saturating_sub(since) > JOIN => {
                    Some(Why::Slow)
                }
                Phase::Left { .. } if is_up && rail.may_join() && rail.has_rested(now) => {
                    rail.generation = (rail.generation + 1) % MODULUS;
                    rail.phase = Phase::Joining { since: now };
                    act(Action::Join(at, rail.generation));
                    self.changed();
                    None
                }
                _ => None,
            };
            if failure.is_some_and(|why| self.fail(at, why, now)) {
                act(Action::Leave(at));
            }
        }
    }

    /// A link has changed: the peer is to know of it.
    pub(super) fn changed(&mut self) {
        (self.repeat, self.last_note) = (REPEAT[0], None);
    }

    /// When [`Self::tick`] must be called next.
    pub(super) fn tick_due(&self, up: u8) -> Option<Duration> {
        let due = |(at, rail): (usize, &Rail)| match rail.phase {
            Phase::Joining { since } => (!self.patient).then_some(since + JOIN),
            Phase::Left { .. } if up & 1 << at != 0 && rail.may_join() => rail.rested(),
            _ => None,
        };
        self.own().iter().enumerate().filter_map(due).min()
    }

    /// When a note is to be sent, if one is.
    pub(super) fn note_due(&self, up: u8) -> Option<Duration> {
        let Some(last) = self.last_note else { return Some(Duration::ZERO) };
        let waits = |(at, rail): (usize, &Rail)| match rail.phase {
            Phase::Live => false,
            Phase::Joining { .. } => !self.patient,
            Phase::Left { .. } => up & 1 << at != 0 || !has_left(rail.theirs, rail.generation),
        };
        self.own().iter().enumerate().any(waits).then(|| last + self.repeat)
    }

    /// A note was sent.
    pub(super) fn noted(&mut self, now: Duration) {
        if self.last_note.is_some() {
            self.repeat = (self.repeat * 2).min(REPEAT[1]);
        }
        self.last_note = Some(now);
    }
}

impl Rail {
    /// When it has rested, after it was left. A rail whose link has returned need not.
    fn rested(&self) -> Option<Duration> {
        match self.phase {
            Phase::Left { why: Why::Failure | Why::Slow, since } => Some(since + self.rest),
            Phase::Left { since, .. } => Some(since),
            Phase::Live | Phase::Joining { .. } => None,
        }
    }

    fn has_rested(&self, now: Duration) -> bool {
        self.rested().is_some_and(|rested| rested <= now)
    }

    /// Whether the peer has left this generation and can join, or joins the next one already.
    fn may_join(&self) -> bool {
        let (generation, standing) = self.theirs;
        match generation.wrapping_sub(self.generation) % MODULUS {
            0 => standing == RailState::Ready,
            1 => matches!(standing, RailState::Joining | RailState::Live),
            _ => false,
        }
    }
}

/// Whether this is said by a task that has left the generation.
fn has_left((generation, standing): (u32, RailState), of: u32) -> bool {
    match generation.wrapping_sub(of) % MODULUS {
        0 => matches!(standing, RailState::Left | RailState::Ready),
        ahead => ahead < MODULUS / 2,
    }
}
