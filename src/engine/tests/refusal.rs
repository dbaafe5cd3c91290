//! Copies across address spaces that the kernel refuses, at first or in the middle: the data
//! goes in packets.

use super::calls::{Extras, counter, enter, fence, forever, get, put, send, wait};
use super::job::{self, Habits, MAX_BODY, in_threads};
use crate::abi::*;
use crate::engine::context::request::Preference;
use crate::proto::tests::seeds;
use crate::transport::testing::faults::{FaultPlan, Faulty};
use crate::transport::testing::forward::forward;
use crate::transport::testing::mem::{MemOptions, MemTransport, network};
use crate::transport::{Endpoint, Peers, Reach, RemoteAccess, Started, Task, Transfer, Transport, Wakeup};
use libc::{c_uint, c_ulong, c_void};
use parking_lot::Mutex;
use std::io;

/// Copies in slices of this many bytes, so that this makes four and a bit.
const LONG: usize = (4 << 20) + 12_345;

/// A transport that refuses copies after a number of them.
struct Refusing<T> {
    inner: T,
    copies: RefusingCopies,
}

/// Copies by another network: inside of this process they need no more of it.
struct RefusingCopies {
    ends: Vec<MemTransport>,
    left: u64,
}

impl<T: Transport> Refusing<T> {
    fn inner(&self) -> &T {
        &self.inner
    }

    fn inner_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

impl<T: Transport> Endpoint for Refusing<T> {
    forward!(Endpoint);
}

impl<T: Transport> RemoteAccess for Refusing<T> {
    forward!(expose);

    fn reach(&mut self, _peer: Task) -> Reach {
        Reach::Open
    }

    unsafe fn access(&mut self, peer: Task, transfer: Transfer<'_>) -> io::Result<Started> {
        let copying = &mut self.copies;
        let Some(left) = copying.left.checked_sub(1) else {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        };
        copying.left = left;
        // SAFETY: the caller's promise.
        unsafe { copying.ends[0].access(peer, transfer) }
    }
}

impl<T: Transport> Wakeup for Refusing<T> {
    forward!(Wakeup);
}

impl<T: Transport> Peers for Refusing<T> {
    forward!(Peers);
}

/// Two tasks whose copies are refused after the first `allowed`, with or without faults.
fn refusing(allowed: u64, faults: Option<&FaultPlan>) -> job::Ends {
    let options = MemOptions { max_body: MAX_BODY, capacity: 8, remote: true, ..MemOptions::default() };
    let copies = || RefusingCopies { ends: network(2, options), left: allowed };
    let plan = faults.cloned().unwrap_or_default();
    let ends = Faulty::join(network(2, MemOptions { remote: false, ..options }), &plan);
    job::boxed(ends.into_iter().map(|inner| Refusing { inner, copies: copies() }).collect())
}

static RECEIVED: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

/// The address of the buffer is in the header.
unsafe extern "C" fn as_the_header_says(
    _: *mut lapi_handle_t,
    uhdr: *mut c_void,
    _: *mut c_uint,
    msg_len: *mut c_ulong,
    _: *mut compl_hndlr_p,
    _: *mut *mut c_void,
) -> *mut c_void {
    // SAFETY: the header is one word, aligned, and the message's length stands there for the
    // time of the call.
    let (address, len) = unsafe { (*uhdr.cast::<usize>(), *msg_len as usize) };
    RECEIVED.lock().push((address, len));
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
        let extras = |reported| Extras {
            tgt_cntr: Some(tgt),
            org_cntr: Some(org),
            cmpl_cntr: Some(cmpl),
            reported,
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
        assert!(put_to == data && get_to == data && send_to == data, "not all data has arrived");
        let mut reported = task.reported.lock().clone();
        reported.sort_unstable();
        assert_eq!(reported, [(1, 0), (2, 0)]);
        let seen = RECEIVED.lock().iter().filter(|(address, _)| *address == send_to.as_ptr().addr()).count();
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
