//! Looks at a core.

use super::{Assembling, Few, Kind, Operation, Peer, Report, Wait};
use crate::base::clock::moment;
use crate::engine::context::incoming::Then;
use crate::engine::context::waiters::Waiter;
use crate::engine::context::{Core, Held, counter};
use crate::proto::ops::{Op, Pending};
use crate::proto::outbox::Traffic;
use crate::transport::Task;

/// What the context holds. Changes nothing but the notes of what was seen when.
pub fn look(held: &mut Held<'_>) -> Report {
    let dispatcher = held.context().activity.thread();
    let core = held.core();
    let now = moment();
    let waits = core.waiters.list.iter().map(|waiter| wait(core, waiter)).collect::<Vec<_>>();
    let peers = Few::of(peers(core, &waits).into_iter());
    let early = core.inbox.kept().filter(|(_, count)| *count != 0);
    let (entered, round) = core.collectives.entered();
    let report = Report {
        me: core.options.me,
        tasks: core.options.tasks,
        transport: core.transport.name(),
        polling: core.waiters.waiting.saturating_sub(waits.len() as u32),
        waits,
        dispatcher,
        operations: Few::of(core.ops.iter().map(|pending| operation(pending, core.ops.seen(pending)))),
        collective: (entered, round.map(|round| (round, core.collectives.awaited()))),
        peers,
        copies: Few::of(core.direct_copies.iter().map(|copy| (copy.peer, copy.copied, copy.len()))),
        assemblies: Few::of(core.inbox.assemblies().map(|(src, id, assembly)| Assembling {
            src,
            id,
            arrived: assembly.arrived,
            total: assembly.total,
        })),
        early: Few::of(early),
        dropped: Few::of(core.dropped.iter().map(|dropped| dropped.message.src)),
        to_self: core.to_self.len(),
        lost: core.peers.lost().collect(),
        packets: (core.stats.peers.packets_sent, core.stats.peers.packets_received),
    };
    core.ops.mark(now);
    core.outbox.mark(now);
    report
}

fn wait(core: &Core, waiter: &Waiter) -> Wait {
    // SAFETY: the thread waits for this counter, so it exists: the thread takes the lock, which is held, before it
    // continues.
    let value = waiter.awaited.counter.map(|(address, _)| unsafe { counter::get(address) });
    let awaited = awaited(core, waiter);
    let absence = match awaited[..] {
        [one] => core.transport.absence(one),
        _ => None,
    };
    Wait { waiter: *waiter, value, awaited, absence }
}

/// The tasks that must do something before this wait can end, as far as it can be known here: for a counter, those of the
/// operations under way that raise it; for a fence, those that have not confirmed; in a collective operation, the one whose
/// packet is next.
fn awaited(core: &Core, waiter: &Waiter) -> Vec<Task> {
    let mut tasks: Vec<Task> = match waiter.awaited.counter {
        Some((address, _)) => {
            let raises = |pending: &&Pending| pending.counters().contains(&address);
            let copies = core
                .direct_copies
                .iter()
                .filter(|copy| copy.abandoned().is_some_and(|done| done.org_cntr == address));
            let incoming = core.inbox.assemblies().filter(|(.., assembly)| match &assembly.then {
                Then::Deliver(delivery) => delivery.tgt_cntr == address as u64,
                Then::Describe(incoming) => incoming.tgt_cntr == address as u64,
            });
            let operations = core.ops.iter().filter(raises).map(|pending| pending.peer);
            operations
                .chain(core.outbox.raising(address))
                .chain(copies.map(|copy| copy.peer))
                .chain(incoming.map(|(src, ..)| src))
                .collect()
        }
        None if waiter.awaited.call == "LAPI_Term" => core.outbox.waiting_for().collect(),
        None if core.collectives.busy() && waiter.awaited.call != "LAPI_Fence" => {
            core.collectives.awaited().into_iter().collect()
        }
        None => {
            let fenced = core.ops.iter().filter(|pending| pending.fenced()).map(|pending| pending.peer);
            fenced.chain(core.outbox.unconfirmed().iter().copied()).chain(core.outbox.waiting_for()).collect()
        }
    };
    tasks.sort_unstable();
    tasks.dedup();
    tasks
}

fn operation(pending: &Pending, seen: u32) -> Operation {
    let kind = match &pending.op {
        Op::Completion { cmpl_cntr } => Kind::Completion(*cmpl_cntr),
        Op::Rendezvous { done, fetched, .. } => Kind::Rendezvous(done.bytes as usize, *fetched),
        Op::Get { len, arrived, .. } => Kind::Get(*arrived, *len),
        Op::Rmw { .. } => Kind::Rmw,
    };
    Operation { peer: pending.peer, kind, seen }
}

/// The peers to report: something waits at this side or at theirs, or a call waits for them.
fn peers(core: &Core, waits: &[Wait]) -> Vec<Peer> {
    let mut wanted: Vec<Task> = core.ops.peers().chain(core.collectives.awaited()).collect();
    wanted.extend(waits.iter().flat_map(|wait| &wait.awaited));
    wanted.extend(core.outbox.waiting_for());
    wanted.extend(core.outbox.unconfirmed());
    wanted.sort_unstable();
    wanted.dedup();
    let lanes: Vec<Traffic> = core.outbox.traffic().collect();
    let others = (0..core.options.tasks).filter(|&peer| peer != core.options.me);
    others
        .filter_map(|peer| {
            let view = core.transport.view(peer);
            let busy = view.is_some_and(|view| view.no_room || view.arrived);
            if !busy && wanted.binary_search(&peer).is_err() {
                return None;
            }
            let lane = lanes.binary_search_by_key(&peer, |lane| lane.peer).ok().map(|at| lanes[at].clone());
            let traffic = lane.unwrap_or(Traffic { peer, ..Traffic::default() });
            let (state, polls) = (core.transport.state(peer), core.transport.polls(peer));
            let absence = core.transport.absence(peer);
            Some(Peer { traffic, state, polls, view, absence })
        })
        .take(super::LISTED * 64)
        .collect()
}
