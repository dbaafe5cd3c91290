//! Which provider, domain and address a task uses.

use super::ofi::{self, Info};
use crate::wire::bytes::socket_address;
use core::net::IpAddr;
use libfabric_sys::bindings::{FI_SOCKADDR_IN, FI_SOCKADDR_IN6};

/// What the user has asked for.
#[derive(Clone, Debug, Default)]
pub struct Preferences {
    /// The provider, as libfabric names it, such as `tcp;ofi_rxm`.
    pub provider: Option<String>,
    /// The domain, as libfabric names it: a network interface such as `eth0`, or a card
    /// such as `mlx5_0`.
    pub domain: Option<String>,
    /// Nothing wakes a thread that sleeps: it looks when it is due. Messages take less time then
    /// with some providers.
    pub polls: bool,
    /// All tasks are on one machine: what reaches no other machine will do.
    pub one_machine: bool,
}

/// What was chosen, and why the others were not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The provider alone.
    pub provider: String,
    /// Provider, domain and fabric.
    pub chosen: String,
    /// Provider, domain and fabric of each that was passed over, in the order of
    /// preference, and why.
    pub passed_over: Vec<(String, &'static str)>,
}

impl Choice {
    /// Whether each message is a system call.
    pub fn sends_by_system_calls(&self) -> bool {
        BY_SYSTEM_CALLS.contains(&self.provider.as_str())
    }

    /// What its packets travel in.
    pub fn network(&self) -> Carrier {
        match self.provider.as_str() {
            "udp;ofi_rxd" => Carrier::Udp,
            provider if BY_SYSTEM_CALLS.contains(&provider) => Carrier::Tcp,
            _ => Carrier::Card,
        }
    }
}

/// What the packets of a provider travel in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// Connections of the kernel's TCP.
    Tcp,
    /// Datagrams of the kernel's UDP.
    Udp,
    /// What a card has, or this host alone.
    Card,
}

/// An address by which a provider reaches other tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The domain, as libfabric names it: an interface or a card.
    pub interface: String,
    /// The address; `None`: it is not one of IP.
    pub address: Option<IpAddr>,
    /// The fabric, as libfabric names it.
    pub fabric: String,
}

/// Providers in the order of preference. Those of hardware come first: they are there only where
/// the hardware is.
const RANKING: &[&str] = &["psm3", "cxi", "efa", "verbs;ofi_rxm", "opx", "tcp;ofi_rxm"];

/// How the fabrics of `psm3` begin where it has no card and uses the kernel's sockets, as it does
/// from libfabric 2.x on. Every machine has those, so it is no sign of hardware, and a host of the
/// job with an older libfabric has no such provider.
const PSM3_OVER_SOCKETS: &[&str] = &["TCP-", "UDP-"];

/// Providers that send each message by a system call. `net` is what older libfabrics
/// call one of them.
const BY_SYSTEM_CALLS: &[&str] = &["tcp;ofi_rxm", "tcp", "net;ofi_rxm", "net", "sockets", "udp;ofi_rxd"];

/// Providers that are used only when they are named, and why.
const ONLY_WHEN_NAMED: &[(&str, &str)] = &[
    ("sockets", "slow and no longer maintained: only when named"),
    ("net", "incomplete: only when named"),
    ("shm", "reaches one machine: only when named"),
    ("sm2", "reaches one machine: only when named"),
    ("udp;ofi_rxd", "slow: only when named"),
];

/// The longest messages to be injected that are asked for.
const INJECT_SIZES: [usize; 4] = [super::LONGEST, super::INJECT, 1024, 256];

const ANOTHER_PROVIDER: &str = "another provider was asked for";
const ANOTHER_DOMAIN: &str = "another domain was asked for";
const LOOPBACK: &str = "reaches this machine only";
const LINK_LOCAL: &str = "an address of one link";
const SHORT: &str = "its messages are too short";
const WORSE: &str = "another provider is preferred";

/// What decides about one element of libfabric's list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Traits {
    provider: String,
    fabric: String,
    domain: String,
    format: u32,
    source: Vec<u8>,
    max_message: usize,
}

impl Traits {
    fn of(info: &Info) -> Self {
        Self {
            provider: info.provider(),
            fabric: info.fabric_name(),
            domain: info.domain_name(),
            format: info.address_format(),
            source: info.source().to_vec(),
            max_message: info.max_message(),
        }
    }

    fn name(&self) -> String {
        let Self { provider, fabric, domain, .. } = self;
        format!("{provider}, domain {domain}, fabric {fabric}")
    }

    /// Why it must not be used; `None` when it may.
    fn obstacle(&self, preferences: &Preferences) -> Option<&'static str> {
        let other = |wanted: &Option<String>, own: &str| wanted.as_ref().is_some_and(|wanted| wanted != own);
        if other(&preferences.provider, &self.provider) {
            return Some(ANOTHER_PROVIDER);
        }
        if other(&preferences.domain, &self.domain) {
            return Some(ANOTHER_DOMAIN);
        }
        let only = ONLY_WHEN_NAMED.iter().find(|(provider, _)| *provider == self.provider);
        if let (Some((_, why)), None) = (only, &preferences.provider) {
            return Some(why);
        }
        if self.max_message < super::SHORTER {
            return Some(SHORT);
        }
        if self.is_loopback() && !preferences.one_machine {
            return Some(LOOPBACK);
        }
        self.is_link_local().then_some(LINK_LOCAL)
    }

    /// The address of an interface that reaches no other machine.
    fn is_loopback(&self) -> bool {
        self.address().map_or(self.domain == "lo", |address| address.is_loopback())
    }

    /// Such an address says nothing without its interface, which differs between machines.
    fn is_link_local(&self) -> bool {
        matches!(self.address(), Some(IpAddr::V6(address)) if address.is_unicast_link_local())
    }

    /// The address of the internet, where there is one.
    fn address(&self) -> Option<IpAddr> {
        match self.format {
            FI_SOCKADDR_IN | FI_SOCKADDR_IN6 => Some(socket_address(&self.source)?.ip()),
            _ => None,
        }
    }

    fn reach(&self) -> Reach {
        Reach { interface: self.domain.clone(), address: self.address(), fabric: self.fabric.clone() }
    }

    /// The best one is the least. Of equals libfabric's order decides.
    fn rank(&self) -> (usize, bool, bool) {
        let place = RANKING.iter().position(|provider| *provider == self.provider);
        let provider = match place {
            Some(place) if !self.is_psm3_over_sockets() => place,
            _ => RANKING.len(),
        };
        (provider, self.is_loopback(), self.format == FI_SOCKADDR_IN6)
    }

    /// Whether it is `psm3` without a card.
    fn is_psm3_over_sockets(&self) -> bool {
        self.provider == "psm3" && PSM3_OVER_SOCKETS.iter().any(|start| self.fabric.starts_with(start))
    }
}

/// The version of libfabric: major and minor number.
///
/// # Errors
/// It is not installed: a sentence that names what to install.
pub fn version() -> Result<(u32, u32), String> {
    let version = libfabric_sys::Library::get()?.version();
    Ok((version >> 16, version & 0xffff))
}

/// What a task would use: opens no endpoint.
///
/// # Errors
/// libfabric is not installed, or nothing reaches the other tasks: a sentence with what there is.
pub fn preview(preferences: &Preferences) -> Result<Choice, String> {
    Ok(pick(&list(preferences)?, preferences)?.1)
}

/// The provider that a task would use, and all addresses that it has here.
///
/// # Errors
/// The errors of [`preview`].
pub fn reaches(preferences: &Preferences) -> Result<(Choice, Vec<Reach>), String> {
    let traits = list(preferences)?;
    let anywhere = Preferences { one_machine: true, ..preferences.clone() };
    // On a host that has the loopback only the provider is the same as on others; another
    // interface may come.
    let (_, choice) = pick(&traits, preferences).or_else(|_| pick(&traits, &anywhere))?;
    let provider = Preferences { provider: Some(choice.provider.clone()), ..anywhere };
    let fits = |traits: &&Traits| traits.obstacle(&provider).is_none();
    let reaches = traits.iter().filter(fits).map(Traits::reach).collect();
    Ok((choice, reaches))
}

/// What opens an endpoint of this provider at these addresses.
///
/// # Errors
/// One of them is gone: a sentence.
pub(super) fn at(provider: &str, reaches: &[Reach]) -> Result<Vec<Info>, String> {
    let infos = ofi::list(None, Some(provider))?;
    let traits: Vec<Traits> = infos.iter().map(Traits::of).collect();
    let place = |reach: &Reach| {
        let is_it = |traits: &Traits| {
            let alike = traits.domain == reach.interface && traits.address() == reach.address;
            let network = reach.address.is_some() || traits.fabric == reach.fabric;
            alike && network && traits.provider == provider && traits.max_message >= super::SHORTER
        };
        traits.iter().position(is_it).ok_or_else(|| {
            let address = reach.address.map_or_else(|| reach.fabric.clone(), |address| address.to_string());
            format!("{provider} has no {address} on {} any more", reach.interface)
        })
    };
    let places = reaches.iter().map(place).collect::<Result<Vec<usize>, String>>()?;
    let mut infos: Vec<Option<Info>> = infos.into_iter().map(Some).collect();
    places.into_iter().filter_map(|at| infos[at].take()).map(injecting).collect()
}

fn list(preferences: &Preferences) -> Result<Vec<Traits>, String> {
    Ok(ofi::list(None, preferences.provider.as_deref())?.iter().map(Traits::of).collect())
}

/// The provider for longer messages that are injected where that is possible.
fn injecting(info: Info) -> Result<Info, String> {
    let traits = Traits::of(&info);
    // Some providers inject longer messages than they say, when they are asked.
    for size in INJECT_SIZES.into_iter().take_while(|size| *size > info.inject_size()) {
        let longer = ofi::list(Some(size), Some(&traits.provider))?
            .into_iter()
            .find(|other| Traits::of(other) == traits);
        if let Some(longer) = longer {
            return Ok(longer);
        }
    }
    Ok(info)
}

fn pick(list: &[Traits], preferences: &Preferences) -> Result<(usize, Choice), String> {
    let mut order: Vec<usize> = (0..list.len()).collect();
    order.sort_by_key(|&at| list[at].rank());
    let mut chosen = None;
    let mut passed_over: Vec<(String, &'static str)> = Vec::new();
    for at in order {
        let why = match list[at].obstacle(preferences) {
            None if chosen.is_none() => {
                chosen = Some(at);
                continue;
            }
            None => WORSE,
            Some(why) => why,
        };
        let entry = (list[at].name(), why);
        if !passed_over.contains(&entry) && chosen.is_none_or(|chosen| list[chosen].name() != entry.0) {
            passed_over.push(entry);
        }
    }
    match chosen {
        Some(at) => {
            Ok((at, Choice { provider: list[at].provider.clone(), chosen: list[at].name(), passed_over }))
        }
        None => Err(nothing(list, preferences)),
    }
}

/// Why nothing can be used: what was asked for, and what there is.
fn nothing(list: &[Traits], preferences: &Preferences) -> String {
    let all = |part: fn(&Traits) -> &String, of: &dyn Fn(&&Traits) -> bool| {
        let mut names: Vec<&str> = list.iter().filter(of).map(|traits| part(traits).as_str()).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let providers = || all(|traits| &traits.provider, &|_| true);
    let Some(provider) = &preferences.provider else {
        return match &preferences.domain {
            Some(domain) => {
                let domains = all(|traits| &traits.domain, &|_| true);
                format!("libfabric has no domain {domain}; it has {domains}")
            }
            None => format!("no provider reaches other machines; there are {}", providers()),
        };
    };
    let own = |traits: &&Traits| traits.provider == *provider;
    if !list.iter().any(|traits| own(&traits)) {
        return format!("libfabric has no provider {provider}; it has {}", providers());
    }
    match &preferences.domain {
        Some(domain) => {
            let domains = all(|traits| &traits.domain, &own);
            format!("provider {provider} has no domain {domain}; it has {domains}")
        }
        None => format!("provider {provider} reaches no other machine"),
    }
}

#[cfg(test)]
#[path = "provider_tests.rs"]
pub(super) mod tests;
