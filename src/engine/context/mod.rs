//! The state behind a handle, and the only way to it.
//!
//! A [`Context`] is a lock and what it guards, the [`Core`]. The thread that holds the lock has a
//! [`Held`], and reaches the core by `Held::core` for a moment at a time: no reference into the
//! core lives across a call of the program's handlers, because those may call LAPI again and come
//! here by a `Held` of their own. The core is private to the engine: the calls of `api` use the
//! engine's operations, and read single values ([`Held`]); reports use a [`snapshot`].

pub mod active_handler;
pub mod addresses;
pub mod clear;
pub mod completion_queue;
pub mod conditions;
pub mod core;
pub mod counter_status;
pub mod direct_copies;
pub mod direct_copy;
pub mod event_loop;
pub mod events;
mod failure;
mod given_handle;
mod held;
pub mod holds;
pub mod incoming;
pub mod lock;
pub mod lock_sharing;
pub mod membership;
pub mod notifier;
pub mod one_sided;
mod other_contexts;
pub mod partings;
pub mod request;
pub mod settings;
pub mod snapshot;
pub mod snapshot_text;
pub mod statistics;
pub mod unhindered;
pub mod wait_policy;
pub mod waiters;

use crate::abi::{LAPI_ERR_ALL_HNDL_IN_USE, LAPI_ERR_HNDL_INVALID, LAPI_VOID_HANDLE, lapi_handle_t};
use crate::base::clock;
use crate::base::event_count::EventCount;
use crate::engine::context::active_handler::{Activity, State};
pub use crate::engine::context::addresses::ADDRESS_TABLE;
use crate::engine::context::clear::Clear;
use crate::engine::context::completion_queue::Completions;
use crate::engine::context::conditions::Conditions;
pub use crate::engine::context::core::Core;
pub use crate::engine::context::core::queries::Statistics;
pub use crate::engine::context::core::rdma::RdmaAddress;
use crate::engine::context::given_handle::GivenHandle;
pub use crate::engine::context::held::Held;
use crate::engine::context::lock::OwnedLock;
use crate::engine::context::notifier::Notifier;
use crate::engine::context::settings::{Options, Tunables};
use crate::error::{Error, Result};
use crate::transport::AnyTransport;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// How long a handler that has ended its context may take to return before the context can
/// be opened again.
const RETURN: Duration = Duration::from_secs(1);

/// The state behind a handle. It can be opened again after it was closed. What every call uses
/// comes first, on one cache line.
#[repr(C, align(64))]
pub struct Context {
    /// The handle; LAPI_VOID_HANDLE while the context is closed.
    handle: AtomicU32,
    pub(in crate::engine) lock: OwnedLock,
    core: UnsafeCell<Option<Box<Core>>>,
    /// What is known to hinder no short way.
    clear: clear::Known,
    /// The handle once more, which handlers get a pointer to.
    given: GivenHandle,
    /// Whether the dispatcher runs, and in which handler it is.
    pub activity: Activity,
    /// See [`Tunables`].
    pub settings: Tunables,
    /// The completion handlers' threads and queue.
    pub completions: Completions,
    /// The thread of interrupt mode.
    pub notifier: Notifier,
    /// Some counters are watched: see [`Core::watched`].
    pub(in crate::engine) watching: AtomicBool,
    /// Where threads wait that do not sleep on the transport's descriptor.
    pub(in crate::engine) parking: EventCount,
    /// Where threads of the program wait that share the lock.
    pub(in crate::engine) conditions: Conditions,
    /// The program's event loop was called since it last looked.
    pub(in crate::engine) called: AtomicBool,
}

// SAFETY: the core is only reached by `Held`, that is with the lock held. Addresses in it are the
// program's own, and which thread uses them is the program's business.
unsafe impl Send for Context {}
// SAFETY: as above; all other fields are made for sharing.
unsafe impl Sync for Context {}

impl Context {
    /// A closed context.
    pub fn new() -> Self {
        Self {
            handle: AtomicU32::new(LAPI_VOID_HANDLE),
            lock: OwnedLock::new(),
            core: UnsafeCell::new(None),
            clear: clear::Known::default(),
            given: GivenHandle::new(),
            activity: Activity::new(),
            settings: Tunables::default(),
            completions: Completions::new(),
            notifier: Notifier::new(),
            watching: AtomicBool::new(false),
            parking: EventCount::new(),
            conditions: Conditions::default(),
            called: AtomicBool::new(false),
        }
    }

    /// Makes a core from these options and this transport, under this handle. Threads are started
    /// by the caller. When another thread's handler has ended the former context, waits a moment
    /// for it to return: a thread that saw the end may be quicker than that thread.
    ///
    /// # Errors
    /// LAPI_ERR_ALL_HNDL_IN_USE: a handler that has ended the former context has not returned yet.
    pub fn open(&self, handle: lapi_handle_t, options: Options, transport: AnyTransport) -> Result<()> {
        let until = clock::now() + RETURN;
        let mut held = Held::by(self, self.lock.enter());
        while held.try_core().is_some_and(|old| self.activity.busy() || !old.waiters.inside().is_empty()) {
            if held.nested() || clock::now() >= until {
                let detail =
                    "the handler that ended the former context of this instance has not returned yet";
                return Err(Error::new(LAPI_ERR_ALL_HNDL_IN_USE, detail));
            }
            drop(held);
            clock::sleep(Duration::from_micros(50));
            held = Held::by(self, self.lock.enter());
        }
        // SAFETY: the lock is held, and no thread uses the former core, as was just checked.
        unsafe { *self.core.get() = Some(Box::new(Core::new(options, transport))) };
        self.clear.set(Clear::default());
        self.conditions.begin();
        if self.completions.take_left() {
            self.given.renew();
        }
        self.given.set(handle);
        if self.handle.swap(handle, Ordering::Release) == LAPI_VOID_HANDLE {
            other_contexts::opened();
        }
        Ok(())
    }

    /// Makes the handle invalid. The core stays where it is until the context is opened again:
    /// for a handler that ends its own context, where a frame further up the stack will need
    /// the core again.
    pub(in crate::engine) fn retire(&self) {
        self.given.set(LAPI_VOID_HANDLE);
        if self.handle.swap(LAPI_VOID_HANDLE, Ordering::Release) != LAPI_VOID_HANDLE {
            other_contexts::closed();
        }
    }

    /// Makes the handle invalid, and takes the core out. No thread may be inside.
    pub(in crate::engine) fn close(&self, held: Held<'_>) -> Option<Box<Core>> {
        self.retire();
        // SAFETY: `held` proves that the lock is held; the caller promises that no thread
        // uses the core.
        let core = unsafe { (*self.core.get()).take() };
        self.clear.set(Clear::default());
        drop(held);
        core
    }

    /// The handle.
    #[inline]
    pub fn handle(&self) -> lapi_handle_t {
        self.handle.load(Ordering::Relaxed)
    }

    /// Where handlers of this opening find the handle: valid as long as the context.
    #[inline]
    pub fn handle_ptr(&self) -> *mut lapi_handle_t {
        self.given.pointer()
    }

    /// Whether the context is open, and this is its handle.
    ///
    /// # Safety
    /// The calling thread must hold the lock, and no reference into the core may be out.
    pub(in crate::engine) unsafe fn serves(&self, handle: lapi_handle_t) -> bool {
        // SAFETY: the caller's promise.
        let core = unsafe { (*self.core.get()).as_deref() };
        core.is_some_and(|core| !core.is_closing()) && self.handle() == handle
    }

    /// The program keeps the lock from now on, perhaps for long, and the notifier cannot have it:
    /// sends what waits for other packets.
    ///
    /// # Safety
    /// The calling thread must hold the lock, and no reference into the core may be out.
    pub(in crate::engine) unsafe fn keep_for_program(&self) {
        // SAFETY: the caller's promise.
        if let Some(core) = unsafe { (*self.core.get()).as_deref_mut() } {
            core.flush();
        }
    }

    /// Takes the lock for a call.
    ///
    /// # Errors
    /// `LAPI_ERR_HNDL_INVALID`: the context is closed, or being closed. `LAPI_ERR_UNKNOWN`: the
    /// thread is in the middle of another call, and not in a handler that it has called.
    #[inline(always)]
    pub fn enter(&self) -> Result<Held<'_>> {
        let mut held = Held::by(self, self.enter_lock());
        match held.try_core() {
            Some(core) if !core.is_closing() => held.unless_second(),
            _ => Err(ended()),
        }
    }

    /// Enters for a call that can do without the lock: `None` when another thread holds it, which
    /// makes progress for the context.
    #[inline]
    pub fn try_enter(&self) -> Option<Held<'_>> {
        let mut held = Held::by(self, self.try_enter_lock()?);
        held.try_core().is_some_and(|core| !core.is_closing()).then_some(held)
    }

    /// Takes the lock of a context that may be closing: for its own threads and its end.
    pub fn enter_closing(&self) -> Option<Held<'_>> {
        let mut held = Held::by(self, self.enter_lock());
        held.try_core().is_some().then_some(held)
    }

    /// Enters for a thread that may not wait: `Err` has the thread that holds the lock (see
    /// [`crate::base::known_threads::this_thread`]), and has held it all that time.
    pub fn enter_within(&self, at_most: Duration) -> std::result::Result<Option<Held<'_>>, usize> {
        let hold = self.lock.enter_within(at_most).ok_or_else(|| self.lock.owner().unwrap_or(0))?;
        let mut held = Held::by(self, hold);
        Ok(held.try_core().is_some().then_some(held))
    }

    /// Whether this thread is in a call, and not in a handler that the call has called.
    pub fn is_in_call(&self) -> bool {
        let in_handler = self.in_own_handler() && !self.lock.is_nested();
        self.lock.mine() && !self.lock.by_program() && !in_handler
    }

    /// Whether this thread runs the dispatcher, which has called a handler.
    fn in_own_handler(&self) -> bool {
        self.activity.here() && matches!(self.activity.state(), State::Handler(_))
    }

    /// The thread that holds the lock, 0 for none: may be out of date when it is read.
    #[inline]
    pub fn lock_owner(&self) -> usize {
        self.lock.owner().unwrap_or(0)
    }

    /// Whether it is the program that holds the lock, outside of any call.
    pub fn lock_is_programs(&self) -> bool {
        self.lock.by_program()
    }

    /// MP_INFOLEVEL, as it was when the context was opened.
    pub fn info_level(&self) -> i32 {
        self.settings.info_level.load(Ordering::Relaxed)
    }
}

impl Default for Context {
    fn default() -> Self {
        Self::new()
    }
}

#[cold]
fn ended() -> Error {
    Error::from(LAPI_ERR_HNDL_INVALID)
}
