//! Several rails: how many are wanted, which of them all tasks have, and their links.

use super::Joining;
use super::agreed::failed;
use super::networks::device;
use crate::base::process::Process;
use crate::base::sync::Mutex;
use crate::config::Instances;
use crate::error::{self, Result};
use crate::job::exchange::Exchange;
use crate::transport::directory::Directory;
use crate::transport::link_state::{LinkState, Links};
use crate::transport::rails::LinkMessages;
use crate::wire::card::Card;
use crate::wire::frame::Task;
use std::sync::Arc;

/// What a card is published under.
pub(super) const CARD: &str = "card";

/// Attention: the kernel's link state is not available.
const NO_LINK_STATE: i32 = 486;
/// Attention: a device is named, so that there is one rail.
const NAMED_DEVICE: i32 = 490;
/// Attention: there is one network or interface only.
const ONE_RAIL: i32 = 485;

/// How rails are named: their networks and interfaces.
pub(super) fn listed(rails: &[(String, String)]) -> String {
    let names: Vec<String> =
        rails.iter().map(|(network, interface)| format!("{interface} ({network})")).collect();
    format!("{} rails: {}", rails.len(), names.join(", "))
}

/// Attention messages, when failover was asked for and is not possible: `why`, unless a
/// device is named.
pub(super) fn warn(place: &Joining<'_>, rails: usize, network: &str, why: &str) {
    let Joining { config, identity, .. } = *place;
    let on_all = config.euidevice.as_deref() == Some("sn_all");
    let several = config.instances != Instances::Count(1) || on_all;
    if !several || rails > 1 || identity.task != 0 || config.info_level < 1 {
        return;
    }
    if config.fabric_domain.is_some() || device(config).is_some() {
        attention(place, NAMED_DEVICE, &format!("one rail, {network}"));
    } else {
        attention(place, ONE_RAIL, &format!("{why}, {network}"));
    }
}

fn attention(place: &Joining<'_>, code: i32, what: &str) {
    if let Some(entry) = error::lookup(code) {
        place.log.line(format_args!("attention: {entry}: {what}"));
    }
}

/// The state of the links of these networks and interfaces, and the messages about them.
pub(super) fn links(
    place: &Joining<'_>,
    rails: Vec<(String, String)>,
) -> (Box<dyn Links>, Option<LinkMessages>) {
    let verbose = place.config.info_level >= 1;
    let interfaces = rails.iter().map(|(_, interface)| Some(interface_of(interface))).collect();
    let names = rails.into_iter().map(|(network, interface)| format!("{interface} ({network})"));
    let messages = verbose.then(|| LinkMessages { names: names.collect(), log: place.log.clone() });
    match LinkState::open(interfaces) {
        Ok(links) => (Box::new(links), messages),
        Err(why) => {
            if verbose && place.identity.task == 0 {
                attention(place, NO_LINK_STATE, &format!("rtnetlink: {why}"));
            }
            (Box::new(Unknown), messages)
        }
    }
}

/// The network interface of a domain: libfabric names cards of InfiniBand by other names.
fn interface_of(domain: &str) -> String {
    let folder = std::fs::read_dir(format!("/sys/class/infiniband/{domain}/device/net"));
    let first = folder.ok().and_then(|mut entries| entries.next()?.ok());
    first.map_or_else(|| domain.to_owned(), |entry| entry.file_name().to_string_lossy().into_owned())
}

/// Without the kernel's view of the links, the providers alone report failures.
struct Unknown;

impl Links for Unknown {
    fn poll(&mut self) -> Option<u8> {
        None
    }
}

/// The process of the task with this card.
pub(super) fn process(card: &Card) -> Process {
    Process { pid: card.pid, started: card.started }
}

/// What all tasks have published.
pub(super) struct Addresses(Arc<Mutex<Published>>);

struct Published {
    /// When this task joined.
    start: Vec<Card>,
    /// Where the cards of processes are found that replace others later.
    exchange: Option<Box<dyn Exchange>>,
}

impl Addresses {
    pub(super) fn new(start: Vec<Card>, exchange: Box<dyn Exchange>) -> Self {
        let exchange = exchange.follows().then_some(exchange);
        Self(Arc::new(Mutex::new(Published { start, exchange })))
    }

    /// The addresses on one network.
    pub(super) fn on(&self, network: &str) -> OnNetwork {
        OnNetwork { all: self.0.clone(), network: network.to_owned() }
    }
}

impl Published {
    /// What the task has published since this task joined.
    fn present(&mut self, peer: Task) -> Option<Card> {
        let bytes = self.exchange.as_mut()?.lookup(peer, CARD).ok()?;
        Card::decode(&bytes)
    }
}

/// The addresses of all tasks' endpoints on one network.
pub(super) struct OnNetwork {
    all: Arc<Mutex<Published>>,
    network: String,
}

impl Directory<Vec<u8>> for OnNetwork {
    fn address_of(&mut self, peer: Task) -> Result<Vec<u8>> {
        let mut all = self.all.lock();
        let present = all.present(peer);
        let card = present.as_ref().or_else(|| all.start.get(peer as usize));
        let address = card.and_then(|card| {
            let at = card.networks.iter().position(|name| *name == self.network)?;
            card.addresses.get(at).cloned()
        });
        address.ok_or_else(|| failed(format!("task {peer} has published no address on {}", self.network)))
    }

    fn process_of(&mut self, peer: Task) -> Option<Process> {
        self.all.lock().present(peer).as_ref().map(process)
    }

    fn has_died(&mut self, peer: Task) -> bool {
        self.all.lock().exchange.as_ref().is_some_and(|exchange| exchange.has_died(peer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// No process is replaced.
    struct Nothing;

    impl Exchange for Nothing {
        fn name(&self) -> &'static str {
            "nothing"
        }

        fn publish(&mut self, _: &str, _: &[u8]) -> Result<()> {
            Ok(())
        }

        fn fence(&mut self, _: Instant) -> Result<()> {
            Ok(())
        }

        fn lookup(&mut self, task: u32, _: &str) -> Result<Vec<u8>> {
            panic!("task {task} is not looked for")
        }
    }

    fn card(networks: &[&str]) -> Card {
        Card {
            networks: networks.iter().map(|network| (*network).to_owned()).collect(),
            addresses: networks.iter().map(|network| network.as_bytes().to_vec()).collect(),
            ..Card::default()
        }
    }

    #[test]
    fn addresses_are_those_on_the_network() {
        let cards = [card(&["c", "b", "a"]), card(&["c", "a"]), card(&["d", "c", "a"])];
        let addresses = Addresses::new(cards.into(), Box::new(Nothing));
        for task in 0..3 {
            assert_eq!(addresses.on("c").address_of(task).expect("an address"), b"c");
        }
        assert!(addresses.on("c").address_of(3).is_err());
        assert!(addresses.on("b").address_of(1).is_err());
    }
}
