//! Random requests, from seeds, against a model of a pool. `RPMEM_TEST_SEEDS=5000` is a long form,
//! `RPMEM_SEED=n` is one seed alone.

use super::*;
use openlapi::base::rng::Rng;
use rpmem::disk::HEADER;
use rpmem::wire::{Depth, Range};
use std::fs;
use std::path::PathBuf;

const LANES: u32 = 3;
const PART: usize = 2 << 20;

/// Forms of a set, with where the second part's bytes of the pool begin.
const FORMS: [(&str, usize); 3] = [("", HEADER), ("OPTION SINGLEHDR", 0), ("OPTION NOHDRS", 0)];

/// A folder with a set of two parts, removed at the end.
struct Folder {
    path: PathBuf,
    second: usize,
}

impl Folder {
    fn new(seed: u64, (option, second): (&str, usize)) -> Self {
        let path = std::env::temp_dir().join(format!("openlapi-rpmemd-serve-{}-{seed}", std::process::id()));
        fs::create_dir(&path).expect("a folder");
        let parts = ["a", "b"].map(|part| format!("2M {}\n", path.join(part).display())).concat();
        fs::write(path.join("set"), format!("PMEMPOOLSET\n{parts}{option}\n")).expect("a set");
        Self { path, second }
    }

    /// The bytes of the pool, as they are in the files.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = fs::read(self.path.join("a")).expect("a part");
        bytes.extend_from_slice(&fs::read(self.path.join("b")).expect("a part")[self.second..]);
        bytes
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// What a lane knows: flushes that have arrived, how many its drain awaits, and whether one failed.
type Lane = (u64, Option<u64>, bool);

/// What a pool is to be.
struct Model {
    bytes: Vec<u8>,
    /// The first byte that clients may change.
    first: u64,
    size: u64,
    lanes: [Lane; LANES as usize],
    attributes: Attributes,
    is_closed: bool,
}

impl Model {
    /// Does what a message asks for. Returns the lane and the errno of the answer, if there is one.
    fn handle(&mut self, message: &Message) -> Option<(u32, i32)> {
        let request = Request::decode(&message.header);
        if self.is_closed {
            return (!matches!(request, Some(Request::Flush { .. }))).then_some((NO_LANE, libc::EBADF));
        }
        match request {
            Some(Request::Persist { lane, range, .. }) => Some((lane, self.land(range, &message.data))),
            Some(Request::Flush { lane, range }) => {
                let failed = self.land(range, &message.data) != 0;
                let known = self.lanes.get_mut(lane as usize)?;
                known.0 += 1;
                known.2 |= failed;
                Self::drained(lane, known)
            }
            Some(Request::Drain { lane, flushes }) => match self.lanes.get_mut(lane as usize) {
                None => Some((lane, libc::EINVAL)),
                Some(known) => {
                    known.1 = Some(flushes);
                    Self::drained(lane, known)
                }
            },
            Some(Request::SetAttributes(attributes)) => {
                let is_refused = match self.first {
                    0 => !attributes.is_none(),
                    _ => !has_known_features(&attributes),
                };
                if self.first != 0 && !is_refused {
                    self.attributes = attributes;
                }
                Some((NO_LANE, if is_refused { libc::EINVAL } else { 0 }))
            }
            Some(Request::Close) => {
                self.is_closed = true;
                Some((NO_LANE, 0))
            }
            Some(Request::Start { .. }) | None => Some((NO_LANE, libc::EPROTO)),
        }
    }

    fn land(&mut self, Range { offset, length }: Range, data: &[u8]) -> i32 {
        let is_within =
            offset >= self.first && offset.checked_add(length).is_some_and(|end| end <= self.size);
        if !is_within || !data.is_empty() && data.len() as u64 != length {
            return libc::EINVAL;
        }
        self.bytes[offset as usize..][..data.len()].copy_from_slice(data);
        0
    }

    fn drained(lane: u32, known: &mut Lane) -> Option<(u32, i32)> {
        known.1.filter(|awaited| known.0 >= *awaited)?;
        let (.., failed) = std::mem::take(known);
        Some((lane, if failed { libc::EINVAL } else { 0 }))
    }
}

fn has_known_features(Attributes { compat, incompat, ro_compat, .. }: &Attributes) -> bool {
    *compat < 2 && *incompat < 8 && *ro_compat == 0
}

/// Some of which no pool may have.
fn any_attributes(rng: &mut Rng) -> Attributes {
    let mut some = attributes(rng);
    // The feature of a single header follows the set.
    let number = 2_u32 << rng.below(31);
    match rng.below(6) {
        0 => some.compat = number / 2,
        1 => some.incompat |= number,
        2 => some.ro_compat = number / 2,
        _ => {}
    }
    some
}

fn attributes(rng: &mut Rng) -> Attributes {
    let mut word = || rng.next_u64().to_le_bytes().map(|byte| byte | 1);
    let (signature, [poolset, uuid, user_flags]) = (word(), [word(), word(), word()].map(twice));
    // Of the features those that each pool may have: a checksum of half a header, and a state.
    let (major, incompat) = (rng.below(9) as u32, 2 * rng.below(4) as u32);
    Attributes { signature, major, incompat, poolset, uuid, user_flags, ..Attributes::default() }
}

fn twice(half: [u8; 8]) -> [u8; 16] {
    let mut whole = [0; 16];
    whole[..8].copy_from_slice(&half);
    whole[8..].copy_from_slice(&half);
    whole
}

/// A range that is nearly right, often at a limit.
fn range(rng: &mut Rng, size: u64) -> Range {
    let length = if rng.below(20) == 0 { u64::MAX - rng.below(9000) } else { rng.below(9000) };
    let offset = match rng.below(8) {
        0 => HEADER as u64 - 1 + rng.below(2),
        1 | 2 => size.wrapping_sub(length).wrapping_add(rng.below(3)).wrapping_sub(1),
        3 => PART as u64 - rng.below(5000),
        4 => u64::MAX - rng.below(9000),
        _ => rng.below(size),
    };
    Range { offset, length }
}

fn message(rng: &mut Rng, size: u64) -> Message {
    let (lane, range) = (rng.below(u64::from(LANES) + 1) as u32, range(rng, size));
    let request = match rng.below(40) {
        0 => Request::Close,
        1 => Request::Start { version: VERSION, size, lanes: 1, create: None },
        2..=4 => Request::SetAttributes(any_attributes(rng)),
        5..=12 => Request::Drain { lane, flushes: rng.below(5) },
        13..=26 => Request::Flush { lane, range },
        _ => {
            let depth = if rng.below(4) == 0 { Depth::Deep } else { Depth::Usual };
            Request::Persist { lane, range, depth }
        }
    };
    let mut header = request.encode();
    match rng.below(30) {
        0 => header.truncate(rng.below(header.len() as u64) as usize),
        1 => header.push(rng.below(256) as u8),
        2 => {
            let at = rng.below(header.len() as u64) as usize;
            header[at] = rng.below(256) as u8;
        }
        _ => {}
    }
    let length = match rng.below(10) {
        0 => rng.below(9000),
        1 => 0,
        _ if range.length < 9000 => range.length,
        _ => 0,
    };
    let data = (0..length).map(|_| rng.below(256) as u8).collect();
    Message { header, data }
}

#[test]
fn whatever_a_client_asks_a_pool_has_what_was_answered() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seeds = match number("RPMEM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("RPMEM_TEST_SEEDS").unwrap_or(12),
    };
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let form = FORMS[rng.below(3) as usize];
        let (folder, has_header) = (Folder::new(seed, form), form.0 != "OPTION NOHDRS");
        let whole = (2 * PART - folder.second) as u64;
        let size = whole - 4096 * rng.below(3);
        let first = if has_header { attributes(&mut rng) } else { Attributes::default() };
        let pool = Pool::create(&folder.path, "set", size, LANES, first).expect("a pool");
        let pool = RwLock::new(Some(pool));
        let mut model = Model {
            bytes: vec![0; whole as usize],
            first: if has_header { HEADER as u64 } else { 0 },
            size,
            lanes: [(0, None, false); LANES as usize],
            attributes: first,
            is_closed: false,
        };
        for turn in 0..100 {
            let message = message(&mut rng, size);
            let answer = handle(&message, &pool);
            let answer = answer.map(|(lane, done)| (lane, done.err().map_or(0, |failure| failure.errno)));
            let asked = Request::decode(&message.header);
            assert_eq!(answer, model.handle(&message), "RPMEM_SEED={seed}, turn {turn}: {asked:?}");
        }
        let close = Message { header: Request::Close.encode(), data: Vec::new() };
        let closed = handle(&close, &pool).map(|(_, done)| done.is_ok());
        assert_eq!(closed, Some(!model.is_closed), "RPMEM_SEED={seed}");
        let at = model.first as usize;
        assert!(folder.bytes()[at..] == model.bytes[at..], "RPMEM_SEED={seed}: other bytes");
        let again = Pool::open(&folder.path, "set", size, 1).expect("a whole pool");
        // The header of a set with one header says so.
        model.attributes.incompat &= !1;
        model.attributes.incompat |= u32::from(form.0 == "OPTION SINGLEHDR");
        assert_eq!(again.attributes(), model.attributes, "RPMEM_SEED={seed}");
        again.close().expect("its end");
    }
}
