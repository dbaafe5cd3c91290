//! RDMA transfers whose other task is given up or purged: each handler runs once, with the reason,
//! and the counters of what has failed stay as they are.

use super::calls::{counter, enter, fence, forever, note_sent};
use super::failure::{LONG, lost};
use super::job::{self, Habits, MAX_BODY, Task, in_threads};
use crate::abi::*;
use crate::api::rdma::{RdmaAddress, Request, transfer};
use crate::api::recovery;
use crate::engine::context::request::Preference;
use crate::engine::progress::dispatcher;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// Starts puts and gets of one packet and of many to task 1, the handlers of which note their
/// parameters, from 1 on. Returns the counter of each.
fn start(task: &Task) -> Vec<&'static AtomicI32> {
    let mut held = enter(task);
    let number = held.acquire_context(1).expect("a context");
    let mut started = Vec::new();
    for op in [LAPI_RDMA_PUT, LAPI_RDMA_GET] {
        for len in [LONG, MAX_BODY, 8] {
            let here = forever(LONG).as_mut_ptr().expose_provenance() as u64;
            let there = forever(LONG).as_mut_ptr().expose_provenance() as u64;
            let counter = counter();
            let request = Request {
                tgt: 1,
                op,
                context: number,
                source: RdmaAddress {
                    memory: held.rdma().and_then(|rdma| rdma.register(here, LONG as u64)).expect("memory"),
                    offset: 0,
                },
                target: RdmaAddress { memory: there, offset: 0 },
                len: len as u64,
                org_cntr: counter.as_ptr().expose_provenance(),
                handler: note_sent as *const () as usize,
                info: started.len() + 1,
            };
            // SAFETY: the memory lives for ever.
            unsafe { transfer(&mut held, &request) }.expect("a transfer");
            started.push(counter);
        }
    }
    started
}

fn ended(task: &Task, counters: &[&AtomicI32], code: i32) {
    while task.reported.lock().len() < counters.len() {
        task.step();
    }
    let mut reported = task.reported.lock().clone();
    reported.sort_unstable();
    let wanted: Vec<_> = (1..=counters.len()).map(|parameter| (parameter, code as u32)).collect();
    assert_eq!(reported, wanted);
    assert!(counters.iter().all(|counter| counter.load(Relaxed) == 0));
    assert!(enter(task).core().watched.is_empty());
}

#[test]
fn a_task_that_dies_ends_the_transfers_with_it() {
    for preference in [Preference::Packets, Preference::Attach] {
        let (ends, fabric) = job::mortal_mem(2, 8, false);
        let tasks = job::open(ends, &Habits { preference, ..Habits::THREADED });
        tasks[1].context.notifier.stop();
        in_threads(&tasks[..1], 1, move |task, _| {
            let counters = start(task);
            fabric.kill(1);
            fence(task).expect("a fence");
            ended(task, &counters, LAPI_ERR_NO_CONNECTIVITY);
        });
        assert_eq!(tasks[0].reports(), [lost(0, 1)]);
        job::close(tasks);
    }
}

#[test]
fn a_purge_ends_the_transfers_with_the_task() {
    for preference in [Preference::Packets, Preference::Attach] {
        let tasks = job::open(job::mem(2, 8, false), &Habits { preference, ..Habits::THREADED });
        tasks[1].context.notifier.stop();
        in_threads(&tasks[..1], 1, |task, _| {
            let counters = start(task);
            recovery::purge(&mut enter(task), 1).expect("a purge");
            ended(task, &counters, LAPI_ERR_TGT_PURGED);
        });
        job::close(tasks);
    }
}

#[test]
fn a_transfer_that_is_refused_leaves_nothing() {
    let (ends, fabric) = job::mortal_mem(2, 8, false);
    let tasks = job::open(ends, &Habits::THREADED);
    fabric.kill(1);
    in_threads(&tasks[..1], 1, |task, _| {
        let mut held = enter(task);
        let here = forever(8).as_mut_ptr().expose_provenance() as u64;
        let place = RdmaAddress {
            memory: held.rdma().and_then(|rdma| rdma.register(here, 8)).expect("memory"),
            offset: 0,
        };
        let number = held.acquire_context(1).expect("a context");
        for op in [LAPI_RDMA_PUT, LAPI_RDMA_GET] {
            let request = Request {
                tgt: 1,
                op,
                context: number,
                source: place,
                target: place,
                len: 8,
                org_cntr: 0,
                handler: note_sent as *const () as usize,
                info: 1,
            };
            // SAFETY: the memory lives for ever.
            let outcome = unsafe { transfer(&mut held, &request) };
            assert_eq!(outcome.unwrap_err().code, LAPI_ERR_NO_CONNECTIVITY);
            dispatcher::turn(&mut held);
            assert!(held.core().watched.is_empty());
        }
    });
    assert_eq!(*tasks[0].reported.lock(), []);
    job::close(tasks);
}
