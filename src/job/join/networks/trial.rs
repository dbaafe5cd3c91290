//! What is tried: pairs of addresses, the questions and answers about them, and what has become
//! of each so far.
//!
//! A question names the pair of addresses and has a tag that follows from the job's secret; the
//! answer, too. Over TCP a connection names the pair, and both sides prove that they know the
//! secret. A pair works when the answer, or the proof, has come back. Each party asks, so that a
//! filter that lets only one of them begin is noticed.

use super::Party;
use super::outcomes::{Pair, SILENT, UNTRIED, WORKS, pairs};
use crate::job::secret::{self, Secret};
use crate::job::start_up::greeting::{SUBJECT, Subject};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a pair may take.
pub(super) const PATIENCE: Duration = Duration::from_millis(3000);
/// How long a pair may take that another one is to replace. TCP repeats the first packet of a
/// connection after a second: one lost packet is no reason for another network.
pub(super) const REPEATED: Duration = Duration::from_millis(1500);
/// How long pairs may take that are not needed: the preferred network works with all parties.
const GRACE: Duration = Duration::from_millis(500);
/// How long a thread sleeps before it looks whether it is to end.
pub(super) const LOOK_AROUND: Duration = Duration::from_millis(10);

/// Bytes of a question or an answer.
pub(super) const LENGTH: usize = 40;
const MAGIC: [u8; 8] = *b"LAPI try";
/// Bytes of a message before its tag.
const HEAD: usize = 24;

/// What is to be tried.
pub(super) struct Trial {
    pub(super) parties: Arc<[Party]>,
    pub(super) own: usize,
    pub(super) round: u32,
    pub(super) secret: Secret,
    /// All pairs are wanted, and not one with each party.
    pub(super) thorough: bool,
    /// By party: the candidates that may be used.
    pub(super) usable: Vec<Vec<usize>>,
    /// By party: its candidate on the network that is used if it works.
    pub(super) preferred: Option<Vec<usize>>,
    /// The longest time that may be spent.
    pub(super) longest: Duration,
}

/// A question or an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) is_answer: bool,
    /// The party that asks, and which of its candidates.
    pub(super) asks: (usize, usize),
    /// The party that is asked, and which of its candidates.
    pub(super) asked: (usize, usize),
}

impl Message {
    fn parse(bytes: &[u8; HEAD]) -> Self {
        let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Self {
            is_answer: bytes[12] == 1,
            asks: (number(16) as usize, bytes[13].into()),
            asked: (number(20) as usize, bytes[14].into()),
        }
    }
}

impl Trial {
    /// The pairs to be tried.
    pub(super) fn pairs(&self) -> Vec<Pair> {
        let is_usable = |party: usize, candidate| self.usable[party].contains(&candidate);
        let fits = |pair: &Pair| {
            let (own, other) = (self.own_address(pair), self.other_address(pair));
            let alike = own.zip(other).is_some_and(|(own, other)| own.is_ipv4() == other.is_ipv4());
            alike && is_usable(self.own, pair.own) && is_usable(pair.party, pair.other)
        };
        pairs(&self.parties, self.own).filter(fits).collect()
    }

    /// The pairs, the promising ones first where not all can be tried at a time: those of one
    /// subnet, then the others; of each, one with every own candidate in turn, so that a network
    /// that is silent delays no other.
    pub(super) fn queue(&self) -> Vec<Pair> {
        let network = |party: usize, candidate: usize| &self.parties[party].candidates[candidate].network;
        let mut before: HashMap<(bool, usize), usize> = HashMap::new();
        let mut queue: Vec<((bool, usize), Pair)> = Vec::new();
        for pair in self.pairs() {
            let is_routed = network(self.own, pair.own) != network(pair.party, pair.other);
            let turn = before.entry((is_routed, pair.own)).or_default();
            queue.push(((is_routed, *turn), pair));
            *turn += 1;
        }
        queue.sort_by_key(|(turn, _)| *turn);
        queue.into_iter().map(|(_, pair)| pair).collect()
    }

    fn is_preferred(&self, pair: &Pair) -> bool {
        let of =
            |preferred: &Vec<usize>| preferred[self.own] == pair.own && preferred[pair.party] == pair.other;
        self.preferred.as_ref().is_some_and(of)
    }

    /// The own address.
    pub(super) fn own_address(&self, pair: &Pair) -> Option<IpAddr> {
        self.parties[self.own].candidates[pair.own].address
    }

    fn other_address(&self, pair: &Pair) -> Option<IpAddr> {
        self.parties[pair.party].candidates[pair.other].address
    }

    /// Where a candidate of a party answers.
    pub(super) fn place(&self, party: usize, candidate: usize) -> Option<SocketAddr> {
        let party = self.parties.get(party)?;
        let address = party.candidates.get(candidate)?.address?;
        Some(SocketAddr::new(address, party.ports[usize::from(address.is_ipv6())]))
    }

    /// The question whether a pair works.
    pub(super) fn question(&self, pair: &Pair) -> [u8; LENGTH] {
        let (asks, asked) = ((self.own, pair.own), (pair.party, pair.other));
        self.encode(&Message { is_answer: false, asks, asked })
    }

    /// The bytes of a message.
    pub(super) fn encode(&self, message: &Message) -> [u8; LENGTH] {
        let head = self.head(message);
        let tag = secret::derive(&self.secret, &[b"try", &head]);
        let mut bytes = [0; LENGTH];
        bytes[..HEAD].copy_from_slice(&head);
        bytes[HEAD..].copy_from_slice(&tag);
        bytes
    }

    fn head(&self, message: &Message) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.round.to_le_bytes());
        bytes[12] = message.is_answer.into();
        bytes[13] = message.asks.1 as u8;
        bytes[14] = message.asked.1 as u8;
        bytes[16..20].copy_from_slice(&(message.asks.0 as u32).to_le_bytes());
        bytes[20..24].copy_from_slice(&(message.asked.0 as u32).to_le_bytes());
        bytes
    }

    /// A message of this job and round.
    pub(super) fn decode(&self, bytes: &[u8]) -> Option<Message> {
        let bytes: &[u8; LENGTH] = bytes.try_into().ok()?;
        let message = Message::parse(bytes.first_chunk()?);
        (self.encode(&message) == *bytes).then_some(message)
    }

    /// What a connection is for that tries a pair.
    pub(super) fn subject(&self, pair: &Pair) -> Subject {
        let mut subject = [0; SUBJECT];
        subject[..HEAD].copy_from_slice(&self.question(pair)[..HEAD]);
        subject
    }

    /// Whether a connection tries an address of this party, in this round.
    pub(super) fn is_asked(&self, subject: &Subject) -> bool {
        let message = subject.first_chunk().map(Message::parse);
        message.is_some_and(|message| {
            !message.is_answer && message.asked.0 == self.own && self.head(&message) == subject[..HEAD]
        })
    }

    /// The answer to a question to this party, with where it is to go; `None`: these bytes are no
    /// such question.
    pub(super) fn answer(&self, question: &[u8]) -> Option<([u8; LENGTH], SocketAddr)> {
        let question = self.decode(question).filter(|message| !message.is_answer)?;
        let to = self.place(question.asks.0, question.asks.1).filter(|_| question.asked.0 == self.own)?;
        Some((self.encode(&Message { is_answer: true, ..question }), to))
    }

    /// The pair to which these bytes are the answer.
    pub(super) fn answered(&self, bytes: &[u8]) -> Option<Pair> {
        let answer = self.decode(bytes).filter(|message| message.is_answer)?;
        let (party, other) = answer.asked;
        (answer.asks.0 == self.own).then_some(Pair { own: answer.asks.1, party, other })
    }
}

/// What has become of the pairs so far.
pub(super) struct Progress {
    outcomes: HashMap<Pair, u8>,
    open: usize,
    /// By party: whether one of its pairs works.
    reached: Vec<bool>,
    /// By party: whether its pair on the preferred network works.
    preferred: Vec<bool>,
    begun: Instant,
    limit: Duration,
    thorough: bool,
}

impl Progress {
    /// `limit`: how long all pairs may take.
    pub(super) fn new(trial: &Trial, limit: Duration) -> Self {
        let outcomes: HashMap<Pair, u8> = trial.pairs().into_iter().map(|pair| (pair, SILENT)).collect();
        let reached: Vec<bool> = (0..trial.parties.len()).map(|party| party == trial.own).collect();
        let (open, preferred, thorough) = (outcomes.len(), reached.clone(), trial.thorough);
        Self { outcomes, open, reached, preferred, begun: Instant::now(), limit, thorough }
    }

    /// An answer has come.
    pub(super) fn works(&mut self, trial: &Trial, pair: Pair) {
        if let Some(outcome) = self.outcomes.get_mut(&pair).filter(|outcome| **outcome != WORKS) {
            *outcome = WORKS;
            self.open -= 1;
            self.reached[pair.party] = true;
            self.preferred[pair.party] |= trial.is_preferred(&pair);
        }
    }

    /// The system has refused it. It may be tried again.
    pub(super) fn refused(&mut self, pair: Pair, why: &io::Error) {
        let number = why.raw_os_error().and_then(|number| u8::try_from(number).ok());
        if let Some(outcome) = self.outcomes.get_mut(&pair).filter(|outcome| **outcome != WORKS) {
            *outcome = number.filter(|number| ![UNTRIED, WORKS].contains(number)).unwrap_or(SILENT);
        }
    }

    /// Counts one pair less as open: it will not be tried again.
    pub(super) fn given_up(&mut self) {
        self.open -= 1;
    }

    pub(super) fn is_open(&self, pair: &Pair) -> bool {
        self.outcomes.get(pair).is_some_and(|outcome| *outcome != WORKS)
    }

    /// Nothing more is waited for.
    pub(super) fn is_settled(&self) -> bool {
        self.is_settled_after(self.begun.elapsed())
    }

    fn is_settled_after(&self, took: Duration) -> bool {
        let all = |parties: &[bool]| !self.thorough && parties.iter().all(|one| *one);
        self.open == 0
            || took >= self.limit
            || took >= GRACE && all(&self.preferred)
            || took >= REPEATED && all(&self.reached)
    }

    /// The outcomes in the order of [`pairs`].
    pub(super) fn listed(&self, trial: &Trial) -> Vec<u8> {
        let of = |pair: Pair| self.outcomes.get(&pair).copied().unwrap_or(UNTRIED);
        pairs(&trial.parties, trial.own).map(of).collect()
    }
}

/// One step of the work: tries, answers, and sleeps for a moment.
pub(super) trait Step {
    fn step(&mut self, trial: &Trial, progress: &mut Progress);
}

#[cfg(test)]
#[path = "trial_tests.rs"]
mod tests;
