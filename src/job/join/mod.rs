//! How a task joins its job: the transport to the other tasks, and which of them share its host.
//!
//! A job on one machine uses shared memory; LAPI_Init is local then. Otherwise the tasks exchange
//! cards first ([`network`]), and those of one host use [`shared_memory`] between them unless
//! LAPI_USE_SHM is `no`. Tasks that no launcher has started exchange nothing: the program itself
//! knows their addresses ([`standalone`]).

mod agreed;
mod fabric;
mod network;
mod networks;
mod rails;
mod shared_memory;
mod standalone;
mod udp;

pub use fabric::network_preferences;
pub use networks::{Listed, fabric_candidates, udp_interfaces};
pub use standalone::{Listing, Way};

use crate::abi::{LAPI_SELF_DEV, LAPI_SHM_DEV, lapi_dev_t};
use crate::base::thread::ThreadConfig;
use crate::config::{Config, Euilib, UseShm};
use crate::error::{Log, Result};
use crate::job::addresses::Addresses;
use crate::job::{Hosts, Identity, Link, Opening, Openings};
use crate::transport::AnyTransport;
use crate::transport::shm::ShmTransport;

/// The way to the other tasks.
pub struct Joined {
    /// Carries packets to all other tasks.
    pub transport: AnyTransport,
    /// The device in use, as LAPI_Init returns it.
    pub device: lapi_dev_t,
    /// Which tasks share a host.
    pub hosts: Hosts,
    /// Lines about the choice, for MP_INFOLEVEL 2.
    pub notes: Vec<String>,
    /// Lines about the addresses of all hosts, and what has become of each; none where no
    /// network is used.
    pub networks: Vec<String>,
    /// This process has taken the place of one that has died, as the launcher says.
    pub replaces: bool,
    /// Which opening of the job this is, in a job of several tasks.
    pub opening: Option<Opening>,
    /// The addresses of all tasks, where the program has given them.
    pub addresses: Option<Addresses>,
}

impl Joined {
    /// What is known of the transport alone.
    fn new(transport: impl Into<AnyTransport>, device: lapi_dev_t, hosts: Hosts) -> Self {
        Self {
            transport: transport.into(),
            device,
            hosts,
            notes: Vec::new(),
            networks: Vec::new(),
            replaces: false,
            opening: None,
            addresses: None,
        }
    }
}

/// What joining needs to know.
#[derive(Clone, Copy)]
struct Joining<'a> {
    config: &'a Config,
    identity: &'a Identity,
    instance: u32,
    thread_config: Option<ThreadConfig>,
    log: &'a Log,
    link: &'a Link,
    openings: &'a Openings,
    /// Which opening of the instance this is.
    opening: u32,
    /// This process joins it in the place of one that has died.
    replaces: bool,
    /// The program gives addresses of UDP, which MP_EUILIB=us does not use.
    ignores_addresses: bool,
}

/// Joins the job as `identity` says. `thread_config`: how threads are made; `None`: the session has
/// none of its own. `listing`: the addresses of the tasks, where the program has any. Messages go
/// to `log`.
///
/// # Errors
/// As the man page of LAPI_Init says; the detail names variable, task or limit.
pub fn join(
    config: &Config,
    identity: &Identity,
    instance: usize,
    thread_config: Option<ThreadConfig>,
    listing: Option<&mut dyn Listing>,
    (link, log): (&Link, &Log),
) -> Result<Joined> {
    let (me, tasks, instance) = (identity.task, identity.tasks, instance as u32);
    if tasks == 1 {
        return Ok(Joined::new(ShmTransport::alone()?, LAPI_SELF_DEV, Hosts::one(me, tasks)));
    }
    let openings = &link.openings(&identity.key, tasks, instance);
    let rejoined = openings.rejoin(me, tasks);
    let opening = rejoined.unwrap_or_else(|| openings.open(me));
    let replaces = rejoined.is_some();
    let given = listing.as_ref().is_some_and(|listing| listing.way(tasks) != Way::Nothing);
    let ignores_addresses = given && config.euilib == Some(Euilib::Us);
    let place = Joining {
        config,
        identity,
        instance,
        thread_config,
        log,
        link,
        openings,
        opening,
        replaces,
        ignores_addresses,
    };
    let listing = listing.filter(|_| standalone::is_meant(&place));
    let joined = if let Some(listing) = listing {
        standalone::open(&place, listing)
    } else if config.use_shm == UseShm::No || !identity.is_on_one_machine() {
        network::open(&place)
    } else {
        on_one_machine(&place)
    };
    if joined.is_err() && !replaces {
        openings.fail(me, opening, tasks);
    }
    let opening = Some(Opening::new(openings.clone(), me, opening));
    joined.map(|joined| Joined { opening, replaces, ..joined })
}

fn on_one_machine(place: &Joining<'_>) -> Result<Joined> {
    let Identity { task, tasks, .. } = *place.identity;
    let secret = place.config.job_secret.as_ref().map(|secret| secret.as_bytes());
    let job = &*place.identity.key;
    let hosts = Hosts::one(task, tasks);
    let transport = shared_memory::open(place, &hosts, (job, secret), Box::default())?;
    Ok(Joined::new(transport, LAPI_SHM_DEV, hosts))
}
