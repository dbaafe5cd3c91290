//! Shared memory held to the contract of transports; the tasks are threads of this process.

use super::*;
use crate::base::asymmetric_barrier;
use crate::base::sync::Mutex;
use crate::transport::{Endpoint, Outgoing, PeerState, Peers, Piece, SendOutcome, conformance};
use crate::wire::reunion::{Event, Offer};
use std::os::fd::AsFd;
use std::sync::Arc;

mod lobbies;

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
    let asymmetric = asymmetric_barrier::registered();
    let lobbies = Lobbies::default();
    owns.into_iter()
        .zip(all)
        .enumerate()
        .map(|(task, (own, parts))| {
            let pids = vec![std::process::id() as i32; tasks as usize];
            let memory = CrossMemory::new(pids, false);
            let lobby = Box::new(lobbies.get(task as u32));
            let mut end = ShmTransport::new(task as u32, tasks, own, asymmetric, Some(lobby));
            end.join(parts, asymmetric, Some(memory)).expect("a transport");
            end
        })
        .collect()
}

/// The lobbies of a job in one process.
#[derive(Clone, Default)]
struct Lobbies(Arc<Mutex<Vec<(Task, Task, Note)>>>);

/// What lies in a lobby: from a task, for a task.
enum Note {
    Call(Offer),
    Answer(Offer),
}

struct TestLobby {
    task: Task,
    lobbies: Lobbies,
    called: Vec<Task>,
}

impl Lobbies {
    fn get(&self, task: Task) -> TestLobby {
        TestLobby { task, lobbies: self.clone(), called: Vec::new() }
    }
}

impl TestLobby {
    fn offer(&self, blob: &[u8], fds: &[BorrowedFd<'_>]) -> Offer {
        let fds = fds.iter().map(|fd| fd.try_clone_to_owned().expect("a descriptor")).collect();
        Offer { task: self.task, pid: std::process::id() as i32, blob: blob.to_vec(), fds }
    }

    fn drop_call(&self, from: Task, to: Task) -> bool {
        let mut notes = self.lobbies.0.lock();
        let before = notes.len();
        notes.retain(|(by, of, note)| (*by, *of) != (from, to) || matches!(note, Note::Answer(_)));
        notes.len() != before
    }
}

impl Reunion for TestLobby {
    fn open(&mut self) -> std::io::Result<bool> {
        Ok(true)
    }

    fn has_called(&self, task: Task) -> bool {
        self.called.contains(&task)
    }

    fn reach(&mut self, _task: Task) -> std::io::Result<bool> {
        Ok(true)
    }

    fn call(&mut self, task: Task, blob: &[u8], fds: &[BorrowedFd<'_>]) -> std::io::Result<bool> {
        self.called.push(task);
        let offer = self.offer(blob, fds);
        self.lobbies.0.lock().push((self.task, task, Note::Call(offer)));
        Ok(true)
    }

    fn answer(&mut self, task: Task, blob: &[u8], fds: &[BorrowedFd<'_>]) -> std::io::Result<bool> {
        let offer = self.offer(blob, fds);
        self.lobbies.0.lock().push((self.task, task, Note::Answer(offer)));
        Ok(true)
    }

    fn forget(&mut self, task: Task) {
        self.called.retain(|&called| called != task);
        self.drop_call(self.task, task);
    }

    fn shut(&mut self) {}

    fn poll(&mut self) -> std::io::Result<Option<Event>> {
        loop {
            let mut notes = self.lobbies.0.lock();
            let Some(at) = notes.iter().position(|(_, to, _)| *to == self.task) else { return Ok(None) };
            let (from, _, note) = notes.remove(at);
            drop(notes);
            match note {
                Note::Answer(offer) => {
                    self.called.retain(|&called| called != from);
                    return Ok(Some(Event::Answered(offer)));
                }
                // As in the real one: of two calls at each other that of the lower task counts.
                Note::Call(_) if self.called.contains(&from) && self.task < from => {}
                Note::Call(offer) => {
                    self.called.retain(|&called| called != from);
                    self.drop_call(self.task, from);
                    return Ok(Some(Event::Called(offer)));
                }
            }
        }
    }
}

#[test]
fn conforms() {
    conformance::suite(ends);
}

#[test]
fn conforms_under_faults() {
    for seed in 0..4 {
        let plan = crate::transport::faults::FaultPlan::rough(seed);
        println!("{plan}");
        conformance::suite(|tasks| crate::transport::faults::Faulty::join(ends(tasks), &plan));
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
fn a_peer_whose_ring_is_corrupt_is_lost_and_no_other() {
    let mut ends = ends(3);
    let head = [7_u8; 8];
    let packet =
        Outgoing { head: &head, first: Piece::EMPTY, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
    // The word of the first slot in the ring from task 1 to task 0: a packet behind the end of the ring.
    let at = segment::ring_offset(3, 1) + 256;
    let word = 1_u64 | 1 << 32 | 1000 << 35 | 8000 << 51;
    rustix::io::pwrite(ends[0].away.file(), &word.to_ne_bytes(), at as u64).expect("its own memory");
    // SAFETY: the head lives during the call.
    unsafe {
        assert_eq!(ends[2].try_send(0, &packet), SendOutcome::Sent);
        ends[0].segment.contact(1);
        let from_2 = (0..10).find_map(|_| ends[0].recv()).expect("the packet of task 2");
        assert_eq!(from_2.src, 2);
        ends[0].release(from_2);
        assert_eq!((ends[0].state(1), ends[0].state(2)), (PeerState::Dead, PeerState::Up));
        assert_eq!(ends[0].try_send(1, &packet), SendOutcome::Gone);
        assert_eq!(ends[0].try_send(2, &packet), SendOutcome::Sent);
    }
}

/// A task that has parted from a peer gives its memory back although packets of another peer never cease.
#[test]
fn the_memory_of_a_lost_peer_is_unmapped_under_constant_load() {
    let mut ends = ends(3);
    let head = [7_u8; 8];
    let packet =
        Outgoing { head: &head, first: Piece::EMPTY, second: Piece::EMPTY.into(), copy_limit: usize::MAX };
    ends[0].part(2);
    assert_eq!(ends[0].left.len(), 1);
    for _ in 0..20 {
        // SAFETY: the head lives during the calls.
        unsafe {
            assert_eq!(ends[1].try_send(0, &packet), SendOutcome::Sent);
            assert_eq!(ends[1].try_send(0, &packet), SendOutcome::Sent);
        }
        let packet = ends[0].recv().expect("a packet");
        ends[0].release(packet);
    }
    assert!(ends[0].left.is_empty());
}

#[test]
fn the_segment_cannot_be_cut_off() {
    let own = Own::create(2).expect("shared memory");
    assert!(rustix::fs::ftruncate(&own.file, 0).is_err());
}
