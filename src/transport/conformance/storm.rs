//! Storms: every task in a thread of its own sends to all others, sleeps whenever it cannot
//! continue, and gets every packet once.

use super::nothing_more;
use super::support::{Ledger, Sample, in_threads, sleep, try_send};
use crate::base::clock::ticks;
use crate::base::rng::Rng;
use crate::transport::{SendError, Task, Transport, Want};

pub(super) fn suite<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    for (tasks, each) in [(2, 5_000), (4, 1_000), (8, 300)] {
        storm(make(tasks), each);
    }
}

/// Less of it: with many tasks there is always something to be waited for.
pub(super) fn disturbed<T: Transport>(make: &impl Fn(u32) -> Vec<T>) {
    for (tasks, each) in [(2, 3_000), (4, 300)] {
        storm(make(tasks), each);
    }
}

fn storm<T: Transport>(mut ends: Vec<T>, each: u64) {
    let tasks = ends.len() as u32;
    in_threads(&mut ends, |task, end, failed| {
        let mut rng = Rng::stream(7, task.into());
        let mut ledger = Ledger::new(task, tasks, each);
        let mut sent = vec![0; tasks as usize];
        sent[task as usize] = each;
        while ledger.missing() > 0 || sent.iter().any(|&sent| sent < each) {
            let mut moved = send_a_burst(end, task, &mut sent, each, &mut rng);
            for _ in 0..=rng.below(16) {
                let Some(packet) = end.recv() else { break };
                ledger.enter(&packet, end);
                end.release(packet);
                moved = true;
            }
            if moved {
                continue;
            }
            match rng.below(4) {
                0 => std::thread::yield_now(),
                _ => {
                    end.want(Want::Polling(false, ticks()));
                    sleep(end, "packets or room in a storm", failed);
                    end.want(Want::Polling(true, ticks()));
                }
            }
        }
    });
    nothing_more(&mut ends);
}

/// Sends a few packets to every peer that still is to get some, beginning with any. Whether
/// anything was taken.
fn send_a_burst<T: Transport>(end: &mut T, task: Task, sent: &mut [u64], each: u64, rng: &mut Rng) -> bool {
    let tasks = sent.len() as u64;
    let begin = rng.below(tasks);
    let mut moved = false;
    for peer in (0..tasks).map(|step| ((begin + step) % tasks) as Task) {
        let sent = &mut sent[peer as usize];
        for _ in 0..=rng.below(4) {
            if *sent == each {
                break;
            }
            match try_send(
                end,
                peer,
                &Sample::numbered(task, peer, *sent, end.limits(peer).max_body).outgoing(),
            ) {
                Ok(()) => {
                    *sent += 1;
                    moved = true;
                }
                Err(SendError::NoRoom) => break,
                Err(SendError::PeerGone) => panic!("task {peer} is still up"),
            }
        }
    }
    moved
}
