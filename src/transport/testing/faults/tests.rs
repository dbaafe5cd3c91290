use super::*;
use crate::transport::testing::mem::{MemOptions, MemTransport, network};
use crate::transport::{SendError, conformance};

type End = Faulty<MemTransport>;

/// A failing test prints the plan that made it fail last.
fn conforms_with(plan: &FaultPlan, options: MemOptions) {
    eprintln!("{plan}");
    conformance::suite(|tasks| Faulty::join(network(tasks, options), plan));
}

#[test]
fn conforms_without_faults() {
    conforms_with(&FaultPlan::default(), MemOptions { remote: true, ..MemOptions::default() });
}

#[test]
fn conforms_on_rough_roads() {
    for seed in [1, 0x5eed, u64::MAX] {
        conforms_with(&FaultPlan::rough(seed), MemOptions::default());
    }
}

#[test]
fn conforms_with_delays_in_order() {
    for seed in [2, 3] {
        let plan = FaultPlan { delay: 0.5, delay_polls: 40, reorder: 0.0, ..FaultPlan::rough(seed) };
        conforms_with(&plan, MemOptions { capacity: 8, ..MemOptions::default() });
    }
}

#[test]
fn conforms_when_everything_is_held() {
    let plan = FaultPlan { seed: 4, delay: 1.0, delay_polls: 3, reorder: 0.5, refuse: 0.5, death: None };
    conforms_with(&plan, MemOptions { capacity: 2, ..MemOptions::default() });
}

#[test]
fn the_same_seed_is_the_same_run() {
    let plan = FaultPlan { death: Some((2, 700)), ..FaultPlan::rough(9) };
    let run = trace(&plan);
    assert!(run.len() > 1_000);
    assert_eq!(run, trace(&plan));
    assert_ne!(run, trace(&FaultPlan { seed: 10, ..plan }));
}

#[test]
fn each_fault_happens_and_only_those_asked_for() {
    let rough = FaultPlan::rough(5);
    let none = FaultPlan { delay: 0.0, reorder: 0.0, refuse: 0.0, ..rough };
    for plan in [
        none.clone(),
        FaultPlan { delay: 0.3, ..none.clone() },
        FaultPlan { reorder: 0.3, ..none.clone() },
        FaultPlan { refuse: 0.3, ..none.clone() },
        rough,
    ] {
        let mut ends = pair(&plan, MemOptions { capacity: 2_000, ..MemOptions::default() });
        let refused = (0..1_000).filter(|&seq| send(&mut ends[0], 1, seq).is_err()).count();
        let mut got = Vec::new();
        while got.len() < 1_000 - refused {
            got.extend(take(&mut ends[1]));
        }
        let counts = ends[1].counts();
        assert_eq!(ends[0].counts().refused, refused as u64);
        assert_eq!(refused > 0, plan.refuse > 0.0, "{plan}");
        assert_eq!(counts.held > 0, plan.delay + plan.reorder > 0.0, "{plan}");
        assert_eq!(counts.reordered > 0, plan.reorder > 0.0, "{plan}");
        assert_eq!(!got.is_sorted(), plan.reorder > 0.0, "{plan}");
        assert_eq!(ends[1].limits(0).ordered, plan.reorder == 0.0, "{plan}");
    }
}

#[test]
fn a_held_packet_comes_out_by_itself_and_is_not_slept_over() {
    let plan = FaultPlan { seed: 6, delay: 1.0, delay_polls: 20, ..FaultPlan::default() };
    let mut ends = pair(&plan, MemOptions::default());
    let mut polls = Vec::new();
    for seq in 0..100 {
        send(&mut ends[0], 1, seq).unwrap();
        let mut needed = 1;
        while take(&mut ends[1]).is_none() {
            needed += 1;
            assert!(!ends[1].arm(), "a packet is held");
            // Nor is its sender reported gone.
            assert_eq!(ends[1].standing(0).state, PeerState::Up);
        }
        polls.push(needed);
        assert!(ends[1].arm());
        ends[1].disarm();
    }
    assert_eq!((polls.iter().min(), polls.iter().max()), (Some(&2), Some(&21)));
}

#[test]
fn a_sleeper_is_woken_when_another_thread_s_poll_holds_a_packet() {
    let plan = FaultPlan { seed: 7, delay: 1.0, delay_polls: 5, ..FaultPlan::default() };
    let mut ends = pair(&plan, MemOptions::default());
    send(&mut ends[0], 1, 1).unwrap();
    // Armed before the packet has come: so the descriptor is quiet once emptied, though a
    // packet is held.
    ends[1].armed = true;
    assert!(take(&mut ends[1]).is_none());
    assert!(conformance::readable(&ends[1]));
}

#[test]
fn a_refusal_without_reason_is_not_slept_over() {
    let plan = FaultPlan { seed: 8, refuse: 1.0, ..FaultPlan::default() };
    let mut ends = pair(&plan, MemOptions::default());
    assert_eq!(send(&mut ends[0], 1, 1), Err(SendError::NoRoom));
    assert!(!ends[0].arm());
    assert!(ends[0].arm(), "reported once");
    assert!(!conformance::readable(&ends[0]));
    assert_eq!(send(&mut ends[0], 1, 1), Err(SendError::NoRoom));
    assert!(conformance::readable(&ends[0]));
    ends[0].disarm();
    assert!(take(&mut ends[1]).is_none(), "refused is not sent");
}

#[test]
fn the_end_of_a_peer_is_reported_after_its_packets() {
    let plan = FaultPlan { seed: 9, delay: 0.7, delay_polls: 9, ..FaultPlan::default() };
    for seed in 0..50 {
        let mut ends = pair(&FaultPlan { seed, ..plan.clone() }, MemOptions::default());
        for seq in 0..10 {
            send(&mut ends[0], 1, seq).unwrap();
        }
        let mut got: Vec<u64> = (0..2).filter_map(|_| take(&mut ends[1])).collect();
        ends[0].close();
        while ends[1].standing(0).state == PeerState::Up {
            got.extend(take(&mut ends[1]));
        }
        // Now everything comes at once: what takes until `None` to be the end is right.
        got.extend(std::iter::from_fn(|| take(&mut ends[1])));
        assert_eq!(got, Vec::from_iter(0..10), "seed {seed}");
        assert_eq!(ends[1].standing(0).state, PeerState::Closed);
    }
}

#[test]
fn a_task_dies_after_a_number_of_packets() {
    let plan = FaultPlan { death: Some((1, 3)), ..FaultPlan::default() };
    let mut ends = Faulty::join(network(3, MemOptions::default()), &plan);
    send(&mut ends[0], 1, 1).unwrap();
    send(&mut ends[0], 1, 2).unwrap();
    send(&mut ends[0], 1, 3).unwrap();
    assert_eq!(take(&mut ends[1]), Some(1));
    send(&mut ends[1], 2, 4).unwrap();
    assert!(ends[0].arm());
    assert_eq!(ends[0].standing(1).state, PeerState::Up);
    // The third packet of task 1 is its last.
    assert_eq!(take(&mut ends[1]), Some(2));
    assert!(conformance::readable(&ends[0]), "its peers wake");
    ends[0].disarm();
    for peer in [0, 2] {
        assert_eq!(ends[peer].standing(1).state, PeerState::Dead);
        assert_eq!(send(&mut ends[peer], 1, 5), Err(SendError::PeerGone));
    }
    assert_eq!(take(&mut ends[2]), Some(4), "sent before its end");
    // It is silent, does not hang, and does not say goodbye.
    assert_eq!(take(&mut ends[1]), None);
    assert_eq!(send(&mut ends[1], 0, 6), Err(SendError::PeerGone));
    ends[1].arm();
    assert!(conformance::readable(&ends[1]));
    ends[1].disarm();
    ends[1].close();
    assert_eq!(ends[0].standing(1).state, PeerState::Dead);
    assert_eq!(ends[0].inner().standing(1).state, PeerState::Up);
}

#[test]
fn alone_death_is_silence() {
    let plan = FaultPlan { death: Some((1, 1)), ..FaultPlan::default() };
    let mut ends: Vec<End> = network(2, MemOptions::default())
        .into_iter()
        .zip(0..)
        .map(|(end, task)| Faulty::alone(end, task, &plan))
        .collect();
    send(&mut ends[0], 1, 1).unwrap();
    send(&mut ends[0], 1, 2).unwrap();
    assert_eq!(take(&mut ends[1]), Some(1));
    assert_eq!(take(&mut ends[1]), None);
    assert_eq!(send(&mut ends[1], 0, 3), Err(SendError::PeerGone));
    // Unknown yet.
    assert_eq!(ends[0].standing(1).state, PeerState::Up);
    send(&mut ends[0], 1, 4).unwrap();
}

#[test]
fn a_plan_prints_all_of_itself() {
    let plan = FaultPlan { death: Some((3, 100)), ..FaultPlan::rough(0xbeef) };
    assert_eq!(
        plan.to_string(),
        "seed=0x000000000000beef delay=0.2 delay_polls=12 reorder=0.15 refuse=0.1 \
         death=task 3 after 100 packets"
    );
}

fn pair(plan: &FaultPlan, options: MemOptions) -> Vec<End> {
    Faulty::join(network(2, options), plan)
}

/// Everything that happens in a run of three tasks that one thread steps in turn.
fn trace(plan: &FaultPlan) -> Vec<(Task, u64, String)> {
    let mut ends = Faulty::join(network(3, MemOptions { capacity: 4, ..MemOptions::default() }), plan);
    let mut trace = Vec::new();
    for step in 0..3_000 {
        let task = (step % 3) as Task;
        let end = &mut ends[task as usize];
        let sent = send(end, (task + 1 + (step / 3 % 2) as Task) % 3, step);
        let got = take(end);
        trace.push((task, step, format!("{sent:?} {got:?} {}", end.arm())));
        end.disarm();
    }
    trace
}

fn send(end: &mut End, to: Task, seq: u64) -> Result<(), SendError> {
    let packet = Outgoing {
        head: &seq.to_ne_bytes(),
        first: Piece::of(b"bytes"),
        second: Piece::EMPTY.into(),
        copy_limit: usize::MAX,
    };
    // SAFETY: the piece is a slice that outlives the call.
    unsafe { end.try_send(to, &packet) }.accepted().map(drop)
}

/// The number of the next packet.
fn take(end: &mut End) -> Option<u64> {
    let packet = end.recv()?;
    assert_eq!((packet.head_len, packet.body_len), (8, 5));
    // SAFETY: an aligned head of 8 bytes, which is readable until the packet is released.
    let seq = unsafe { packet.head.cast::<u64>().read() };
    end.release(packet);
    Some(seq)
}
