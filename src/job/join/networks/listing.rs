//! The candidates of one task: the addresses of its interfaces that the user's variables allow.

use super::Wish;
use super::probe::Carrier;
use super::room::has_room;
use crate::config::{Config, Instances};
use crate::error::Result;
use crate::job::join::agreed::failed;
use crate::transport::fabric::{self, Choice, Preferences, Reach};
use crate::transport::udp::interfaces::{Interface, interfaces};
use crate::wire::card::{CANDIDATES, Candidate};
use crate::wire::rails::RAILS;
use nix::net::if_::if_nametoindex;
use std::net::IpAddr;

/// The interface that MP_EUIDEVICE names, and not how many.
pub(in crate::job::join) fn device(config: &Config) -> Option<&str> {
    config.euidevice.as_deref().filter(|device| !["sn_all", "sn_single"].contains(device))
}

/// The addresses in MP_LAPI_INET_ADDR, `@COUNT:ADDRESS,DEVICE:…`.
pub(in crate::job::join) fn stated(statement: &str) -> Vec<IpAddr> {
    let instances = statement.split_once(':').map_or("", |(_, instances)| instances);
    instances.split(':').filter_map(|instance| instance.split(',').next()?.parse().ok()).collect()
}

/// The variables that restrict the candidates, for messages.
fn named(config: &Config) -> Option<String> {
    let device = device(config).map(|device| format!("MP_EUIDEVICE={device}"));
    let stated = config.inet_addr.as_ref().map(|stated| format!("MP_LAPI_INET_ADDR={stated}"));
    match (device, stated) {
        (Some(device), Some(stated)) => Some(format!("{device} and {stated}")),
        (device, stated) => device.or(stated),
    }
}

impl Wish {
    /// What the user wants: where an interface is named, that alone. `has_rails`: not UDP, which
    /// uses one network.
    pub(in crate::job::join) fn of(config: &Config, has_rails: bool) -> Self {
        let is_named = device(config).is_some() || config.fabric_domain.is_some() && has_rails;
        let each = match config.instances {
            _ if is_named || !has_rails => 1,
            Instances::Max => RAILS,
            Instances::Count(count) => (count as usize).clamp(1, RAILS),
        };
        let all = has_rails && !is_named && config.euidevice.as_deref() == Some("sn_all");
        let domain = config.fabric_domain.as_ref().filter(|_| has_rails);
        let domain = domain.map(|domain| format!("LAPI_FABRIC_DOMAIN={domain}"));
        let names: Vec<String> = domain.into_iter().chain(named(config)).collect();
        Self { all, each, named: (!names.is_empty()).then(|| names.join(" and ")) }
    }
}

/// What an address is worth to the user.
fn is_wanted(config: &Config, interface: &str, address: IpAddr) -> bool {
    device(config).is_none_or(|device| device == interface)
        && config.inet_addr.as_deref().is_none_or(|statement| stated(statement).contains(&address))
}

/// The interfaces with an address that the user's variables allow: of UDP.
///
/// # Errors
/// `LAPI_ERR_CSS_LOAD_FAILED`: what they name is not there; the detail has what is.
pub(in crate::job::join) fn listed(config: &Config, all: Vec<Interface>) -> Result<Vec<Interface>> {
    let mut names: Vec<String> = all.iter().map(|interface| interface.name.clone()).collect();
    names.sort();
    names.dedup();
    let wanted = |interface: &Interface| is_wanted(config, &interface.name, interface.address);
    let mut found: Vec<Interface> = all.into_iter().filter(wanted).collect();
    // An interface that is down, or has no address yet, may come.
    let may_come = device(config).is_some_and(|device| if_nametoindex(device).is_ok());
    if let Some(named) = named(config).filter(|_| found.is_empty() && !may_come) {
        let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(failed(format!(
            "udp: {named}: no such interface with an address is up; there are: {there}"
        )));
    }
    // The other tasks learn of it: those with another MP_UDP_PACKET_SIZE use the same length.
    let most = config.udp_packet_size.min(u16::MAX.into()) as u16;
    found.iter_mut().for_each(|interface| interface.longest = interface.longest.min(most));
    Ok(found)
}

/// The interfaces of which UDP would use one here. `one_machine`: all tasks of the job are
/// on this machine.
///
/// # Errors
/// `LAPI_ERR_CSS_LOAD_FAILED`: there is none; the detail names what is wanted and what there is.
pub fn udp_interfaces(config: &Config, one_machine: bool) -> Result<Vec<Interface>> {
    let mut all = all_interfaces()?;
    let names: Vec<String> = all.iter().map(|interface| interface.name.clone()).collect();
    if named(config).is_none() {
        all.retain(|interface| interface.is_loopback == one_machine);
    }
    let found = listed(config, all)?;
    if found.is_empty() {
        let what = named(config).unwrap_or_else(|| "a network that reaches other hosts".to_owned());
        return Err(failed(format!(
            "udp: {what}: no such interface with an address is up; there are: {}",
            names.join(", ")
        )));
    }
    Ok(found)
}

/// All interfaces of this host.
pub(in crate::job::join) fn all_interfaces() -> Result<Vec<Interface>> {
    interfaces().map_err(|reason| failed(format!("no list of interfaces: {reason}")))
}

/// As candidates.
pub(in crate::job::join) fn candidates(interfaces: &[Interface]) -> Vec<Candidate> {
    let candidate = |interface: &Interface| Candidate {
        interface: interface.name.clone(),
        address: Some(interface.address),
        network: interface.network.clone(),
    };
    interfaces.iter().map(candidate).take(CANDIDATES).collect()
}

/// What libfabric offers.
pub struct Listed {
    /// The provider, and why not the others.
    pub choice: Choice,
    /// The addresses that the provider has here.
    pub candidates: Vec<Candidate>,
    pub(in crate::job::join) carrier: Carrier,
}

/// The candidates of libfabric: those of the provider that is used.
///
/// # Errors
/// `LAPI_ERR_CSS_LOAD_FAILED`: there is no libfabric or provider, or not what a variable names.
/// `LAPI_ERR_MEMORY_EXHAUSTED`: the limit of the address space leaves too little for libfabric.
pub fn fabric_candidates(config: &Config, preferences: &Preferences) -> Result<Listed> {
    has_room()?;
    let (choice, reaches) = match fabric::reaches(preferences) {
        // The interface that is named is down: it may come.
        Err(_) if preferences.domain.as_deref().is_some_and(|name| if_nametoindex(name).is_ok()) => {
            let (choice, _) =
                fabric::reaches(&Preferences { domain: None, ..preferences.clone() }).map_err(failed)?;
            (choice, Vec::new())
        }
        found => found.map_err(failed)?,
    };
    let all = all_interfaces()?;
    let on = |address: IpAddr| all.iter().position(|interface| interface.address == address);
    let candidate = |reach: Reach| match reach.address {
        Some(address) => {
            let place = on(address)?;
            let stated = config.inet_addr.as_deref().map(stated);
            let is_stated = stated.is_none_or(|stated| stated.contains(&address));
            let network = all[place].network.clone();
            is_stated
                .then_some((place, Candidate { interface: reach.interface, address: Some(address), network }))
        }
        None => {
            let card = Candidate { interface: reach.interface, address: None, network: reach.fabric };
            Some((usize::MAX, card))
        }
    };
    let mut found: Vec<(usize, Candidate)> = reaches.into_iter().filter_map(candidate).collect();
    // In the system's order, and not in libfabric's, which depends on speeds that
    // interfaces pretend.
    found.sort_by_key(|(place, _)| *place);
    let mut candidates: Vec<Candidate> = Vec::new();
    for (_, candidate) in found {
        if !candidates.contains(&candidate) && candidates.len() < CANDIDATES {
            candidates.push(candidate);
        }
    }
    let carrier = match choice.network() {
        fabric::Carrier::Tcp => Carrier::Tcp,
        fabric::Carrier::Udp => Carrier::Udp,
        fabric::Carrier::Card => Carrier::None,
    };
    Ok(Listed { choice, candidates, carrier })
}

#[cfg(test)]
#[path = "listing_tests.rs"]
mod tests;
