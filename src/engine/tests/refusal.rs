//! Copies across address spaces that the kernel refuses, at first or in the middle: the data goes in packets.

use super::calls::{Extras, counter, enter, fence, forever, get, put, send, wait};
use super::job::{self, Habits, MAX_BODY, in_threads, locked};
use crate::abi::*;
use crate::engine::context::request::Preference;
use crate::proto::tests::seeds;
use crate::transport::fault::{FaultPlan, Faulty};
use crate::transport::mem::{MemOptions, MemTransport, fabric};
use crate::transport::{Attach, Inbound, Limits, Outgoing, PeerState, SendError, Task, Transport};
use libc::{c_uint, c_ulong, c_void};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Copies in slices of this many bytes, so that this makes four and a bit.
const LONG: usize = (4 << 20) + 12_345;

/// A transport whose copies are refused after the first so many.
struct Refusing<T> {
    inner: T,
    attach: RefusingAttach,
}

struct RefusingAttach {
    /// Another fabric whose ends can copy: copies inside of this process need no more of it.
    copies: Mutex<Vec<MemTransport>>,
    left: AtomicU64,
}

impl RefusingAttach {
    fn copy(&self, run: impl FnOnce(&dyn Attach) -> io::Result<()>) -> io::Result<()> {
        let allowed = self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1));
        match allowed {
            Err(_) => Err(io::Error::from_raw_os_error(libc::EPERM)),
            Ok(_) => run(locked(&self.copies)[0].attach().expect("a transport that can copy")),
        }
    }
}

impl Attach for RefusingAttach {
    unsafe fn read(&self, peer: Task, remote: u64, local: *mut u8, len: usize) -> io::Result<()> {
        // SAFETY: the caller's promise.
        self.copy(|copies| unsafe { copies.read(peer, remote, local, len) })
    }

    unsafe fn write(&self, peer: Task, remote: u64, local: *const u8, len: usize) -> io::Result<()> {
        // SAFETY: the caller's promise.
        self.copy(|copies| unsafe { copies.write(peer, remote, local, len) })
    }
}

impl<T: Transport> Transport for Refusing<T> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    unsafe fn try_send(&mut self, peer: Task, packet: &Outgoing<'_>) -> Result<(), SendError> {
        // SAFETY: the caller's promise.
        unsafe { self.inner.try_send(peer, packet) }
    }

    fn recv(&mut self) -> Option<Inbound> {
        self.inner.recv()
    }

    fn hold(&mut self, peer: Task, held: bool) {
        self.inner.hold(peer, held);
    }

    fn release(&mut self, packet: Inbound) {
        self.inner.release(packet);
    }

    fn arm(&mut self) -> bool {
        self.inner.arm()
    }

    fn disarm(&mut self) {
        self.inner.disarm();
    }

    fn event_fd(&self) -> BorrowedFd<'_> {
        self.inner.event_fd()
    }

    fn waker(&self) -> Box<dyn Fn() + Send + Sync> {
        self.inner.waker()
    }

    fn poke(&self, peer: Task) {
        self.inner.poke(peer);
    }

    fn set_attentive(&mut self, attentive: bool) {
        self.inner.set_attentive(attentive);
    }

    fn attentive(&self, peer: Task) -> bool {
        self.inner.attentive(peer)
    }

    fn peer_state(&self, peer: Task) -> PeerState {
        self.inner.peer_state(peer)
    }

    fn pulse(&self, peer: u32) -> u64 {
        self.inner.pulse(peer)
    }

    fn attach(&self) -> Option<&dyn Attach> {
        Some(&self.attach)
    }

    fn part(&mut self, peer: Task) {
        self.inner.part(peer);
    }

    fn rejoin(&mut self, peer: Task, greeting: u64) -> crate::error::Result<()> {
        self.inner.rejoin(peer, greeting)
    }

    fn rejoined(&mut self) -> Option<(Task, u64)> {
        self.inner.rejoined()
    }

    fn close(&mut self) {
        self.inner.close();
    }
}

/// Two tasks whose copies are refused after the first `allowed`, on a road with or without faults.
fn refusing(allowed: u64, faults: Option<&FaultPlan>) -> job::Ends {
    let options = MemOptions { max_body: MAX_BODY, capacity: 8, attach: true };
    let attach = || RefusingAttach { copies: Mutex::new(fabric(2, options)), left: AtomicU64::new(allowed) };
    let plan = faults.cloned().unwrap_or_default();
    let ends = Faulty::join(fabric(2, MemOptions { attach: false, ..options }), &plan);
    job::boxed(ends.into_iter().map(|inner| Refusing { inner, attach: attach() }).collect())
}

static RECEIVED: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// The address of the buffer stands in the header.
unsafe extern "C" fn as_the_header_says(
    _: *mut lapi_handle_t,
    uhdr: *mut c_void,
    _: *mut c_uint,
    msg_len: *mut c_ulong,
    _: *mut compl_hndlr_p,
    _: *mut *mut c_void,
) -> *mut c_void {
    // SAFETY: the header is one word, aligned, and the message's length stands there for the time of the call.
    let (address, len) = unsafe { (*uhdr.cast::<usize>(), *msg_len as usize) };
    locked(&RECEIVED).push((address, len));
    std::ptr::with_exposed_provenance_mut(address)
}

/// A put, a get and a message of several slices, and what each of them has.
fn everything_arrives(allowed: u64, faults: Option<&FaultPlan>) {
    let habits = Habits { preference: Preference::Attach, ..Habits::THREADED };
    let tasks = job::open(refusing(allowed, faults), &habits);
    in_threads(&tasks, 1, move |task, _| {
        if task.me == 1 {
            // It computes, and its notifier serves.
            return;
        }
        let [put_to, get_from, get_to, send_to, data] = [(); 5].map(|()| forever(LONG));
        data.iter_mut().zip(0..).for_each(|(byte, at): (_, u32)| *byte = (at ^ at >> 8 ^ at >> 16) as u8);
        get_from.copy_from_slice(data);
        let (data, get_from) = (&*data, &*get_from);
        let [org, tgt, cmpl] = [(); 3].map(|()| counter());
        let extras = |told| Extras {
            tgt_cntr: Some(tgt),
            org_cntr: Some(org),
            cmpl_cntr: Some(cmpl),
            told,
            ..Extras::default()
        };
        put(task, 1, put_to.as_mut_ptr(), data, extras(1)).expect("a put");
        get(task, 1, get_from, get_to.as_mut_ptr(), extras(0)).expect("a get");
        let header = Box::leak(Box::new(send_to.as_mut_ptr().expose_provenance().to_ne_bytes()));
        send(task, 1, as_the_header_says, &header[..], data, extras(2)).expect("a message");
        task.stage("waits for the origin counter");
        wait(task, org, 3).expect("three origins");
        task.stage("waits for the completion counter");
        wait(task, cmpl, 2).expect("two completions");
        task.stage("waits for the target counter");
        wait(task, tgt, 3).expect("three targets");
        fence(task).expect("a fence");
        assert!(put_to == data && get_to == data && send_to == data, "not all data is there");
        let mut told = locked(&task.told).clone();
        told.sort_unstable();
        assert_eq!(told, [(1, 0), (2, 0)]);
        let seen =
            locked(&RECEIVED).iter().filter(|(address, _)| *address == send_to.as_ptr().addr()).count();
        assert_eq!(seen, 1, "the header handler runs once");
    });
    let refusals: Vec<_> = tasks.iter().map(|task| enter(task).core().stats.peers.refused).collect();
    // Five slices each: task 0 copies for the put and the get, task 1 for the message.
    assert_eq!(
        refusals.iter().sum::<u64>() > 0,
        allowed < 10,
        "{allowed} copies allowed, refusals {refusals:?}"
    );
    tasks.iter().for_each(|task| assert_eq!(task.reports(), []));
    job::close(tasks);
}

#[test]
fn data_arrives_whenever_copies_are_refused() {
    for allowed in [0, 2, 7, 10] {
        everything_arrives(allowed, None);
    }
}

#[test]
fn data_arrives_when_copies_are_refused_and_packets_overtake_each_other() {
    seeds(2, |seed| everything_arrives(seed % 12, Some(&FaultPlan::rough(seed))));
}
