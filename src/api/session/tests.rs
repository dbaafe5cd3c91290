//! Tasks of several jobs in one process.

mod event_loop;
mod mistakes;
mod processes;
mod threadless;
mod waits;

use super::*;
use crate::abi::{LAPI_ERR_HNDL_INVALID, LAPI_ERR_UNKNOWN};
use crate::api::{fence, progress, put_get};
use crate::engine::context::events::{Failure, NoEvents};
use crate::engine::context::request::{Hint, Places, Put};
use crate::job::Common;
use crate::proto::outbox::SendDone;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

/// Nothing fails in these tests.
#[derive(Default)]
struct Quiet {
    closing: AtomicUsize,
}

impl Events for Quiet {
    fn ends_by(&self, failure: &Failure<'_>) -> bool {
        panic!("{failure:?}");
    }

    fn failed(&self, _: &Context, failure: &Failure<'_>) {
        panic!("{failure:?}");
    }

    fn fatal(&self) {
        panic!("a session has ended");
    }

    fn stalled(&self) {
        panic!("no progress");
    }

    fn closing(&self, _: &Context, _: bool) {
        self.closing.fetch_add(1, Ordering::AcqRel);
    }
}

fn identity(job: &str, task: u32, tasks: u32) -> Identity {
    let key = format!("{job} of process {}", std::process::id());
    Identity { task, tasks, key, common: Common::All, source: "a test" }
}

/// A task with memory that the others put into.
struct Task {
    session: Session,
    link: Link,
    memory: Box<[[u8; 24]]>,
    arrived: AtomicI32,
}

impl Task {
    fn open(job: &str, task: u32, tasks: u32) -> Self {
        Self::open_with(Interrupts::On, job, task, tasks)
    }

    fn open_with(interrupts: Interrupts, job: &str, task: u32, tasks: u32) -> Self {
        let link = Link::none();
        let settings = Settings { interrupts, ..Settings::default() };
        let events = Arc::new(Quiet::default());
        let session = Session::open(&identity(job, task, tasks), settings, &link, events);
        let session = session.expect("a task of a job of this machine");
        let memory = vec![[0; 24]; tasks as usize].into();
        Self { session, link, memory, arrived: AtomicI32::new(0) }
    }

    /// Puts these bytes into the memory of a task, at the place of this one, and waits.
    fn put(&self, target: &Self, tgt: u32, data: &[u8; 24]) {
        let mut held = self.session.enter().expect("an open session");
        // SAFETY: the data lives until the fence.
        unsafe { self.start_put(&mut held, target, tgt, data) };
        fence::fence(&mut held).expect("a fence");
    }

    /// Starts what [`Self::put`] does.
    ///
    /// # Safety
    /// The data must stay as it is until it is out, and both tasks must live until it is there.
    unsafe fn start_put(&self, held: &mut Held<'_>, target: &Self, tgt: u32, data: &[u8; 24]) {
        let me = held.task() as usize;
        let remote = target.memory[me].as_ptr().addr() as u64;
        let put = Put {
            tgt,
            places: Places::Contiguous { local: data.as_ptr().addr(), remote, len: data.len() },
            tgt_cntr: target.arrived.as_ptr().addr() as u64,
            cmpl_cntr: 0,
            done: SendDone { bytes: data.len() as u64, user: true, ..SendDone::nothing(tgt) },
            hint: Hint::None,
        };
        // SAFETY: the caller's promise; no other thread uses that place.
        unsafe { put_get::put(held, &put) }.expect("a put");
    }
}

fn pattern(job: u8, from: u32, to: u32) -> [u8; 24] {
    std::array::from_fn(|at| job ^ (from * 16 + to) as u8 ^ (at * 5) as u8)
}

#[test]
fn tasks_of_two_jobs_live_in_one_process() {
    let jobs = [("one job", 2), ("another job", 3)];
    let jobs = jobs.map(|(job, tasks)| (0..tasks).map(|me| Task::open(job, me, tasks)).collect::<Vec<_>>());
    for (job, tasks) in (1..).zip(&jobs) {
        for (from, origin) in (0..).zip(tasks) {
            for (to, target) in (0..).zip(tasks) {
                origin.put(target, to, &pattern(job, from, to));
            }
        }
    }
    for (job, tasks) in (1..).zip(&jobs) {
        for (to, task) in (0..).zip(tasks) {
            let mut held = task.session.enter().expect("an open session");
            assert_eq!((held.task(), held.tasks()), (to, tasks.len() as u32));
            // SAFETY: the counter lives.
            let left =
                unsafe { progress::waitcntr(&mut held, task.arrived.as_ptr().addr(), tasks.len() as i32) };
            assert_eq!(left.expect("all puts"), 0);
            for (from, place) in (0..).zip(&task.memory) {
                assert_eq!(*place, pattern(job, from, to), "job {job}, from task {from} to task {to}");
            }
        }
    }
}

#[test]
fn a_task_opens_its_next_session_by_the_same_link() {
    let mut tasks = [0, 1].map(|me| Task::open("sessions one after the other", me, 2));
    for _ in 0..2 {
        let [one, other] = &tasks;
        one.put(other, 1, &[7; 24]);
        assert_eq!(other.memory[0], [7; 24]);
        for (me, task) in (0..).zip(&mut tasks) {
            task.session.close().expect("an open session");
            assert_eq!(task.session.close().unwrap_err().code, LAPI_ERR_HNDL_INVALID);
            assert_eq!(task.session.enter().map(drop).unwrap_err().code, LAPI_ERR_HNDL_INVALID);
            let identity = identity("sessions one after the other", me, 2);
            let events = Arc::new(Quiet::default());
            let again = Session::open(&identity, Settings::default(), &task.link, events);
            task.session = again.expect("the next session");
            task.memory.fill([0; 24]);
        }
    }
}

/// The thread could use what is gone: the session stays open.
#[test]
fn a_session_is_not_closed_beneath_a_call_of_the_same_thread() {
    let task = Task::open("a session that is in use", 0, 1);
    let mut held = task.session.enter().expect("an open session");
    assert_eq!(task.session.close().unwrap_err().code, LAPI_ERR_UNKNOWN);
    assert_eq!(held.tasks(), 1);
    drop(held);
    task.session.close().expect("it is not in use any more");
}

#[test]
fn messages_and_the_end_are_those_of_one_session() {
    let lines = [0, 1].map(|_| Arc::new(Mutex::new(Vec::new())));
    let events = [0, 1].map(|_| Arc::new(Quiet::default()));
    let mut sessions: Vec<Session> = (0..)
        .zip(lines.iter().zip(&events))
        .map(|(me, (lines, events))| {
            let (config, lines) = (Config { info_level: 2, ..Config::default() }, lines.clone());
            let log = Log::new(move |line| lines.lock().push(line.to_string()));
            let identity = identity("messages", me, 2);
            let settings = Settings { config, log, ..Settings::default() };
            Session::open(&identity, settings, &Link::none(), events.clone()).expect("a session")
        })
        .collect();
    let lines = lines.map(|lines| lines.lock().join("\n"));
    assert!(lines[0].contains("2 tasks, transport shm, found by a test"), "{lines:?}");
    assert!(lines[1].is_empty(), "{lines:?}");
    drop(sessions.pop());
    let closing = events.each_ref().map(|events| events.closing.load(Ordering::Acquire));
    assert_eq!(closing, [0, 1]);
    assert!(sessions[0].enter().is_ok());
}
