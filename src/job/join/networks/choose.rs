//! The choice itself, from what all tasks know: a pure function, so that all choose alike.

use super::Party;
use crate::wire::card::Candidate;
use crate::wire::rails::RAILS;
use std::collections::HashMap;
use std::net::IpAddr;

/// Combinations of addresses that are looked at, at most, where the hosts have no subnet in common.
const COMBINATIONS: usize = 100_000;

/// How many networks the user wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::job::join) struct Wish {
    /// All networks; otherwise the best one.
    pub(in crate::job::join) all: bool,
    /// At most this number of interfaces on a network.
    pub(in crate::job::join) each: usize,
    /// The variables that restrict the candidates, for messages.
    pub(in crate::job::join) named: Option<String>,
}

impl Wish {
    /// Several networks, or several interfaces on one.
    pub(super) fn is_several(&self) -> bool {
        self.all || self.each > 1
    }
}

/// A network of the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::job::join) struct Network {
    /// The network's subnet, or subnets.
    pub(in crate::job::join) name: String,
    /// By party: which of its candidates is on it.
    pub(in crate::job::join) members: Vec<usize>,
}

/// Why a candidate is none after all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// This party has the address, too, and is on another host.
    AlsoOf(usize),
    /// The address reaches its own host only.
    OwnHost,
}

/// By party and candidate: what keeps it from use.
pub(super) fn obstacles(parties: &[Party], wish: &Wish) -> Vec<Vec<Option<Obstacle>>> {
    let one_host = parties.iter().all(|party| party.net == parties[0].net);
    let mut owners: HashMap<IpAddr, Vec<usize>> = HashMap::new();
    for (at, party) in parties.iter().enumerate() {
        for address in party.candidates.iter().filter_map(|candidate| candidate.address) {
            let owners = owners.entry(address).or_default();
            // Two are enough to tell any third one.
            if owners.len() < 2 && owners.iter().all(|other| parties[*other].net != party.net) {
                owners.push(at);
            }
        }
    }
    let of = |party: &Party, candidate: &Candidate| {
        let address = candidate.address?;
        let other = owners[&address].iter().find(|other| parties[**other].net != party.net);
        if let Some(other) = other {
            return Some(Obstacle::AlsoOf(*other));
        }
        // On one host it is the shortest way, but no interface that could be one of several.
        let elsewhere = |other: &Candidate| other.address.is_none_or(|address| !address.is_loopback());
        let is_in_the_way = !one_host || wish.is_several() && party.candidates.iter().any(elsewhere);
        (address.is_loopback() && is_in_the_way).then_some(Obstacle::OwnHost)
    };
    parties
        .iter()
        .map(|party| party.candidates.iter().map(|candidate| of(party, candidate)).collect())
        .collect()
}

/// By party: its candidates that may be used, the best one first.
pub(super) fn usable(parties: &[Party], wish: &Wish) -> Vec<Vec<usize>> {
    let obstacles = obstacles(parties, wish);
    let of = |(party, obstacles): (&Party, &Vec<Option<Obstacle>>)| {
        let is_usable = |at: &usize| obstacles[*at].is_none();
        let mut usable: Vec<usize> = (0..obstacles.len()).filter(is_usable).collect();
        let address = |at: usize| party.candidates[at].address;
        usable.sort_by_key(|at| {
            let is_loopback = address(*at).is_some_and(|address| address.is_loopback());
            (address(*at).is_some_and(|address| address.is_ipv6()), !is_loopback)
        });
        usable
    };
    parties.iter().zip(&obstacles).map(of).collect()
}

/// Chooses; nothing: no network carries packets between all parties. `works(p, i, q, j)`: candidate
/// `i` of party `p` and candidate `j` of party `q` have carried packets to each other.
///
/// First the subnets that all parties have, in the order of the first party's candidates. Where
/// none of these works, the first combination of addresses that does.
pub(super) fn choose(
    parties: &[Party],
    wish: &Wish,
    works: &dyn Fn(usize, usize, usize, usize) -> bool,
) -> Vec<Network> {
    let usable = usable(parties, wish);
    let connects = |network: &Network| {
        let members = network.members.iter().copied().enumerate();
        let among =
            |(p, i)| network.members.iter().copied().enumerate().skip(p + 1).all(|(q, j)| works(p, i, q, j));
        members.into_iter().all(among)
    };
    let mut chosen: Vec<Network> = Vec::new();
    for (subnet, network) in common(parties, &usable, wish) {
        let of_first_party = |of: &Network| &parties[0].candidates[of.members[0]];
        let fits = match chosen.first() {
            None => true,
            Some(_) if wish.all => true,
            Some(first) => wish.each > 1 && subnet == of_first_party(first).network,
        };
        let known = |other: &Network| of_first_party(other).interface == of_first_party(&network).interface;
        if fits && chosen.len() < RAILS && !chosen.iter().any(known) && connects(&network) {
            chosen.push(network);
        }
    }
    if chosen.is_empty() {
        chosen.extend(combination(parties, &usable, works));
    }
    chosen
}

/// The network that is used if it works: by party, its candidate there. Nothing: the parties have
/// no subnet in common.
pub(super) fn preferred(parties: &[Party], usable: &[Vec<usize>], wish: &Wish) -> Option<Vec<usize>> {
    common(parties, usable, wish).into_iter().next().map(|(_, network)| network.members)
}

/// The subnets that all parties have, one network for each of the interfaces that all have there.
fn common(parties: &[Party], usable: &[Vec<usize>], wish: &Wish) -> Vec<(String, Network)> {
    let of = |(party, usable): (&Party, &Vec<usize>)| {
        let mut places: Vec<((String, usize), usize)> = Vec::new();
        for at in usable {
            let Candidate { interface, network, .. } = &party.candidates[*at];
            let before = places.iter().filter(|((other, _), _)| other == network);
            let is_known = before.clone().any(|(_, other)| party.candidates[*other].interface == *interface);
            let number = before.count();
            if !is_known && number < wish.each {
                places.push(((network.clone(), number), *at));
            }
        }
        places
    };
    let all: Vec<Vec<((String, usize), usize)>> = parties.iter().zip(usable).map(of).collect();
    let maps: Vec<HashMap<_, _>> = all.iter().map(|places| places.iter().cloned().collect()).collect();
    let network = |(place, _): &((String, usize), usize)| {
        let members = maps.iter().map(|places| places.get(place).copied()).collect::<Option<Vec<usize>>>()?;
        let (subnet, number) = place;
        let name = if *number == 0 { subnet.clone() } else { format!("{subnet} #{}", number + 1) };
        Some((subnet.clone(), Network { name, members }))
    };
    all[0].iter().filter_map(network).collect()
}

/// The first combination of candidates, one of each party, any two of which work: by
/// depth-first search.
fn combination(
    parties: &[Party],
    usable: &[Vec<usize>],
    works: &dyn Fn(usize, usize, usize, usize) -> bool,
) -> Option<Network> {
    // By party: how many of its candidates have been tried with those of the parties before it.
    let mut tried = vec![0];
    for _ in 0..COMBINATIONS {
        let party = tried.len() - 1;
        let member = |party: usize| usable[party][tried[party] - 1];
        let Some(&next) = usable[party].get(tried[party]) else {
            tried.pop();
            if tried.is_empty() {
                return None;
            }
            continue;
        };
        let fits = (0..party).all(|before| works(before, member(before), party, next));
        tried[party] += 1;
        if !fits {
            continue;
        }
        if tried.len() < parties.len() {
            tried.push(0);
            continue;
        }
        let members: Vec<usize> = (0..parties.len()).map(|party| usable[party][tried[party] - 1]).collect();
        let mut subnets: Vec<&str> = Vec::new();
        for (party, member) in parties.iter().zip(&members) {
            let subnet = party.candidates[*member].network.as_str();
            if !subnets.contains(&subnet) {
                subnets.push(subnet);
            }
        }
        let more = if subnets.len() > 3 { ", ..." } else { "" };
        subnets.truncate(3);
        return Some(Network { name: format!("routed: {}{more}", subnets.join(", ")), members });
    }
    None
}

#[cfg(test)]
#[path = "choose_tests.rs"]
mod tests;
