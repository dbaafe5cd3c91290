//! One thread that listens for all sessions of this process that have no thread of their own. It
//! ends with the last of them.

use super::descriptors::{Descriptors, WAKE};
use super::{LOOK_AROUND, Service, Shared};
use crate::abi::LAPI_ERR_SHM_SETUP;
use crate::base::sync::Mutex;
use crate::base::thread::{self, ThreadConfig};
use crate::error::{Error, Result};
use rustix::event::epoll;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The listeners of all these sessions. Locked while one of them is served, so that none is served
/// once it was taken out.
pub(super) static ALL: Mutex<Option<All>> = Mutex::new(None);

/// How many threads of a process use [`ALL`], the one that listens and those that are about to lock
/// it, and in the upper half which process that is; 0: none does. A child of fork looks at this
/// alone: it has no thread that listens, what [`ALL`] waits with is its parent's too, and a thread
/// that only the parent has may hold the lock.
pub(super) static USERS: AtomicU64 = AtomicU64::new(0);

/// One of these threads.
struct User;

impl User {
    /// The calling thread is one from now on, until this is dropped.
    fn enter() -> Result<Self> {
        let own = u64::from(std::process::id()) << 32;
        let one_more = |users| parent(users).is_none().then_some((users | own) + 1);
        // Before the lock, and so in this order.
        let entered = USERS.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more);
        entered.map(|_| Self).map_err(is_child)
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let one_less = |users| Some(if users as u32 == 1 { 0 } else { users - 1 });
        let _ = USERS.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less);
    }
}

/// The process that these belong to, if that is another one.
fn parent(users: u64) -> Option<u32> {
    let process = (users >> 32) as u32;
    (process != 0 && process != std::process::id()).then_some(process)
}

fn is_child(users: u64) -> Error {
    let parent = users >> 32;
    Error::new(
        LAPI_ERR_SHM_SETUP,
        format!(
            "this is a child of fork of process {parent}, which has sessions over shared memory: it can open none of its own"
        ),
    )
}

/// Whether this process may have sessions without a thread of their own.
///
/// # Errors
/// `LAPI_ERR_SHM_SETUP`: it is a child of fork of a process that had some then.
pub(in crate::job) fn may_listen() -> Result<()> {
    let users = USERS.load(Ordering::SeqCst);
    if parent(users).is_some() { Err(is_child(users)) } else { Ok(()) }
}

pub(super) struct All {
    descriptors: Arc<Descriptors>,
    /// By number.
    services: BTreeMap<u64, Arc<Shared>>,
    last: u64,
}

impl Service {
    /// Lets the common thread run this service. What is returned takes it out again.
    ///
    /// # Errors
    /// `LAPI_ERR_SHM_SETUP`: no descriptor, or this is a child of fork (see [`may_listen`]).
    /// `LAPI_ERR_MEMORY_EXHAUSTED`: no thread.
    pub fn run_in_common(self) -> Result<Box<dyn FnOnce() + Send>> {
        let _user = User::enter()?;
        let mut all = ALL.lock();
        if let Some(all) = all.as_mut() {
            let number = all.add(self.0).map_err(failed)?;
            // It may have something to do at once.
            all.descriptors.wake();
            return Ok(Box::new(move || take_out(number)));
        }
        let mut first = All::new().map_err(failed)?;
        let number = first.add(self.0).map_err(failed)?;
        let descriptors = first.descriptors.clone();
        let user = User::enter()?;
        let listen = move || {
            let _user = user;
            run(&descriptors);
        };
        thread::spawn("lapi-conn", ThreadConfig::PLAIN, listen)?.detach();
        *all = Some(first);
        Ok(Box::new(move || take_out(number)))
    }
}

fn failed(reason: rustix::io::Errno) -> Error {
    let reason = std::io::Error::from(reason);
    Error::new(LAPI_ERR_SHM_SETUP, format!("the thread that listens for all sessions: {reason}"))
}

fn take_out(number: u64) {
    // In a child of fork they are the parent's.
    let Ok(_user) = User::enter() else { return };
    let mut all = ALL.lock();
    let Some(all) = all.as_mut() else { return };
    if let (Some(shared), Some(poll)) = (all.services.remove(&number), all.descriptors.poll.get()) {
        // The program may have closed it.
        let _ = epoll::delete(poll, shared.descriptors.poll.as_fd());
    }
    if all.services.is_empty() {
        all.descriptors.wake();
    }
}

impl All {
    fn new() -> rustix::io::Result<Self> {
        let descriptors = Arc::new(Descriptors::new()?);
        Ok(Self { descriptors, services: BTreeMap::new(), last: WAKE })
    }

    fn add(&mut self, shared: Arc<Shared>) -> rustix::io::Result<u64> {
        self.last += 1;
        let data = epoll::EventData::new_u64(self.last);
        let poll = self.descriptors.poll.get().ok_or(Errno::BADF)?;
        epoll::add(poll, shared.descriptors.poll.as_fd(), data, epoll::EventFlags::IN)?;
        self.services.insert(self.last, shared);
        Ok(self.last)
    }

    /// How long until one of them has something to do, or the thread looks whether its descriptors
    /// are still there.
    fn time_left(&self) -> Duration {
        let left = self.services.values().filter_map(|shared| shared.driver.lock().time_left());
        left.fold(LOOK_AROUND, Duration::min)
    }
}

/// The life of the common thread.
fn run(descriptors: &Arc<Descriptors>) {
    loop {
        let left = {
            let mut all = ALL.lock();
            let Some(own) = all.as_ref().filter(|all| Arc::ptr_eq(&all.descriptors, descriptors)) else {
                return;
            };
            if own.services.is_empty() {
                *all = None;
                return;
            }
            own.time_left()
        };
        let ready = descriptors.wait(left);
        let all = ALL.lock();
        let Some(all) = all.as_ref() else { return };
        for (number, shared) in &all.services {
            let is_due = || shared.driver.lock().time_left().is_some_and(|left| left.is_zero());
            if ready.contains(number) || is_due() {
                shared.serve(Duration::ZERO);
            }
        }
    }
}
