//! A job on several hosts: the tasks exchange cards, choose networks, and each opens the transports
//! that it needs.

use super::agreed::{Agreed, Near, failed, groups, may_use_network};
use super::fabric::network_preferences;
use super::networks::{self, Carrier, Chosen, Listed, Meeting, Sockets, Wish, fabric_candidates};
use super::rails::{CARD, process};
use super::shared_memory::AGREED;
use super::{Joined, Joining, fabric, shared_memory, udp};
use crate::abi::{
    LAPI_ERR_NO_UDP_HNDLR, LAPI_ERR_SHM_SETUP, LAPI_ERR_UNKNOWN, LAPI_FABRIC_DEV, LAPI_SHM_DEV, UDP_DEV,
};
use crate::base::limits;
use crate::base::process::Process;
use crate::config::{Env, Euilib, UseShm};
use crate::error::{Error, Result};
use crate::job::Hosts;
use crate::job::exchange::{self, Exchange};
use crate::job::host::{self, Host};
use crate::job::secret::{Offer, Secret};
use crate::transport;
use crate::transport::fabric::Choice;
use crate::wire::board;
use crate::wire::card::{Candidate, Card};
use crate::wire::frame::Task;
use std::time::Instant;

/// What a card with the candidates of a task is published under.
const OFFER: &str = "offer";

/// Opens the network, and shared memory to the tasks of this host. Collective: returns when all
/// tasks have published their cards.
///
/// # Errors
/// `LAPI_ERR_CSS_LOAD_FAILED`: no launcher that can exchange cards, no provider, no network that
/// carries packets between all hosts, a task that cannot take part; the detail says which.
/// `LAPI_ERR_NO_UDP_HNDLR`: no launcher, and UDP is wanted. `LAPI_ERR_SHM_SETUP`: LAPI_USE_SHM is
/// `only`, and there is more than one host.
pub(super) fn open(place: &Joining<'_>) -> Result<Joined> {
    let Joining { config, identity, link, instance, opening, .. } = *place;
    let deadline = Instant::now() + config.init_timeout;
    let turn = exchange::Turn { instance, opening };
    let mut exchange = link.exchange(identity, turn, deadline)?.ok_or_else(|| no_exchange(place))?;
    let before = if place.replaces { card_before(&mut *exchange, identity.task) } else { None };
    let configured = config.job_secret.as_ref().and_then(|secret| secret.as_bytes().try_into().ok());
    let (offered, sockets) = with_sockets(Offered::of(place), link.env());
    let ports = sockets.as_ref().map_or([0; 2], Sockets::ports);
    let (own, card) = match &before {
        Some(before) => open_again(place, &offered, before)?,
        None => (None, own_card(&offered, ports)),
    };
    publish(&mut *exchange, if own.is_some() { CARD } else { OFFER }, &card)?;
    let offer = Offer::publish(&mut *exchange, identity, configured, place.replaces)?;
    exchange.fence(deadline)?;
    let secret = offer.agree(&mut *exchange, identity)?;
    if let Some(own) = own {
        let cards = read_all(&mut *exchange, identity.tasks, CARD)?;
        return join_all(place, Agreement { exchange, secret, cards, own, networks: Vec::new() });
    }
    let cards = read_all(&mut *exchange, identity.tasks, OFFER)?;
    let hosts = Hosts::new(identity.task, cards.iter().map(|card| card.host));
    if hosts.count() == 1 && config.use_shm != UseShm::No {
        let transport = shared_memory::open(place, &hosts, (AGREED, Some(&secret)), visible(place, &cards))?;
        return Ok(Joined::new(transport, LAPI_SHM_DEV, hosts));
    }
    may_use_network(place, &hosts)?;
    agree(&cards)?;
    let offered = offered?;
    let again = |exchange: &mut dyn Exchange, round: u32| {
        let key = format!("{OFFER}{round}");
        publish(exchange, &key, &own_card(&Offered::of(place), ports))?;
        exchange.fence(deadline)?;
        let cards = read_all(exchange, identity.tasks, &key)?;
        agree(&cards)?;
        Ok(cards)
    };
    let meeting = Meeting {
        me: identity.task,
        wish: offered.wish.clone(),
        secret,
        deadline,
        sockets,
        again: Box::new(again),
    };
    let Chosen { networks, table } = meeting.choose(&mut *exchange, cards)?;
    let own = Own::open(place, &offered, &networks);
    publish(&mut *exchange, CARD, &card_of(&own, &offered, &networks))?;
    exchange.fence(deadline)?;
    let cards = read_all(&mut *exchange, identity.tasks, CARD)?;
    agree(&cards)?;
    join_all(place, Agreement { exchange, secret, cards, own: own?, networks: table })
}

/// What all tasks know once they have chosen, and the endpoints of this one.
struct Agreement {
    exchange: Box<dyn Exchange>,
    secret: Secret,
    cards: Vec<Card>,
    own: Own,
    networks: Vec<String>,
}

fn join_all(place: &Joining<'_>, agreement: Agreement) -> Result<Joined> {
    let Joining { config, identity, .. } = *place;
    let Agreement { exchange, secret, cards, own, networks } = agreement;
    let hosts = Hosts::new(identity.task, cards.iter().map(|card| card.host));
    let near = Near::open(place, &hosts, (AGREED, &secret), visible(place, &cards))?;
    let agreed = Agreed { cards, exchange, secret, near };
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
    Ok(Joined { notes, networks, ..Joined::new(transport, device, hosts) })
}

/// What this task can use.
#[derive(Clone)]
struct Offered {
    provider: String,
    candidates: Vec<Candidate>,
    carrier: Carrier,
    wish: Wish,
    /// Of libfabric.
    choice: Choice,
}

impl Offered {
    fn of(place: &Joining<'_>) -> Result<Self> {
        let Joining { config, identity, .. } = *place;
        if config.euilib == Some(Euilib::Ip) {
            return Ok(Self {
                provider: udp::provider(config),
                candidates: networks::candidates(&networks::listed(config, networks::all_interfaces()?)?),
                carrier: Carrier::Udp,
                wish: Wish::of(config, false),
                choice: Choice::default(),
            });
        }
        let preferences = network_preferences(config, identity.is_on_one_machine());
        let Listed { choice, candidates, carrier } = fabric_candidates(config, &preferences)?;
        let (provider, wish) = (choice.provider.clone(), Wish::of(config, true));
        Ok(Self { provider, candidates, carrier, wish, choice })
    }
}

/// Where this task answers those that try its candidates. Without sockets it cannot take part in a
/// network; the others learn of it, and tasks of one host may need none.
fn with_sockets(offered: Result<Offered>, env: &Env<'_>) -> (Result<Offered>, Option<Sockets>) {
    let opened = offered.and_then(|offered| Ok((Sockets::open(offered.carrier, env)?, offered)));
    match opened {
        Ok((sockets, offered)) => (Ok(offered), sockets),
        Err(why) => (Err(why), None),
    }
}

/// The endpoints of this task on the network.
enum Own {
    Fabric(Vec<transport::fabric::Own>),
    Udp(Box<udp::Own>),
}

impl Own {
    /// Those of the network that MP_EUILIB names.
    fn open(place: &Joining<'_>, offered: &Offered, networks: &[(String, Candidate)]) -> Result<Self> {
        match place.config.euilib {
            Some(Euilib::Ip) => udp::Own::open(place, networks).map(|own| Self::Udp(Box::new(own))),
            Some(Euilib::Us) | None => fabric::open(place, &offered.choice, networks).map(Self::Fabric),
        }
    }
}

/// What the process before this one has published, whose place this one takes; without its
/// endpoints if the job needs no network.
fn card_before(exchange: &mut dyn Exchange, me: Task) -> Option<Card> {
    [CARD, OFFER].iter().find_map(|key| Card::decode(&exchange.lookup(me, key).ok()?))
}

/// Opens the endpoints that the process before this one has had: the other tasks on its host watch
/// it, and all use these networks.
fn open_again(place: &Joining<'_>, offered: &Result<Offered>, before: &Card) -> Result<(Option<Own>, Card)> {
    let card = own_card(offered, [0; 2]);
    if before.host != card.host {
        let detail = format!("the task was on {}: it can be replaced on that host only", before.host_name);
        return Err(failed(detail));
    }
    if before.networks.is_empty() {
        return Ok((None, card));
    }
    let Ok(offered) = offered else { return Err(failed(card.failure)) };
    let networks: Vec<(String, Candidate)> =
        before.networks.iter().cloned().zip(before.candidates.iter().cloned()).collect();
    if let Some((network, _)) = networks.iter().find(|(_, one)| !offered.candidates.contains(one)) {
        return Err(failed(format!("network {network} is down: the task had a rail there")));
    }
    let own = Own::open(place, offered, &networks)?;
    let card = with_endpoints(card, &own, &networks);
    Ok((Some(own), card))
}

fn no_exchange(place: &Joining<'_>) -> Error {
    let Joining { config, identity, .. } = *place;
    let mut detail = match (config.use_shm, identity.is_on_one_machine()) {
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
    let needed = board::size(identity.tasks);
    if let Some(limit) = limits::of_files_below(needed) {
        detail = format!("{detail}; poe's file for it has {needed} bytes, and {limit}");
    }
    if config.euilib == Some(Euilib::Ip) {
        let detail = format!(
            "{detail}; add_info of lapi_info_t, for the addresses of tasks without a launcher, is NULL"
        );
        return Error::new(LAPI_ERR_NO_UDP_HNDLR, detail);
    }
    failed(detail)
}

/// What this task publishes at first: its candidates, or why it has none.
fn own_card(offered: &Result<Offered>, ports: [u16; 2]) -> Card {
    let host = Host::of_this_task();
    let Process { pid, started } = Process::own();
    let card = Card {
        host: host.id,
        host_name: host.name,
        pid,
        started,
        pid_namespace: host::pid_namespace(),
        net: host::network_namespace(),
        ..Card::default()
    };
    match offered {
        Ok(Offered { provider, candidates, .. }) => {
            Card { provider: provider.clone(), candidates: candidates.clone(), ports, ..card }
        }
        Err(failure) => Card { failure: failure.to_string(), ..card },
    }
}

/// What it publishes when all have chosen: its endpoints, or why it has none.
fn card_of(own: &Result<Own>, offered: &Offered, networks: &[(String, Candidate)]) -> Card {
    let none = Offered { candidates: Vec::new(), choice: Choice::default(), ..offered.clone() };
    let card = own_card(&Ok(none), [0; 2]);
    match own {
        Ok(own) => with_endpoints(card, own, networks),
        Err(failure) => Card { failure: failure.to_string(), ..card },
    }
}

fn with_endpoints(card: Card, own: &Own, networks: &[(String, Candidate)]) -> Card {
    let candidates = networks.iter().map(|(_, candidate)| candidate.clone()).collect();
    let card = Card { candidates, ..card };
    match own {
        Own::Fabric(own) => fabric::publish(own, card),
        Own::Udp(own) => own.publish(card),
    }
}

fn publish(exchange: &mut dyn Exchange, key: &str, card: &Card) -> Result<()> {
    let bytes = card
        .encode()
        .ok_or_else(|| Error::new(LAPI_ERR_UNKNOWN, "the addresses of this task are too long to publish"))?;
    exchange.publish(key, &bytes)
}

/// The processes of the tasks that no launcher watches and this task sees, by task; see
/// [`connect::ConnectSettings`].
///
/// [`connect::ConnectSettings`]: crate::job::connect::ConnectSettings
fn visible(place: &Joining<'_>, cards: &[Card]) -> Box<[Process]> {
    if place.openings.has_launcher() {
        return Box::default();
    }
    let groups = groups(cards);
    let own = groups[place.identity.task as usize];
    let seen = |(card, group): (&Card, &u32)| if *group == own { process(card) } else { Process::default() };
    cards.iter().zip(&groups).map(seen).collect()
}

fn read_all(exchange: &mut dyn Exchange, tasks: u32, key: &str) -> Result<Vec<Card>> {
    (0..tasks)
        .map(|task| {
            let bytes = exchange.lookup_published(task, key)?;
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
