//! Peers that have left or are silent: what waits for them ends, and the program gets one report.
//! And peers that have parted from this task, with which it is to connect again.
//!
//! The peers that this task waits for are counted where operations begin and end, so a check costs
//! one system call for each such peer. A thread that was woken by a packet checks only when the
//! last check is some tenths of a second ago.

use crate::abi::{INT_ERR, LAPI_ERR_NO_CONNECTIVITY, LAPI_ERR_TIMEOUT, TMR_ERR, lapi_err_t};
use crate::base::clock::{moment, since};
use crate::engine::context::core::flow;
use crate::engine::context::partings::Stage;
use crate::engine::context::{Core, Held};
use crate::engine::progress::dispatcher::turn;
use crate::engine::progress::parting::{abandon, let_rejoin, put_off};
use crate::engine::progress::reports;
use crate::engine::transfer::send::send_control;
use crate::error::Error;
use crate::proto::liveness::Verdict;
use crate::proto::ops::Op;
use crate::transport::{HAS_PURGED, NO_EPOCH, PeerState, Task, Want, Withdrawal};
use crate::wire::packet::Head;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How many rounds for each task of the job are enough to receive what one peer can have left in
/// its ring, whatever the others send.
const DRAIN: u32 = 100;
/// A job often ends with a few last messages that no task waits for, and with tasks that end
/// one after the other, each from several threads. So it is an error that a peer has ended
/// LAPI while something was under way to it only when this task has not ended LAPI itself this
/// long afterwards.
const LEAVE: Duration = Duration::from_secs(1);

/// [`look_after_peers`], unless that was done a moment ago: for threads that never sleep.
#[cold]
pub fn look_when_due(held: &mut Held<'_>) {
    if held.core().membership.look_is_due() {
        look_after_peers(held);
    }
}

/// Ends what waits for peers that have left (they died, or ended LAPI while they owed a reply), and
/// for those that have been silent for TIMEOUT seconds; probes those that have been silent for a
/// while. Makes a system call for each peer that this task waits for: for threads that have slept
/// until a timeout.
#[cold]
pub fn look_after_peers(held: &mut Held<'_>) {
    let core = held.core();
    // The tasks of a host watch each other by their transport.
    core.transport.want(Want::Serve);
    reports::take(core);
    if held.dispatching() {
        // Another thread is in a handler that the dispatcher runs: what has arrived cannot
        // be handled now.
        return;
    }
    let core = held.core();
    core.membership.begin_look();
    if core.membership.joined_at().is_some() && core.partings.stage() == Stage::None {
        reconnect_parted(held);
    }
    let core = held.core();
    if core.is_closing() {
        return;
    }
    forget_leavers(held);
    let core = held.core();
    if core.is_closing() {
        return;
    }
    let now = moment();
    core.ops.mark(now);
    core.outbox.mark(now);
    let concerned = awaited(core);
    let silent: Vec<Task> = concerned.iter().copied().filter(|&peer| is_up(held, peer)).collect();
    check_liveness(held, &silent);
    // Without the packet of a task that has left, a collective operation continues, and may await
    // other packets.
    let mut checked = concerned;
    while !held.core().is_closing() {
        let next = held.core().collectives.awaited().find(|peer| !checked.contains(peer));
        let Some(peer) = next else { break };
        checked.push(peer);
        is_up(held, peer);
    }
}

/// Whether a peer is connected. If it is not, it is to be, or is lost.
fn is_up(held: &mut Held<'_>, peer: Task) -> bool {
    match held.core().transport.standing(peer).state {
        PeerState::Up => return true,
        PeerState::Connecting => held.core().transport.want(Want::Connection(peer)),
        gone => lose(held, peer, gone),
    }
    false
}

/// This process has taken the place of another one. A peer may have had contact with it before it
/// learnt of the death of the other one; then it has purged this task, and let it rejoin. This
/// program is a new one, and does not know of that: the connection is made again without it, and a
/// collective operation continues. A program that has purged the peer itself does its part itself.
#[cold]
fn reconnect_parted(held: &mut Held<'_>) {
    for peer in 0..held.core().options.tasks {
        let core = held.core();
        if peer == core.options.me || !core.transport.standing(peer).has_parted {
            continue;
        }
        let incarnation = held.core().incarnation(peer);
        let purged = |held: &mut Held<'_>| {
            let core = held.core();
            core.is_closing()
                || !core.membership.connects_again(peer)
                || core.incarnation(peer) != incarnation
        };
        if purged(held) || !drain(held, peer) || purged(held) {
            continue;
        }
        let core = held.core();
        if waits_for(core, peer) || core.outbox.owes(peer) {
            let detail = explain(core, peer, HAS_PURGED, false);
            abandon(core, peer, LAPI_ERR_NO_CONNECTIVITY);
            if core.membership.lose(peer) {
                let error = Error::new(LAPI_ERR_NO_CONNECTIVITY, detail);
                held.context().report_loss(held, (INT_ERR, peer), true, &error);
            }
            // The error handler may have purged it.
            if purged(held) {
                continue;
            }
        }
        let core = held.core();
        abandon(core, peer, LAPI_ERR_NO_CONNECTIVITY);
        core.transport.withdraw(peer, Withdrawal::Connection);
        core.membership.end_incarnation(peer);
        if let Err(error) = let_rejoin(core, peer, NO_EPOCH) {
            core.membership.lose(peer);
            held.context().report_loss(held, (INT_ERR, peer), false, &error);
            continue;
        }
        let (collectives, outbox, mut wire) = core.collective();
        collectives.send_again(peer, outbox, &mut wire);
        core.advance_collective();
        held.wake_waiters();
    }
}

/// Peers that have gone while they wanted to part: nothing is held back for them any more, and
/// what has waited ends with an error.
fn forget_leavers(held: &mut Held<'_>) {
    for peer in held.core().partings.wanted() {
        let has_gone = |core: &Core| {
            let state = core.transport.standing(peer).state;
            core.partings.is_wanted(peer) && !matches!(state, PeerState::Up | PeerState::Connecting)
        };
        // Its last packet may say that it has parted.
        if has_gone(held.core()) && drain(held, peer) && has_gone(held.core()) {
            held.core().partings.forget(peer);
            put_off(held, peer);
        }
    }
}

/// The peers that this task waits for, in ascending order.
fn awaited(core: &Core) -> Vec<Task> {
    let mut peers: Vec<Task> =
        core.outbox.waiting_for().chain(core.outbox.unconfirmed().iter().copied()).collect();
    peers.extend(core.ops.peers());
    // Of a collective operation only the tasks whose packets are next: others that have left may
    // have done their part.
    peers.extend(core.collectives.awaited());
    peers.extend(core.membership.leaving());
    peers.extend(core.partings.awaited());
    peers.sort_unstable();
    peers.dedup();
    peers.retain(|&peer| peer != core.options.me);
    peers
}

/// Probes or gives up those of the peers (in ascending order) that are silent.
fn check_liveness(held: &mut Held<'_>, awaited: &[Task]) {
    let seconds = held.context().settings.timeout.load(Ordering::Relaxed);
    let core = held.core();
    if !core.options.give_up || core.is_closing() {
        return;
    }
    let timeout = Duration::from_secs(seconds.max(1) as u64);
    let (membership, transport) = (&mut core.membership, &core.transport);
    let progress = awaited.iter().map(|&peer| (peer, transport.view(peer).progress));
    for (peer, verdict) in membership.silent(timeout, progress) {
        if held.core().is_closing() {
            return;
        }
        match verdict {
            // A peer without room for what waits shows life by making some.
            Verdict::Probe if held.core().outbox.waits(peer) => {}
            Verdict::Probe => {
                held.core().stats.liveness += 1;
                send_control(held.core(), peer, &Head::Ping);
            }
            Verdict::GiveUp(silent) => give_up(held, peer, silent, seconds),
        }
    }
}

/// Receives what `peer` has sent until now. Returns whether the context continues.
fn drain(held: &mut Held<'_>, peer: Task) -> bool {
    let rounds = DRAIN.saturating_mul(held.core().options.tasks);
    drain_while(held, peer, rounds, || true)
}

/// Receives what `peer` has sent until now, in this number of rounds at most, and as long as
/// `goes_on` before each. Returns whether the context continues.
pub fn drain_while(held: &mut Held<'_>, peer: Task, rounds: u32, mut goes_on: impl FnMut() -> bool) -> bool {
    flow::drain(held.core(), Some(peer));
    // It may send once it has confirmed the connection, which this task may not have read.
    held.core().transport.want(Want::Settle(peer));
    // A transport may poll the peer only when the peer has announced a packet. One that was killed
    // before it announced its last one never does: of a peer that is released, all is polled.
    let transport = &mut held.core().transport;
    [true, false].into_iter().for_each(|hold| transport.want(Want::Hold(peer, hold)));
    let tasks = held.core().options.tasks;
    for _ in 0..rounds {
        // Others may send all the time: what they send now is not waited for.
        let connection = held.core().transport.view(peer).connection;
        let left = tasks == 2 || connection.is_none_or(|connection| connection.arrived);
        if !goes_on() || !turn(held) || !left {
            break;
        }
    }
    flow::drain(held.core(), None);
    !held.core().is_closing()
}

/// Whether an operation of this task alone waits for the peer.
fn waits_for(core: &Core, peer: Task) -> bool {
    core.ops.wait_for(peer) || core.outbox.waits(peer) || core.membership.has_dropped(peer)
}

/// The peer has left: everything that waits for it ends with an error. It is reported once.
#[cold]
fn lose(held: &mut Held<'_>, peer: Task, how: PeerState) {
    // What it had sent before it left can still be received; it may have owed nothing else. A
    // handler may purge it meanwhile.
    let incarnation = held.core().incarnation(peer);
    if !drain(held, peer) || held.core().incarnation(peer) != incarnation {
        return;
    }
    let core = held.core();
    let closed = how == PeerState::Closed;
    if !waits_for(core, peer) && !core.collectives.awaits(peer) {
        if closed {
            // It has served everything before it ended LAPI; only its confirmation is missing, and
            // will not come.
            core.outbox.abandon(peer, 0, &mut Vec::new());
            core.membership.forget_leaving(peer);
            return;
        }
        if !core.outbox.owes(peer) {
            return;
        }
    }
    if closed && !core.is_ending() && since(core.membership.leaves(peer)) < LEAVE {
        return;
    }
    let how = match (core.transport.standing(peer).absence, core.options.ends.of(peer)) {
        _ if closed => "has left the job".to_owned(),
        (_, Some(end)) => end.to_string(),
        (Some(absence), None) => absence,
        // The launcher's report may come later, or the job has no launcher.
        (None, None) => "has ended without calling LAPI_Term".to_owned(),
    };
    let quiet = closed && core.is_ending();
    end(held, peer, LAPI_ERR_NO_CONNECTIVITY, INT_ERR, (!quiet).then_some(how.as_str()));
}

/// The peer has been silent for too long: as if it had left, and what it may still send is dropped.
#[cold]
fn give_up(held: &mut Held<'_>, peer: Task, silent: Duration, timeout: i32) {
    let sign =
        |held: &mut Held<'_>| (held.core().transport.view(peer).progress, held.core().incarnation(peer));
    let before = sign(held);
    // Its reply may just have arrived.
    if !drain(held, peer) || sign(held) != before {
        return;
    }
    let core = held.core();
    core.membership.quarantine(peer);
    if let Some(door) = core.transport.door(peer) {
        door.fall_silent();
    }
    let how = format!(
        "has not replied for {} seconds (TIMEOUT is {timeout}): it is stopped, or has not called LAPI all that time while \
         its INTERRUPT_SET is off (MP_DEBUG_NOTIMEOUT=yes waits for ever)",
        silent.as_secs()
    );
    end(held, peer, LAPI_ERR_TIMEOUT, TMR_ERR, Some(how.as_str()));
}

/// Ends everything that waits for the peer. It is reported once, with what has happened to the
/// peer; `None`: not at all.
fn end(held: &mut Held<'_>, peer: Task, code: i32, kind: lapi_err_t, how: Option<&str>) {
    let core = held.core();
    let detail = how.map(|how| explain(core, peer, how, true));
    let ends_operations = waits_for(core, peer) || core.outbox.owes(peer);
    core.collectives.lose(peer, code);
    core.advance_collective();
    abandon(core, peer, code);
    let (true, Some(detail)) = (core.membership.lose(peer), detail) else { return };
    held.context().report_loss(held, (kind, peer), ends_operations, &Error::new(code, detail));
}

/// What has happened to the peer, and what cannot complete therefore.
fn explain(core: &Core, peer: Task, how: &str, collective: bool) -> String {
    let me = core.options.me;
    match &*pending(core, peer, collective) {
        "" => format!("task {peer} {how}. Task {me} has a message for it"),
        pending => format!("task {peer} {how}. Task {me} has {pending} for it; giving up"),
    }
}

/// What waits for the peer, in words; collective calls among it if `collective`.
fn pending(core: &Core, peer: Task, collective: bool) -> String {
    let (mut sends, mut gets, mut updates) = (0, 0, 0);
    for op in core.ops.of(peer) {
        match op {
            Op::Completion { .. } | Op::Rendezvous { .. } | Op::Write { .. } => sends += 1,
            Op::Get { .. } => gets += 1,
            Op::Rmw { .. } => updates += 1,
        }
    }
    let counts = [
        (sends, "unfinished put or active message", "unfinished puts or active messages"),
        (gets, "unfinished get", "unfinished gets"),
        (updates, "unfinished read-modify-write", "unfinished read-modify-writes"),
        (core.outbox.parked(peer), "queued packet", "queued packets"),
        (core.outbox.streams(peer), "long message half sent", "long messages half sent"),
        (usize::from(core.outbox.asks(peer)), "unfinished fence", "unfinished fences"),
        (
            usize::from(collective && core.collectives.awaits(peer)),
            "unfinished collective call",
            "unfinished collective calls",
        ),
    ];
    let counts = counts.iter().filter(|(count, ..)| *count != 0);
    let words = counts.map(|(count, one, many)| format!("{count} {}", if *count == 1 { one } else { many }));
    words.collect::<Vec<_>>().join(", ")
}
