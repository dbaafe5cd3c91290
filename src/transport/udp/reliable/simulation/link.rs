//! A network that does to datagrams what real ones do, and a seal for them.

use super::super::{MILLISECOND, Nanos};
use crate::base::rng::Rng;
use std::collections::BTreeMap;

/// What the network does.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    pub lose: f64,
    pub duplicate: f64,
    pub corrupt: f64,
    /// The shortest time on the way, what varies of it, and how often it is ten times that.
    pub delay: Nanos,
    pub jitter: Nanos,
    pub late: f64,
}

impl Faults {
    pub const NONE: Self =
        Self { lose: 0.0, duplicate: 0.0, corrupt: 0.0, delay: MILLISECOND / 10, jitter: 0, late: 0.0 };

    /// Any of them, up to 30 % of losses.
    pub fn random(rng: &mut Rng) -> Self {
        let mut rate = |most: f64| if rng.chance(0.3) { 0.0 } else { most * rng.below(1000) as f64 / 1000.0 };
        Self {
            lose: rate(0.3),
            duplicate: rate(0.2),
            corrupt: rate(0.1),
            late: rate(0.1),
            delay: 10_000 + rate(20.0) as Nanos * MILLISECOND,
            jitter: rate(5e6) as Nanos,
        }
    }
}

/// A sealed datagram, as the network carries it.
pub type Bytes = Vec<u8>;

/// What the seal protects beside the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    pub from: u32,
    pub to: u32,
    /// The numbers of both sides; 0, 0: the content is a hello.
    pub theirs: u128,
    pub mine: u128,
    pub transmission: u64,
}

/// Bytes of an envelope with its tag.
const ENVELOPE: usize = 56;

fn tag(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(bytes.len() as u64, |sum, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        Rng::new(sum ^ u64::from_le_bytes(word)).next_u64()
    })
}

pub fn seal(envelope: &Envelope, parts: [&[u8]; 2]) -> Bytes {
    let mut bytes = vec![0; 8];
    bytes.extend(envelope.from.to_le_bytes());
    bytes.extend(envelope.to.to_le_bytes());
    bytes.extend(envelope.theirs.to_le_bytes());
    bytes.extend(envelope.mine.to_le_bytes());
    bytes.extend(envelope.transmission.to_le_bytes());
    parts.into_iter().for_each(|part| bytes.extend_from_slice(part));
    let tag = tag(&bytes[8..]);
    bytes[..8].copy_from_slice(&tag.to_le_bytes());
    bytes
}

/// The content of a datagram, unless it was changed on the way.
pub fn open(bytes: &[u8]) -> Option<(Envelope, &[u8])> {
    let (envelope, content) = bytes.split_at_checked(ENVELOPE)?;
    if envelope[..8] != tag(&bytes[8..]).to_le_bytes() {
        return None;
    }
    let number = |at: usize| u128::from_le_bytes(std::array::from_fn(|byte| envelope[at + byte]));
    let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| envelope[at + byte]));
    let (from, to) = (long(8) as u32, (long(8) >> 32) as u32);
    let (theirs, mine, transmission) = (number(16), number(32), long(48));
    Some((Envelope { from, to, theirs, mine, transmission }, content))
}

/// Datagrams on their way, by the time of their arrival.
#[derive(Debug, Default)]
pub struct Network {
    under_way: BTreeMap<(Nanos, u64), (u32, Bytes)>,
    serial: u64,
    pub carried: u64,
    pub corrupted: u64,
}

impl Network {
    /// A datagram leaves for `to`.
    pub fn send(&mut self, rng: &mut Rng, now: Nanos, faults: &Faults, to: u32, bytes: Bytes) {
        self.carried += 1;
        let copies = 1 + u64::from(rng.chance(faults.duplicate));
        for _ in 0..copies {
            if rng.chance(faults.lose) {
                continue;
            }
            let mut bytes = bytes.clone();
            if rng.chance(faults.corrupt) {
                self.corrupted += 1;
                match rng.below(4) {
                    0 => bytes.truncate(rng.below(bytes.len() as u64) as usize),
                    1 => bytes.extend_from_slice(&[0; 8]),
                    _ => {
                        let at = rng.below(bytes.len() as u64) as usize;
                        bytes[at] ^= 1 << rng.below(8);
                    }
                }
            }
            let late = if rng.chance(faults.late) { 10 } else { 1 };
            let delay = faults.delay + late * rng.below(faults.jitter + 1);
            self.serial += 1;
            self.under_way.insert((now + delay, self.serial), (to, bytes));
        }
    }

    /// When the next datagram arrives.
    pub fn due(&self) -> Option<Nanos> {
        self.under_way.first_key_value().map(|((at, _), _)| *at)
    }

    /// A datagram that has arrived by now, and where.
    pub fn arrived(&mut self, now: Nanos) -> Option<(u32, Bytes)> {
        let entry = self.under_way.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }

    /// Any of the datagrams under way, to be recorded.
    pub fn any(&self) -> Option<(u32, Bytes)> {
        self.under_way.last_key_value().map(|(_, datagram)| datagram.clone())
    }
}
