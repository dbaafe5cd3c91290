//! Notices of deaths among other messages: to note one may need a poll.

use super::is_there;
use super::network::{Published, open, preferring, strangers};
use crate::base::clock::test_deadline;
use crate::base::process::Process;
use crate::error::Result;
use crate::transport::fabric::ofi::BATCH;
use crate::transport::fabric::{Directory, FabricTransport, Own, WINDOW};
use crate::transport::{Endpoint, Outgoing, PeerState, Peers, Piece, SendOutcome, Task, Want};
use crate::wire::network::{Content, FrameKind, NOTICE, Notice};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PROVIDER: &str = "tcp;ofi_rxm";

/// A directory in which another process has taken the place of a task.
struct Succeeded(Published, Task, Process);

impl Directory<Vec<u8>> for Succeeded {
    fn address_of(&mut self, peer: Task) -> Result<Vec<u8>> {
        self.0.address_of(peer)
    }

    fn process_of(&mut self, peer: Task) -> Option<Process> {
        (peer == self.1).then_some(self.2)
    }
}

/// Task 0 sees the processes of four tasks. `child` is that of `task`, and runs; of the task after
/// it a former process is known.
fn watching(task: Task, child: &Child) -> Vec<FabricTransport> {
    let (own, published): (Vec<Own>, Vec<Vec<u8>>) =
        open(4, PROVIDER).expect("endpoints").into_iter().unzip();
    let published = Arc::new(published);
    let process = |started| Process { started, ..Process::own() };
    let join = |own| {
        let directory = Succeeded(Published(published.clone()), task + 1, process(8));
        FabricTransport::new(own, &[7; 16], Box::new(directory)).expect("a transport")
    };
    let mut ends: Vec<FabricTransport> = own.into_iter().map(join).collect();
    let mut processes = vec![Process::own(); 4];
    processes[task as usize] = Process::of(child.id());
    processes[task as usize + 1] = process(7);
    ends[0].watch_others(vec![0; 4], processes, Box::default());
    ends
}

/// A packet of 8 bytes from task 3 to task 0.
fn send(ends: &mut [FabricTransport], number: u32) -> SendOutcome {
    let head = u64::from(number).to_ne_bytes();
    let packet =
        Outgoing { head: &head, first: Piece::EMPTY, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
    // SAFETY: the head is readable during the call.
    unsafe { ends[3].try_send(0, &packet) }
}

/// Takes the packets that there are: their numbers.
fn take(end: &mut FabricTransport, taken: &mut Vec<u32>) {
    while let Some(packet) = end.recv() {
        // SAFETY: a head of 8 bytes, which is aligned.
        taken.push(unsafe { packet.head.cast::<u64>().read() } as u32);
        end.release(packet);
    }
}

/// The notice shows that a process has missed a death; what the watched process has sent, which has
/// ended, is taken before that is reported.
#[test]
fn messages_behind_a_notice_arrive_once_though_a_poll_is_needed_to_note_it() {
    if !is_there(PROVIDER) {
        return;
    }
    const PACKETS: u32 = 3 * BATCH as u32;
    const { assert!(PACKETS < WINDOW) };
    let mut child = Command::new("sleep").arg("1000").spawn().expect("a process");
    let mut ends = watching(1, &child);
    ends[3].want(Want::Connection(0));
    let deadline = Instant::now() + test_deadline();
    while !ends[0].peer(3).is_some_and(|peer| peer.met) || ends[0].has_pending() || ends[3].has_pending() {
        assert!(Instant::now() < deadline, "the two do not meet");
        ends.iter_mut().for_each(|end| end.serve());
    }
    child.kill().and_then(|()| child.wait()).expect("it ends");
    let died = Notice { content: Content::Died, task: 2, life: 6 };
    let frame = ends[3].credentials.frame(FrameKind::Notice, NOTICE);
    let peer = ends[3].peer(0).expect("a peer");
    ends[3].inject_own(0, peer, &frame, &died.encode()).expect("room for a notice");
    for number in 0..PACKETS {
        while send(&mut ends, number) != SendOutcome::Sent {
            assert!(Instant::now() < deadline, "there is no room");
            ends[3].serve();
        }
    }
    let mut taken = Vec::new();
    while taken.len() < PACKETS as usize || ends[0].standing(2).state != PeerState::Dead {
        assert!(Instant::now() < deadline, "what has arrived: {taken:?}");
        ends[3].serve();
        ends[0].advance();
        take(&mut ends[0], &mut taken);
    }
    assert!(taken.into_iter().eq(0..PACKETS));
    assert_eq!(ends[0].standing(3).state, PeerState::Up);
    assert_eq!(ends[0].standing(1).state, PeerState::Dead, "the watched process has ended");
}

/// As with a shortage of descriptors: the transport that has the peer's packets knows nothing of
/// notices.
#[test]
fn a_notice_that_fails_is_kept_for_a_peer_whose_packets_go_elsewhere() {
    if !is_there(PROVIDER) {
        return;
    }
    let mut ends = strangers(3, &preferring(PROVIDER));
    let end = &mut ends[0];
    end.watch_others(vec![0, 0, 1], vec![Process::own(); 3], [false, true, false].into());
    end.device.close_endpoint();
    let died = Notice { content: Content::Died, task: 2, life: 6 };
    end.send_notice(1, died);
    end.send_notice(2, died);
    let unsent = |end: &FabricTransport| [1, 2].map(|task| end.unsent_to(task) != 0);
    assert_eq!(unsent(end), [true, false]);
    assert_eq!([1, 2].map(|task| end.standing(task).state), [PeerState::Up, PeerState::Dead]);
    let deadline = Instant::now() + test_deadline();
    while unsent(end)[0] {
        assert!(Instant::now() < deadline, "it is given up some time");
        end.send_notices(1);
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Of a task after one that has ended LAPI only its own notice shows that it has not.
#[test]
fn notices_that_wait_are_noted_before_the_watched_process_counts_as_ended() {
    if !is_there(PROVIDER) {
        return;
    }
    let mut child = Command::new("sleep").arg("1000").spawn().expect("a process");
    let life = Process::of(child.id()).life();
    let mut ends = watching(2, &child);
    ends.iter_mut().for_each(|end| end.linger = Duration::ZERO);
    let end = &mut ends[0];
    end.tell_watch(|watch| watch.closed(1));
    end.follow_ring();
    child.kill().and_then(|()| child.wait()).expect("it ends");
    let notices = [
        Notice { content: Content::Died, task: 3, life: 6 },
        Notice { content: Content::Watched, task: 2, life },
    ];
    notices.iter().for_each(|notice| end.keep_notice(2, &notice.encode()));
    end.note_notices();
    assert_eq!([2, 3].map(|task| end.standing(task).state), [PeerState::Dead; 2]);
}
