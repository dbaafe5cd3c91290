//! The header at the beginning of a part: which pool it belongs to, its neighbours, and the state
//! of an orderly end.

use crate::attributes::Attributes;
use crate::bytes::{Bytes, Fields};
use crate::failure::{Failure, Result};

/// The length of a header, in bytes.
pub const HEADER: usize = 4096;

/// Values of the incompatible features: the other parts have no headers,
const SINGLE_HEADER: u32 = 1;
/// the checksum covers the first half,
const HALF_CHECKSUM: u32 = 2;
/// and the shutdown state is kept.
const SHUTDOWN_STATE: u32 = 4;
/// All that are known.
const KNOWN_INCOMPAT: u32 = SINGLE_HEADER | HALF_CHECKSUM | SHUTDOWN_STATE;
/// The compatible ones that are known.
const KNOWN_COMPAT: u32 = 1;

const FLAGS: usize = 128;
const FIRST_ZEROS: usize = 144;
const HALF: usize = 2048;
const STATE: usize = 4024;
const CHECKSUM: usize = 4088;

/// A part's place among the others: identifiers of itself and its neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The part's own.
    pub uuid: [u8; 16],
    /// The previous part's, in a ring.
    pub prev_part: [u8; 16],
    /// The next part's, in a ring.
    pub next_part: [u8; 16],
}

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What all parts have in common; `uuid` is the first part's.
    pub attributes: Attributes,
    /// The part's place.
    pub place: Place,
    /// When the pool was created, in seconds since 1970.
    pub created: u64,
    /// The pool is open, or was not closed in order. Counts where the features have the shutdown
    /// state.
    pub is_dirty: bool,
    /// How often the devices were switched off while they had data, and the sum of their numbers.
    pub devices: [u64; 2],
}

impl Header {
    /// Whether the features have the shutdown state.
    pub fn has_state(&self) -> bool {
        self.attributes.incompat & SHUTDOWN_STATE != 0
    }

    /// The bytes on the medium. The attributes' feature of a single header follows `single`.
    pub fn encode(&self, single: bool) -> [u8; HEADER] {
        let Attributes {
            signature, major, compat, incompat, ro_compat, poolset, next, prev, user_flags, ..
        } = self.attributes;
        let incompat = if single { incompat | SINGLE_HEADER } else { incompat & !SINGLE_HEADER };
        let mut to = Bytes::default();
        to.raw(&signature);
        to.u32s([major, compat, incompat, ro_compat]);
        let Place { uuid, prev_part, next_part } = self.place;
        for identifier in [poolset, uuid, prev_part, next_part, prev, next] {
            to.raw(&identifier);
        }
        to.u64(self.created);
        to.raw(&if user_flags == [0; 16] { machine_flags() } else { user_flags });
        to.0.resize(STATE, 0);
        to.raw(&if self.has_state() { state(self.devices, self.is_dirty) } else { [0; 64] });
        let mut bytes = [0; HEADER];
        bytes[..CHECKSUM].copy_from_slice(&to.0);
        let checksum = checksum_of(&bytes, incompat & HALF_CHECKSUM != 0);
        bytes[CHECKSUM..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The header in these bytes. A shutdown state with a wrong checksum counts as that of an
    /// orderly end: the pool was being opened.
    ///
    /// # Errors
    /// EINVAL: damaged, or with features that are not known here.
    pub fn decode(bytes: &[u8; HEADER]) -> Result<Self> {
        Self::fields(bytes).ok_or_else(|| Failure::invalid("the header is short"))?
    }

    fn fields(bytes: &[u8; HEADER]) -> Option<Result<Self>> {
        let mut from = Fields(bytes);
        let signature = from.array()?;
        let [major, compat, incompat, ro_compat] = [from.u32()?, from.u32()?, from.u32()?, from.u32()?];
        if bytes.iter().all(|byte| *byte == 0) {
            return Some(Err(Failure::invalid("there is no header")));
        }
        let checksum = u64::from_le_bytes(*bytes[CHECKSUM..].first_chunk()?);
        if checksum != checksum_of(bytes, incompat & HALF_CHECKSUM != 0) {
            return Some(Err(Failure::invalid("the checksum of the header is wrong")));
        }
        let poolset = from.array()?;
        let place = Place { uuid: from.array()?, prev_part: from.array()?, next_part: from.array()? };
        let (prev, next, created) = (from.array()?, from.array()?, from.u64()?);
        let user_flags = *bytes[FLAGS..FIRST_ZEROS].first_chunk()?;
        let (devices, is_dirty) = read_state(bytes[STATE..CHECKSUM].first_chunk()?);
        let attributes = Attributes {
            signature,
            major,
            compat,
            incompat,
            ro_compat,
            poolset,
            uuid: place.uuid,
            next,
            prev,
            user_flags,
        };
        Some(check_features(&attributes).map(|()| Self { attributes, place, created, is_dirty, devices }))
    }

    /// Whether this header has the attributes and the place of another one.
    pub fn belongs_as(&self, other: &Self) -> bool {
        let common = |header: &Self| Attributes { uuid: [0; 16], ..header.attributes };
        self.place == other.place && common(self) == common(other)
    }

    /// Whether this header says that it is the only one of its pool.
    pub fn is_single(&self) -> bool {
        self.attributes.incompat & SINGLE_HEADER != 0
    }
}

/// Fails where attributes have features that are not known here: no pool can be opened whose header
/// has them.
///
/// # Errors
/// EINVAL.
pub fn check_features(attributes: &Attributes) -> Result<()> {
    let Attributes { compat, incompat, ro_compat, .. } = *attributes;
    if incompat & !KNOWN_INCOMPAT != 0 || compat & !KNOWN_COMPAT != 0 || ro_compat != 0 {
        let features = format!("compat {compat:#x}, incompat {incompat:#x}, ro_compat {ro_compat:#x}");
        return Err(Failure::invalid(format!("the pool has features that are not known: {features}")));
    }
    Ok(())
}

/// A shutdown state.
fn state(devices: [u64; 2], is_dirty: bool) -> [u8; 64] {
    let mut bytes = [0; 64];
    bytes[..8].copy_from_slice(&devices[0].to_le_bytes());
    bytes[8..16].copy_from_slice(&devices[1].to_le_bytes());
    bytes[16] = u8::from(is_dirty);
    let checksum = fletcher(bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)));
    bytes[56..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The devices and whether the end was not in order.
fn read_state(bytes: &[u8; 64]) -> ([u64; 2], bool) {
    let number = |at: usize| u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|byte| bytes[at + byte]));
    let devices = [number(0), number(8)];
    let is_dirty = bytes[16] != 0;
    let mut summed = *bytes;
    summed[56..].fill(0);
    let checksum = fletcher(summed.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)));
    if checksum == number(56) { (devices, is_dirty) } else { ([0; 2], false) }
}

/// The checksum of a header, over its first half or all of it. Its own 8 bytes count as zeros.
pub fn checksum_of(bytes: &[u8; HEADER], half: bool) -> u64 {
    let end = if half { HALF } else { CHECKSUM };
    let words = bytes.as_chunks::<4>().0.iter().enumerate();
    fletcher(words.map(|(at, word)| if at * 4 < end { u32::from_le_bytes(*word) } else { 0 }))
}

/// Fletcher's sum of 64 bits over words of 32.
fn fletcher(words: impl Iterator<Item = u32>) -> u64 {
    let (low, high) = words.fold((0_u32, 0_u32), |(low, high), word| {
        let low = low.wrapping_add(word);
        (low, high.wrapping_add(low))
    });
    u64::from(high) << 32 | u64::from(low)
}

/// What tells the machine's kind: alignments of its types, that it is a little endian one of 64
/// bits, and the number that its programs' files have for it.
pub fn machine_flags() -> [u8; 16] {
    const ALIGNMENTS: u64 = 0x7f7_3777_7310;
    const MACHINE: u16 = match () {
        () if cfg!(target_arch = "x86_64") => 62,
        () if cfg!(target_arch = "aarch64") => 183,
        () => 21,
    };
    let mut flags = [0; 16];
    flags[..8].copy_from_slice(&ALIGNMENTS.to_le_bytes());
    flags[8..10].copy_from_slice(&[2, 1]);
    flags[14..].copy_from_slice(&MACHINE.to_le_bytes());
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(incompat: u32) -> Header {
        Header {
            attributes: Attributes {
                signature: *b"PMEMOBJ\0",
                major: 6,
                compat: 1,
                incompat,
                poolset: [1; 16],
                uuid: [2; 16],
                next: [3; 16],
                prev: [4; 16],
                user_flags: [5; 16],
                ..Attributes::default()
            },
            place: Place { uuid: [2; 16], prev_part: [6; 16], next_part: [7; 16] },
            created: 1_700_000_000,
            is_dirty: incompat & SHUTDOWN_STATE != 0,
            devices: [0, 0],
        }
    }

    #[test]
    fn a_header_comes_back_and_a_changed_one_does_not() {
        for incompat in 0..8 {
            let header = example(incompat);
            let bytes = header.encode(incompat & SINGLE_HEADER != 0);
            assert_eq!(Header::decode(&bytes), Ok(header), "{incompat}");
            for at in (0..HEADER).step_by(7).chain([4095]) {
                let mut bytes = bytes;
                bytes[at] ^= 0x10;
                let found = Header::decode(&bytes);
                // The second half is not in the sum of one of the features.
                let outside = incompat & HALF_CHECKSUM != 0 && (HALF..CHECKSUM).contains(&at);
                assert_eq!(found.is_ok(), outside, "byte {at}, features {incompat}");
                let in_state = incompat & SHUTDOWN_STATE != 0 && (STATE..CHECKSUM).contains(&at);
                assert!(found.is_err() || !in_state || !found.is_ok_and(|found| found.is_dirty));
            }
        }
        assert!(Header::decode(&[0; HEADER]).is_err());
        for (compat, incompat) in [(2, 0), (0, 8), (3, 7)] {
            let mut header = example(0);
            (header.attributes.compat, header.attributes.incompat) = (compat, incompat);
            let failure = Header::decode(&header.encode(false)).expect_err("unknown features");
            assert!(failure.text.contains("not known"), "{failure}");
        }
    }

    #[test]
    fn where_the_fields_stand() {
        let bytes = example(6).encode(false);
        assert_eq!(&bytes[..8], b"PMEMOBJ\0");
        assert_eq!(bytes[8..24], [6, 0, 0, 0, 1, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]);
        for (at, byte) in [(24, 1), (40, 2), (56, 6), (72, 7), (88, 4), (104, 3), (128, 5)] {
            assert_eq!(bytes[at..at + 16], [byte; 16], "at {at}");
        }
        assert_eq!(bytes[120..128], 1_700_000_000_u64.to_le_bytes());
        assert!(bytes[144..STATE].iter().all(|byte| *byte == 0));
        assert_eq!((bytes[STATE + 16], example(2).encode(false)[STATE + 16]), (1, 0));
        assert_eq!(machine_flags()[..10], [0x10, 0x73, 0x77, 0x37, 0xf7, 0x07, 0, 0, 2, 1]);
    }

    #[test]
    fn the_sum_of_few_words() {
        assert_eq!(fletcher([1, 2, 3].into_iter()), (1 + 3 + 6) << 32 | 6);
        assert_eq!(fletcher([u32::MAX, 1, 0].into_iter()), u64::from(u32::MAX) << 32);
    }
}
