//! A job on several hosts: the tasks exchange cards, and each opens the transports that it needs.

use super::{Joined, Place, shared_memory};
use crate::abi::{
    LAPI_ERR_CSS_LOAD_FAILED, LAPI_ERR_SHM_SETUP, LAPI_ERR_UNKNOWN, LAPI_FABRIC_DEV, LAPI_SHM_DEV,
};
use crate::config::{self, Euilib, UseShm};
use crate::error::{Error, Result};
use crate::job::exchange::{self, Exchange};
use crate::job::{Hosts, host};
use crate::transport::fabric::{self, Directory, FabricTransport, Wishes};
use crate::transport::route::Route;
use crate::transport::shm::remote::random;
use crate::wire::card::Card;
use crate::wire::frame::Task;
use std::hash::Hasher;
use std::time::Instant;

/// What a card is published under.
const CARD: &str = "card";

/// Opens the network, and shared memory to the tasks of this host. Collective: returns when all tasks have published their
/// cards.
///
/// # Errors
/// `LAPI_ERR_CSS_LOAD_FAILED`: no launcher that can exchange cards, no provider, a task that cannot take part; the detail says
/// which. `LAPI_ERR_SHM_SETUP`: LAPI_USE_SHM is `only`, and there is more than one host.
pub(super) fn open(place: &Place<'_>) -> Result<Joined> {
    let Place { config, identity, instance, .. } = *place;
    if config.euilib == Some(Euilib::Ip) {
        return Err(Error::new(LAPI_ERR_CSS_LOAD_FAILED, "MP_EUILIB=ip: UDP is not built; unset it, or set us"));
    }
    let deadline = Instant::now() + config.init_timeout;
    let turn = exchange::Turn { instance, opening: place.opening };
    let mut exchange = exchange::open(identity, turn, &config::process_env, deadline)?
        .ok_or_else(|| no_exchange(place))?;
    let wishes = Wishes {
        provider: config.fabric_provider.clone(),
        domain: config.fabric_domain.clone(),
        device: config.euidevice.clone(),
        instances: config.instances,
    };
    let own = fabric::open(identity.task, identity.tasks, &wishes);
    let mut card = own_card(place);
    match &own {
        Ok((_, endpoint)) => {
            card.provider = endpoint.provider.clone();
            card.addresses = endpoint.addresses.clone();
        }
        Err(failure) => card.failure = failure.detail().to_owned(),
    }
    let bytes = card
        .encode()
        .ok_or_else(|| Error::new(LAPI_ERR_UNKNOWN, "the addresses of this task are too long to publish"))?;
    exchange.publish(CARD, &bytes)?;
    exchange.fence(deadline)?;
    let cards = read_all(&mut *exchange, identity.tasks)?;
    let secret = secret(place, &cards)?;
    let hosts = Hosts::new(identity.task, cards.iter().map(|card| card.host));
    let here = hosts.here().len() as u32;
    if hosts.count() == 1 && config.use_shm != UseShm::No {
        let transport = Box::new(shared_memory::open(place, here, Some(&secret))?);
        return Ok(Joined { transport, device: LAPI_SHM_DEV, hosts, notes: Vec::new() });
    }
    if config.use_shm == UseShm::Only {
        let detail = format!("{} hosts for {} tasks, and LAPI_USE_SHM=only", hosts.count(), identity.tasks);
        return Err(Error::new(LAPI_ERR_SHM_SETUP, detail));
    }
    let (own, endpoint) = own?;
    agree(&cards)?;
    let directory = Addresses(cards.into_iter().map(|card| card.addresses).collect());
    let far = FabricTransport::new(own, &secret, Box::new(directory))?;
    let (device, notes) = (LAPI_FABRIC_DEV, endpoint.notes);
    // A task without a neighbour needs no shared memory.
    if config.use_shm == UseShm::No {
        let hosts = hosts.without_shared_memory();
        return Ok(Joined { transport: Box::new(far), device, hosts, notes });
    }
    if here == 1 {
        return Ok(Joined { transport: Box::new(far), device, hosts, notes });
    }
    let near = shared_memory::open(place, here, Some(&secret))?;
    let reached = (0..identity.tasks).map(|task| hosts.is_here(task)).collect();
    let transport = Box::new(Route::new(near, far, reached)?);
    Ok(Joined { transport, device, hosts, notes })
}

fn no_exchange(place: &Place<'_>) -> Error {
    let Place { config, identity, .. } = *place;
    let detail = match (config.use_shm, identity.is_on_one_machine()) {
        (UseShm::No, true) => "LAPI_USE_SHM=no needs a launcher: poe, PMI, PMIx or Slurm".to_owned(),
        (UseShm::Only, _) => {
            let detail = format!("only {} of {} tasks are on this machine", identity.common_count(), identity.tasks);
            return Error::new(LAPI_ERR_SHM_SETUP, format!("{detail}, and LAPI_USE_SHM=only"));
        }
        _ => format!(
            "only {} of {} tasks are on this machine, and no launcher offers PMI, PMIx or Slurm",
            identity.common_count(),
            identity.tasks
        ),
    };
    Error::new(LAPI_ERR_CSS_LOAD_FAILED, detail)
}

/// What this task publishes, without what its endpoints add.
fn own_card(place: &Place<'_>) -> Card {
    let host = host::identity();
    let (one, other) = (random(), random());
    let share = (u128::from(one) << 64 | u128::from(other)).to_le_bytes();
    Card {
        host: host.id,
        host_name: host.name,
        pid: std::process::id(),
        share,
        given: place.config.job_secret.as_ref().map_or(0, |secret| digest(secret.as_bytes())),
        ..Card::default()
    }
}

/// A number that shows whether two secrets are equal, and not what they are.
#[expect(deprecated, reason = "the only keyed hash in std whose algorithm is fixed")]
fn digest(secret: &[u8]) -> u64 {
    let mut hash = std::hash::SipHasher::new();
    hash.write(b"openlapi secret");
    hash.write(secret);
    hash.finish() | 1
}

fn read_all(exchange: &mut dyn Exchange, tasks: u32) -> Result<Vec<Card>> {
    (0..tasks)
        .map(|task| {
            let bytes = exchange.lookup(task, CARD)?;
            Card::decode(&bytes).ok_or_else(|| {
                let detail = format!("task {task} uses another version of the library");
                Error::new(LAPI_ERR_CSS_LOAD_FAILED, detail)
            })
        })
        .collect()
}

/// The job's secret: the one that the environment gives to all tasks, or task 0's share.
fn secret(place: &Place<'_>, cards: &[Card]) -> Result<Vec<u8>> {
    let first = cards.first().map_or(0, |card| card.given);
    if let Some(other) = cards.iter().position(|card| card.given != first) {
        let detail = format!("LAPI_JOB_SECRET of task {other} is not that of task 0");
        return Err(Error::new(LAPI_ERR_CSS_LOAD_FAILED, detail));
    }
    Ok(match &place.config.job_secret {
        Some(secret) => secret.as_bytes().to_vec(),
        None => cards.first().map_or_else(Vec::new, |card| card.share.to_vec()),
    })
}

/// All tasks have endpoints, and of one provider.
fn agree(cards: &[Card]) -> Result<()> {
    let failed = |task: usize, why: &str| {
        let host = &cards[task].host_name;
        Err(Error::new(LAPI_ERR_CSS_LOAD_FAILED, format!("task {task} on {host}: {why}")))
    };
    if let Some(task) = cards.iter().position(|card| !card.failure.is_empty()) {
        return failed(task, &cards[task].failure);
    }
    match cards.iter().position(|card| card.provider != cards[0].provider) {
        Some(task) => {
            let why = format!("provider {}, task 0 has {}", cards[task].provider, cards[0].provider);
            failed(task, &why)
        }
        None => Ok(()),
    }
}

/// The addresses of all tasks' endpoints, as published.
struct Addresses(Vec<Vec<Vec<u8>>>);

impl Directory for Addresses {
    fn addresses(&mut self, peer: Task) -> &[Vec<u8>] {
        &self.0[peer as usize]
    }
}
