//! A job on several hosts: the tasks exchange cards, and each opens the transports that it needs.

use super::{Joined, Place, shared_memory};
use crate::abi::{
    LAPI_ERR_CSS_LOAD_FAILED, LAPI_ERR_SHM_SETUP, LAPI_ERR_UNKNOWN, LAPI_FABRIC_DEV, LAPI_SHM_DEV,
};
use crate::config::{self, Config, Euilib, Instances, UseShm};
use crate::error::{Error, Result};
use crate::job::Hosts;
use crate::job::exchange::{self, Exchange};
use crate::job::host::{self, Host};
use crate::job::hosts::numbered;
use crate::job::secret::Offer;
use crate::transport::fabric::{Directory, Fabric, FabricSettings, FabricTransport, Own, Process, Wishes};
use crate::transport::route::Route;
use crate::wire::card::Card;
use crate::wire::frame::Task;
use sha2::{Digest, Sha256};
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
    let Place { config, identity, instance, opening, .. } = *place;
    if config.euilib == Some(Euilib::Ip) {
        return Err(failed("MP_EUILIB=ip: UDP is not built; unset it, or set us"));
    }
    let deadline = Instant::now() + config.init_timeout;
    let turn = exchange::Turn { instance, opening };
    let mut exchange =
        exchange::open(identity, turn, &config::process_env, deadline)?.ok_or_else(|| no_exchange(place))?;
    let own = open_endpoint(place);
    let card = own_card(&own);
    let bytes = card
        .encode()
        .ok_or_else(|| Error::new(LAPI_ERR_UNKNOWN, "the addresses of this task are too long to publish"))?;
    if place.replaces {
        same_host(&mut *exchange, identity.task, &card)?;
    }
    exchange.publish(CARD, &bytes)?;
    let configured = config.job_secret.as_ref().and_then(|secret| secret.as_bytes().try_into().ok());
    let offer = Offer::publish(&mut *exchange, identity, configured)?;
    exchange.fence(deadline)?;
    let secret = offer.agree(&mut *exchange, identity)?;
    let cards = read_all(&mut *exchange, identity.tasks)?;
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
    let (own, _) = own?;
    agree(&cards)?;
    warn_of_rails(place);
    let notes = notes(&own, exchange.name());
    let groups = groups(&cards);
    let processes = cards.iter().map(process).collect();
    let start = cards.into_iter().map(|card| card.addresses).collect();
    let directory = Box::new(Addresses { start, exchange: exchange.follows().then_some(exchange) });
    let mut far = FabricTransport::new(own, tag(&secret), directory)?;
    if place.replaces {
        far.replaces_another();
    }
    far.watch_others(groups, processes);
    let device = LAPI_FABRIC_DEV;
    if config.use_shm == UseShm::No {
        let hosts = hosts.without_shared_memory();
        return Ok(Joined { transport: Box::new(far), device, hosts, notes });
    }
    // Every task has the same MAX_PKT_SZ, whether it has a neighbour or not.
    if hosts.count() < identity.tasks {
        far.limit_body(shared_memory::longest_body(identity.tasks));
    }
    // A task without a neighbour needs no shared memory.
    if here == 1 {
        return Ok(Joined { transport: Box::new(far), device, hosts, notes });
    }
    let near = shared_memory::open(place, here, Some(&secret))?;
    let reached: Box<[bool]> = (0..identity.tasks).map(|task| hosts.is_here(task)).collect();
    far.leaves_to_another(reached.clone());
    let transport = Box::new(Route::new(near, far, reached)?);
    Ok(Joined { transport, device, hosts, notes })
}

/// The endpoint of this task, and its address.
fn open_endpoint(place: &Place<'_>) -> Result<(Own, Vec<u8>)> {
    let Place { config, identity, .. } = *place;
    let wishes = wishes(config, identity.is_on_one_machine());
    Fabric::open(FabricSettings { me: identity.task, tasks: identity.tasks, wishes })
}

/// Which provider the user wants. `one_machine`: all tasks of the job are on this machine.
pub fn wishes(config: &Config, one_machine: bool) -> Wishes {
    Wishes {
        provider: config.fabric_provider.clone(),
        domain: config
            .fabric_domain
            .clone()
            .or_else(|| config.euidevice.clone().filter(|device| is_named(device))),
        one_machine,
    }
}

/// MP_EUIDEVICE names a device, and not how many.
fn is_named(device: &str) -> bool {
    !["sn_all", "sn_single"].contains(&device)
}

/// Several rails were asked for, and there is one.
fn warn_of_rails(place: &Place<'_>) {
    let Place { config, identity, .. } = *place;
    let several = config.instances != Instances::Count(1) || config.euidevice.as_deref() == Some("sn_all");
    if several && identity.task == 0 && config.info_level >= 1 {
        crate::error::log(format_args!(
            "attention: MP_INSTANCES and MP_EUIDEVICE=sn_all have no effect: this version uses one interface"
        ));
    }
}

/// Lines about the choice, for MP_INFOLEVEL 2.
fn notes(own: &Own, exchange: &str) -> Vec<String> {
    let choice = own.choice();
    let mut notes = vec![format!("network: {}; addresses by {exchange}", choice.chosen)];
    notes.extend(choice.passed_over.iter().map(|(name, why)| format!("network: not {name}: {why}")));
    notes
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
    failed(detail)
}

/// What this task publishes: its address, or why it has none.
fn own_card(own: &Result<(Own, Vec<u8>)>) -> Card {
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
        Ok((own, address)) => {
            Card { provider: own.choice().provider.clone(), addresses: vec![address.clone()], ..card }
        }
        Err(failure) => Card { failure: failure.to_string(), ..card },
    }
}

/// The groups of tasks that see each other's processes, numbered: the group of each task.
fn groups(cards: &[Card]) -> Vec<u32> {
    numbered(cards.iter().enumerate().map(|(task, card)| {
        // One whose numbering is unknown is a group by itself.
        let alone = if card.pid_namespace == 0 { task + 1 } else { 0 };
        (card.host, card.pid_namespace, alone)
    }))
}

fn process(card: &Card) -> Process {
    Process { pid: card.pid, started: card.started }
}

fn read_all(exchange: &mut dyn Exchange, tasks: u32) -> Result<Vec<Card>> {
    (0..tasks)
        .map(|task| {
            let bytes = exchange.lookup(task, CARD)?;
            Card::decode(&bytes)
                .ok_or_else(|| failed(format!("task {task} uses another version of the library")))
        })
        .collect()
}

/// What distinguishes the frames of this job: it follows from the secret, and does not reveal it.
fn tag(secret: &[u8]) -> u64 {
    let digest = Sha256::new().chain_update(b"LAPI frames\0").chain_update(secret).finalize();
    digest.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cold]
fn failed(detail: impl Into<String>) -> Error {
    Error::new(LAPI_ERR_CSS_LOAD_FAILED, detail)
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

/// A process takes the place of another one on its host: the tasks there watch each other.
fn same_host(exchange: &mut dyn Exchange, me: Task, card: &Card) -> Result<()> {
    let before = exchange.lookup(me, CARD).ok().and_then(|bytes| Card::decode(&bytes));
    match before.filter(|before| before.host != card.host) {
        Some(before) => {
            let detail =
                format!("the task was on {}: it can be replaced on that host only", before.host_name);
            Err(failed(detail))
        }
        None => Ok(()),
    }
}

/// The addresses of all tasks' endpoints.
struct Addresses {
    /// As published when this task joined.
    start: Vec<Vec<Vec<u8>>>,
    /// Where those of processes are found that replace others later.
    exchange: Option<Box<dyn Exchange>>,
}

impl Addresses {
    /// What the task has published since this task joined, or before.
    fn present(&mut self, peer: Task) -> Option<Card> {
        let bytes = self.exchange.as_mut()?.lookup(peer, CARD).ok()?;
        Card::decode(&bytes)
    }
}

impl Directory for Addresses {
    fn address_of(&mut self, peer: Task) -> Result<Vec<u8>> {
        let present = self.present(peer).map(|card| card.addresses);
        let rails = present.as_ref().or_else(|| self.start.get(peer as usize));
        let first = rails.and_then(|rails| rails.first());
        first.cloned().ok_or_else(|| failed(format!("task {peer} has published no address")))
    }

    fn process_of(&mut self, peer: Task) -> Option<Process> {
        self.present(peer).as_ref().map(process)
    }

    fn has_died(&mut self, peer: Task) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| exchange.has_died(peer))
    }
}
