//! Connections by real sockets, whose listeners are served step by step.

use super::*;
use crate::base::clock::test_deadline;
use crate::job::Link;
use crate::job::channel::{Channel, Receive};
use crate::transport::shm::{Group, Own, ShmTransport};
use crate::transport::{Endpoint, Outgoing, Peers, Piece, SendOutcome, Want};
use crate::wire::VERSION;
use crate::wire::hello::Message;
use std::time::Instant;

/// A task of a job of two, and its listener, which no thread serves.
fn begin(task: Task, key: &str) -> (ShmTransport, Arc<Shared>) {
    let (own, site) = Own::create(task, Group::all(2)).expect("shared memory");
    let job = format!("connect {} {key}", std::process::id());
    let link = Link::none();
    let openings = link.openings(&job, 2, 0);
    let generation = openings.open(task);
    let settings = ConnectSettings {
        job,
        instance: 0,
        ends: link.ends().clone(),
        openings,
        hello: Hello { task, tasks: 2, generation, incarnation: task.into(), ..Hello::default() },
        init_timeout: test_deadline(),
        log: Log::none(),
        info_level: 0,
        processes: Box::default(),
        hint: None,
    };
    let mut shared = None;
    let start = |service: Service| {
        shared = Some(service.0);
        let nothing: Box<dyn FnOnce() + Send> = Box::new(|| ());
        Ok(nothing)
    };
    let connections = Connections::open(settings, site, start).expect("a listener");
    (ShmTransport::new(own, false, None, Box::new(connections)), shared.expect("a service"))
}

/// Serves a listener until something has happened.
#[track_caller]
fn serve(shared: &Shared, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + test_deadline();
    while !done() {
        assert!(Instant::now() < end, "it does not happen");
        shared.serve(Duration::from_millis(10));
    }
}

fn send(from: &mut ShmTransport, to: Task, word: u64) -> SendOutcome {
    let head = word.to_ne_bytes();
    let packet =
        Outgoing { head: &head, first: Piece::EMPTY, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
    // SAFETY: the head lives during the call.
    unsafe { from.try_send(to, &packet) }
}

/// The initiator may send once it has confirmed, and end before the listener of the other task has
/// read that.
#[test]
fn a_confirmation_counts_that_was_not_read_before_its_sender_left() {
    let ((mut own, listener), (mut peer, listener_of_peer)) = (begin(0, "confirm"), begin(1, "confirm"));
    assert_eq!(send(&mut peer, 0, 7), SendOutcome::NoRoom);
    serve(&listener, || own.standing(1).absence.as_deref() == Some("is being connected"));
    serve(&listener_of_peer, || send(&mut peer, 0, 7) == SendOutcome::Sent);
    drop(peer);
    assert!(own.recv().is_none(), "the listener has read the confirmation");
    own.want(Want::Settle(1));
    let packet = own.recv().expect("a packet");
    // SAFETY: the packet is not released yet, and its head is 8-byte aligned.
    assert_eq!((packet.src, unsafe { packet.head.cast::<u64>().read() }), (1, 7));
    own.release(packet);
}

/// A task of another version learns at once why it is not connected, in words of its own.
#[test]
fn a_request_of_another_version_is_refused_with_both() {
    let (own, listener) = begin(0, "version");
    let key = Key {
        job: format!("connect {} version", std::process::id()),
        instance: 0,
        secret: Vec::new(),
        uid: rustix::process::geteuid().as_raw(),
    };
    let channel = Channel::connect(&key.name(1, 0)).expect("a socket").expect("a listener");
    let mut request = Message::Request(Hello { task: 1, tasks: 2, ..Hello::default() }).encode();
    request[0] ^= 1;
    channel.try_send(&request, &[]).expect("room");
    let mut answer = None;
    serve(&listener, || {
        if let Receive::Message(message) = channel.receive().expect("a socket") {
            answer = Some(message.bytes);
        }
        answer.is_some()
    });
    let mut answer = answer.expect("an answer");
    answer[0] ^= 1;
    let Some(Message::Refuse(why)) = Message::decode(&answer) else { panic!("no refusal: {answer:?}") };
    let versions =
        format!("messages have version {VERSION}, those of the task that connects {}", VERSION ^ 1);
    assert!(why.contains("task 0") && why.contains(&versions), "{why}");
    drop(own);
}

/// A child of this process cannot run the service.
#[track_caller]
fn is_refused_in_a_child(service: Service) {
    // SAFETY: the child makes one call, which waits for nothing, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: the end of a child that waits all the same.
        unsafe { libc::alarm(20) };
        let refused = service.run_in_common().is_err();
        // SAFETY: it ends here.
        unsafe { libc::_exit(i32::from(!refused)) };
    }
    let mut status = 0;
    // SAFETY: the child of this process.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "it is refused");
}

/// The child has a copy of the thread's list, and not the thread.
#[test]
fn a_child_of_fork_adds_nothing_to_what_its_parents_common_thread_waits_with() {
    let ((one, listener), (other, listener_of_other)) = (begin(0, "fork"), begin(1, "fork"));
    let take_out = Service(listener).run_in_common().expect("the first session of the thread");
    is_refused_in_a_child(Service(listener_of_other));
    take_out();
    drop((one, other));
}

/// One that is forked while another thread begins the first session has the lock as that thread
/// has left it.
#[test]
fn a_child_of_fork_does_not_wait_for_a_session_that_was_about_to_begin() {
    let ((one, listener), (other, listener_of_other)) = (begin(0, "begins"), begin(1, "begins"));
    let locked = common::ALL.lock();
    let first = std::thread::spawn(|| Service(listener).run_in_common());
    let soon = Instant::now() + Duration::from_secs(2);
    while common::USERS.load(Ordering::Relaxed) == 0 && Instant::now() < soon {
        std::thread::sleep(Duration::from_millis(1));
    }
    is_refused_in_a_child(Service(listener_of_other));
    drop(locked);
    first.join().expect("it ends").expect("the first session of the thread")();
    drop((one, other));
}
