//! Operations of a connection, simulated from seeds: a peer that replies in any order, and says
//! what it should not, and a session that sends when it likes and is lost at any time.

use super::owner::{Class, Owner};
use super::pending::{Expected, Memory, Place, Table};
use crate::error::{FamError, Result};
use crate::wire::{Answer, Message, encode_answer};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// Numbers that follow from a seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Put,
    Get,
    Gather,
    Atomic,
    Ask,
}

/// An operation, as the peer and the session see it.
struct Begun {
    kind: Kind,
    /// What the session counts; null: it has copied all.
    counter: *const AtomicI32,
    data: Box<[u8]>,
    replied: bool,
}

/// Memory that the program gives, which lives as long as the simulation.
fn memory(data: &mut [u8]) -> Memory {
    Memory { at: data.as_mut_ptr(), length: data.len() }
}

fn begin(table: &Table, owner: &Arc<Owner>, numbers: &mut Numbers, kind: Kind) -> Result<(u64, Begun)> {
    let mut data = vec![0; 1 + numbers.below(64) as usize].into_boxed_slice();
    let (class, expected) = match kind {
        Kind::Put => (Class::Changes, Expected::Done),
        Kind::Get => (Class::Fetches, Expected::Data(memory(&mut data))),
        Kind::Gather => {
            let (first, second) = data.split_at_mut(data.len() / 2);
            (Class::Fetches, Expected::Spread(vec![memory(second), memory(first)]))
        }
        Kind::Atomic => (Class::Changes, Expected::Old),
        Kind::Ask => (Class::Changes, Expected::Answer),
    };
    let (number, counter) = if kind == Kind::Put && numbers.below(2) == 0 {
        table.begin_from(owner, class, expected, Some(vec![1, 2, 3]), 0)?
    } else {
        (table.begin(owner, class, expected)?, std::ptr::null())
    };
    Ok((number, Begun { kind, counter, data, replied: false }))
}

/// Data arrives at the place that the table has given.
fn arrive(table: &Table, message: &Message, data: &[u8]) -> bool {
    match table.arriving(message, data.len()) {
        Place::Memory(place) => {
            assert_eq!(place.length, data.len());
            // SAFETY: the table's memory, or that of an operation under way.
            unsafe { place.at.copy_from_nonoverlapping(data.as_ptr(), data.len()) };
            table.landed(message.number());
            true
        }
        Place::Nowhere => true,
        Place::Refused => false,
    }
}

fn reply(table: &Table, number: u64, begun: &Begun, pattern: u8) -> bool {
    let data = vec![pattern; begun.data.len()];
    match begun.kind {
        Kind::Put => arrive(table, &Message::Done { number, code: 0 }, &[]),
        Kind::Get | Kind::Gather => arrive(table, &Message::Data { number }, &data),
        Kind::Atomic => arrive(table, &Message::Old { number, value: u128::from(pattern) << 100 }, &[]),
        Kind::Ask => {
            let servers = Vec::new();
            let answer = Answer::Hello { version: 1, user: pattern.into(), group: 0, servers };
            arrive(table, &Message::Answer { number }, &encode_answer(&Ok(answer)))
        }
    }
}

/// Replies to operations that there are not: nothing changes.
fn nonsense(table: &Table, number: u64) {
    let all = [
        Message::Done { number: number + (1 << 32), code: 0 },
        Message::Done { number: number | 0xffff_fff0, code: 3 },
    ];
    for message in all {
        assert!(!arrive(table, &message, &[]), "{message:?}");
    }
}

fn simulate(seed: u64) {
    let mut numbers = Numbers(seed);
    let (table, owner) = (Table::default(), Arc::new(Owner::default()));
    let mut open = BTreeMap::new();
    let mut ended = Vec::new();
    let mut refused = 0;
    let mut is_lost = false;
    for step in 0..300 {
        match numbers.below(10) {
            0..4 => {
                let kinds = [Kind::Put, Kind::Get, Kind::Gather, Kind::Atomic, Kind::Ask];
                let kind = kinds[numbers.below(5) as usize];
                let (number, begun) = begin(&table, &owner, &mut numbers, kind).expect("it is open");
                assert!(open.insert(number, begun).is_none(), "a number that is in use");
            }
            4 if step > 250 && numbers.below(10) == 0 => {
                is_lost = true;
                break;
            }
            _ => {
                let place = numbers.below(open.len().max(1) as u64) as usize;
                let Some((&number, begun)) = open.iter_mut().nth(place) else { continue };
                let sent = begun.counter.is_null() || {
                    // SAFETY: it lives until the operation has ended.
                    let counter = unsafe { &*begun.counter };
                    if counter.load(Ordering::Relaxed) < 2 && numbers.below(2) == 0 {
                        counter.fetch_add(1, Ordering::Relaxed);
                    }
                    counter.load(Ordering::Relaxed) == 2
                };
                if !begun.replied {
                    nonsense(&table, number);
                    let before = owner.pending();
                    let is_failure = numbers.below(6) == 0 && begun.kind != Kind::Ask;
                    if is_failure {
                        assert!(arrive(&table, &Message::Done { number, code: 2 }, &[]));
                        refused += 1;
                    } else {
                        assert!(reply(&table, number, begun, number as u8 | 1));
                    }
                    begun.replied = true;
                    assert_eq!(owner.pending() == before, !sent, "it ends when its memory is free");
                    assert!(!arrive(&table, &Message::Done { number, code: 0 }, &[]), "a second reply");
                    if !is_failure && begun.kind == Kind::Atomic {
                        assert_eq!(owner.old(), u128::from(number as u8 | 1) << 100);
                    }
                    if matches!(begun.kind, Kind::Get | Kind::Gather) {
                        let expected = if is_failure { 0 } else { number as u8 | 1 };
                        assert!(begun.data.iter().all(|byte| *byte == expected));
                    }
                    if begun.kind == Kind::Ask {
                        assert!(table.is_answered(number));
                        let answer = table.take(number).expect("an answer").expect("an answer");
                        let user = u32::from(number as u8 | 1);
                        assert!(matches!(answer, Answer::Hello { user: found, .. } if found == user));
                        assert!(table.take(number).is_none());
                    }
                }
                if sent && begun.replied {
                    table.sweep();
                    ended.extend(open.remove(&number));
                }
            }
        }
        table.sweep();
        let under_way = open.values().filter(|begun| !begun.replied || !begun.counter.is_null()).count();
        assert!(owner.pending() as usize <= under_way && table.open() == owner.pending() as usize);
    }
    if is_lost {
        let asked: Vec<u64> =
            open.iter().filter(|(_, begun)| begun.kind == Kind::Ask).map(|(number, _)| *number).collect();
        let others = open.values().any(|begun| begun.kind != Kind::Ask && !begun.replied);
        table.close(&FamError::Rpc.because("the daemon is lost"));
        assert_eq!(owner.take_failure().is_err(), others || refused > 0);
        for number in asked {
            let answer = table.take(number).expect("an answer");
            assert_eq!(answer.expect_err("none").error, FamError::Rpc);
        }
        assert!(begin(&table, &owner, &mut numbers, Kind::Put).is_err());
    } else {
        for (number, begun) in &mut open {
            if !begun.counter.is_null() {
                // SAFETY: it lives until the operation has ended.
                unsafe { &*begun.counter }.store(2, Ordering::Relaxed);
            }
            if !begun.replied {
                assert!(reply(&table, *number, begun, 1));
            }
        }
        table.sweep();
        assert_eq!(owner.take_failure().is_err(), refused > 0);
    }
    assert_eq!((owner.pending(), table.open()), (0, 0), "seed {seed}");
    assert_eq!(owner.take_failure(), Ok(()), "a failure is reported once");
}

#[test]
fn every_operation_ends_once_and_writes_where_it_may() {
    for seed in 0..400 {
        simulate(seed);
    }
}

#[test]
fn the_first_failure_is_kept_and_fences_know_changes_alone() {
    let (table, owner) = (Table::default(), Arc::new(Owner::default()));
    let mut data = [0; 8];
    let put = table.begin(&owner, Class::Changes, Expected::Done).expect("open");
    let get = table.begin(&owner, Class::Fetches, Expected::Data(memory(&mut data))).expect("open");
    assert_eq!((owner.changing(), owner.pending()), (1, 2));
    assert!(arrive(&table, &Message::Done { number: put, code: FamError::OutOfRange.code() }, &[]));
    assert_eq!((owner.changing(), owner.pending()), (0, 1));
    assert!(arrive(&table, &Message::Done { number: get, code: FamError::NoPerm.code() }, &[]));
    assert_eq!(owner.take_failure().expect_err("the first").error, FamError::OutOfRange);
    assert_eq!(owner.take_failure(), Ok(()));
}

#[test]
fn an_answer_that_nobody_wants_ends_its_operation() {
    let (table, owner) = (Table::default(), Arc::new(Owner::default()));
    let number = table.begin(&owner, Class::Changes, Expected::Anything).expect("open");
    assert!(!arrive(&table, &Message::Answer { number }, &[1, 2, 3]), "its data goes nowhere");
    assert_eq!((owner.pending(), table.open()), (0, 0));
    assert_eq!(owner.take_failure(), Ok(()));
}

#[test]
fn a_message_that_was_not_sent_ends_its_operation() {
    let (table, owner) = (Table::default(), Arc::new(Owner::default()));
    let (number, _) =
        table.begin_from(&owner, Class::Changes, Expected::Done, Some(Vec::new()), 0).expect("open");
    table.unsent(number, FamError::Rpc.because("it was not sent"));
    assert_eq!((owner.pending(), table.open()), (0, 0));
    assert_eq!(owner.take_failure().expect_err("it failed").text, "it was not sent");
}

#[test]
fn a_reply_to_something_else_ends_its_operation() {
    let kinds = [Kind::Put, Kind::Get, Kind::Gather, Kind::Atomic, Kind::Ask];
    for kind in kinds {
        for case in 0..6 {
            let (table, owner) = (Table::default(), Arc::new(Owner::default()));
            let (number, begun) = begin(&table, &owner, &mut Numbers(case), kind).expect("open");
            let longer = vec![9; begun.data.len() + 1];
            let (message, data) = match case {
                0 => (Message::Data { number }, &longer[..]),
                1 => (Message::Data { number }, &longer[2..]),
                2 => (Message::Done { number, code: 0 }, &longer[..]),
                3 => (Message::Done { number, code: 5 }, &longer[..]),
                4 => (Message::Ask { number }, &[][..]),
                _ => (Message::Old { number, value: 7 }, &longer[..]),
            };
            if !begun.counter.is_null() {
                // SAFETY: it lives until the operation has ended.
                unsafe { &*begun.counter }.store(2, Ordering::Relaxed);
            }
            assert!(!arrive(&table, &message, data), "{message:?} for {kind:?}");
            assert_eq!((owner.pending(), table.open()), (0, 0), "{message:?} for {kind:?}");
            let failure = match kind {
                Kind::Ask => table.take(number).expect("an answer").map(drop),
                _ => owner.take_failure(),
            };
            assert_eq!(failure.expect_err("it failed").error, FamError::Rpc);
            assert!(begun.data.iter().all(|byte| *byte == 0), "no byte was written");
            assert!(!arrive(&table, &Message::Done { number, code: 0 }, &[]), "it has ended");
        }
    }
}

#[test]
fn a_turn_waits_for_the_operations_of_before_alone() {
    let (table, owner) = (Table::default(), Arc::new(Owner::default()));
    let begin = || table.begin(&owner, Class::Changes, Expected::Done).expect("open");
    let end = |number| assert!(arrive(&table, &Message::Done { number, code: 0 }, &[]));
    let first = begin();
    assert!(table.has_turned());
    table.turn();
    assert!(!table.has_turned());
    let second = begin();
    end(first);
    assert!(table.has_turned());
    table.turn();
    let third = begin();
    assert!(!table.has_turned());
    table.close(&FamError::Rpc.because("the daemon is lost"));
    assert!(table.has_turned() && !arrive(&table, &Message::Done { number: second, code: 0 }, &[]));
    table.turn();
    assert!(table.has_turned(), "operation {third} has ended, too");
}
