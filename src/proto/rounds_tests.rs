use super::*;
use crate::base::rng::Rng;

/// Jobs on one host, and jobs with tasks on hosts at random and in order; with the
/// host of each task.
fn jobs() -> Vec<(Vec<u32>, Option<Arc<Placement>>)> {
    let one = (1..=70).chain([255, 256, 257, 1000, 1024]).map(|tasks| (vec![0; tasks], None));
    let mut rng = Rng::stream(1, 14);
    let mut several: Vec<Vec<u32>> = vec![
        (0..300).map(|task| task / 280).collect(),
        (0..1024).map(|task| task / 64).collect(),
        (0..70).collect(),
    ];
    for _ in 0..60 {
        let (tasks, hosts) = (2 + rng.below(140), 2 + rng.below(39));
        // Some hosts have most tasks.
        let host = |rng: &mut Rng| rng.below(hosts).min(rng.below(hosts)) as u32;
        several.push((0..tasks).map(|_| host(&mut rng)).collect());
    }
    let several = several.into_iter().map(|hosts| {
        let placement = Arc::new(Placement::new(&hosts));
        (hosts, Some(placement))
    });
    one.chain(several).collect()
}

fn rounds(hosts: &[u32], placement: &Option<Arc<Placement>>) -> Vec<Rounds> {
    let tasks = hosts.len() as u32;
    (0..tasks).map(|me| Rounds::new(me, tasks, placement.clone())).collect()
}

/// Every packet that a task needs is sent, with as many values as are expected, and no other.
#[test]
fn senders_and_receivers_agree() {
    for (hosts, placement) in jobs() {
        let all = rounds(&hosts, &placement);
        for round in 0..all[0].count() {
            let needed: usize = all.iter().map(|rounds| rounds.senders(round).len()).sum();
            let mut sent = 0;
            for (me, rounds) in (0..).zip(&all) {
                assert_eq!(rounds.count(), all[0].count());
                assert_eq!(rounds.all(round).count_ones() as usize, rounds.senders(round).len());
                for (at, &receiver) in rounds.receivers(round).iter().enumerate() {
                    let other = &all[receiver as usize];
                    let place = other.place(round, me).expect("the receiver needs it");
                    assert_eq!(other.senders(round)[place], me);
                    assert_eq!(rounds.sent(round, at), other.values(round, place).1, "{rounds:?}, {round}");
                    assert_ne!(receiver, me);
                    sent += 1;
                }
                let places = (0..hosts.len() as u32).filter_map(|other| rounds.place(round, other));
                assert_eq!(places.count(), rounds.senders(round).len(), "{rounds:?}, {round}");
            }
            assert_eq!(sent, needed, "round {round} of {} tasks", hosts.len());
        }
    }
}

/// A signal need not say the round, because a task sends to another one in one round at most.
#[test]
fn a_task_sends_to_each_other_one_at_most_once() {
    for (hosts, placement) in jobs() {
        for rounds in rounds(&hosts, &placement) {
            let receivers = (0..rounds.count()).flat_map(|round| rounds.receivers(round));
            let mut receivers: Vec<_> = receivers.copied().collect();
            let sent = receivers.len();
            receivers.sort_unstable();
            receivers.dedup();
            assert_eq!(receivers.len(), sent, "{rounds:?}");
        }
    }
}

/// What the senders of a round bring lies side by side, and in the end every task has a
/// value of each task.
#[test]
fn the_values_of_all_tasks_are_complete() {
    for (hosts, placement) in jobs() {
        for rounds in rounds(&hosts, &placement) {
            let mut known = 1;
            for round in 0..rounds.count() {
                let mut brought = 0;
                for at in 0..rounds.senders(round).len() {
                    let (from, count) = rounds.values(round, at);
                    assert_eq!(from, brought, "{rounds:?}, round {round}");
                    brought += count;
                }
                known = if rounds.replaces(round) { brought } else { known + brought };
            }
            assert_eq!(known, hosts.len(), "{rounds:?}");
        }
    }
}

/// One task of each host sends to other hosts and receives from them, and no task
/// sends many packets.
#[test]
fn one_task_of_each_host_knows_tasks_of_other_hosts() {
    for (hosts, placement) in jobs() {
        let mut crossing = std::collections::BTreeMap::new();
        for (me, rounds) in (0..).zip(rounds(&hosts, &placement)) {
            let host = hosts[me as usize];
            let mut sent = 0;
            for round in 0..rounds.count() {
                sent += rounds.receivers(round).len();
                let mut others = rounds.receivers(round).iter().chain(rounds.senders(round));
                if others.any(|&other| hosts[other as usize] != host) {
                    assert_eq!(*crossing.entry(host).or_insert(me), me, "host {host} of {hosts:?}");
                }
            }
            let bound =
                SENDERS as u32 * u32::from(rounds.layout.levels) + 3 * u32::from(rounds.layout.exchanges);
            assert!(sent as u32 <= bound.max(1), "task {me} of {hosts:?} sends {sent} packets");
            assert!(rounds.count() as u32 <= 2 + 2 * (hosts.len() as u32).ilog2() + 2);
        }
        let several = hosts.iter().any(|host| *host != hosts[0]);
        let count = hosts.iter().collect::<std::collections::BTreeSet<_>>().len();
        assert_eq!(crossing.len(), if several { count } else { 0 });
    }
}

#[test]
fn a_member_sends_one_packet_and_a_leader_a_few() {
    let packets = |me, tasks, hosts| -> usize {
        let rounds = Rounds::new(me, tasks, hosts);
        (0..rounds.count()).map(|round| rounds.receivers(round).len()).sum()
    };
    assert_eq!((packets(0, 2, None), packets(1, 2, None)), (1, 1));
    assert_eq!((packets(0, 4, None), packets(3, 4, None)), (3, 3));
    assert_eq!((packets(0, 16, None), packets(9, 16, None)), (15, 1));
    assert_eq!(
        (packets(0, 1024, None), packets(1008, 1024, None), packets(1023, 1024, None)),
        (15 + 9, 15 + 9, 1)
    );
    // 16 hosts with 64 tasks each: the leader of a host has 15 children on the first level of
    // the tree and 3 on the second.
    let hosts: Vec<u32> = (0..1024).map(|task| task % 16).collect();
    let placement = Some(Arc::new(Placement::new(&hosts)));
    let packets = |me| packets(me, 1024, placement.clone());
    assert_eq!((packets(3), packets(3 + 16 * 16), packets(3 + 17 * 16)), (15 + 3 + 6, 1 + 15, 1));
}

/// What docs/design/0014 counts, where a packet or a signal is one line that crosses.
#[test]
fn two_lines_cross_one_after_the_other_among_sixteen_tasks() {
    // The lines that cross in one operation, and how many do so one after the other until the last
    // task goes on.
    let lines = |tasks: usize| {
        let all = rounds(&vec![0; tasks], &None);
        let (mut crossing, mut after) = (0, vec![0; tasks]);
        for round in 0..all[0].count() {
            // A task sends what it knows after the rounds before.
            let before = after.clone();
            for (rounds, after) in all.iter().zip(&mut after) {
                let senders = rounds.senders(round);
                crossing += senders.len();
                let awaited = senders.iter().map(|&task| before[task as usize] + 1).max();
                *after = awaited.unwrap_or(0).max(*after);
            }
        }
        (crossing, after.into_iter().max())
    };
    assert_eq!(lines(4), (12, Some(1)));
    assert_eq!(lines(16), (30, Some(2)));
    assert_eq!(lines(64), (132, Some(3)));
}
