//! A job on several hosts: the tasks exchange cards, and each opens the transports that it needs.

use super::agreed::{Agreed, failed, groups};
use super::rails::{CARD, process};
use super::{Joined, Place, fabric, shared_memory, udp};
use crate::abi::{
    LAPI_ERR_NO_UDP_HNDLR, LAPI_ERR_SHM_SETUP, LAPI_ERR_UNKNOWN, LAPI_FABRIC_DEV, LAPI_SHM_DEV, UDP_DEV,
};
use crate::base::process::Process;
use crate::config::{self, Euilib, UseShm};
use crate::error::{Error, Result};
use crate::job::Hosts;
use crate::job::exchange::{self, Exchange};
use crate::job::host::{self, Host};
use crate::job::secret::Offer;
use crate::transport;
use crate::wire::card::Card;
use crate::wire::frame::Task;
use std::time::Instant;

/// Opens the network, and shared memory to the tasks of this host. Collective: returns when all tasks have published their
/// cards.
///
/// # Errors
/// `LAPI_ERR_CSS_LOAD_FAILED`: no launcher that can exchange cards, no provider, a task that cannot take part; the detail says
/// which. `LAPI_ERR_NO_UDP_HNDLR`: no launcher, and UDP is wanted. `LAPI_ERR_SHM_SETUP`: LAPI_USE_SHM is `only`, and there is more than one host.
pub(super) fn open(place: &Place<'_>) -> Result<Joined> {
    let Place { config, identity, instance, opening, .. } = *place;
    let deadline = Instant::now() + config.init_timeout;
    let turn = exchange::Turn { instance, opening };
    let mut exchange =
        exchange::open(identity, turn, &config::process_env, deadline)?.ok_or_else(|| no_exchange(place))?;
    let own = Own::open(place);
    let card = own_card(&own);
    let bytes = card
        .encode()
        .ok_or_else(|| Error::new(LAPI_ERR_UNKNOWN, "the addresses of this task are too long to publish"))?;
    if place.replaces {
        same_host(&mut *exchange, identity.task, &card)?;
    }
    exchange.publish(CARD, &bytes)?;
    let configured = config.job_secret.as_ref().and_then(|secret| secret.as_bytes().try_into().ok());
    let offer = Offer::publish(&mut *exchange, identity, configured, place.replaces)?;
    exchange.fence(deadline)?;
    let secret = offer.agree(&mut *exchange, identity)?;
    let cards = read_all(&mut *exchange, identity.tasks)?;
    let hosts = Hosts::new(identity.task, cards.iter().map(|card| card.host));
    let here = hosts.here().len() as u32;
    if hosts.count() == 1 && config.use_shm != UseShm::No {
        let transport = Box::new(shared_memory::open(place, here, Some(&secret), visible(place, &cards))?);
        let replaces = place.replaces;
        let notes = Vec::new();
        return Ok(Joined { transport, device: LAPI_SHM_DEV, hosts, notes, replaces, addresses: None });
    }
    if config.use_shm == UseShm::Only {
        let detail = format!("{} hosts for {} tasks, and LAPI_USE_SHM=only", hosts.count(), identity.tasks);
        return Err(Error::new(LAPI_ERR_SHM_SETUP, detail));
    }
    let own = own?;
    agree(&cards)?;
    let here_too: Box<[bool]> = (0..identity.tasks).map(|task| hosts.is_here(task)).collect();
    // A task without a neighbour needs no shared memory.
    let near = if config.use_shm != UseShm::No && here != 1 {
        Some(shared_memory::open(place, here, Some(&secret), visible(place, &cards))?)
    } else {
        None
    };
    // Every task has the same MAX_PKT_SZ, whether it has a neighbour or not.
    let limited = config.use_shm != UseShm::No && hosts.count() < identity.tasks;
    let longest_body = if limited { shared_memory::longest_body(identity.tasks) } else { usize::MAX };
    let agreed = Agreed { cards, exchange, secret, near, here: here_too, longest_body };
    let (transport, device, notes) = match own {
        Own::Fabric(own) => {
            let (transport, notes) = fabric::join_all(own, place, agreed)?;
            (transport, LAPI_FABRIC_DEV, notes)
        }
        Own::Udp(own) => {
            let (transport, notes) = own.join(place, agreed)?;
            (transport, UDP_DEV, notes)
        }
    };
    let hosts = if config.use_shm == UseShm::No { hosts.without_shared_memory() } else { hosts };
    Ok(Joined { transport, device, hosts, notes, replaces: place.replaces, addresses: None })
}

/// The endpoints of this task on the network.
enum Own {
    Fabric(Vec<transport::fabric::Own>),
    Udp(Box<udp::Own>),
}

impl Own {
    /// Those of the network that MP_EUILIB names.
    fn open(place: &Place<'_>) -> Result<Self> {
        match place.config.euilib {
            Some(Euilib::Ip) => udp::Own::open(place).map(|own| Self::Udp(Box::new(own))),
            Some(Euilib::Us) | None => fabric::open(place).map(Self::Fabric),
        }
    }
}

fn no_exchange(place: &Place<'_>) -> Error {
    let Place { config, identity, .. } = *place;
    let detail = match (config.use_shm, identity.is_on_one_machine()) {
        (UseShm::No, true) => "LAPI_USE_SHM=no needs a launcher: poe, PMI, PMIx or Slurm".to_owned(),
        (UseShm::Only, _) => {
            let detail =
                format!("only {} of {} tasks are on this machine", identity.common_count(), identity.tasks);
            return Error::new(LAPI_ERR_SHM_SETUP, format!("{detail}, and LAPI_USE_SHM=only"));
        }
        _ => format!(
            "only {} of {} tasks are on this machine, and no launcher offers PMI, PMIx or Slurm",
            identity.common_count(),
            identity.tasks
        ),
    };
    if config.euilib == Some(Euilib::Ip) {
        let detail = format!(
            "{detail}; add_info of lapi_info_t, for the addresses of tasks without a launcher, is NULL"
        );
        return Error::new(LAPI_ERR_NO_UDP_HNDLR, detail);
    }
    failed(detail)
}

/// What this task publishes: its address, or why it has none.
fn own_card(own: &Result<Own>) -> Card {
    let host = Host::of_this_task();
    let Process { pid, started } = Process::own();
    let card = Card {
        host: host.id,
        host_name: host.name,
        pid,
        started,
        pid_namespace: host::pid_namespace(),
        ..Card::default()
    };
    match own {
        Ok(Own::Fabric(own)) => fabric::publish(own, card),
        Ok(Own::Udp(own)) => own.publish(card),
        Err(failure) => Card { failure: failure.to_string(), ..card },
    }
}

/// The processes of the tasks that no launcher watches and this task sees, by task; see [`connect::Settings`].
///
/// [`connect::Settings`]: crate::job::connect::Settings
fn visible(place: &Place<'_>, cards: &[Card]) -> Box<[Process]> {
    if place.openings.has_launcher() {
        return Box::default();
    }
    let groups = groups(cards);
    let own = groups[place.identity.task as usize];
    let seen = |(card, group): (&Card, &u32)| if *group == own { process(card) } else { Process::default() };
    cards.iter().zip(&groups).map(seen).collect()
}

fn read_all(exchange: &mut dyn Exchange, tasks: u32) -> Result<Vec<Card>> {
    (0..tasks)
        .map(|task| {
            let bytes = exchange.lookup_published(task, CARD)?;
            Card::decode(&bytes)
                .ok_or_else(|| failed(format!("task {task} uses another version of the library")))
        })
        .collect()
}

/// All tasks have endpoints, and of one provider.
fn agree(cards: &[Card]) -> Result<()> {
    let failed = |task: usize, why: &str| {
        let host = &cards[task].host_name;
        Err(failed(format!("task {task} on {host}: {why}")))
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

/// A process takes the place of another one on its host: the tasks there watch each other. It needs the same rails.
fn same_host(exchange: &mut dyn Exchange, me: Task, card: &Card) -> Result<()> {
    let Some(before) = exchange.lookup(me, CARD).ok().and_then(|bytes| Card::decode(&bytes)) else {
        return Ok(());
    };
    if before.host != card.host {
        let detail = format!("the task was on {}: it can be replaced on that host only", before.host_name);
        return Err(failed(detail));
    }
    let several = before.networks.len() > 1 && card.failure.is_empty();
    match before.networks.iter().find(|network| several && !card.networks.contains(network)) {
        Some(network) => Err(failed(format!("network {network} is down: the task had a rail there"))),
        None => Ok(()),
    }
}
