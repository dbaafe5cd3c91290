use super::*;
use std::process::{Command, Stdio};
use std::time::Instant;

fn of(child: &std::process::Child) -> Process {
    Process::of(child.id())
}

/// The descriptor as an owned one, for what a program does that closes everything.
fn unsafe_owned(fd: BorrowedFd<'_>) -> std::os::fd::OwnedFd {
    use std::os::fd::{AsRawFd, FromRawFd};
    // SAFETY: not dropped by the caller.
    unsafe { std::os::fd::OwnedFd::from_raw_fd(fd.as_raw_fd()) }
}

#[test]
fn the_end_of_a_process_is_seen() {
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("a process");
    let process = of(&child);
    let mut handle = Handle::open(process).expect("it runs");
    let mut blind = Handle { process, descriptor: None };
    let mut late = Handle::open(process).expect("it runs");
    assert!(!handle.has_ended() && !blind.has_ended());
    // Another descriptor in the place of the handle's, and a readable one.
    let other = rustix::event::eventfd(1, rustix::event::EventfdFlags::CLOEXEC).expect("a descriptor");
    let number = late.descriptor.as_ref().expect("the system has them").as_fd();
    rustix::io::dup2(&other, &mut std::mem::ManuallyDrop::new(unsafe_owned(number))).expect("another one");
    assert!(!late.has_ended());
    // One that cannot be distinguished from it.
    let other = rustix::event::eventfd(1, rustix::event::EventfdFlags::CLOEXEC).expect("a descriptor");
    let mut misled = Handle { process, descriptor: Some(Descriptor::new(other)) };
    assert!(!misled.has_ended());
    drop(child.stdin.take());
    let deadline = Instant::now() + Duration::from_secs(60);
    for handle in [&mut handle, &mut blind, &mut late, &mut misled] {
        // It has not been waited for: its number is still in use.
        while !handle.has_ended() {
            assert!(Instant::now() < deadline, "its end is not seen");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    assert!(Handle::open(process).is_none());
    child.wait().expect("its status");
    assert!(Handle::open(process).is_none());
}

/// A process whose number is another one's, whose start is unknown.
#[test]
fn the_end_of_a_process_is_seen_whose_number_another_one_has() {
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("a process");
    let descriptor = Handle::open(of(&child)).expect("it runs").descriptor;
    let other = Process { pid: std::process::id(), started: 0 };
    let has_descriptor = descriptor.is_some();
    let mut handle = Handle { process: other, descriptor };
    assert!(!handle.has_ended());
    drop(child.stdin.take());
    child.wait().expect("its status");
    assert_eq!(handle.has_ended(), has_descriptor);
}

#[test]
fn a_process_whose_first_thread_has_ended_lives_while_another_one_goes_on() {
    let stat = |state: &str, threads: u64| {
        let text = format!("7 (a) b) {state} 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 4711 0 0");
        let found = Stat::parse(text.as_bytes());
        assert_eq!(found.map(|stat| stat.parent), Some(1));
        found.map(|stat| (stat.started, stat.ended))
    };
    assert_eq!(stat("S", 1), Some((4711, false)));
    assert_eq!(stat("Z", 2), Some((4711, false)));
    assert_eq!(stat("Z", 1), Some((4711, true)));
    assert_eq!(stat("X", 0), Some((4711, true)));
    assert!(Stat::parse(b"7 (a) S 1").is_none());
    let parent = rustix::process::getppid().map(|parent| parent.as_raw_pid() as u32);
    assert_eq!(Stat::of(std::process::id()).map(|own| own.parent), parent);
}

#[test]
fn another_process_with_the_number_is_not_taken_for_it() {
    let own = Process::own();
    assert!(own.started != 0 && Handle::open(own).is_some());
    let before = Process { started: own.started - 1, ..own };
    assert!(Handle::open(before).is_none() && before.life() != own.life());
}
