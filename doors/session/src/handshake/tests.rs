//! Handshakes whose bytes arrive in pieces, changed, late or never, from seeds. `SESSION_SEED=n`
//! repeats one.

use super::*;
use crate::wire::{Routes, VERSION};
use openlapi::base::rng::Rng;
use std::collections::VecDeque;

const KEY: [u8; 16] = [7; 16];
const SEEDS: u64 = 3_000;
/// Bytes that an accepting side may read of one that has proved nothing.
const GREETING: usize = 56 + 16;

/// What becomes of the bytes on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// A bit of what this side sends is changed: the one at this place.
    Changed(Side, u64),
    /// What this side sends ends here.
    Ends(Side, u64),
    /// What this side sends is something else from here on.
    Garbage(Side, u64),
}

struct Outcome {
    agreed: [Option<Agreed>; 2],
    errors: [Option<Error>; 2],
    /// What each side has sent, as the other one has got it.
    carried: [Vec<u8>; 2],
    /// Bytes that the accepting side has read before it knew the other.
    believed: usize,
}

fn card(side: Side) -> Card {
    let mut card = Card::own(Routes::ALL);
    card.process.pid = 1000 + side.task();
    card
}

fn changed(fault: Fault, side: Side, at: u64, byte: u8, rng: &mut Rng) -> Option<u8> {
    match fault {
        Fault::Changed(of, place) if of == side && at == place / 8 => Some(byte ^ 1 << (place % 8)),
        Fault::Ends(of, place) if of == side && at >= place => None,
        Fault::Garbage(of, place) if of == side && at >= place => Some(rng.next_u64() as u8),
        _ => Some(byte),
    }
}

/// Carries bytes between the two until nothing moves.
fn carry(sides: [Handshake; 2], fault: Fault, rng: &mut Rng) -> Outcome {
    let mut sides = sides;
    let mut way: [VecDeque<u8>; 2] = Default::default();
    let mut outcome =
        Outcome { agreed: [None, None], errors: [None, None], carried: Default::default(), believed: 0 };
    // Of each side: what it still sends is carried.
    loop {
        let mut moved = false;
        for side in [Side::Accepting, Side::Connecting] {
            let me = side.task() as usize;
            for byte in sides[me].output() {
                moved = true;
                let at = outcome.carried[me].len() as u64;
                if let Some(byte) = changed(fault, side, at, byte, rng) {
                    outcome.carried[me].push(byte);
                    way[me].push_back(byte);
                }
            }
        }
        let me = rng.below(2) as usize;
        let take = (1 + rng.below(30) as usize).min(sides[me].wanted()).min(way[1 - me].len());
        if take > 0 && outcome.agreed[me].is_none() && outcome.errors[me].is_none() {
            let bytes: Vec<u8> = way[1 - me].drain(..take).collect();
            if me == 0 && !sides[0].is_proved() {
                outcome.believed += bytes.len();
            }
            moved = true;
            match sides[me].read(&bytes) {
                Ok(agreed) => outcome.agreed[me] = agreed,
                Err(error) => outcome.errors[me] = Some(error),
            }
        }
        let over = |me: usize| outcome.agreed[me].is_some() || outcome.errors[me].is_some();
        let starved = |me: usize| over(me) || way[1 - me].is_empty();
        if !moved && starved(0) && starved(1) {
            return outcome;
        }
    }
}

fn sides(keys: [Trust; 2]) -> [Handshake; 2] {
    [Side::Accepting, Side::Connecting]
        .map(|side| Handshake::new(side, keys[side.task() as usize], &card(side)))
}

fn seeds() -> Box<dyn Iterator<Item = u64>> {
    match std::env::var("SESSION_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => Box::new(std::iter::once(seed)),
        None => Box::new(0..SEEDS),
    }
}

#[test]
fn whatever_happens_on_the_way_no_side_believes_what_the_other_has_not_said() {
    let [mut whole, mut refused] = [0, 0];
    for seed in seeds() {
        let mut rng = Rng::new(seed);
        let trust = if rng.chance(0.5) { Trust::Channel } else { Trust::Key(KEY) };
        let side = if rng.chance(0.5) { Side::Accepting } else { Side::Connecting };
        let fault = match rng.below(4) {
            0 => Fault::None,
            1 => Fault::Changed(side, rng.below(8 * 130)),
            2 => Fault::Ends(side, rng.below(130)),
            _ => Fault::Garbage(side, rng.below(130)),
        };
        let outcome = carry(sides([trust; 2]), fault, &mut rng);
        let context = format!("SESSION_SEED={seed} {fault:?} {trust:?}: {:?}", outcome.errors);
        assert!(outcome.believed <= GREETING, "{context}: {} bytes", outcome.believed);
        for side in [Side::Accepting, Side::Connecting] {
            if let Some(agreed) = &outcome.agreed[side.task() as usize] {
                assert_eq!(agreed.peer, card(side.peer()), "{context}");
            }
        }
        let secrets = outcome.agreed.each_ref().map(|one| one.as_ref().map(|one| one.frames.secret(b"x")));
        match (fault, secrets) {
            (Fault::None, [Some(one), Some(other)]) => {
                assert_eq!(one, other, "{context}");
                assert_ne!(one, trust.key(), "{context}");
                whole += 1;
            }
            (Fault::None, _) => panic!("{context}"),
            (_, [Some(one), Some(other)]) => assert_eq!(one, other, "{context}"),
            (Fault::Changed(of, place), _)
                if place / 8 < outcome.carried[of.task() as usize].len() as u64 =>
            {
                let receiver = of.peer().task() as usize;
                assert!(outcome.agreed[receiver].is_none(), "{context}");
                refused += 1;
            }
            _ => refused += 1,
        }
    }
    if SEEDS == seeds().count() as u64 {
        assert!(whole > SEEDS / 8 && refused > SEEDS / 4, "{whole} whole, {refused} refused");
    }
}

#[test]
fn a_wrong_key_is_found_by_both_and_betrays_nothing() {
    let mut rng = Rng::new(1);
    for (one, other) in [(Trust::Key(KEY), Trust::Key([8; 16])), (Trust::Key([0; 16]), Trust::Key(KEY))] {
        let outcome = carry(sides([one, other]), Fault::None, &mut rng);
        assert!(
            matches!(outcome.errors, [Some(Error::WrongKey), Some(Error::WrongKey)]),
            "{:?}",
            outcome.errors
        );
        for carried in &outcome.carried {
            assert!(!carried.windows(4).any(|part| part == &KEY[..4]));
        }
        // Nothing but greetings has travelled.
        assert_eq!(outcome.carried.each_ref().map(Vec::len), [40, 72]);
    }
}

#[test]
fn a_channel_that_is_trusted_and_one_that_needs_a_key_do_not_meet() {
    let mut rng = Rng::new(2);
    for trusts in [[Trust::Channel, Trust::Key([0; 16])], [Trust::Key([0; 16]), Trust::Channel]] {
        let outcome = carry(sides(trusts), Fault::None, &mut rng);
        assert!(matches!(outcome.errors, [Some(Error::Stranger), None]), "{:?}", outcome.errors);
        assert!(outcome.agreed.iter().all(Option::is_none));
    }
}

#[test]
fn sides_of_different_versions_both_name_them() {
    let mut rng = Rng::new(3);
    let mut sides = sides([Trust::Key(KEY); 2]);
    sides[1].card[..2].copy_from_slice(&(VERSION + 1).to_le_bytes());
    // A later version may say more.
    sides[1].card.extend([1, 2, 3]);
    let outcome = carry(sides, Fault::None, &mut rng);
    assert!(
        matches!(outcome.errors[0], Some(Error::Version { own: VERSION, peer }) if peer == VERSION + 1),
        "{:?}",
        outcome.errors
    );
}

#[test]
fn what_was_recorded_opens_nothing() {
    let mut rng = Rng::new(4);
    let recorded = carry(sides([Trust::Key(KEY); 2]), Fault::None, &mut rng).carried;
    // To a listener that draws other numbers.
    let mut again = Handshake::new(Side::Accepting, Trust::Key(KEY), &card(Side::Accepting));
    let mut sent = &recorded[1][..];
    let result = loop {
        let (next, rest) = sent.split_at(again.wanted().min(sent.len()));
        sent = rest;
        match again.read(next) {
            Ok(None) if !next.is_empty() => {}
            other => break other,
        }
    };
    assert!(matches!(result, Err(Error::WrongKey)));
    // And to one that calls.
    let mut again = Handshake::new(Side::Connecting, Trust::Key(KEY), &card(Side::Connecting));
    assert!(matches!(again.read(&recorded[0][..again.wanted()]), Err(Error::WrongKey)));
}

#[test]
fn frames_count_once_and_in_their_order() {
    let mut rng = Rng::new(5);
    let [Some(one), Some(other)] = carry(sides([Trust::Channel; 2]), Fault::None, &mut rng).agreed else {
        panic!("both have agreed")
    };
    let (mut from, mut to) = (one.frames, other.frames);
    let [first, second] =
        [MessageKind::Values, MessageKind::Ready].map(|kind| from.seal(kind, b"some bytes"));
    for byte in &first {
        assert_eq!(to.next().expect("nothing wrong"), None);
        to.push(&[*byte]);
    }
    assert_eq!(to.next().expect("a frame"), Some((MessageKind::Values, b"some bytes".to_vec())));
    to.push(&first);
    assert!(matches!(to.next(), Err(Error::Forged("a frame out of its turn"))));
    // What it has sent itself does not come from the other side.
    let own = to.seal(MessageKind::Bye, b"");
    to.push(&own);
    assert!(matches!(to.next(), Err(Error::Forged("a frame without its proof"))));
    to.push(&second);
    assert_eq!(to.next().expect("a frame"), Some((MessageKind::Ready, b"some bytes".to_vec())));
    to.push(&u32::MAX.to_le_bytes());
    assert!(matches!(to.next(), Err(Error::Forged("a frame that is too long"))));
}

#[test]
fn an_unproved_peer_costs_little_memory() {
    let mut side = Handshake::new(Side::Accepting, Trust::Key(KEY), &card(Side::Accepting));
    let mut hello = b"LAPICON1".to_vec();
    hello.extend(Trust::Key(KEY).subject());
    hello.extend([1; 16]);
    assert!(side.read(&hello).expect("a greeting").is_none() && side.has_begun() && !side.is_proved());
    let kept = size_of::<Handshake>() + side.card.capacity() + side.output.capacity() + 2 * GREETING;
    assert!(kept <= 1024, "{kept} bytes");
}
