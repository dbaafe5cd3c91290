//! The protocol on a simulated network, from seeds.
//!
//! * [`network`]: packets that overtake each other, and links without room.
//! * [`traffic`]: messages, gets and fences among tasks. [`collectives`]: barriers and exchanges,
//!   [`departures`]: the same when tasks die. [`operations`]: cookies and epochs. [`liveness`]:
//!   silence, in virtual time.
//!
//! The tests of one lane are beside it, in `outbox_tests.rs` and `inbox_tests.rs`.
//!
//! `SEED=n` runs the seed that a failing test has printed, and only that; `SOAK=n` runs n
//! times as many.

mod collectives;
mod departures;
mod liveness;
pub(super) mod network;
mod operations;
mod traffic;

use crate::base::rng::Rng;
use crate::proto::placement::Placement;
use std::sync::Arc;

/// The tasks of a job by hosts; `None` when all are on one.
pub(crate) fn placement(hosts: &[u32]) -> Option<Arc<Placement>> {
    hosts.iter().any(|host| *host != hosts[0]).then(|| Arc::new(Placement::new(hosts)))
}

/// The host of each task: 1 to 40 hosts, some of which have most tasks, in any order.
pub(crate) fn random_hosts(rng: &mut Rng, tasks: u32) -> Vec<u32> {
    let hosts = 1 + rng.below(40);
    let uneven = rng.chance(0.5);
    let mut host = || if uneven { rng.below(hosts).min(rng.below(hosts)) } else { rng.below(hosts) };
    (0..tasks).map(|_| host() as u32).collect()
}

/// Runs a test with `count` seeds, always the same, each of which is printed.
pub(crate) fn seeds(count: u64, test: impl Fn(u64)) {
    let number = |name: &str| {
        std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
    };
    let run = |seed: u64| {
        println!("SEED={seed}");
        test(seed);
    };
    match number("SEED") {
        Some(seed) => run(seed),
        None => (1..=count * number("SOAK").unwrap_or(1)).for_each(run),
    }
}
