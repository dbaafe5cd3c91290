//! Which network a job on several hosts uses: one rule for libfabric and UDP (docs/networks.md).
//!
//! Each task lists the addresses at which it may be reached ([`listing`]). Tasks of one host with
//! equal lists are one [`Party`]. The parties try each pair of their addresses, side by side
//! ([`trial`], [`probe`]), tell each other what has become of it ([`outcomes`]), and choose alike:
//! what has carried a packet each way between any two parties ([`choose`]). Where there is nothing,
//! they begin again: an interface may come up meanwhile.

mod choose;
mod listing;
mod outcomes;
mod probe;
mod room;
mod rounds;
mod table;
mod tcp;
mod trial;
mod udp;

pub(super) use choose::{Network, Wish};
pub use listing::{Listed, fabric_candidates, udp_interfaces};
pub(super) use listing::{all_interfaces, candidates, device, listed, stated};
pub(super) use probe::{Carrier, Sockets};
pub(super) use room::note_open;

use super::agreed::failed;
use crate::error::Result;
use crate::job::exchange::Exchange;
use crate::job::secret::Secret;
use crate::wire::card::{Candidate, Card};
use crate::wire::frame::Task;
use outcomes::Outcomes;
use probe::Probe;
use rounds::Rounds;
use std::collections::HashMap;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};
use trial::{PATIENCE, Trial};

/// The shortest time between two beginnings.
const ROUND: Duration = Duration::from_millis(2500);

/// The tasks of one host that list the same addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Party {
    /// The first of them, which tries the addresses of the other parties for all.
    pub(super) task: Task,
    pub(super) host_name: String,
    /// The network namespace: parties of one have the same addresses.
    pub(super) net: u128,
    /// Where it answers, with IPv4 and with IPv6.
    pub(super) ports: [u16; 2],
    pub(super) candidates: Vec<Candidate>,
}

/// The parties of the job in the order of their first tasks, and the party of each task.
fn parties(cards: &[Card]) -> (Vec<Party>, Vec<usize>) {
    let mut known: HashMap<(u128, &[Candidate]), usize> = HashMap::new();
    let mut parties: Vec<Party> = Vec::new();
    let mut of = Vec::with_capacity(cards.len());
    for (task, card) in cards.iter().enumerate() {
        let at = *known.entry((card.net, &card.candidates)).or_insert(parties.len());
        if at == parties.len() {
            parties.push(Party {
                task: task as Task,
                host_name: card.host_name.clone(),
                net: card.net,
                ports: card.ports,
                candidates: card.candidates.clone(),
            });
        }
        of.push(at);
    }
    (parties, of)
}

/// What the tasks have agreed upon.
pub(super) struct Chosen {
    /// The networks that are used, the first for sure; with this task's address on each.
    pub(super) networks: Vec<(String, Candidate)>,
    /// Lines: each candidate, and what has become of it; of the job in task 0, of its host
    /// in another task.
    pub(super) table: Vec<String>,
}

/// How this task meets the others.
pub(super) struct Meeting<'a> {
    pub(super) me: Task,
    pub(super) wish: Wish,
    pub(super) secret: Secret,
    pub(super) deadline: Instant,
    /// Where this task answers; `None`: nothing can be tried.
    pub(super) sockets: Option<Sockets>,
    /// Lists the candidates of this task again, publishes its card for this round, waits for all
    /// tasks, and reads theirs.
    #[expect(clippy::type_complexity, reason = "a name would hide what it is")]
    pub(super) again: Box<dyn FnMut(&mut dyn Exchange, u32) -> Result<Vec<Card>> + 'a>,
}

impl Meeting<'_> {
    /// Chooses, with all other tasks. `cards`: what all tasks have published at first.
    ///
    /// # Errors
    /// `LAPI_ERR_CSS_LOAD_FAILED`: there is no network; the detail has the table. Those
    /// of the exchange.
    pub(super) fn choose(mut self, exchange: &mut dyn Exchange, mut cards: Vec<Card>) -> Result<Chosen> {
        let mut rounds = Rounds::new();
        loop {
            let begun = Instant::now();
            let (parties, of) = parties(&cards);
            let parties: Arc<[Party]> = parties.into();
            let own = of[self.me as usize];
            let outcomes = self.try_all(exchange, &parties, own, &mut rounds)?;
            let works = |p: usize, i: usize, q: usize, j: usize| outcomes.work(p, i, q, j);
            let networks = choose::choose(&parties, &self.wish, &works);
            // Task 0 has all of it, and the others what is about their hosts.
            let only = if self.me == 0 { None } else { Some(own) };
            let table = table::lines(&parties, &self.wish, &outcomes, &networks, only);
            if !networks.is_empty() {
                let on =
                    |network: Network| (network.name, parties[own].candidates[network.members[own]].clone());
                return Ok(Chosen { networks: networks.into_iter().map(on).collect(), table });
            }
            let round = rounds.number();
            if rounds.is_last() {
                let what = self.wish.named.as_ref().map_or_else(String::new, |named| format!(" ({named})"));
                let lines: String = table.iter().map(|line| format!("\n  {line}")).collect();
                let why = format!(
                    "no network carries packets between all hosts of the job{what}; what was tried, {round} times:{lines}"
                );
                exchange.note_no_network(&why);
                return Err(failed(why));
            }
            sleep(ROUND.saturating_sub(begun.elapsed()));
            cards = (self.again)(exchange, round + 1)?;
        }
    }

    /// Tries all pairs of addresses, and tells the others.
    fn try_all(
        &mut self,
        exchange: &mut dyn Exchange,
        parties: &Arc<[Party]>,
        own: usize,
        rounds: &mut Rounds,
    ) -> Result<Outcomes> {
        let usable = choose::usable(parties, &self.wish);
        let longest = rounds.begin(match self.sockets {
            Some(Sockets::Tcp(_)) => tcp::needed(most_pairs(&usable)),
            Some(Sockets::Udp(_)) | None => PATIENCE,
        });
        let round = rounds.number();
        let Some(sockets) = self.sockets.as_ref().filter(|_| parties.len() > 1) else {
            return Ok(Outcomes::untried(parties));
        };
        let key = format!("tried{round}");
        let probe = if parties[own].task == self.me {
            let trial = Trial {
                parties: parties.clone(),
                own,
                round,
                secret: self.secret,
                thorough: self.wish.is_several(),
                preferred: choose::preferred(parties, &usable, &self.wish),
                usable,
                longest,
            };
            let probe = Probe::start(trial, sockets.share()?)?;
            exchange.publish(&key, &Outcomes::encode(&probe.outcomes()))?;
            probe
        } else {
            Probe::idle()?
        };
        // Until all are here, this task answers those that try its addresses.
        let all_are_here = exchange.fence(self.deadline);
        drop(probe);
        all_are_here?;
        let mut outcomes = Outcomes::untried(parties);
        for (at, party) in parties.iter().enumerate() {
            outcomes.note(parties, at, &exchange.lookup_published(party.task, &key)?);
        }
        Ok(outcomes)
    }
}

/// The pairs that a party tries, at most; alike for all tasks, since it follows from their cards.
fn most_pairs(usable: &[Vec<usize>]) -> usize {
    let all: usize = usable.iter().map(Vec::len).sum();
    usable.iter().map(|own| own.len() * (all - own.len())).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_party_tries_more_pairs_than_are_counted() {
        assert_eq!(most_pairs(&[vec![0, 1], vec![0], vec![2, 3, 5]]), 9);
        assert_eq!((most_pairs(&[]), most_pairs(&[vec![0; 4]])), (0, 0));
    }

    #[test]
    fn tasks_of_one_host_with_one_list_are_one_party() {
        let candidate = |at: &str| Candidate { address: at.parse().ok(), ..Candidate::default() };
        let card = |net, at| Card { net, candidates: vec![candidate(at)], ..Card::default() };
        let cards = [card(1, "10.0.0.1"), card(2, "10.0.0.2"), card(1, "10.0.0.1"), card(1, "10.1.0.1")];
        let (parties, of) = parties(&cards);
        assert_eq!(of, [0, 1, 0, 2]);
        assert_eq!(parties.iter().map(|party| party.task).collect::<Vec<_>>(), [0, 1, 3]);
    }
}
