//! The daemon, by the messages that programs send: what it does, what it refuses, and what is left
//! after its death.

mod client;

use client::{Client, Host, VOLATILE, persistent};
use fam::FamError;
use fam::wire::{
    Answer, Ask, Attributes, Change, Kind, Message, PartKind, Role, SECRET, Sealed, Shape, decode,
    decode_answer, encode,
};
use openlapi::base::rng::Rng;
use std::sync::Barrier;

#[test]
fn bytes_are_put_and_got_where_they_belong() {
    let host = Host::new("bytes", 1, false);
    let _daemon = host.keeper();
    let mut client = Client::open(&host);
    let region = client.region("r", 4 << 20, 0o600, VOLATILE);
    let item = client.item(region, "i", 3 << 20);
    for (turn, (offset, length)) in
        [(0, 8), (4, 4), (1, 1), (100, 5000), (0, 3 << 20), ((3 << 20) - 1, 1)].into_iter().enumerate()
    {
        let data: Vec<u8> = (0..length).map(|at: usize| (at * 7 + turn) as u8).collect();
        client.put(&item, offset, &data).expect("a put");
        assert!(client.get(&item, offset, length as u64).expect("a get") == data, "turn {turn}");
    }
    for (offset, length) in [(3 << 20, 1), ((3 << 20) - 1, 2), (u64::MAX, 1)] {
        let refused = client.get(&item, offset, length).expect_err("beyond the item");
        assert_eq!(refused, FamError::OutOfRange);
        assert_eq!(client.put(&item, offset, &vec![0; length as usize]), Err(FamError::OutOfRange));
        // The long way, too.
        assert_eq!(client.put(&item, offset, &vec![0; 1 << 20]), Err(FamError::OutOfRange));
    }
    let number = item.number + 1;
    let unknown = client
        .exchange(|operation| Message::Get { number: operation, item: number, offset: 0, length: 1 }, &[]);
    assert!(matches!(unknown.0, Message::Done { code, .. } if code == FamError::NotFound.code()));
}

#[test]
fn numbers_change_at_the_daemon() {
    let host = Host::new("numbers", 1, false);
    let _daemon = host.keeper();
    let mut client = Client::open(&host);
    let region = client.region("r", 1 << 20, 0o600, VOLATILE);
    let item = client.item(region, "i", 128);
    assert_eq!(client.change(&item, 16, Change::Swap, Kind::Int128, u128::MAX - 7, 0), Ok(0));
    assert_eq!(
        client.change(&item, 16, Change::CompareSwap, Kind::Int128, 5, u128::MAX - 7),
        Ok(u128::MAX - 7)
    );
    assert_eq!(client.change(&item, 16, Change::Fetch, Kind::Int128, 0, 0), Ok(5));
    for turn in 0..100 {
        assert_eq!(client.change(&item, 8, Change::Add, Kind::Uint64, 3, 0), Ok(turn * 3));
    }
    assert_eq!(client.change(&item, 4, Change::Add, Kind::Uint64, 3, 0), Err(FamError::Invalid));
    assert_eq!(client.change(&item, 128, Change::Add, Kind::Uint64, 3, 0), Err(FamError::OutOfRange));
    assert_eq!(client.change(&item, 0, Change::Xor, Kind::Double, 3, 0), Err(FamError::Invalid));
}

/// Names are asked for meanwhile, which another thread of the daemon answers.
#[test]
fn numbers_of_128_bits_change_as_one_step() {
    const TURNS: u128 = 300;
    let host = Host::new("wide", 1, false);
    let _daemon = host.keeper();
    let mut client = Client::open(&host);
    let region = client.region("r", 1 << 20, 0o600, VOLATILE);
    let item = client.item(region, "i", 128).item;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = Client::open(&host);
                let item = client.open_item(region, item).expect("an item");
                let (mut old, mut changed) = (0, 0);
                while changed < TURNS {
                    let new = old + (1 << 64) + 1;
                    let found = client.change(&item, 0, Change::CompareSwap, Kind::Int128, new, old);
                    let found = found.expect("a number");
                    changed += u128::from(found == old);
                    old = if found == old { new } else { found };
                    client.ask(&Ask::StatRegion { region }).expect("a region");
                }
            });
        }
    });
    let item = client.open_item(region, item).expect("an item");
    let sum = client.change(&item, 0, Change::Fetch, Kind::Int128, 0, 0);
    assert_eq!(sum, Ok(2 * TURNS * ((1 << 64) + 1)));
}

/// More than there are threads to open sessions of a user.
#[test]
fn all_programs_of_a_job_begin_at_a_time() {
    const ALL: usize = 96;
    let host = Host::new("job", 1, false);
    let _daemon = host.keeper();
    let all = Barrier::new(ALL);
    std::thread::scope(|scope| {
        for _ in 0..ALL {
            scope.spawn(|| {
                all.wait();
                Client::open(&host);
            });
        }
    });
}

#[test]
fn vectors_go_as_one_message() {
    let host = Host::new("vectors", 1, false);
    let _daemon = host.keeper();
    let mut client = Client::open(&host);
    let region = client.region("r", 8 << 20, 0o600, VOLATILE);
    let item = client.item(region, "i", 4 << 20);
    // In one packet, and in many.
    for count in [3, 50_000] {
        let shape = Shape::Strided { element: 8, count, first: 8, stride: 24 };
        let data: Vec<u8> = (0..count * 8).map(|at| at as u8).collect();
        assert_eq!(client.scatter(&item, shape, &data), Ok(()));
        assert!(client.gather(&item, shape, &[]).expect("a gather") == data);
        let runs: Vec<u8> =
            (0..count).flat_map(|at| [(8 + at * 24).to_le_bytes(), 8_u64.to_le_bytes()].concat()).collect();
        assert!(client.gather(&item, Shape::Runs { count }, &runs).expect("a gather") == data);
        let beyond = Shape::Strided { element: 8, count, first: 8, stride: 4 << 20 };
        assert_eq!(client.scatter(&item, beyond, &data), Err(FamError::OutOfRange));
    }
    // What would take the daemon's memory or time is refused.
    let again = Shape::Strided { element: 1, count: 1 << 30, first: 0, stride: 0 };
    assert_eq!(client.gather(&item, again, &[]), Err(FamError::Invalid));
    let long = vec![0; (64 << 20) + 16];
    let runs = Shape::Runs { count: long.len() as u64 / 16 };
    let wide = client.item(region, "wide", 4 << 20);
    assert_eq!(client.scatter(&wide, runs, &long), Err(FamError::Resource));
    assert_eq!(client.gather(&wide, Shape::Runs { count: 2 }, &[0; 32]), Ok(Vec::new()));
}

#[test]
fn names_sizes_and_ends_are_kept() {
    let host = Host::new("names", 1, false);
    let _daemon = host.keeper();
    let mut client = Client::open(&host);
    let region = client.region("r", 1, 0o600, VOLATILE);
    let create = |name: &str, size, attributes| Ask::CreateRegion {
        name: name.to_owned(),
        size,
        mode: 0o600,
        attributes,
    };
    let refused = [
        (create("r", 1, VOLATILE), FamError::AlreadyExist),
        (create("", 1, VOLATILE), FamError::Invalid),
        (create(&"x".repeat(41), 1, VOLATILE), FamError::NameTooLong),
        (create("p", 1, persistent()), FamError::NotCreated),
        (create("q", u64::MAX, VOLATILE), FamError::NoSpace),
        (create("q", 1, Attributes { redundancy: 9, ..VOLATILE }), FamError::Invalid),
        (Ask::LookupRegion { name: "other".to_owned() }, FamError::NotFound),
        (Ask::Lookup { region: "r".to_owned(), item: "i".to_owned() }, FamError::NotFound),
        (Ask::ResizeRegion { region: region + 1, size: 5 }, FamError::NotFound),
        (Ask::Join { pool: 1, secret: [0; 32], parts: vec![] }, FamError::InvalidOp),
    ];
    for (ask, error) in refused {
        assert_eq!(client.ask(&ask).expect_err("it is refused").error, error, "{ask:?}");
    }
    let Ok(Answer::Region(facts)) = client.ask(&Ask::StatRegion { region }) else { panic!("a region") };
    assert_eq!((facts.size, facts.attributes.interleave), (1 << 20, 1));
    // The region is full, and is not after the end of an item.
    let item = client.item(region, "i", 1 << 20);
    let more = Ask::Allocate { region, name: String::new(), size: 128, mode: 0o600 };
    assert_eq!(client.ask(&more).expect_err("it is full").error, FamError::NoSpace);
    let again = Ask::Allocate { region, name: "i".to_owned(), size: 128, mode: 0o600 };
    assert_eq!(client.ask(&again).expect_err("the name is in use").error, FamError::AlreadyExist);
    client.put(&item, 0, &[7; 5000]).expect("a put");
    client.ask(&Ask::Deallocate { region, item: item.item }).expect("the end of an item");
    assert_eq!(client.put(&item, 0, &[7; 8]), Err(FamError::NotFound));
    assert_eq!(client.open_ticket(&item.ticket).expect_err("the item is gone").error, FamError::NotFound);
    let next = client.item(region, "i", 1 << 20);
    assert!(client.get(&next, 0, 5000).expect("a get") == [0; 5000], "another item's bytes");
    assert!(next.item > item.item);
    client.ask(&Ask::ResizeRegion { region, size: 3 << 20 }).expect("a longer region");
    let second = client.item(region, "j", 2 << 20);
    client.put(&second, (2 << 20) - 8, &[1; 8]).expect("a put");
    assert!(client.get(&next, 0, 8).expect("a get") == [0; 8]);
    let shorter = Ask::ResizeRegion { region, size: 2 << 20 };
    assert_eq!(client.ask(&shorter).expect_err("an item is there").error, FamError::NoSpace);
    client.ask(&Ask::DestroyRegion { region }).expect("the end of a region");
    assert_eq!(client.get(&next, 0, 8).expect_err("the region is gone"), FamError::NotFound);
    assert_eq!(client.ask(&Ask::StatRegion { region }).expect_err("it is gone").error, FamError::NotFound);
}

#[test]
fn a_session_that_breaks_the_rules_is_ended_alone() {
    let host = Host::new("rules", 1, false);
    let _daemon = host.keeper();
    let mut good = Client::open(&host);
    let region = good.region("r", 1 << 20, 0o600, VOLATILE);
    let item = good.item(region, "i", 4096);
    // Before its hello a session gets nothing.
    let mut silent = Client::connect(&host);
    let refused = silent.ask(&Ask::StatRegion { region }).expect_err("no hello");
    assert_eq!(refused.error, FamError::InvalidOp);
    // A ticket that was changed, or of no program.
    let mut other = Client::open(&host);
    let forged = fam::wire::Sealed::new(&item.ticket.read().expect("a ticket"), &[5; 32]);
    assert_eq!(other.open_ticket(&forged).expect_err("it is forged").error, FamError::Metadata);
    for nonsense in [&b"\xff nonsense"[..], b"", &[1; 9]] {
        let bad = Client::open(&host);
        bad.session.post(nonsense, b"more of it").expect("a message");
        assert!(bad.is_ended(), "{nonsense:?}");
    }
    let late = Ask::Hello { version: 99, role: Role::Program, user: 0, group: 0 };
    assert_eq!(Client::connect(&host).ask(&late).expect_err("another version").error, FamError::Rpc);
    good.put(&item, 0, &[3; 8]).expect("the others go on");
    assert!(good.get(&item, 0, 8).expect("a get") == [3; 8]);
}

/// The seeds of what sessions send: `FAM_TEST_SEEDS=5000` is a long form.
fn seeds() -> u64 {
    std::env::var("FAM_TEST_SEEDS").map_or(12, |count| count.parse().expect("a number"))
}

/// Messages that are nearly right, from seeds: the daemon goes on, and other items stay.
#[test]
fn whatever_a_session_sends_touches_no_other() {
    let host = Host::new("whatever", 1, false);
    let _daemon = host.keeper();
    let mut good = Client::open(&host);
    let region = good.region("r", 4 << 20, 0o600, VOLATILE);
    let kept = good.item(region, "kept", 1 << 16);
    good.put(&kept, 0, &[7; 1 << 16]).expect("a put");
    let mut ended = 0;
    for seed in 0..seeds() {
        let mut rng = Rng::new(seed);
        let mut bad = Client::open(&host);
        let item = bad.item(region, &format!("own{seed}"), 4096);
        let own = item.number;
        let mut shape = || match rng.below(2) {
            0 => Shape::Runs { count: rng.below(5) },
            _ => Shape::Strided { element: rng.below(9), count: rng.below(99), first: 0, stride: 8 },
        };
        let (scatter, gather) = (shape(), shape());
        for _ in 0..150 {
            let number = rng.below(9);
            let offset = if rng.below(2) == 0 { rng.below(5000) } else { rng.below(u64::MAX) };
            let message = match rng.below(6) {
                0 => Message::Put { number, item: own, offset },
                1 => Message::Get { number, item: own, offset, length: rng.below(9000) },
                2 => Message::Scatter { number, item: own, shape: scatter },
                3 => Message::Gather { number, item: own, shape: gather },
                4 => Message::Data { number },
                _ => {
                    let (change, kind) = (Change::Add, Kind::Int64);
                    Message::Atomic { number, item: own, offset, change, kind, operand: 1, comparand: 2 }
                }
            };
            let mut header = message.encode().to_vec();
            if rng.below(10) == 0 {
                // Not the first byte: an ask could end what others use.
                let at = 1 + rng.below(header.len() as u64 - 1) as usize;
                header[at] = rng.below(256) as u8;
            }
            let data: Vec<u8> = (0..rng.below(6000)).map(|_| rng.below(256) as u8).collect();
            if bad.session.post(&header, &data).is_err() {
                ended += 1;
                break;
            }
        }
        assert!(good.get(&kept, 0, 1 << 16).expect("a get") == [7; 1 << 16], "seed {seed}");
        drop(bad);
        good.ask(&Ask::Deallocate { region, item: item.item }).expect("the end of an item");
    }
    assert!(ended < seeds(), "no session was let do anything");
}

/// What a session has, of which it asks: it has the rights of its user, and could end what is
/// another session's of the same one.
struct Own {
    seed: u64,
    /// An item of another session, and the part in which it lies: these are for a keeper to name.
    other: (u64, u64),
    regions: Vec<u64>,
    items: Vec<(u64, u64)>,
    tickets: Vec<Sealed>,
    numbers: Vec<u32>,
}

impl Own {
    /// A question, often about what the session has, and often about what there is not.
    fn ask(&self, rng: &mut Rng) -> Ask {
        const SIZES: [u64; 7] = [0, 1, 4096, 4096, 1 << 20, 8 << 20, u64::MAX];
        let mut any = |most: usize| rng.below(most as u64) as usize;
        let far = u64::MAX - any(1000) as u64;
        // One of five is beyond them.
        let mut one_of = |count: usize| if any(5) == 0 { count } else { any(count) };
        let region = self.regions.get(one_of(self.regions.len())).copied().unwrap_or(far);
        let (home, item) = self.items.get(one_of(self.items.len())).copied().unwrap_or((region, far));
        let tickets = [(); 2].map(|()| one_of(self.tickets.len()));
        let number = one_of(self.numbers.len());
        let number = self.numbers.get(number).copied().unwrap_or(number as u32);
        let ticket = |at: usize| match self.tickets.get(at) {
            Some(ticket) => ticket.clone(),
            None => forged(),
        };
        let name = match any(6) {
            0 => String::new(),
            1 => "n".repeat(50),
            number => format!("own{}-{number}", self.seed),
        };
        let (size, other_size) = (SIZES[any(7)], SIZES[any(7)]);
        let mode = if any(4) == 0 { any(0o2000) as u32 } else { 0o700 };
        let (item_of_other, part) = self.other;
        let part = if any(3) == 0 { any(9) as u64 } else { part };
        let offset = if any(2) == 0 { size } else { any(9) as u64 };
        let [redundancy, memory, interleave, permission] = [(); 4].map(|()| any(4) as u32);
        let attributes = match any(2) {
            0 => VOLATILE,
            _ => Attributes { redundancy, memory, interleave, permission },
        };
        let [one, two] = tickets.map(ticket);
        match any(34) {
            0 if any(4) == 0 => Ask::DestroyRegion { region },
            1 | 2 => Ask::ResizeRegion { region, size },
            3 => Ask::LookupRegion { name },
            4 => Ask::RegionRights { region, mode },
            5 => Ask::StatRegion { region },
            6..=9 => Ask::Allocate { region, name, size, mode },
            10 => Ask::Deallocate { region: home, item },
            11 => Ask::Lookup { region: name.clone(), item: name },
            12 => Ask::ItemRights { region: home, item, mode },
            13 => Ask::StatItem { region: home, item },
            14..=16 => Ask::Ticket { region: home, item },
            17 => Ask::Copy { from: one, from_offset: offset, to: two, to_offset: size, length: other_size },
            18 => Ask::Backup { region: home, item, name },
            19 => Ask::Restore { name, to: one },
            20 => Ask::StatBackup { name },
            21 => Ask::DeleteBackup { name },
            22 => Ask::ListBackups { name },
            23 | 24 => Ask::Open { ticket: one },
            25 => Ask::Close { number },
            26 => Ask::Map { number },
            // A keeper's: no program may ask so.
            27 => Ask::Join { pool: 7, secret: [4; SECRET], parts: vec![part] },
            28 => match any(2) {
                0 => Ask::MakePart { part, size, kind: PartKind::Volatile },
                _ => Ask::ResizePart { part, size, grows_only: false },
            },
            29 => Ask::RemovePart { part },
            30 => Ask::Clear { part, offset, length: other_size },
            31 => Ask::Withdraw { item: item_of_other },
            _ => Ask::CreateRegion { name, size, mode, attributes },
        }
    }

    /// Notes what an answer has given.
    fn note(&mut self, answer: &Answer) {
        match answer {
            Answer::Region(facts) => self.regions.push(facts.region),
            Answer::Item(facts) => self.items.push((facts.region, facts.item)),
            Answer::Ticket { ticket, .. } => self.tickets.push(ticket.clone()),
            Answer::Opened { number } => self.numbers.push(*number),
            _ => {}
        }
    }
}

/// A ticket that no keeper has sealed.
fn forged() -> Sealed {
    let ticket =
        fam::wire::Ticket { item: 1, user: 0, rights: 3, size: 1 << 16, block: 1 << 16, pieces: Vec::new() };
    Sealed::new(&ticket, &[5; SECRET])
}

/// Questions that are nearly right, from seeds, several at a time: each has an answer, unless the
/// session is ended for one that is none, and what others have stays.
#[test]
fn whatever_a_session_asks_touches_no_other() {
    let host = Host::new("asks", 1, false);
    let _daemon = host.keeper();
    let mut good = Client::open(&host);
    let region = good.region("r", 4 << 20, 0o600, VOLATILE);
    let kept = good.item(region, "kept", 1 << 16);
    good.put(&kept, 0, &[7; 1 << 16]).expect("a put");
    let facts = good.ask(&Ask::StatRegion { region }).expect("a region");
    let part = kept.ticket.read().expect("a ticket").pieces[0].part;
    let (mut done, mut refused) = (0, 0);
    for seed in 0..seeds() {
        let mut rng = Rng::new(seed);
        let mut bad = Client::open(&host);
        let home = bad.region(&format!("own{seed}"), 16 << 20, 0o600, VOLATILE);
        let items = ["one", "two"].map(|name| bad.item(home, name, 1 << 20));
        let mut own = Own {
            seed,
            other: (kept.item, part),
            regions: vec![home],
            items: items.iter().map(|item| (home, item.item)).collect(),
            tickets: items.iter().map(|item| item.ticket.clone()).collect(),
            numbers: items.iter().map(|item| item.number).collect(),
        };
        let mut is_whole = true;
        'session: for _ in 0..40 {
            let count = 1 + rng.below(6);
            for _ in 0..count {
                let mut body = encode(&own.ask(&mut rng));
                match rng.below(500) {
                    0 => body.truncate(rng.below(body.len() as u64) as usize),
                    1 => body.push(rng.below(256) as u8),
                    _ => {}
                }
                is_whole &= decode(&body).is_some();
                if let Err(error) = bad.ask_so(&body) {
                    assert!(!is_whole, "seed {seed}: {error}");
                    break 'session;
                }
            }
            for _ in 0..count {
                match bad.reply() {
                    Ok((Message::Answer { .. }, body)) => match decode_answer(&body) {
                        Ok(answer) => {
                            own.note(&answer);
                            done += 1;
                        }
                        Err(_) => refused += 1,
                    },
                    Ok(other) => panic!("seed {seed}: {other:?}"),
                    Err(_) if !is_whole => break 'session,
                    Err(error) => panic!("seed {seed}: {error}"),
                }
            }
        }
        assert!(good.get(&kept, 0, 1 << 16).expect("a get") == [7; 1 << 16], "seed {seed}");
        assert_eq!(good.ask(&Ask::StatRegion { region }).expect("a region"), facts, "seed {seed}");
        assert_eq!(good.lookup("r", "kept").expect("the item"), (region, kept.item), "seed {seed}");
        drop(bad);
        // Some of them are named twice, or have ended.
        own.regions.into_iter().for_each(|region| drop(good.ask(&Ask::DestroyRegion { region })));
    }
    assert!(
        done > 20 * seeds() && refused > 20 * seeds(),
        "{done} questions were granted, {refused} were not"
    );
    let next = good.item(region, "next", 1 << 16);
    good.put(&next, 0, &[8; 1 << 16]).expect("a put");
    assert!(good.get(&kept, 0, 1 << 16).expect("a get") == [7; 1 << 16]);
}
