//! Tests of what is known of each other task.

use super::*;
use crate::base::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};

/// A model of the peers: sets, as simple as can be.
#[derive(Default)]
struct Model {
    lost: BTreeSet<Task>,
    purged: BTreeSet<Task>,
    rejoining: BTreeSet<Task>,
    quarantined: BTreeSet<Task>,
    incarnations: BTreeMap<Task, u32>,
}

#[test]
fn an_entry_of_zeros_is_the_default() {
    assert_eq!(format!("{:?}", Peer::zeroed()), format!("{:?}", Peer::default()));
}

#[test]
fn every_history_gives_the_state_of_the_model() {
    for seed in 1..=30 {
        let mut rng = Rng::stream(seed, 11);
        let (mut peers, mut model) = (Membership::new(6, false), Model::default());
        for step in 0..400 {
            let task = rng.below(6) as Task;
            let down = model.lost.contains(&task) || model.purged.contains(&task);
            match rng.below(5) {
                0 => {
                    assert_eq!(peers.lose(task), !down, "seed {seed}, step {step}: reported once");
                    if !down {
                        model.rejoining.remove(&task);
                        model.lost.insert(task);
                    }
                }
                1 => {
                    let new = model.purged.insert(task);
                    assert_eq!(peers.purge(task), new, "seed {seed}, step {step}");
                    *model.incarnations.entry(task).or_default() += u32::from(new);
                    model.lost.remove(&task);
                    model.rejoining.remove(&task);
                }
                2 if model.purged.remove(&task) => {
                    peers.resume(task);
                    model.quarantined.remove(&task);
                    model.rejoining.insert(task);
                }
                3 => {
                    peers.rejoined(task);
                    model.rejoining.remove(&task);
                }
                _ => {
                    peers.quarantine(task);
                    model.quarantined.insert(task);
                }
            }
            for task in 0..6 {
                let expected = match () {
                    () if model.purged.contains(&task) => Standing::Purged,
                    () if model.lost.contains(&task) => Standing::Lost,
                    () if model.rejoining.contains(&task) => Standing::Rejoining,
                    () => Standing::Up,
                };
                assert_eq!(peers.standing(task), expected, "seed {seed}, step {step}, task {task}");
                assert_eq!(peers.is_quarantined(task), model.quarantined.contains(&task), "seed {seed}");
                let incarnation = model.incarnations.get(&task).copied().unwrap_or_default();
                assert_eq!(peers.incarnation(task), incarnation, "seed {seed}");
            }
            assert_eq!(peers.rejoining().iter().copied().collect::<BTreeSet<_>>(), model.rejoining);
            assert_eq!(peers.lost().collect::<BTreeSet<_>>(), model.lost);
        }
    }
}

#[test]
fn a_new_process_connects_again_until_its_program_purges_the_peer() {
    let mut peers = Membership::new(3, true);
    assert!(peers.connects_again(1) && peers.connects_again(2));
    peers.purge(1);
    peers.resume(1);
    assert!(!peers.connects_again(1) && peers.connects_again(2));
    assert!(!Membership::new(3, false).connects_again(1));
    let mut late = Membership::new(3, false);
    late.purge(1);
    late.await_all(0);
    assert!(!late.connects_again(1) && late.connects_again(2), "it has learnt late that it is one");
}

#[test]
fn a_peer_without_progress_is_woken_ever_more_seldom() {
    let mut peers = Membership::new(2, false);
    let kicks = |peers: &mut Membership, progress, from: u64| {
        (from..from + 1000).filter(|&now| peers.kick_is_due(1, progress, now * BETWEEN_KICKS / 10)).count()
    };
    assert_eq!(kicks(&mut peers, 7, 0), 7, "after 0, 10, 30, 70, 150, 310 and 630 ticks");
    assert!(kicks(&mut peers, 7, 1000) <= 1);
    assert!(kicks(&mut peers, 8, 2000) >= 6, "it has made progress");
}

#[test]
fn an_entry_is_a_few_words() {
    assert!(size_of::<Peer>() <= 64);
}
