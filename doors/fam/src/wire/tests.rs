//! What is encoded is decoded, and nothing else.

use super::*;
use crate::FamError;
use openlapi::base::rng::Rng;

fn messages() -> Vec<Message> {
    let (number, item, offset) = (u64::MAX - 5, 7, 1 << 40);
    let strided = Shape::Strided { element: 12, count: 9, first: 24, stride: 48 };
    let mut all = vec![
        Message::Ask { number },
        Message::Answer { number },
        Message::Put { number, item, offset },
        Message::Get { number, item, offset, length: 77 },
        Message::Scatter { number, item, shape: strided },
        Message::Scatter { number, item, shape: Shape::Runs { count: 3 } },
        Message::Gather { number, item, shape: strided },
        Message::Gather { number, item, shape: Shape::Runs { count: 1 << 20 } },
        Message::Done { number, code: 0 },
        Message::Done { number, code: FamError::OutOfRange.code() },
        Message::Data { number },
        Message::Old { number, value: u128::MAX - 1 },
    ];
    for change in Change::ALL {
        for kind in Kind::ALL {
            let (operand, comparand) = (u128::MAX / 3, 5);
            all.push(Message::Atomic { number, item, offset, change, kind, operand, comparand });
        }
    }
    all
}

#[test]
fn headers_come_back_and_cut_ones_do_not() {
    for message in messages() {
        let header = message.encode();
        assert_eq!(Message::decode(&header), Some(message));
        for end in 0..header.len() {
            assert_eq!(Message::decode(&header[..end]), None, "{message:?} cut at {end}");
        }
        assert_eq!(Message::decode(&[&header[..], &[0]].concat()), None, "{message:?} and more");
    }
}

#[test]
fn runs_are_those_of_the_data() {
    let data: Vec<u8> = [1_u64, 2, 3, 4, 5].iter().flat_map(|number| number.to_le_bytes()).collect();
    let two = runs(&data, 2).expect("two");
    assert!(two.eq([(1, 2), (3, 4)]));
    for too_many in [3, 1 << 60, u64::MAX] {
        assert!(runs(&data, too_many).is_none());
    }
}

fn ticket(size: u64, block: u64, servers: usize) -> Ticket {
    let piece = |(at, length)| Piece { server: 10 + at as u64, part: 3, offset: 128 * at as u64, length };
    let pieces = Ticket::lengths(size, block, servers).into_iter().enumerate().map(piece).collect();
    Ticket { item: 99, user: 1000, rights: READ, size, block, pieces }
}

/// Each byte of an item has a place of its own, within its piece.
#[test]
fn segments_cover_an_item_once() {
    let mut rng = Rng::new(5);
    for _ in 0..200 {
        let (servers, block) = (1 + rng.below(5) as usize, 1 << rng.below(6));
        let size = 1 + rng.below(900);
        let one = ticket(size, block, servers);
        let mut seen: Vec<Vec<bool>> =
            one.pieces.iter().map(|piece| vec![false; piece.length as usize]).collect();
        let mut at = 0;
        while at < size {
            let length = (1 + rng.below(200)).min(size - at);
            let mut covered = 0;
            for segment in one.segments(at, length) {
                let (from, to) = (segment.offset as usize, (segment.offset + segment.length) as usize);
                let bytes = &mut seen[segment.piece][from..to];
                assert!(bytes.iter().all(|byte| !*byte), "{one:?}: {segment:?} is used twice");
                bytes.fill(true);
                covered += segment.length;
            }
            assert_eq!(covered, length);
            at += length;
        }
        assert!(seen.iter().flatten().all(|byte| *byte), "{one:?}");
        assert!(one.has(0, size) && !one.has(1, size) && !one.has(u64::MAX, 2));
    }
}

#[test]
fn a_ticket_counts_by_the_secret_that_has_sealed_it() {
    let one = ticket(5000, 1024, 3);
    let sealed = Sealed::new(&one, &[4; SECRET]);
    assert_eq!(sealed.open(&[4; SECRET]), Some(one.clone()));
    assert_eq!(sealed.read(), Some(one.clone()));
    assert_eq!(sealed.open(&[5; SECRET]), None);
    let bytes = encode(&Ask::Open { ticket: sealed });
    let mut accepted = 0;
    for at in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[at / 8] ^= 1 << (at % 8);
        if let Some(Ask::Open { ticket }) = decode(&changed) {
            accepted += u32::from(ticket.open(&[4; SECRET]).is_some());
        }
    }
    assert_eq!(accepted, 0, "a changed ticket was believed");
    // The keeper itself seals no nonsense that a server would divide by.
    for wrong in [
        Ticket { block: 0, ..one.clone() },
        Ticket { block: 1000, ..one.clone() },
        Ticket { pieces: Vec::new(), ..one.clone() },
        Ticket { size: 4999, ..one.clone() },
        Ticket { rights: 4, ..one },
    ] {
        assert_eq!(Sealed::new(&wrong, &[4; SECRET]).open(&[4; SECRET]), None, "{wrong:?}");
    }
}

fn asks() -> Vec<Ask> {
    let (region, item, size, mode, part, offset, length) = (5, 6, 1 << 40, 0o640, 8, 4096, 77);
    let (name, sealed) = ("a name".to_owned(), Sealed::new(&ticket(5000, 1024, 3), &[4; SECRET]));
    vec![
        Ask::Hello { version: VERSION, role: Role::Keeper, user: 1000, group: 100 },
        Ask::CreateRegion { name: name.clone(), size, mode, attributes: Attributes::default() },
        Ask::DestroyRegion { region },
        Ask::ResizeRegion { region, size },
        Ask::LookupRegion { name: name.clone() },
        Ask::RegionRights { region, mode },
        Ask::StatRegion { region },
        Ask::Allocate { region, name: String::new(), size, mode },
        Ask::Deallocate { region, item },
        Ask::Lookup { region: name.clone(), item: name.clone() },
        Ask::ItemRights { region, item, mode },
        Ask::StatItem { region, item },
        Ask::Ticket { region, item },
        Ask::Copy { from: sealed.clone(), from_offset: 1, to: sealed.clone(), to_offset: 2, length },
        Ask::Backup { region, item, name: name.clone() },
        Ask::Restore { name: name.clone(), to: sealed.clone() },
        Ask::StatBackup { name: name.clone() },
        Ask::DeleteBackup { name: name.clone() },
        Ask::ListBackups { name },
        Ask::Open { ticket: sealed.clone() },
        Ask::Close { number: 3 },
        Ask::Map { number: 3 },
        Ask::Join { pool: u128::MAX, secret: [4; SECRET], parts: vec![1, 2, u64::MAX] },
        Ask::MakePart { part, size, kind: PartKind::Persistent },
        Ask::ResizePart { part, size, grows_only: true },
        Ask::RemovePart { part },
        Ask::Clear { part, offset, length },
        Ask::Withdraw { item },
        Ask::Seal { ticket: sealed },
    ]
}

fn answers() -> Vec<crate::Result<Answer>> {
    let attributes = Attributes { redundancy: 1, memory: 2, interleave: 1, permission: 2 };
    let (name, user, group) = ("a name".to_owned(), 1000, 100);
    let (servers, block, mode, size) = (vec![0, 3], 1 << 20, 0o600, 1 << 30);
    let facts = ItemFacts {
        region: 5,
        item: 6,
        name: name.clone(),
        size,
        mode,
        user,
        group,
        attributes,
        servers: servers.clone(),
        block,
    };
    let backup = BackupFacts { name: name.clone(), size, mode, user, group, made: 1 << 33 };
    let server = Server { server: 3, address: "[::1]:8789".to_owned() };
    vec![
        Ok(Answer::Done),
        Ok(Answer::Hello { version: VERSION, user, group, servers: vec![server] }),
        Ok(Answer::Region(RegionFacts {
            region: 5,
            name,
            size,
            mode,
            user,
            group,
            attributes,
            servers,
            block,
        })),
        Ok(Answer::Item(facts.clone())),
        Ok(Answer::Ticket { ticket: Sealed::new(&ticket(9, 9, 1), &[1; SECRET]), facts }),
        Ok(Answer::Opened { number: 7 }),
        Ok(Answer::Mapped { process: 5, descriptor: 9, offset: 0, length: 128, rights: READ | WRITE }),
        Ok(Answer::Backup(backup.clone())),
        Ok(Answer::Backups(vec![backup.clone(), backup])),
        Ok(Answer::Joined { parts: vec![4], has_volatile: true, has_persistent: false }),
        Err(FamError::NoPerm.because("the region is another user's")),
    ]
}

#[test]
fn bodies_come_back() {
    for ask in asks() {
        let body = encode(&ask);
        assert_eq!(decode(&body).as_ref(), Some(&ask));
        assert_eq!(decode(&[&body[..], &[0]].concat()), None, "{ask:?} and more");
        assert!((0..body.len()).all(|end| decode(&body[..end]).is_none()), "{ask:?}");
    }
    for answer in answers() {
        let body = encode_answer(&answer);
        assert_eq!(decode_answer(&body), answer);
        let cut = |end: usize| decode_answer(&body[..end]).expect_err("it is cut").error;
        assert!((0..body.len()).all(|end| cut(end) == FamError::Rpc), "{answer:?}");
    }
    let success: std::result::Result<Answer, (i32, String)> = Err((0, "none".to_owned()));
    let body = postcard::to_allocvec(&success).expect("bytes");
    assert_eq!(decode_answer(&body).expect_err("a failure").error, FamError::Unknown);
}

#[test]
fn any_bytes_are_a_message_or_none() {
    let mut rng = Rng::new(77);
    let bodies: Vec<Vec<u8>> = asks().iter().map(encode).chain(answers().iter().map(encode_answer)).collect();
    let headers: Vec<Vec<u8>> = messages().iter().map(|message| message.encode().to_vec()).collect();
    for _ in 0..20_000 {
        let mut body = bodies[rng.below(bodies.len() as u64) as usize].clone();
        let mut header = headers[rng.below(headers.len() as u64) as usize].clone();
        for bytes in [&mut body, &mut header] {
            for _ in 0..=rng.below(3) {
                let at = rng.below(bytes.len() as u64) as usize;
                bytes[at] = rng.below(256) as u8;
            }
        }
        if let Some(ask) = decode(&body) {
            assert_eq!(decode(&encode(&ask)), Some(ask));
        }
        if let Ok(answer) = decode_answer(&body) {
            assert_eq!(decode_answer(&encode_answer(&Ok(answer.clone()))), Ok(answer));
        }
        if let Some(message) = Message::decode(&header) {
            assert_eq!(*message.encode(), header[..]);
        }
    }
    assert_eq!(decode(&vec![0; LONGEST_BODY + 1]), None);
}

#[test]
fn numbers_change_as_the_interface_says() {
    let bits = |value: f64| u128::from(value.to_bits());
    let single = |value: f32| u128::from(value.to_bits());
    let minus = u128::from(u32::MAX);
    let cases = [
        (Change::Fetch, Kind::Int64, 5, 9, 0, 5),
        (Change::Swap, Kind::Int128, 5, u128::MAX, 0, u128::MAX),
        (Change::CompareSwap, Kind::Int128, 5, 9, 5, 9),
        (Change::CompareSwap, Kind::Uint64, 5, 9, 6, 5),
        (Change::CompareSwap, Kind::Int32, minus, 9, u128::MAX, 9),
        (Change::Add, Kind::Int32, minus, 1, 0, 0),
        (Change::Add, Kind::Uint64, u128::from(u64::MAX), 2, 0, 1),
        (Change::Subtract, Kind::Uint32, 0, 1, 0, minus),
        (Change::Min, Kind::Int32, 0, minus, 0, minus),
        (Change::Min, Kind::Uint32, 0, minus, 0, 0),
        (Change::Max, Kind::Uint32, 0, minus, 0, minus),
        (Change::Max, Kind::Double, bits(-1.5), bits(-0.5), 0, bits(-0.5)),
        (Change::Add, Kind::Double, bits(1.5), bits(2.25), 0, bits(3.75)),
        (Change::Subtract, Kind::Float, single(1.5), single(2.0), 0, single(-0.5)),
        (Change::And, Kind::Uint32, 0b1100, 0b1010, 0, 0b1000),
        (Change::Or, Kind::Uint64, 0b1100, 0b1010, 0, 0b1110),
        (Change::Xor, Kind::Uint64, 0b1100, 0b1010, 0, 0b0110),
    ];
    for (change, kind, old, operand, comparand, new) in cases {
        assert_eq!(change.apply(kind, old, operand, comparand), new, "{change:?} of {kind:?}");
    }
    // What the interface does not have changes nothing.
    for change in Change::ALL {
        for kind in Kind::ALL.into_iter().filter(|kind| !change.takes(*kind)) {
            assert_eq!(change.apply(kind, 3, 5, 3), 3, "{change:?} of {kind:?}");
        }
    }
}
