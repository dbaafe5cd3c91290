//! Collective calls, compared with what all tasks have.

mod common;

use common::{code, is_task, job, passed, prepare};
use lapi::{Collectives, Context, codes};
use openlapi_tests::Network;

/// What a task has.
fn numbers(task: u32, size: usize) -> Vec<i32> {
    (0..size).map(|at| (task as i32 * 7919 + at as i32 * 31) % 1009 - 300).collect()
}

fn combined(everyone: &[Vec<i32>], combine: fn(i32, i32) -> i32) -> Vec<i32> {
    let of = |at: usize| everyone.iter().map(|one| one[at]).reduce(combine).expect("a task");
    (0..everyone[0].len()).map(of).collect()
}

#[test]
fn every_call_with_every_root_and_sizes_of_no_one_and_several_pieces() {
    job("every_call_with_every_root_and_sizes_of_no_one_and_several_pieces", &[1, 2, 3, 5], every_call);
}

/// A message whose datagram is lost arrives after the one that was sent behind it.
#[test]
fn messages_that_overtake_each_other() {
    if is_task() {
        return every_call(Context::open().expect("a context"));
    }
    let Some(hosts) = Network::Udp.hosts("collective calls in Rust while datagrams are lost", 1) else {
        return;
    };
    hosts.lose(5).expect("nft refuses the rule, or is not installed (nftables)");
    let job =
        prepare("messages_that_overtake_each_other", 3).env("MP_EUILIB", "ip").env("LAPI_USE_SHM", "no");
    passed(&hosts.place(3, job.deadline(120)).run(), 3);
}

fn every_call(context: Context) {
    let mut collectives = Collectives::with_piece(&context, 64).expect("all make them");
    let (me, tasks) = (context.task(), context.tasks());
    for size in [0, 1, 7, 16, 17, 500] {
        let everyone: Vec<Vec<i32>> = (0..tasks).map(|task| numbers(task, size)).collect();
        for root in 0..tasks {
            let mut mine = numbers(me, size);
            collectives.broadcast(&mut mine, root).expect("a broadcast");
            assert_eq!(mine, everyone[root as usize]);

            let operations: [fn(i32, i32) -> i32; 3] = [i32::wrapping_add, i32::max, |a, b| a ^ b];
            for combine in operations {
                let mut mine = numbers(me, size);
                collectives.reduce(&mut mine, root, combine).expect("a reduction");
                assert!(me != root || mine == combined(&everyone, combine));
            }
            let gathered = collectives.gather(&numbers(me, size), root).expect("a gathering");
            assert_eq!(gathered, (me == root).then(|| everyone.concat()));
        }
        let mut mine = numbers(me, size);
        collectives.allreduce(&mut mine, i32::min).expect("a reduction");
        assert_eq!(mine, combined(&everyone, i32::min));
        assert_eq!(collectives.allgather(&numbers(me, size)).expect("a gathering"), everyone.concat());
        collectives.barrier().expect("a barrier");
    }
    // Bytes and elements without bytes are elements too.
    let mut bytes = [me as u8; 130];
    collectives.allreduce(&mut bytes, u8::max).expect("a reduction");
    assert_eq!(bytes, [(tasks - 1) as u8; 130]);
    assert_eq!(collectives.allgather(&[(), ()]).expect("a gathering").len(), 2 * tasks as usize);
    // What is wrong is refused before any message.
    assert_eq!(code(collectives.broadcast(&mut [0u8], tasks)), codes::LAPI_ERR_TGT);
    assert_eq!(code(collectives.allgather(&[[0u8; 96]])), codes::LAPI_ERR_DATA_LEN);
    collectives.barrier().expect("a barrier");
    collectives.free().expect("all free them");
}
