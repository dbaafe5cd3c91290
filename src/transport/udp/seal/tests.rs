use super::*;
use crate::base::random::random;
use crate::base::rng::Rng;
use std::collections::BTreeSet;

const SECRET: [u8; 16] = *b"a secret of ours";
const MODES: [Security; 3] = [Security::Auth, Security::Encrypt, Security::None];
/// Those that protect the content.
const KEYED: [Security; 2] = [Security::Auth, Security::Encrypt];

/// An end with new random bytes.
fn end(task: Task, epoch: u64) -> End {
    End { task, epoch, nonce: random() }
}

/// Both directions of a connection, as tasks 3 and 5 have them.
fn connected(security: Security) -> [(Sealer, Opener); 2] {
    let key = JobKey::new(&SECRET, security);
    let (a, b) = (end(3, 7 << 32 | 1), end(5, 9));
    [key.connect(&a, &b), key.connect(&b, &a)]
}

/// The sealing end of task 3 and the opening one of task 5.
fn one_way(security: Security) -> (Sealer, Opener) {
    let [(sealer, _), (_, opener)] = connected(security);
    (sealer, opener)
}

fn sealed(sealer: &mut Sealer, content: [&[u8]; 2]) -> Vec<u8> {
    // There may be more room than it needs.
    let mut place = vec![0; ENVELOPE + content[0].len() + content[1].len() + 3];
    let len = sealer.seal(content, &mut place);
    assert!(place.split_off(len) == [0; 3]);
    place
}

fn opened(opener: &mut Opener, datagram: &[u8]) -> Result<Vec<u8>, Refused> {
    opener.open(&mut datagram.to_vec()).map(<[u8]>::to_vec)
}

fn bytes(rng: &mut Rng, len: usize) -> Vec<u8> {
    (0..len).map(|_| rng.next_u64() as u8).collect()
}

#[test]
fn what_is_sealed_is_opened_once_at_the_other_end() {
    for security in MODES {
        let [(mut seal_a, mut open_a), (mut seal_b, mut open_b)] = connected(security);
        let mut rng = Rng::new(1);
        for len in (0..200).chain([1024, 8192, 65_000]) {
            let content = bytes(&mut rng, len);
            let cut = rng.below(len as u64 + 1) as usize;
            for (sealer, opener, from) in [(&mut seal_a, &mut open_b, 3), (&mut seal_b, &mut open_a, 5)] {
                let number = sealer.next_number();
                let datagram = sealed(sealer, [&content[..cut], &content[cut..]]);
                assert_eq!(datagram.len(), ENVELOPE + len);
                let claim = Claim::of(&datagram).expect("it is long enough");
                assert_eq!((claim.from, claim.connection, claim.number), (from, opener.connection, number));
                assert!(opened(opener, &datagram).as_ref() == Ok(&content), "{security:?}, {len} bytes");
                assert_eq!(opened(opener, &datagram), Err(Refused::Replayed));
            }
        }
    }
}

#[test]
fn what_was_changed_is_refused_and_changes_nothing() {
    for security in KEYED {
        for seed in 0..300 {
            let mut rng = Rng::stream(0xbad, seed);
            let (mut sealer, mut opener) = one_way(security);
            let len = rng.below(120) as usize;
            let content = bytes(&mut rng, len);
            let datagram = sealed(&mut sealer, [&content, &[]]);
            for _ in 0..20 {
                let mut changed = datagram.clone();
                match rng.below(6) {
                    0 => changed.truncate(rng.below(datagram.len() as u64) as usize),
                    1 => changed.push(rng.below(2) as u8),
                    // Another number, also one far ahead, which must not move the window.
                    2 => changed[8 + rng.below(8) as usize] ^= 1 << rng.below(8),
                    3 => changed[16 + rng.below(16) as usize] ^= 1 << rng.below(8),
                    4 => changed.splice(8..16, u64::MAX.to_le_bytes()).for_each(drop),
                    _ => changed[rng.below(datagram.len() as u64) as usize] ^= 1 << rng.below(8),
                }
                // Number 0 is older than every window.
                let found = opened(&mut opener, &changed);
                assert!(found == Err(Refused::Forged) || claims_0(&changed), "seed {seed}: {found:?}");
                assert!(found.is_err(), "seed {seed}");
            }
            assert_eq!(opened(&mut opener, &datagram), Ok(content), "seed {seed}");
        }
    }
}

fn claims_0(datagram: &[u8]) -> bool {
    Claim::of(datagram).is_some_and(|claim| claim.number == 0)
}

#[test]
fn only_the_other_end_of_the_same_connection_opens_it() {
    let (a, b) = (End { task: 3, epoch: 1, nonce: [1; 16] }, End { task: 5, epoch: 2, nonce: [2; 16] });
    for security in MODES {
        let key = JobKey::new(&SECRET, security);
        let datagram = sealed(&mut key.connect(&a, &b).0, [b"content", &[]]);
        let opens =
            |key: &JobKey, own: &End, peer: &End| opened(&mut key.connect(own, peer).1, &datagram).is_ok();
        assert!(opens(&key, &b, &a));
        let mut other_secret = SECRET;
        other_secret[15] ^= 1;
        assert!(!opens(&JobKey::new(&other_secret, security), &b, &a), "another job");
        for other in MODES.into_iter().filter(|other| *other != security) {
            assert!(!opens(&JobKey::new(&SECRET, other), &b, &a), "another mode");
        }
        // What comes back to the sender, with the sender's own claim or as if the peer had sent it.
        assert!(!opens(&key, &a, &b), "the other direction");
        assert!(!opens(&key, &a, &End { task: 3, epoch: 1, ..b }), "the other direction");
        for (own, peer) in [
            (End { nonce: [3; 16], ..b }, a),
            (End { epoch: 3, ..b }, a),
            (End { epoch: 2 | 1 << 40, ..b }, a),
            (End { task: 6, ..b }, a),
            (b, End { nonce: [3; 16], ..a }),
            (b, End { epoch: 3, ..a }),
            (b, End { epoch: 1 | 1 << 40, ..a }),
            (b, End { task: 4, ..a }),
        ] {
            assert!(!opens(&key, &own, &peer), "{security:?} {own:?} {peer:?}");
        }
    }
}

#[test]
fn tasks_of_another_version_refuse_everything() {
    let (a, b) = (end(3, 1), end(5, 2));
    for security in MODES {
        let [one, other, same] = [2, 3, 2].map(|version| JobKey::of_version(version, &SECRET, security));
        let (tag, datagram) = (one.tag(&[b"hello"]), sealed(&mut one.connect(&a, &b).0, [b"content", &[]]));
        let accepts = |key: &JobKey| {
            (key.is_tag(&[b"hello"], &tag), opened(&mut key.connect(&b, &a).1, &datagram).is_ok())
        };
        assert_eq!((accepts(&same), accepts(&other)), ((true, true), (false, false)), "{security:?}");
    }
}

/// What tasks send each other stays the same in builds for all processors. Who changes it raises
/// [`crate::wire::VERSION`]. The expected bytes are of version 2, and were computed by another
/// implementation, which follows the specification word by word.
#[test]
fn a_known_datagram_has_known_bytes() {
    let (a, b) = (End { task: 3, epoch: 1, nonce: [1; 16] }, End { task: 5, epoch: 2, nonce: [2; 16] });
    for (security, tag, last) in [
        (Security::Auth, "56c5b14961ed0b2f22f437e9069a35aa", "d5746fa8ae3e0b1be6159bdf441a62d3"),
        (Security::Encrypt, "638eec1a374bdc1f9c1cae7d2a8c99d5", "02b73a4abe9beb7e81460a5ca4c5617f"),
        (Security::None, "a2d9623769ad4ff57b411ff1834cae9a", "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a"),
    ] {
        let mut sealer = JobKey::of_version(2, &SECRET, security).connect(&a, &b).0;
        sealer.skip_to(0x0102_0304_0506_0708);
        // More than the cipher takes at a time, and not a multiple of it.
        let datagram = sealed(&mut sealer, [b"header, ", &[0x5a; 71]]);
        let shown = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let found = [&datagram[..16], &datagram[16..ENVELOPE], &datagram[datagram.len() - 16..]].map(shown);
        assert_eq!(found, ["03000000010000000807060504030201", tag, last], "{security:?}");
    }
}

#[test]
fn in_whatever_order_each_is_opened_once() {
    for security in MODES {
        for seed in 0..20 {
            let mut rng = Rng::stream(0xabc, seed);
            let (mut sealer, mut opener) = one_way(security);
            let sent: Vec<Vec<u8>> =
                (0..500u64).map(|number| sealed(&mut sealer, [&number.to_le_bytes(), &[]])).collect();
            let mut got = BTreeSet::new();
            for step in 0..3000 {
                let number = rng.below(sent.len() as u64);
                let found = opened(&mut opener, &sent[number as usize]);
                let expected = if got.insert(number) {
                    Ok(number.to_le_bytes().to_vec())
                } else {
                    Err(Refused::Replayed)
                };
                assert_eq!(found, expected, "{security:?}, seed {seed}, step {step}");
            }
        }
    }
}

#[test]
fn encrypted_content_is_not_seen_and_equal_content_differs() {
    let (mut sealer, _) = one_way(Security::Encrypt);
    let content = [0x5a; 64];
    let (one, other) = (sealed(&mut sealer, [&content, &[]]), sealed(&mut sealer, [&content, &[]]));
    let blocks =
        |datagram: &[u8]| -> Vec<Vec<u8>> { datagram[ENVELOPE..].chunks(8).map(<[u8]>::to_vec).collect() };
    let all: BTreeSet<Vec<u8>> = blocks(&one).into_iter().chain(blocks(&other)).collect();
    assert_eq!(all.len(), 16, "no eight bytes come twice");
    assert!(!all.contains(&content[..8]));
}

#[test]
fn without_protection_the_content_stays_as_it_is() {
    let (mut sealer, mut opener) = one_way(Security::None);
    let datagram = sealed(&mut sealer, [b"some", b"thing"]);
    assert_eq!(datagram[ENVELOPE..], *b"something");
    assert_eq!(opened(&mut opener, &datagram), Ok(b"something".to_vec()));
    let mut stranger = sealed(&mut sealer, [b"some", b"thing"]);
    stranger[20] ^= 1;
    assert_eq!(opened(&mut opener, &stranger), Err(Refused::Forged));
}

#[test]
fn connections_have_no_random_bytes_in_common() {
    for security in MODES {
        let first = || sealed(&mut one_way(security).0, [b"the same", &[]]);
        assert_ne!(first(), first());
    }
}

#[test]
#[should_panic(expected = "no number is used twice")]
fn numbers_end() {
    let (mut sealer, _) = one_way(Security::Auth);
    sealer.skip_to(u64::MAX);
    sealed(&mut sealer, [b"the last one", &[]]);
    sealed(&mut sealer, [b"one too many", &[]]);
}

/// Another build of the same version makes the same.
#[test]
fn tags_stay_as_they_are() {
    let tags =
        MODES.map(|security| u128::from_be_bytes(JobKey::of_version(1, &[7; 16], security).tag(&[b"hello"])));
    let [auth, encrypt, none] = [
        0x7a9e_b941_3fed_7a0c_32bb_b4f5_b8ca_3bb4,
        0xea68_7ee1_de0c_2a7c_e695_613f_ae41_4342,
        0xc740_ddfb_eee2_d810_7aa8_1ac1_1f72_efee,
    ];
    assert_eq!(tags, [auth, encrypt, none]);
}

#[test]
fn messages_that_connect_have_tags_in_every_mode() {
    for security in MODES {
        let key = JobKey::new(&SECRET, security);
        let tag = key.tag(&[b"hello", b" there"]);
        assert!(key.is_tag(&[b"hello there"], &tag));
        assert!(!key.is_tag(&[b"hello there!"], &tag));
        for bit in 0..TAG * 8 {
            let mut other = tag;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.is_tag(&[b"hello there"], &other));
        }
        let same = JobKey::new(&SECRET, security);
        assert!(same.is_tag(&[b"hello there"], &tag));
        for other in MODES.into_iter().filter(|other| *other != security) {
            assert!(!JobKey::new(&SECRET, other).is_tag(&[b"hello there"], &tag));
        }
        assert!(!JobKey::new(&[0; 16], security).is_tag(&[b"hello there"], &tag));
    }
}
