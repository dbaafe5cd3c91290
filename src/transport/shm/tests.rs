//! Shared memory held to the contract of transports; the tasks are threads of this process.

use super::*;
use crate::base::fence;
use crate::transport::conformance;
use std::os::fd::AsFd;

/// The ends of a job of `tasks` tasks.
fn ends(tasks: u32) -> Vec<ShmTransport> {
    let owns: Vec<Own> = (0..tasks).map(|_| Own::create(tasks).expect("shared memory")).collect();
    let copy = |fd: &OwnedFd| fd.as_fd().try_clone_to_owned().expect("a descriptor");
    let parts = |me: u32| {
        let part = |(task, own): (usize, &Own)| {
            let parts =
                PeerParts { pid: std::process::id() as i32, file: copy(&own.file), event: copy(&own.event) };
            (task as u32 != me).then_some(parts)
        };
        owns.iter().enumerate().map(part).collect::<Vec<_>>()
    };
    let all: Vec<_> = (0..tasks).map(parts).collect();
    let asymmetric = fence::registered();
    owns.into_iter()
        .zip(all)
        .enumerate()
        .map(|(task, (own, parts))| {
            let pids = vec![std::process::id() as i32; tasks as usize];
            let attach: Box<dyn Attach> = Box::new(attach::CrossMemory::new(pids, false));
            ShmTransport::join(task as u32, own, parts, asymmetric, Some(attach)).expect("a transport")
        })
        .collect()
}

#[test]
fn conforms() {
    conformance::suite(ends);
}

#[test]
fn conforms_under_faults() {
    for seed in 0..4 {
        let plan = crate::transport::fault::FaultPlan::rough(seed);
        println!("{plan}");
        conformance::suite(|tasks| crate::transport::fault::Faulty::join(ends(tasks), &plan));
    }
}

#[test]
fn a_file_of_another_size_is_refused() {
    let own = Own::create(2).expect("shared memory");
    let error = Segment::open(own.file.as_fd(), 3, 1).err().expect("an error");
    assert_eq!(error.code, LAPI_ERR_SHM_SETUP);
    assert!(error.detail.contains("task 1"), "{error}");
}

#[test]
fn the_segment_cannot_be_cut_off() {
    let own = Own::create(2).expect("shared memory");
    assert!(rustix::fs::ftruncate(&own.file, 0).is_err());
}
