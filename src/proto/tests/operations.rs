//! Cookies and epochs, compared with a simpler table.

use super::seeds;
use crate::base::rng::Rng;
use crate::proto::ops::{Epochs, Op, Ops};
use std::collections::{BTreeMap, HashSet};

fn completion(cmpl_cntr: usize) -> Op {
    Op::Completion { cmpl_cntr }
}

fn counter(op: Option<Op>) -> Option<usize> {
    match op {
        Some(Op::Completion { cmpl_cntr }) => Some(cmpl_cntr),
        _ => None,
    }
}

#[test]
fn a_cookie_names_its_operation_and_nothing_afterwards() {
    seeds(20, |seed| {
        let mut rng = Rng::new(seed);
        let (mut ops, mut known, mut used) = (Ops::new(2), BTreeMap::new(), HashSet::new());
        for number in 1..1000 {
            let peer = rng.below(3) as u32;
            if rng.chance(0.55) {
                let cookie = ops.insert(peer, completion(number), rng.chance(0.5));
                assert!(cookie != 0 && used.insert(cookie), "a cookie that was there before");
                known.insert(cookie, (peer, number));
            } else if let Some((&cookie, &(owner, number))) = known.iter().nth(rng.below(20) as usize) {
                assert!(
                    counter(ops.remove(owner + 1, cookie)).is_none()
                        && ops.get_mut(owner + 1, cookie).is_none()
                );
                assert!(ops.get_mut(owner, cookie).is_some());
                assert_eq!(counter(ops.remove(owner, cookie)), Some(number));
                known.remove(&cookie);
            }
            if rng.chance(0.01) {
                let mut ended: Vec<_> =
                    ops.abandon(peer).into_iter().filter_map(|op| counter(Some(op))).collect();
                ended.sort_unstable();
                let owned = |(_, (owner, number)): (&u64, &(u32, usize))| (*owner == peer).then_some(*number);
                let mut wanted: Vec<_> = known.iter().filter_map(owned).collect();
                wanted.sort_unstable();
                assert_eq!(ended, wanted);
                known.retain(|_, (owner, _)| *owner != peer);
                assert!(!ops.wait_for(peer));
            }
            let stale = used.iter().filter(|cookie| !known.contains_key(cookie)).take(5);
            stale.for_each(|&cookie| assert!((0..3).all(|peer| ops.get_mut(peer, cookie).is_none())));
            assert_eq!(ops.len(), known.len());
        }
        assert!((0..3).all(|peer| ops.get_mut(peer, 0).is_none() && ops.get_mut(peer, u64::MAX).is_none()));
    });
}

#[test]
fn a_fence_waits_for_the_operations_before_it_alone() {
    let mut ops = Ops::new(0);
    let before = ops.insert(1, completion(1), true);
    let fence = ops.epochs().close();
    let after = ops.insert(1, completion(2), true);
    ops.insert(1, completion(3), false);
    assert!(!ops.epochs().over(fence));
    let second = ops.epochs().close();
    ops.remove(1, before);
    assert!(ops.epochs().over(fence) && !ops.epochs().over(second));
    ops.remove(1, after);
    assert!(ops.epochs().over(second), "what is confirmed elsewhere does not count");
}

#[test]
fn epochs_are_over_when_nothing_of_them_or_before_is_in_flight() {
    seeds(50, |seed| {
        let mut rng = Rng::new(seed);
        let (mut epochs, mut flying, mut closed) = (Epochs::default(), Vec::new(), Vec::new());
        for _ in 0..500 {
            match rng.below(5) {
                0 | 1 => flying.push(epochs.enter()),
                2 | 3 if !flying.is_empty() => {
                    let at = rng.below(flying.len() as u64) as usize;
                    epochs.leave(flying.swap_remove(at));
                }
                _ => closed.push(epochs.close()),
            }
            for &epoch in &closed {
                assert_eq!(epochs.over(epoch), flying.iter().all(|&began| began > epoch), "epoch {epoch}");
            }
            assert!(closed.is_sorted());
        }
    });
}
