//! libfabric as the network of a job: one endpoint of each task, or one for each rail.

use super::Joining;
use super::agreed::{Agreed, failed, groups};
use super::networks::{device, note_open};
use super::rails::{self, process};
use crate::base::process::Process;
use crate::config::{Config, NetSecurity};
use crate::error::Result;
use crate::transport::Transport;
use crate::transport::fabric::{
    Choice, FabricSettings, FabricTransport, Own, Preferences, Reach, difference, open_at,
};
use crate::transport::rails::Rails;
use crate::wire::card::{Candidate, Card};
use std::collections::BTreeMap;

/// The endpoints of this task on these networks.
pub(super) fn open(
    place: &Joining<'_>,
    choice: &Choice,
    networks: &[(String, Candidate)],
) -> Result<Vec<Own>> {
    let Joining { config, identity, .. } = *place;
    let preferences = network_preferences(config, identity.is_on_one_machine());
    let settings = FabricSettings { me: identity.task, tasks: identity.tasks, preferences };
    let reach = |(name, candidate): &(String, Candidate)| {
        let Candidate { interface, address, network } = candidate.clone();
        (Reach { interface, address, fabric: network }, name.clone())
    };
    open_at(settings, choice, networks.iter().map(reach).collect()).inspect(|_| note_open())
}

/// Which provider the user wants. `one_machine`: all tasks of the job are on this machine.
pub fn network_preferences(config: &Config, one_machine: bool) -> Preferences {
    Preferences {
        provider: config.fabric_provider.clone(),
        domain: config.fabric_domain.clone().or_else(|| device(config).map(str::to_owned)),
        one_machine,
        polls: config.fabric_polls,
    }
}

/// Lines about the choice, for MP_INFOLEVEL 2.
fn notes(own: &[Own], exchange: &str) -> Vec<String> {
    let Some(first) = own.first() else { return Vec::new() };
    let choice = &first.choice;
    let Choice { provider, .. } = choice;
    let used = format!("{provider}, domain {}, fabric {}", first.interface, first.network);
    let mut notes = vec![format!("network: {used}; addresses by {exchange}")];
    if own.len() > 1 {
        let rails = own.iter().map(|rail| (rail.network.clone(), rail.interface.clone()));
        notes.push(format!("network: {}", rails::listed(&rails.collect::<Vec<_>>())));
    }
    // The provider's own addresses are in the table of candidates.
    let mut known = vec![provider.as_str()];
    for (name, why) in &choice.passed_over {
        let other = name.split(", ").next().unwrap_or_default();
        if !known.contains(&other) {
            known.push(other);
            notes.push(format!("network: skipped {other}: {why}"));
        }
    }
    notes
}

/// Who wants encryption learns that there is none here.
fn warn(place: &Joining<'_>) {
    let Joining { config, identity, log, .. } = *place;
    if config.net_security == NetSecurity::Encrypt && identity.task == 0 && config.info_level > 0 {
        log.line(format_args!(
            "attention: LAPI_NET_SECURITY=encrypt: libfabric's packets are not encrypted; those of MP_EUILIB=ip are"
        ));
    }
}

/// What the other tasks need to know of these endpoints.
pub(super) fn publish(own: &[Own], card: Card) -> Card {
    Card {
        provider: own.first().map(|own| own.choice.provider.clone()).unwrap_or_default(),
        addresses: own.iter().map(|own| own.published.clone()).collect(),
        networks: own.iter().map(|own| own.network.clone()).collect(),
        ..card
    }
}

/// Tasks with a network in common understand each other there.
fn understand(cards: &[Card]) -> Result<()> {
    let mut first: BTreeMap<&str, (usize, &[u8])> = BTreeMap::new();
    for (task, card) in cards.iter().enumerate() {
        for (network, address) in card.networks.iter().zip(&card.addresses) {
            let &mut (other, published) = first.entry(network).or_insert((task, address));
            let name = format!("task {other} on {}", cards[other].host_name);
            if let Some(why) = difference(&name, published, address) {
                return Err(failed(format!("task {task} on {}: {why}", card.host_name)));
            }
        }
    }
    Ok(())
}

/// The transport over the endpoints, and lines about it for MP_INFOLEVEL 2.
pub(super) fn join_all(
    own: Vec<Own>,
    place: &Joining<'_>,
    agreed: Agreed,
) -> Result<(Box<dyn Transport>, Vec<String>)> {
    let Joining { identity, .. } = *place;
    let Agreed { cards, exchange, secret, near } = agreed;
    understand(&cards)?;
    let network = own.first().map_or("", |own| &*own.network);
    rails::warn(place, own.len(), network, "the tasks have one rail in common");
    warn(place);
    let notes = notes(&own, exchange.name());
    let groups = groups(&cards);
    let processes: Vec<Process> = cards.iter().map(process).collect();
    let addresses = rails::Addresses::new(cards, exchange);
    let coalesces = place.config.coalesce && own.iter().all(|own| own.choice.sends_by_system_calls());
    let (mut far, mut links) = (Vec::new(), Vec::new());
    for own in own {
        links.push((own.network.clone(), own.interface.clone()));
        let directory = Box::new(addresses.on(&own.network));
        let mut rail = FabricTransport::new(own, &secret, directory)?;
        if place.replaces {
            rail.replaces_another();
        }
        rail.watch_others(groups.clone(), processes.clone(), near.neighbours());
        far.push(rail);
    }
    let transport = match far.pop() {
        Some(one) if far.is_empty() => near.join(one, coalesces)?,
        last => {
            far.extend(last);
            let (states, messages) = rails::links(place, links);
            let far = Rails::new(far, identity.task, identity.tasks, states, messages)?;
            near.join(far, coalesces)?
        }
    };
    Ok((transport, notes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a task has published whose messages have at most `longest` bytes.
    fn card(host: &str, longest: u32, version: u32, network: &str) -> Card {
        let numbers = [1, 2, version, longest, 64];
        let address = numbers.iter().flat_map(|number: &u32| number.to_le_bytes()).chain([9; 16]).collect();
        Card {
            host_name: host.to_owned(),
            addresses: vec![address],
            networks: vec![network.to_owned()],
            ..Card::default()
        }
    }

    #[test]
    fn tasks_whose_messages_differ_in_length_do_not_join() {
        let equal = card("one", 33_792, 1, "10.0.0.0/8");
        understand(&[equal.clone(), card("two", 33_792, 1, "10.0.0.0/8")]).expect("they are equal");
        let shorter = card("two", 16_384, 1, "10.0.0.0/8");
        let why = understand(&[equal.clone(), equal.clone(), shorter]).expect_err("another length").detail;
        let all = ["task 2 on two", "16384", "task 0 on one 33792", "FI_OFI_RXM_BUFFER_SIZE=33792"];
        assert!(all.iter().all(|part| why.contains(part)), "{why}");
        let later = card("two", 33_792, 2, "10.0.0.0/8");
        let why = understand(&[equal.clone(), later]).expect_err("another version").detail;
        assert!(why.contains("task 1 on two") && why.contains("another version"), "{why}");
        understand(&[equal, card("two", 16_384, 1, "192.168.0.0/16")])
            .expect("they have no network in common");
    }
}
